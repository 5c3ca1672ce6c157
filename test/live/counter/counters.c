/* Counters: values and lifetimes. */
#include <stdio.h>

#include "support/fixtures/data/counters.h"
#include "support/models/scripts.h"

#define HITS "belay::counter::{hits}"
#define MOST INT64_MAX
#define LEAST INT64_MIN
#define LARGE (INT64_C(1) << 53)

COUNTER_TEST(add_get_set_delete) {
  expect_got(counters, "hits", false, 0);
  expect_added(counters, "hits", 5, 5);
  expect_added(counters, "hits", -7, -2);
  expect_added(counters, "hits", 0, -2);
  expect_got(counters, "hits", true, -2);
  assert_string_equal(server_string(env->server, "GET", HITS, NULL), "-2");
  assert_int_equal(server_integer(env->server, "PTTL", HITS, NULL), -1);
  expect_set(counters, "hits", 100, true, -2);
  expect_set(counters, "hits", 0, true, 100); /* read and reset */
  expect_deleted(counters, "hits", true);
  expect_deleted(counters, "hits", false);
  expect_set(counters, "hits", LEAST, false, 0);
  expect_set(counters, "hits", MOST, true, LEAST);
  expect_deleted(counters, "hits", true);
  assert_int_equal(server_keys(env->server), 0);
}

static void expect_overflow(counters_t *counters, int64_t delta, int64_t value) {
  expect_add_status(counters, "hits", delta, BELAY_EOVERFLOW);
  expect_once_status(counters, "hits", delta, "op", BELAY_EOVERFLOW);
  expect_got(counters, "hits", true, value);
}

/* With a ttl and without: by a script, and by INCRBY. */
ENV_TEST(full_range) {
  static const int64_t near[] = {LARGE,     LARGE - 1,  LARGE + 1, -LARGE,    -LARGE - 1,
                                 MOST,      MOST - 1,   LEAST,     LEAST + 1, 1000000000,
                                 999999999, -999999999, -1,        1,         INT64_C(99999999999)};
  for (int lives = 0; lives < 2; lives++) {
    belay_counter_options_t options = counter_options();
    options.ttl_ms = lives ? 100000 : 0;
    counters_t counters;
    counters_new(&counters, env, &options);
    for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
      expect_added(&counters, "hits", near[i], near[i]);
      expect_got(&counters, "hits", true, near[i]);
      if (near[i] > LEAST) {
        expect_added(&counters, "hits", -near[i], 0);
        expect_added(&counters, "hits", near[i], near[i]);
      }
      if (near[i] < MOST)
        expect_added(&counters, "hits", 1, near[i] + 1);
      else
        expect_overflow(&counters, 1, MOST);
      expect_set(&counters, "hits", near[i], true, near[i] < MOST ? near[i] + 1 : MOST);
      if (near[i] >= 0)
        expect_overflow(&counters, MOST, near[i]);
      if (near[i] < 0)
        expect_overflow(&counters, LEAST, near[i]);
      expect_deleted(&counters, "hits", true);
    }
    assert_int_equal(server_keys(env->server), 0); /* an overflow leaves no record */
  }
}

COUNTER_TEST(bounds) {
  expect_bounded(counters, "hits", -1, 0, 10, false, 0);
  assert_int_equal(server_keys(env->server), 0);
  expect_bounded(counters, "hits", 10, 0, 10, true, 10);
  expect_bounded(counters, "hits", 1, 0, 10, false, 10);
  expect_bounded(counters, "hits", -10, 0, 10, true, 0);
  expect_bounded(counters, "hits", -1, 0, 10, false, 0);
  expect_bounded(counters, "hits", 0, 0, 10, true, 0);
  expect_bounded(counters, "hits", 0, 1, 10, false, 0);
  expect_set(counters, "hits", 100, true, 0);
  expect_bounded(counters, "hits", -1, 0, 10, false, 100); /* out of bounds, and stays there */
  expect_bounded(counters, "hits", -95, 0, 10, true, 5);
  expect_set(counters, "hits", MOST, true, 5);
  expect_bounded(counters, "hits", 1, LEAST, MOST, false, MOST);
  expect_bounded(counters, "hits", LEAST, LEAST, MOST, true, -1);
  expect_bounded(counters, "hits", LEAST, LEAST, MOST, false, -1);
  expect_bounded(counters, "hits", LEAST + 1, LEAST, LEAST, true, LEAST);
  expect_bounded(counters, "hits", MOST, MOST, MOST, false, LEAST);
  expect_bounded(counters, "hits", MOST, -1, -1, true, -1);
  expect_bounded(counters, "hits", LARGE, LARGE - 2, LARGE - 2, false, -1);
  expect_bounded(counters, "hits", LARGE, LARGE - 1, LARGE - 1, true, LARGE - 1);
  expect_bounded(counters, "hits", 2, LEAST, LARGE, false, LARGE - 1);
  expect_bounded(counters, "hits", 2, LEAST, LARGE + 1, true, LARGE + 1);
  /* nothing would do */
  expect_bounded(counters, "hits", 10, LEAST, LEAST + 5, false, LARGE + 1);
  expect_bounded(counters, "hits", -10, MOST - 5, MOST, false, LARGE + 1);
}

