/* Bloom filters on a server: added items are found, the bits equal those of a filter in memory,
 * and a non-empty filter never counts as empty. */
#include <stdio.h>

#include "support/fixtures/data/blooms.h"
#include "support/models/scripts.h"

#define CONFIG "belay::bloom::{seen}"
#define SEGMENT "belay::bloom::{seen::0}"

BLOOM_TEST(added_items_are_found, bloom_options(1000, 1e-6)) {
  assert_int_equal(server_keys(env->server), 0); /* nothing was sent */
  assert_false(filter_exists(filter, "a"));
  assert_true(filter_add(filter, "a"));
  assert_false(filter_add(filter, "a"));
  assert_true(filter_exists(filter, "a"));
  assert_false(filter_exists(filter, "b"));
  assert_false(filter_exists(filter, "")); /* the empty item is an item */
  assert_true(filter_add(filter, ""));
  assert_false(filter_add(filter, ""));
  filter_op_t op = {0};
  expect_filter_op(&op, begin_filter_exists(filter, &op, NULL, 0), 0);
  assert_true(op.answer);
  assert_int_equal(server_keys(env->server), 2);
  expect_ttls(env->server);
}

BLOOM_TEST(one_command_per_operation, bloom_options(1000, 0.01)) {
  filter_op_t op = {0};
  expect_filter_op(&op, begin_filter_open(filter, &op), 0);
  uint64_t commands = client_stats(env).commands;
  for (int i = 0; i < 10; i++)
    (void)filter_add(filter, "a");
  for (int i = 0; i < 10; i++)
    assert_true(filter_exists(filter, "a"));
  (void)filter_many(filter, true, filter_items(0, 10), 10, NULL);
  assert_int_equal(client_stats(env).commands - commands, 21);
  assert_int_equal(server_calls(env->server, "bitfield"), 10);
  assert_int_equal(server_calls(env->server, "bitfield_ro"), 10);
}

/* Of two equal items in one request the first is new, in every encoding. */
static void many_of(size_t n, int64_t capacity, bool bulk) {
  env_t *env = env_open(NULL);
  filter_t filter;
  static bool answers[FILTER_ITEMS_MAX];
  filter_new(&filter, env, capacity, 1e-9);
  belay_bytes_t *items = malloc(2 * n * sizeof *items);
  const belay_bytes_t *fresh = filter_items(0, n);
  for (size_t i = 0; i < 2 * n; i++)
    items[i] = fresh[i / 2];
  filter_many(&filter, false, items, 2 * n, answers);
  for (size_t i = 0; i < 2 * n; i++)
    assert_false(answers[i]);
  filter_many(&filter, true, items, 2 * n, answers);
  for (size_t i = 0; i < 2 * n; i++)
    assert_int_equal(answers[i], i % 2 == 0);
  filter_many(&filter, true, items, 2 * n, answers);
  for (size_t i = 0; i < 2 * n; i++)
    assert_false(answers[i]);
  filter_many(&filter, false, items, 2 * n, answers);
  for (size_t i = 0; i < 2 * n; i++)
    assert_true(answers[i]);
  filter_many(&filter, false, filter_items(n, n), n, answers);
  for (size_t i = 0; i < n; i++)
    assert_false(answers[i]);
  assert_true((server_calls(env->server, "bitop") > 0) == bulk);
  expect_ttls(env->server);
  free(items);
  env_close(env);
}

TEST(many_at_once) {
  many_of(1, 1000000, false);
  many_of(10, 1000000, false);
  many_of(4000, 10000000, false); /* over many segments */
  many_of(1000, 1000, true);
  many_of(20000, 400000, true);
  many_of(10000, 2000000, true); /* over three segments */
}

