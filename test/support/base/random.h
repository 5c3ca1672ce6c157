/* Random numbers that repeat in each run, so that a failure can be repeated: splitmix64 (Steele,
 * Lea, Flood, "Fast splittable pseudorandom number generators", 2014). */
#ifndef TEST_SUPPORT_BASE_RANDOM_H
#define TEST_SUPPORT_BASE_RANDOM_H

#include <stdint.h>

static inline uint64_t next_random(uint64_t *seed) {
  uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

#endif /* TEST_SUPPORT_BASE_RANDOM_H */