COUNTER_TEST(operation_id_counts_once) {
  static const char id[] = {'o', '\0', '}', ':', ':', '{', (char)0xff};
  for (int i = 0; i < 3; i++)
    expect_once(counters, "hits", 5, "one", 5);
  expect_once(counters, "hits", LARGE, "two", LARGE + 5);
  expect_once(counters, "hits", 5, "one", 5); /* as it was the first time */
  expect_once(counters, "other", 7, "one", 7);
  count_t count = {0};
  expect_once_status(counters, "hits", 6, "one", BELAY_EMISMATCH);
  assert_string_equal(server_string(env->server, "GET", HITS "::once::one", NULL), "5 5");
  expect_deleted(counters, "hits", true);
  expect_once(counters, "hits", 5, "one", 5); /* it was counted, and is gone */
  expect_got(counters, "hits", false, 0);
  expect_status(
      &count,
      BEGIN(counters, &count, add_once, KEY("hits"), 1, belay_bytes(id, sizeof id), on_result), 0);
  assert_string_equal(server_string(env->server, "GET", HITS "::once::o%00%7D%3A:%7B\xff", NULL),
                      "1 1");
  server_do(env->server, "SET", HITS "::once::bad", "5", NULL);
  expect_once_status(counters, "hits", 5, "bad", BELAY_EMISMATCH);
  assert_between(server_integer(env->server, "PTTL", HITS "::once::one", NULL), 3500000, 3600000);
  expect_got(counters, "hits", true, 1);
}

static void expect_pttl(env_t *env, const char *key, int64_t ms) {
  assert_between(server_integer(env->server, "PTTL", key, NULL), ms - 20000, ms);
}

static void halve(env_t *env) {
  server_do(env->server, "PEXPIRE", HITS, "50000", NULL);
}

ENV_TEST(ttl_from_creation_or_last_add) {
  for (int extend = 0; extend < 2; extend++) {
    belay_counter_options_t options = counter_options();
    options.ttl_ms = 100000;
    options.extend_ttl = extend;
    counters_t counters;
    counters_new(&counters, env, &options);
    const int64_t then = extend ? 100000 : 50000;
    expect_added(&counters, "hits", 1, 1);
    expect_pttl(env, HITS, 100000);
    halve(env);
    expect_added(&counters, "hits", 1, 2);
    expect_pttl(env, HITS, then);
    halve(env);
    expect_bounded(&counters, "hits", 1, 0, 10, true, 3);
    expect_pttl(env, HITS, then);
    halve(env);
    expect_bounded(&counters, "hits", 100, 0, 10, false, 3);
    expect_pttl(env, HITS, 50000);
    expect_once(&counters, "hits", 1, "op", 4);
    expect_pttl(env, HITS, then);
    halve(env);
    expect_once(&counters, "hits", 1, "op", 4);
    expect_got(&counters, "hits", true, 4);
    expect_pttl(env, HITS, 50000);
    expect_set(&counters, "hits", 1, true, 4);
    expect_pttl(env, HITS, 100000);
    halve(env);
    expect_add_status(&counters, "hits", MOST, BELAY_EOVERFLOW);
    expect_once_status(&counters, "hits", MOST, "no", BELAY_EOVERFLOW);
    expect_pttl(env, HITS, 50000); /* nothing was added */
    expect_deleted(&counters, "hits", true);
    expect_once(&counters, "hits", 1, "next", 1);
    expect_pttl(env, HITS, 100000);
    expect_deleted(&counters, "hits", true);
    expect_bounded(&counters, "hits", 1, 0, 10, true, 1);
    expect_pttl(env, HITS, 100000);
    expect_deleted(&counters, "hits", true);
    expect_ttls(env->server);
    server_do(env->server, "FLUSHALL", NULL);
  }
}

