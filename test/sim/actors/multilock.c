/* Actors that lock several names of two servers at once; and some that lock one of them with a
 * plain lock, which excludes those. */
#include "belay/multilock.h"

#include <string.h>

#include "belay/lock.h"
#include "sim/actors/actor.h"
#include "sim/check/check_state.h"

enum { ACQUIRE, RELEASE };

typedef struct multilock {
  sim_actor_t base; /* first */
  bool plain;       /* the handle is a plain lock */
  uint64_t names;   /* that it locks: a bit for each; those of one server, then those of the next */
  int64_t ttl_ms;
  bool held;
  bool last; /* the present acquire began while healing */
  uint64_t hold_until;
  uint64_t seen; /* the deadline at the last check */
} multilock_t;

/* ---- both types of handle ---- */

static void on_acquired(multilock_t *self, int status);
static void on_released(multilock_t *self, int status);
static void on_lost(multilock_t *self);

#define CALLBACKS(family)                                                                          \
  SIM_ACTOR_CLOSE(family)                                                                          \
  static void family##_acquired(belay_##family##_t *handle, int status) {                          \
    on_acquired(belay_##family##_data(handle), status);                                            \
  }                                                                                                \
  static void family##_released(belay_##family##_t *handle, int status) {                          \
    on_released(belay_##family##_data(handle), status);                                            \
  }                                                                                                \
  static void family##_lost(belay_##family##_t *handle, belay_lost_t reason) {                     \
    (void)reason;                                                                                  \
    on_lost(belay_##family##_data(handle));                                                        \
  }
CALLBACKS(multilock)
CALLBACKS(lock)

static int close_either(sim_actor_t *actor) {
  return ((multilock_t *)actor)->plain ? close_lock(actor) : close_multilock(actor);
}

/* Nanoseconds for which the library reports it as held. */
static uint64_t remaining(const multilock_t *self) {
  bool held = self->held && !self->base.stopping && self->base.handle != NULL;
  int64_t us = !held         ? 0
               : self->plain ? belay_lock_remaining_us(self->base.handle)
                             : belay_multilock_remaining_us(self->base.handle);
  return us > 0 ? (uint64_t)us * 1000 : 0;
}

/* ---- rules ---- */

/* A process whose callback takes its time is ahead of the world, and the others are not. */
static void check_exclusive(const multilock_t *self) {
  sim_world_t *world = self->base.world;
  uint64_t ahead = self->base.process->ahead + self->base.process->ahead / 64 + 1000;
  for (unsigned i = 0; i < sim_actors_count(world); i++) {
    const multilock_t *other = (const multilock_t *)sim_actor_at(world, i);
    if (other == NULL || other == self || (other->names & self->names) == 0)
      continue;
    uint64_t left = remaining(other);
    if (left > ahead || (left > 1000 && other->base.process == self->base.process))
      sim_violation(world, "exclusion: %s is granted %llx while %s holds %llx for another %.3f ms",
                    self->base.who, (unsigned long long)self->names, other->base.who,
                    (unsigned long long)other->names, sim_in_ms(left));
  }
}

static void after_turn(sim_actor_t *actor) {
  multilock_t *self = (multilock_t *)actor;
  if (self->held && !actor->stopping)
    sim_actor_check_held(actor, &self->seen, remaining(self));
}

/* ---- actions ---- */

static int make_handle(multilock_t *self, const belay_lock_options_t *options) {
  sim_actor_t *actor = &self->base;
  const sim_scenario_t *scenario = actor->world->scenario;
  belay_multilock_name_t names[64];
  char text[64][8];
  unsigned n = 0;
  for (unsigned i = 0; i < scenario->servers * scenario->names; i++)
    if ((self->names >> i & 1) != 0) {
      int len = snprintf(text[n], sizeof text[n], "n%u", i % scenario->names);
      names[n] = (belay_multilock_name_t){.client = actor->process->client[i / scenario->names],
                                          .name = {text[n], (size_t)len}};
      n++;
    }
  if (self->plain)
    return belay_lock_new(names->client, names->name, options, (belay_lock_t **)&actor->handle);
  return belay_multilock_new(names, n, options, multilock_lost,
                             (belay_multilock_t **)&actor->handle);
}

static int make(sim_actor_t *actor) {
  multilock_t *self = (multilock_t *)actor;
  const sim_scenario_t *scenario = actor->world->scenario;
  uint64_t all = (UINT64_C(1) << scenario->servers * scenario->names) - 1;
  self->plain = sim_actor_chance(actor, 250);
  belay_lock_options_t options;
  belay_lock_options_init(&options);
  options.ttl_ms = (int64_t)sim_actor_between(actor, (uint64_t)scenario->ttl_min_ms,
                                              (uint64_t)scenario->ttl_max_ms);
  options.watchdog = sim_actor_chance(actor, 600) ? BELAY_WATCHDOG_ON : BELAY_WATCHDOG_OFF;
  if (sim_actor_chance(actor, 300))
    options.wakeup = BELAY_WAKE_POLL;
  options.data = actor;
  if (self->plain)
    options.on_lost = lock_lost;
  self->ttl_ms = options.ttl_ms;
  self->names = 0;
  for (unsigned n = self->plain ? 1 : (unsigned)sim_actor_between(actor, 1, 4); n > 0; n--)
    self->names |=
        UINT64_C(1) << sim_actor_between(actor, 0, scenario->servers * scenario->names - 1);
  self->names &= all;
  return make_handle(self, &options);
}

