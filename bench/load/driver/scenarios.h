/* The scenarios, as data: subjects, sizes and places. */
#ifndef BENCH_LOAD_DRIVER_SCENARIOS_H
#define BENCH_LOAD_DRIVER_SCENARIOS_H

#include "load/driver/driver.h"

typedef enum subject {
  SUBJECT_BELAY,
  SUBJECT_LIMIT,
  SUBJECT_SINGLE, /* the limit of calls that do not travel together */
  SUBJECT_NAIVE,
  SUBJECT_NODE_REDLOCK,
  SUBJECT_NODE_LIMITER,
  SUBJECT_REDIS_PY,
  SUBJECTS
} subject_t;

extern const char *const subject_names[SUBJECTS];

/* In which runs a cell is measured. */
enum {
  IN_QUICK = 1, /* the short table */
  IN_FULL = 2,  /* the whole one */
  IN_CURVE =
      4, /* the curves: how the cost grows, with a processor for each side; of processes of ours */
  IN_TABLE = IN_QUICK | IN_FULL,
  IN_ALL = IN_TABLE | IN_CURVE
};

typedef struct cell {
  unsigned in;
  unsigned concurrency, keys, batch; /* 0 keys: as many as there are runners; 0 batch: 1 */
  placement_t placement;             /* PLACE_ANYWHERE: the scenario's */
  unsigned processes;                /* 0: one */
  double hold;
} cell_t;

enum { CELLS_MAX = 18 };

typedef struct scenario {
  const char *name, *about;
  const char *limit; /* text of its limit; NULL: all that the servers can do */
  bool arithmetic;   /* that is no rate that anybody could come near: there is no ratio */
  bool joined;       /* belay's calls travel together: there is a limit of single ones */
  unsigned servers;
  placement_t placement;       /* placement, unless a run has another */
  const doer_t *belay, *naive; /* naive may be NULL */
  bool half;                   /* with --half, its sizes are also measured at half of the rate */
  bool fill;                   /* the keys are there when it begins */
  unsigned peers[SUBJECTS];    /* of the processes that are not ours: up to which concurrency */
  cell_t cells[CELLS_MAX];     /* until concurrency is 0 */
} scenario_t;

extern const scenario_t scenarios[];
extern const unsigned scenarios_len;

const scenario_t *scenario_find(const char *name); /* NULL: there is none */

#endif /* BENCH_LOAD_DRIVER_SCENARIOS_H */
