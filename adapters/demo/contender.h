/* A or B with a lock, for sequential code. */
#ifndef BELAY_DEMO_CONTENDER_H
#define BELAY_DEMO_CONTENDER_H

#include "demo/scene.h"

enum { CONTENDER_PATIENCE_MS = 20000 }; /* for an answer that has to come */

typedef struct contender {
  demo_t *demo;
  demo_who_t who;
  belay_lock_t *lock;
  bool ended;          /* the last acquire or release has an answer */
  int status;          /* the answer */
  uint64_t asked, at;  /* when it was begun, and when the answer came */
  belay_lost_t reason; /* why the lock was lost; 0: it was not */
  uint64_t lost;       /* when on_lost was called */
} contender_t;

/* The options of a contender's lock, for ttl_ms, with or without a watchdog. */
void contender_options(contender_t *contender, belay_lock_options_t *options, int64_t ttl_ms,
                       bool watchdog);

/* Make the lock, with the chapter's name. Like the functions below, it returns false after an
 * error, which is printed. */
bool contender_open(contender_t *contender, demo_t *demo, demo_who_t who, int64_t ttl_ms,
                    bool watchdog);

/* Close the lock, if there is one. */
void contender_close(contender_t *contender);

/* Start to acquire the lock; wait until it is acquired; both. */
bool contender_start(contender_t *contender, int64_t wait_ms);
bool contender_wait(contender_t *contender);
bool contender_acquire(contender_t *contender);

/* Release the lock and wait for the answer. */
bool contender_release(contender_t *contender);

/* Print an event of the contender. at: 0: now. */
void contender_event(contender_t *contender, uint64_t at, const char *what);

#endif /* BELAY_DEMO_CONTENDER_H */