ENV_TEST(million_items_are_found) {
  enum { BATCH = 50000 };
  static bool answers[BATCH];
  filter_t filter;
  const int64_t n = 1000000 / (slow() > 1 ? 10 : 1);
  filter_new(&filter, env, n, 0.01);
  int64_t new = 0;
  for (int64_t i = 0; i < n; i += BATCH) {
    filter_many(&filter, true, filter_items((uint64_t)i, BATCH), BATCH, answers);
    for (int j = 0; j < BATCH; j++)
      new += answers[j];
  }
  for (int64_t i = 0; i < n; i += BATCH) {
    filter_many(&filter, false, filter_items((uint64_t)i, BATCH), BATCH, answers);
    for (int j = 0; j < BATCH; j++)
      if (!answers[j])
        fail_msg("%lld is missed", (long long)i + j);
  }
  assert_between(new, n - n / 100, n);
  belay_bloom_info_t info = filter_info(&filter);
  assert_between(info.items, n - n / 100, n + n / 100);
}

/* Bit by bit, as a bitmap, one item at a time: the same as in memory. */
static void compare_with_memory(const belay_bloom_options_t *options, size_t n) {
  env_t *env = env_open(NULL);
  filter_t filter;
  belay_bloomset_t *set;
  static bool answers[FILTER_ITEMS_MAX];
  assert_error(belay_bloomset_new(options, NULL, &set), 0);
  filter_of(&filter, env, env->client, options);
  const size_t batches[] = {1, 5, n, n / 2};
  uint64_t from = 0;
  for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
    const belay_bytes_t *items = filter_items(from, batches[b]);
    filter_many(&filter, true, items, batches[b], answers);
    for (size_t i = 0; i < batches[b]; i++)
      assert_int_equal(answers[i], belay_bloomset_add(set, items[i]));
    items = filter_items(from / 2, batches[b] * 2);
    filter_many(&filter, false, items, batches[b] * 2, answers);
    for (size_t i = 0; i < batches[b] * 2; i++)
      assert_int_equal(answers[i], belay_bloomset_exists(set, items[i]));
    from += batches[b];
  }
  belay_bloom_info_t there = filter_info(&filter), here;
  belay_bloomset_info(set, &here);
  for (unsigned s = 0; s < here.segments; s++) {
    char key[64];
    (void)snprintf(key, sizeof key, "belay::bloom::{seen::%u}", s);
    expect_same_bits(env->server, key, set, s);
  }
  assert_true(there.generation > 0);
  assert_between(there.remaining_ms, options->ttl_ms - 60000, options->ttl_ms);
  here.generation = there.generation;
  here.remaining_ms = there.remaining_ms;
  assert_int_equal(there.bits_set, here.bits_set);
  assert_int_equal(there.items, here.items);
  assert_int_equal(there.capacity, here.capacity);
  assert_int_equal(there.bits, here.bits);
  assert_int_equal(there.hashes, here.hashes);
  assert_int_equal(there.layers, here.layers);
  assert_int_equal(there.segments, here.segments);
  assert_true(there.saturation == here.saturation);
  belay_bloomset_free(set);
  env_close(env);
}

TEST(same_bits_as_in_memory) {
  static const uint8_t key[BELAY_BLOOM_KEY_LEN] = "0123456789abcde";
  belay_bloom_options_t options = bloom_options(2000, 0.1);
  compare_with_memory(&options, 1500);
  options.seed = 77;
  compare_with_memory(&options, 40);
  options.seed = 0;
  options.key = key;
  compare_with_memory(&options, 40);
  options = bloom_options(0, 0.01);
  options.bits = 1;
  compare_with_memory(&options, 10);
  options.bits = 70000001; /* three segments */
  options.hashes = 32;
  compare_with_memory(&options, 5000);
}

