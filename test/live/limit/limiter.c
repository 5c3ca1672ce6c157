/* Limiters: admitted and denied takes, and retry times. */
#include "support/fixtures/limit/asks.h"

#define SECOND INT64_C(1000000)
#define S (1000 * SECOND) /* stored values do not expire by the server's own clock meanwhile */
#define T0 INT64_C(1700000000000000)

/* A bucket of 5 that gets one a second; times in tenths of a second. */
ENV_TEST(the_classic_vectors) {
  static const struct {
    int64_t at, cost;
    belay_verdict_t verdict;
    int64_t remaining, reset, retry;
  } rows[] = {
      {0, 6, BELAY_NEVER, 5, 0, -1},    {0, 1, BELAY_ALLOWED, 4, 10, 0},
      {0, 1, BELAY_ALLOWED, 3, 20, 0},  {0, 1, BELAY_ALLOWED, 2, 30, 0},
      {0, 1, BELAY_ALLOWED, 1, 40, 0},  {0, 1, BELAY_ALLOWED, 0, 50, 0},
      {0, 1, BELAY_DENIED, 0, 50, 10},  {30, 1, BELAY_ALLOWED, 2, 30, 0},
      {31, 1, BELAY_ALLOWED, 1, 39, 0}, {40, 1, BELAY_ALLOWED, 1, 40, 0},
      {80, 1, BELAY_ALLOWED, 4, 10, 0}, {95, 1, BELAY_ALLOWED, 4, 10, 0},
      {95, 0, BELAY_ALLOWED, 4, 10, 0}, {95, 2, BELAY_ALLOWED, 2, 30, 0},
      {95, 5, BELAY_DENIED, 2, 30, 30}, {150, 6, BELAY_NEVER, 5, 0, -1},
  };
  belay_limiter_t *limiter = limiter_of(env, bucket_limit(1, S, 5));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    limiter_at(limiter, T0 + rows[i].at * S / 10);
    int64_t retry = rows[i].retry < 0 ? -1 : rows[i].retry * S / 10;
    assert_result(take(env, limiter, "k", rows[i].cost), rows[i].verdict, rows[i].remaining, retry,
                  rows[i].reset * S / 10);
  }
}

/* Compared as text, 10 is less than 9. */
ENV_TEST(limits_admit_exactly_as_many) {
  static const int64_t counts[] = {9, 10, 99, 100, 1000};
  static const belay_limit_kind_t kinds[] = {BELAY_LIMIT_BUCKET, BELAY_LIMIT_FIXED,
                                             BELAY_LIMIT_SLIDING, BELAY_LIMIT_LOG};
  for (size_t k = 0; k < 4; k++)
    for (size_t i = 0; i < 5; i++) {
      belay_limiter_t *limiter = limiter_of(
          env, (belay_limit_t){.kind = kinds[k], .count = counts[i], .period_us = 3600 * S});
      limiter_at(limiter, T0);
      static ask_t asks[1100];
      memset(asks, 0, sizeof asks);
      char key[] = {'k', (char)('0' + k), (char)('0' + i)};
      for (size_t n = 0; n < 1100; n++)
        assert_error(
            belay_limiter_take(limiter, asked(env, &asks[n]), belay_bytes(key, 3), 1, on_answer),
            0);
      int64_t admitted = 0;
      for (size_t n = 0; n < 1100; n++)
        admitted += answer(&asks[n], 0)->verdict == BELAY_ALLOWED;
      assert_int_equal(admitted, counts[i]);
      assert_error(belay_limiter_close(limiter, NULL), 0);
    }
}

/* ---- kinds, by their numbers ---- */

typedef struct row {
  int64_t at, cost; /* tenths of a second after T0 */
  belay_verdict_t verdict;
  int64_t remaining, reset, retry; /* the same */
} row_t;

static void expect_rows(env_t *env, const belay_limit_t *limits, size_t n, const row_t *rows,
                        size_t rows_len) {
  belay_limiter_t *limiter = limiter_new(env, limits, n);
  server_do(env->server, "FLUSHALL", NULL);
  for (size_t i = 0; i < rows_len; i++) {
    limiter_at(limiter, T0 + rows[i].at * S / 10);
    const belay_limiter_result_t *result = take(env, limiter, "k", rows[i].cost);
    int64_t retry = rows[i].retry < 0 ? -1 : rows[i].retry * S / 10;
    if (result->verdict != rows[i].verdict || result->remaining != rows[i].remaining ||
        result->reset_after_us != rows[i].reset * S / 10 || result->retry_after_us != retry)
      fail_msg("row %zu: verdict %d, remaining %lld, reset %lld us, retry %lld us", i,
               (int)result->verdict, (long long)result->remaining,
               (long long)result->reset_after_us, (long long)result->retry_after_us);
    assert_int_equal(result->cause, 0);
    assert_int_equal(result->source, BELAY_SOURCE_SERVER);
  }
  assert_error(belay_limiter_close(limiter, NULL), 0);
}

