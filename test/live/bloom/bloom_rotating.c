/* Rotating Bloom filters: an added item is found for at least one window and at most two. Time
 * mostly stands still: the test makes the stored data older by some windows. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "support/fixtures/data/blooms.h"
#include "support/deployments/relay.h"
#include "support/models/scripts.h"

#define CONFIG "belay::bloom::{seen}"
#define DAY INT64_C(86400000)
#define WINDOW (10 * DAY)

static belay_bloom_options_t rotating(int64_t capacity, double rate, int64_t window_ms) {
  belay_bloom_options_t options = bloom_options(capacity, rate);
  options.kind = BELAY_BLOOM_ROTATING;
  options.window_ms = window_ms;
  return options;
}

static void rotating_new(filter_t *filter, env_t *env, int64_t capacity, double rate) {
  const belay_bloom_options_t options = rotating(capacity, rate, WINDOW);
  filter_of(filter, env, env->client, &options);
}

static bool answers[FILTER_ITEMS_MAX];

static size_t count(size_t n, bool what) {
  size_t counted = 0;
  for (size_t i = 0; i < n; i++)
    counted += answers[i] == what;
  return counted;
}

/* Ages the stored data by some windows (negative: rejuvenates), and deletes what has no meaning
 * any more. */
static void make_older(server_t *server, int windows) {
  static const char script[] =
      "local value = redis.call('GET', KEYS[1])\n"
      "local state = string.sub(value, 97)\n"
      "if state == '' then return 0 end\n"
      "local last, by, left = tonumber(string.sub(state, 1, 16)), tonumber(ARGV[1]), 0\n"
      "for n = 0, 1 do\n"
      "  local i = by > 0 and 1 - n or n\n"
      "  local key = KEYS[1] .. '::w' .. string.format('%.0f', last - i) .. '::0'\n"
      "  if redis.call('EXISTS', key) == 1 then\n"
      "    if by + i > 1 then\n"
      "      redis.call('DEL', key)\n"
      "    else\n"
      "      redis.call('RENAME', key, KEYS[1] .. '::w' .. string.format('%.0f', last - i - by) .. "
      "'::0')\n"
      "      left = left + 1\n"
      "    end\n"
      "  end\n"
      "end\n"
      "if left == 0 then\n"
      "  redis.call('DEL', KEYS[1])\n"
      "else\n"
      "  redis.call('SETRANGE', KEYS[1], 96, string.format('%016.0f', last - by))\n"
      "end\n"
      "return left";
  char by[16];
  snprintf(by, sizeof by, "%d", windows);
  server_do(server, "EVAL", script, "1", CONFIG, by, NULL);
}

BLOOM_TEST(items_expire_after_two_windows, rotating(100, 0.001, WINDOW)) {
  assert_false(filter_exists(filter, "a"));
  assert_int_equal(server_keys(env->server), 1);
  assert_true(filter_add(filter, "a"));
  assert_false(filter_add(filter, "a"));
  assert_true(filter_exists(filter, "a"));
  assert_int_equal(server_keys(env->server), 2);
  make_older(env->server, 1);
  assert_true(filter_exists(filter, "a"));
  assert_int_equal(server_keys(env->server), 2); /* to look makes nothing */
  assert_true(filter_add(filter, "b"));
  assert_int_equal(server_keys(env->server), 3);
  belay_bloom_info_t info = filter_info(filter);
  assert_int_equal(info.layers, 2);
  assert_int_equal(info.items, 2);
  make_older(env->server, 1);
  assert_false(filter_exists(filter, "a"));
  assert_true(filter_exists(filter, "b"));
  assert_true(filter_add(filter, "a"));
  expect_ttls(env->server);
}

BLOOM_TEST(add_renews_an_item, rotating(100, 0.001, WINDOW)) {
  assert_true(filter_add(filter, "a"));
  for (int i = 0; i < 5; i++) {
    make_older(env->server, 1);
    assert_false(filter_add(filter, "a"));
  }
  make_older(env->server, 1);
  assert_true(filter_exists(filter, "a")); /* that was no add */
  make_older(env->server, 1);
  assert_false(filter_exists(filter, "a"));
}

static int64_t window_of(env_t *env, int64_t window_ms) {
  return server_now_ms(env->server) / window_ms;
}

