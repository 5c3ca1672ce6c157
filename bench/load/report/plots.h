/* Which plots there are of a scenario. */
#ifndef BENCH_LOAD_REPORT_PLOTS_H
#define BENCH_LOAD_REPORT_PLOTS_H

#include <stdio.h>

#include "load/report/results.h"

/* As one SVG. Its scenario must have results. */
void plots_write(FILE *out, const results_t *results, const scenario_t *scenario);

#endif /* BENCH_LOAD_REPORT_PLOTS_H */
