/* Limiters that answer from memory: denials that are remembered, and belay_limiter_try(). */
#include "support/fixtures/limit/asks.h"

#define MILLI INT64_C(1000)
#define S INT64_C(1000000)

static belay_limiter_t *remembering(env_t *env, const belay_limit_t *limits, size_t n) {
  belay_limiter_options_t options = limiter_options(limits, n);
  options.max_denied = 100;
  return limiter_with(env, env->client, &options);
}

ENV_TEST(a_denial_is_remembered) {
  belay_limit_t limit = bucket_limit(1, 400 * MILLI, 3);
  belay_limiter_t *limiter = remembering(env, &limit, 1);
  belay_limiter_result_t result;
  assert_said(take(env, limiter, "k", 2), BELAY_ALLOWED, BELAY_SOURCE_SERVER);
  assert_int_equal(try_take(env, limiter, "k", 2, &result), BELAY_EAGAIN);
  result = *take(env, limiter, "k", 2);
  int64_t denied_at = clock_now();
  assert_said(&result, BELAY_DENIED, BELAY_SOURCE_SERVER);
  int64_t retry = result.retry_after_us;
  assert_true(retry > 200 * MILLI && retry <= 400 * MILLI);
  uint64_t asked = limiter_stats(limiter).asked;
  result = *take(env, limiter, "k", 2);
  if (clock_since_ms(denied_at) < 200) { /* this machine does not stand still */
    assert_said(&result, BELAY_DENIED, BELAY_SOURCE_DENIAL);
    assert_true(result.retry_after_us > 0 && result.retry_after_us <= retry);
    assert_int_equal(result.remaining, -1);
    assert_int_equal(result.reset_after_us, -1);
    assert_int_equal(try_take(env, limiter, "k", 3, &result), 0); /* more is denied too */
    assert_said(&result, BELAY_DENIED, BELAY_SOURCE_DENIAL);
    assert_int_equal(try_take(env, limiter, "k", 1, &result), BELAY_EAGAIN); /* and less is not */
    assert_int_equal(try_take(env, limiter, "other", 2, &result), BELAY_EAGAIN);
    assert_int_equal(limiter_stats(limiter).asked, asked);
    assert_int_equal(limiter_stats(limiter).denials, 2);
    assert_int_equal(limiter_stats(limiter).denied_keys, 1);
  }
  env_run_for(env, retry / MILLI + 2);
  assert_int_equal(try_take(env, limiter, "k", 2, &result), BELAY_EAGAIN);
  assert_int_equal(limiter_stats(limiter).denied_keys, 0);
  assert_said(take(env, limiter, "k", 2), BELAY_ALLOWED, BELAY_SOURCE_SERVER);
}

/* The denial cache admits almost nothing later than the server would. */
ENV_TEST(denials_end_in_time) {
  belay_limit_t limit = bucket_limit(100, S, 5);
  belay_limiter_t *limiter = remembering(env, &limit, 1);
  belay_limiter_result_t result;
  unsigned admitted = 0, tried = 0;
  int64_t began = clock_now();
  while (clock_since_ms(began) < 1000) {
    tried++;
    int error = try_take(env, limiter, "k", 1, &result);
    if (error == BELAY_EAGAIN)
      admitted += take(env, limiter, "k", 1)->verdict == BELAY_ALLOWED;
    else
      assert_said(&result, BELAY_DENIED, BELAY_SOURCE_DENIAL);
  }
  assert_in_range(admitted, 60, 6 + (clock_since_ms(began) + 9) / 10);
  assert_true(limiter_stats(limiter).asked <= 3 * admitted + 3);
  assert_true(tried > 100 * admitted);
}

/* Full; and then denied once, so that it is remembered. */
static belay_receipt_t fill(env_t *env, belay_limiter_t *limiter, int64_t cost) {
  const belay_limiter_result_t *result = take(env, limiter, "k", cost);
  assert_said(result, BELAY_ALLOWED, BELAY_SOURCE_SERVER);
  belay_receipt_t receipt = result->receipt;
  assert_said(take(env, limiter, "k", cost), BELAY_DENIED, BELAY_SOURCE_SERVER);
  assert_said(take(env, limiter, "k", cost), BELAY_DENIED, BELAY_SOURCE_DENIAL);
  return receipt;
}

