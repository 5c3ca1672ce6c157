/* Checkers: beliefs of holders, and leftovers. */
#include "sim/check/check.h"

#include <stdlib.h>
#include <string.h>

#include "sim/check/check_state.h"
#include "sim/actors/hand.h"

/* ---- beginning and end ---------------------------------------------------------------------------------- */

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
  check->strangers = scenario->mean_ms[SIM_KEY_DELETED] > 0;
  check->tokens = scenario->kind == SIM_LOCK || scenario->kind == SIM_FAIR;
  check->faithful =
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
  free(world->check->ledger);
  free(world->check);
  world->check = NULL;
}

/* ---- rules: exclusion, revival -------------------------------------------------------------------------- */

bool sim_believes(const sim_watch_t *watch, uint64_t when) {
  return watch != NULL && watch->held &&
         belay__lease_deadline(sim_watch_lease(watch)) >=
             sim_clock_at(&watch->process->clock, when) + 1000;
}

/* Whether the two must not hold one name at once. */
static bool exclude_each_other(const sim_watch_t *a, const sim_watch_t *b) {
  switch (a->process->world->scenario->kind) {
  case SIM_REENTRANT:
    return a->process != b->process || a->owner != b->owner;
  case SIM_RWLOCK:
    return a->writer || b->writer;
  default:
    return true;
  }
}

static void check_pair(const sim_watch_t *watch, const sim_watch_t *other, uint64_t when) {
  uint64_t now = sim_clock_at(&other->process->clock, when);
  if (exclude_each_other(watch, other))
    sim_violation(
        watch->process->world,
        "exclusion: %s is told that it holds n%u while %s believes in it for another %.3f ms",
        watch->who, watch->name, other->who,
        sim_in_ms(belay__lease_deadline(sim_watch_lease(other)) - now));
}

void sim_check_exclusive(const sim_watch_t *watch) {
  sim_world_t *world = watch->process->world;
  const sim_scenario_t *scenario = world->scenario;
  uint64_t when = sim_world_time(watch->process);
  unsigned permits = watch->permits;
  if (scenario->broken)
    return;
  for (unsigned i = 0; i < scenario->processes; i++)
    for (unsigned j = 0; j < SIM_ACTORS_MAX; j++) {
      const sim_watch_t *other = world->check->seen[i].watch[j];
      if (other == watch || !sim_believes(other, when) || other->name != watch->name)
        continue;
      permits += other->permits;
      if (scenario->kind != SIM_SEMAPHORE)
        check_pair(watch, other, when);
    }
  if (scenario->kind == SIM_SEMAPHORE && permits > scenario->limit)
    sim_violation(
        world, "exclusion: %s is told that it holds %u of n%u, and then %u of %u are believed in",
        watch->who, watch->permits, watch->name, permits, scenario->limit);
}

/* The last time at which the process continued: expired leases from before have been noticed. */
static uint64_t stretch_begin(const sim_process_t *process) {
  uint64_t begin = sim_clock_at(&process->clock, process->world->now);
  uint64_t stood = process->world->check->seen[process->index].stood_until;
  return begin > stood ? begin : stood;
}

/* An ended belief does not return, and a belief needs a reported grant. */
void sim_check_belief(sim_watch_t *watch) {
  if (watch->lock == NULL || watch->closing)
    return;
  sim_process_t *process = watch->process;
  sim_world_t *world = process->world;
  const belay__lease_t *lease = sim_watch_lease(watch);
  bool believes = belay__lease_is_held(lease);
  if (!watch->held) {
    if (believes)
      sim_violation(world, "callbacks: %s holds n%u and was not told", watch->who, watch->name);
    return;
  }
  if (!believes)
    return; /* lost, and about to be reported */
  uint64_t deadline = belay__lease_deadline(lease);
  if (deadline > sim_process_now(process) && watch->seen <= stretch_begin(process))
    sim_violation(world, "revival: %s believes in n%u again, which was over %.3f ms ago",
                  watch->who, watch->name, sim_in_ms(sim_process_now(process) - watch->seen));
  watch->seen = deadline;
}

