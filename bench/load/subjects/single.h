/* Makes the tape that belay would send without batches. */
#ifndef BENCH_LOAD_SUBJECTS_SINGLE_H
#define BENCH_LOAD_SUBJECTS_SINGLE_H

#include <hiredis/hiredis.h>

#include "load/subjects/tap.h"

/* The same calls, each as a command of its own; the server learns the scripts for that. To be
 * freed. */
tape_t single_calls(const tape_t *tape, redisContext *server);

#endif /* BENCH_LOAD_SUBJECTS_SINGLE_H */