ENV_TEST(freeing_operations_end_denials) {
  static const belay_limit_t limits[] = {
      {.kind = BELAY_LIMIT_BUCKET, .count = 4, .period_us = 3600 * S},
      {.kind = BELAY_LIMIT_LOG, .count = 4, .period_us = 3600 * S},
  };
  for (size_t i = 0; i < 2; i++) {
    belay_limiter_t *limiter = remembering(env, &limits[i], 1);
    ask_t ask = {0};
    server_do(env->server, "FLUSHALL", NULL);
    belay_receipt_t receipt = fill(env, limiter, 4);
    answer(&ask, belay_limiter_refund(limiter, asked(env, &ask), belay_string("k"), &receipt, 4,
                                      on_answer));
    assert_in_range(ask.result.returned, 3, 4); /* less what leaked */
    fill(env, limiter, 4);
    answer(&ask, belay_limiter_reset(limiter, asked(env, &ask), belay_string("k"), on_answer));
    fill(env, limiter, 4);
    belay_limit_t larger = limits[i];
    larger.count = 8;
    assert_error(belay_limiter_reconfigure(limiter, &larger, 1), 0);
    assert_said(take(env, limiter, "k", 4), BELAY_ALLOWED, BELAY_SOURCE_SERVER);

    answer(&ask, belay_limiter_reset(limiter, asked(env, &ask), belay_string("k"), on_answer));
    answer(&ask,
           belay_limiter_ban(limiter, asked(env, &ask), belay_string("k"), 60 * S, on_answer));
    assert_true(take(env, limiter, "k", 1)->banned);
    const belay_limiter_result_t *result = take(env, limiter, "k", 1);
    assert_said(result, BELAY_DENIED, BELAY_SOURCE_DENIAL);
    assert_true(result->banned);
    assert_true(result->retry_after_us > 50 * S);
    answer(&ask, belay_limiter_ban(limiter, asked(env, &ask), belay_string("k"), 0, on_answer));
    assert_said(take(env, limiter, "k", 1), BELAY_ALLOWED, BELAY_SOURCE_SERVER);
    close_limiter(env, limiter);
  }
}

/* A denial and its cancellation are in flight together. */
ENV_TEST(denials_in_flight_are_forgotten) {
  belay_limit_t limit = bucket_limit(4, 3600 * S, 4);
  belay_limiter_t *limiter = remembering(env, &limit, 1);
  ask_t denied = {0}, reset = {0};
  assert_said(take(env, limiter, "k", 4), BELAY_ALLOWED, BELAY_SOURCE_SERVER);
  start_take(env, limiter, &denied, "k", 4);
  answer(&reset, belay_limiter_reset(limiter, asked(env, &reset), belay_string("k"), on_answer));
  assert_said(answer(&denied, 0), BELAY_DENIED, BELAY_SOURCE_SERVER);
  assert_int_equal(limiter_stats(limiter).denied_keys, 0);
  assert_said(take(env, limiter, "k", 4), BELAY_ALLOWED, BELAY_SOURCE_SERVER);
  start_take(env, limiter, &denied, "k", 4);
  assert_error(belay_limiter_reconfigure(limiter, &limit, 1), 0);
  assert_said(answer(&denied, 0), BELAY_DENIED, BELAY_SOURCE_SERVER);
  assert_int_equal(limiter_stats(limiter).denied_keys, 0);
}

/* A remembered denial names the same window. Keys are compared byte by byte, also escaped ones. */
ENV_TEST(cached_denials) {
  belay_limit_t limits[] = {{.kind = BELAY_LIMIT_FIXED, .count = 5, .period_us = 60 * S},
                            {.kind = BELAY_LIMIT_SLIDING, .count = 2, .period_us = 3600 * S}};
  belay_limiter_t *limiter = remembering(env, limits, 2);
  static const char *const keys[] = {"a", "{a}", "::", ":", "%41", "A", "a\001"};
  belay_limiter_result_t result;
  for (size_t i = 0; i < 7; i++) {
    assert_said(take(env, limiter, keys[i], 2), BELAY_ALLOWED, BELAY_SOURCE_SERVER);
    assert_int_equal(try_take(env, limiter, keys[i], 1, &result), BELAY_EAGAIN);
    assert_int_equal(take(env, limiter, keys[i], 1)->window, 1);
    assert_int_equal(try_take(env, limiter, keys[i], 1, &result), 0);
    assert_said(&result, BELAY_DENIED, BELAY_SOURCE_DENIAL);
    assert_int_equal(result.window, 1);
    assert_false(result.banned);
  }
  assert_int_equal(limiter_stats(limiter).denied_keys, 7);
}

