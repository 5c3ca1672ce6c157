/* The options of a lock: random ones, within the scenario. */
#include "sim/actors/lock.h"

static bool chance(sim_lock_t *lock, unsigned per_mille) {
  return sim_actor_chance(&lock->base, per_mille);
}

static uint64_t between(sim_lock_t *lock, uint64_t min, uint64_t max) {
  return sim_actor_between(&lock->base, min, max);
}

/* Retries and renewals. */
static void draw_intervals(sim_lock_t *lock, belay_lock_options_t *options) {
  const sim_scenario_t *scenario = lock->base.world->scenario;
  uint64_t ttl = (uint64_t)options->ttl_ms;
  options->watchdog = (belay_watchdog_t)scenario->watchdog;
  if (scenario->watchdog == 0)
    options->watchdog = chance(lock, 600) ? BELAY_WATCHDOG_ON : BELAY_WATCHDOG_OFF;
  if (chance(lock, 250))
    options->renew_after_ms = (int64_t)between(lock, (ttl + 9) / 10, ttl / 2);
  if (chance(lock, 80))
    options->max_hold_ms = (int64_t)between(lock, 1, 4 * scenario->hold_ms + 1);
  if (chance(lock, 500)) {
    options->retry_min_ms = (int64_t)between(lock, 1, 20);
    options->retry_max_ms = options->retry_min_ms + (int64_t)between(lock, 0, 60);
  }
  if (chance(lock, 60))
    options->max_attempts = (unsigned)between(lock, 1, 5);
}

/* The wait in the queue. */
static void draw_waiting(sim_lock_t *lock, belay_lock_options_t *options) {
  const sim_scenario_t *scenario = lock->base.world->scenario;
  bool poll = scenario->waking == SIM_WAKE_BOTH && chance(lock, 300);
  if (poll || scenario->waking == SIM_WAKE_POLL)
    options->wakeup = BELAY_WAKE_POLL;
  if (chance(lock, 300))
    options->max_handovers = (unsigned)between(lock, 0, 3);
  SIM_SET_POLLS(options, scenario);
  if (scenario->waiter_ttl_ms > 0)
    options->waiter_ttl_ms = scenario->waiter_ttl_ms;
}

static void draw_kind(sim_lock_t *lock, belay_lock_options_t *options) {
  static const char *const owners[] = {"red", "green", "blue"};
  const sim_scenario_t *scenario = lock->base.world->scenario;
  lock->permits = scenario->kind == SIM_SEMAPHORE
                      ? (unsigned)between(lock, 1, chance(lock, 500) ? 1 : scenario->limit)
                      : 1;
  lock->writer = scenario->kind == SIM_RWLOCK && chance(lock, 400);
  options->fair = scenario->kind == SIM_FAIR || scenario->fair;
  if (scenario->kind != SIM_REENTRANT)
    return;
  lock->owner = (unsigned)between(lock, 0, scenario->owners - 1);
  options->owner = belay_string(owners[lock->owner]);
}

void sim_lock_draw_options(sim_lock_t *lock, belay_lock_options_t *options) {
  const sim_scenario_t *scenario = lock->base.world->scenario;
  belay_lock_options_init(options);
  options->ttl_ms =
      (int64_t)between(lock, (uint64_t)scenario->ttl_min_ms, (uint64_t)scenario->ttl_max_ms);
  draw_intervals(lock, options);
  int64_t tenth = options->ttl_ms / 10, most = scenario->servers == 1 ? 2000
                                               : tenth < 5            ? 5
                                                                      : tenth;
  if (scenario->timeout_ms > 0)
    options->timeout_ms = scenario->timeout_ms < most ? scenario->timeout_ms : most;
  else if (scenario->servers == 1 && chance(lock, 600))
    options->timeout_ms = (int64_t)between(lock, 15, 400);
  options->fencing = scenario->fencing;
  options->min_replicas = scenario->min_replicas;
  options->quarantine = scenario->quarantine;
  if (scenario->max_ttl_ms > 0)
    options->max_ttl_ms = scenario->max_ttl_ms;
  draw_waiting(lock, options);
  draw_kind(lock, options);
}