static void expect_end(env_t *env, const char *key, int64_t at) {
  assert_between(server_now_ms(env->server) + server_integer(env->server, "PTTL", key, NULL),
                 at - lag(), at + lag());
}

BLOOM_TEST(keys_expire, rotating(100, 0.001, WINDOW)) {
  char key[96];
  assert_false(filter_exists(filter, "a"));
  expect_end(env, CONFIG, server_now_ms(env->server) + 2 * WINDOW + 2000);
  int64_t window = window_of(env, WINDOW);
  assert_true(filter_add(filter, "a"));
  snprintf(key, sizeof key, CONFIG "::w%" PRId64 "::0", window);
  expect_end(env, key, (window + 2) * WINDOW + 1000);
  expect_end(env, CONFIG, (window + 2) * WINDOW + 2000);
  assert_true(filter_info(filter).remaining_ms > WINDOW);
  filter_clear(filter);
  assert_int_equal(server_keys(env->server), 0);
}

/* In real time, once. */
BLOOM_TEST(time_passes, rotating(100, 0.001, 1000)) {
  int64_t before = clock_now();
  assert_true(filter_add(filter, "a"));
  int64_t added = clock_now(), seen = added, asked;
  do {
    env_run_for(env, 20);
    asked = clock_now();
    if (!filter_exists(filter, "a"))
      break;
    seen = asked;
  } while (true);
  print_message("found for %lld ms\n", (long long)((seen - added) / MS));
  assert_between((clock_now() - before) / MS, 1000, INT64_MAX);
  assert_between((seen - added) / MS, 0, 2000);
  server_do(env->server, "FLUSHALL",
            NULL); /* as if the ttls were over: now nothing is lost with it */
  assert_false(filter_exists(filter, "a"));
  assert_true(filter_add(filter, "a"));
  expect_ttls(env->server);
}

BLOOM_TEST(early_loss_is_an_error, rotating(100, 0.001, WINDOW)) {
  assert_true(filter_add(filter, "a"));
  server_do(env->server, "FLUSHALL", NULL);
  expect_exists_fails(filter, "a", BELAY_ELOST);
  assert_true(filter_add(filter, "a"));
  server_do(env->server, "FLUSHALL", NULL);
  expect_add_fails(filter, "a", BELAY_ELOST);
  assert_true(filter_add(filter, "a"));
}

BLOOM_TEST(clock_set_back, rotating(100, 0.001, WINDOW)) {
  filter_t other;
  rotating_new(&other, env, 100, 0.001);
  assert_true(filter_add(filter, "a"));
  make_older(env->server, -1); /* into the window before: it goes on with the later one */
  assert_true(filter_exists(filter, "a"));
  assert_true(filter_exists(&other, "a"));
  assert_true(filter_add(filter, "b"));
  assert_true(filter_exists(&other, "b"));
  make_older(env->server, 1);
  assert_true(filter_exists(filter, "a"));
  make_older(env->server, -3); /* farther */
  assert_false(filter_exists(filter, "a"));
  assert_true(filter_add(filter, "a"));
  assert_true(filter_exists(&other, "a"));
  expect_ttls(env->server);
}

enum { STEPS = 1500, BATCH = 30, NUMBERS = 600 };

typedef struct model {
  belay_bloomset_t *layer[2]; /* of this window, and the one before; NULL: nothing was added */
} model_t;

static belay_bloomset_t *new_layer(void) {
  belay_bloomset_t *layer;
  const belay_bloom_options_t options = bloom_options(200, 0.05);
  assert_error(belay_bloomset_new(&options, NULL, &layer), 0);
  return layer;
}

static void model_age(model_t *m, int windows) {
  for (; windows > 0; windows--) {
    belay_bloomset_free(m->layer[1]);
    m->layer[1] = m->layer[0];
    m->layer[0] = NULL;
  }
}

static bool model_has(const model_t *m, const belay_bytes_t *item) {
  for (int i = 0; i < 2; i++)
    if (m->layer[i] != NULL && belay_bloomset_exists(m->layer[i], *item))
      return true;
  return false;
}

static bool model_add(model_t *m, const belay_bytes_t *item) {
  bool new = !model_has(m, item);
  if (m->layer[0] == NULL)
    m->layer[0] = new_layer();
  belay_bloomset_add(m->layer[0], *item);
  return new;
}

