/* Which plots there are of a scenario. */
#ifndef BENCH_LOAD_REPORT_PLOTS_H
#define BENCH_LOAD_REPORT_PLOTS_H

#include "load/report/plot.h"
#include "load/report/results.h"

/* Fill at most PLOT_PANELS panels of a scenario with results. Return how many. */
typedef unsigned plots_fn(panel_t *panels, const results_t *results, const scenario_t *scenario);

/* Operations per second: curves, or without curves bars for one size. */
plots_fn plots_throughput;

/* p99 at half load by concurrency: 0 without a curve. */
plots_fn plots_latency;

#endif /* BENCH_LOAD_REPORT_PLOTS_H */
