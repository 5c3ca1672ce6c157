/* Checkers: return values of lock functions, and their callbacks: once, in time, with permitted
 * statuses. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "belay/redlock.h"
#include "belay/rwlock.h"
#include "belay/semaphore.h"
#include "sim/check/check_result.h"

/* Rounds of one attempt: the votes, and eight fencing numbers that are read and proposed. */
#define ROUNDS_MAX 17

static sim_seen_t *seen_of(const sim_lock_t *lock) {
  return &lock->base.world->check->seen[lock->base.process->index];
}

void sim_lock_let_go(sim_lock_t *lock) {
  lock->held = false;
  if (lock->token != NULL)
    lock->token->holders--;
  lock->token = NULL;
}

/* ---- callbacks ---- */

/* The handle is gone. */
static void dispose(sim_lock_t *lock) {
  for (sim_op_t op = 0; op < SIM_CLOSE; op++)
    if (lock->base.op[op].pending)
      sim_violation(lock->base.world, "callbacks: %s is closed, and %s has not called back",
                    lock->base.who, sim_lock_type.op[op]);
  sim_lock_let_go(lock);
  lock->handle = NULL;
  lock->with = NULL;
  lock->closing = lock->taken_away = false;
}

void sim_lock_gone(sim_lock_t *lock) {
  dispose(lock);
  sim_lock_ended(lock, SIM_CLOSE, 0);
}

static void end(sim_lock_t *lock, sim_op_t op, int status,
                void (*check)(sim_lock_t *lock, int status)) {
  sim_actor_called_back(&lock->base, op, status);
  check(lock, status);
  sim_lock_ended(lock, op, status);
}

static void on_acquired(belay_lock_t *handle, int status) {
  end(belay_lock_data(handle), SIM_ACQUIRE, status, sim_result_acquire);
}

static void on_released(belay_lock_t *handle, int status) {
  end(belay_lock_data(handle), SIM_RELEASE, status, sim_result_release);
}

static void on_extended(belay_lock_t *handle, int status) {
  end(belay_lock_data(handle), SIM_EXTEND, status, sim_result_extend);
}

static void on_closed(belay_lock_t *handle, void *data) {
  (void)handle;
  sim_actor_called_back(data, SIM_CLOSE, 0);
  sim_lock_gone(data);
}

static void on_lost(belay_lock_t *handle, belay_lost_t reason) {
  sim_lock_t *lock = belay_lock_data(handle);
  sim_note(lock->base.world, lock->base.who, "lost n%u: %s", lock->name, belay_lost_name(reason));
  if (seen_of(lock)->calling)
    sim_violation(lock->base.world, "callbacks: %s: a loss is reported inside a call",
                  lock->base.who);
  sim_result_lost(lock, reason);
  sim_lock_lost(lock);
}

/* ---- calls ---- */

/* Calls the library; the value is what it returned, which must be one of the two. */
#define CALL(lock, name, call, expected, may)                                                      \
  (sim_actor_enter(&(lock)->base), check_return(lock, name, call, expected, may))

static int check_return(sim_lock_t *lock, const char *name, int error, int expected, int may) {
  sim_actor_expect_return(&lock->base, name, error, expected, may);
  return error;
}

static bool holds(const sim_lock_t *lock) {
  return lock->held &&
         belay__lease_deadline(sim_lock_lease(lock)) > sim_process_now(lock->base.process);
}

static void expect(sim_lock_t *lock, sim_op_t op, int64_t timeout_ms) {
  bool set = timeout_ms != BELAY_DEFAULT;
  sim_actor_expect(&lock->base, op,
                   set ? timeout_ms : (int64_t)sim_lock_lease(lock)->config->timeout);
}

static int new_lock(sim_lock_t *lock, belay_bytes_t name) {
  sim_process_t *process = lock->base.process;
  const sim_scenario_t *scenario = process->world->scenario;
  const belay_semaphore_size_t size = {.limit = scenario->limit, .permits = lock->permits};
  switch (scenario->kind) {
  case SIM_RWLOCK:
    return belay_rwlock_new(process->client, process->clients, name,
                            lock->writer ? BELAY_RWLOCK_WRITE : BELAY_RWLOCK_READ, &lock->options,
                            &lock->handle);
  case SIM_SEMAPHORE:
    return belay_semaphore_new(process->client, process->clients, name, &size, &lock->options,
                               &lock->handle);
  default:
    if (scenario->servers == 1)
      return belay_lock_new(process->client[0], name, &lock->options, &lock->handle);
    return belay_redlock_new(process->client, process->clients, name, &lock->options,
                             &lock->handle);
  }
}

