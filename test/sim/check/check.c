/* Checkers: holds by local deadlines, and leftovers. */
#include "sim/check/check.h"

#include <stdlib.h>
#include <string.h>

#include "sim/check/check_state.h"

/* ---- beginning and end ---- */

static bool loses_data(const sim_scenario_t *scenario) {
  return scenario->mean_ms[SIM_RESTART_OLDER] > 0 || scenario->mean_ms[SIM_RESTART_EMPTY] > 0 ||
         scenario->mean_ms[SIM_RESTART_UNSEEN] > 0 || scenario->mean_ms[SIM_FLUSHALL] > 0 ||
         scenario->mean_ms[SIM_FAILOVER] > 0;
}

void sim_check_init(sim_world_t *world) {
  const sim_scenario_t *scenario = world->scenario;
  sim_check_t *check = sim_alloc(sizeof *check);
  world->check = check;
  check->world = world;
  check->quorum = scenario->servers / 2 + 1;
  check->foreign_deletes = scenario->mean_ms[SIM_KEY_DELETED] > 0;
  check->tokens = scenario->kind == SIM_LOCK || scenario->kind == SIM_FAIR;
  check->lossless =
      !scenario->broken && scenario->servers == 1 && !loses_data(scenario) && check->tokens;
  /* One server's fencing counter is never below its clock, and is not lost while that clock
   * steps. A majority of several servers can lose counters unnoticed. */
  check->numbered = !scenario->broken || scenario->servers == 1 || scenario->counters_kept ||
                    (scenario->drift == 0 && scenario->skew_ms == 0 && scenario->step_ms == 0);
  check->name = sim_alloc(scenario->names * sizeof *check->name);
  belay__list_init(&check->writes);
  sim_log_init(&check->log);
}

void sim_check_fini(sim_world_t *world) {
  sim_event_cancel(world, &world->check->strays);
  sim_register_fini(world->check);
  free(world->check->name);
  free(world->check->shared);
  free(world->check);
  world->check = NULL;
}

/* ---- rules: exclusion, revival ---- */

bool sim_lock_holds(const sim_lock_t *lock, uint64_t when) {
  return lock->held && belay__lease_deadline(sim_lock_lease(lock)) >=
                           sim_clock_at(&lock->base.process->clock, when) + 1000;
}

/* True if the two must not hold one name at once. */
static bool exclude_each_other(const sim_lock_t *a, const sim_lock_t *b) {
  switch (a->base.world->scenario->kind) {
  case SIM_REENTRANT:
    return a->base.process != b->base.process || a->owner != b->owner;
  case SIM_RWLOCK:
    return a->writer || b->writer;
  case SIM_SEMAPHORE:
    return false;
  default:
    return true;
  }
}

void sim_check_exclusive(const sim_lock_t *lock) {
  sim_world_t *world = lock->base.world;
  const sim_scenario_t *scenario = world->scenario;
  uint64_t when = sim_world_time(lock->base.process);
  unsigned permits = lock->permits;
  const sim_lock_t *other;
  if (scenario->broken)
    return;
  for (unsigned i = 0; (other = sim_next_lock(world, &i)) != NULL;) {
    if (other == lock || other->name != lock->name || !sim_lock_holds(other, when))
      continue;
    permits += other->permits;
    uint64_t now = sim_clock_at(&other->base.process->clock, when);
    if (exclude_each_other(lock, other))
      sim_violation(world, "exclusion: %s is granted n%u while %s holds it for another %.3f ms",
                    lock->base.who, lock->name, other->base.who,
                    sim_in_ms(belay__lease_deadline(sim_lock_lease(other)) - now));
  }
  if (scenario->kind == SIM_SEMAPHORE && permits > scenario->limit)
    sim_violation(world, "exclusion: %s is granted %u permits of n%u, and then %u of %u are in use",
                  lock->base.who, lock->permits, lock->name, permits, scenario->limit);
}

/* The last time at which the process continued: expired leases from before have been noticed. */
static uint64_t continued_at(const sim_process_t *process) {
  uint64_t begin = sim_clock_at(&process->clock, process->world->now);
  uint64_t stalled = process->world->check->seen[process->index].stalled_until;
  return begin > stalled ? begin : stalled;
}

