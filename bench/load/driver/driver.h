/* Starts operations and measures them. A closed loop starts an operation of each runner when its
 * previous one ends. An open loop starts a fixed number per second by a schedule. The latency of an
 * operation then counts from its scheduled time; otherwise the operations that wait behind a slow
 * one would not count as slow.
 *
 *   open --> the first one, alone --> FILLING --each key was used--> GATHERING
 *   --all processes are ready--> WARMING --time--> MEASURING --time--> DRAINING
 *   --all scheduled operations have ended--> close
 *
 * The latencies include all operations that were scheduled while it measured, also those that start
 * or end later. */
#ifndef BENCH_LOAD_DRIVER_DRIVER_H
#define BENCH_LOAD_DRIVER_DRIVER_H

#include <belay.h>
#include <uv.h>

#include "load/driver/job.h"

typedef struct driver driver_t;

typedef struct runner {
  driver_t *driver;
  unsigned number;
  int64_t began; /* time of the start, in an open loop by the schedule */
  belay_request_t request;
  void *own;           /* of the subject */
  uint64_t ticket;     /* of the subject */
  int64_t until;       /* end of a hold */
  struct runner *next; /* next free runner, or next runner of the next turn */
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
  job_shared_t *shared;
  uv_loop_t loop;
  runner_t *runners;
  void *own; /* the subject's */
  /* Of its own allocations, so far. NULL: it does not count them. */
  uint64_t (*allocations)(const driver_t *driver);
  uint64_t turn;  /* counts what is begun: for keys */
  uint64_t ended; /* operations, since the first one */
  /* Called when the first operation has ended and when none is pending. NULL: not called. */
  void (*quiet)(driver_t *driver, bool before);
  struct course *course;
};

/* Does a job. Ends the program if anything goes wrong in it. */
void driver_run(const job_t *job, job_shared_t *shared, unsigned process, const doer_t *doer);

/* Run one operation alone, and call quiet before and after. Returns the number of operations that
 * ended in between. */
uint64_t driver_run_watched(const job_t *job, job_shared_t *shared, const doer_t *doer,
                            void (*quiet)(driver_t *driver, bool before));

/* A runner holds one of at most `max` permits for the same time in each operation, or, if that is
 * 0, until the next turn of the loop, when all replies of this turn are read. Then it must release
 * it. The program ends if more runners hold one. */
void driver_hold(runner_t *runner, int most, double seconds, void (*over)(runner_t *runner));

/* Do nothing: the operation ends in the next turn of the loop. Its time is the part of any
 * operation that this loop and this machine take now. */
extern const doer_t driver_control;

/* An operation has ended well; it counts for as many as the job's batch. */
void driver_done(runner_t *runner);

/* The number of the next key, 0 to job->keys - 1. */
unsigned driver_next_key(driver_t *driver);

#define DRIVER_KEY_LEN 10

/* The same, as digits, without a terminating 0. Much faster than snprintf(). */
void driver_next_key_text(driver_t *driver, char out[DRIVER_KEY_LEN]);

#endif /* BENCH_LOAD_DRIVER_DRIVER_H */
