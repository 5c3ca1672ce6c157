/* The options of an actor's lock: random ones, within the scenario. */
#include <string.h>

#include "sim/check/check_actor.h"
#include "sim/scenarios/scenario.h"

static const sim_scenario_t *scenario_of(const sim_watch_t *watch) {
  return watch->process->world->scenario;
}

static bool chance(sim_watch_t *watch, unsigned per_mille) {
  return sim_chance(&watch->process->world->random, per_mille);
}

static uint64_t between(sim_watch_t *watch, uint64_t min, uint64_t max) {
  return max > min ? sim_between(&watch->process->world->random, min, max) : min;
}

/* How often it asks, how it renews. */
static void choose_pace(sim_watch_t *watch, belay_lock_options_t *options) {
  const sim_scenario_t *scenario = scenario_of(watch);
  uint64_t ttl = (uint64_t)options->ttl_ms;
  options->watchdog = (belay_watchdog_t)scenario->watchdog;
  if (scenario->watchdog == 0)
    options->watchdog = chance(watch, 600) ? BELAY_WATCHDOG_ON : BELAY_WATCHDOG_OFF;
  if (chance(watch, 250))
    options->renew_after_ms = (int64_t)between(watch, (ttl + 9) / 10, ttl / 2);
  if (chance(watch, 80))
    options->max_hold_ms = (int64_t)between(watch, 1, 4 * scenario->hold_ms + 1);
  if (chance(watch, 500)) {
    options->retry_min_ms = (int64_t)between(watch, 1, 20);
    options->retry_max_ms = options->retry_min_ms + (int64_t)between(watch, 0, 60);
  }
  if (chance(watch, 60))
    options->max_attempts = (unsigned)between(watch, 1, 5);
}

/* How it waits in line. */
static void choose_waiting(sim_watch_t *watch, belay_lock_options_t *options) {
  const sim_scenario_t *scenario = scenario_of(watch);
  bool poll = scenario->waking == SIM_WAKE_BOTH && chance(watch, 300);
  if (poll || scenario->waking == SIM_WAKE_POLL)
    options->wakeup = BELAY_WAKE_POLL;
  if (chance(watch, 300))
    options->max_handovers = (unsigned)between(watch, 0, 3);
  if (scenario->asleep_ms > 0) {
    options->retry_min_ms = scenario->asleep_ms;
    options->retry_max_ms = options->backoff_max_ms = 2 * scenario->asleep_ms;
  }
  if (scenario->waiter_ttl_ms > 0)
    options->waiter_ttl_ms = scenario->waiter_ttl_ms;
}

/* Chooses one of the scenario's kinds. */
static void choose_kind(sim_watch_t *watch, belay_lock_options_t *options) {
  static const char *const owners[] = {"red", "green", "blue"};
  const sim_scenario_t *scenario = scenario_of(watch);
  watch->permits = scenario->kind == SIM_SEMAPHORE
                       ? (unsigned)between(watch, 1, chance(watch, 500) ? 1 : scenario->limit)
                       : 1;
  watch->writer = scenario->kind == SIM_RWLOCK && chance(watch, 400);
  options->fair = scenario->kind == SIM_FAIR || scenario->fair;
  if (scenario->kind != SIM_REENTRANT)
    return;
  watch->owner = (unsigned)between(watch, 0, scenario->owners - 1);
  options->owner = belay_string(owners[watch->owner]);
}

void sim_choose_options(sim_watch_t *watch, belay_lock_options_t *options) {
  const sim_scenario_t *scenario = scenario_of(watch);
  belay_lock_options_init(options);
  options->ttl_ms =
      (int64_t)between(watch, (uint64_t)scenario->ttl_min_ms, (uint64_t)scenario->ttl_max_ms);
  choose_pace(watch, options);
  int64_t tenth = options->ttl_ms / 10, most = scenario->servers == 1 ? 2000
                                               : tenth < 5            ? 5
                                                                      : tenth;
  if (scenario->timeout_ms > 0)
    options->timeout_ms = scenario->timeout_ms < most ? scenario->timeout_ms : most;
  else if (scenario->servers == 1 && chance(watch, 600))
    options->timeout_ms = (int64_t)between(watch, 15, 400);
  options->fencing = scenario->fencing;
  options->min_replicas = scenario->min_replicas;
  options->quarantine = scenario->quarantine;
  if (scenario->max_ttl_ms > 0)
    options->max_ttl_ms = scenario->max_ttl_ms;
  choose_waiting(watch, options);
  choose_kind(watch, options);
}
