/* The order of the measurements. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "load/report/results.h"
#include "options.h"

/* All that the options ask for, in turns: each round measures everything once, and another subject
 * comes first. */
void measure(const options_t *options, results_t *results);

#endif /* BENCH_MEASURE_H */
