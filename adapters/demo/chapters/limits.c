/* Chapters about limits: a token bucket with waiting requests, and denials from memory. */
#include "demo/chapters.h"

enum { GRACE_MS = 500 }; /* for a slow machine */

static belay_limiter_t *make_limiter(demo_t *demo, const belay_limit_t *limit) {
  belay_limiter_t *limiter = NULL;
  belay_limiter_options_t options;
  belay_limiter_options_init(&options);
  options.limits = limit;
  options.limits_len = 1;
  (void)demo_check(demo, "making a limiter",
                   belay_limiter_new(demo->client[DEMO_A], &options, &limiter));
  return limiter;
}

/* ---- rate ---- */

enum { WAITERS = 5, BURST = 2, PERIOD_MS = 500, EARLY_MS = 20 };

typedef struct rate {
  demo_t *demo;
  belay_request_t request[WAITERS];
  uint64_t at[WAITERS];
  unsigned over;
  bool in_order;
} rate_t;

static void on_turn(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  rate_t *rate = request->data;
  unsigned i = (unsigned)(request - rate->request);
  rate->at[i] = uv_hrtime();
  rate->in_order = rate->in_order && i == rate->over++;
  if (result->verdict != BELAY_ALLOWED)
    demo_trouble(rate->demo, "waiting for a token", status);
  else
    demo_event(rate->demo, rate->at[i], "%u may act: %s", i + 1,
               result->wait_us == 0 ? "there was a token" : "its token has come");
}

static void conclude(const rate_t *rate, uint64_t asked) {
  demo_t *demo = rate->demo;
  bool evenly = true;
  for (unsigned i = BURST; i < WAITERS; i++) {
    uint64_t due = asked + (i - BURST + UINT64_C(1)) * PERIOD_MS * DEMO_MS;
    evenly = evenly && rate->at[i] + EARLY_MS * DEMO_MS >= due &&
             rate->at[i] <= due + GRACE_MS * DEMO_MS;
  }
  demo_print("\n");
  demo_fact(demo, rate->at[BURST - 1] - asked <= GRACE_MS * DEMO_MS,
            "two could act at once, after %.0f ms", 1e3 * demo_seconds(asked, rate->at[BURST - 1]));
  demo_fact(demo, evenly && rate->in_order,
            "the others in their order, after %.3f, %.3f and %.3f s: two a second",
            demo_seconds(asked, rate->at[2]), demo_seconds(asked, rate->at[3]),
            demo_seconds(asked, rate->at[4]));
}

void chapter_rate(demo_t *demo) {
  static const belay_limit_t limit = {.kind = BELAY_LIMIT_BUCKET,
                                      .count = 1,
                                      .period_us = PERIOD_MS * INT64_C(1000),
                                      .burst = BURST};
  _Static_assert(WAITERS == 5, "as the texts say");
  rate_t rate = {.demo = demo, .in_order = true};
  belay_limiter_t *limiter = make_limiter(demo, &limit);
  uint64_t asked = uv_hrtime();
  for (unsigned i = 0; i < WAITERS && limiter != NULL; i++) {
    rate.request[i] = (belay_request_t){.data = &rate, .timeout_ms = 1000};
    (void)demo_check(demo, "asking for a token",
                     belay_limiter_wait(limiter, &rate.request[i], belay_string("door"), 1,
                                        INT64_C(30000000), on_turn));
  }
  demo_run(demo);
  if (rate.over == WAITERS)
    conclude(&rate, asked);
  (void)belay_limiter_close(limiter, NULL);
}

/* ---- address ---- */

enum { CALLS = 10, MOST = 3, MINUTE_MS = 60000 };

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
  belay_limiter_t *limiter = make_limiter(demo, &limit);
  belay_limiter_stats_t stats;
  unsigned allowed = 0, from_memory = 0;
  double wait_s = 0; /* as the first denial says */
  if (limiter == NULL)
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
