/* Checkers: return values, and callbacks: once, in time, with permitted statuses. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "belay/redlock.h"
#include "belay/rwlock.h"
#include "belay/semaphore.h"
#include "sim/check/check_result.h"

#define ROUNDS_MAX                                                                                 \
  17 /* of one attempt: the votes, and eight fencing numbers that are read and proposed */

const char *const sim_op_names[SIM_OPS] = {"acquire", "release", "extend", "close"};

static sim_seen_t *seen_of(const sim_watch_t *watch) {
  return &watch->process->world->check->seen[watch->process->index];
}

void sim_watch_begin(sim_watch_t *watch) {
  sim_seen_t *seen = seen_of(watch);
  snprintf(watch->who, sizeof watch->who, "%s.%u", watch->process->name, watch->index);
  seen->watch[watch->index] = watch;
  seen->stood_until = 0;
  seen->closed = seen->unclean = false;
  seen->clients_closing = seen->pings = 0;
  seen->clients_due = 0;
  sim_strays_begin(watch->process->world->check);
}

static void let_go(sim_watch_t *watch) {
  watch->held = false;
  if (watch->token != NULL)
    watch->token->pins--;
  watch->token = NULL;
}

void sim_watch_end(sim_watch_t *watch) {
  sim_world_t *world = watch->process->world;
  for (sim_op_t op = 0; op < SIM_OPS; op++)
    if (watch->op[op].pending && watch->process->life == SIM_DOWN) /* else it has crashed */
      sim_violation(world, "callbacks: %s: all is closed, and %s has not called back", watch->who,
                    sim_op_names[op]);
  let_go(watch);
  seen_of(watch)->watch[watch->index] = NULL;
}

/* ---- what is called ------------------------------------------------------------------------------------- */

/* In milliseconds of its clock from now; negative: whenever. */
static void expect(sim_watch_t *watch, sim_op_t op, int64_t within_ms) {
  const sim_process_t *process = watch->process;
  uint64_t now = sim_process_now(process);
  bool ever = within_ms < 0 || within_ms == BELAY_FOREVER;
  watch->op[op] = (sim_pending_t){.pending = true,
                                  .called = now,
                                  .since = process->world->now,
                                  .due = ever ? UINT64_MAX : now + (uint64_t)within_ms * SIM_MS};
}

/* Pending operations end now: canceled, or the handle closed. */
static void hurry(sim_watch_t *watch, sim_op_t op) {
  uint64_t now = sim_process_now(watch->process);
  watch->op[op].rounds = 0;
  if (watch->op[op].due > now)
    watch->op[op].due = now;
}

static void enter(sim_watch_t *watch) {
  assert(!seen_of(watch)->calling);
  seen_of(watch)->calling = true;
}

/* Checks a return value. */
static int leave(sim_watch_t *watch, const char *what, int error, int expected, int or_else) {
  sim_world_t *world = watch->process->world;
  seen_of(watch)->calling = false;
  sim_note(world, watch->who, "%s n%u: %s", what, watch->name, belay_err_name(error));
  if (error != expected && error != or_else)
    sim_violation(world, "callbacks: %s: %s returned %s, not %s", watch->who, what,
                  belay_err_name(error), belay_err_name(expected));
  return error;
}

static uint64_t remaining(const sim_watch_t *watch) {
  uint64_t deadline = belay__lease_deadline(sim_watch_lease(watch));
  uint64_t now = sim_process_now(watch->process);
  return deadline > now ? deadline - now : 0;
}

static int64_t timeout_of(const sim_watch_t *watch, int64_t timeout_ms) {
  return timeout_ms == BELAY_DEFAULT ? (int64_t)sim_watch_lease(watch)->config->timeout
                                     : timeout_ms;
}

static void on_lost(belay_lock_t *lock, belay_lost_t reason);
static void on_acquired(belay_lock_t *lock, int status);
static void on_released(belay_lock_t *lock, int status);
static void on_extended(belay_lock_t *lock, int status);
static void on_closed(belay_lock_t *lock, void *data);

static int new_lock(sim_watch_t *watch, const char *name, size_t len) {
  sim_process_t *process = watch->process;
  const sim_scenario_t *scenario = process->world->scenario;
  switch (scenario->kind) {
  case SIM_RWLOCK:
    return belay_rwlock_new(process->client, process->clients, belay_bytes(name, len),
                            watch->writer ? BELAY_RWLOCK_WRITE : BELAY_RWLOCK_READ, &watch->options,
                            &watch->lock);
  case SIM_SEMAPHORE:
    return belay_semaphore_new(
        process->client, process->clients, belay_bytes(name, len),
        &(belay_semaphore_size_t){.limit = scenario->limit, .permits = watch->permits},
        &watch->options, &watch->lock);
  default:
    if (scenario->servers == 1)
      return belay_lock_new(process->client[0], belay_bytes(name, len), &watch->options,
                            &watch->lock);
    return belay_redlock_new(process->client, process->clients, belay_bytes(name, len),
                             &watch->options, &watch->lock);
  }
}

