/* Hands that lock several names of two servers at once; and some that lock one of them plainly, which excludes
 * those. */
#include "belay/multilock.h"

#include <string.h>

#include "belay/lock.h"
#include "sim/actors/hand.h"

enum { ACQUIRE, RELEASE };

typedef struct hand {
  sim_hand_t base; /* first */
  belay_multilock_t *multi;
  belay_lock_t *plain; /* one of the two, or none */
  uint64_t names; /* that it locks: a bit for each; those of one server, then those of the next */
  int64_t ttl_ms;
  bool held, cure;
  uint64_t hold_until;
  uint64_t seen; /* the deadline when it was last looked at */
} hand_t;

static hand_t *of(sim_hand_t *base) {
  return (hand_t *)base;
}

static void on_acquired(hand_t *hand, int status);
static void on_released(hand_t *hand, int status);
static void on_lost(hand_t *hand);
static void on_closed(hand_t *hand);

/* ---- either of the two ---------------------------------------------------------------------------------- */

static void multi_acquired(belay_multilock_t *lock, int status) {
  on_acquired(belay_multilock_data(lock), status);
}

static void multi_released(belay_multilock_t *lock, int status) {
  on_released(belay_multilock_data(lock), status);
}

static void multi_lost(belay_multilock_t *lock, belay_lost_t reason) {
  (void)reason;
  on_lost(belay_multilock_data(lock));
}

static void multi_closed(belay_multilock_t *lock, void *data) {
  (void)lock;
  on_closed(data);
}

static void plain_acquired(belay_lock_t *lock, int status) {
  on_acquired(belay_lock_data(lock), status);
}

static void plain_released(belay_lock_t *lock, int status) {
  on_released(belay_lock_data(lock), status);
}

static void plain_lost(belay_lock_t *lock, belay_lost_t reason) {
  (void)reason;
  on_lost(belay_lock_data(lock));
}

static void plain_closed(belay_lock_t *lock, void *data) {
  (void)lock;
  on_closed(data);
}

/* Nanoseconds for which it is believed in. */
static uint64_t remaining(const hand_t *hand) {
  int64_t us = 0;
  if (hand->base.resting)
    return 0;
  if (hand->held && hand->multi != NULL)
    us = belay_multilock_remaining_us(hand->multi);
  else if (hand->held && hand->plain != NULL)
    us = belay_lock_remaining_us(hand->plain);
  return us > 0 ? (uint64_t)us * 1000 : 0;
}

/* ---- rules ---------------------------------------------------------------------------------------------- */

/* A process whose callback takes its time is ahead of the world, and those of the others are not. */
static void check_exclusive(const hand_t *hand) {
  sim_world_t *world = sim_world_of(&hand->base);
  uint64_t ahead = hand->base.process->ahead + hand->base.process->ahead / 64 + 1000;
  for (unsigned i = 0; i < sim_hands_count(world); i++) {
    const hand_t *other = (const hand_t *)sim_hand_at(world, i);
    if (other == NULL || other == hand || (other->names & hand->names) == 0)
      continue;
    uint64_t left = remaining(other);
    if (left > ahead || (left > 1000 && other->base.process == hand->base.process))
      sim_violation(
          world,
          "exclusion: %s is told that it holds %llx while %s believes in %llx for another %.3f ms",
          hand->base.who, (unsigned long long)hand->names, other->base.who,
          (unsigned long long)other->names, sim_in_ms(left));
  }
}

static void turn(sim_hand_t *base) {
  hand_t *hand = of(base);
  if (hand->held && !base->resting)
    sim_hand_believes(base, &hand->seen, remaining(hand));
}

/* ---- what it does --------------------------------------------------------------------------------------- */

