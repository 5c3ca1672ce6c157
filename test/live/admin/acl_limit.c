/* Limiters as a least-privilege user, and as a user without one of these rights. */
#include <stdio.h>

#include "support/fixtures/limit/asks.h"
#include "support/load/acl_cases.h"
#include "support/fixtures/limit/refillers.h"

#define S INT64_C(1000000)
#define HOUR (3600 * S)

/* The status; and where that is 0, the verdict must be that one. */
static int said(const belay_limiter_result_t *result, belay_verdict_t verdict) {
  if (result->cause == 0)
    assert_int_equal(result->verdict, verdict);
  return result->cause;
}

/* With a limit of 5, of which nothing comes back soon. */
static int use(env_t *env, belay_limiter_t *limiter, const char *key) {
  MUST(said(take(env, limiter, key, 3), BELAY_ALLOWED));
  MUST(said(peek(env, limiter, key), BELAY_ALLOWED));
  belay_limiter_result_t result = *take(env, limiter, key, 2);
  MUST(said(&result, BELAY_ALLOWED));
  MUST(said(take(env, limiter, key, 1), BELAY_DENIED));
  MUST(said(refund(env, limiter, key, &result.receipt, 1), BELAY_ALLOWED));
  MUST(said(penalty(env, limiter, key, 5), BELAY_ALLOWED));
  MUST(said(ban(env, limiter, key, 60 * S), BELAY_ALLOWED));
  MUST(said(take(env, limiter, key, 1), BELAY_DENIED));
  MUST(said(ban(env, limiter, key, 0), BELAY_ALLOWED));
  MUST(said(reset(env, limiter, key), BELAY_ALLOWED));
  return said(take(env, limiter, key, 5), BELAY_ALLOWED);
}

static int limiter_case(env_t *env) {
  static const belay_limit_t limits[] = {
      {.kind = BELAY_LIMIT_BUCKET, .count = 5, .period_us = HOUR, .burst = 5},
      {.kind = BELAY_LIMIT_FIXED, .count = 5, .period_us = HOUR},
      {.kind = BELAY_LIMIT_SLIDING, .count = 5, .period_us = HOUR},
      {.kind = BELAY_LIMIT_LOG, .count = 5, .period_us = HOUR},
  };
  static const char *const keys[] = {"a", "b", "c", "d"};
  belay_limiter_t *limiter = NULL;
  for (size_t i = 0; i < 4; i++) {
    limiter = limiter_new(env, &limits[i], 1);
    MUST(use(env, limiter, keys[i]));
  }
  limiter_at(limiter, HOUR); /* the clock steps back */
  MUST(said(take(env, limiter, "d", 1), BELAY_DENIED));
  limiter = limiter_new(env, limits, 1);
  MUST(said(take(env, limiter, "f", 5), BELAY_ALLOWED));
  belay_limiter_result_t result = *reserve(env, limiter, "f", 1, HOUR);
  MUST(said(&result, BELAY_ALLOWED));
  return said(unreserve(env, limiter, "f", &result.reservation), BELAY_ALLOWED);
}

TEST(limiters) {
  acl_case_check(&(acl_case_t){"limiter", limiter_case, NULL, NULL, NULL, 0});
}

static int dipped(bucket_op_t *op, int error, bool applied) {
  assert_error(error, 0);
  MUST(end_of_bucket_op(op));
  assert_int_equal(op->state.applied, applied);
  return 0;
}

static int bucket_case(env_t *env) {
  static bucket_t bucket;
  static bucket_op_t op;
  bucket_open(&bucket, env, 10, true);
  MUST(dipped(&op, begin_fetch(&bucket, &op, "k", 4), true));
  MUST(dipped(&op, begin_fetch(&bucket, &op, "k", 7), false));
  MUST(dipped(&op, begin_add(&bucket, &op, "k", 2, 0), true));
  MUST(dipped(&op, begin_add(&bucket, &op, "k", 2, 0), false));
  MUST(dipped(&op, begin_read(&bucket, &op, "k"), false));
  assert_int_equal(op.state.tokens, 8);
  return dipped(&op, begin_delete(&bucket, &op, "k"), true);
}

TEST(buckets) {
  acl_case_check(&(acl_case_t){"bucket", bucket_case, NULL, NULL, NULL, 0});
}

static int refiller_case(env_t *env) {
  static bucket_t bucket;
  static refiller_t refiller;
  static places_t places;
  bucket_open(&bucket, env, 1000000, false);
  belay_refiller_options_t options = refiller_options("me", 1, 100);
  options.tokens = 7;
  refiller_open(&refiller, &bucket, &options);
  refiller_add(&refiller, "total", 7);
  const char *text;
  env_until(env,
            (text = server_string(env->server, "GET", "belay::bucket::{total}", NULL)) != NULL &&
                atoll(text) >= 7);
  read_places(&refiller, &places);
  assert_int_equal(state_in(&places, "me"), BELAY_REFILLER_ELECTED);
  close_refiller(&refiller);
  return 0;
}

TEST(refillers) {
  acl_case_check(&(acl_case_t){"refiller", refiller_case, NULL, NULL, "bucket semaphore", 0});
}
