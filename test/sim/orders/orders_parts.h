/* What orders_cache.c orders: pairs of steps, in parts. */
#ifndef TEST_SIM_ORDERS_ORDERS_PARTS_H
#define TEST_SIM_ORDERS_ORDERS_PARTS_H

#include "sim/world/world.h"

#define SIM_STEPS 3              /* of a process */
#define SIM_WAITS (500 * SIM_MS) /* a W */
#define SIM_CALLS_MAX 60000 /* orders of the calls of one pair; those of the first parts are less */
#define SIM_PARTS_FIRST                                                                            \
  460 /* the parts with few letters, which every test run checks (meson.build) */

/* The cache's options. */
typedef struct sim_config {
  const char *name;
  bool lock, quiet, tags;
  int64_t ttl_ms, stale_ms;
  int64_t local_ttl_ms; /* 0: no table */
} sim_config_t;

typedef struct sim_part {
  const sim_config_t *config;
  bool calls; /* the calls are ordered too; else the steps alone */
  bool lossy;
  bool
      /* lost commands are executed if they arrived; else the client's connections are killed */
      ghosts;
  const char *letters;
  unsigned number[2]; /* of the steps, among all that can be made of the letters */
  char steps[2][8];
} sim_part_t;

/* The part of that number, from 1, and its first pair. First come pairs whose calls are
 * ordered, one in each part; then all pairs of three steps out of few letters; then more pairs
 * whose calls are ordered, which take longer; then all pairs of three steps out of all letters.
 * A part of steps has one first script and all second ones. */
void sim_part_find(uint64_t number, sim_part_t *part);
/* The next pair of the part; false: there is none. */
bool sim_part_next(sim_part_t *part);

#endif /* TEST_SIM_ORDERS_ORDERS_PARTS_H */
