/* Shared by all processes of a measurement: the job, the notes of a holder for the next one, and
 * the results. */
#ifndef BENCH_SCENE_H
#define BENCH_SCENE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "server.h"

enum { SCENE_PROCESSES_MAX = 32, SCENE_SAMPLES_MAX = 1 << 20 };

typedef enum group_name {
  GROUP_BARE,  /* nobody waits: a script over and over, by hiredis alone */
  GROUP_BELAY, /* belay's lock */
  GROUP_NAIVE  /* SET NX PX at fixed intervals, and compare-and-delete, by hiredis alone */
} group_name_t;

typedef struct job {
  group_name_t group;
  bool poll;            /* belay: without notifications */
  unsigned interval_ms; /* naive: between two attempts */
  unsigned processes;
  unsigned waiters; /* in each of them */
  int64_t hold;     /* nanoseconds; 0: released in the callback that tells of the grant */
  double seconds;
  placement_t pin;
  char pass_sha[SERVER_SHA_SIZE], delete_sha[SERVER_SHA_SIZE];
} job_t;

/* Durations from a release to the next grant, in nanoseconds. */
typedef struct durations {
  uint32_t count;
  uint32_t ns[SCENE_SAMPLES_MAX];
} durations_t;

/* The counts of one process between begin and end. */
typedef struct result {
  bool done;
  uint64_t grants, commands;
  uint64_t passed;      /* grants to another waiter than the last one */
  uint64_t changes;     /* grants after one of another process */
  int64_t longest_wait; /* also of one who still waits at the end */
  int64_t elapsed, held, cpu;
  uint64_t overlaps, losses;  /* grants while another had it, and losses: in all, both are errors */
  durations_t within, across; /* the next holder is in the same process, or in another */
} result_t;

typedef struct scene {
  job_t job;
  char path[128];
  int64_t begin, end; /* measured time; before it, the processes start */

  _Atomic int inside;       /* how many hold it */
  _Atomic int releaser;     /* the process of the last release; -1: there was none */
  _Atomic unsigned last;    /* and which of its waiters */
  _Atomic int64_t released; /* when release was called */

  result_t results[SCENE_PROCESSES_MAX];
} scene_t;

#endif /* BENCH_SCENE_H */
