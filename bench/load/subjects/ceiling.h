/* The limit: the same commands that belay sends, byte for byte, on one connection to each server,
 * by a loop that only counts the replies.
 *
 *   many at once   without pause, with the best number of unanswered commands
 *   one at a time  a command, its reply (of several servers: of a majority), the next command
 *   held           a command, its reply, and the time of the hold: the next holder gets a lock one
 *                  round trip after the command that hands it over, not sooner
 *
 * The limit of single calls is the same, but each call that belay puts in a batch is a command of
 * its own. */
#ifndef BENCH_LOAD_SUBJECTS_CEILING_H
#define BENCH_LOAD_SUBJECTS_CEILING_H

#include "load/driver/driver.h"

void ceiling_run(const job_t *job, outcome_t *outcome, const doer_t *belay, bool single);

#endif /* BENCH_LOAD_SUBJECTS_CEILING_H */
