/* What a chapter runs in: a process of its own with a loop, two clients of the demo's server, and what it prints. */
#ifndef BELAY_DEMO_SCENE_H
#define BELAY_DEMO_SCENE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "belay.h"
#include "demo/child.h"
#include "demo/worker.h"
#include "ui/term.h"

#define DEMO_MS UINT64_C(1000000) /* in the nanoseconds of uv_hrtime() */

/* The environment variable that tells a chapter how its output is shown: 1 for colours, 2 for UTF-8, or their sum. */
#define DEMO_TERM "BELAY_DEMO_TERM"

/* A line with this first character tells the demo how many facts were checked, and how many do not hold. */
#define DEMO_RESULT '\001'

/* Two contenders in this process, each with a client of its own. */
typedef enum demo_who { DEMO_A, DEMO_B, DEMO_CONTENDERS } demo_who_t;

typedef struct demo {
  uv_loop_t loop;
  term_t term;
  uv_timer_t clock; /* wakes the loop while a chapter waits for a condition */
  uint64_t deadline;
  family_t family;
  belay_t *belay;
  belay_client_t *client[DEMO_CONTENDERS];
  const char *run;    /* this demo's part of the namespace */
  const char *folder; /* for files of a chapter */
  const char *name;   /* of the chapter's locks and other handles */
  uint64_t began;     /* when the chapter's text was printed */
  unsigned facts, failed;
} demo_t;

/* ---- the process of a chapter -------------------------------------------------------------------------- */

/* Opens the loop and the clients. Returns false if it cannot; that is printed. */
bool demo_open(demo_t *demo, const char *run, const char *folder, const char *name);

/* Close both. A handle that is left open is a failure. */
void demo_close(demo_t *demo);

/* ---- output -------------------------------------------------------------------------------------------- */

/* Print an event of the chapter, with the time since the chapter began. at: when it happened; 0: now. */
void demo_event(demo_t *demo, uint64_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Print a fact that was checked. */
void demo_fact(demo_t *demo, bool holds, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Print a failure, which counts as a fact that does not hold. error: belay's, or 0. */
void demo_trouble(demo_t *demo, const char *what, int error);

/* Seconds between two uv_hrtime()s; negative if the second is the earlier one. */
double demo_seconds(uint64_t from, uint64_t to);

/* ---- what a chapter uses ------------------------------------------------------------------------------- */

/* Run the loop until no active handle keeps it running. */
void demo_run(demo_t *demo);

/* Run the loop until the condition is true, for at most ms. A statement. */
#define DEMO_WAIT(demo, ms, condition)                                                             \
  for (demo_wait_start(demo, ms); !(condition) && demo_wait_step(demo);) {                         \
  }
void demo_wait_start(demo_t *demo, uint64_t ms);
bool demo_wait_step(demo_t *demo);

/* Print what failed if error is not 0, then run the loop as demo_run() does. Returns whether error is 0. */
bool demo_await(demo_t *demo, const char *what, int error);

/* Look for the keys of the demo's namespace that match the pattern, and delete them if remove is true. Runs the loop. */
belay_sweep_totals_t demo_sweep(demo_t *demo, const char *pattern, bool remove);

/* A limiter of A's with the chapter's name; NULL after an error, which is printed. */
belay_limiter_t *demo_limiter(demo_t *demo, const belay_limit_t *limits, size_t n);

/* At a chapter's end: reset the key and close the limiter. Runs the loop. */
void demo_limiter_close(demo_t *demo, belay_limiter_t *limiter, const char *const *keys, size_t n);

/* A timer of a chapter. It keeps the loop running until it is closed, which may be done twice. */
void demo_timer_open(demo_t *demo, uv_timer_t *timer, void *data);
void demo_timer_start(demo_t *demo, uv_timer_t *timer, uv_timer_cb cb, uint64_t ms,
                      uint64_t repeat);
void demo_timer_close(uv_timer_t *timer);

/* Start a process that takes this chapter's lock for ttl_ms, works for work_ms, and gives the lock back. */
void demo_worker_start(demo_t *demo, child_t *child, const char *owner, unsigned ttl_ms,
                       unsigned work_ms);

#endif /* BELAY_DEMO_SCENE_H */
