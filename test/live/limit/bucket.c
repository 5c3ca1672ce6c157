/* Refilled buckets: a take needs present tokens, and each index fills once. */
#include <stdio.h>

#include "support/fixtures/limit/buckets.h"
#include "support/models/scripts.h"

#define KEY "belay::bucket::{tap}"
#define INDEX_KEY KEY "::index"

/* ---- what it is ---- */

ENV_TEST(missing_bucket_is_empty) {
  bucket_t bucket;
  bucket_open(&bucket, env, 10, false);
  expect_read(&bucket, "tap", 0, 0);
  expect_fetch(&bucket, "tap", 1, false, 0, 0);
  assert_int_equal(server_keys(env->server), 0);
  expect_add(&bucket, "tap", 5, 0, true, 5, 1);
  expect_fetch(&bucket, "tap", 3, true, 2, 1);
  expect_fetch(&bucket, "tap", 3, false, 2, 1); /* all or nothing */
  assert_string_equal(server_string(env->server, "GET", KEY, NULL), "2");
  expect_fetch(&bucket, "tap", 2, true, 0, 1);
  assert_null(server_string(env->server, "GET", KEY, NULL)); /* it says no more than its absence */
  assert_string_equal(server_string(env->server, "GET", INDEX_KEY, NULL), "1");
  expect_add(&bucket, "tap", 10, 1, true, 10, 2);
  expect_fetch(&bucket, "tap", 10, true, 0, 2);
  expect_add(&bucket, "tap", 7, 2, true, 7, 3);
  expect_add(&bucket, "tap", 7, 3, true, 10, 4); /* as many as there is room for */
  expect_add(&bucket, "tap", 7, 4, true, 10, 5);
  expect_read(&bucket, "tap", 10, 5);
  expect_read(&bucket, "sink", 0, 0);
  expect_ttls(env->server);
}

ENV_TEST(missing_bucket_is_full) {
  bucket_t bucket;
  bucket_open(&bucket, env, 10, true);
  expect_read(&bucket, "tap", 10, 0);
  expect_add(&bucket, "tap", 3, 0, true, 10, 1);
  assert_null(server_string(env->server, "GET", KEY, NULL));
  expect_fetch(&bucket, "tap", 10, true, 0, 1);
  expect_fetch(&bucket, "tap", 1, false, 0, 1);
  assert_string_equal(server_string(env->server, "GET", KEY, NULL), "0");
  expect_add(&bucket, "tap", 9, 1, true, 9, 2);
  assert_string_equal(server_string(env->server, "GET", KEY, NULL), "9");
  expect_add(&bucket, "tap", 9, 2, true, 10, 3);
  assert_null(server_string(env->server, "GET", KEY, NULL));
  expect_ttls(env->server);
}

ENV_TEST(another_index_adds_nothing) {
  bucket_t bucket;
  bucket_open(&bucket, env, 10, false);
  expect_add(&bucket, "tap", 1, 1, false, 0, 0);
  assert_int_equal(server_keys(env->server), 0);
  for (int i = 0; i < 3; i++)
    expect_add(&bucket, "tap", 1, i, true, i + 1, i + 1);
  expect_add(&bucket, "tap", 1, 2, false, 3, 3);
  expect_add(&bucket, "tap", 1, 4, false, 3, 3);
  expect_add(&bucket, "tap", 1, BELAY_BUCKET_INDEX_MAX - 1, false, 3, 3);
  expect_add(&bucket, "tap", 1, 3, true, 4, 4);
}

ENV_TEST(the_largest_of_all) {
  bucket_t bucket;
  const int64_t most = BELAY_BUCKET_TOKENS_MAX, last = BELAY_BUCKET_INDEX_MAX;
  bucket_open(&bucket, env, most, false);
  expect_add(&bucket, "tap", most, 0, true, most, 1);
  expect_fetch(&bucket, "tap", 1, true, most - 1, 1);
  expect_add(&bucket, "tap", most, 1, true, most, 2);
  assert_string_equal(server_string(env->server, "GET", KEY, NULL), "4503599627370496");
  server_do(env->server, "SET", INDEX_KEY, "9007199254740990", "PX", "60000", NULL);
  expect_fetch(&bucket, "tap", most - 1, true, 1, last - 1);
  expect_add(&bucket, "tap", 1, last - 1, true, 2, last);
  assert_string_equal(server_string(env->server, "GET", INDEX_KEY, NULL), "9007199254740991");
  expect_add(&bucket, "tap", 1, last - 1, false, 2, last); /* and never again */
}

