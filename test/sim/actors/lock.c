/* Locks: programs that use their lock at random, in every permitted order. */
#include "sim/actors/lock.h"

#include "belay/semaphore.h"
#include "sim/check/check_state.h"
#include "sim/world/net.h"

/* Think time; a lock that was served after the faults stops. */
static void think(sim_lock_t *lock) {
  if (lock->base.healing && lock->base.served)
    sim_alarm_stop(&lock->base.alarm);
  else
    sim_actor_think(&lock->base);
}

static bool chance(sim_lock_t *lock, unsigned per_mille) {
  return sim_actor_chance(&lock->base, per_mille);
}

static uint64_t between(sim_lock_t *lock, uint64_t min, uint64_t max) {
  return sim_actor_between(&lock->base, min, max);
}

static void later(sim_lock_t *lock, uint64_t ns) {
  sim_actor_later(&lock->base, ns);
}

static const sim_scenario_t *scenario_of(const sim_lock_t *lock) {
  return lock->base.world->scenario;
}

sim_lock_t *sim_next_lock(const sim_world_t *world, unsigned *i) {
  unsigned n = world->scenario->kind < SIM_MULTILOCK ? sim_actors_count(world) : 0;
  while (*i < n) {
    sim_actor_t *actor = sim_actor_at(world, (*i)++);
    if (actor != NULL)
      return (sim_lock_t *)actor;
  }
  return NULL;
}

/* ---- handles and clients ---- */

/* Connects where a client was closed, or could never be made. */
static bool connect_again(sim_process_t *process) {
  bool all = true;
  for (unsigned i = 0; i < process->clients; i++)
    if (process->client[i] == NULL && !sim_process_connect(process, i))
      all = false;
  return all;
}

static void make(sim_lock_t *lock) {
  belay_lock_options_t options;
  sim_lock_draw_options(lock, &options);
  unsigned name = (unsigned)sim_below(&lock->base.world->random, scenario_of(lock)->names);
  if (connect_again(lock->base.process) && sim_lock_make(lock, name, &options))
    think(lock);
  else
    later(lock, between(lock, SIM_MS, 20 * SIM_MS));
}

/* The handles that the client took along are gone. */
static void on_client_closed(belay_client_t *client, void *data) {
  (void)data;
  const sim_process_t *process = sim_process_of(belay_client_belay(client));
  sim_lock_t *lock;
  sim_client_closing(client, -1);
  for (unsigned i = 0; (lock = sim_next_lock(process->world, &i)) != NULL;)
    if (lock->base.process == process && lock->with == client)
      sim_lock_gone(lock);
}

/* Every lock uses all servers, so that all locks of the process are closed with a client. */
static void close_client(sim_lock_t *self) {
  sim_process_t *process = self->base.process;
  unsigned server = (unsigned)sim_below(&process->world->random, process->clients);
  belay_client_t *client = process->client[server];
  sim_lock_t *lock;
  if (client == NULL)
    return;
  sim_note(process->world, process->name, "closes its client of s%u", server);
  for (unsigned i = 0; (lock = sim_next_lock(process->world, &i)) != NULL;) {
    if (lock->base.process != process)
      continue;
    sim_lock_taken(lock, client);
    sim_alarm_stop(&lock->base.alarm);
    if (lock->handle == NULL) /* no callback is left */
      think(lock);
  }
  process->client[server] = NULL;
  sim_client_closing(client, 1);
  (void)belay_client_close(client, on_client_closed);
}

/* ---- the number of permits ---- */

static void on_resized(belay_request_t *request, int status, const belay_semaphore_state_t *state) {
  sim_lock_t *lock = request->data;
  const sim_process_t *process = lock->base.process;
  unsigned limit = scenario_of(lock)->limit;
  process->world->check->seen[process->index].pings--;
  lock->resizes = false;
  if (status != 0)
    return;
  lock->resized = lock->base.healing && state->limit == limit;
  if (state->limit < 1 || state->limit > limit || state->used > limit)
    sim_violation(process->world, "truth: a resize of %s reports %u permits of %u", lock->base.who,
                  state->used, state->limit);
}

/* For all locks of that name. */
static void resize(sim_lock_t *lock) {
  const sim_process_t *process = lock->base.process;
  unsigned limit = scenario_of(lock)->limit;
  char name[16];
  int len = snprintf(name, sizeof name, "n%u", lock->name);
  if (lock->resizes || process->client[0] == NULL)
    return;
  if (!lock->base.healing)
    limit = (unsigned)between(lock, 1, limit);
  lock->base.request[0] = (belay_request_t){.data = lock};
  if (belay_semaphore_resize(process->client[0], &lock->base.request[0],
                             belay_bytes(name, (size_t)len), limit, on_resized) != 0)
    return;
  sim_note(process->world, lock->base.who, "resizes n%u to %u", lock->name, limit);
  lock->resizes = true;
  process->world->check->seen[process->index].pings++;
}

/* ---- the next action ---- */

