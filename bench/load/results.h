/* What came of all measurements: medians, and how they are shown. */
#ifndef BENCH_RESULTS_H
#define BENCH_RESULTS_H

#include "load/scenarios.h"

enum { RESULTS_MAX = 512, RUNS_MAX = 99 };

typedef enum figure {
  FIGURE_OPS, /* per second */
  FIGURE_P50, /* microseconds */
  FIGURE_P99,
  FIGURE_P999,
  FIGURE_SERVER, /* microseconds of processor time for each operation */
  FIGURE_CLIENT,
  FIGURE_COMMANDS, /* for each operation */
  FIGURE_ALLOCS,
  FIGURE_BYTES, /* of each object */
  FIGURE_GAP,   /* microseconds */
  FIGURES
} figure_t;

typedef struct result {
  const scenario_t *scenario;
  subject_t subject;
  unsigned concurrency, keys, batch;
  double rate;
  unsigned runs;
  double figure[FIGURES][RUNS_MAX];
} result_t;

typedef struct results {
  unsigned n;
  result_t result[RESULTS_MAX];
} results_t;

/* A run of that subject, scenario and size. */
void results_add(results_t *results, const scenario_t *scenario, subject_t subject,
                 const job_t *job, const outcome_t *outcome);

double result_median(const result_t *result, figure_t figure);

/* Of the limit of the same scenario and size; 0: that was not measured. */
double result_ratio(const results_t *results, const result_t *result);

void results_print(const results_t *results);
void results_write_json(const results_t *results, const char *path);
void results_write_page(const results_t *results, const char *path);

/* A fact about the machine and what ran on it, for all three. */
void results_fact(const char *name, const char *value);

#endif /* BENCH_RESULTS_H */
