/* Lockers that acquire and release, again and again. */
#ifndef TEST_SUPPORT_LOAD_CYCLES_H
#define TEST_SUPPORT_LOAD_CYCLES_H

#include "support/fixtures/env.h"

enum { LOCKERS_MAX = 64 };

typedef struct lockers {
  size_t count;
  belay_lock_t *locks[LOCKERS_MAX];
} lockers_t;

/* Handles of the env's client with equal or with different names. */
lockers_t lockers_new(env_t *env, size_t count, bool same_name);

/* All handles together run this number of cycles, without a pause. */
void run_cycles(env_t *env, const lockers_t *lockers, size_t cycles);

#endif /* TEST_SUPPORT_LOAD_CYCLES_H */
