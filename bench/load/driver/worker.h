/* Does one job in a process of its own, so that its processor time, its memory and its mistakes are
 * its own. */
#ifndef BENCH_LOAD_DRIVER_WORKER_H
#define BENCH_LOAD_DRIVER_WORKER_H

#include "load/driver/scenarios.h"

/* Returns when it is done; ends the program if that went wrong. SUBJECTS: it is the control that
 * does the job. */
void worker_run(const scenario_t *scenario, subject_t subject, const job_t *job, outcome_t *out);

#endif /* BENCH_LOAD_DRIVER_WORKER_H */