static uint64_t below(uint64_t *random, uint64_t n) { /* xorshift64* */
  *random ^= *random >> 12;
  *random ^= *random << 25;
  *random ^= *random >> 27;
  return (*random * UINT64_C(2685821657736338717) >> 11) % n;
}

ENV_TEST(same_as_model) {
  uint64_t random = UINT64_C(0x9e3779b97f4a7c15);
  unsigned found = 0, missed = 0, ages = 0;
  filter_t filters[3];
  model_t m = {0};
  for (int i = 0; i < 3; i++)
    rotating_new(&filters[i], env, 200, 0.1);
  for (int i = 0; i < STEPS; i++) {
    filter_t *filter = &filters[below(&random, 3)];
    if (below(&random, 15) == 0 && m.layer[0] != NULL) { /* the filter itself is not to end here */
      make_older(env->server, 1);
      model_age(&m, 1);
      ages++;
    }
    belay_bytes_t items[BATCH];
    uint64_t numbers[BATCH];
    size_t n = 1 + (size_t)below(&random, BATCH);
    bool add = below(&random, 3) == 0;
    for (size_t j = 0; j < n; j++) {
      numbers[j] = below(&random, NUMBERS);
      items[j] = (belay_bytes_t){.data = &numbers[j], .len = below(&random, 50) == 0 ? 0 : 8};
    }
    filter_many(filter, add, items, n, answers);
    for (size_t j = 0; j < n; j++) {
      bool expected = add ? model_add(&m, &items[j]) : model_has(&m, &items[j]);
      assert_int_equal(answers[j], expected);
      found += expected;
      missed += !expected;
    }
    if (i % 100 == 0)
      server_do(env->server, "SCRIPT", "FLUSH", NULL);
    if (i % 50 == 0)
      assert_int_equal(filter_info(filter).layers, (m.layer[0] != NULL) + (m.layer[1] != NULL));
  }
  print_message("%u yes, %u no, in %u windows\n", found, missed, ages);
  assert_true(found > 3000 && missed > 3000 && ages > 50);
  expect_ttls(env->server);
  model_age(&m, 2);
}

ENV_TEST_OF(error_rate, o.timeout_ms = 30000) {
  enum { FULL = 2000, OTHERS = 30000 };
  filter_t filter;
  rotating_new(&filter, env, FULL, 0.01);
  filter_many(&filter, true, filter_items(0, FULL), FULL, answers);
  make_older(env->server, 1);
  filter_many(&filter, true, filter_items(FULL, FULL), FULL, answers); /* both are full */
  filter_many(&filter, false, filter_items(UINT64_C(1) << 32, OTHERS), OTHERS, answers);
  double found = (double)count(OTHERS, true), most = 0.01 * OTHERS;
  print_message("%.5f found\n", found / OTHERS);
  assert_true(fabs(found - most) <= 5 * sqrt(most));
  belay_bloom_info_t info = filter_info(&filter);
  assert_int_equal(info.capacity, FULL);
  assert_between(info.items, 2 * FULL * 95 / 100, 2 * FULL * 105 / 100);
  assert_int_equal(info.layers, 2);
  assert_true(info.saturation > 0.45 && info.saturation < 0.55);
  filter_many(&filter, false, filter_items(0, 2 * FULL), 2 * FULL, answers);
  assert_int_equal(count(2 * FULL, false), 0);
}

BLOOM_TEST(creation_is_idempotent, rotating(100, 0.001, WINDOW)) {
  filter_t again;
  const belay_bloom_options_t options = rotating(100, 0.001, WINDOW);
  assert_true(filter_add(filter, "a"));
  make_older(env->server, 1);
  filter_of(&again, env, env_connect(env, server_url(env->server), NULL), &options);
  filter_op_t op = {0};
  expect_filter_op(&op, begin_filter_open(&again, &op), 0);
  assert_true(filter_exists(&again, "a"));
  assert_int_equal(filter_info(&again).generation, filter_info(filter).generation);
  belay_bloom_options_t longer = rotating(100, 0.001, WINDOW + 1);
  filter_t other;
  filter_of(&other, env, env->client, &longer);
  assert_string_equal(expect_exists_fails(&other, "a", BELAY_EMISMATCH),
                      CONFIG ": it has another window");
}

