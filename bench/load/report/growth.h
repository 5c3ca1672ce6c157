/* How what an operation costs grows with how many are at once, or with how many keys there are: a
 * curve of results that agree in all but one thing. */
#ifndef BENCH_LOAD_REPORT_GROWTH_H
#define BENCH_LOAD_REPORT_GROWTH_H

#include "load/report/results.h"

typedef enum axis { AXIS_CONCURRENCY, AXIS_KEYS, AXES } axis_t;

extern const char *const axis_names[AXES];

enum { CURVE_MAX = 16 };

typedef struct curve {
  unsigned n;
  const result_t *at[CURVE_MAX]; /* in the order of the growing size */
} curve_t;

/* Where a result stands on an axis. */
unsigned axis_of(const result_t *result, axis_t axis);

/* The longest curve that there is of a scenario, of a subject and of a load. */
curve_t growth_curve(const results_t *results, const scenario_t *scenario, subject_t subject,
                     axis_t axis, load_t load);

/* The cheapest point among those that are far from the last one: from there the cost can only
 * grow. */
const result_t *growth_base(const curve_t *curve, axis_t axis);

/* With which power what all operations of a curve cost grows, from there to its last point. */
double growth_power(const curve_t *curve, axis_t axis);

/* Processor time of an operation, of server and client, in microseconds. */
double growth_cost(const result_t *result);

#endif /* BENCH_LOAD_REPORT_GROWTH_H */
