/* Locally added sums: when and how they are sent. */
#include <stdio.h>

#include "support/fixtures/data/counters.h"

#define HITS "belay::counter::{hits}"

ENV_TEST(adds_are_sent_as_one_sum) {
  enum { KEYS = 50, ADDS = 1000 };
  const belay_counter_options_t options = counter_options_every(50);
  counters_t counters;
  counters_new(&counters, env, &options);
  for (int i = 0; i < KEYS * ADDS; i++) {
    char key[8];
    snprintf(key, sizeof key, "k%d", i % KEYS);
    assert_error(add_local(&counters, key, i % 3 - 1), 0);
  }
  assert_int_equal(stats_of(&counters).keys, KEYS);
  assert_int_equal(stats_of(&counters).adds, KEYS * ADDS);
  assert_int_equal(client_stats(env).calls, 0);
  assert_true(uv_loop_alive(&env->loop));
  expect_idle(&counters);
  int64_t sum = 0;
  for (int i = 0; i < KEYS; i++) {
    char key[40];
    snprintf(key, sizeof key, "belay::counter::{k%d}", i);
    sum += number_at(env->server, key);
  }
  assert_int_equal(sum, 49999 / 3 - 16667); /* -1, 0, 1, -1, 0, ... */
  belay_counter_stats_t stats = stats_of(&counters);
  assert_true(stats.sums <= KEYS && stats.sums == stats.counted && stats.lost == 0);
  assert_int_equal(stats.resends, 0);
  assert_int_equal(client_stats(env).calls, stats.sums);
  assert_false(uv_loop_alive(&env->loop));
}

ENV_TEST(flush_by_time_count_and_request) {
  belay_counter_options_t options = counter_options_every(60000);
  options.batch_max = 10;
  counters_t counters, quick;
  counters_new(&counters, env, &options);
  for (int i = 0; i < 9; i++)
    assert_error(add_local(&counters, "hits", 1), 0);
  env_run_for(env, 30);
  assert_int_equal(number_at(env->server, HITS), 0);
  assert_error(add_local(&counters, "hits", 1), 0); /* so many */
  expect_idle(&counters);
  assert_int_equal(number_at(env->server, HITS), 10);
  assert_error(add_local(&counters, "hits", 1), 0);
  assert_error(belay_counter_flush(counters.counter), 0); /* or when it is asked for */
  expect_idle(&counters);
  assert_int_equal(number_at(env->server, HITS), 11);
  assert_error(belay_counter_flush(counters.counter), 0);
  options = counter_options_every(40);
  counters_new(&quick, env, &options);
  int64_t begun = clock_now();
  assert_error(add_local(&quick, "hits", 1), 0);
  expect_idle(&quick);
  assert_true(clock_now() - begun >= 39 * MS); /* or after batch_ms */
  assert_int_equal(number_at(env->server, HITS), 12);
  /* adds during a flush wait for the next flush */
  server_pause(env->server);
  for (int i = 0; i < 5; i++) {
    assert_error(add_local(&quick, "hits", 1), 0);
    env_run_for(env, 50);
  }
  assert_int_equal(stats_of(&quick).sums, 2);
  server_resume(env->server);
  expect_idle(&quick);
  assert_int_equal(number_at(env->server, HITS), 17);
  assert_int_equal(stats_of(&quick).sums, 3);
}

/* So many are sent, though what was there before is not answered yet. */
ENV_TEST(batch_max_with_pending_sum) {
  belay_counter_options_t options = counter_options_every(60000);
  options.batch_max = 3;
  counters_t counters;
  counters_new(&counters, env, &options);
  expect_added(&counters, "hits", 1, 1);
  server_pause(env->server);
  for (int i = 0; i < 3; i++)
    assert_error(add_local(&counters, "hits", 1), 0);
  env_run_for(env, 20);
  for (int i = 0; i < 3; i++)
    assert_error(add_local(&counters, "hits", 1), 0); /* these wait for those before */
  env_run_for(env, 20);
  assert_int_equal(stats_of(&counters).sums, 1);
  assert_error(add_local(&counters, "other", 1), 0);
  env_run_for(env, 20);
  assert_int_equal(stats_of(&counters).sums, 2);
  server_resume(env->server);
  expect_idle(&counters);
  assert_int_equal(number_at(env->server, HITS), 7);
}

