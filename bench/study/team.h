/* Runs a measurement in processes of its own: this program, started again. */
#ifndef BENCH_TEAM_H
#define BENCH_TEAM_H

#include "study/scene.h"

#define TEAM_WORKER "--worker"

/* Totals of all processes. Rates per second, times in nanoseconds. */
typedef struct outcome {
  double grants; /* per second */
  double passed; /* of these, to another waiter than the one who had had it */
  double longest_wait;
  double commands, client_cpu, server_cpu, held; /* for each grant */
  double changes;                                /* of the owner between processes, per second */
  double least, most; /* grants of the process with the fewest, and of that with the most */
  double share;       /* most over least */
  /* the share of time that a client's processor was the server's: they need not be woken there */
  double beside;
  double across_median, across_p99, within_median, within_p99; /* from release to the next grant */
} outcome_t;

outcome_t team_run(const job_t *job);

/* The worker's main(): the shared memory's file descriptor, and which worker it is. */
int team_work(const char *fd, const char *number);

#endif /* BENCH_TEAM_H */