/* The first attempt for each name has its whole timeout. */
static void acquire(multilock_t *self) {
  sim_actor_t *actor = &self->base;
  uint64_t most = actor->world->scenario->wait_ms;
  int64_t wait_ms = actor->healing                 ? BELAY_FOREVER
                    : sim_actor_chance(actor, 100) ? 0
                                                   : (int64_t)sim_actor_between(actor, 1, most);
  bool bound = wait_ms != 0 && wait_ms != BELAY_FOREVER;
  if (!SIM_START(actor, ACQUIRE, bound ? wait_ms + SIM_CALL_MS : BELAY_FOREVER, "acquire", 0,
                 self->plain ? belay_lock_acquire(actor->handle, wait_ms, lock_acquired)
                             : belay_multilock_acquire(actor->handle, wait_ms, multilock_acquired)))
    return;
  self->last = actor->healing;
  if (!actor->healing && sim_actor_chance(actor, 150))
    sim_actor_later(actor, sim_actor_between(actor, 0, most / 4 * SIM_MS));
}

static void release(multilock_t *self) {
  sim_actor_t *actor = &self->base;
  if (SIM_START(actor, RELEASE, BELAY_FOREVER, "release", BELAY_ENOTOWNER,
                self->plain
                    ? belay_lock_release(actor->handle, BELAY_DEFAULT, lock_released)
                    : belay_multilock_release(actor->handle, BELAY_DEFAULT, multilock_released)))
    self->held = false;
}

static void close_handle(multilock_t *self) {
  if (sim_actor_close(&self->base))
    self->held = false;
}

static void work(multilock_t *self) {
  sim_actor_t *actor = &self->base;
  uint64_t now = sim_process_now(actor->process);
  if (now >= self->hold_until && !actor->healing && sim_actor_chance(actor, 60))
    close_handle(self);
  else if (now >= self->hold_until || actor->healing)
    release(self);
  else
    sim_actor_later(actor, self->hold_until - now);
}

static void act(sim_actor_t *actor) {
  multilock_t *self = (multilock_t *)actor;
  if (actor->handle == NULL) {
    sim_actor_make(actor);
    sim_actor_think(actor);
  } else if (sim_actor_is_closing(actor) || actor->op[RELEASE].pending) {
    return;
  } else if (actor->op[ACQUIRE].pending) {
    if (!actor->healing && SIM_CALL(actor, "cancel", BELAY_ESTATE,
                                    self->plain ? belay_lock_cancel(actor->handle)
                                                : belay_multilock_cancel(actor->handle)))
      sim_actor_canceled(actor, ACQUIRE);
  } else if (self->held) {
    work(self);
  } else if (actor->healing && actor->served) {
    return;
  } else if (!actor->healing && sim_actor_chance(actor, 50)) {
    close_handle(self);
  } else {
    acquire(self);
  }
}

/* ---- callbacks ---- */

static void on_acquired(multilock_t *self, int status) {
  sim_actor_t *actor = &self->base;
  sim_world_t *world = actor->world;
  sim_actor_ended(actor, ACQUIRE, status);
  if (status == 0 && (actor->canceled[ACQUIRE] || actor->stopping))
    sim_violation(world, "callbacks: %s: an acquire was canceled, and is granted", actor->who);
  if (status != 0) {
    sim_actor_stall(actor, self->ttl_ms);
    sim_actor_think(actor);
    return;
  }
  sim_actor_granted(actor);
  self->held = true;
  self->seen = sim_process_now(actor->process) + remaining(self);
  if (remaining(self) > 1000)
    check_exclusive(self);
  uint64_t hold = sim_around(&world->random, world->scenario->hold_ms * SIM_MS);
  self->hold_until = sim_process_now(actor->process) + hold;
  sim_actor_stall(actor, self->ttl_ms);
  sim_actor_later(actor, 0);
}

static void end_hold(multilock_t *self) {
  self->base.served |= self->last && self->base.healing;
  self->last = false;
  sim_actor_think(&self->base);
}

static void on_released(multilock_t *self, int status) {
  sim_actor_ended(&self->base, RELEASE, status);
  end_hold(self);
}

static void on_lost(multilock_t *self) {
  sim_actor_t *actor = &self->base;
  sim_note(actor->world, actor->who, "lost");
  actor->world->figures.losses++;
  if (!self->held && !sim_actor_is_closing(actor) && !actor->stopping)
    sim_violation(actor->world, "loss: %s: lost, and was not held", actor->who);
  self->held = false;
  end_hold(self);
}

const sim_actor_type_t sim_multilock_type = {
    .size = sizeof(multilock_t),
    .op = {"acquire", "release", "close"},
    .ends = {[ACQUIRE] = {BELAY_EHELD, BELAY_ETIMEDOUT, BELAY_EEXPIRED}, [RELEASE] = {SIM_ANY}},
    .make = make,
    .close = close_either,
    .act = act,
    .after_turn = after_turn,
};
