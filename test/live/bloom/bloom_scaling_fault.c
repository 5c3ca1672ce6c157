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

static void scaling_new(sieve_t *sieve, env_t *env, int64_t capacity, double rate) {
  const belay_bloom_options_t options = scaling(capacity, rate);
  sieve_of(sieve, env, env->client, &options);
}

static size_t count(const bool *answers, size_t n, bool what) {
  size_t counted = 0;
  for (size_t i = 0; i < n; i++)
    counted += answers[i] == what;
  return counted;
}

static bool answers[SIFT_MAX];

BLOOM_TEST(creation_is_idempotent, scaling(10, 0.001)) {
  sieve_t again;
  sift_many(sieve, true, sift_items(0, 100), 100, answers);
  belay_bloom_info_t info = sift_info(sieve);
  const belay_bloom_options_t options = scaling(10, 0.001);
  sieve_of(&again, env, env_connect(env, server_url(env->server), NULL), &options);
  sift_t sift = {0};
  expect_sift(&sift, begin_open_sieve(&again, &sift), 0);
  assert_int_equal(sift_info(&again).generation, info.generation);
  sift_many(&again, true, sift_items(0, 100), 100, answers);
  assert_int_equal(count(answers, 100, true), 0);
  server_restart_keeping(env->server);
  sift_many(&again, false, sift_items(0, 100), 100, answers);
  assert_int_equal(count(answers, 100, false), 0);
}

BLOOM_TEST(other_filter_is_a_mismatch, scaling(10, 0.01)) {
  sieve_t other;
  sift_many(sieve, true, sift_items(0, 50), 50, answers);
  for (int i = 0; i < 4; i++) {
    belay_bloom_options_t options = scaling(i == 0 ? 11 : 10, i == 1 ? 0.02 : 0.01);
    options.seed = i == 2;
    if (i == 3)
      options.kind = BELAY_BLOOM_PLAIN;
    sieve_of(&other, env, env->client, &options);
    expect_add_fails(&other, "x", BELAY_EMISMATCH);
    expect_exists_fails(&other, "x", BELAY_EMISMATCH);
    assert_error(begin_close_sieve(&other), 0);
    env_until(env, other.closed == 1);
  }
  assert_true(sift_add(sieve, "x"));
}

BLOOM_TEST(damaged_state_is_an_error, scaling(10, 0.01)) {
  static const char *const states[] = {"x",
                                       "0000000000000001",
                                       "000000000000000107000000960000000000",
                                       "000000000000000107000000960000000000x0",
                                       "00000000000000019900000096000000000010",
                                       "00000000000000110700000096000000000010"};
  assert_true(sift_add(sieve, "x"));
  for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
    server_do(env->server, "EVAL",
              "redis.call('SET', KEYS[1], string.sub(redis.call('GET', KEYS[1]), 1, 96) .. "
              "ARGV[1], 'KEEPTTL')",
              "1", CONFIG, states[i], NULL);
    assert_string_equal(expect_add_fails(sieve, "x", BELAY_EMISMATCH),
                        CONFIG ": its state is damaged");
    expect_exists_fails(sieve, "x", BELAY_EMISMATCH);
  }
  sift_clear(sieve);
  assert_true(sift_add(sieve, "x"));
}

TEST(lost_layer_is_an_error) {
  static const char *const keys[] = {LAYER(0), LAYER(1), LAYER(3)};
  env_t *env = env_open(NULL);
  sieve_t sieve;
  scaling_new(&sieve, env, 10, 0.01);
  for (int i = 0; i < 3; i++) {
    sift_many(&sieve, true, sift_items(0, 120), 120, answers);
    server_do(env->server, "DEL", keys[i], NULL);
    for (int j = 0; j < 2; j++) {
      expect_add_fails(&sieve, "x", BELAY_ELOST);
      expect_exists_fails(&sieve, "x", BELAY_ELOST);
      sift_t sift = {0};
      expect_sift(&sift, begin_sift_info(&sieve, &sift), BELAY_ELOST);
    }
    assert_int_equal(server_integer(env->server, "EXISTS", keys[i], NULL), 0);
    sift_clear(&sieve);
    assert_false(sift_exists(&sieve, "x"));
    assert_int_equal(server_keys(env->server), 1);
  }
  sift_many(&sieve, true, sift_items(0, 120), 120, answers);
  server_do(env->server, "FLUSHALL", NULL);
  expect_add_fails(&sieve, "x", BELAY_ELOST);
  assert_true(sift_add(&sieve, "x"));
  env_close(env);
}

/* The layers still exist: a new configuration does not create new layers over them. */
BLOOM_TEST(lost_configuration_keeps_layers, scaling(10, 0.01)) {
  sieve_t other;
  scaling_new(&other, env, 10, 0.01);
  for (int gone = 0; gone < 2; gone++) {
    sift_many(sieve, true, sift_items(0, 120), 120, answers);
    server_do(env->server, "DEL", CONFIG, NULL);
    for (int i = 0; i < 3; i++) {
      expect_exists_fails(&other, "x", BELAY_ELOST);
      expect_add_fails(&other, "x", BELAY_ELOST);
      expect_exists_fails(sieve, "x", BELAY_ELOST);
    }
    if (gone == 1)
      server_do(env->server, "DEL", CONFIG, NULL);
    sift_clear(sieve); /* of layers that no configuration tells of, or of none at all */
    assert_int_equal(server_keys(env->server), 0);
  }
  assert_false(sift_exists(sieve, "x"));
  assert_true(sift_add(sieve, "x"));
  assert_false(sift_add(&other, "x"));
  expect_ttls(env->server);
}