#define EXPECT_ROWS(env, limit, rows)                                                              \
  expect_rows(env, &(limit), 1, rows, sizeof(rows) / sizeof *(rows))

ENV_TEST(a_fixed_window_begins_with_the_first_call) {
  static const row_t rows[] = {
      {3, 0, BELAY_ALLOWED, 3, 0, 0},  {3, 2, BELAY_ALLOWED, 1, 10, 0},
      {9, 2, BELAY_DENIED, 1, 4, 4},   {12, 1, BELAY_ALLOWED, 0, 1, 0},
      {12, 1, BELAY_DENIED, 0, 1, 1},  {13, 1, BELAY_ALLOWED, 2, 10, 0},
      {23, 0, BELAY_ALLOWED, 3, 0, 0}, {29, 3, BELAY_ALLOWED, 0, 10, 0},
      {30, 4, BELAY_NEVER, 0, 9, -1},
  };
  belay_limit_t limit = {.kind = BELAY_LIMIT_FIXED, .count = 3, .period_us = S};
  EXPECT_ROWS(env, limit, rows);
}

ENV_TEST(an_aligned_window_begins_with_the_clocks) {
  static const row_t rows[] = {
      {3, 2, BELAY_ALLOWED, 1, 7, 0},   {9, 2, BELAY_DENIED, 1, 1, 1},
      {10, 3, BELAY_ALLOWED, 0, 10, 0}, {19, 1, BELAY_DENIED, 0, 1, 1},
      {29, 1, BELAY_ALLOWED, 2, 1, 0},  {30, 0, BELAY_ALLOWED, 3, 0, 0},
  };
  belay_limit_t limit = {.kind = BELAY_LIMIT_FIXED, .count = 3, .period_us = S, .aligned = true};
  EXPECT_ROWS(env, limit, rows);
}

/* Ten in the first window: at its end they weigh 10, and one less with each tenth of a second. */
ENV_TEST(a_sliding_window_weighs_the_one_before) {
  static const row_t rows[] = {
      {0, 1, BELAY_ALLOWED, 9, 20, 0},   {5, 9, BELAY_ALLOWED, 0, 15, 0},
      {9, 1, BELAY_DENIED, 0, 11, 2},    {10, 1, BELAY_DENIED, 0, 10, 1},
      {11, 1, BELAY_ALLOWED, 0, 19, 0},  {11, 1, BELAY_DENIED, 0, 19, 1},
      {15, 4, BELAY_ALLOWED, 0, 15, 0},  {20, 5, BELAY_ALLOWED, 0, 20, 0},
      {20, 10, BELAY_DENIED, 0, 20, 20}, {30, 0, BELAY_ALLOWED, 5, 10, 0},
      {39, 9, BELAY_ALLOWED, 0, 11, 0},  {60, 10, BELAY_ALLOWED, 0, 20, 0},
  };
  belay_limit_t limit = {.kind = BELAY_LIMIT_SLIDING, .count = 10, .period_us = S};
  EXPECT_ROWS(env, limit, rows);
}

ENV_TEST(a_log_forgets_one_by_one) {
  static const row_t rows[] = {
      {0, 1, BELAY_ALLOWED, 2, 10, 0},  {4, 2, BELAY_ALLOWED, 0, 10, 0},
      {4, 1, BELAY_DENIED, 0, 10, 6},   {4, 2, BELAY_DENIED, 0, 10, 10},
      {10, 1, BELAY_ALLOWED, 0, 10, 0}, {14, 0, BELAY_ALLOWED, 2, 6, 0},
      {14, 3, BELAY_DENIED, 2, 6, 6},   {14, 4, BELAY_NEVER, 2, 6, -1},
      {20, 3, BELAY_ALLOWED, 0, 10, 0},
  };
  belay_limit_t limit = {.kind = BELAY_LIMIT_LOG, .count = 3, .period_us = S};
  EXPECT_ROWS(env, limit, rows);
}

