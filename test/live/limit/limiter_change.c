/* Limiters whose policy changes while they run: neither a lock-out nor a reset. */
#include "support/fixtures/limit/asks.h"

#define S INT64_C(1000000000) /* stored values do not expire by the server's own clock meanwhile */
#define T0 INT64_C(1700000000000000)
#define KEY "belay::limit::test::{k}"

static void change(belay_limiter_t *limiter, belay_limit_t limit) {
  assert_error(belay_limiter_reconfigure(limiter, &limit, 1), 0);
}

ENV_TEST(more_or_less_of_a_bucket) {
  belay_limiter_t *limiter = limiter_of(env, bucket_limit(10, S, 10));
  limiter_at(limiter, T0);
  (void)taken(env, limiter, "k", 8);
  change(limiter, bucket_limit(10, S, 20)); /* owed tokens stay owed */
  assert_result(peek(env, limiter, "k"), BELAY_ALLOWED, 12, 0, 8 * S / 10);
  change(limiter, bucket_limit(2, S, 20)); /* and come back at the new rate */
  assert_result(peek(env, limiter, "k"), BELAY_ALLOWED, 12, 0, 4 * S);
  change(limiter, bucket_limit(2, S, 5)); /* but the debt is at most the burst */
  assert_result(take(env, limiter, "k", 1), BELAY_DENIED, 0, S / 2, 5 * S / 2);
  change(limiter, bucket_limit(3, 7 * S, 5)); /* a token is 7/3 s now */
  assert_result(take(env, limiter, "k", 1), BELAY_DENIED, 0, 7 * S / 3 + 1, 35 * S / 3 + 1);
  limiter_at(limiter, T0 + 7 * S); /* it has leaked under the policy of then */
  change(limiter, bucket_limit(1, 100 * S, 5));
  assert_result(peek(env, limiter, "k"), BELAY_ALLOWED, 3, 0, 200 * S);
}

/* As while a new policy is rolled out: no more than under the larger one alone, and no less than
 * under the smaller. */
ENV_TEST(policies_that_take_turns_keep_the_bound) {
  static const belay_limit_kind_t kinds[] = {BELAY_LIMIT_BUCKET, BELAY_LIMIT_FIXED,
                                             BELAY_LIMIT_SLIDING};
  enum { SECONDS = 60, TAKES = 600 };
  for (size_t k = 0; k < 3; k++) {
    bool bucket = kinds[k] == BELAY_LIMIT_BUCKET;
    belay_limit_t limits[2] = {{.kind = kinds[k], .count = bucket ? 1 : 10}, {0}};
    limits[0].period_us = bucket ? S : 10 * S;
    limits[0].burst = bucket ? 10 : 0;
    limits[1] = limits[0];
    *(bucket ? &limits[1].burst : &limits[1].count) = 12;
    belay_limiter_t *limiters[] = {limiter_new(env, &limits[0], 1),
                                   limiter_new(env, &limits[1], 1)};
    server_do(env->server, "FLUSHALL", NULL);
    int admitted = 0;
    for (int i = 0; i < TAKES; i++) {
      belay_limiter_t *limiter = limiters[i % 2];
      limiter_at(limiter, T0 + i * (SECONDS * S / TAKES));
      admitted += take(env, limiter, "k", 1)->verdict == BELAY_ALLOWED;
    }
    assert_between(admitted, SECONDS - 10, 12 + (SECONDS / 10) * 12);
    assert_error(belay_limiter_close(limiters[0], NULL), 0);
    assert_error(belay_limiter_close(limiters[1], NULL), 0);
  }
}

ENV_TEST(overdrafts_stay) {
  belay_limiter_t *limiter = limiter_of(env, bucket_limit(1, S, 10));
  limiter_at(limiter, T0);
  (void)penalty(env, limiter, "k", 16);
  change(limiter, bucket_limit(1, S, 4));
  assert_result(take(env, limiter, "k", 1), BELAY_DENIED, 0, 7 * S, 10 * S);
  change(limiter, bucket_limit(1, 2 * S, 4));
  assert_result(take(env, limiter, "k", 1), BELAY_DENIED, 0, 14 * S, 20 * S);
}

