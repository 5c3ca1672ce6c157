/* The demo: belay seen at work, in chapters. Each is played on the real library and a real server, says what it
 * shows, and ends in facts that were checked. */
#ifndef BELAY_CLI_DEMO_DEMO_H
#define BELAY_CLI_DEMO_DEMO_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "belay.h"
#include "run/child.h"
#include "query/scratch.h"
#include "demo/server.h"
#include "ui/term.h"
#include "demo/worker.h"

#define DEMO_MS UINT64_C(1000000) /* in the nanoseconds of uv_hrtime() */

enum { DEMO_USED_MAX = 128, DEMO_KEY_MAX = 128 };

/* Two contenders in this process, each a client of its own. */
typedef enum demo_who { DEMO_A, DEMO_B, DEMO_CONTENDERS } demo_who_t;

typedef struct demo {
  uv_loop_t loop;
  term_t term;
  family_t family;
  server_t server;
  uv_timer_t guard; /* nothing here takes long: something that does is broken */
  uv_timer_t pause;
  uv_signal_t signal[4];
  unsigned signals; /* that are watched */
  bool loop_open;
  belay_t *belay;
  belay_client_t *client[DEMO_CONTENDERS];
  int connect_error;                      /* why the server cannot be used */
  char run[17];                           /* this demo's part of the namespace */
  char folder[SCRATCH_PATH_MAX];          /* for whatever files it needs */
  const char *lock_name;                  /* this chapter's */
  char used[DEMO_USED_MAX][DEMO_KEY_MAX]; /* keys that none may be left of */
  size_t used_len;
  uint64_t began; /* this chapter, after its text */
  unsigned facts, failed;
  int status; /* the command's, at its end */
} demo_t;

/* The chapters. Each starts something, runs the loop until nothing is left to wait for, and leaves nothing
 * behind. */
void play_counter(demo_t *demo);
void play_killed(demo_t *demo);
void play_watchdog(demo_t *demo);
void play_overrun(demo_t *demo);
void play_stalled(demo_t *demo);
void play_deleted(demo_t *demo);
void play_quorum(demo_t *demo);
void play_rate(demo_t *demo);
void play_windows(demo_t *demo);
void play_address(demo_t *demo);
void play_refillers(demo_t *demo);
void play_bloom(demo_t *demo);
void play_tally(demo_t *demo);
void play_ids(demo_t *demo);
void play_dedup(demo_t *demo);
void play_once(demo_t *demo);
void play_active(demo_t *demo);
void play_presence(demo_t *demo);
void play_ranking(demo_t *demo);
void play_permission(demo_t *demo);
void play_session(demo_t *demo);
void play_site(demo_t *demo);
void play_stampede(demo_t *demo);
void play_sweep(demo_t *demo);

/* ---- what a chapter says ------------------------------------------------------------------------------- */

/* A paragraph, and time to read it where somebody may be reading. The chapter's clock starts after it. */
void demo_text(demo_t *demo, const char *text);

/* Something happened: a line that starts with the time since the chapter began; at `at`, if that is not 0. */
void demo_event(demo_t *demo, uint64_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The time since the chapter began and `what`, until the next output; nothing where lines cannot be live. */
void demo_waits(demo_t *demo, const char *what);

/* A fact that was checked. */
void demo_fact(demo_t *demo, bool holds, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Something did not work that has to: a fact that does not hold. error: belay's, or 0. */
void demo_trouble(demo_t *demo, const char *what, int error);

/* Seconds between two uv_hrtime()s; negative if the second is the earlier one. */
double demo_seconds(uint64_t from, uint64_t to);

/* ---- what a chapter needs ------------------------------------------------------------------------------ */

/* A contender's handle for this chapter's lock; NULL after saying why. */
belay_lock_t *demo_lock(demo_t *demo, demo_who_t who, const belay_lock_options_t *options);

/* Closes it, unless that was done. */
void demo_lock_close(belay_lock_t **lock);

/* A limiter of A's, called as the chapter is; NULL after saying why. */
belay_limiter_t *demo_limiter(demo_t *demo, const belay_limit_t *limits, size_t n);

/* At a chapter's end: forgets what was taken from a key. Runs the loop. */
void demo_limiter_forget(demo_t *demo, belay_limiter_t *limiter, const char *key);

/* A key that was used on the demo's server: when the demo is over it has to be gone. */
void demo_used(demo_t *demo, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A timer of a chapter's. It keeps the loop running until it is closed; once or twice is all the same. */
void demo_timer_open(demo_t *demo, uv_timer_t *timer, void *data);
void demo_timer_start(demo_t *demo, uv_timer_t *timer, uv_timer_cb cb, uint64_t ms,
                      uint64_t repeat);
void demo_timer_close(uv_timer_t *timer);

/* A process that takes this chapter's lock for ttl_ms, works for work_ms, and gives it back. */
void demo_worker_start(demo_t *demo, child_t *child, const char *owner, unsigned ttl_ms,
                       unsigned work_ms);

#endif /* BELAY_CLI_DEMO_DEMO_H */
