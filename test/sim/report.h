/* Reports of runs: figures, faults, transitions, and the log of one run. */
#ifndef TEST_SIM_REPORT_H
#define TEST_SIM_REPORT_H

#include <stdio.h>

#include "sim/world/world.h"

void sim_figures_add(sim_figures_t *sum, const sim_figures_t *more);

/* Everything, as a person reads it. */
void sim_report(FILE *out, const char *title, const sim_figures_t *figures, double seconds);

/* The pairs of state and event of the lease machine that were seen. */
void sim_report_steps(FILE *out, const sim_figures_t *figures);

/* Runs it again, and prints what was violated, how to see it all, and the end of its timeline. */
void sim_report_violation(FILE *out, const sim_scenario_t *scenario, uint64_t seed);

#endif /* TEST_SIM_REPORT_H */