bool sim_watch_make(sim_watch_t *watch, unsigned name, const belay_lock_options_t *options) {
  sim_process_t *process = watch->process;
  sim_world_t *world = process->world;
  sim_name_t *of = &world->check->name[name];
  char text[16];
  int len = snprintf(text, sizeof text, "n%u", name), error;
  assert(watch->lock == NULL);
  watch->name = name;
  watch->options = *options;
  watch->options.on_lost = on_lost;
  watch->options.data = watch;
  enter(watch);
  error = new_lock(watch, text, (size_t)len);
  leave(watch, "new", error, 0, BELAY_ENOMEM);
  if (error == BELAY_ENOMEM && process->fails == 0)
    sim_violation(world, "callbacks: %s: out of memory", watch->who);
  if ((error == 0) != (watch->lock != NULL))
    sim_violation(world, "callbacks: %s: new: %s, and %s handle", watch->who, belay_err_name(error),
                  watch->lock == NULL ? "no" : "a");
  if (error != 0)
    return false;
  const char *key = belay_lock_key(watch->lock, &of->key_len);
  assert(of->key_len <= sizeof of->key);
  memcpy(of->key, key, of->key_len);
  watch->closing = watch->taken_away = watch->late_loss = watch->canceled = false;
  watch->deaf = watch->deaf_extend = false;
  return true;
}

int sim_watch_acquire(sim_watch_t *watch, int64_t wait_ms) {
  const belay__lease_t *lease = sim_watch_lease(watch);
  int expected = watch->closing ? BELAY_ECLOSING : sim_watch_is_idle(watch) ? 0 : BELAY_ESTATE;
  enter(watch);
  int error = wait_ms == 0 ? belay_lock_try(watch->lock, on_acquired)
                           : belay_lock_acquire(watch->lock, wait_ms, on_acquired);
  bool scarce = expected == 0 && watch->process->fails > 0;
  int or_else = watch->deaf ? BELAY_ESTATE : expected;
  leave(watch, wait_ms == 0 ? "try" : "acquire", error, expected,
        scarce && error == BELAY_ENOMEM ? error : or_else);
  if (error != 0)
    return error;
  bool rounds = lease->config->fencing && lease->members > 1 && wait_ms != BELAY_FOREVER;
  /* The first attempt of a wait may begin at its end, and has its whole timeout. */
  expect(watch, SIM_ACQUIRE,
         wait_ms == BELAY_FOREVER ? wait_ms : wait_ms + (int64_t)lease->config->timeout);
  sim_pending_t *pending = &watch->op[SIM_ACQUIRE];
  if (rounds) {
    uint64_t wait = (uint64_t)wait_ms * SIM_MS;
    pending->rounds = wait + ROUNDS_MAX * lease->config->timeout * SIM_MS;
    pending->limit = pending->called + wait + lease->config->ttl * SIM_MS;
    pending->due = pending->called + pending->rounds;
    if (pending->due > pending->limit)
      pending->due = pending->limit;
  }
  watch->wait_ms = wait_ms;
  watch->canceled = watch->deaf = false;
  const sim_name_t *name = &watch->process->world->check->name[watch->name];
  watch->floor = name->grants;
  watch->floor_number = name->number;
  watch->floor_over = name->over;
  watch->called_clock = sim_process_now(watch->process);
  return 0;
}

int sim_watch_release(sim_watch_t *watch, int64_t timeout_ms, bool deaf) {
  bool holds = watch->held && remaining(watch) > 0;
  int expected = watch->closing ? BELAY_ECLOSING : holds ? 0 : BELAY_ENOTOWNER;
  enter(watch);
  int error = belay_lock_release(watch->lock, timeout_ms, deaf ? NULL : on_released);
  leave(watch, "release", error, expected, expected);
  if (error != 0)
    return error;
  if (!deaf)
    expect(watch, SIM_RELEASE, timeout_of(watch, timeout_ms));
  watch->deaf = deaf;
  hurry(watch, SIM_EXTEND);
  watch->held = false;
  watch->lost_taken = false;
  watch->token->ended = true;
  return 0;
}