static const belay_limit_t kinds[] = {
    {.kind = BELAY_LIMIT_BUCKET, .count = 5, .period_us = 5 * S},
    {.kind = BELAY_LIMIT_FIXED, .count = 5, .period_us = 5 * S},
    {.kind = BELAY_LIMIT_FIXED, .count = 5, .period_us = 5 * S, .aligned = true},
    {.kind = BELAY_LIMIT_SLIDING, .count = 5, .period_us = 5 * S},
    {.kind = BELAY_LIMIT_BUCKET, .burst = 5, .period_us = 5 * S},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Every kind becomes every other, or itself with another period, alone and beside another. */
ENV_TEST(every_kind_becomes_every_other) {
  for (size_t i = 0; i < 2 * KINDS * 3 * KINDS; i++) {
    belay_limit_t from[2] = {kinds[i / (6 * KINDS)], bucket_limit(1, S, 5)};
    belay_limit_t to[2] = {kinds[i % KINDS], bucket_limit(1, S, 5)};
    size_t n = i / KINDS % 2 + 1;
    to[0].period_us = (int64_t[]){1, 5, 3600}[i / KINDS / 2 % 3] * S;
    belay_limiter_t *limiter = limiter_new(env, from, n);
    server_do(env->server, "FLUSHALL", NULL);
    limiter_at(limiter, T0);
    (void)taken(env, limiter, "k", 3);
    assert_error(belay_limiter_reconfigure(limiter, to, n), 0);
    assert_int_equal(peek(env, limiter, "k")->remaining, 2);
    const belay_limiter_result_t *result = take(env, limiter, "k", 3);
    int64_t retry = result->retry_after_us, reset_after = result->reset_after_us;
    assert_result(result, BELAY_DENIED, 2, -2, -2);
    assert_between(retry, 1, 2 * to[0].period_us + (n > 1) * 5 * S);
    assert_between(reset_after, retry, 2 * to[0].period_us + (n > 1) * 5 * S);
    (void)taken(env, limiter, "k", 2);
    reset_after = peek(env, limiter, "k")->reset_after_us;
    assert_between(server_integer(env->server, "PTTL", KEY, NULL), reset_after / 1000 - 5000,
                   reset_after / 1000 + 1);
    limiter_at(limiter, T0 + reset_after);
    assert_result(peek(env, limiter, "k"), BELAY_ALLOWED, 5, 0, 0);
    (void)taken(env, limiter, "k", 5);
    assert_error(belay_limiter_close(limiter, NULL), 0);
  }
}

/* Many takes in a short window, then few in a long window, whose units cannot express that many. */
ENV_TEST(a_short_window_becomes_a_very_long_one) {
  for (size_t i = 0; i < KINDS; i++)
    for (size_t j = 0; j < KINDS; j++) {
      belay_limit_t from = kinds[i], to = kinds[j];
      from.count = i == 4 ? 0 : 100000;
      from.burst = i == 4 ? 100000 : 0;
      to.period_us = INT64_C(1) << 49;
      belay_limiter_t *limiter = limiter_new(env, &from, 1);
      server_do(env->server, "FLUSHALL", NULL);
      limiter_at(limiter, T0);
      (void)taken(env, limiter, "k", 100000);
      change(limiter, to);
      assert_int_equal(peek(env, limiter, "k")->remaining, 0);
      assert_result(take(env, limiter, "k", 1), BELAY_DENIED, 0, -2, -2);
      change(limiter, from); /* and back */
      (void)take(env, limiter, "k", 1);
      limiter_at(limiter, T0 + 10 * S);
      assert_result(take(env, limiter, "k", 1), BELAY_ALLOWED, -2, 0, -2);
      assert_error(belay_limiter_close(limiter, NULL), 0);
    }
  assert_int_equal(client_stats(env).drops, 0);
}

ENV_TEST(windows_are_matched_by_their_place) {
  belay_limit_t limits[3] = {bucket_limit(1, S, 10),
                             bucket_limit(1, S, 100),
                             {.kind = BELAY_LIMIT_FIXED, .count = 6, .period_us = 60 * S}};
  belay_limiter_t *limiter = limiter_new(env, limits, 1);
  limiter_at(limiter, T0);
  (void)taken(env, limiter, "k", 8);
  assert_error(belay_limiter_reconfigure(limiter, limits, 3), 0); /* those that are new are fresh */
  assert_int_equal(peek(env, limiter, "k")->remaining, 2);
  (void)taken(env, limiter, "k", 2);
  assert_error(belay_limiter_reconfigure(limiter, limits + 1, 2), 0);
  /* The order of limits decides: the first had taken ten of a hundred, the second (two) is now
   * the window. */
  assert_int_equal(peek(env, limiter, "k")->remaining, 4);
  (void)taken(env, limiter, "k", 4);
  assert_int_equal(take(env, limiter, "k", 1)->window, 1);
  assert_error(belay_limiter_reconfigure(limiter, limits + 1, 1), 0);
  assert_int_equal(peek(env, limiter, "k")->remaining, 86);
}

ENV_TEST(a_log_with_another_count_or_period) {
  belay_limit_t limit = {.kind = BELAY_LIMIT_LOG, .count = 10, .period_us = 10 * S};
  belay_limiter_t *limiter = limiter_new(env, &limit, 1);
  for (int i = 0; i < 8; i++) {
    limiter_at(limiter, T0 + i * S);
    (void)taken(env, limiter, "k", 1);
  }
  limit.count = 4;
  change(limiter, limit);
  assert_result(take(env, limiter, "k", 1), BELAY_DENIED, 0, 7 * S, 10 * S);
  limit.count = 20;
  change(limiter, limit);
  assert_result(peek(env, limiter, "k"), BELAY_ALLOWED, 12, 0, 10 * S);
  limit.period_us = 2 * S;
  change(limiter, limit);
  assert_result(peek(env, limiter, "k"), BELAY_ALLOWED, 18, 0, 2 * S);
  ask_t ask = {0};
  belay_limit_t bucket = bucket_limit(1, S, 1);
  assert_error(belay_limiter_reconfigure(limiter, &bucket, 1), BELAY_EINVAL);
  assert_non_null(strstr(belay_detail(env->belay), "log"));
  belay_limiter_t *other = limiter_new(env, &bucket, 1);
  assert_error(belay_limiter_reconfigure(other, &limit, 1), BELAY_EINVAL);
  /* Nor do they understand each other's keys; and they leave them alone. */
  uint64_t print = print_of(env->server, KEY);
  assert_error(
      answer(&ask, belay_limiter_take(other, asked(env, &ask), belay_string("k"), 1, on_answer))
          ->cause,
      BELAY_EWRONGTYPE);
  assert_true(print_of(env->server, KEY) == print);
}

/* Each process converts the other's state, again and again: nothing is forgotten, and neither
 * process is locked out. */
ENV_TEST(two_processes_that_disagree) {
  belay_limit_t one = bucket_limit(7, 10 * S, 10), two = bucket_limit(11, 13 * S, 10);
  belay_limiter_t *limiter[] = {limiter_new(env, &one, 1), limiter_new(env, &two, 1)};
  int64_t at = T0, admitted = 0;
  limiter_at(limiter[0], at);
  (void)taken(env, limiter[0], "k", 10);
  for (int i = 0; i < 2000; i++) {
    limiter_at(limiter[i % 2], at += S / 100);
    admitted += take(env, limiter[i % 2], "k", 1)->verdict == BELAY_ALLOWED;
  }
  /* In 20: at least as many as under the slower one, at most as under the faster one. Conversions
   * round up. */
  assert_between(admitted, 14, 17);
}

ENV_TEST(a_change_while_a_request_is_pending) {
  belay_limit_t limits[4] = {bucket_limit(1, S, 10), bucket_limit(2, S, 20), bucket_limit(3, S, 30),
                             bucket_limit(4, S, 5)};
  belay_limiter_t *limiter = limiter_new(env, limits, 1);
  ask_t asks[8] = {0};
  for (size_t i = 0; i < 8; i++) {
    start_take(env, limiter, &asks[i], "k", 1);
    assert_error(belay_limiter_reconfigure(limiter, limits, i % 4 + 1), 0);
  }
  for (size_t i = 0; i < 8; i++)
    assert_int_equal(answer(&asks[i], 0)->verdict, BELAY_ALLOWED);
  assert_int_equal(asks[0].result.remaining, 9);
  assert_int_equal(asks[1].result.remaining, 8);
  assert_int_equal(asks[4].result.remaining, 4);
  start_take(env, limiter, &asks[0], "k", 1);
  assert_error(belay_limiter_reconfigure(limiter, limits, 1), 0);
  assert_error(belay_limiter_close(limiter, NULL), 0);
  assert_error(answer(&asks[0], 0)->cause, BELAY_ECANCELED);
}

/* While no limit applies, the server is not asked. The taken tokens remain stored, and a reset
 * deletes them. */
ENV_TEST(infinite_for_a_while) {
  belay_limit_t limit = bucket_limit(1, S, 10);
  belay_limiter_t *limiter = limiter_new(env, &limit, 1);
  limiter_at(limiter, T0);
  (void)taken(env, limiter, "k", 8);
  change(limiter, bucket_limit(BELAY_INFINITE, 0, 0));
  assert_int_equal(take(env, limiter, "k", 1000)->source, BELAY_SOURCE_POLICY);
  limiter_at(limiter, T0 + S);
  change(limiter, limit);
  assert_int_equal(peek(env, limiter, "k")->remaining, 3);
  change(limiter, bucket_limit(BELAY_INFINITE, 0, 0));
  ask_t ask = {0};
  assert_error(belay_limiter_ban(limiter, &ask.request, belay_string("k"), S, on_answer),
               BELAY_EINVAL);
  assert_non_null(strstr(belay_detail(env->belay), "infinite"));
  assert_int_equal(reset(env, limiter, "k")->verdict, BELAY_ALLOWED);
  assert_int_equal(server_keys(env->server), 0);
}
