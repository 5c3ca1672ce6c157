/* Chapter: a holder that works for longer than its ttl, and is kept by the watchdog. */
#include <stdio.h>

#include "demo/demo.h"

enum { TTL_MS = 900, WORK_MS = 3 * TTL_MS, LOOK_MS = TTL_MS / 4, BAR = 36 };

typedef struct watchdog {
  demo_t *demo;
  belay_lock_t *a, *b;
  uv_timer_t look; /* A's work: now and then it looks how long its lease still runs */
  uint64_t held;
  uint64_t calls; /* of B's client, before B asked for the lock */
  unsigned looks, looks_in_vain;
  bool lost;
} watchdog_t;

static void finish(watchdog_t *watchdog) {
  demo_lock_close(&watchdog->a);
  demo_lock_close(&watchdog->b);
  demo_timer_close(&watchdog->look);
}

static void give_up(watchdog_t *watchdog, const char *what, int error) {
  demo_trouble(watchdog->demo, what, error);
  finish(watchdog);
}

static uint64_t calls_of(const belay_client_t *client) {
  belay_client_stats_t stats;
  belay_client_stats(client, &stats);
  return stats.calls;
}

static void on_lost(belay_lock_t *lock, belay_lost_t reason) {
  watchdog_t *watchdog = belay_lock_data(lock);
  watchdog->lost = true;
  demo_event(watchdog->demo, 0, "A lost it: %s", belay_lost_name(reason));
}

static void on_released(belay_lock_t *lock, int status) {
  watchdog_t *watchdog = belay_lock_data(lock);
  demo_fact(watchdog->demo, status == 0, "A gave back what was still its own: %s",
            belay_err_name(status));
  finish(watchdog);
}

/* B has waited for as long as A works. */
static void on_b_over(belay_lock_t *lock, int status) {
  watchdog_t *watchdog = belay_lock_data(lock);
  demo_t *demo = watchdog->demo;
  uint64_t asked = calls_of(demo->client[DEMO_B]) - watchdog->calls;
  demo_timer_close(&watchdog->look);
  demo_event(demo, 0, "%sB%s gives up, and %sA%s is done", term_style(&demo->term, TERM_B),
             term_style(&demo->term, TERM_NORMAL), term_style(&demo->term, TERM_A),
             term_style(&demo->term, TERM_NORMAL));
  term_print(&demo->term, "\n");
  demo_fact(demo, !watchdog->lost && watchdog->looks > 0 && watchdog->looks_in_vain == 0,
            "A had the lock for %.1f s, three times its ttl, and never lost it",
            demo_seconds(watchdog->held, uv_hrtime()));
  demo_fact(demo, status == BELAY_ETIMEDOUT, "B asked %llu times and did not get it: %s",
            (unsigned long long)asked, belay_err_name(status));
  int error = belay_lock_release(watchdog->a, BELAY_DEFAULT, on_released);
  if (error != 0)
    give_up(watchdog, "A gives the lock back", error);
}

static void on_look(uv_timer_t *timer) {
  watchdog_t *watchdog = timer->data;
  const term_t *term = &watchdog->demo->term;
  int64_t left_ms = belay_lock_remaining_us(watchdog->a) / 1000;
  unsigned full = (unsigned)(left_ms * BAR / TTL_MS);
  char bar[BAR * 4 + 1];
  size_t n = 0;
  watchdog->looks++;
  watchdog->looks_in_vain += left_ms == 0;
  for (unsigned i = 0; i < BAR; i++)
    n += (size_t)snprintf(bar + n, sizeof bar - n, "%s",
                          term_glyph(term, i < full ? TERM_FULL : TERM_EMPTY));
  demo_event(watchdog->demo, 0, "%sA%s %s%s%s %4d ms left", term_style(term, TERM_A),
             term_style(term, TERM_NORMAL), term_style(term, left_ms > 0 ? TERM_GOOD : TERM_BAD),
             bar, term_style(term, TERM_NORMAL), (int)left_ms);
}

static void on_held(belay_lock_t *lock, int status) {
  watchdog_t *watchdog = belay_lock_data(lock);
  demo_t *demo = watchdog->demo;
  if (status != 0) {
    give_up(watchdog, "A takes the lock", status);
    return;
  }
  watchdog->held = uv_hrtime();
  watchdog->calls = calls_of(demo->client[DEMO_B]);
  demo_timer_start(demo, &watchdog->look, on_look, 0, LOOK_MS);
  int error = belay_lock_acquire(watchdog->b, WORK_MS, on_b_over);
  if (error != 0)
    give_up(watchdog, "B asks for the lock", error);
}

void play_watchdog(demo_t *demo) {
  demo_text(demo, "  A has the lock for 0.9 s, but works for 2.7 s. The watchdog renews the lease\n"
                  "  every third of the ttl, as long as A's loop turns and the server answers.\n"
                  "  B asks for it all the while.");
  watchdog_t watchdog = {.demo = demo};
  demo_timer_open(demo, &watchdog.look, &watchdog);
  belay_lock_options_t options;
  belay_lock_options_init(&options);
  options.data = &watchdog;
  options.ttl_ms = TTL_MS;
  options.watchdog = BELAY_WATCHDOG_ON;
  options.on_lost = on_lost;
  watchdog.a = demo_lock(demo, DEMO_A, &options);
  watchdog.b = demo_lock(demo, DEMO_B, &options);
  int error = BELAY_ESTATE;
  if (watchdog.a != NULL && watchdog.b != NULL)
    error = belay_lock_acquire(watchdog.a, BELAY_DEFAULT, on_held);
  if (error != 0)
    give_up(&watchdog, "A asks for the lock", error);
  (void)uv_run(&demo->loop, UV_RUN_DEFAULT);
}
