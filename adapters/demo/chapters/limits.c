/* Chapter: a limiter that remembers denials. */
#include "demo/chapters.h"

enum { CALLS = 10, MOST = 3, MINUTE_MS = 60000 };
enum { GRACE_MS = 500 }; /* for a slow machine */

static void on_taken(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  demo_t *demo = request->data;
  *(belay_limiter_result_t *)demo->out = *result;
  demo_done(demo, status);
}

static belay_limiter_result_t take(demo_t *demo, belay_limiter_t *limiter, const char *address) {
  belay_limiter_result_t result = {.verdict = BELAY_DENIED};
  demo->out = &result;
  (void)demo_await(demo, "taking a token",
                   belay_limiter_take(limiter, &demo->request, belay_string(address), 1, on_taken));
  if (result.verdict == BELAY_ALLOWED)
    demo_event(demo, 0, "%-14s  allowed, %lld left", address, (long long)result.remaining);
  else
    demo_event(demo, 0, "%-14s  denied %s: again in %.3f s", address,
               result.source == BELAY_SOURCE_DENIAL ? "from memory" : "by the server",
               (double)result.retry_after_us / 1e6);
  return result;
}

void chapter_address(demo_t *demo) {
  static const belay_limit_t limit = {
      .kind = BELAY_LIMIT_FIXED, .count = MOST, .period_us = MINUTE_MS * INT64_C(1000)};
  static const char one[] = "192.0.2.7",
                    other[] = "198.51.100.23"; /* of documentation (RFC 5737) */
  belay_limiter_t *limiter;
  belay_limiter_options_t options;
  belay_limiter_stats_t stats;
  unsigned allowed = 0, from_memory = 0;
  double wait_s = 0; /* as the first denial says */
  belay_limiter_options_init(&options);
  options.limits = &limit;
  options.limits_len = 1;
  if (!demo_check(demo, "making a limiter",
                  belay_limiter_new(demo->client[DEMO_A], &options, &limiter)))
    return;
  for (unsigned i = 0; i < CALLS; i++) {
    belay_limiter_result_t result = take(demo, limiter, one);
    allowed += result.verdict == BELAY_ALLOWED && allowed == i;
    from_memory += result.source == BELAY_SOURCE_DENIAL;
    if (i == MOST)
      wait_s = (double)result.retry_after_us / 1e6;
  }
  bool passed = take(demo, limiter, other).verdict == BELAY_ALLOWED;
  belay_limiter_stats(limiter, &stats);
  demo_print("\n");
  demo_fact(demo, allowed == MOST, "of ten calls by %s the first three passed", one);
  demo_fact(demo, wait_s <= MINUTE_MS / 1e3 && wait_s >= (MINUTE_MS - GRACE_MS) / 1e3,
            "the fourth may come again in %.1f s: a minute after the first", wait_s);
  demo_fact(demo, from_memory == CALLS - MOST - 1 && stats.asked == MOST + 2,
            "the six after it cost nothing: the server was asked %llu times in all",
            (unsigned long long)stats.asked);
  demo_fact(demo, passed, "and %s, which has calls of its own, passed", other);
  (void)belay_limiter_close(limiter, NULL);
}