BLOOM_TEST(foreign_key_is_kept, scaling(2, 0.01)) {
  server_do(env->server, "RPUSH", LAYER(1), "1", NULL);
  assert_true(sift_add(sieve, "a"));
  assert_non_null(strstr(expect_add_fails(sieve, "x", BELAY_EWRONGTYPE), CONFIG));
  assert_int_equal(server_integer(env->server, "LLEN", LAYER(1), NULL), 1);
  server_do(env->server, "DEL", LAYER(1), NULL);
  assert_true(sift_add(sieve, "x"));
}

/* The stored configuration counts, also where this program would compute another one. */
BLOOM_TEST(largest_number_of_layers, scaling(10, 0.5)) {
  assert_true(sift_add(sieve, "x"));
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
  assert_true(sift_exists(sieve, "x"));
  assert_true(sift_add(sieve, "y"));
  belay_bloom_info_t info = sift_info(sieve);
  assert_int_equal(info.layers, 32);
  assert_int_equal(info.hashes, 20);
  assert_int_equal(info.items, 10 + 30 * 2 + 2);
  assert_string_equal(expect_add_fails(sieve, "z", BELAY_EOVERFLOW),
                      CONFIG ": it is full, and cannot grow any more");
  assert_false(sift_add(sieve, "y"));
  assert_false(sift_exists(sieve, "z"));
  sift_clear(sieve);
  assert_int_equal(server_keys(env->server), 0);
}

TEST(largest_first_layers) {
  env_t *env = env_open(NULL);
  belay_bloom_t *out;
  belay_bloom_options_t options = scaling(10000000, 0.01);
  assert_error(belay_bloom_new(env->client, &options, &out), BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "capacity: a layer takes more than 33554432 bits");
  sieve_t sieve;
  scaling_new(&sieve, env, 3000000, 0.01);
  server_do(env->server, "EVAL", "return 1", "0", NULL);
  assert_true(sift_add(&sieve, "x"));
  /* as if it were full: the next one cannot be twice as large, and is as large as can be */
  server_do(env->server, "SETRANGE", CONFIG, "96", "0000000003000000", NULL);
  assert_true(sift_add(&sieve, "y"));
  belay_bloom_info_t info = sift_info(&sieve);
  assert_int_equal(info.layers, 2);
  assert_between(info.capacity, 5000000, 6000000);
  assert_true(sift_exists(&sieve, "x") && sift_exists(&sieve, "y"));
  env_close(env);
}

/* Growing takes several requests. A client without room for the second one must not report that
 * the first was not executed. */
TEST(batch_stops_at_a_full_filter) {
  enum { OTHERS = 1000 };
  static sift_t others[OTHERS];
  belay_client_options_t client = client_options();
  client.max_bytes = 65536;
  env_t *env = env_open(&client);
  sieve_t sieve, plain;
  belay_bloom_options_t options = bloom_options(1000, 0.01);
  options.name = belay_string("other");
  sieve_of(&plain, env, env->client, &options);
  scaling_new(&sieve, env, 1, 0.01);
  assert_true(sift_add(&plain, "x"));
  assert_false(sift_exists(&sieve, "x"));
  server_pause(env->server);
  sift_t sift = {0};
  unsigned n = 0;
  assert_error(begin_sift_many(&sieve, &sift, true, sift_items(0, 20), 20), 0);
  while (n < OTHERS && begin_sift_exists(&plain, &others[n], "x", 1) == 0)
    n++;
  assert_true(n < OTHERS);
  server_resume(env->server);
  assert_error(end_of_sift(&sift), BELAY_EUNKNOWN);
  for (unsigned i = 0; i < n; i++)
    assert_error(end_of_sift(&others[i]), 0);
  assert_int_equal(sift_info(&sieve).items, 1);
  env_close(env);
}

TEST(add_is_not_resent) {
  belay_client_options_t client = relay_client_options();
  env_t *env = env_open_relayed(&client);
  sieve_t sieve;
  scaling_new(&sieve, env, 10, 0.01);
  assert_true(sift_add(&sieve, "x"));
  sift_t sift = {0};
  int64_t calls = server_calls(env->server, "evalsha");
  relay_delay(env->relay, RELAY_LONG);
  assert_error(begin_sift_add(&sieve, &sift, "y", 1), 0);
  while (server_calls(env->server, "evalsha") == calls)
    uv_run(&env->loop, UV_RUN_NOWAIT);
  relay_cut(env->relay);
  relay_delay(env->relay, 0);
  assert_error(end_of_sift(&sift), BELAY_EUNKNOWN);
  assert_true(sift_exists(&sieve, "y")); /* it was executed */
  server_pause(env->server);
  assert_error(begin_sift_exists(&sieve, &sift, "x", 1), 0);
  env_run_for(env, 30);
  relay_cut(env->relay);
  server_resume(env->server);
  assert_error(end_of_sift(&sift), 0); /* asked again */
  assert_true(sift.answer);
  env_close(env);
}
