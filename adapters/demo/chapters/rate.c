/* Chapter: a token bucket, and several who wait for their tokens. */
#include <string.h>

#include "demo/chapters.h"

enum { WAITERS = 5, BURST = 2, PERIOD_MS = 500, GRACE_MS = 500, EARLY_MS = 20 };
enum { HASTY_MS = 1000, HASTY_TOLD_MS = (WAITERS + 1 - BURST) * PERIOD_MS };
enum { WAIT_MS = 30000, CALL_MS = 1000 };
static const char key[] = "door";

typedef struct rate {
  demo_t *demo;
  belay_limiter_t *limiter;
  belay_request_t request[WAITERS], hasty;
  uint64_t asked, at[WAITERS];
  unsigned over; /* waiters */
  bool out_of_order;
  bool refused; /* the hasty one */
  double told;  /* and when it may come again, in seconds */
} rate_t;

static void on_turn(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  rate_t *rate = request->data;
  const term_t *term = &rate->demo->term;
  unsigned number = (unsigned)(request - rate->request);
  rate->at[number] = uv_hrtime();
  rate->out_of_order = rate->out_of_order || number != rate->over;
  rate->over++;
  if (result->verdict != BELAY_ALLOWED)
    demo_trouble(rate->demo, "waiting for a token", status);
  else
    demo_event(rate->demo, rate->at[number], "%s%u%s may act: %s", term_style(term, TERM_A),
               number + 1, term_style(term, TERM_NORMAL),
               result->wait_us == 0 ? "there was a token" : "its token has come");
}

static void on_hasty(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  rate_t *rate = request->data;
  const term_t *term = &rate->demo->term;
  (void)status;
  rate->refused = result->verdict == BELAY_DENIED;
  rate->told = (double)result->retry_after_us / 1e6;
  demo_event(rate->demo, 0, "%s6%s is told at once: not before %.1f s are over",
             term_style(term, TERM_B), term_style(term, TERM_NORMAL), rate->told);
}

/* All of them, in one go. */
static int ask(rate_t *rate) {
  int error = 0;
  rate->asked = uv_hrtime();
  for (unsigned i = 0; i < WAITERS && error == 0; i++) {
    rate->request[i] = (belay_request_t){.data = rate, .timeout_ms = CALL_MS};
    error = belay_limiter_wait(rate->limiter, &rate->request[i], key, strlen(key), 1,
                               WAIT_MS * INT64_C(1000), on_turn);
  }
  rate->hasty = (belay_request_t){.data = rate, .timeout_ms = CALL_MS};
  if (error == 0)
    error = belay_limiter_wait(rate->limiter, &rate->hasty, key, strlen(key), 1,
                               HASTY_MS * INT64_C(1000), on_hasty);
  return error;
}

static void conclude(const rate_t *rate) {
  demo_t *demo = rate->demo;
  bool evenly = true;
  for (unsigned i = BURST; i < WAITERS; i++) {
    uint64_t due = rate->asked + (i - BURST + UINT64_C(1)) * PERIOD_MS * DEMO_MS;
    evenly = evenly && rate->at[i] + EARLY_MS * DEMO_MS >= due &&
             rate->at[i] <= due + GRACE_MS * DEMO_MS;
  }
  term_print(&demo->term, "\n");
  demo_fact(demo, rate->at[BURST - 1] - rate->asked <= GRACE_MS * DEMO_MS,
            "two could act at once, after %.0f ms",
            1e3 * demo_seconds(rate->asked, rate->at[BURST - 1]));
  demo_fact(demo, evenly, "the others after %.3f, %.3f and %.3f s: two a second, and none too soon",
            demo_seconds(rate->asked, rate->at[2]), demo_seconds(rate->asked, rate->at[3]),
            demo_seconds(rate->asked, rate->at[4]));
  demo_fact(demo, !rate->out_of_order, "in the order in which they had asked");
  demo_fact(demo,
            rate->refused && rate->told <= HASTY_TOLD_MS / 1e3 &&
                rate->told >= (HASTY_TOLD_MS - GRACE_MS) / 1e3,
            "the sixth would have waited for %d s, needed %.1f, and took nothing from anybody",
            HASTY_MS / 1000, rate->told);
}

void chapter_rate(demo_t *demo) {
  static const belay_limit_t limit = {.kind = BELAY_LIMIT_BUCKET,
                                      .count = 1,
                                      .period_us = PERIOD_MS * INT64_C(1000),
                                      .burst = BURST};
  _Static_assert(WAITERS == 5, "as the texts say");
  rate_t rate = {.demo = demo, .limiter = demo_limiter(demo, &limit, 1)};
  if (rate.limiter == NULL)
    return;
  (void)demo_await(demo, "asking for a token", ask(&rate));
  if (rate.over == WAITERS)
    conclude(&rate);
  demo_limiter_close(demo, rate.limiter, &(const char *){key}, 1);
}