/* The bucket had a larger capacity, or another program uses a larger one. */
ENV_TEST(more_than_the_capacity_is_full) {
  bucket_t large, small;
  bucket_open(&large, env, 100, false);
  bucket_open(&small, env, 10, false);
  expect_add(&large, "tap", 100, 0, true, 100, 1);
  expect_read(&small, "tap", 10, 1);
  expect_add(&small, "tap", 5, 1, true, 10, 2);
  expect_fetch(&small, "tap", 4, true, 6, 2);
  expect_read(&large, "tap", 6, 2);
}

ENV_TEST(delete_forgets_both) {
  for (int full = 0; full < 2; full++) {
    bucket_t bucket;
    int64_t missing = full ? 10 : 0;
    bucket_open(&bucket, env, 10, full);
    expect_delete(&bucket, "tap", false, missing);
    expect_add(&bucket, "tap", 3, 0, true, full ? 10 : 3, 1);
    expect_fetch(&bucket, "tap", 1, true, full ? 9 : 2, 1);
    expect_delete(&bucket, "tap", true, missing);
    expect_read(&bucket, "tap", missing, 0);
    expect_add(&bucket, "tap", 3, 0, true, full ? 10 : 3, 1);
    expect_delete(&bucket, "tap", true, missing);
    assert_int_equal(server_keys(env->server), 0);
  }
}

/* ---- keys ---- */

ENV_TEST(the_keys_have_its_name) {
  static const char key[] = {'a', '\0', '{', '}', ':', ':', (char)0xff}, name[] = {':', '\0', 'n'};
  belay_bucket_options_t options = bucket_options(5, false);
  bucket_t plain, named;
  bucket_open_on(&plain, env, env->client, &options);
  options.name = belay_bytes(name, sizeof name);
  bucket_open_on(&named, env, env->client, &options);
  for (int i = 0; i < 2; i++) {
    bucket_t *bucket = i == 0 ? &plain : &named;
    bucket_op_t op = {.bucket = bucket, .begun = 1, .request.data = &op};
    bucket->pending++;
    assert_error(belay_bucket_add(bucket->handle, &op.request, belay_bytes(key, sizeof key), 1 + i,
                                  0, on_bucket_op),
                 0);
    assert_error(end_of_bucket_op(&op), 0);
    assert_true(op.state.applied);
  }
  static const char *const expected[] = {"belay::bucket::{a%00%7B%7D%3A:\xff}",
                                         "belay::bucket::%3A%00n::{a%00%7B%7D%3A:\xff}"};
  static const char *const indices[] = {"belay::bucket::{a%00%7B%7D%3A:\xff}::index",
                                        "belay::bucket::%3A%00n::{a%00%7B%7D%3A:\xff}::index"};
  for (int i = 0; i < 2; i++) {
    assert_string_equal(server_string(env->server, "GET", expected[i], NULL), i == 0 ? "1" : "2");
    assert_string_equal(server_string(env->server, "GET", indices[i], NULL), "1");
  }
  assert_int_equal(server_keys(env->server), 4);
}

ENV_TEST(the_longest_names) {
  static char name[128], key[BELAY_BUCKET_KEY_MAX + 1];
  memset(name, '{', sizeof name);
  memset(key, '}', sizeof key - 1);
  belay_bucket_options_t options = bucket_options(5, false);
  options.name = belay_bytes(name, sizeof name);
  bucket_t bucket;
  bucket_open_on(&bucket, env, env->client, &options);
  expect_add(&bucket, key, 2, 0, true, 2, 1);
  expect_read(&bucket, key, 2, 1);
  expect_delete(&bucket, key, true, 0);
}

/* ---- ttls ---- */

static void expect_pttl(env_t *env, const char *key, int64_t ms) {
  assert_between(server_integer(env->server, "PTTL", key, NULL), ms - 20000, ms);
}

static void set_ttls(env_t *env) {
  server_do(env->server, "PEXPIRE", KEY, "50000", NULL);
  server_do(env->server, "PEXPIRE", INDEX_KEY, "55000", NULL);
}

