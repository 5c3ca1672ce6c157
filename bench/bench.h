/* Definitions that all scenarios share. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Says what went wrong, and ends the program with status 1. */
_Noreturn void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* CLOCK_MONOTONIC, in nanoseconds: the same in all processes. */
int64_t bench_now(void);

/* Zeroed; never NULL. */
void *bench_alloc(size_t count, size_t size);

#endif /* BENCH_BENCH_H */
