/* Scaling Bloom filters with damaged keys, wrong replies and wrong sizes. */
#include <stdio.h>

#include "support/fixtures/data/blooms.h"
#include "support/deployments/relay.h"
#include "support/models/scripts.h"

#define CONFIG "belay::bloom::{seen}"
#define LAYER(i) CONFIG "::l" #i "::0"

static belay_bloom_options_t scaling(int64_t capacity, double rate) {
  belay_bloom_options_t options = bloom_options(capacity, rate);
  options.kind = BELAY_BLOOM_SCALING;
  return options;
}

static void scaling_new(filter_t *filter, env_t *env, int64_t capacity, double rate) {
  const belay_bloom_options_t options = scaling(capacity, rate);
  filter_of(filter, env, env->client, &options);
}

static size_t count(const bool *answers, size_t n, bool what) {
  size_t counted = 0;
  for (size_t i = 0; i < n; i++)
    counted += answers[i] == what;
  return counted;
}

static bool answers[FILTER_ITEMS_MAX];

BLOOM_TEST(creation_is_idempotent, scaling(10, 0.001)) {
  filter_t again;
  filter_many(filter, true, filter_items(0, 100), 100, answers);
  belay_bloom_info_t info = filter_info(filter);
  const belay_bloom_options_t options = scaling(10, 0.001);
  filter_of(&again, env, env_connect(env, server_url(env->server), NULL), &options);
  filter_op_t op = {0};
  expect_filter_op(&op, begin_filter_open(&again, &op), 0);
  assert_int_equal(filter_info(&again).generation, info.generation);
  filter_many(&again, true, filter_items(0, 100), 100, answers);
  assert_int_equal(count(answers, 100, true), 0);
  server_restart_keeping(env->server);
  filter_many(&again, false, filter_items(0, 100), 100, answers);
  assert_int_equal(count(answers, 100, false), 0);
}

BLOOM_TEST(other_filter_is_a_mismatch, scaling(10, 0.01)) {
  filter_t other;
  filter_many(filter, true, filter_items(0, 50), 50, answers);
  for (int i = 0; i < 4; i++) {
    belay_bloom_options_t options = scaling(i == 0 ? 11 : 10, i == 1 ? 0.02 : 0.01);
    options.seed = i == 2;
    if (i == 3)
      options.kind = BELAY_BLOOM_PLAIN;
    filter_of(&other, env, env->client, &options);
    expect_add_fails(&other, "x", BELAY_EMISMATCH);
    expect_exists_fails(&other, "x", BELAY_EMISMATCH);
    assert_error(begin_filter_close(&other), 0);
    env_until(env, other.closed == 1);
  }
  assert_true(filter_add(filter, "x"));
}

BLOOM_TEST(damaged_state_is_an_error, scaling(10, 0.01)) {
  static const char *const states[] = {"x",
                                       "0000000000000001",
                                       "000000000000000107000000960000000000",
                                       "000000000000000107000000960000000000x0",
                                       "00000000000000019900000096000000000010",
                                       "00000000000000110700000096000000000010"};
  assert_true(filter_add(filter, "x"));
  for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
    server_do(env->server, "EVAL",
              "redis.call('SET', KEYS[1], string.sub(redis.call('GET', KEYS[1]), 1, 96) .. "
              "ARGV[1], 'KEEPTTL')",
              "1", CONFIG, states[i], NULL);
    assert_string_equal(expect_add_fails(filter, "x", BELAY_EMISMATCH),
                        CONFIG ": its state is damaged");
    expect_exists_fails(filter, "x", BELAY_EMISMATCH);
  }
  filter_clear(filter);
  assert_true(filter_add(filter, "x"));
}

TEST(lost_layer_is_an_error) {
  static const char *const keys[] = {LAYER(0), LAYER(1), LAYER(3)};
  env_t *env = env_open(NULL);
  filter_t filter;
  scaling_new(&filter, env, 10, 0.01);
  for (int i = 0; i < 3; i++) {
    filter_many(&filter, true, filter_items(0, 120), 120, answers);
    server_do(env->server, "DEL", keys[i], NULL);
    for (int j = 0; j < 2; j++) {
      expect_add_fails(&filter, "x", BELAY_ELOST);
      expect_exists_fails(&filter, "x", BELAY_ELOST);
      filter_op_t op = {0};
      expect_filter_op(&op, begin_filter_info(&filter, &op), BELAY_ELOST);
    }
    assert_int_equal(server_integer(env->server, "EXISTS", keys[i], NULL), 0);
    filter_clear(&filter);
    assert_false(filter_exists(&filter, "x"));
    assert_int_equal(server_keys(env->server), 1);
  }
  filter_many(&filter, true, filter_items(0, 120), 120, answers);
  server_do(env->server, "FLUSHALL", NULL);
  expect_add_fails(&filter, "x", BELAY_ELOST);
  assert_true(filter_add(&filter, "x"));
  env_close(env);
}

