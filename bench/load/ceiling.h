/* The server's own limit: the same commands, word for word, that belay sends, written without end on one connection to each
 * server, by somebody who has them ready and only counts the answers. */
#ifndef BENCH_CEILING_H
#define BENCH_CEILING_H

#include "load/driver.h"

void ceiling_run(const job_t *job, outcome_t *outcome, const doer_t *belay);

#endif /* BENCH_CEILING_H */
