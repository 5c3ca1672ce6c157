/* Runs operations on a fixture, with a fixed number of pending ones: the end of each begins the
 * next one. */
#ifndef BENCH_RACE_H
#define BENCH_RACE_H

#include "study/fixture.h"

enum { RACE_PENDING_MAX = 1000, RACE_MANY = 100 /* keys of a get of many */ };

typedef enum race_way {
  RACE_PUT,      /* the fixture's value is put */
  RACE_RAW,      /* GET as a call of the core: the least cost of a cached get */
  RACE_GET,      /* a hit */
  RACE_MANY_GET, /* RACE_MANY of them in one */
  RACE_MISS,     /* a miss, which is loaded at once */
  RACE_WAYS
} race_way_t;

typedef struct race_plan {
  race_way_t way;
  unsigned keys; /* the first ones of the fixture, by turns */
  unsigned pending;
  uint64_t calls;
} race_plan_t;

/* Rates per second; processor times in nanoseconds for each operation; a get of many is many. */
typedef struct race_outcome {
  double rate;
  double client_cpu, server_cpu;
  double allocations, commands;
} race_outcome_t;

race_outcome_t race_run(fixture_t *fixture, const race_plan_t *plan);

/* belay_cache_peek() of present keys of a fixture in random order, for this time. */
typedef struct peeks_outcome {
  double rate;        /* per second */
  double cpu;         /* nanoseconds of processor time for each */
  double allocations; /* in all */
} peeks_outcome_t;

peeks_outcome_t race_peeks(fixture_t *fixture, unsigned keys, double seconds);

#endif /* BENCH_RACE_H */