void sim_check_deadline(sim_lock_t *lock) {
  if (lock->handle == NULL || lock->closing)
    return;
  sim_process_t *process = lock->base.process;
  const belay__lease_t *lease = sim_lock_lease(lock);
  bool held = belay__lease_is_held(lease);
  if (!lock->held && held)
    sim_violation(process->world, "callbacks: %s holds n%u, and no callback reported it",
                  lock->base.who, lock->name);
  if (!lock->held || !held) /* else it is lost, and that is about to be reported */
    return;
  uint64_t deadline = belay__lease_deadline(lease), now = sim_process_now(process);
  if (deadline > now && lock->seen <= continued_at(process))
    sim_violation(process->world, "revival: %s holds n%u again, %.3f ms after the deadline",
                  lock->base.who, lock->name, sim_in_ms(now - lock->seen));
  lock->seen = deadline;
}

void sim_check_held(sim_lock_t *lock) {
  sim_check_deadline(lock);
  if (lock->held && !belay__lease_is_held(sim_lock_lease(lock)))
    sim_violation(lock->base.world,
                  "loss: %s does not hold n%u any more, and no callback reported it",
                  lock->base.who, lock->name);
}

void sim_stall(sim_process_t *process, uint64_t ns) {
  sim_lock_t *lock;
  for (unsigned i = 0; (lock = sim_next_lock(process->world, &i)) != NULL;)
    if (lock->base.process == process)
      sim_check_deadline(lock);
  sim_count(process->world, SIM_STALL);
  sim_process_stall(process, ns);
  process->world->check->seen[process->index].stalled_until = sim_process_now(process);
}

/* ---- turns ---- */

uint64_t sim_excused_until(const sim_process_t *process) {
  if (process->ahead > 0)
    return sim_process_now(process);
  uint64_t until = sim_clock_at(&process->clock, process->excused);
  uint64_t stalled = process->world->check->seen[process->index].stalled_until;
  return until > stalled ? until : stalled;
}

/* A close calls back at its timeout at the latest. */
static void check_closing(const sim_process_t *process, const sim_seen_t *seen) {
  sim_world_t *world = process->world;
  uint64_t now = sim_clock_at(&process->clock, world->now); /* when the turn began */
  int64_t close_ms = world->scenario->client.close_ms > 0 ? world->scenario->client.close_ms : 1000;
  uint64_t due = process->closes + (uint64_t)close_ms * SIM_MS;
  bool late = process->life == SIM_ENDING && now > due + SIM_TICK;
  late |= seen->clients_closing > 0 && now > seen->clients_due + SIM_TICK;
  if (late && now > sim_excused_until(process) + SIM_TICK)
    sim_violation(world, "callbacks: %s: a close has not called back", process->name);
}

void sim_check_turn(sim_process_t *process) {
  if (process->life == SIM_DOWN)
    return;
  check_closing(process, &process->world->check->seen[process->index]);
  sim_actors_after_turn(process);
}

/* ---- the ends of processes ---- */

/* Some messages report that a key may be left behind. */
void sim_check_logged(sim_process_t *process, const char *line) {
  static const char *const given_up[] = {"undo given up", "no room for an undo"};
  for (size_t i = 0; i < sizeof given_up / sizeof *given_up; i++)
    if (strncmp(line, given_up[i], strlen(given_up[i])) == 0)
      process->world->check->seen[process->index].unclean = true;
}

void sim_check_crashed(sim_process_t *process) {
  sim_seen_t *seen = &process->world->check->seen[process->index];
  seen->closed = seen->unclean = seen->calling = false;
}

void sim_check_closed(sim_process_t *process) {
  sim_world_t *world = process->world;
  sim_seen_t *seen = &world->check->seen[process->index];
  if (process->blocks_len != 0)
    sim_violation(world, "leaks: %s has closed all and keeps %zu blocks of memory", process->name,
                  process->blocks_len);
  for (belay__list_t *i = world->net->conns.next; i != &world->net->conns; i = i->next)
    if (BELAY__CONTAINER(i, sim_conn_t, node)->process == process)
      sim_violation(world, "leaks: %s has closed all and keeps a socket", process->name);
  if (seen->pings > 0)
    sim_violation(world, "callbacks: %s is closed, and a ping has not called back", process->name);
  seen->closed = true;
}
