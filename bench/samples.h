/* Measured values, and their percentiles. */
#ifndef BENCH_SAMPLES_H
#define BENCH_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

/* The value below which a share of them (0 to 1) lies; they are sorted then. 0 if there are
 * none. */
double samples_at(double *values, size_t count, double share);
uint32_t samples_at_u32(uint32_t *values, size_t count, double share);

/* The one in the middle, or the mean of the two; they are sorted then. 0 if there are none. */
double samples_median(double *values, size_t count);

#endif /* BENCH_SAMPLES_H */
