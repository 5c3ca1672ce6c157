#include "sim/actors/actor.h"

#include <stdlib.h>

#include "sim/check/check_state.h"

#define FIRST_MS 5 /* limit of the delay before the first act of a process */

static const sim_actor_type_t *type_of(const sim_world_t *world) {
  static const sim_actor_type_t *const types[] = {
      [SIM_LOCK] = &sim_lock_type,         [SIM_REENTRANT] = &sim_lock_type,
      [SIM_FAIR] = &sim_lock_type,         [SIM_RWLOCK] = &sim_lock_type,
      [SIM_SEMAPHORE] = &sim_lock_type,    [SIM_MULTILOCK] = &sim_multilock_type,
      [SIM_LATCH] = &sim_latch_type,       [SIM_BARRIER] = &sim_barrier_type,
      [SIM_ELECTION] = &sim_election_type, [SIM_LIMITER] = &sim_limiter_type,
      [SIM_RESERVE] = &sim_limiter_type,   [SIM_SLICE] = &sim_limiter_type,
      [SIM_BUCKET] = &sim_bucket_type,     [SIM_DATA] = &sim_data_type,
      [SIM_USERS] = &sim_data_type,        [SIM_CACHE] = &sim_cache_type,
      [SIM_GROUP] = &sim_group_type,       [SIM_ORDERS] = &sim_orders_type,
      [SIM_OUTAGE] = &sim_multilock_type,
  };
  return types[world->scenario->kind];
}

static sim_actor_t *actor_of(const sim_process_t *process, unsigned index) {
  size_t at = index * type_of(process->world)->size;
  return process->actors == NULL ? NULL : (sim_actor_t *)(void *)((char *)process->actors + at);
}

unsigned sim_actors_count(const sim_world_t *world) {
  return world->scenario->processes * world->scenario->actors;
}

sim_actor_t *sim_actor_at(const sim_world_t *world, unsigned i) {
  return actor_of(&world->process[i / world->scenario->actors], i % world->scenario->actors);
}

void *sim_shared(sim_world_t *world, size_t size) {
  if (world->check->shared == NULL)
    world->check->shared = sim_alloc(size);
  return world->check->shared;
}

/* ---- chance and time ---- */

bool sim_actor_chance(sim_actor_t *actor, unsigned per_mille) {
  return sim_chance(&actor->world->random, per_mille);
}

uint64_t sim_actor_between(sim_actor_t *actor, uint64_t min, uint64_t max) {
  return max > min ? sim_between(&actor->world->random, min, max) : min;
}

void sim_actor_later(sim_actor_t *actor, uint64_t ns) {
  if (!actor->stopping)
    sim_alarm_set(&actor->alarm, ns);
}

void sim_actor_think(sim_actor_t *actor) {
  uint64_t mean = actor->world->scenario->think_ms * SIM_MS;
  sim_actor_later(actor, actor->healing ? sim_actor_between(actor, 0, 5 * SIM_MS)
                                        : sim_around(&actor->world->random, mean));
}

/* ---- calls and callbacks ---- */

static sim_seen_t *seen_of(const sim_actor_t *actor) {
  return &actor->world->check->seen[actor->process->index];
}

void sim_actor_enter(sim_actor_t *actor) {
  seen_of(actor)->calling = true;
}

void sim_actor_expect_return(sim_actor_t *actor, const char *name, int error, int expected,
                             int may) {
  seen_of(actor)->calling = false;
  sim_note(actor->world, actor->who, "%s: %s", name, belay_err_name(error));
  if (error != expected && error != may)
    sim_violation(actor->world, "callbacks: %s: %s returned %s, not %s", actor->who, name,
                  belay_err_name(error), belay_err_name(expected));
}

bool sim_actor_leave(sim_actor_t *actor, const char *name, int error, int may) {
  bool memory = error == BELAY_ENOMEM && actor->process->fails > 0;
  sim_actor_expect_return(actor, name, error, 0, memory ? error : may);
  return error == 0;
}

void sim_actor_expect(sim_actor_t *actor, unsigned i, int64_t within_ms) {
  uint64_t now = sim_process_now(actor->process);
  actor->op[i] = (sim_pending_t){
      .pending = true,
      .called = now,
      .since = actor->world->now,
      .due = within_ms == BELAY_FOREVER ? UINT64_MAX : now + (uint64_t)within_ms * SIM_MS};
  actor->canceled[i] = false;
}

void sim_actor_hurry(sim_actor_t *actor, unsigned i) {
  uint64_t now = sim_process_now(actor->process);
  actor->op[i].rounds = 0;
  if (actor->op[i].due > now)
    actor->op[i].due = now;
}

void sim_actor_canceled(sim_actor_t *actor, unsigned i) {
  actor->canceled[i] = true;
  if (!actor->type->patient)
    sim_actor_hurry(actor, i);
}

static uint64_t due_at(const sim_actor_t *actor, unsigned i) {
  const sim_pending_t *pending = &actor->op[i];
  uint64_t excused = sim_excused_until(actor->process), due = pending->due;
  if (pending->rounds > 0 && excused > pending->called) {
    due = excused + pending->rounds;
    due = due < pending->limit ? due : pending->limit;
  }
  return due > excused ? due : excused;
}

