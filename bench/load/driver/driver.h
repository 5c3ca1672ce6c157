/* Begins operations, and measures: as many as there are runners, each anew where it ends (a closed loop), or so many a
 * second by a schedule (an open one), where an operation's latency counts from when it was to begin, not from when a runner
 * was free: otherwise those who wait behind a slow one would not be counted as slow.
 *
 *   open --> the first one, alone --> FILLING --each key was used--> GATHERING --all processes have come so far-->
 *   WARMING --time--> MEASURING --time--> DRAINING --all that was to begin has ended--> close
 *
 * The latency of everything counts that was to begin while it measured, also of what ends after that, and what an open loop
 * begins only then because it is late. */
#ifndef BENCH_LOAD_DRIVER_DRIVER_H
#define BENCH_LOAD_DRIVER_DRIVER_H

#include <belay.h>
#include <uv.h>

#include "load/driver/job.h"

typedef struct driver driver_t;

typedef struct runner {
  driver_t *driver;
  unsigned number;
  int64_t began; /* or was to begin */
  belay_request_t request;
  void *own;           /* the subject's; */
  uint64_t ticket;     /* and this, too */
  int64_t until;       /* it holds something */
  struct runner *next; /* free: an open loop's; or what goes on in the next turn */
} runner_t;

/* How one subject does one scenario. */
typedef struct doer {
  /* Connects, and makes what the operations need; may run the loop. */
  void (*open)(driver_t *driver);
  /* Begins an operation, which ends with driver_done(), not inside of this. */
  void (*begin)(runner_t *runner);
  /* Begins to give everything back: the loop runs until nothing is left in it. */
  void (*close)(driver_t *driver);
  /* Begins what is done beforehand, until each key was used; NULL: the operation itself. */
  void (*fill)(runner_t *runner);
} doer_t;

struct driver {
  const job_t *job;
  outcome_t *outcome;
  const doer_t *doer;
  stage_t *stage;
  uv_loop_t loop;
  runner_t *runners;
  void *own; /* the subject's */
  /* Of its own allocations, so far. NULL: it does not count them. */
  uint64_t (*allocations)(const driver_t *driver);
  uint64_t turn;  /* counts what is begun: for keys */
  uint64_t ended; /* operations, since the first one */
  /* Told when the first one is over and when nobody is under way any more. NULL: nobody wants to
   * know. */
  void (*quiet)(driver_t *driver, bool before);
  struct course *course;
};

/* Does a job. Ends the program if anything goes wrong in it. */
void driver_run(const job_t *job, stage_t *stage, unsigned process, const doer_t *doer);

/* The same, alone, and quiet is told; returns how many operations ended between the two. */
uint64_t driver_run_watched(const job_t *job, stage_t *stage, const doer_t *doer,
                            void (*quiet)(driver_t *driver, bool before));

/* A runner has what so many can have at most, and holds it for a while, always the same one, or, if
 * that is 0, until the loop's next turn, when all that this one has brought is known. It is to give
 * it back then. The program ends if there are more. */
void driver_hold(runner_t *runner, int most, double seconds, void (*over)(runner_t *runner));

/* Does nothing: an operation ends in the loop's next turn. What it takes is what any operation
 * takes that begins on such a loop, on this machine, at this time. */
extern const doer_t driver_control;

/* An operation has ended well; it counts for as many as the job's batch. */
void driver_done(runner_t *runner);

/* The number of the next key, 0 to job->keys - 1. */
unsigned driver_next_key(driver_t *driver);

#endif /* BENCH_LOAD_DRIVER_DRIVER_H */
