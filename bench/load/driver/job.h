/* One measurement: its parameters and its results. Both are in memory that the program shares with
 * the measuring process. */
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
  LOAD_OPEN,   /* an open loop: a fixed number per second */
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
  /* Limit of the phase in which each key is used once, in seconds; 0: no such phase. */
  double cover;
  placement_t placement;
  unsigned processes; /* that do it at the same time, each with its share of concurrency */
  double hold;        /* time that a grant is held, in seconds; one runner holds at a time */
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
  double gap;      /* longest time without a wait of the loop, in seconds */
  hist_t latency;
} outcome_t;

enum { JOB_PROCESSES_MAX = 8 };

/* Shared by all processes of a job. */
typedef struct job_shared {
  _Atomic int inside;        /* how many have what one can have at most */
  _Atomic unsigned gathered; /* processes, that are about to begin */
  outcome_t outcome[JOB_PROCESSES_MAX];
} job_shared_t;

#endif /* BENCH_LOAD_DRIVER_JOB_H */