BLOOM_TEST(lost_layer_is_an_error, rotating(100, 0.001, WINDOW)) {
  char key[2][96];
  int64_t window = window_of(env, WINDOW);
  for (int i = 0; i < 2; i++)
    snprintf(key[i], sizeof key[i], CONFIG "::w%" PRId64 "::0", window - i);
  for (int i = 0; i < 2; i++) {
    assert_true(filter_add(filter, "a"));
    make_older(env->server, 1);
    assert_true(filter_add(filter, "b"));
    server_do(env->server, "DEL", key[i], NULL);
    for (int j = 0; j < 2; j++) {
      expect_add_fails(filter, "c", BELAY_ELOST);
      expect_exists_fails(filter, "c", BELAY_ELOST);
      filter_op_t op = {0};
      expect_filter_op(&op, begin_filter_info(filter, &op), BELAY_ELOST);
    }
    filter_clear(filter);
    assert_int_equal(server_keys(env->server), 0);
    assert_false(filter_exists(filter, "b"));
  }
  assert_true(filter_add(filter, "a"));
  server_do(env->server, "DEL", CONFIG, NULL);
  expect_exists_fails(filter, "a", BELAY_ELOST);
  assert_false(
      filter_exists(filter, "a")); /* and the rest of the older window does not count for it */
  assert_true(filter_add(filter, "a"));
}

BLOOM_TEST(damaged_state_is_kept, rotating(100, 0.001, WINDOW)) {
  static const char *const states[] = {"x", "000000000000000x1", "00000000000000012",
                                       "0000000000000001", "99999999999999991"};
  char key[96];
  assert_false(filter_exists(filter, "a"));
  for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
    server_do(env->server, "EVAL",
              "redis.call('SET', KEYS[1], string.sub(redis.call('GET', KEYS[1]), 1, 96) .. "
              "ARGV[1], 'KEEPTTL')",
              "1", CONFIG, states[i], NULL);
    assert_string_equal(expect_exists_fails(filter, "a", BELAY_EMISMATCH),
                        CONFIG ": its state is damaged");
    if (i < 4) /* the last one is of a future that is none of ours */
      expect_add_fails(filter, "a", BELAY_EMISMATCH);
  }
  filter_clear(filter);
  snprintf(key, sizeof key, CONFIG "::w%" PRId64 "::0", window_of(env, WINDOW));
  server_do(env->server, "RPUSH", key, "1", NULL);
  assert_non_null(strstr(expect_add_fails(filter, "a", BELAY_EWRONGTYPE), CONFIG));
  assert_int_equal(server_integer(env->server, "LLEN", key, NULL), 1);
  server_do(env->server, "DEL", key, NULL);
  assert_true(filter_add(filter, "a"));
  belay_bloom_t *out;
  belay_bloom_options_t options = rotating(4000000, 0.01, WINDOW);
  assert_error(belay_bloom_new(env->client, &options, &out), BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "capacity: a layer takes more than 33554432 bits");
}

TEST(add_is_not_resent) {
  belay_client_options_t client = relay_client_options();
  env_t *env = env_open_relayed(&client);
  filter_t filter;
  rotating_new(&filter, env, 100, 0.001);
  assert_true(filter_add(&filter, "x"));
  filter_op_t op = {0};
  int64_t calls = server_calls(env->server, "evalsha");
  relay_delay(env->relay, RELAY_LONG);
  assert_error(begin_filter_add(&filter, &op, "y", 1), 0);
  while (server_calls(env->server, "evalsha") == calls)
    uv_run(&env->loop, UV_RUN_NOWAIT);
  relay_cut(env->relay);
  relay_delay(env->relay, 0);
  assert_error(end_of_filter_op(&op), BELAY_EUNKNOWN);
  assert_true(filter_exists(&filter, "y")); /* it was executed */
  server_pause(env->server);
  assert_error(begin_filter_exists(&filter, &op, "x", 1), 0);
  env_run_for(env, 30);
  relay_cut(env->relay);
  server_resume(env->server);
  assert_error(end_of_filter_op(&op), 0); /* asked again */
  assert_true(op.answer);
  env_close(env);
}
