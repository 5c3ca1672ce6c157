/* Takes from a limiter: one and the same call, made by belay, by redis-benchmark, and by hiredis. */
#ifndef BENCH_STUDY_TAKES_TAKES_H
#define BENCH_STUDY_TAKES_TAKES_H

#include <belay.h>

#include "bench.h"

enum { TAKES_SPENT = 1000, TAKES_DIGITS = 12, TAKES_IN_FLIGHT_MAX = 1024, TAKES_LIMITS_MAX = 2 };

#define TAKES_NAME "bench"
#define TAKES_KEY "belay::limit::" TAKES_NAME "::{%.12s}" /* of the digits of a number */

/* Limits that admit one call to a key, and none for an hour after it. */
typedef struct takes_policy {
  const char *name;
  belay_limit_t limits[TAKES_LIMITS_MAX];
  size_t n;
  double numbers[4 * TAKES_LIMITS_MAX]; /* what the script is given of them (lua/limit/limit.lua) */
} takes_policy_t;

/* Which keys are taken from. */
typedef enum takes_keys {
  TAKES_FRESH,  /* each is new: all are allowed */
  TAKES_DENIED, /* TAKES_SPENT of them, all spent */
} takes_keys_t;

typedef struct takes {
  const takes_policy_t *policy;
  takes_keys_t keys;
  unsigned in_flight;
  uint64_t calls;
} takes_t;

/* What came of it. Processor times in nanoseconds for each call. */
typedef struct takes_outcome {
  double rate; /* calls per second */
  double client_cpu, server_cpu;
  double allocations; /* for each call */
} takes_outcome_t;

/* The digits of a number: a key. */
void takes_digits(uint64_t number, char out[TAKES_DIGITS]);

/* Forgets all keys; of TAKES_DENIED, spends those that there are then. Beforehand, and not measured. */
void takes_prepare(const takes_t *takes);

/* One loop, one connection; for redis-benchmark: one client. */
takes_outcome_t takes_by_belay(const takes_t *takes);
takes_outcome_t takes_by_redis_benchmark(const takes_t *takes); /* calls: a multiple of in_flight */
bool takes_have_redis_benchmark(void);

/* The server's processor time for each of the calls, in microseconds, by its own INFO: of belay's script, or of an
 * empty one with the same keys and arguments. Calls go through hiredis, many at a time. */
double takes_cost(const takes_t *takes, bool empty);

/* The program ends if belay's calls are not those that the others make. */
void takes_compare(const takes_policy_t *policy);

/* belay_limiter_try(): answers for each second, and allocations in all of them. */
typedef struct tries_outcome {
  double rate;
  double allocations;
} tries_outcome_t;

tries_outcome_t tries_denied(double seconds);
tries_outcome_t tries_leased(double seconds);

#endif /* BENCH_STUDY_TAKES_TAKES_H */