/* As long as it may be sent again. */
COUNTER_TEST_OF(operation_record_outlives_retries, o.op_ttl_ms = 1000) {
  count_t count = {.request.timeout_ms = 300000};
  expect_status(&count, BEGIN(counters, &count, add_once, KEY("hits"), 1, KEY("op"), on_result), 0);
  assert_between(server_integer(env->server, "PTTL", HITS "::once::op", NULL), 290000, 303002);
}

ENV_TEST(fields) {
  for (int lives = 0; lives < 2; lives++) {
    belay_counter_options_t options = counter_options();
    options.ttl_ms = lives ? 100000 : 0;
    counters_t counters;
    counters_new(&counters, env, &options);
    expect_field(&counters, "hits", "de", false, 0);
    expect_field_added(&counters, "hits", "de", LARGE, LARGE);
    expect_field_added(&counters, "hits", "de", 1, LARGE + 1);
    expect_field_added(&counters, "hits", "fr", LEAST, LEAST);
    expect_field(&counters, "hits", "de", true, LARGE + 1);
    count_t count = {0};
    expect_field_status(&counters, "hits", "fr", -1, BELAY_EOVERFLOW);
    expect_field(&counters, "hits", "fr", true, LEAST);
    const belay_bytes_t names[] = {{"fr", 2}, {"it", 2}, {"de", 2}, {"fr", 2}};
    expect_status(&count, BEGIN(&counters, &count, get_fields, KEY("hits"), names, 4, on_many), 0);
    static const int64_t values[] = {LEAST, 0, LARGE + 1, LEAST};
    for (int i = 0; i < 4; i++) {
      assert_int_equal(count.many[i].found, i != 1);
      assert_int_equal(count.many[i].value, values[i]);
    }
    expect_status(&count, BEGIN(&counters, &count, delete_fields, KEY("hits"), names, 2, on_result),
                  0);
    assert_int_equal(count.result.value, 1);
    assert_true(count.result.found && count.result.applied);
    expect_status(&count, BEGIN(&counters, &count, get_all, KEY("hits"), 10, on_all), 0);
    assert_int_equal(count.n, 1);
    assert_string_equal(count.names[0], "de");
    assert_int_equal(count.values[0], LARGE + 1);
    assert_between(server_integer(env->server, "PTTL", HITS, NULL), lives ? 80000 : -1, 100000);
    expect_deleted(&counters, "hits", true);
    expect_status(&count, BEGIN(&counters, &count, get_all, KEY("hits"), 10, on_all), 0);
    assert_int_equal(count.n, 0);
  }
}

ENV_TEST(ttl_of_a_group) {
  for (int extend = 0; extend < 2; extend++) {
    belay_counter_options_t options = counter_options();
    options.ttl_ms = 100000;
    options.extend_ttl = extend;
    counters_t counters;
    counters_new(&counters, env, &options);
    expect_field_added(&counters, "hits", "de", 1, 1);
    expect_pttl(env, HITS, 100000);
    halve(env);
    expect_field_added(&counters, "hits", "fr", 1, 1);
    expect_pttl(env, HITS, extend ? 100000 : 50000);
    expect_deleted(&counters, "hits", true);
  }
}

COUNTER_TEST(add_fields_is_atomic) {
  enum { N = 300 };
  static belay_counter_add_item_t items[N];
  static char names[N][8];
  for (int i = 0; i < N; i++) {
    snprintf(names[i], sizeof names[i], "f%d", i);
    items[i] = (belay_counter_add_item_t){.key = KEY(names[i]), .delta = i};
  }
  items[7].delta = LARGE + 1;
  static count_t count;
  for (int round = 1; round <= 2; round++) {
    expect_status(&count, BEGIN(counters, &count, add_fields, KEY("hits"), items, N, on_many), 0);
    assert_int_equal(count.n, N);
    for (int i = 0; i < N; i++) {
      assert_true(count.many[i].applied);
      assert_int_equal(count.many[i].value, round * items[i].delta);
    }
  }
  items[N - 1].delta = MOST;
  expect_status(&count, BEGIN(counters, &count, add_fields, KEY("hits"), items, N, on_many),
                BELAY_EOVERFLOW);
  for (int i = 0; i < N; i++)
    assert_error(count.many[i].status, BELAY_EOVERFLOW);
  expect_field(counters, "hits", "f1", true, 2);
  expect_status(&count, BEGIN(counters, &count, get_all, KEY("hits"), N, on_all), 0);
  assert_int_equal(count.n, N);
  for (int i = 0; i < N; i++) {
    int at = atoi(count.names[i] + 1);
    assert_int_equal(count.values[i], at == 7 ? 2 * (LARGE + 1) : 2 * at);
  }
  expect_status(&count, BEGIN(counters, &count, get_all, KEY("hits"), N - 1, on_all),
                BELAY_EOVERFLOW);
}

