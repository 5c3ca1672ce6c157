/* Other libraries as a subject: a program in another language (bench/peers), which gets the job and
 * reports its results. */
#ifndef BENCH_LOAD_SUBJECTS_PEER_H
#define BENCH_LOAD_SUBJECTS_PEER_H

#include "load/driver/scenarios.h"

/* Whether it can be run here; if so, its version, else why not. */
bool peer_is_there(subject_t subject, char *text, size_t size);

/* It connects, and warms up: for a second or more, and until each of its runners has ended some
 * operations. Then it measures, for a second or more. It says "begin" and "end" when it begins and
 * ends to measure, then "OPERATIONS SECONDS", then, for each latency in microseconds that there
 * was, "LATENCY TIMES". */
void peer_run(subject_t subject, const job_t *job, outcome_t *outcome);

#endif /* BENCH_LOAD_SUBJECTS_PEER_H */
