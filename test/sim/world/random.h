/* The one source of chance in a run. A seed names a run. */
#ifndef TEST_SIM_WORLD_RANDOM_H
#define TEST_SIM_WORLD_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "support/base/random.h"

typedef struct sim_random {
  uint64_t state;
} sim_random_t;

static inline uint64_t sim_next(sim_random_t *random) {
  return next_random(&random->state);
}

/* From 0 to limit - 1; 0 if limit is 0. */
static inline uint64_t sim_below(sim_random_t *random, uint64_t limit) {
  return limit == 0 ? 0 : sim_next(random) % limit;
}

/* From min to max, both included. */
static inline uint64_t sim_between(sim_random_t *random, uint64_t min, uint64_t max) {
  return min + sim_below(random, max - min + 1);
}

/* True in per_mille of 1,000 cases. */
static inline bool sim_chance(sim_random_t *random, unsigned per_mille) {
  return sim_below(random, 1000) < per_mille;
}

/* Mostly less than the mean, seldom much more, never over 16 times it: the time to the next of
 * independent events. */
static inline uint64_t sim_around(sim_random_t *random, uint64_t mean) {
  uint64_t scale = mean;
  for (int i = 0; i < 4 && sim_chance(random, 250); i++)
    scale *= 2;
  return sim_below(random, scale + scale / 8 + 1);
}

#endif /* TEST_SIM_WORLD_RANDOM_H */