/* The cache has at most its capacity, and forgets the key with the earliest retry time first. */
ENV_TEST(the_bound_of_what_is_remembered) {
  belay_limit_t limit = bucket_limit(10, 1000 * S, 10);
  belay_limiter_options_t options = limiter_options(&limit, 1);
  options.max_denied = 3;
  belay_limiter_t *limiter = limiter_with(env, env->client, &options);
  belay_limiter_result_t result;
  for (char c = 'a'; c < 'a' + 8; c++) { /* the later, the sooner it would be admitted */
    char key[2] = {c, 0};
    assert_said(take(env, limiter, key, 10), BELAY_ALLOWED, BELAY_SOURCE_SERVER);
    assert_said(take(env, limiter, key, 'a' + 8 - c), BELAY_DENIED, BELAY_SOURCE_SERVER);
    assert_in_range(limiter_stats(limiter).denied_keys, 1, 3);
  }
  assert_int_equal(try_take(env, limiter, "a", 8, &result), 0);
  assert_int_equal(try_take(env, limiter, "b", 7, &result), 0);
  assert_int_equal(try_take(env, limiter, "c", 6, &result), BELAY_EAGAIN);
  assert_int_equal(try_take(env, limiter, "h", 1, &result), 0);
}

ENV_TEST(answers_of_the_policy) {
  belay_limit_t limit = bucket_limit(5, S, 5);
  belay_limit_t infinite = {.kind = BELAY_LIMIT_BUCKET, .count = BELAY_INFINITE};
  belay_limiter_t *limiter = remembering(env, &limit, 1);
  belay_limiter_result_t result;
  assert_int_equal(try_take(env, limiter, "k", 6, &result), 0);
  assert_said(&result, BELAY_NEVER, BELAY_SOURCE_POLICY);
  assert_int_equal(result.retry_after_us, -1);
  assert_int_equal(try_take(env, limiter, "k", 5, &result), BELAY_EAGAIN);
  assert_int_equal(try_take(env, limiter, "k", 0, &result), BELAY_EAGAIN);
  assert_error(belay_limiter_reconfigure(limiter, &infinite, 1), 0);
  assert_int_equal(try_take(env, limiter, "k", INT64_MAX, &result), 0);
  assert_said(&result, BELAY_ALLOWED, BELAY_SOURCE_POLICY);
  assert_int_equal(result.remaining, BELAY_INFINITE);
  assert_int_equal(try_take(env, limiter, "k", 0, &result), 0);
  assert_int_equal(limiter_stats(limiter).asked, 0);

  assert_int_equal(try_take(env, NULL, "k", 1, &result), BELAY_EINVAL);
  assert_int_equal(try_take(env, limiter, "", 1, &result), BELAY_EINVAL);
  assert_int_equal(try_take(env, limiter, "k", -1, &result), BELAY_EINVAL);
  assert_int_equal(try_take(env, limiter, "k", 1, NULL), BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "result: NULL");
  assert_error(belay_limiter_close(limiter, NULL), 0);
  assert_int_equal(try_take(env, limiter, "k", 1, &result), BELAY_ECLOSING);
}

/* A million answers from memory, and not one allocation. */
ENV_TEST(a_try_allocates_nothing) {
  belay_limit_t limit = bucket_limit(2000000, 3600 * S, 2000000);
  belay_limiter_options_t options = limiter_options(&limit, 1);
  options.max_denied = 10;
  options.lease_tokens = 1999000;
  options.lease_ms = 60000;
  belay_limiter_t *limiter = limiter_with(env, env->client, &options);
  belay_limiter_result_t result;
  assert_said(take(env, limiter, "k", 1), BELAY_ALLOWED, BELAY_SOURCE_LEASE);
  assert_said(take(env, limiter, "denied", 2000000), BELAY_ALLOWED, BELAY_SOURCE_SERVER);
  assert_said(take(env, limiter, "denied", 1000), BELAY_DENIED, BELAY_SOURCE_SERVER);
  size_t before = env->allocations;
  for (int i = 0; i < 300000; i++) {
    assert_true(try_take(env, limiter, "k", 1, &result) == 0 && result.verdict == BELAY_ALLOWED);
    assert_true(try_take(env, limiter, "denied", 1000, &result) == 0 &&
                result.verdict == BELAY_DENIED);
    assert_true(try_take(env, limiter, "unknown", 1, &result) == BELAY_EAGAIN);
  }
  assert_int_equal(env->allocations, before);
  assert_int_equal(limiter_stats(limiter).from_leases, 300001);
  assert_int_equal(limiter_stats(limiter).denials, 300000);
}
