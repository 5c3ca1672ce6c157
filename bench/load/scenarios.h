/* The scenarios: what is measured, of whom, and in which sizes. All of it is data. */
#ifndef BENCH_SCENARIOS_H
#define BENCH_SCENARIOS_H

#include "load/driver.h"

typedef enum subject {
  SUBJECT_BELAY,
  SUBJECT_LIMIT,
  SUBJECT_NAIVE,
  SUBJECT_NODE_REDLOCK,
  SUBJECT_NODE_LIMITER,
  SUBJECT_REDIS_PY,
  SUBJECTS
} subject_t;

extern const char *const subject_names[SUBJECTS];

typedef struct cell {
  unsigned concurrency, keys, batch; /* 0 keys: as many as there are runners; 0 batch: 1 */
  bool quick;                        /* of the short table too */
  unsigned processes;                /* 0: one */
  double hold;
} cell_t;

enum { CELLS_MAX = 6 };

typedef struct scenario {
  const char *name, *about;
  unsigned servers;
  const doer_t *belay, *naive; /* naive may be NULL */
  bool fill;                   /* the keys are there when it begins */
  bool peers[SUBJECTS];        /* of the processes that are not ours */
  cell_t cells[CELLS_MAX];     /* until concurrency is 0 */
} scenario_t;

extern const scenario_t scenarios[];
extern const unsigned scenarios_len;

const scenario_t *scenario_find(const char *name); /* NULL: there is none */

#endif /* BENCH_SCENARIOS_H */
