/* Chapters about a lock on one server: its holder is killed, is slow, or blocks its loop. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "demo/chapters.h"
#include "demo/child.h"
#include "demo/contender.h"

enum { GRACE_MS = 1000 }; /* for a slow machine */

/* ---- killed ---- */

enum { KILLED_TTL_MS = 1000, KILLED_DRIFT_MS = KILLED_TTL_MS / 100 + 2 };

typedef struct holder {
  child_t child;
  uint64_t asked, acquired; /* times */
} holder_t;

void holder_run(demo_t *demo, char **args) {
  contender_t self;
  (void)args;
  if (!contender_open(&self, demo, DEMO_A, KILLED_TTL_MS, false))
    return;
  demo_report("asks", 0);
  if (contender_acquire(&self))
    demo_report("acquired", 0);
  DEMO_WAIT(demo, 60000, false);
}

static void on_report(child_t *child, const child_report_t *report) {
  holder_t *holder = child->data;
  *(strcmp(report->word, "asks") == 0 ? &holder->asked : &holder->acquired) = report->at;
}

static void wait_for_killed(demo_t *demo, holder_t *holder, contender_t *b) {
  demo_event(demo, holder->acquired, "A has the lock, for 1 s, as process %d",
             uv_process_get_pid(&holder->child.process));
  if (!contender_start(b, CONTENDER_PATIENCE_MS))
    return;
  DEMO_WAIT(demo, 300, b->ended);
  child_kill(&holder->child);
  demo_event(demo, 0, "B waits for it; A is killed with kill -9");
  if (!contender_wait(b))
    return;
  contender_event(b, b->at, "has it");
  uint64_t end = holder->asked + KILLED_TTL_MS * DEMO_MS;
  demo_print("\n");
  demo_fact(demo, b->at + KILLED_DRIFT_MS * DEMO_MS >= end,
            "B got it %.3f s after A asked for it: not before the ttl was over",
            demo_seconds(holder->asked, b->at));
  demo_fact(demo, b->at <= end + GRACE_MS * DEMO_MS,
            "and %.0f ms after the end of the ttl, although A released nothing",
            1e3 * demo_seconds(end, b->at));
  (void)contender_release(b);
}

void chapter_killed(demo_t *demo) {
  holder_t holder = {.child = {.on_report = on_report, .data = &holder}};
  contender_t b;
  if (!contender_open(&b, demo, DEMO_B, BELAY_DEFAULT, true))
    return;
  child_start(demo, &holder.child, "holder", (const char *[]){NULL});
  DEMO_WAIT(demo, CONTENDER_PATIENCE_MS, holder.acquired != 0 || holder.child.over);
  if (holder.acquired != 0)
    wait_for_killed(demo, &holder, &b);
  child_kill(&holder.child);
  contender_close(&b);
  demo_run(demo);
}

/* ---- watchdog ---- */

enum { LONG_TTL_MS = 400, LONG_WORK_MS = 3 * LONG_TTL_MS, LOOK_MS = 200 };

void chapter_watchdog(demo_t *demo) {
  contender_t a, b;
  bool held = true;
  if (!contender_open(&a, demo, DEMO_A, LONG_TTL_MS, true) ||
      !contender_open(&b, demo, DEMO_B, LONG_TTL_MS, true))
    return;
  if (contender_acquire(&a) && contender_start(&b, LONG_WORK_MS)) {
    while (!b.ended) {
      int64_t left_ms = belay_lock_remaining_us(a.lock) / 1000;
      held = left_ms > 0 && held;
      demo_event(demo, 0, "A has %d ms left", (int)left_ms);
      DEMO_WAIT(demo, LOOK_MS, b.ended);
    }
    demo_print("\n");
    demo_fact(demo, held && a.reason == 0 && contender_release(&a),
              "A had the lock for %.1f s, three times its ttl, and released it itself",
              demo_seconds(a.at, uv_hrtime()));
    demo_fact(demo, b.status == BELAY_ETIMEDOUT, "B did not get it: %s", belay_err_name(b.status));
  }
  contender_close(&b);
  contender_close(&a);
}

/* ---- stalled ---- */

/* Block the loop, so that no callback of belay or of the program can run. */
static void block_loop(void) {
  struct timespec left = {.tv_nsec = 800000000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

static void stall(demo_t *demo, contender_t *a, contender_t *b) {
  if (!contender_start(b, CONTENDER_PATIENCE_MS))
    return;
  contender_event(a, 0, "has the lock, for 0.5 s, B waits for it, and A blocks its loop");
  block_loop();
  int64_t left_us = belay_lock_remaining_us(a->lock);
  bool no_callback = a->lost == 0 && !b->ended;
  contender_event(a, 0, "runs again, and asks first how much time is left");
  if (!contender_wait(b))
    return;
  uint64_t acquired = b->at;
  contender_event(a, a->lost, "learns from on_lost that its time is over");
  contender_event(b, acquired, "has the lock");
  int refused = belay_lock_release(a->lock, BELAY_DEFAULT, NULL);
  bool released = contender_release(b);
  demo_print("\n");
  demo_fact(demo, left_us == 0 && no_callback,
            "the first answer was right, before any callback could run: %d ms left",
            (int)(left_us / 1000));
  demo_fact(demo, a->reason == BELAY_LOST_EXPIRED && a->lost < acquired,
            "A learned of the loss before B had the lock");
  demo_fact(demo, refused == BELAY_ENOTOWNER && released,
            "A's late release was refused (%s), and B released its lock itself",
            belay_err_name(refused));
}

void chapter_stalled(demo_t *demo) {
  contender_t a, b;
  if (!contender_open(&a, demo, DEMO_A, 500, false) ||
      !contender_open(&b, demo, DEMO_B, 5000, false))
    return;
  if (contender_acquire(&a))
    stall(demo, &a, &b);
  contender_close(&b);
  contender_close(&a);
}