/* Acquires, and decides when it gives up. */
static void acquire(sim_lock_t *lock) {
  const sim_scenario_t *scenario = scenario_of(lock);
  bool healing = lock->base.healing;
  int64_t wait_ms = 0;
  lock->last = healing;
  if (healing || chance(lock, 30))
    wait_ms = BELAY_FOREVER;
  else if (scenario->wait_ms > 0 && chance(lock, 750))
    wait_ms = (int64_t)between(lock, 1, scenario->wait_ms);
  if (sim_lock_acquire(lock, wait_ms) != 0) {
    think(lock); /* a release without a callback is still in progress */
    return;
  }
  if (healing)
    return;
  if (wait_ms == BELAY_FOREVER)
    later(lock, between(lock, 0, 2 * scenario->wait_ms * SIM_MS));
  else if (chance(lock, 120))
    later(lock, sim_around(&lock->base.world->random, scenario->wait_ms * SIM_MS / 4));
}

static void give_up(sim_lock_t *lock) {
  if (lock->base.healing)
    lock->last = true; /* its wait has no limit, or a short one */
  else if (chance(lock, 100))
    (void)sim_lock_close(lock);
  else
    (void)sim_lock_cancel(lock);
}

static int64_t draw_timeout(sim_lock_t *lock) {
  return chance(lock, 700) ? BELAY_DEFAULT : (int64_t)between(lock, 1, 300);
}

/* Releases, mostly with a callback, or closes the handle. */
static void end_hold(sim_lock_t *lock) {
  if (!lock->base.healing && chance(lock, 60)) {
    (void)sim_lock_close(lock);
    return;
  }
  bool silent = !lock->base.healing && chance(lock, 40);
  if (sim_lock_release(lock, draw_timeout(lock), silent) == 0 && silent)
    think(lock);
}

/* By more, by the same, by less. */
static void extend(sim_lock_t *lock) {
  const sim_scenario_t *scenario = scenario_of(lock);
  int64_t ttl_ms = lock->options.ttl_ms, most = 2 * scenario->ttl_max_ms;
  bool limited = scenario->max_ttl_ms > 0 && scenario->quarantine != BELAY_QUARANTINE_OFF;
  if (limited && most > scenario->max_ttl_ms)
    most = scenario->max_ttl_ms;
  if (chance(lock, 700))
    ttl_ms = (int64_t)between(lock, (uint64_t)(ttl_ms / 3 > 10 ? ttl_ms / 3 : 10), (uint64_t)most);
  (void)sim_lock_extend(lock, ttl_ms, draw_timeout(lock), chance(lock, 60));
}

/* The write arrives soon, or after the lock may have had other holders for long. */
static void write_late(sim_lock_t *lock) {
  sim_world_t *world = lock->base.world;
  uint64_t delay = sim_net_delay(world);
  if (chance(lock, 300))
    delay += sim_around(&world->random, (uint64_t)world->scenario->ttl_max_ms * SIM_MS);
  (void)sim_lock_write(lock, delay);
}

static void work(sim_lock_t *lock) {
  const sim_scenario_t *scenario = scenario_of(lock);
  uint64_t now = sim_process_now(lock->base.process);
  bool healing = lock->base.healing;
  if (scenario->fencing && chance(lock, 700))
    write_late(lock);
  if (!healing && chance(lock, scenario->extends > 0 ? scenario->extends : 90))
    extend(lock);
  if (!healing && scenario->kind == SIM_RWLOCK && chance(lock, 250))
    (void)sim_lock_turn(lock, draw_timeout(lock));
  if (now >= lock->hold_until) {
    end_hold(lock);
    return;
  }
  uint64_t rest = lock->hold_until - now;
  uint64_t step = sim_around(&lock->base.world->random, scenario->hold_ms * SIM_MS / 3 + 1);
  later(lock, step < rest ? step : rest);
}

/* Draws the length of a new hold. */
static void plan_hold(sim_lock_t *lock) {
  uint64_t hold = sim_around(&lock->base.world->random, scenario_of(lock)->hold_ms * SIM_MS);
  uint64_t ttl = (uint64_t)lock->options.ttl_ms * SIM_MS;
  bool ends =
      lock->options.watchdog != BELAY_WATCHDOG_ON || lock->options.max_hold_ms != BELAY_FOREVER;
  if (lock->base.healing)
    hold = between(lock, 0, 5 * SIM_MS);
  else if (ends && chance(lock, 120))
    hold = 4 * ttl; /* until it is lost */
  else if (chance(lock, 60))
    hold = between(lock, ttl, 3 * ttl); /* renewed, or lost */
  lock->hold_until = sim_process_now(lock->base.process) + hold;
}