/* The expected return value of an extend or a similar operation. */
static int extend_expected(const sim_watch_t *watch) {
  bool holds = watch->held && remaining(watch) > 0, pending = watch->op[SIM_EXTEND].pending;
  return watch->closing ? BELAY_ECLOSING : !holds ? BELAY_ENOTOWNER : pending ? BELAY_ESTATE : 0;
}

int sim_watch_turn(sim_watch_t *watch, int64_t timeout_ms) {
  static const char *const names[] = {"downgrade", "upgrade"};
  bool up = !watch->writer;
  int expected = extend_expected(watch);
  sim_check_belief(watch);
  enter(watch);
  int error = up ? belay_rwlock_upgrade(watch->lock, timeout_ms, on_extended)
                 : belay_rwlock_downgrade(watch->lock, timeout_ms, on_extended);
  leave(watch, names[up], error, expected, watch->deaf_extend ? BELAY_ESTATE : expected);
  if (error != 0)
    return error;
  watch->turning = up ? SIM_TURNS_WRITER : SIM_TURNS_READER;
  watch->writer = false;
  watch->deaf_extend = false;
  expect(watch, SIM_EXTEND, timeout_of(watch, timeout_ms));
  watch->seen = belay__lease_deadline(sim_watch_lease(watch));
  return 0;
}

int sim_watch_extend(sim_watch_t *watch, int64_t ttl_ms, int64_t timeout_ms, bool deaf) {
  int expected = extend_expected(watch);
  uint64_t deadline = watch->held ? belay__lease_deadline(sim_watch_lease(watch)) : 0;
  sim_check_belief(watch);
  enter(watch);
  int error = belay_lock_extend(watch->lock, ttl_ms, timeout_ms, deaf ? NULL : on_extended);
  leave(watch, "extend", error, expected, watch->deaf_extend ? BELAY_ESTATE : expected);
  if (error != 0)
    return error;
  if (!deaf)
    expect(watch, SIM_EXTEND, timeout_of(watch, timeout_ms));
  watch->deaf_extend = deaf;
  watch->turning = SIM_STAYS;
  const belay__lease_t *lease = sim_watch_lease(watch);
  uint64_t until = sim_process_now(watch->process) +
                   belay__lease_validity((uint32_t)ttl_ms, lease->config->drift);
  watch->before = until < deadline ? until : deadline;
  watch->seen = belay__lease_deadline(lease);
  if (watch->seen > watch->before)
    sim_violation(watch->process->world,
                  "truth: %s believes for longer than before, and than it asked", watch->who);
  return 0;
}

int sim_watch_cancel(sim_watch_t *watch) {
  bool pending = watch->op[SIM_ACQUIRE].pending;
  int expected = watch->closing ? BELAY_ECLOSING : pending ? 0 : BELAY_ESTATE;
  enter(watch);
  int error = belay_lock_cancel(watch->lock);
  /* One that is over, and is about to say so, cannot be canceled any more. */
  leave(watch, "cancel", error, expected, watch->closing ? expected : BELAY_ESTATE);
  if (error == 0) {
    watch->canceled = true;
    hurry(watch, SIM_ACQUIRE);
  }
  return error;
}

/* From now on it is not held, and all that pends is about to end. */
static void close_watch(sim_watch_t *watch) {
  watch->closing = true;
  watch->held = false;
  if (watch->token != NULL)
    watch->token->ended = true;
  for (sim_op_t op = 0; op < SIM_CLOSE; op++)
    hurry(watch, op);
}

static bool loss_is_due(const sim_watch_t *watch) {
  return watch->held && sim_watch_lease(watch)->loss != 0;
}

int sim_watch_close(sim_watch_t *watch) {
  int expected = watch->closing ? BELAY_ECLOSING : 0;
  int64_t patience = 0;
  const belay__lease_t *lease = sim_watch_lease(watch);
  for (unsigned i = 0; i < lease->members; i++)
    if (lease->member[i].client->close_timeout_ms > patience)
      patience = lease->member[i].client->close_timeout_ms;
  watch->late_loss = !watch->closing && loss_is_due(watch);
  enter(watch);
  int error = belay_lock_close(watch->lock, on_closed);
  leave(watch, "close", error, expected, expected);
  if (error == 0) {
    close_watch(watch);
    expect(watch, SIM_CLOSE, patience);
  }
  return error;
}

void sim_watch_taken(sim_watch_t *watch, belay_client_t *with) {
  if (watch->lock == NULL || watch->taken_away)
    return;
  if (!watch->closing)
    watch->late_loss = loss_is_due(watch);
  watch->taken_away = !watch->op[SIM_CLOSE].pending;
  watch->with = watch->taken_away ? with : NULL;
  close_watch(watch);
}

