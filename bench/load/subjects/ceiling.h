/* The limit: the same commands, word for word, that belay sends, written on one connection to each server by somebody who has
 * them ready and only counts the answers.
 *
 *   many at once  without end: what the servers can do at all, with as many unanswered as suits them best
 *   one at a time a command, its answer (of several servers: most of theirs), and then the next: the bare round trips
 *   held          a command, its answer, and then the time for which it is held: a lock that is handed on by one command is
 *                 had by another one a round trip later, and not before
 *
 * And the limit of single calls: the same, but calls that belay lets travel together are each a command of its own. */
#ifndef BENCH_LOAD_SUBJECTS_CEILING_H
#define BENCH_LOAD_SUBJECTS_CEILING_H

#include "load/driver/driver.h"

void ceiling_run(const job_t *job, outcome_t *outcome, const doer_t *belay, bool single);

#endif /* BENCH_LOAD_SUBJECTS_CEILING_H */
