#include "sim/actors/hand.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_MS 5

static const sim_trade_t *trade_of(const sim_world_t *world) {
  switch (world->scenario->kind) {
  case SIM_LATCH:
    return &sim_latch_trade;
  case SIM_BARRIER:
    return &sim_barrier_trade;
  case SIM_ELECTION:
    return &sim_election_trade;
  case SIM_LIMITER:
  case SIM_RESERVE:
  case SIM_SLICE:
    return &sim_limiter_trade;
  case SIM_BUCKET:
    return &sim_bucket_trade;
  case SIM_DATA:
  case SIM_USERS:
    return &sim_data_trade;
  case SIM_CACHE:
    return &sim_cache_trade;
  case SIM_ORDERS:
    return &sim_orders_trade;
  default:
    return &sim_multilock_trade;
  }
}

static sim_hand_t *hand_of(const sim_process_t *process, unsigned index) {
  size_t size = trade_of(process->world)->size;
  return process->hands == NULL ? NULL
                                : (sim_hand_t *)(void *)((char *)process->hands + index * size);
}

unsigned sim_hands_count(const sim_world_t *world) {
  return world->scenario->processes * world->scenario->actors;
}

sim_hand_t *sim_hand_at(const sim_world_t *world, unsigned i) {
  return hand_of(&world->process[i / world->scenario->actors], i % world->scenario->actors);
}

void *sim_ledger(sim_world_t *world, size_t size) {
  if (world->check->ledger == NULL)
    world->check->ledger = sim_alloc(size);
  return world->check->ledger;
}

/* ---- chance and time ------------------------------------------------------------------------------------ */

bool sim_hand_chance(sim_hand_t *hand, unsigned per_mille) {
  return sim_chance(&sim_world_of(hand)->random, per_mille);
}

uint64_t sim_hand_between(sim_hand_t *hand, uint64_t min, uint64_t max) {
  return max > min ? sim_between(&sim_world_of(hand)->random, min, max) : min;
}

void sim_hand_later(sim_hand_t *hand, uint64_t ns) {
  if (!hand->resting)
    sim_alarm_set(&hand->alarm, ns);
}

void sim_hand_think(sim_hand_t *hand) {
  uint64_t mean = sim_world_of(hand)->scenario->think_ms * SIM_MS;
  sim_hand_later(hand, hand->healing ? sim_hand_between(hand, 0, 5 * SIM_MS)
                                     : sim_around(&sim_world_of(hand)->random, mean));
}

/* ---- calls and callbacks -------------------------------------------------------------------------------- */

static sim_seen_t *seen_of(const sim_hand_t *hand) {
  return &sim_world_of(hand)->check->seen[hand->process->index];
}

void sim_hand_enter(sim_hand_t *hand) {
  seen_of(hand)->calling = true;
}

bool sim_hand_leave(sim_hand_t *hand, const char *what, int error, int may) {
  seen_of(hand)->calling = false;
  sim_note(sim_world_of(hand), hand->who, "%s: %s", what, belay_err_name(error));
  bool memory = error == BELAY_ENOMEM && hand->process->fails > 0;
  if (error != 0 && error != may && !memory)
    sim_violation(sim_world_of(hand), "callbacks: %s: %s returned %s", hand->who, what,
                  belay_err_name(error));
  return error == 0;
}

void sim_hand_promise(sim_hand_t *hand, unsigned i, int64_t within_ms) {
  uint64_t now = sim_process_now(hand->process);
  hand->promise[i] = (sim_pending_t){
      .pending = true,
      .called = now,
      .since = sim_world_of(hand)->now,
      .due = within_ms == BELAY_FOREVER ? UINT64_MAX : now + (uint64_t)within_ms * SIM_MS};
  hand->canceled[i] = false;
}

void sim_hand_cancel(sim_hand_t *hand, unsigned i) {
  uint64_t now = sim_process_now(hand->process);
  hand->canceled[i] = true;
  if (hand->promise[i].due > now && !hand->trade->patient)
    hand->promise[i].due = now;
}

static unsigned close_of(const sim_hand_t *hand) {
  unsigned i = SIM_PROMISES - 1;
  while (hand->trade->op[i] == NULL)
    i--;
  return i;
}

bool sim_hand_close(sim_hand_t *hand, int error) {
  if (!sim_hand_leave(hand, "close", error, 0))
    return false;
  unsigned closes = close_of(hand);
  for (unsigned i = 0; i < closes; i++)
    sim_hand_cancel(hand, i);
  sim_hand_promise(hand, closes, BELAY_FOREVER);
  return true;
}

