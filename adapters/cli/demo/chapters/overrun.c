/* Chapter: a holder without a watchdog that works for longer than its ttl. It is told in time, and cannot harm
 * the one who has the lock after it. */
#include "demo/demo.h"

enum { TTL_MS = 500, WORK_MS = 900, B_TTL_MS = 5000, WAIT_MS = 5000, LIVE_MS = 50 };

typedef struct overrun {
  demo_t *demo;
  belay_lock_t *a, *b;
  uv_timer_t work, live;
  belay_lost_t reason;
  uint64_t lost, won; /* when A was told, when B had it */
  int a_release;      /* what A's release returned */
} overrun_t;

static void finish(overrun_t *overrun) {
  demo_lock_close(&overrun->a);
  demo_lock_close(&overrun->b);
  demo_timer_close(&overrun->work);
  demo_timer_close(&overrun->live);
}

static void give_up(overrun_t *overrun, const char *what, int error) {
  demo_trouble(overrun->demo, what, error);
  finish(overrun);
}

static void say(overrun_t *overrun, demo_who_t who, const char *what) {
  const term_t *term = &overrun->demo->term;
  demo_event(overrun->demo, 0, "%s%s%s %s", term_style(term, who == DEMO_A ? TERM_A : TERM_B),
             who == DEMO_A ? "A" : "B", term_style(term, TERM_NORMAL), what);
}

static void on_b_released(belay_lock_t *lock, int status) {
  overrun_t *overrun = belay_lock_data(lock);
  demo_t *demo = overrun->demo;
  say(overrun, DEMO_B, "gives the lock back");
  term_print(&demo->term, "\n");
  demo_fact(demo, overrun->reason == BELAY_LOST_EXPIRED && overrun->lost < overrun->won,
            "A was told (%s) %.0f ms before B had the lock",
            overrun->reason != 0 ? belay_lost_name(overrun->reason) : "not at all",
            1e3 * demo_seconds(overrun->lost, overrun->won));
  demo_fact(demo, overrun->a_release == BELAY_ENOTOWNER,
            "A's release was refused, without asking the server: %s",
            belay_err_name(overrun->a_release));
  demo_fact(demo, status == 0, "B's lock was not touched, and B gave it back itself: %s",
            belay_err_name(status));
  finish(overrun);
}

/* A believes that it is done. It might have known better. */
static void on_a_worked(uv_timer_t *timer) {
  overrun_t *overrun = timer->data;
  say(overrun, DEMO_A, "is done, and wants to give the lock back");
  overrun->a_release = belay_lock_release(overrun->a, BELAY_DEFAULT, NULL);
  int error = belay_lock_release(overrun->b, BELAY_DEFAULT, on_b_released);
  if (error != 0)
    give_up(overrun, "B gives the lock back", error);
}

static void on_b_won(belay_lock_t *lock, int status) {
  overrun_t *overrun = belay_lock_data(lock);
  demo_timer_close(&overrun->live);
  if (status != 0) {
    give_up(overrun, "B waits for the lock", status);
    return;
  }
  overrun->won = uv_hrtime();
  say(overrun, DEMO_B, "has the lock");
}

static void on_a_lost(belay_lock_t *lock, belay_lost_t reason) {
  overrun_t *overrun = belay_lock_data(lock);
  overrun->lost = uv_hrtime();
  overrun->reason = reason;
  say(overrun, DEMO_A, "is told that its time is over");
}

static void on_live(uv_timer_t *timer) {
  const overrun_t *overrun = timer->data;
  demo_waits(overrun->demo, "A works, B waits ...");
}

static void on_a_held(belay_lock_t *lock, int status) {
  overrun_t *overrun = belay_lock_data(lock);
  demo_t *demo = overrun->demo;
  if (status != 0) {
    give_up(overrun, "A takes the lock", status);
    return;
  }
  say(overrun, DEMO_A, "has the lock, for 0.5 s");
  int error = belay_lock_acquire(overrun->b, WAIT_MS, on_b_won);
  if (error != 0) {
    give_up(overrun, "B asks for the lock", error);
    return;
  }
  say(overrun, DEMO_B, "asks for it, and waits");
  demo_timer_start(demo, &overrun->work, on_a_worked, WORK_MS, 0);
  demo_timer_start(demo, &overrun->live, on_live, LIVE_MS, LIVE_MS);
}

void play_overrun(demo_t *demo) {
  demo_text(demo, "  A has the lock for 0.5 s, needs 0.9 s, and nobody renews the lease. A hears\n"
                  "  of it before anybody else can have the lock. When A is done at last, it must\n"
                  "  not give back what is B's by now.");
  overrun_t overrun = {.demo = demo};
  demo_timer_open(demo, &overrun.work, &overrun);
  demo_timer_open(demo, &overrun.live, &overrun);
  belay_lock_options_t options;
  belay_lock_options_init(&options);
  options.data = &overrun;
  options.watchdog = BELAY_WATCHDOG_OFF;
  options.ttl_ms = B_TTL_MS;
  overrun.b = demo_lock(demo, DEMO_B, &options);
  options.ttl_ms = TTL_MS;
  options.on_lost = on_a_lost;
  overrun.a = demo_lock(demo, DEMO_A, &options);
  int error = BELAY_ESTATE;
  if (overrun.a != NULL && overrun.b != NULL)
    error = belay_lock_acquire(overrun.a, BELAY_DEFAULT, on_a_held);
  if (error != 0)
    give_up(&overrun, "A asks for the lock", error);
  (void)uv_run(&demo->loop, UV_RUN_DEFAULT);
}