bool sim_lock_make(sim_lock_t *lock, unsigned name, const belay_lock_options_t *options) {
  sim_name_t *of = &lock->base.world->check->name[name];
  char text[16];
  int len = snprintf(text, sizeof text, "n%u", name);
  assert(lock->handle == NULL);
  lock->name = name;
  lock->options = *options;
  lock->options.on_lost = on_lost;
  lock->options.data = lock;
  bool made = SIM_CALL(&lock->base, "new", 0, new_lock(lock, belay_bytes(text, (size_t)len)));
  if (made != (lock->handle != NULL))
    sim_violation(lock->base.world, "callbacks: %s: new: %s, and %s handle", lock->base.who,
                  made ? "success" : "an error", lock->handle == NULL ? "no" : "a");
  if (!made)
    return false;
  const char *key = belay_lock_key(lock->handle, &of->key_len);
  assert(of->key_len <= sizeof of->key);
  memcpy(of->key, key, of->key_len);
  lock->closing = lock->taken_away = lock->late_loss = lock->canceled = false;
  lock->silent = lock->silent_extend = false;
  return true;
}

/* A wait whose attempts have several rounds: each has its timeout after the last pause. */
static void expect_rounds(sim_lock_t *lock, uint64_t wait) {
  const belay__lease_t *lease = sim_lock_lease(lock);
  sim_pending_t *pending = &lock->base.op[SIM_ACQUIRE];
  pending->rounds = wait + ROUNDS_MAX * lease->config->timeout * SIM_MS;
  pending->limit = pending->called + wait + lease->config->ttl * SIM_MS;
  pending->due = pending->called + pending->rounds;
  if (pending->due > pending->limit)
    pending->due = pending->limit;
}

/* The other value that an operation which takes memory may return: `error` if it is BELAY_ENOMEM
 * while allocations fail, else `otherwise`. */
static int may_return(const sim_lock_t *lock, int expected, int error, int otherwise) {
  bool memory = expected == 0 && error == BELAY_ENOMEM && lock->base.process->fails > 0;
  return memory ? error : otherwise;
}

int sim_lock_acquire(sim_lock_t *lock, int64_t wait_ms) {
  const belay__lease_t *lease = sim_lock_lease(lock);
  int expected = lock->closing ? BELAY_ECLOSING : sim_lock_is_idle(lock) ? 0 : BELAY_ESTATE;
  sim_actor_enter(&lock->base);
  int error = wait_ms == 0 ? belay_lock_try(lock->handle, on_acquired)
                           : belay_lock_acquire(lock->handle, wait_ms, on_acquired);
  int may = may_return(lock, expected, error, lock->silent ? BELAY_ESTATE : expected);
  if (check_return(lock, wait_ms == 0 ? "try" : "acquire", error, expected, may) != 0)
    return error;
  bool forever = wait_ms == BELAY_FOREVER;
  /* The first attempt of a wait may begin at its end, and has its whole timeout. */
  sim_actor_expect(&lock->base, SIM_ACQUIRE,
                   forever ? wait_ms : wait_ms + (int64_t)lease->config->timeout);
  if (lease->config->fencing && lease->members > 1 && !forever)
    expect_rounds(lock, (uint64_t)wait_ms * SIM_MS);
  lock->wait_ms = wait_ms;
  lock->canceled = lock->silent = false;
  const sim_name_t *name = &lock->base.world->check->name[lock->name];
  lock->floor = name->grants;
  lock->floor_number = name->number;
  lock->floor_over = name->over;
  lock->called_clock = sim_process_now(lock->base.process);
  return 0;
}

int sim_lock_release(sim_lock_t *lock, int64_t timeout_ms, bool silent) {
  int expected = lock->closing ? BELAY_ECLOSING : holds(lock) ? 0 : BELAY_ENOTOWNER;
  int error = CALL(lock, "release",
                   belay_lock_release(lock->handle, timeout_ms, silent ? NULL : on_released),
                   expected, expected);
  if (error != 0)
    return error;
  if (!silent)
    expect(lock, SIM_RELEASE, timeout_ms);
  lock->silent = silent;
  sim_actor_hurry(&lock->base, SIM_EXTEND);
  lock->held = false;
  lock->lost_taken = false;
  lock->token->ended = true;
  return 0;
}

/* The expected return value of an extend or a similar operation. */
static int extend_expected(const sim_lock_t *lock) {
  bool pending = lock->base.op[SIM_EXTEND].pending;
  return lock->closing  ? BELAY_ECLOSING
         : !holds(lock) ? BELAY_ENOTOWNER
         : pending      ? BELAY_ESTATE
                        : 0;
}