/* The layers still exist: a new configuration does not create new layers over them. */
BLOOM_TEST(lost_configuration_keeps_layers, scaling(10, 0.01)) {
  filter_t other;
  scaling_new(&other, env, 10, 0.01);
  for (int gone = 0; gone < 2; gone++) {
    filter_many(filter, true, filter_items(0, 120), 120, answers);
    server_do(env->server, "DEL", CONFIG, NULL);
    for (int i = 0; i < 3; i++) {
      expect_exists_fails(&other, "x", BELAY_ELOST);
      expect_add_fails(&other, "x", BELAY_ELOST);
      expect_exists_fails(filter, "x", BELAY_ELOST);
    }
    if (gone == 1)
      server_do(env->server, "DEL", CONFIG, NULL);
    filter_clear(filter); /* of layers that no configuration tells of, or of none at all */
    assert_int_equal(server_keys(env->server), 0);
  }
  assert_false(filter_exists(filter, "x"));
  assert_true(filter_add(filter, "x"));
  assert_false(filter_add(&other, "x"));
  expect_ttls(env->server);
}

BLOOM_TEST(foreign_key_is_kept, scaling(2, 0.01)) {
  server_do(env->server, "RPUSH", LAYER(1), "1", NULL);
  assert_true(filter_add(filter, "a"));
  assert_non_null(strstr(expect_add_fails(filter, "x", BELAY_EWRONGTYPE), CONFIG));
  assert_int_equal(server_integer(env->server, "LLEN", LAYER(1), NULL), 1);
  server_do(env->server, "DEL", LAYER(1), NULL);
  assert_true(filter_add(filter, "x"));
}

/* The stored configuration counts, also where this program would compute another one. */
BLOOM_TEST(largest_number_of_layers, scaling(10, 0.5)) {
  assert_true(filter_add(filter, "x"));
  server_do(env->server, "EVAL",
            "local c = string.sub(redis.call('GET', KEYS[1]), 1, 96)\n"
            "local head = redis.call('GETRANGE', KEYS[1] .. '::l0::0', 0, 7)\n"
            "local s = string.sub(redis.call('GET', KEYS[1]), 113, 134)\n"
            "for i = 1, 31 do\n"
            "  s = s .. '2000065536000000000002'\n"
            "  redis.call('SET', KEYS[1] .. '::l' .. i .. '::0', head, 'PX', 100000)\n"
            "end\n"
            "redis.call('SET', KEYS[1], c .. '0000000000000001' .. s, 'KEEPTTL')",
            "1", CONFIG, NULL);
  assert_true(filter_exists(filter, "x"));
  assert_true(filter_add(filter, "y"));
  belay_bloom_info_t info = filter_info(filter);
  assert_int_equal(info.layers, 32);
  assert_int_equal(info.hashes, 20);
  assert_int_equal(info.items, 10 + 30 * 2 + 2);
  assert_string_equal(expect_add_fails(filter, "z", BELAY_EOVERFLOW),
                      CONFIG ": it is full, and cannot grow any more");
  assert_false(filter_add(filter, "y"));
  assert_false(filter_exists(filter, "z"));
  filter_clear(filter);
  assert_int_equal(server_keys(env->server), 0);
}

TEST(largest_first_layers) {
  env_t *env = env_open(NULL);
  belay_bloom_t *out;
  belay_bloom_options_t options = scaling(10000000, 0.01);
  assert_error(belay_bloom_new(env->client, &options, &out), BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "capacity: a layer takes more than 33554432 bits");
  filter_t filter;
  scaling_new(&filter, env, 3000000, 0.01);
  server_do(env->server, "EVAL", "return 1", "0", NULL);
  assert_true(filter_add(&filter, "x"));
  /* as if it were full: the next one cannot be twice as large, and is as large as can be */
  server_do(env->server, "SETRANGE", CONFIG, "96", "0000000003000000", NULL);
  assert_true(filter_add(&filter, "y"));
  belay_bloom_info_t info = filter_info(&filter);
  assert_int_equal(info.layers, 2);
  assert_between(info.capacity, 5000000, 6000000);
  assert_true(filter_exists(&filter, "x") && filter_exists(&filter, "y"));
  env_close(env);
}

/* Growing takes several requests. A client without room for the second one must not report that
 * the first was not executed. */
TEST(batch_stops_at_a_full_filter) {
  enum { OTHERS = 1000 };
  static filter_op_t others[OTHERS];
  belay_client_options_t client = client_options();
  client.max_bytes = 65536;
  env_t *env = env_open(&client);
  filter_t filter, plain;
  belay_bloom_options_t options = bloom_options(1000, 0.01);
  options.name = belay_string("other");
  filter_of(&plain, env, env->client, &options);
  scaling_new(&filter, env, 1, 0.01);
  assert_true(filter_add(&plain, "x"));
  assert_false(filter_exists(&filter, "x"));
  server_pause(env->server);
  filter_op_t op = {0};
  unsigned n = 0;
  assert_error(begin_filter_many(&filter, &op, true, filter_items(0, 20), 20), 0);
  while (n < OTHERS && begin_filter_exists(&plain, &others[n], "x", 1) == 0)
    n++;
  assert_true(n < OTHERS);
  server_resume(env->server);
  assert_error(end_of_filter_op(&op), BELAY_EUNKNOWN);
  for (unsigned i = 0; i < n; i++)
    assert_error(end_of_filter_op(&others[i]), 0);
  assert_int_equal(filter_info(&filter).items, 1);
  env_close(env);
}

TEST(add_is_not_resent) {
  belay_client_options_t client = relay_client_options();
  env_t *env = env_open_relayed(&client);
  filter_t filter;
  scaling_new(&filter, env, 10, 0.01);
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