void sim_hand_closed(sim_hand_t *hand) {
  sim_hand_kept(hand, close_of(hand), 0);
  sim_hand_think(hand);
}

bool sim_hand_is_closing(const sim_hand_t *hand) {
  return hand->promise[close_of(hand)].pending;
}

belay_request_t sim_hand_request(sim_hand_t *hand) {
  bool brief = sim_hand_chance(hand, 500);
  return (belay_request_t){
      .data = hand, .timeout_ms = brief ? (int64_t)sim_hand_between(hand, 5, 400) : SIM_CALL_MS};
}

void sim_hand_cancel_request(sim_hand_t *hand, unsigned i, belay_request_t *request) {
  sim_hand_enter(hand);
  if (sim_hand_leave(hand, "cancel", belay_request_cancel(request), 0))
    sim_hand_cancel(hand, i);
}

static uint64_t late_by(const sim_hand_t *hand, unsigned i, uint64_t now) {
  uint64_t due = hand->promise[i].due, excused = sim_excused_until(hand->process);
  due = due > excused ? due : excused;
  return now > due && now - due > SIM_TICK ? now - due : 0;
}

static bool may_end_so(const sim_hand_t *hand, unsigned i, int status) {
  const int *ends = hand->trade->ends[i];
  return status == 0 || ends[0] == SIM_ANY || ends[0] == status || ends[1] == status ||
         ends[2] == status || sim_hand_may_fail(hand, status) ||
         (status == BELAY_ECANCELED && (hand->canceled[i] || hand->resting));
}

void sim_hand_kept(sim_hand_t *hand, unsigned i, int status) {
  sim_world_t *world = sim_world_of(hand);
  const char *op = hand->trade->op[i];
  uint64_t late = late_by(hand, i, sim_process_now(hand->process));
  sim_note(world, hand->who, "%s -> %s", op, belay_err_name(status));
  if (!hand->promise[i].pending)
    sim_violation(world, "callbacks: %s: %s calls back and is not pending", hand->who, op);
  if (seen_of(hand)->calling)
    sim_violation(world, "callbacks: %s: %s calls back inside a call", hand->who, op);
  if (late > 0)
    sim_violation(world, "callbacks: %s: %s calls back %.3f ms late (%s)", hand->who, op,
                  sim_in_ms(late), belay_err_name(status));
  if (!may_end_so(hand, i, status))
    sim_violation(world, "callbacks: %s: %s must not end so (%s)", hand->who, op,
                  belay_err_name(status));
  world->figures.operations++;
  hand->promise[i].pending = false;
}

void sim_hand_granted(sim_hand_t *hand) {
  sim_world_t *world = sim_world_of(hand);
  world->figures.grants++;
  world->figures.grants_in_faults += world->phase == SIM_STORM;
}

void sim_hand_stall(sim_hand_t *hand, int64_t ttl_ms) {
  const sim_world_t *world = sim_world_of(hand);
  if (world->phase == SIM_STORM && sim_hand_chance(hand, world->scenario->stalls))
    sim_watch_stall(hand->process, sim_hand_between(hand, 1, (uint64_t)ttl_ms * SIM_MS * 3 / 2));
}

void sim_hand_believes(const sim_hand_t *hand, uint64_t *seen, uint64_t left) {
  uint64_t now = sim_process_now(hand->process), excused = sim_excused_until(hand->process);
  if (left > 0 && *seen + SIM_TICK < now && excused + SIM_TICK < now)
    sim_violation(sim_world_of(hand), "revival: %s believes again", hand->who);
  if (left > 0)
    *seen = now + left;
  else if (now > *seen + SIM_TICK && now > excused + SIM_TICK)
    sim_violation(sim_world_of(hand), "loss: %s does not hold any more and was not told",
                  hand->who);
}

bool sim_hand_may_fail(const sim_hand_t *hand, int status) {
  const sim_scenario_t *scenario = sim_world_of(hand)->scenario;
  switch (status) {
  case BELAY_EUNKNOWN:
  case BELAY_EUNREACHABLE:
  case BELAY_EBUSY:
  case BELAY_ELOADING:
    return true;
  case BELAY_ENOMEM:
    return scenario->mean_ms[SIM_MEMORY] > 0;
  case BELAY_ESCRIPTBUSY:
  case BELAY_EOOM:
  case BELAY_EMISCONF:
  case BELAY_ENOREPLICAS:
  case BELAY_EREADONLY:
  case BELAY_ECLUSTERDOWN:
  case BELAY_EMOVED:
  case BELAY_EAUTH:
  case BELAY_EPERM:
    return scenario->mean_ms[SIM_REFUSING] > 0;
  default:
    return false;
  }
}