/* So many that the loop would stand still, and answers come too late, if all were sent at once. */
ENV_TEST(number_of_open_sums_is_bounded) {
  enum { KEYS = 5000 };
  belay_counter_options_t options = counter_options_every(60000);
  counters_t counters;
  counters_new(&counters, env, &options);
  uint64_t most = 0;
  for (int i = 0; i < KEYS; i++) {
    char key[8];
    snprintf(key, sizeof key, "k%d", i);
    assert_error(add_local(&counters, key, 1), 0);
  }
  assert_error(belay_counter_flush(counters.counter), 0);
  while (stats_of(&counters).keys > 0) {
    env_turn(env);
    uint64_t pending = client_stats(env).pending;
    most = pending > most ? pending : most;
  }
  assert_between((int64_t)most, 100, 1000);
  assert_int_equal(stats_of(&counters).counted, KEYS);
  assert_int_equal(stats_of(&counters).resends, 0);
  assert_int_equal(client_stats(env).calls, KEYS);
  expect_got(&counters, "k0", true, 1);
  expect_got(&counters, "k4999", true, 1);
}

COUNTER_TEST_OF(zero_sum_is_not_sent, o.batch_ms = 1) {
  assert_error(add_local(counters, "hits", 5), 0);
  assert_error(add_local(counters, "hits", -5), 0);
  expect_idle(counters);
  assert_int_equal(client_stats(env).calls, 0);
}

COUNTER_TEST_OF(limits_of_local_adds, o.batch_ms = 60000; o.max_keys = 3) {
  assert_error(add_local(counters, "a", INT64_MAX), 0);
  assert_error(add_local(counters, "a", 1), BELAY_EOVERFLOW);
  assert_error(add_local(counters, "a", -1), 0);
  assert_error(add_local(counters, "a", 1), 0);
  assert_error(add_local(counters, "b", INT64_MIN), 0);
  assert_error(add_local(counters, "b", -1), BELAY_EOVERFLOW);
  assert_error(add_local(counters, "c", 1), 0);
  assert_error(add_local(counters, "d", 1), BELAY_EBUSY);
  assert_error(add_local(counters, "c", 1), 0);
  assert_error(belay_counter_flush(counters->counter), 0);
  expect_idle(counters);
  assert_error(add_local(counters, "d", 1), 0);
  assert_error(belay_counter_flush(counters->counter), 0);
  expect_idle(counters);
  expect_got(counters, "a", true, INT64_MAX);
  expect_got(counters, "b", true, INT64_MIN);
  expect_got(counters, "c", true, 2);
  expect_got(counters, "d", true, 1);
}

ENV_TEST(local_adds_with_shards_and_ttl) {
  belay_counter_options_t options = counter_options_every(1);
  options.shards = 4;
  options.ttl_ms = 100000;
  counters_t counters;
  counters_new(&counters, env, &options);
  for (int i = 0; i < 40; i++) {
    assert_error(add_local(&counters, "hits", i), 0);
    expect_idle(&counters);
  }
  expect_got(&counters, "hits", true, 40 * 39 / 2);
  expect_no_key_for_ever(env->server);
  int shards = 0;
  for (int i = 0; i < 4; i++) {
    char key[40];
    snprintf(key, sizeof key, "belay::counter::{hits::%d}", i);
    shards += number_at(env->server, key) > 0;
  }
  assert_true(shards > 1);
}

static double nanoseconds(counters_t *counters, unsigned keys, int adds) {
  static char names[1024][16];
  for (unsigned i = 0; i < keys; i++)
    snprintf(names[i], sizeof names[i], "k%03u", i);
  int64_t begun = clock_now();
  for (int i = 0; i < adds; i++)
    (void)belay_counter_add_local(counters->counter, belay_bytes(names[(unsigned)i % keys], 4), 1);
  return (double)(clock_now() - begun) / adds;
}

ENV_TEST(local_adds_are_fast) {
  const belay_counter_options_t options = counter_options_every(60000);
  counters_t counters;
  counters_new(&counters, env, &options);
  const int adds = slow() > 1 ? 10000 : 1000000;
  double one = nanoseconds(&counters, 1, adds), many = nanoseconds(&counters, 1000, adds);
  print_message("%.1f ns for one key, %.1f ns for one of 1,000\n", one, many);
  assert_int_equal(stats_of(&counters).adds, 2 * adds);
  if (slow() == 1)
    assert_true(one < 1000 && many < 5000); /* far from a round trip, on any machine */
  assert_error(belay_counter_flush(counters.counter), 0);
  expect_idle(&counters);
  expect_got(&counters, "k000", true, adds + adds / 1000);
}