/* The handle is no more. */
static void dispose(sim_watch_t *watch) {
  for (sim_op_t op = 0; op < SIM_CLOSE; op++)
    if (watch->op[op].pending)
      sim_violation(watch->process->world, "callbacks: %s is closed, and %s has not called back",
                    watch->who, sim_op_names[op]);
  let_go(watch);
  watch->lock = NULL;
  watch->with = NULL;
  watch->closing = watch->taken_away = false;
}

void sim_watch_gone(sim_watch_t *watch) {
  dispose(watch);
  watch->told(watch, SIM_CLOSE, 0);
}

void sim_watch_client(const belay_client_t *client, int closing) {
  sim_process_t *process = sim_process_of(belay_client_belay(client));
  sim_seen_t *seen = &process->world->check->seen[process->index];
  seen->clients_closing += (unsigned)closing;
  uint64_t due = sim_process_now(process) + (uint64_t)client->close_timeout_ms * SIM_MS;
  if (closing > 0 && seen->clients_due < due)
    seen->clients_due = due;
}

static void on_pinged(belay_client_t *client, int status) {
  (void)status;
  sim_process_t *process = sim_process_of(belay_client_belay(client));
  process->world->check->seen[process->index].pings--;
}

void sim_watch_ping(sim_process_t *process, unsigned server, int64_t timeout_ms) {
  belay_client_t *client = process->client[server];
  if (client == NULL)
    return;
  int error = belay_client_ping(client, timeout_ms, on_pinged);
  if (error == 0)
    process->world->check->seen[process->index].pings++;
  else if (error != BELAY_ESTATE && error != BELAY_EBUSY && error != BELAY_ENOMEM)
    sim_violation(process->world, "callbacks: %s: a ping returned %s", process->name,
                  belay_err_name(error));
}

/* ---- what calls back ------------------------------------------------------------------------------------ */

/* The rules that are the same for all callbacks. */
static void answered(sim_watch_t *watch, sim_op_t op, int status) {
  sim_world_t *world = watch->process->world;
  uint64_t now = sim_process_now(watch->process), due = sim_due(watch, op);
  sim_note(world, watch->who, "%s n%u -> %s", sim_op_names[op], watch->name,
           belay_err_name(status));
  if (!watch->op[op].pending)
    sim_violation(world, "callbacks: %s: %s calls back and is not pending", watch->who,
                  sim_op_names[op]);
  if (seen_of(watch)->calling)
    sim_violation(world, "callbacks: %s: %s calls back inside a call", watch->who,
                  sim_op_names[op]);
  if (now > due && now - due > SIM_TICK)
    sim_violation(world, "callbacks: %s: %s calls back %.3f ms late (%s)", watch->who,
                  sim_op_names[op], sim_in_ms(now - due), belay_err_name(status));
  world->figures.operations++;
  watch->op[op].pending = false;
}

static void on_acquired(belay_lock_t *lock, int status) {
  sim_watch_t *watch = belay_lock_data(lock);
  answered(watch, SIM_ACQUIRE, status);
  sim_result_acquire(watch, status);
  watch->told(watch, SIM_ACQUIRE, status);
}

static void on_released(belay_lock_t *lock, int status) {
  sim_watch_t *watch = belay_lock_data(lock);
  answered(watch, SIM_RELEASE, status);
  sim_result_release(watch, status);
  watch->told(watch, SIM_RELEASE, status);
}

static void on_extended(belay_lock_t *lock, int status) {
  sim_watch_t *watch = belay_lock_data(lock);
  answered(watch, SIM_EXTEND, status);
  sim_result_extend(watch, status);
  watch->told(watch, SIM_EXTEND, status);
}

static void on_closed(belay_lock_t *lock, void *data) {
  sim_watch_t *watch = data;
  (void)lock;
  answered(watch, SIM_CLOSE, 0);
  dispose(watch);
  watch->told(watch, SIM_CLOSE, 0);
}

static void on_lost(belay_lock_t *lock, belay_lost_t reason) {
  sim_watch_t *watch = belay_lock_data(lock);
  sim_note(watch->process->world, watch->who, "lost n%u: %s", watch->name, belay_lost_name(reason));
  if (seen_of(watch)->calling)
    sim_violation(watch->process->world, "callbacks: %s: a loss is told inside a call", watch->who);
  sim_result_lost(watch, reason);
  watch->lost(watch, reason);
}