/* An allotment ends when nothing was admitted for its period. Denials do not count. */
ENV_TEST(an_allotment_lasts) {
  static const row_t rows[] = {
      {0, 2, BELAY_ALLOWED, 1, 10, 0}, {9, 1, BELAY_ALLOWED, 0, 10, 0},
      {18, 1, BELAY_DENIED, 0, 1, 1},  {19, 1, BELAY_ALLOWED, 2, 10, 0},
      {20, 4, BELAY_NEVER, 2, 9, -1},
  };
  belay_limit_t limit = bucket_limit(0, S, 3);
  EXPECT_ROWS(env, limit, rows);
}

ENV_TEST(infinite_limits_send_nothing) {
  env_until(env, client_stats(env).pending == 0);
  belay_limit_t limits[2] = {bucket_limit(BELAY_INFINITE, 0, 0),
                             {.kind = BELAY_LIMIT_FIXED, .count = BELAY_INFINITE}};
  belay_limiter_t *limiter = limiter_new(env, limits, 2);
  const belay_limiter_result_t *result = take(env, limiter, "k", INT64_MAX);
  assert_int_equal(result->source, BELAY_SOURCE_POLICY);
  assert_result(result, BELAY_ALLOWED, BELAY_INFINITE, 0, 0);
  assert_int_equal(peek(env, limiter, "k")->remaining, BELAY_INFINITE);
  assert_int_equal(penalty(env, limiter, "k", 1)->verdict, BELAY_ALLOWED);
  belay_limiter_stats_t stats;
  belay_limiter_stats(limiter, &stats);
  assert_int_equal(stats.asked, 0);
  assert_int_equal(server_keys(env->server), 0);
  assert_int_equal(reset(env, limiter, "k")->remaining, BELAY_INFINITE);
  /* Beside others it does not count, and they keep their numbers. */
  limits[1] = bucket_limit(1, S, 1);
  assert_error(belay_limiter_reconfigure(limiter, limits, 2), 0);
  assert_int_equal(reset(env, limiter, "k")->remaining, 1);
  assert_result(take(env, limiter, "k", 1), BELAY_ALLOWED, 0, 0, S);
  assert_int_equal(take(env, limiter, "k", 1)->window, 1);
}

/* ---- several at once ---- */

ENV_TEST(all_windows_or_none) {
  belay_limit_t limits[4] = {bucket_limit(10, S, 10),
                             {.kind = BELAY_LIMIT_FIXED, .count = 15, .period_us = 60 * S},
                             {.kind = BELAY_LIMIT_SLIDING, .count = 30, .period_us = 3600 * S},
                             bucket_limit(0, 86400 * S, 32)};
  belay_limiter_t *limiter = limiter_new(env, limits, 4);
  limiter_at(limiter, T0);
  assert_result(take(env, limiter, "k", 10), BELAY_ALLOWED, 0, 0, 86400 * S);
  int64_t calls = server_calls(env->server, "evalsha") + server_calls(env->server, "eval");
  assert_result(take(env, limiter, "k", 1), BELAY_DENIED, 0, S / 10, -2);
  assert_int_equal(take(env, limiter, "k", 1)->window, 0);
  assert_int_equal(server_calls(env->server, "evalsha") + server_calls(env->server, "eval"),
                   calls + 2);
  assert_int_equal(server_keys(env->server), 1);
  limiter_at(limiter, T0 + S); /* the bucket has room again, and keeps it when another denies */
  for (int i = 0; i < 3; i++)
    assert_result(take(env, limiter, "k", 6), BELAY_DENIED, 5, 59 * S, -2);
  assert_int_equal(take(env, limiter, "k", 6)->window, 1);
  assert_result(take(env, limiter, "k", 5), BELAY_ALLOWED, 0, 0, -2);
  limiter_at(limiter, T0 + 60 * S);
  assert_result(take(env, limiter, "k", 10), BELAY_ALLOWED, 0, 0, -2);
  limiter_at(limiter, T0 + 120 * S);
  assert_result(take(env, limiter, "k", 6), BELAY_DENIED, 5, -2, -2);
  assert_int_equal(take(env, limiter, "k", 6)->window, 2);
  assert_result(take(env, limiter, "k", 5), BELAY_ALLOWED, 0, 0, -2);
  limiter_at(limiter, T0 + 2 * 3600 * S); /* of two that deny the one that does so longest */
  assert_result(take(env, limiter, "k", 3), BELAY_DENIED, 2, 86400 * S - 2 * 3600 * S + 120 * S,
                -2);
  assert_int_equal(take(env, limiter, "k", 3)->window, 3);
  assert_result(take(env, limiter, "k", 11), BELAY_NEVER, 2, -1, -2);
  assert_int_equal(take(env, limiter, "k", 11)->window, 0);
  assert_int_equal(take(env, limiter, "k", 16)->window, 0);
}