static void act(sim_actor_t *actor) {
  sim_lock_t *lock = (sim_lock_t *)actor;
  bool healing = actor->healing;
  if (chance(lock, 10))
    sim_ping(actor->process, (unsigned)between(lock, 0, actor->process->clients - 1),
             draw_timeout(lock));
  bool resized = scenario_of(lock)->resized && lock->handle != NULL;
  if (resized && (healing ? !lock->resized : chance(lock, 25)))
    resize(lock);
  if (lock->handle == NULL)
    make(lock);
  else if (lock->closing || actor->op[SIM_RELEASE].pending)
    return;
  else if (actor->op[SIM_ACQUIRE].pending)
    give_up(lock);
  else if (lock->held)
    work(lock);
  else if (healing && actor->served)
    return;
  else if (!healing && chance(lock, 2))
    close_client(lock);
  else if (!healing && chance(lock, 15))
    (void)sim_lock_close(lock);
  else
    acquire(lock);
}

/* ---- callbacks ---- */

/* A few callbacks take long, very few longer than a lease. */
static void stall(sim_lock_t *lock) {
  const sim_scenario_t *scenario = scenario_of(lock);
  if (lock->base.world->phase != SIM_STORM || !chance(lock, scenario->stalls))
    return;
  uint64_t most = 5 * SIM_MS;
  if (chance(lock, 150))
    most = (uint64_t)scenario->ttl_max_ms * SIM_MS * 3 / 2;
  sim_stall(lock->base.process, between(lock, 1, most));
}

/* In the callback itself, before anything else happens. Returns true if it did something. */
static bool act_at_once(sim_lock_t *lock) {
  if (lock->base.stopping || lock->base.healing || lock->closing || lock->handle == NULL)
    return false;
  if (chance(lock, 12)) {
    (void)sim_lock_close(lock);
    return true;
  }
  if (!chance(lock, 120))
    return false;
  if (lock->held) {
    if (chance(lock, 300))
      extend(lock);
    if (chance(lock, 700)) {
      end_hold(lock);
      return true;
    }
    return false;
  }
  if (!sim_lock_is_idle(lock))
    return false;
  acquire(lock);
  return true;
}

/* The last hold is over. */
static void note_end(sim_lock_t *lock) {
  lock->base.served |= lock->last;
  lock->last = false;
}

static void after_acquire(sim_lock_t *lock, int status) {
  if (status == 0) {
    plan_hold(lock);
    if (!act_at_once(lock) && !lock->closing)
      later(lock, 0);
    return;
  }
  lock->last = false;
  lock->resized &= status != BELAY_EMISMATCH; /* else an earlier resize was executed after it */
  if (!act_at_once(lock))
    think(lock);
}

/* Ends an acquire of another lock, which may be about to be granted. */
static void meddle(sim_lock_t *lock) {
  const sim_process_t *process = lock->base.process;
  unsigned actors = scenario_of(lock)->actors;
  unsigned i = process->index * actors + (unsigned)sim_below(&process->world->random, actors);
  sim_lock_t *other = (sim_lock_t *)sim_actor_at(process->world, i);
  if (other == lock || lock->base.healing || !other->base.op[SIM_ACQUIRE].pending ||
      other->closing || !chance(lock, 30))
    return;
  if (chance(lock, 300))
    (void)sim_lock_close(other);
  else
    (void)sim_lock_cancel(other);
}

void sim_lock_ended(sim_lock_t *lock, sim_op_t op, int status) {
  meddle(lock);
  bool before = chance(lock, 500);
  if (before)
    stall(lock);
  switch (op) {
  case SIM_ACQUIRE:
    after_acquire(lock, status);
    break;
  case SIM_RELEASE:
    note_end(lock);
    if (!act_at_once(lock))
      think(lock);
    break;
  case SIM_EXTEND:
    if (status != 0 && lock->held && !lock->base.healing && !lock->base.stopping &&
        chance(lock, 500))
      extend(lock); /* again, by more or by less, while the first may still be executed */
    if (!lock->base.op[SIM_ACQUIRE].pending && !lock->base.op[SIM_RELEASE].pending)
      (void)act_at_once(lock);
    break;
  case SIM_CLOSE:
    lock->last = false;
    think(lock);
    break;
  }
  if (!before)
    stall(lock);
}

void sim_lock_lost(sim_lock_t *lock) {
  stall(lock);
  note_end(lock);
  if (!act_at_once(lock) && !lock->closing)
    think(lock);
}

/* ---- the actor ---- */

static void start(sim_actor_t *actor) {
  sim_strays_begin(actor->world->check);
}

static void heal(sim_actor_t *actor) {
  ((sim_lock_t *)actor)->hold_until = 0;
}

static void stop(sim_actor_t *actor) {
  sim_lock_taken((sim_lock_t *)actor, NULL);
}

static void after_turn(sim_actor_t *actor) {
  sim_check_held((sim_lock_t *)actor);
}

static void ended(sim_actor_t *actor) {
  sim_lock_let_go((sim_lock_t *)actor);
}

const sim_actor_type_t sim_lock_type = {
    .size = sizeof(sim_lock_t),
    .op = {"acquire", "release", "extend", "close"},
    .keeps_limits = true,
    .start = start,
    .act = act,
    .after_turn = after_turn,
    .heal = heal,
    .stop = stop,
    .ended = ended,
};
