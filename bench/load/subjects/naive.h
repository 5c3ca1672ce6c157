/* hiredis with its stock libuv adapter as a subject. */
#ifndef BENCH_LOAD_SUBJECTS_NAIVE_H
#define BENCH_LOAD_SUBJECTS_NAIVE_H

#include "load/driver/driver.h"

extern const doer_t naive_lock, naive_contention, naive_renew, naive_limit, naive_counter,
    naive_ids, naive_cache;

#endif /* BENCH_LOAD_SUBJECTS_NAIVE_H */
