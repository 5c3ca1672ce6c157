/* Counters whose operations have their records in one hash with a bound. */
#include <stdio.h>

#include "support/fixtures/data/counters.h"
#include "support/models/scripts.h"

#define HITS "belay::counter::{hits}"
#define LARGE (INT64_C(1) << 53)

#define OPS HITS "::ops"

/* The record says that the operation need not be known any more. */
static void age(env_t *env, const char *id, const char *rest) {
  char field[32], text[64];
  snprintf(field, sizeof field, "i%s", id);
  snprintf(text, sizeof text, "%s", rest);
  server_do(env->server, "HSET", OPS, field, text, NULL);
}

COUNTER_TEST_OF(max_ops_bounds_records, o.max_ops = 3) {
  static const char id[] = {'o', '\0', '}', ':', ':', '{', (char)0xff};
  count_t count = {0};
  for (int i = 0; i < 2; i++) {
    expect_once(counters, "hits", 5, "one", 5);
    expect_once(counters, "hits", LARGE, "two", LARGE + 5);
  }
  expect_once(counters, "hits", 5, "one", 5); /* as it was the first time */
  expect_once(counters, "other", 7, "one", 7);
  expect_once_status(counters, "hits", 6, "one", BELAY_EMISMATCH);
  expect_status(
      &count,
      BEGIN(counters, &count, add_once, KEY("hits"), 1, belay_bytes(id, sizeof id), on_result), 0);
  assert_int_equal(server_keys(env->server), 4); /* two counters and their records */
  assert_between(server_integer(env->server, "PTTL", OPS, NULL), 3500000, 3600000);
  for (int i = 0; i < 2; i++) { /* it is full */
    expect_once_status(counters, "hits", 1, "four", BELAY_EBUSY);
    expect_got(counters, "hits", true, LARGE + 6);
    expect_once(counters, "hits", LARGE, "two", LARGE + 5);
  }
  age(env, "two", "1 1 9007199254740992 9007199254740997"); /* not the oldest one */
  expect_once_status(counters, "hits", 1, "four", BELAY_EBUSY);
  age(env, "one", "0 1 5 5");
  expect_once(counters, "hits", 1, "four", LARGE + 7); /* for which both make room */
  assert_int_equal(server_integer(env->server, "HLEN", OPS, NULL), 3 + 2 * 2);
  expect_once(counters, "hits", 1, "one", LARGE + 8); /* it is another one by now */
  expect_once(counters, "hits", 1, "one", LARGE + 8);
  expect_once_status(counters, "hits", 1, "five", BELAY_EBUSY);
}

/* An id that comes again when it need not be known any more counts again, and then its first record
 * is not mistaken for the second one. */
COUNTER_TEST_OF(expired_operation_id_counts_again, o.max_ops = 100) {
  expect_once(counters, "hits", 1, "first", 1);
  expect_once(counters, "hits", 1, "again", 2);
  age(env, "again", "1 1 1 2"); /* behind one that must be known */
  expect_once(counters, "hits", 1, "again", 3);
  age(env, "first", "0 1 1 1");
  for (int i = 0; i < 60; i++) {
    char id[16];
    snprintf(id, sizeof id, "op%d", i);
    expect_once(counters, "hits", 1, id, 4 + i);
    expect_once(counters, "hits", 1, "again", 3);
  }
  assert_int_equal(server_integer(env->server, "HLEN", OPS, NULL), 3 + 2 * 61);
}

/* A thousand adds leave two keys; a request that may be sent again for longer is known for longer.
 * */
COUNTER_TEST_OF(operations_leave_one_key, o.max_ops = 1000; o.op_ttl_ms = 1000) {
  count_t count = {.request.timeout_ms = 300000};
  expect_status(&count, BEGIN(counters, &count, add_once, KEY("hits"), 1, KEY("op"), on_result), 0);
  for (int i = 1; i < 1000; i++) {
    char id[16];
    snprintf(id, sizeof id, "op%d", i);
    expect_once_status(counters, "hits", 1, id, 0);
  }
  assert_int_equal(server_keys(env->server), 2);
  assert_int_equal(number_at(env->server, HITS), 1000);
  assert_between(server_integer(env->server, "PTTL", OPS, NULL), 250000, 303002);
}

COUNTER_TEST_OF(damaged_records, o.max_ops = 3) {
  static const char *const fields[][2] = {{"color", "green"},
                                          {"next", "x"},
                                          {"next", "-1"},
                                          {"first", "5"},
                                          {"until", "inf"},
                                          {"next", "1e300"},
                                          {"ibad", "0 1 nan 5"},
                                          {"ibad", ""},
                                          {"first", "0.5"},
                                          {"until", "-1"},
                                          {"next", "1000000000000000000000"}};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    server_do(env->server, "FLUSHALL", NULL);
    if (i > 0)
      expect_once(counters, "hits", 5, "good", 5);
    server_do(env->server, "HSET", OPS, fields[i][0], fields[i][1], NULL);
    expect_once_status(counters, "hits", 5, "bad", BELAY_EMISMATCH);
    assert_int_equal(number_at(env->server, HITS), i > 0 ? 5 : 0);
  }
  server_do(env->server, "FLUSHALL", NULL);
  server_do(env->server, "SET", OPS, "x", NULL);
  expect_once_status(counters, "hits", 5, "bad", BELAY_EWRONGTYPE);
  assert_int_equal(number_at(env->server, HITS), 0);
  assert_int_equal(client_stats(env).drops, 0);
}

/* A sum that finds no room waits for it. */
ENV_TEST(local_sums_with_max_ops) {
  belay_counter_options_t options = counter_options_every(5);
  options.max_ops = 1;
  counters_t counters;
  counters_new(&counters, env, &options);
  assert_error(add_local(&counters, "hits", 2), 0);
  expect_idle(&counters);
  assert_error(add_local(&counters, "hits", 3), 0);
  env_until(env, stats_of(&counters).resends > 0);
  assert_int_equal(number_at(env->server, HITS), 2);
  server_do(env->server, "DEL", OPS, NULL);
  expect_idle(&counters);
  assert_int_equal(number_at(env->server, HITS), 5);
  assert_int_equal(stats_of(&counters).lost, 0);
}
