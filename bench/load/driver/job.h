/* One measurement: what is done, and what came of it. Both lie in memory that the program shares
 * with the process which measures. */
#ifndef BENCH_LOAD_DRIVER_JOB_H
#define BENCH_LOAD_DRIVER_JOB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "load/driver/hist.h"
#include "place.h"

enum { JOB_SERVERS_MAX = 5, JOB_URL_MAX = 160, JOB_NAME_MAX = 24 };

/* When operations begin. */
typedef enum load {
  LOAD_CLOSED, /* each where one ends */
  LOAD_OPEN,   /* so many a second, whatever becomes of them */
  LOAD_HALF,   /* so, and half as many as the closed loop has just done */
  LOADS
} load_t;

typedef struct job {
  char scenario[JOB_NAME_MAX], subject[JOB_NAME_MAX];
  unsigned servers;
  char urls[JOB_SERVERS_MAX][JOB_URL_MAX];
  unsigned concurrency; /* operations under way; with a rate, at most */
  unsigned keys;        /* how many there are; they are used by turns */
  unsigned batch;       /* items of one operation */
  bool fill;            /* beforehand, each key is used once */
  load_t load;
  double rate; /* operations per second that begin; 0: each begins where one ends */
  double warm_up, seconds;
  /* it goes on until each key was used, for at most so many seconds; 0: it does not */
  double cover;
  placement_t placement;
  unsigned processes; /* that do it at the same time, each with its share of concurrency */
  double hold;        /* what is got is held for so many seconds, by one at a time */
} job_t;

/* Between the two looks at the clock. Figures of a server are the sum of all. */
typedef struct outcome {
  bool done;
  uint64_t operations;                     /* items of batches each count */
  double elapsed;                          /* seconds */
  double client_cpu, server_cpu;           /* seconds of processor time */
  uint64_t commands;                       /* that the servers counted, those inside scripts too */
  uint64_t allocations, belay_allocations; /* of the process; of these belay's own */
  double bytes_per_object;                 /* of belay's memory; 0: it is not known */
  /* of a loop that has the same to do and does nothing, in seconds; 0: not measured */
  double control_p99;
  unsigned keys;   /* a limit's: that are on its tape */
  uint64_t window; /* a limit's: how many were unanswered at most; 0: one */
  double gap;      /* the longest that the loop computed at a stretch, in seconds */
  hist_t latency;
} outcome_t;

enum { JOB_PROCESSES_MAX = 8 };

/* What all processes of a job share. */
typedef struct stage {
  _Atomic int inside;        /* how many have what one can have at most */
  _Atomic unsigned gathered; /* processes, that are about to begin */
  outcome_t outcome[JOB_PROCESSES_MAX];
} stage_t;

#endif /* BENCH_LOAD_DRIVER_JOB_H */
