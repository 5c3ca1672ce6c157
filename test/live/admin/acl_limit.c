/* Limiters as a least-privilege user, and as a user without one of these rights. */
#include <stdio.h>

#include "support/fixtures/limit/asks.h"
#include "support/load/grants.h"
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
static int use(bed_t *bed, belay_limiter_t *limiter, const char *key) {
  MUST(said(take(bed, limiter, key, 3), BELAY_ALLOWED));
  MUST(said(peek(bed, limiter, key), BELAY_ALLOWED));
  belay_limiter_result_t result = *take(bed, limiter, key, 2);
  MUST(said(&result, BELAY_ALLOWED));
  MUST(said(take(bed, limiter, key, 1), BELAY_DENIED));
  MUST(said(refund(bed, limiter, key, &result.receipt, 1), BELAY_ALLOWED));
  MUST(said(penalty(bed, limiter, key, 5), BELAY_ALLOWED));
  MUST(said(ban(bed, limiter, key, 60 * S), BELAY_ALLOWED));
  MUST(said(take(bed, limiter, key, 1), BELAY_DENIED));
  MUST(said(ban(bed, limiter, key, 0), BELAY_ALLOWED));
  MUST(said(reset(bed, limiter, key), BELAY_ALLOWED));
  return said(take(bed, limiter, key, 5), BELAY_ALLOWED);
}

static int limiter_chore(bed_t *bed) {
  static const belay_limit_t limits[] = {
      {.kind = BELAY_LIMIT_BUCKET, .count = 5, .period_us = HOUR, .burst = 5},
      {.kind = BELAY_LIMIT_FIXED, .count = 5, .period_us = HOUR},
      {.kind = BELAY_LIMIT_SLIDING, .count = 5, .period_us = HOUR},
      {.kind = BELAY_LIMIT_LOG, .count = 5, .period_us = HOUR},
  };
  static const char *const keys[] = {"a", "b", "c", "d"};
  belay_limiter_t *limiter = NULL;
  for (size_t i = 0; i < 4; i++) {
    limiter = limiter_new(bed, &limits[i], 1);
    MUST(use(bed, limiter, keys[i]));
  }
  limiter_at(limiter, HOUR); /* the clock steps back */
  MUST(said(take(bed, limiter, "d", 1), BELAY_DENIED));
  limiter = limiter_new(bed, limits, 1);
  MUST(said(take(bed, limiter, "f", 5), BELAY_ALLOWED));
  belay_limiter_result_t result = *reserve(bed, limiter, "f", 1, HOUR);
  MUST(said(&result, BELAY_ALLOWED));
  return said(unreserve(bed, limiter, "f", &result.reservation), BELAY_ALLOWED);
}

TEST(limiters) {
  grants_check(&(chore_t){"limiter", limiter_chore, NULL, NULL, NULL, 0});
}

static int dipped(dip_t *dip, int error, bool applied) {
  assert_error(error, 0);
  MUST(end_of_dip(dip));
  assert_int_equal(dip->state.applied, applied);
  return 0;
}

static int bucket_chore(bed_t *bed) {
  static pail_t pail;
  static dip_t dip;
  pail_new(&pail, bed, 10, true);
  MUST(dipped(&dip, begin_fetch(&pail, &dip, "k", 4), true));
  MUST(dipped(&dip, begin_fetch(&pail, &dip, "k", 7), false));
  MUST(dipped(&dip, begin_add(&pail, &dip, "k", 2, 0), true));
  MUST(dipped(&dip, begin_add(&pail, &dip, "k", 2, 0), false));
  MUST(dipped(&dip, begin_read(&pail, &dip, "k"), false));
  assert_int_equal(dip.state.tokens, 8);
  return dipped(&dip, begin_delete(&pail, &dip, "k"), true);
}

TEST(buckets) {
  grants_check(&(chore_t){"bucket", bucket_chore, NULL, NULL, NULL, 0});
}

static int refiller_chore(bed_t *bed) {
  static pail_t pail;
  static hand_t hand;
  static crew_t crew;
  pail_new(&pail, bed, 1000000, false);
  belay_refiller_options_t options = refiller_options("me", 1, 100);
  options.tokens = 7;
  hand_new(&hand, &pail, &options);
  hand_add(&hand, "told", 7);
  const char *text;
  bed_until(bed,
            (text = server_string(bed->server, "GET", "belay::bucket::{told}", NULL)) != NULL &&
                atoll(text) >= 7);
  ask_members(&hand, &crew);
  assert_int_equal(state_in(&crew, "me"), BELAY_REFILLER_ELECTED);
  close_hand(&hand);
  return 0;
}

TEST(refillers) {
  grants_check(&(chore_t){"refiller", refiller_chore, NULL, NULL, "bucket semaphore", 0});
}
