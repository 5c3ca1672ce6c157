/* A histogram of durations whose buckets grow with the values (as HdrHistogram's do): 64 of them
 * for each doubling, so a percentile is off by less than 1.6 %, whatever its size. */
#ifndef BENCH_LOAD_DRIVER_HIST_H
#define BENCH_LOAD_DRIVER_HIST_H

#include <stdint.h>

enum {
  HIST_BITS = 6,
  HIST_PER_OCTAVE = 1 << HIST_BITS,
  HIST_OCTAVES = 38,
  HIST_BUCKETS = HIST_OCTAVES * HIST_PER_OCTAVE
};

typedef struct hist {
  uint64_t total;
  uint64_t largest;
  uint64_t counts[HIST_BUCKETS];
} hist_t;

/* Value in nanoseconds; larger values than the last bucket (73 minutes) are counted there. */
void hist_add(hist_t *hist, uint64_t ns);
void hist_merge(hist_t *into, const hist_t *from);

/* The duration that a share (0 to 1) of all does not exceed; 0 if there are none. */
uint64_t hist_at(const hist_t *hist, double share);

#endif /* BENCH_LOAD_DRIVER_HIST_H */