/* ---- other operations ---- */

ENV_TEST(a_peek_writes_nothing) {
  belay_limit_t limit = bucket_limit(1, S, 3);
  belay_limiter_t *limiter = limiter_new(env, &limit, 1);
  limiter_at(limiter, T0);
  assert_result(peek(env, limiter, "k"), BELAY_ALLOWED, 3, 0, 0);
  assert_result(take(env, limiter, "k", 4), BELAY_NEVER, 3, -1, 0);
  assert_int_equal(server_keys(env->server), 0);
  assert_result(take(env, limiter, "k", 3), BELAY_ALLOWED, 0, 0, 3 * S);
  uint64_t print = print_of(env->server, "belay::limit::test::{k}");
  assert_result(peek(env, limiter, "k"), BELAY_ALLOWED, 0, 0, 3 * S);
  assert_result(take(env, limiter, "k", 0), BELAY_ALLOWED, 0, 0, 3 * S);
  assert_result(take(env, limiter, "k", 1), BELAY_DENIED, 0, S, 3 * S);
  limiter_at(limiter, T0 - S); /* time stands still until then */
  assert_result(peek(env, limiter, "k"), BELAY_ALLOWED, 0, 0, 3 * S);
  assert_true(print_of(env->server, "belay::limit::test::{k}") == print);
}

ENV_TEST(a_penalty_is_always_taken) {
  static const belay_limit_t limits[] = {
      {.kind = BELAY_LIMIT_BUCKET, .count = 1, .period_us = S, .burst = 5},
      {.kind = BELAY_LIMIT_FIXED, .count = 5, .period_us = 5 * S},
      {.kind = BELAY_LIMIT_SLIDING, .count = 5, .period_us = 5 * S},
      {.kind = BELAY_LIMIT_LOG, .count = 5, .period_us = 5 * S},
      {.kind = BELAY_LIMIT_BUCKET, .burst = 5, .period_us = 5 * S},
  };
  static const int64_t retry[] = {3, 5, 7, 5, 5}; /* seconds; 7: (5 - 1) of 8 */
  for (size_t i = 0; i < 5; i++) {
    char key[] = {'k', (char)('0' + i), '\0'};
    belay_limiter_t *limiter = limiter_new(env, &limits[i], 1);
    limiter_at(limiter, T0);
    assert_result(penalty(env, limiter, key, 4), BELAY_ALLOWED, 1, 0, -2);
    assert_result(penalty(env, limiter, key, 4), BELAY_ALLOWED, 0, 0, -2);
    assert_result(peek(env, limiter, key), BELAY_DENIED, 0, -2, -2); /* overdrawn */
    const belay_limiter_result_t *result = take(env, limiter, key, 1);
    assert_int_equal(result->verdict, BELAY_DENIED);
    assert_false(result->banned);
    if (i == 0)
      assert_int_equal(result->retry_after_us, 4 * S);
    else if (i != 2)
      assert_int_equal(result->retry_after_us, retry[i] * S);
    else
      assert_int_equal(result->retry_after_us, 10 * S - 4 * 5 * S / 8);
    int64_t at = T0 + result->retry_after_us;
    limiter_at(limiter, at - 1);
    assert_int_equal(take(env, limiter, key, 1)->verdict, BELAY_DENIED);
    limiter_at(limiter, at);
    assert_int_equal(take(env, limiter, key, 1)->verdict, BELAY_ALLOWED);
    assert_error(belay_limiter_close(limiter, NULL), 0);
  }
}

