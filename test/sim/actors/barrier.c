/* Hands that come to a barrier, again and again. */
#include <string.h>

#include "belay/latch.h"
#include "sim/actors/hand.h"

#define GENERATIONS 8192
#define UNCERTAIN 64
#define SLACK (5 * SIM_S) /* time that an opening may need to reach waiters */

enum { WAIT };

typedef struct ledger {
  unsigned passed[GENERATIONS];  /* reported passes, by generation */
  uint64_t uncertain[UNCERTAIN]; /* ends of waits whose arrival is unknown */
  unsigned hand;
} ledger_t;

typedef struct hand {
  sim_hand_t base; /* first */
  belay_barrier_t *barrier;
  uint64_t generation; /* the last one that it was one of */
} hand_t;

static hand_t *of(sim_hand_t *base) {
  return (hand_t *)base;
}

static ledger_t *ledger_of(sim_world_t *world) {
  return sim_ledger(world, sizeof(ledger_t));
}

/* ---- rules ---------------------------------------------------------------------------------------------- */

static void note_uncertain(sim_world_t *world) {
  ledger_t *ledger = ledger_of(world);
  ledger->uncertain[ledger->hand++ % UNCERTAIN] = world->now;
}

/* The parties that may have arrived: reported passes, waiters whose arrival may be counted, and
 * parties of unknown state. */
static unsigned may_have_come(sim_world_t *world, uint64_t generation) {
  const ledger_t *ledger = ledger_of(world);
  unsigned n = 0;
  for (unsigned i = 0; i < sim_hands_count(world); i++) {
    const hand_t *hand = (const hand_t *)sim_hand_at(world, i);
    n += hand != NULL && (hand->base.promise[WAIT].pending || hand->generation >= generation);
  }
  uint64_t keeps = (uint64_t)world->scenario->waiter_ttl_ms * SIM_MS + SLACK;
  for (unsigned i = 0; i < UNCERTAIN; i++)
    n += ledger->uncertain[i] > 0 && ledger->uncertain[i] + keeps >= world->now;
  return n;
}

/* A generation has exactly n parties: no more are reported, and at least n may have arrived. */
static void check_passed(hand_t *hand, uint64_t generation) {
  sim_world_t *world = sim_world_of(&hand->base);
  ledger_t *ledger = ledger_of(world);
  if (generation == 0 || generation >= GENERATIONS || generation <= hand->generation) {
    sim_violation(world, "count: %s is told of generation %llu after %llu", hand->base.who,
                  (unsigned long long)generation, (unsigned long long)hand->generation);
    return;
  }
  hand->generation = generation;
  if (++ledger->passed[generation] > world->scenario->limit)
    sim_violation(world, "count: %s is through as number %u of generation %llu", hand->base.who,
                  ledger->passed[generation], (unsigned long long)generation);
  unsigned came = may_have_come(world, generation);
  if (came < world->scenario->limit)
    sim_violation(world, "count: %s is through, and no more than %u have come", hand->base.who,
                  came);
}

static void gone(sim_hand_t *base) {
  if (base->promise[WAIT].pending)
    note_uncertain(sim_world_of(base));
}

/* ---- what it does --------------------------------------------------------------------------------------- */

static void on_passed(belay_barrier_t *barrier, int status, uint64_t generation) {
  hand_t *hand = belay_barrier_data(barrier);
  sim_hand_t *base = &hand->base;
  sim_hand_kept(base, WAIT, status);
  if (status == 0) {
    sim_hand_granted(base);
    check_passed(hand, generation);
    base->cured |= base->healing;
  } else {
    note_uncertain(sim_world_of(base));
  }
  sim_hand_think(base);
}

static void on_closed(belay_barrier_t *barrier, void *data) {
  hand_t *hand = data;
  (void)barrier;
  hand->barrier = NULL;
  sim_hand_closed(&hand->base);
}

static void make(hand_t *hand) {
  sim_hand_t *base = &hand->base;
  const sim_scenario_t *scenario = sim_world_of(base)->scenario;
  belay_latch_options_t options;
  belay_latch_options_init(&options);
  options.count = scenario->limit;
  options.waiter_ttl_ms = scenario->waiter_ttl_ms;
  if (scenario->asleep_ms > 0) {
    options.retry_min_ms = scenario->asleep_ms;
    options.retry_max_ms = options.backoff_max_ms = 2 * scenario->asleep_ms;
  }
  sim_hand_enter(base);
  int error =
      belay_barrier_new(base->process->client[0], belay_string("b"), &options, &hand->barrier);
  if (sim_hand_leave(base, "new", error, 0))
    belay_barrier_set_data(hand->barrier, hand);
  sim_hand_think(base);
}

static void close_it(hand_t *hand) {
  sim_hand_enter(&hand->base);
  sim_hand_close(&hand->base, belay_barrier_close(hand->barrier, on_closed));
}

static void wait(hand_t *hand) {
  sim_hand_t *base = &hand->base;
  uint64_t most = sim_world_of(base)->scenario->wait_ms;
  bool ever = base->healing || sim_hand_chance(base, 500);
  int64_t wait_ms = ever ? BELAY_FOREVER : (int64_t)sim_hand_between(base, 1, most);
  sim_hand_enter(base);
  int error = belay_barrier_wait(hand->barrier, wait_ms, on_passed);
  if (!sim_hand_leave(base, "wait", error, BELAY_ESTATE)) {
    sim_hand_think(base);
    return;
  }
  /* When its time is over it has to ask whether it was too late to withdraw. */
  sim_hand_promise(base, WAIT, BELAY_FOREVER);
  if (!base->healing && sim_hand_chance(base, 100))
    sim_hand_later(base, sim_hand_between(base, 0, most * SIM_MS));
}

static void cancel(hand_t *hand) {
  if (hand->base.healing)
    return;
  sim_hand_enter(&hand->base);
  int error = belay_barrier_cancel(hand->barrier);
  if (sim_hand_leave(&hand->base, "cancel", error, BELAY_ESTATE))
    sim_hand_cancel(&hand->base, WAIT);
}

static void act(sim_hand_t *base) {
  hand_t *hand = of(base);
  if (sim_hand_is_closing(base))
    return;
  if (hand->barrier == NULL)
    make(hand);
  else if (base->promise[WAIT].pending && sim_hand_chance(base, 800))
    cancel(hand);
  else if (!base->healing && sim_hand_chance(base, 20))
    close_it(hand);
  else if (!base->promise[WAIT].pending)
    wait(hand);
}

const sim_trade_t sim_barrier_trade = {
    .size = sizeof(hand_t),
    .op = {"wait", "close"},
    .ends = {[WAIT] = {BELAY_ETIMEDOUT}},
    .patient = true,
    .act = act,
    .gone = gone,
};