/* Beyond what Lua takes at a time. */
COUNTER_TEST(largest_number_of_fields) {
  enum { N = BELAY_COUNTER_FIELDS_MAX };
  static belay_counter_add_item_t items[N + 1];
  static char names[N + 1][8];
  static count_t count;
  for (int i = 0; i <= N; i++) {
    snprintf(names[i], sizeof names[i], "f%d", i);
    items[i] = (belay_counter_add_item_t){.key = KEY(names[i]), .delta = i};
  }
  assert_error(BEGIN(counters, &count, add_fields, KEY("hits"), items, N + 1, on_many),
               BELAY_EINVAL);
  expect_status(&count, BEGIN(counters, &count, add_fields, KEY("hits"), items, N, on_many), 0);
  assert_int_equal(count.n, N);
  assert_int_equal(server_integer(env->server, "HLEN", HITS, NULL), N);
  expect_field(counters, "hits", "f4095", true, 4095);
}

ENV_TEST(key_names) {
  static const char key[] = {'a', '\0', '{', '}', ':', ':', (char)0xff}, name[] = {':', '\0', 'n'};
  belay_counter_options_t options = counter_options();
  counters_t plain, named, spread;
  counters_new(&plain, env, &options);
  options.name = belay_bytes(name, sizeof name);
  counters_new(&named, env, &options);
  options.shards = 2;
  counters_new(&spread, env, &options);
  counters_t *handles[] = {&plain, &named, &spread, &spread};
  static const char *const expected[] = {"belay::counter::{a%00%7B%7D%3A:\xff}",
                                         "belay::counter::%3A%00n::{a%00%7B%7D%3A:\xff}",
                                         "belay::counter::%3A%00n::{a%00%7B%7D%3A:\xff::0}",
                                         "belay::counter::%3A%00n::{a%00%7B%7D%3A:\xff::1}"};
  for (int i = 0; i < 4; i++) {
    count_t count = {0};
    expect_status(&count,
                  BEGIN(handles[i], &count, add, belay_bytes(key, sizeof key), 1, on_result), 0);
  }
  for (int i = 0; i < 4; i++)
    assert_string_equal(server_string(env->server, "GET", expected[i], NULL), "1");
  assert_int_equal(server_keys(env->server), 4);
}

ENV_TEST(longest_names) {
  static char name[128], key[BELAY_COUNTER_KEY_MAX + 1], id[BELAY_COUNTER_OP_ID_MAX + 1];
  static char field[BELAY_COUNTER_FIELD_MAX + 1];
  memset(name, '{', sizeof name);
  memset(key, '}', sizeof key - 1);
  memset(id, '%', sizeof id - 1);
  memset(field, '\n', sizeof field - 1);
  belay_counter_options_t options = counter_options();
  options.name = belay_bytes(name, sizeof name);
  counters_t counters, spread;
  counters_new(&counters, env, &options);
  options.shards = BELAY_COUNTER_SHARDS_MAX;
  counters_new(&spread, env, &options);
  expect_added(&counters, key, 2, 2);
  expect_once(&counters, key, 2, id, 4);
  expect_once(&counters, key, 2, id, 4);
  expect_deleted(&counters, key, true);
  expect_field_added(&counters, key, field, 5, 5);
  expect_field(&counters, key, field, true, 5);
  expect_once(&spread, key, 2, id, 2);
  expect_once(&spread, key, 2, id, 2);
  expect_got(&spread, key, true, 2);
  key[0] = 'k'; /* the other one is a group */
  assert_error(belay_counter_add_local(counters.counter, KEY(key), 1), 0);
  env_until(env, server_keys(env->server) > 4);
}