ENV_TEST(a_ban_denies_everything) {
  belay_limit_t limits[] = {bucket_limit(1, S, 5),
                            {.kind = BELAY_LIMIT_LOG, .count = 5, .period_us = 5 * S}};
  for (size_t i = 0; i < 2; i++) {
    char key[] = {'k', (char)('0' + i), '\0'};
    belay_limiter_t *limiter = limiter_new(env, &limits[i], 1);
    limiter_at(limiter, T0);
    assert_result(ban(env, limiter, key, 0), BELAY_ALLOWED, 5, 0, 0); /* nothing is lifted */
    assert_result(take(env, limiter, key, 2), BELAY_ALLOWED, 3, 0, -2);
    assert_result(ban(env, limiter, key, 60 * S), BELAY_ALLOWED, 0, 0, 60 * S);
    limiter_at(limiter, T0 + 10 * S);
    assert_result(take(env, limiter, key, 1), BELAY_DENIED, 0, 50 * S, 50 * S);
    assert_true(take(env, limiter, key, 1)->banned);
    assert_result(peek(env, limiter, key), BELAY_DENIED, 0, 50 * S, 50 * S);
    assert_result(take(env, limiter, key, 6), BELAY_NEVER, 0, -1, -2);
    assert_result(ban(env, limiter, key, S), BELAY_ALLOWED, 0, 0, -2); /* the last counts */
    limiter_at(limiter, T0 + 11 * S - 1);
    assert_result(take(env, limiter, key, 1), BELAY_DENIED, 0, 1, 1);
    limiter_at(limiter, T0 + 11 * S);
    assert_result(take(env, limiter, key, 5), BELAY_ALLOWED, 0, 0, 5 * S);
    assert_result(ban(env, limiter, key, S), BELAY_ALLOWED, 0, 0, 5 * S);
    assert_result(take(env, limiter, key, 5), BELAY_DENIED, 0, 5 * S, 5 * S);
    assert_false(take(env, limiter, key, 5)->banned); /* the limit lasts longer */
    assert_result(ban(env, limiter, key, 0), BELAY_ALLOWED, 0, 0, 5 * S);
    /* taken tokens stay taken */
    assert_result(peek(env, limiter, key), BELAY_ALLOWED, 0, 0, 5 * S);
    assert_result(ban(env, limiter, key, S), BELAY_ALLOWED, 0, 0, 5 * S);
    assert_result(reset(env, limiter, key), BELAY_ALLOWED, 5, 0, 0);
    assert_result(peek(env, limiter, key), BELAY_ALLOWED, 5, 0, 0);
    assert_error(belay_limiter_close(limiter, NULL), 0);
  }
  assert_int_equal(server_keys(env->server), 0);
}

/* ---- keys ---- */

static void expect_key(env_t *env, const char *name) {
  if (server_integer(env->server, "EXISTS", name, NULL) != 1)
    fail_msg("there is no key %s", name);
}

ENV_TEST(key_names) {
  static const struct {
    const char *key;
    size_t len;
    const char *name;
  } rows[] = {
      {"plain", 5, "belay::limit::test::{plain}"},
      {"a:b", 3, "belay::limit::test::{a:b}"},
      {"a::b", 4, "belay::limit::test::{a%3A:b}"},
      {"{a}", 3, "belay::limit::test::{%7Ba%7D}"},
      {"}::ban", 6, "belay::limit::test::{%7D%3A:ban}"},
      {"a\0b", 3, "belay::limit::test::{a%00b}"},
      {"a\0", 2, "belay::limit::test::{a%00}"},
      {"100%", 4, "belay::limit::test::{100%25}"},
      {"\xff\r\n", 3, "belay::limit::test::{\xff%0D%0A}"},
  };
  enum { N = sizeof rows / sizeof *rows };
  belay_limiter_t *limiter = limiter_of(env, bucket_limit(1, 3600 * S, 1));
  ask_t ask = {0};
  for (size_t i = 0; i < N; i++) {
    assert_int_equal(
        answer(&ask, belay_limiter_take(limiter, asked(env, &ask),
                                        belay_bytes(rows[i].key, rows[i].len), 1, on_answer))
            ->verdict,
        BELAY_ALLOWED);
    expect_key(env, rows[i].name);
  }
  char longest[BELAY_LIMITER_KEY_MAX];
  memset(longest, '{', sizeof longest); /* three times as long, escaped */
  assert_int_equal(
      answer(&ask, belay_limiter_take(limiter, asked(env, &ask),
                                      belay_bytes(longest, sizeof longest), 1, on_answer))
          ->verdict,
      BELAY_ALLOWED);
  assert_int_equal(server_keys(env->server), N + 1);
}

static belay_client_t *connect_in(env_t *env, const char *wide, const char *narrow) {
  const char *parts[] = {wide, narrow};
  belay_client_options_t options = client_options();
  options.namespace_parts = parts;
  options.namespace_count = narrow == NULL ? 1 : 2;
  return env_connect(env, server_url(env->server), &options);
}