/* ---- turns ---------------------------------------------------------------------------------------------- */

/* Pending operations keep the loop alive and are not overdue. */
static void check_promises(const sim_hand_t *hand, uint64_t now) {
  for (unsigned i = 0; i < SIM_PROMISES; i++) {
    if (!hand->promise[i].pending)
      continue;
    if (!hand->process->keeps_alive)
      sim_violation(sim_world_of(hand),
                    "callbacks: %s: %s is pending and does not keep the loop alive", hand->who,
                    hand->trade->op[i]);
    if (late_by(hand, i, now) > 0)
      sim_violation(sim_world_of(hand), "callbacks: %s: %s has not called back for %.3f ms",
                    hand->who, hand->trade->op[i], sim_in_ms(now - hand->promise[i].called));
  }
}

void sim_hands_turn(sim_process_t *process) {
  uint64_t now = sim_clock_at(&process->clock, process->world->now);
  for (unsigned i = 0; i < process->world->scenario->actors; i++) {
    sim_hand_t *hand = hand_of(process, i);
    if (hand == NULL)
      return;
    check_promises(hand, now);
    if (hand->trade->turn != NULL)
      hand->trade->turn(hand);
  }
}

/* ---- servers ---------------------------------------------------------------------------------------------- */

void sim_hands_executed(sim_server_t *server, const engine_word_t *argv, size_t argc,
                        engine_word_t reply) {
  const sim_trade_t *trade = trade_of(server->world);
  if (server->world->scenario->kind >= SIM_MULTILOCK && trade->executed != NULL)
    trade->executed(server, argv, argc, reply);
}

/* ---- all of a process ----------------------------------------------------------------------------------- */

static void on_alarm(sim_alarm_t *alarm) {
  sim_hand_t *hand = SIM_CONTAINER(alarm, sim_hand_t, alarm);
  if (!hand->resting)
    hand->trade->act(hand);
}

void sim_hands_start(sim_process_t *process) {
  const sim_trade_t *trade = trade_of(process->world);
  unsigned n = process->world->scenario->actors;
  sim_seen_t *seen = &process->world->check->seen[process->index];
  seen->stood_until = 0;
  seen->closed = seen->unclean = false;
  seen->clients_closing = seen->pings = 0;
  process->hands = sim_alloc(n * trade->size);
  for (unsigned i = 0; i < n; i++) {
    sim_hand_t *hand = hand_of(process, i);
    hand->trade = trade;
    hand->process = hand->alarm.process = process;
    hand->index = i;
    hand->alarm.run = on_alarm;
    snprintf(hand->who, sizeof hand->who, "p%u.%u", process->index % 100, i % 100);
    belay__list_init(&hand->alarm.node);
    sim_hand_later(hand, sim_hand_between(hand, 0, FIRST_MS * SIM_MS));
  }
}

void sim_hands_end(sim_process_t *process) {
  unsigned n = process->hands == NULL ? 0 : process->world->scenario->actors;
  for (unsigned i = 0; i < n; i++) {
    sim_hand_t *hand = hand_of(process, i);
    sim_alarm_stop(&hand->alarm);
    for (unsigned j = 0; j < SIM_PROMISES; j++)
      if (hand->promise[j].pending && process->life == SIM_DOWN) /* else it has crashed */
        sim_violation(process->world, "callbacks: %s: all is closed, and %s has not called back",
                      hand->who, hand->trade->op[j]);
    if (hand->trade->gone != NULL)
      hand->trade->gone(hand);
  }
  free(process->hands);
  process->hands = NULL;
}

void sim_hands_rest(sim_process_t *process) {
  for (unsigned i = 0; i < process->world->scenario->actors; i++) {
    sim_hand_t *hand = hand_of(process, i);
    hand->resting = true;
    sim_alarm_stop(&hand->alarm);
    for (unsigned j = 0; j < SIM_PROMISES; j++)
      hand->promise[j].due = UINT64_MAX; /* the close's, which is looked at */
    if (hand->trade->rest != NULL)
      hand->trade->rest(hand);
  }
}

void sim_hands_heal(sim_process_t *process) {
  for (unsigned i = 0; i < process->world->scenario->actors; i++) {
    sim_hand_t *hand = hand_of(process, i);
    hand->healing = true;
    sim_hand_later(hand, sim_hand_between(hand, 0, 5 * SIM_MS));
  }
}

bool sim_hands_served(const sim_process_t *process) {
  for (unsigned i = 0; i < process->world->scenario->actors; i++)
    if (process->hands == NULL || !hand_of(process, i)->cured)
      return false;
  return true;
}