BLOOM_TEST(other_options_are_a_mismatch, bloom_options(1000, 0.01)) {
  static const uint8_t key[BELAY_BLOOM_KEY_LEN] = {1};
  assert_true(filter_add(filter, "a"));
  belay_bloom_info_t before = filter_info(filter);
  for (int i = 0; i < 4; i++) {
    static const char *const details[] = {
        CONFIG ": it has another number of bits", CONFIG ": it has another number of hashes",
        CONFIG ": it has another seed", CONFIG ": its items are not hashed under a key"};
    belay_bloom_options_t o = bloom_options(1000, 0.01);
    filter_t other;
    if (i == 0)
      o.capacity = 1001;
    else if (i == 1)
      o.error_rate = 0.001;
    else if (i == 2)
      o.seed = 1;
    else
      o.key = key;
    filter_of(&other, env, env->client, &o);
    assert_string_equal(expect_exists_fails(&other, "a", BELAY_EMISMATCH), details[i]);
    assert_string_equal(expect_add_fails(&other, "a", BELAY_EMISMATCH), details[i]);
    assert_string_equal(expect_open_fails(&other, BELAY_EMISMATCH), details[i]);
  }
  belay_bloom_info_t after = filter_info(filter);
  assert_int_equal(after.bits_set, before.bits_set);
  assert_true(after.generation == before.generation);
  assert_true(filter_exists(filter, "a"));
}

/* Who knows the name alone can use it. */
static void expect_made(const belay_bloom_options_t *options) {
  env_t *env = env_open(NULL);
  filter_t maker, different, user;
  filter_op_t op = {0};
  belay_bloom_options_t other = bloom_options(1, 0.5);
  filter_of(&different, env, env->client, &other);
  expect_filter_op(&op, begin_filter_made(&different, &op), BELAY_EABSENT);
  assert_int_equal(server_keys(env->server), 0); /* nothing was created */
  filter_of(&maker, env, env->client, options);
  assert_true(filter_add(&maker, "a"));
  expect_filter_op(&op, begin_filter_made(&different, &op), 0);
  belay_bloom_options_t made = op.made;
  assert_null(made.name.data);
  assert_int_equal(made.kind, options->kind);
  assert_int_equal(made.capacity, options->capacity);
  assert_int_equal(made.hashes, options->hashes);
  assert_true(made.seed == options->seed && made.window_ms == options->window_ms);
  assert_true(options->capacity == 0 || made.error_rate == options->error_rate);
  assert_int_equal(made.ttl_ms == 0, options->ttl_ms == 0);
  made.name = options->name;
  filter_of(&user, env, env->client, &made);
  assert_true(filter_exists(&user, "a"));
  assert_true(filter_add(&user, "b"));
  assert_true(filter_exists(&maker, "b"));
  env_close(env);
}

TEST(options_of_an_existing_filter) {
  belay_bloom_options_t options = bloom_options(1234, 0.003);
  options.seed = 99;
  expect_made(&options);
  options.ttl_ms = 0;
#if BELAY_HAS_BLOOM_GROWING
  options.kind = BELAY_BLOOM_SCALING;
  expect_made(&options);
  options = bloom_options(1234, 0.003);
  options.kind = BELAY_BLOOM_ROTATING;
  options.window_ms = 60000;
#endif
  expect_made(&options);
  options = bloom_options(0, 0.01);
  options.bits = 70000001; /* three segments, which do not divide it evenly */
  options.hashes = 5;
  expect_made(&options);
}

BLOOM_TEST(options_of_a_foreign_value, bloom_options(1000, 0.01)) {
  filter_op_t op = {0};
  server_do(env->server, "SET", CONFIG, "hello", NULL);
  expect_filter_op(&op, begin_filter_made(filter, &op), BELAY_EMISMATCH);
  assert_string_equal(op.detail, CONFIG ": it holds no configuration of a Bloom filter");
  server_do(env->server, "DEL", CONFIG, NULL);
  server_do(env->server, "RPUSH", CONFIG, "hello", NULL);
  expect_filter_op(&op, begin_filter_made(filter, &op), BELAY_EWRONGTYPE);
}