void sim_watch_stall(sim_process_t *process, uint64_t ns) {
  sim_seen_t *seen = &process->world->check->seen[process->index];
  for (unsigned i = 0; i < SIM_ACTORS_MAX; i++)
    if (seen->watch[i] != NULL)
      sim_check_belief(seen->watch[i]);
  sim_count(process->world, SIM_STALL);
  sim_process_stall(process, ns);
  seen->stood_until = sim_process_now(process);
}

/* ---- turns ---------------------------------------------------------------------------------------------- */

uint64_t sim_excused_until(const sim_process_t *process) {
  if (process->ahead > 0)
    return sim_process_now(process);
  uint64_t until = sim_clock_at(&process->clock, process->excused);
  uint64_t stood = process->world->check->seen[process->index].stood_until;
  return until > stood ? until : stood;
}

uint64_t sim_due(const sim_watch_t *watch, sim_op_t op) {
  const sim_pending_t *pending = &watch->op[op];
  uint64_t excused = sim_excused_until(watch->process), due = pending->due;
  if (pending->rounds > 0 && excused > pending->called) {
    due = excused + pending->rounds;
    due = due < pending->limit ? due : pending->limit;
  }
  return due > excused ? due : excused;
}

/* At the end of a turn every loss was reported. */
static void check_told(const sim_watch_t *watch) {
  if (watch->held && !belay__lease_is_held(sim_watch_lease(watch)))
    sim_violation(watch->process->world, "loss: %s does not hold n%u any more and was not told",
                  watch->who, watch->name);
}

/* Pending operations keep the loop alive and are not overdue. */
static void check_pending(const sim_watch_t *watch, uint64_t now) {
  sim_process_t *process = watch->process;
  for (sim_op_t op = 0; op < SIM_OPS; op++) {
    if (!watch->op[op].pending)
      continue;
    if (!process->keeps_alive)
      sim_violation(process->world, "callbacks: %s: %s is pending and does not keep the loop alive",
                    watch->who, sim_op_names[op]);
    if (now > watch->op[op].due && now - watch->op[op].due > SIM_TICK &&
        now > sim_due(watch, op) + SIM_TICK)
      sim_violation(process->world, "callbacks: %s: %s has not called back for %.3f ms", watch->who,
                    sim_op_names[op], sim_in_ms(now - watch->op[op].called));
  }
}

/* A close is through when what is left has been given up. */
static void check_closing(const sim_process_t *process, const sim_seen_t *seen, uint64_t now) {
  sim_world_t *world = process->world;
  int64_t patience = world->scenario->client.close_ms > 0 ? world->scenario->client.close_ms : 1000;
  uint64_t excused = sim_excused_until(process) + SIM_TICK;
  bool late =
      process->life == SIM_ENDING && now > process->closes + (uint64_t)patience * SIM_MS + SIM_TICK;
  late |= seen->clients_closing > 0 && now > seen->clients_due + SIM_TICK;
  if (late && now > excused)
    sim_violation(world, "callbacks: %s: a close has not called back", process->name);
}

void sim_check_turn(sim_process_t *process) {
  sim_world_t *world = process->world;
  sim_seen_t *seen = &world->check->seen[process->index];
  if (process->life == SIM_DOWN)
    return;
  uint64_t now = sim_clock_at(&process->clock, world->now); /* when the turn began */
  check_closing(process, seen, now);
  sim_hands_turn(process);
  for (unsigned i = 0; i < world->scenario->actors; i++) {
    sim_watch_t *watch = seen->watch[i];
    if (watch == NULL)
      continue;
    sim_check_belief(watch);
    check_told(watch);
    check_pending(watch, now);
  }
}

/* ---- the ends of processes ------------------------------------------------------------------------------ */

/* It says so when a key may be left behind. */
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