/* One name in one namespace is one; everything else is another. */
ENV_TEST(names_and_namespaces) {
  belay_limit_t limit = bucket_limit(1, 3600 * S, 1);
  belay_limiter_options_t options = limiter_options(&limit, 1);
  belay_client_t *same = connect_in(env, "belay", NULL), *other = connect_in(env, "shop", NULL),
                 *inner = connect_in(env, "shop", "test");
  belay_limiter_t *first = limiter_with(env, env->client, &options);
  assert_int_equal(take(env, first, "k", 1)->verdict, BELAY_ALLOWED);
  assert_int_equal(take(env, limiter_with(env, same, &options), "k", 1)->verdict, BELAY_DENIED);
  assert_int_equal(take(env, limiter_with(env, other, &options), "k", 1)->verdict, BELAY_ALLOWED);
  assert_int_equal(take(env, limiter_with(env, inner, &options), "k", 1)->verdict, BELAY_ALLOWED);
  static const char *const names[] = {"", "test2", "{test}", "test::", "te\nst"};
  for (size_t i = 0; i < 5; i++) {
    options.name = belay_string(names[i]);
    assert_int_equal(take(env, limiter_with(env, env->client, &options), "k", 1)->verdict,
                     BELAY_ALLOWED);
  }
  assert_int_equal(server_keys(env->server), 8);
  expect_key(env, "belay::limit::test::{k}");
  expect_key(env, "belay::limit::{k}");
  expect_key(env, "belay::limit::%7Btest%7D::{k}");
  expect_key(env, "belay::limit::test%3A%3A::{k}");
  expect_key(env, "shop::limit::test::{k}");
  expect_key(env, "shop::test::limit::test::{k}");
}

/* ---- waiting ---- */

ENV_TEST(wait_until_token_arrives) {
  belay_limiter_t *limiter = limiter_of(env, bucket_limit(10, SECOND, 2));
  ask_t asks[5] = {0};
  int64_t begun = clock_now();
  for (int i = 0; i < 5; i++)
    start_wait(env, limiter, &asks[i], "k", 1, SECOND);
  for (int i = 0; i < 5; i++) {
    assert_result(answer(&asks[i], 0), BELAY_ALLOWED, -2, 0, -2);
    assert_true(clock_since_ms(begun) >= (i < 2 ? 0 : (i - 1) * 100 - 20));
  }
  /* Too late, too many. */
  ask_t ask = {0};
  belay_limit_t rare = bucket_limit(1, S, 2);
  limiter = limiter_new(env, &rare, 1);
  assert_int_equal(take(env, limiter, "rare", 1)->verdict, BELAY_ALLOWED);
  assert_result(answer(&ask, belay_limiter_wait(limiter, asked(env, &ask), belay_string("rare"), 2,
                                                SECOND, on_answer)),
                BELAY_DENIED, -2, -2, -2);
  assert_result(answer(&ask, belay_limiter_wait(limiter, asked(env, &ask), belay_string("rare"), 3,
                                                SECOND, on_answer)),
                BELAY_NEVER, -1, -1, -1);
}

ENV_TEST(a_canceled_wait_gives_back) {
  belay_limit_t limit = bucket_limit(1, 10 * SECOND, 2);
  belay_limiter_t *limiter = limiter_new(env, &limit, 1);
  assert_result(take(env, limiter, "k", 2), BELAY_ALLOWED, 0, 0, -2);
  ask_t ask = {0};
  start_wait(env, limiter, &ask, "k", 1, 60 * SECOND);
  env_run_for(env, 50);
  int64_t reset = peek(env, limiter, "k")->reset_after_us;
  assert_true(reset > 25 * SECOND && reset <= 30 * SECOND);
  assert_error(belay_request_cancel(&ask.request), 0);
  assert_int_equal(answer(&ask, 0)->cause, BELAY_ECANCELED);
  reset = peek(env, limiter, "k")->reset_after_us;
  assert_true(reset > 15 * SECOND && reset <= 20 * SECOND);
  /* The same at a close, answered already and on the way. */
  for (int ms = 0; ms <= 50; ms += 50) {
    start_wait(env, limiter, &ask, "k", 1, 60 * SECOND);
    env_run_for(env, ms);
    assert_error(belay_limiter_close(limiter, NULL), 0);
    assert_int_equal(answer(&ask, 0)->cause, BELAY_ECANCELED);
    env_settle(env);
    limiter = limiter_new(env, &limit, 1);
    reset = peek(env, limiter, "k")->reset_after_us;
    assert_true(reset > 10 * SECOND && reset <= 20 * SECOND);
  }
}