BLOOM_TEST(foreign_values_are_kept, bloom_options(1000, 0.01)) {
  server_do(env->server, "SET", CONFIG, "hello", NULL);
  assert_string_equal(expect_add_fails(filter, "a", BELAY_EMISMATCH),
                      CONFIG ": it holds no configuration of a Bloom filter");
  assert_string_equal(server_string(env->server, "GET", CONFIG, NULL), "hello");
  server_do(env->server, "DEL", CONFIG, NULL);
  server_do(env->server, "RPUSH", CONFIG, "hello", NULL);
  const char *detail = expect_add_fails(filter, "a", BELAY_EWRONGTYPE);
  assert_non_null(strstr(detail, CONFIG));
  filter_op_t op = {0};
  expect_filter_op(&op, begin_filter_clear(filter, &op), BELAY_EWRONGTYPE);
  assert_int_equal(server_keys(env->server), 1);
  server_do(env->server, "DEL", CONFIG, NULL);
  server_do(env->server, "RPUSH", SEGMENT, "hello", NULL);
  detail = expect_add_fails(filter, "a", BELAY_EWRONGTYPE);
  assert_non_null(strstr(detail, SEGMENT));
  server_do(env->server, "DEL", SEGMENT, NULL);
  assert_true(filter_add(filter, "a"));
  server_do(env->server, "DEL", SEGMENT, NULL);
  server_do(env->server, "RPUSH", SEGMENT, "hello", NULL);
  detail = expect_exists_fails(filter, "a", BELAY_EWRONGTYPE);
  assert_non_null(strstr(detail, SEGMENT));
}

BLOOM_TEST(arguments_are_checked, bloom_options(1000, 0.01)) {
  filter_op_t op = {0};
  const belay_bytes_t wrong = {.data = NULL, .len = 1};
  assert_error(begin_filter_add(filter, &op, NULL, 1), BELAY_EINVAL);
  assert_error(begin_filter_add(filter, &op, "a", BELAY_BLOOM_ITEM_MAX + 1), BELAY_EINVAL);
  assert_error(begin_filter_many(filter, &op, true, &wrong, 1), BELAY_EINVAL);
  assert_error(begin_filter_many(filter, &op, true, NULL, 1), BELAY_EINVAL);
  assert_error(begin_filter_many(filter, &op, true, &wrong, 0), BELAY_EINVAL);
  assert_error(begin_filter_many(filter, &op, false, &wrong, BELAY_BLOOM_ITEMS_MAX + 1),
               BELAY_EINVAL);
  assert_int_equal(server_keys(env->server), 0);
}

BLOOM_TEST_OF(all_keys_end_together, bloom_options(5000000, 0.01), o.ttl_ms = 100000) {
  assert_true(filter_add(filter, "a"));
  filter_many(filter, true, filter_items(0, 40000), 40000, NULL); /* as bitmaps */
  assert_true(server_calls(env->server, "bitop") > 0);
  assert_int_equal(server_keys(env->server), 3);
  const char *const keys[] = {CONFIG, SEGMENT, "belay::bloom::{seen::1}"};
  int64_t ends = server_integer(env->server, "PEXPIRETIME", CONFIG, NULL);
  for (int i = 0; i < 3; i++) {
    assert_between(server_integer(env->server, "PTTL", keys[i], NULL), 50000, 100000);
    assert_true(server_integer(env->server, "PEXPIRETIME", keys[i], NULL) == ends);
  }
  assert_between(filter_info(filter).remaining_ms, 50000, 100000);
}

BLOOM_TEST_OF(filter_without_ttl, bloom_options(1000, 0.01), o.ttl_ms = 0) {
  filter_many(filter, true, filter_items(0, 1000), 1000, NULL);
  assert_true(server_calls(env->server, "bitop") > 0);
  assert_int_equal(server_integer(env->server, "PTTL", CONFIG, NULL), -1);
  assert_int_equal(server_integer(env->server, "PTTL", SEGMENT, NULL), -1);
  assert_int_equal(server_keys(env->server), 2);
  assert_int_equal(filter_info(filter).remaining_ms, -1);
}

BLOOM_TEST_OF(expired_filter_is_created_again, bloom_options(1000, 1e-6), o.ttl_ms = 1000) {
  assert_true(filter_add(filter, "a"));
  int64_t generation = filter_info(filter).generation;
  env_run_for(env, 1100);
  (void)expect_add_fails(filter, "a", BELAY_ELOST);
  assert_int_equal(server_keys(env->server), 0); /* nothing is left of that */
  assert_true(filter_add(filter, "a"));
  assert_true(filter_info(filter).generation != generation);
  expect_ttls(env->server);
}