static uint64_t late_by(const sim_actor_t *actor, unsigned i, uint64_t now) {
  if (now <= actor->op[i].due || now - actor->op[i].due <= SIM_TICK)
    return 0;
  uint64_t due = due_at(actor, i);
  return now > due && now - due > SIM_TICK ? now - due : 0;
}

void sim_actor_called_back(sim_actor_t *actor, unsigned i, int status) {
  sim_world_t *world = actor->world;
  const char *op = actor->type->op[i];
  uint64_t late = late_by(actor, i, sim_process_now(actor->process));
  sim_note(world, actor->who, "%s -> %s", op, belay_err_name(status));
  if (!actor->op[i].pending)
    sim_violation(world, "callbacks: %s: %s calls back and is not pending", actor->who, op);
  if (seen_of(actor)->calling)
    sim_violation(world, "callbacks: %s: %s calls back inside a call", actor->who, op);
  if (late > 0)
    sim_violation(world, "callbacks: %s: %s calls back %.3f ms late (%s)", actor->who, op,
                  sim_in_ms(late), belay_err_name(status));
  world->figures.operations++;
  actor->op[i].pending = false;
}

/* True for each error that a request to a server may end with. */
static bool may_fail(const sim_actor_t *actor, int status) {
  const sim_scenario_t *scenario = actor->world->scenario;
  if (status == BELAY_EUNKNOWN || status == BELAY_EUNREACHABLE || status == BELAY_EBUSY ||
      status == BELAY_ELOADING)
    return true;
  if (status == BELAY_ENOMEM)
    return scenario->mean_ms[SIM_MEMORY] > 0;
  return sim_is_refusal(status) && scenario->mean_ms[SIM_REFUSING] > 0;
}

void sim_actor_ended(sim_actor_t *actor, unsigned i, int status) {
  const int *ends = actor->type->ends[i];
  bool may = status == 0 || ends[0] == SIM_ANY || ends[0] == status || ends[1] == status ||
             ends[2] == status || may_fail(actor, status) ||
             (status == BELAY_ECANCELED && (actor->canceled[i] || actor->stopping));
  sim_actor_called_back(actor, i, status);
  if (!may)
    sim_violation(actor->world, "callbacks: %s: %s must not end so (%s)", actor->who,
                  actor->type->op[i], belay_err_name(status));
}

/* ---- handles and requests ---- */

static unsigned close_of(const sim_actor_t *actor) {
  unsigned i = SIM_OPERATIONS - 1;
  while (actor->type->op[i] == NULL)
    i--;
  return i;
}

void sim_actor_make(sim_actor_t *actor) {
  if (!SIM_CALL(actor, "new", 0, actor->type->make(actor)))
    actor->handle = NULL;
}

bool sim_actor_close(sim_actor_t *actor) {
  unsigned close = close_of(actor);
  if (!SIM_CALL(actor, "close", 0, actor->type->close(actor)))
    return false;
  for (unsigned i = 0; i < close; i++)
    sim_actor_canceled(actor, i);
  sim_actor_expect(actor, close, BELAY_FOREVER);
  return true;
}

void sim_actor_closed(sim_actor_t *actor) {
  actor->handle = NULL;
  sim_actor_ended(actor, close_of(actor), 0);
  sim_actor_think(actor);
}

bool sim_actor_is_closing(const sim_actor_t *actor) {
  return actor->op[close_of(actor)].pending;
}

belay_request_t *sim_actor_request(sim_actor_t *actor, unsigned i) {
  bool brief = sim_actor_chance(actor, 500);
  actor->request[i] = (belay_request_t){
      .data = actor, .timeout_ms = brief ? (int64_t)sim_actor_between(actor, 5, 400) : SIM_CALL_MS};
  return &actor->request[i];
}

void sim_actor_cancel_request(sim_actor_t *actor, unsigned i) {
  if (SIM_CALL(actor, "cancel", 0, belay_request_cancel(&actor->request[i])))
    sim_actor_canceled(actor, i);
}

void sim_actor_send_requests(sim_actor_t *actor) {
  if (sim_actor_is_closing(actor))
    return;
  if (actor->handle == NULL)
    sim_actor_make(actor);
  else if (!actor->healing && sim_actor_chance(actor, 10))
    sim_actor_close(actor);
  else if (!actor->op[0].pending)
    actor->type->ask(actor);
  else if (!actor->healing && sim_actor_chance(actor, 30))
    sim_actor_cancel_request(actor, 0);
  sim_actor_think(actor);
}

/* ---- grants ---- */

void sim_actor_granted(sim_actor_t *actor) {
  actor->world->figures.grants++;
  actor->world->figures.grants_in_faults += actor->world->phase == SIM_STORM;
}

void sim_actor_stall(sim_actor_t *actor, int64_t ttl_ms) {
  const sim_world_t *world = actor->world;
  if (world->phase == SIM_STORM && sim_actor_chance(actor, world->scenario->stalls))
    sim_stall(actor->process, sim_actor_between(actor, 1, (uint64_t)ttl_ms * SIM_MS * 3 / 2));
}

