#include "support/load/cycles.h"
#include "support/base/never.h"

#include <stdio.h>

typedef struct runners {
  size_t left;    /* cycles that are still to be begun */
  size_t running; /* lockers that have not stopped */
  size_t wrong;   /* outcomes other than 0 */
} runners_t;

static void on_released(belay_lock_t *lock, int status);

static void on_acquired(belay_lock_t *lock, int status) {
  runners_t *runners = belay_lock_data(lock);
  runners->wrong += status != 0;
  runners->wrong += belay_lock_release(lock, BELAY_DEFAULT, on_released) != 0;
}

static void begin_cycle(belay_lock_t *lock, runners_t *runners) {
  if (runners->left == 0) {
    runners->running--;
    return;
  }
  runners->left--;
  runners->wrong += belay_lock_acquire(lock, BELAY_FOREVER, on_acquired) != 0;
}

static void on_released(belay_lock_t *lock, int status) {
  runners_t *runners = belay_lock_data(lock);
  runners->wrong += status != 0;
  begin_cycle(lock, runners);
}

lockers_t lockers_new(env_t *env, size_t count, bool same_name) {
  lockers_t lockers = {.count = count};
  belay_lock_options_t options = lock_options();
  options.retry_min_ms = options.retry_max_ms = 1;
  char name[32];
  for (size_t i = 0; i < count; i++) {
    int len = snprintf(name, sizeof name, "door-%zu", same_name ? 0 : i);
    assert_error(
        belay_lock_new(env->client, belay_bytes(name, (size_t)len), &options, &lockers.locks[i]),
        0);
  }
  return lockers;
}

void run_cycles(env_t *env, const lockers_t *lockers, size_t cycles) {
  runners_t runners = {.left = cycles, .running = lockers->count};
  for (size_t i = 0; i < lockers->count; i++) {
    belay_lock_set_data(lockers->locks[i], &runners);
    begin_cycle(lockers->locks[i], &runners);
  }
  while (runners.running > 0) {
    size_t before = runners.left;
    env_until(env, runners.running == 0 || before - runners.left >= 1000);
  }
  assert_never(runners.wrong > 0);
}