static void make_multi(hand_t *hand, const belay_lock_options_t *options) {
  const sim_scenario_t *scenario = sim_world_of(&hand->base)->scenario;
  belay_multilock_name_t names[64];
  char text[64][8];
  unsigned n = 0;
  for (unsigned i = 0; i < scenario->servers * scenario->names; i++)
    if ((hand->names >> i & 1) != 0) {
      int len = snprintf(text[n], sizeof text[n], "n%u", i % scenario->names);
      names[n] = (belay_multilock_name_t){.client = hand->base.process->client[i / scenario->names],
                                          .name = {text[n], (size_t)len}};
      n++;
    }
  sim_hand_enter(&hand->base);
  int error = belay_multilock_new(names, n, options, multi_lost, &hand->multi);
  (void)sim_hand_leave(&hand->base, "new", error, 0);
}

static void make_plain(hand_t *hand, const belay_lock_options_t *options) {
  const sim_scenario_t *scenario = sim_world_of(&hand->base)->scenario;
  unsigned i = (unsigned)__builtin_ctzll(hand->names);
  char text[8];
  int len = snprintf(text, sizeof text, "n%u", i % scenario->names);
  sim_hand_enter(&hand->base);
  int error = belay_lock_new(hand->base.process->client[i / scenario->names],
                             belay_bytes(text, (size_t)len), options, &hand->plain);
  (void)sim_hand_leave(&hand->base, "new plain", error, 0);
}

static void make(hand_t *hand) {
  sim_hand_t *base = &hand->base;
  const sim_scenario_t *scenario = sim_world_of(base)->scenario;
  uint64_t all = (UINT64_C(1) << scenario->servers * scenario->names) - 1;
  bool plain = sim_hand_chance(base, 250);
  belay_lock_options_t options;
  belay_lock_options_init(&options);
  options.ttl_ms = (int64_t)sim_hand_between(base, (uint64_t)scenario->ttl_min_ms,
                                             (uint64_t)scenario->ttl_max_ms);
  options.watchdog = sim_hand_chance(base, 600) ? BELAY_WATCHDOG_ON : BELAY_WATCHDOG_OFF;
  if (sim_hand_chance(base, 300))
    options.wakeup = BELAY_WAKE_POLL;
  options.data = hand;
  hand->ttl_ms = options.ttl_ms;
  hand->names = 0;
  for (unsigned n = plain ? 1 : (unsigned)sim_hand_between(base, 1, 4); n > 0; n--)
    hand->names |=
        UINT64_C(1) << sim_hand_between(base, 0, scenario->servers * scenario->names - 1);
  hand->names &= all;
  if (plain) {
    options.on_lost = plain_lost;
    make_plain(hand, &options);
  } else {
    make_multi(hand, &options);
  }
  sim_hand_think(base);
}

static void acquire(hand_t *hand) {
  sim_hand_t *base = &hand->base;
  uint64_t most = sim_world_of(base)->scenario->wait_ms;
  int64_t wait_ms = base->healing                ? BELAY_FOREVER
                    : sim_hand_chance(base, 100) ? 0
                                                 : (int64_t)sim_hand_between(base, 1, most);
  sim_hand_enter(base);
  int error = hand->multi != NULL ? belay_multilock_acquire(hand->multi, wait_ms, multi_acquired)
                                  : belay_lock_acquire(hand->plain, wait_ms, plain_acquired);
  if (!sim_hand_leave(base, "acquire", error, 0)) {
    sim_hand_think(base);
    return;
  }
  /* The first attempt for each part has its whole timeout. */
  bool bound = wait_ms != 0 && wait_ms != BELAY_FOREVER;
  sim_hand_promise(base, ACQUIRE, bound ? wait_ms + SIM_CALL_MS : BELAY_FOREVER);
  hand->cure = base->healing;
  if (!base->healing && sim_hand_chance(base, 150))
    sim_hand_later(base, sim_hand_between(base, 0, most / 4 * SIM_MS));
}

static void cancel(hand_t *hand) {
  if (hand->base.healing)
    return;
  sim_hand_enter(&hand->base);
  int error =
      hand->multi != NULL ? belay_multilock_cancel(hand->multi) : belay_lock_cancel(hand->plain);
  if (sim_hand_leave(&hand->base, "cancel", error, BELAY_ESTATE))
    sim_hand_cancel(&hand->base, ACQUIRE);
}