int sim_lock_turn(sim_lock_t *lock, int64_t timeout_ms) {
  bool up = !lock->writer;
  int expected = extend_expected(lock);
  sim_check_deadline(lock);
  sim_actor_enter(&lock->base);
  int error =
      (up ? belay_rwlock_upgrade : belay_rwlock_downgrade)(lock->handle, timeout_ms, on_extended);
  int may = may_return(lock, expected, error, lock->silent_extend ? BELAY_ESTATE : expected);
  if (check_return(lock, up ? "upgrade" : "downgrade", error, expected, may) != 0)
    return error;
  lock->turning = up ? SIM_TURNS_WRITER : SIM_TURNS_READER;
  lock->writer = false;
  lock->silent_extend = false;
  expect(lock, SIM_EXTEND, timeout_ms);
  lock->seen = belay__lease_deadline(sim_lock_lease(lock));
  return 0;
}

int sim_lock_extend(sim_lock_t *lock, int64_t ttl_ms, int64_t timeout_ms, bool silent) {
  const belay__lease_t *lease = sim_lock_lease(lock);
  int expected = extend_expected(lock);
  uint64_t deadline = lock->held ? belay__lease_deadline(lease) : 0;
  sim_check_deadline(lock);
  sim_actor_enter(&lock->base);
  int error = belay_lock_extend(lock->handle, ttl_ms, timeout_ms, silent ? NULL : on_extended);
  int may = may_return(lock, expected, error, lock->silent_extend ? BELAY_ESTATE : expected);
  if (check_return(lock, "extend", error, expected, may) != 0)
    return error;
  if (!silent)
    expect(lock, SIM_EXTEND, timeout_ms);
  lock->silent_extend = silent;
  lock->turning = SIM_STAYS;
  uint64_t until = sim_process_now(lock->base.process) +
                   belay__lease_validity((uint32_t)ttl_ms, lease->config->drift);
  lock->before = until < deadline ? until : deadline;
  lock->seen = belay__lease_deadline(lease);
  if (lock->seen > lock->before)
    sim_violation(lock->base.world,
                  "truth: during an extend %s holds for longer than before, and than requested",
                  lock->base.who);
  return 0;
}

/* An acquire that has ended, and is about to call back, cannot be canceled any more. */
int sim_lock_cancel(sim_lock_t *lock) {
  bool pending = lock->base.op[SIM_ACQUIRE].pending;
  int expected = lock->closing ? BELAY_ECLOSING : pending ? 0 : BELAY_ESTATE;
  int error = CALL(lock, "cancel", belay_lock_cancel(lock->handle), expected,
                   lock->closing ? expected : BELAY_ESTATE);
  if (error == 0) {
    lock->canceled = true;
    sim_actor_hurry(&lock->base, SIM_ACQUIRE);
  }
  return error;
}

/* It is not held any more, and its pending operations are about to end. */
static void begin_close(sim_lock_t *lock) {
  lock->closing = true;
  lock->held = false;
  if (lock->token != NULL)
    lock->token->ended = true;
  for (sim_op_t op = 0; op < SIM_CLOSE; op++)
    sim_actor_hurry(&lock->base, op);
}

static bool loss_is_due(const sim_lock_t *lock) {
  return lock->held && sim_lock_lease(lock)->loss != 0;
}

int sim_lock_close(sim_lock_t *lock) {
  int expected = lock->closing ? BELAY_ECLOSING : 0;
  int64_t limit_ms = 0;
  const belay__lease_t *lease = sim_lock_lease(lock);
  for (unsigned i = 0; i < lease->members; i++)
    if (belay__lease_client(lease, i)->close_timeout_ms > limit_ms)
      limit_ms = belay__lease_client(lease, i)->close_timeout_ms;
  lock->late_loss = !lock->closing && loss_is_due(lock);
  int error = CALL(lock, "close", belay_lock_close(lock->handle, on_closed), expected, expected);
  if (error == 0) {
    begin_close(lock);
    sim_actor_expect(&lock->base, SIM_CLOSE, limit_ms);
  }
  return error;
}

void sim_lock_taken(sim_lock_t *lock, belay_client_t *with) {
  if (lock->handle == NULL || lock->taken_away)
    return;
  if (!lock->closing)
    lock->late_loss = loss_is_due(lock);
  lock->taken_away = !lock->base.op[SIM_CLOSE].pending;
  lock->with = lock->taken_away ? with : NULL;
  begin_close(lock);
}

/* ---- clients ---- */

void sim_client_closing(const belay_client_t *client, int closing) {
  const sim_process_t *process = sim_process_of(belay_client_belay(client));
  sim_seen_t *seen = &process->world->check->seen[process->index];
  seen->clients_closing += (unsigned)closing;
  uint64_t due = sim_process_now(process) + (uint64_t)client->close_timeout_ms * SIM_MS;
  if (closing > 0 && seen->clients_due < due)
    seen->clients_due = due;
}

static void on_pinged(belay_client_t *client, int status) {
  (void)status;
  const sim_process_t *process = sim_process_of(belay_client_belay(client));
  process->world->check->seen[process->index].pings--;
}

void sim_ping(sim_process_t *process, unsigned server, int64_t timeout_ms) {
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