ENV_TEST(idle_local_bucket_forgotten) {
  for (int full = 0; full < 2; full++) {
    belay_bucket_options_t options = bucket_options(10, full);
    options.idle_ms = 100000;
    options.index_ms = 200000;
    bucket_t bucket;
    bucket_open_on(&bucket, env, env->client, &options);
    server_do(env->server, "FLUSHALL", NULL);
    expect_add(&bucket, "tap", 8, 0, true, full ? 10 : 8, 1);
    expect_fetch(&bucket, "tap", 6, true, full ? 4 : 2, 1);
    expect_pttl(env, KEY, 100000);
    expect_pttl(env, INDEX_KEY, 200000);
    set_ttls(env);
    expect_fetch(&bucket, "tap", 5, false, full ? 4 : 2, 1); /* nothing is written */
    expect_add(&bucket, "tap", 5, 0, false, full ? 4 : 2, 1);
    expect_read(&bucket, "tap", full ? 4 : 2, 1);
    expect_pttl(env, KEY, 50000);
    expect_pttl(env, INDEX_KEY, 55000);
    expect_fetch(&bucket, "tap", 1, true, full ? 3 : 1, 1);
    expect_pttl(env, KEY, 100000);
    expect_pttl(env, INDEX_KEY, 55000);
    set_ttls(env);
    expect_add(&bucket, "tap", 1, 1, true, full ? 4 : 2, 2);
    expect_pttl(env, KEY, 100000);
    expect_pttl(env, INDEX_KEY, 200000);
    expect_add(&bucket, "tap", 10, 2, true, 10, 3);
    if (full)
      assert_int_equal(server_integer(env->server, "EXISTS", KEY, NULL), 0);
    else
      expect_pttl(env, KEY, 100000);
    set_ttls(env);
    expect_add(&bucket, "tap", 10, 3, true, 10, 4); /* the bucket was full, and no client takes */
    if (!full)
      expect_pttl(env, KEY, 50000);
    expect_pttl(env, INDEX_KEY, 200000);
  }
}

ENV_TEST(full_unused_bucket_expires) {
  belay_bucket_options_t options = bucket_options(3, false);
  options.idle_ms = 1000;
  bucket_t bucket;
  bucket_open_on(&bucket, env, env->client, &options);
  int64_t index = 1, begun = clock_now();
  expect_add(&bucket, "tap", 3, 0, true, 3, 1);
  int64_t filled = clock_now();
  for (; clock_now() - filled < 700 * MS; index++) {
    expect_add(&bucket, "tap", 3, index, true, 3, index + 1);
    env_run_for(env, 20);
  }
  int64_t left = server_integer(env->server, "PTTL", KEY, NULL);
  if (clock_now() - begun < 1000 * MS) /* else it went, and was filled again */
    assert_between(left, 0, 300);
  env_until(env, server_integer(env->server, "EXISTS", KEY, NULL) == 0);
  expect_read(&bucket, "tap", 0, index);
}

/* As long as it may be sent again. */
ENV_TEST(an_index_outlives_its_filling) {
  belay_bucket_options_t options = bucket_options(3, false);
  options.idle_ms = options.index_ms = 1000;
  bucket_t bucket;
  bucket_open_on(&bucket, env, env->client, &options);
  bucket_op_t op = {.request.timeout_ms = 300000};
  assert_error(begin_add(&bucket, &op, "tap", 3, 0), 0);
  assert_error(end_of_bucket_op(&op), 0);
  assert_between(server_integer(env->server, "PTTL", INDEX_KEY, NULL), 290000, 303002);
  assert_between(server_integer(env->server, "PTTL", KEY, NULL), -2, 1000);
}

/* ---- many at a time ---- */

enum { CLIENTS = 4, EACH = 3, ROUNDS = 40 };

static void open_pails(bucket_t pails[CLIENTS], env_t *env, int64_t capacity) {
  const belay_bucket_options_t options = bucket_options(capacity, false);
  for (int i = 0; i < CLIENTS; i++) {
    belay_client_t *client = i == 0 ? env->client : env_connect(env, server_url(env->server), NULL);
    bucket_open_on(&pails[i], env, client, &options);
  }
}

ENV_TEST(one_add_per_index) {
  bucket_t pails[CLIENTS];
  open_pails(pails, env, 1000000);
  unsigned winners[CLIENTS] = {0};
  int64_t tokens = 0;
  for (int round = 0; round < ROUNDS; round++) {
    bucket_op_t ops[CLIENTS][EACH] = {0};
    for (int j = 0; j < EACH; j++)
      for (int i = 0; i < CLIENTS; i++) /* another client begins each time */
        assert_error(begin_add(&pails[(i + round) % CLIENTS], &ops[(i + round) % CLIENTS][j], "tap",
                               1 + i, round),
                     0);
    unsigned applied = 0;
    int64_t before = tokens;
    for (int i = 0; i < CLIENTS; i++)
      for (int j = 0; j < EACH; j++) {
        assert_error(end_of_bucket_op(&ops[i][j]), 0);
        assert_int_equal(ops[i][j].state.index, round + 1);
        applied += ops[i][j].state.applied;
        winners[i] += ops[i][j].state.applied;
        if (ops[i][j].state.applied)
          tokens = ops[i][j].state.tokens;
      }
    assert_int_equal(applied, 1);
    assert_between(tokens - before, 1, CLIENTS);
    expect_read(&pails[0], "tap", tokens, round + 1);
  }
  print_message("%u, %u, %u, %u won\n", winners[0], winners[1], winners[2], winners[3]);
}

