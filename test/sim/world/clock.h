/* A clock that runs a little too fast or too slow. */
#ifndef TEST_SIM_WORLD_CLOCK_H
#define TEST_SIM_WORLD_CLOCK_H

#include <stdint.h>

typedef struct sim_clock {
  uint64_t base; /* its value at the beginning of the world, in nanoseconds */
  int64_t rate;  /* how much too fast, in billionths; at most 5,000,000 either way */
} sim_clock_t;

/* Its value at a time of the world. Exact for the first half hour. */
static inline uint64_t sim_clock_at(const sim_clock_t *clock, uint64_t now) {
  return clock->base + now + (uint64_t)((int64_t)now * clock->rate / 1000000000);
}

/* The first time of the world at which it shows at least that. */
static inline uint64_t sim_clock_when(const sim_clock_t *clock, uint64_t shown) {
  if (shown <= clock->base)
    return 0;
  uint64_t span = shown - clock->base;
  uint64_t now = span - (uint64_t)((int64_t)span * clock->rate / (1000000000 + clock->rate));
  while (now > 0 && sim_clock_at(clock, now - 1) >= shown)
    now--;
  while (sim_clock_at(clock, now) < shown)
    now++;
  return now;
}

#endif /* TEST_SIM_WORLD_CLOCK_H */