void sim_actor_check_held(const sim_actor_t *actor, uint64_t *seen, uint64_t left) {
  uint64_t now = sim_process_now(actor->process), excused = sim_excused_until(actor->process);
  if (left > 0 && *seen + SIM_TICK < now && excused + SIM_TICK < now)
    sim_violation(actor->world, "revival: %s holds again without a new grant", actor->who);
  if (left > 0)
    *seen = now + left;
  else if (now > *seen + SIM_TICK && now > excused + SIM_TICK)
    sim_violation(actor->world, "loss: %s does not hold any more, and no callback reported it",
                  actor->who);
}

/* ---- all actors of a process ---- */

/* Pending operations keep the loop alive and are not overdue. */
static void check_pending(const sim_actor_t *actor, uint64_t now) {
  for (unsigned i = 0; i < SIM_OPERATIONS; i++) {
    if (!actor->op[i].pending)
      continue;
    if (!actor->process->keeps_alive)
      sim_violation(actor->world, "callbacks: %s: %s is pending and does not keep the loop alive",
                    actor->who, actor->type->op[i]);
    if (late_by(actor, i, now) > 0)
      sim_violation(actor->world, "callbacks: %s: %s has not called back for %.3f ms", actor->who,
                    actor->type->op[i], sim_in_ms(now - actor->op[i].called));
  }
}

void sim_actors_after_turn(sim_process_t *process) {
  uint64_t now = sim_clock_at(&process->clock, process->world->now); /* when the turn began */
  for (unsigned i = 0; process->actors != NULL && i < process->world->scenario->actors; i++) {
    sim_actor_t *actor = actor_of(process, i);
    if (actor->type->after_turn != NULL)
      actor->type->after_turn(actor);
    check_pending(actor, now);
  }
}

void sim_actors_executed(sim_server_t *server, const engine_bytes_t *argv, size_t argc,
                         engine_bytes_t reply) {
  const sim_actor_type_t *type = type_of(server->world);
  if (type->executed != NULL)
    type->executed(server, argv, argc, reply);
}

static void on_alarm(sim_alarm_t *alarm) {
  sim_actor_t *actor = SIM_CONTAINER(alarm, sim_actor_t, alarm);
  if (!actor->stopping)
    actor->type->act(actor);
}

void sim_actors_start(sim_process_t *process) {
  const sim_actor_type_t *type = type_of(process->world);
  unsigned n = process->world->scenario->actors;
  sim_seen_t *seen = &process->world->check->seen[process->index];
  *seen = (sim_seen_t){.calling = seen->calling};
  process->actors = sim_alloc(n * type->size);
  for (unsigned i = 0; i < n; i++) {
    sim_actor_t *actor = actor_of(process, i);
    actor->type = type;
    actor->world = process->world;
    actor->process = actor->alarm.process = process;
    actor->index = i;
    actor->alarm.run = on_alarm;
    snprintf(actor->who, sizeof actor->who, "p%u.%u", process->index % 100, i % 100);
    belay__list_init(&actor->alarm.node);
    if (type->start != NULL)
      type->start(actor);
    sim_actor_later(actor, sim_actor_between(actor, 0, FIRST_MS * SIM_MS));
  }
}

void sim_actors_end(sim_process_t *process) {
  unsigned n = process->actors == NULL ? 0 : process->world->scenario->actors;
  for (unsigned i = 0; i < n; i++) {
    sim_actor_t *actor = actor_of(process, i);
    sim_alarm_stop(&actor->alarm);
    for (unsigned j = 0; j < SIM_OPERATIONS; j++)
      if (actor->op[j].pending && process->life == SIM_DOWN) /* else it has crashed */
        sim_violation(process->world, "callbacks: %s: all is closed, and %s has not called back",
                      actor->who, actor->type->op[j]);
    if (actor->type->ended != NULL)
      actor->type->ended(actor);
  }
  free(process->actors);
  process->actors = NULL;
}

void sim_actors_stop(sim_process_t *process) {
  for (unsigned i = 0; i < process->world->scenario->actors; i++) {
    sim_actor_t *actor = actor_of(process, i);
    actor->stopping = true;
    sim_alarm_stop(&actor->alarm);
    for (unsigned j = 0; j < SIM_OPERATIONS && !actor->type->keeps_limits; j++)
      actor->op[j].due = UINT64_MAX; /* the close of the process has a limit of its own */
    if (actor->type->stop != NULL)
      actor->type->stop(actor);
  }
}

void sim_actors_heal(sim_process_t *process) {
  for (unsigned i = 0; i < process->world->scenario->actors; i++) {
    sim_actor_t *actor = actor_of(process, i);
    actor->healing = true;
    if (actor->type->heal != NULL)
      actor->type->heal(actor);
    sim_actor_later(actor, sim_actor_between(actor, 0, 5 * SIM_MS));
  }
}

bool sim_actors_served(const sim_process_t *process) {
  for (unsigned i = 0; i < process->world->scenario->actors; i++)
    if (process->actors == NULL || !actor_of(process, i)->served)
      return false;
  return true;
}