/* Operations on one key keep their order over any number of connections. */
ENV_TEST_OF(operations_of_one_key_keep_their_order, o.connections = 4) {
  enum { KEYS = 8, FILLINGS = 20 };
  static bucket_op_t ops[KEYS][FILLINGS];
  bucket_t bucket;
  memset(ops, 0, sizeof ops);
  bucket_open(&bucket, env, 100, false);
  for (int i = 0; i < FILLINGS; i++)
    for (int k = 0; k < KEYS; k++) {
      const char key[] = {(char)('a' + k), '\0'};
      assert_error(begin_add(&bucket, &ops[k][i], key, 1, i), 0);
    }
  for (int k = 0; k < KEYS; k++)
    for (int i = 0; i < FILLINGS; i++) {
      assert_error(end_of_bucket_op(&ops[k][i]), 0);
      assert_true(ops[k][i].state.applied);
      assert_int_equal(ops[k][i].state.tokens, i + 1);
    }
  assert_true(client_stats(env).connections_up > 1);
}

ENV_TEST(concurrent_fetches) {
  enum { TAKERS = 200 };
  static bucket_op_t ops[TAKERS];
  bucket_t pails[CLIENTS];
  memset(ops, 0, sizeof ops);
  open_pails(pails, env, 100);
  expect_add(&pails[0], "tap", 100, 0, true, 100, 1);
  int64_t taken = 0;
  for (int i = 0; i < TAKERS; i++)
    assert_error(begin_fetch(&pails[i % CLIENTS], &ops[i], "tap", 1 + i / CLIENTS % 3), 0);
  for (int i = 0; i < TAKERS; i++) {
    assert_error(end_of_bucket_op(&ops[i]), 0);
    assert_between(ops[i].state.tokens, 0, 99);
    taken += ops[i].state.applied ? 1 + i / CLIENTS % 3 : 0;
  }
  assert_int_equal(taken, 100);
  expect_read(&pails[1], "tap", 0, 1);
  assert_int_equal(server_keys(env->server), 1);
}

/* ---- what is refused ---- */

ENV_TEST(the_largest_options_work) {
  belay_bucket_options_t options = bucket_options(1, false);
  options.idle_ms = options.index_ms = INT64_C(31536000000);
  options.capacity = BELAY_BUCKET_TOKENS_MAX;
  bucket_t bucket;
  bucket_open_on(&bucket, env, env->client, &options);
  expect_add(&bucket, "tap", 1, 0, true, 1, 1);
}

ENV_TEST(arguments_are_checked) {
  bucket_t bucket;
  bucket_op_t op = {0};
  static char key[BELAY_BUCKET_KEY_MAX + 2];
  memset(key, 'k', sizeof key - 1);
  bucket_open(&bucket, env, 10, false);
  belay_bucket_t *b = bucket.handle;
  belay_request_t *r = &op.request;
  belay_t *belay = env->belay;
  static const char *const keys[] = {"", key};
  for (int i = 0; i < 2; i++) {
    assert_error(begin_fetch(&bucket, &op, keys[i], 1), BELAY_EINVAL);
    assert_error(begin_add(&bucket, &op, keys[i], 1, 0), BELAY_EINVAL);
    assert_error(begin_read(&bucket, &op, keys[i]), BELAY_EINVAL);
    assert_error(begin_delete(&bucket, &op, keys[i]), BELAY_EINVAL);
    assert_string_equal(belay_detail(belay), "key: not 1 to 1024 bytes");
  }
  assert_error(belay_bucket_read(b, r, belay_bytes(NULL, 1), on_bucket_op), BELAY_EINVAL);
  static const int64_t tokens[] = {0, -1, 11, INT64_MAX, INT64_MIN};
  for (int i = 0; i < 5; i++) {
    assert_error(begin_fetch(&bucket, &op, "k", tokens[i]), BELAY_EINVAL);
    assert_string_equal(belay_detail(belay), "tokens: not from 1 to 10");
    assert_error(begin_add(&bucket, &op, "k", tokens[i], 0), BELAY_EINVAL);
    assert_string_equal(belay_detail(belay), "tokens: not from 1 to 10");
  }
  static const int64_t indices[] = {-1, BELAY_BUCKET_INDEX_MAX, INT64_MAX, INT64_MIN};
  for (int i = 0; i < 4; i++) {
    assert_error(begin_add(&bucket, &op, "k", 1, indices[i]), BELAY_EINVAL);
    assert_string_equal(belay_detail(belay), "index: not from 0 to 9007199254740990");
  }
  assert_int_equal(server_keys(env->server), 0);
  assert_int_equal(client_stats(env).calls, 0);
}