static void release(hand_t *hand) {
  sim_hand_enter(&hand->base);
  int error = hand->multi != NULL
                  ? belay_multilock_release(hand->multi, BELAY_DEFAULT, multi_released)
                  : belay_lock_release(hand->plain, BELAY_DEFAULT, plain_released);
  if (sim_hand_leave(&hand->base, "release", error, BELAY_ENOTOWNER)) {
    hand->held = false;
    sim_hand_promise(&hand->base, RELEASE, BELAY_FOREVER);
  } else {
    sim_hand_think(&hand->base);
  }
}

static void close_it(hand_t *hand) {
  sim_hand_enter(&hand->base);
  int error = hand->multi != NULL ? belay_multilock_close(hand->multi, multi_closed)
                                  : belay_lock_close(hand->plain, plain_closed);
  if (sim_hand_close(&hand->base, error))
    hand->held = false;
}

static void work(hand_t *hand) {
  uint64_t now = sim_process_now(hand->base.process);
  if (now >= hand->hold_until && !hand->base.healing && sim_hand_chance(&hand->base, 60))
    close_it(hand);
  else if (now >= hand->hold_until || hand->base.healing)
    release(hand);
  else
    sim_hand_later(&hand->base, hand->hold_until - now);
}

static void act(sim_hand_t *base) {
  hand_t *hand = of(base);
  if (hand->multi == NULL && hand->plain == NULL)
    make(hand);
  else if (sim_hand_is_closing(base) || base->promise[RELEASE].pending)
    return;
  else if (base->promise[ACQUIRE].pending)
    cancel(hand);
  else if (hand->held)
    work(hand);
  else if (base->healing && base->cured)
    return;
  else if (!base->healing && sim_hand_chance(base, 50))
    close_it(hand);
  else
    acquire(hand);
}

/* ---- what it is told ------------------------------------------------------------------------------------ */

static void on_acquired(hand_t *hand, int status) {
  sim_hand_t *base = &hand->base;
  sim_world_t *world = sim_world_of(base);
  sim_hand_kept(base, ACQUIRE, status);
  if (status == 0 && (base->canceled[ACQUIRE] || base->resting))
    sim_violation(world, "callbacks: %s: an acquire was canceled, and is granted", base->who);
  if (status != 0) {
    sim_hand_stall(base, hand->ttl_ms);
    sim_hand_think(base);
    return;
  }
  sim_hand_granted(base);
  hand->held = true;
  hand->seen = sim_process_now(base->process) + remaining(hand);
  if (remaining(hand) > 1000)
    check_exclusive(hand);
  uint64_t hold = sim_around(&world->random, world->scenario->hold_ms * SIM_MS);
  hand->hold_until = sim_process_now(base->process) + hold;
  sim_hand_stall(base, hand->ttl_ms);
  sim_hand_later(base, 0);
}

static void served(hand_t *hand) {
  hand->base.cured |= hand->cure && hand->base.healing;
  hand->cure = false;
  sim_hand_think(&hand->base);
}

static void on_released(hand_t *hand, int status) {
  sim_hand_kept(&hand->base, RELEASE, status);
  served(hand);
}

static void on_lost(hand_t *hand) {
  sim_world_t *world = sim_world_of(&hand->base);
  sim_note(world, hand->base.who, "lost");
  world->figures.losses++;
  if (!hand->held && !sim_hand_is_closing(&hand->base) && !hand->base.resting)
    sim_violation(world, "loss: %s: lost, and was not held", hand->base.who);
  hand->held = false;
  served(hand);
}

static void on_closed(hand_t *hand) {
  hand->multi = NULL;
  hand->plain = NULL;
  sim_hand_closed(&hand->base);
}

const sim_trade_t sim_multilock_trade = {
    .size = sizeof(hand_t),
    .op = {"acquire", "release", "close"},
    .ends = {[ACQUIRE] = {BELAY_EHELD, BELAY_ETIMEDOUT, BELAY_EEXPIRED}, [RELEASE] = {SIM_ANY}},
    .act = act,
    .turn = turn,
};
