/* The results of all measurements: medians of rounds, and facts about the machine and the
 * programs. */
#ifndef BENCH_LOAD_REPORT_RESULTS_H
#define BENCH_LOAD_REPORT_RESULTS_H

#include "load/driver/scenarios.h"

enum { RESULTS_MAX = 512, RUNS_MAX = 99, FACTS_MAX = 24, FACT_NAME = 32, FACT_VALUE = 256 };

/* Figures that were not measured are NAN. */
typedef enum figure {
  FIGURE_OPS,  /* per second */
  FIGURE_RATE, /* an open loop's: that were to begin, per second */
  FIGURE_P50,  /* microseconds */
  FIGURE_P99,
  FIGURE_P999,
  FIGURE_CONTROL, /* the control's p99 */
  FIGURE_EXCESS,  /* p99 less the control's */
  FIGURE_SERVER,  /* microseconds of processor time for each operation */
  FIGURE_CLIENT,
  FIGURE_COMMANDS, /* for each operation */
  FIGURE_ALLOCS,
  FIGURE_BELAY_ALLOCS,
  FIGURE_BYTES,     /* of each object */
  FIGURE_GAP,       /* microseconds */
  FIGURE_BUSY,      /* the share of a processor that the client uses */
  FIGURE_LATENCIES, /* how many were measured, */
  FIGURE_SECONDS,   /* and how long */
  FIGURE_KEYS,      /* a limit's tape has, */
  /* and how many of it were unanswered at most; NAN also where that was not bounded */
  FIGURE_WINDOW,
  FIGURES
} figure_t;

typedef struct result {
  const scenario_t *scenario;
  subject_t subject;
  unsigned concurrency, keys, batch;
  placement_t placement;
  load_t load;
  unsigned runs;
  double figure[FIGURES][RUNS_MAX];
} result_t;

typedef struct results {
  unsigned n;
  result_t result[RESULTS_MAX];
  unsigned facts;
  char fact[FACTS_MAX][FACT_NAME], value[FACTS_MAX][FACT_VALUE];
} results_t;

extern const char *const figure_names[FIGURES], *const load_names[LOADS];

void results_fact(results_t *results, const char *name, const char *value);

/* A run of that subject, scenario and size. */
void results_add(results_t *results, const scenario_t *scenario, subject_t subject,
                 const job_t *job, const outcome_t *outcome);

double result_median(const result_t *result, figure_t figure);

/* Of all runs, the largest less the smallest, over the median. */
double result_spread(const result_t *result);

/* true if both have the same scenario, size, placement and load. */
bool result_is_beside(const result_t *a, const result_t *b);

/* Ratio of a figure to that of another subject: FIGURE_P99 with a schedule, other figures
 * in a closed loop. NAN: the other subject was not measured, or its limit is arithmetic, or it is
 * the same subject. */
double result_ratio(const results_t *results, const result_t *result, subject_t other,
                    figure_t figure);

#endif /* BENCH_LOAD_REPORT_RESULTS_H */
