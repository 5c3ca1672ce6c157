#include "load/driver/hist.h"

/* Below 64 each value has a bucket of its own; then the leading bit says which octave, the six bits
 * behind it which part. */
static unsigned bucket_of(uint64_t ns) {
  if (ns < HIST_PER_OCTAVE)
    return (unsigned)ns;
  unsigned octave = 63 - (unsigned)__builtin_clzll(ns) - HIST_BITS;
  unsigned bucket = (octave + 1) * HIST_PER_OCTAVE + (unsigned)((ns >> octave) - HIST_PER_OCTAVE);
  return bucket < HIST_BUCKETS ? bucket : HIST_BUCKETS - 1;
}

/* The middle of a bucket. */
static uint64_t value_of(unsigned bucket) {
  if (bucket < HIST_PER_OCTAVE)
    return bucket;
  unsigned octave = bucket / HIST_PER_OCTAVE - 1;
  uint64_t low = (uint64_t)(HIST_PER_OCTAVE + bucket % HIST_PER_OCTAVE) << octave;
  return low + ((UINT64_C(1) << octave) >> 1);
}

void hist_add(hist_t *hist, uint64_t ns) {
  hist->counts[bucket_of(ns)]++;
  hist->total++;
  if (ns > hist->largest)
    hist->largest = ns;
}

void hist_merge(hist_t *into, const hist_t *from) {
  for (unsigned i = 0; i < HIST_BUCKETS; i++)
    into->counts[i] += from->counts[i];
  into->total += from->total;
  if (from->largest > into->largest)
    into->largest = from->largest;
}

uint64_t hist_at(const hist_t *hist, double share) {
  uint64_t so_far = 0;
  for (unsigned i = 0; i < HIST_BUCKETS && hist->total > 0; i++) {
    so_far += hist->counts[i];
    if ((double)so_far >= share * (double)hist->total) {
      uint64_t value = value_of(i);
      return value < hist->largest ? value : hist->largest;
    }
  }
  return 0;
}
