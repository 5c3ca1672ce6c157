/* Hands that take from keys, all under one policy, and give back; and that reserve and wait. The hands of a process share
 * handles. */
#include "sim/check/limit.h"

#include <string.h>

#include "core/client/request.h"

#define DESKS 2 /* handles of a process */
#define KEPT 4  /* receipts and reservations that a hand remembers */

enum { ASK, WAIT };

typedef struct hand hand_t;

/* A limiter shared by the hands of a process; the first of them owns it. */
typedef struct desk {
  belay_limiter_t *limiter;
  hand_t *closer; /* the hand whose close is pending */
} desk_t;

/* A receipt. */
typedef struct kept {
  unsigned ask; /* 0: nothing */
  belay_receipt_t receipt;
  belay_reservation_t reservation;
} kept_t;

struct hand {
  sim_hand_t base; /* first */
  desk_t desk;
  belay_request_t request[2]; /* ASK, WAIT */
  unsigned ask[2];            /* their numbers; 0: it has none */
  bool reset;                 /* ASK: it is a reset, or else */
  kept_t kept[KEPT];
  kept_t *returning; /* ASK: a reservation that is given back */
  bool served[2];    /* healing */
};

static hand_t *of(sim_hand_t *base) {
  return (hand_t *)base;
}

static const sim_scenario_t *scenario_of(const sim_hand_t *base) {
  return sim_world_of(base)->scenario;
}

static bool reserves(const sim_hand_t *base) {
  return scenario_of(base)->kind == SIM_RESERVE;
}

/* The hand of the same process with that number. */
static hand_t *beside(const hand_t *hand, unsigned i) {
  const sim_process_t *process = hand->base.process;
  unsigned first = process->index * process->world->scenario->actors;
  return of(sim_hand_at(process->world, first + i));
}

static desk_t *desk_of(const hand_t *hand) {
  return &beside(hand, hand->base.index % DESKS)->desk;
}

/* ---- the handle ------------------------------------------------------------------------------------------- */

static void make(hand_t *hand) {
  sim_hand_t *base = &hand->base;
  belay_limiter_options_t options;
  belay_limiter_options_init(&options);
  options.name = belay_string("l");
  options.limits = sim_limits_policy(sim_limits_of(sim_world_of(base)), &options.limits_len);
  options.max_denied = (uint32_t)(sim_hand_chance(base, 600) ? 0 : sim_hand_between(base, 1, 3));
  options.max_waiting = (uint32_t)sim_hand_between(base, 1, 4);
  options.lease_tokens = sim_limits_slice(sim_limits_of(sim_world_of(base)), &options.lease_ms);
  if (options.lease_tokens == 0)
    options.lease_ms = 1000;
  options.data = desk_of(hand);
  sim_hand_enter(base);
  int error = belay_limiter_new(base->process->client[0], &options, &desk_of(hand)->limiter);
  (void)sim_hand_leave(base, "new", error, 0);
  sim_hand_think(base);
}

static void on_closed(belay_limiter_t *limiter, void *data) {
  desk_t *desk = data;
  hand_t *hand = desk->closer;
  (void)limiter;
  *desk = (desk_t){0};
  sim_hand_closed(&hand->base);
}

static void close_it(hand_t *hand) {
  desk_t *desk = desk_of(hand);
  sim_hand_enter(&hand->base);
  if (!sim_hand_close(&hand->base, belay_limiter_close(desk->limiter, on_closed)))
    return;
  desk->closer = hand;
  for (unsigned i = 0; i < scenario_of(&hand->base)->actors; i++) {
    hand_t *other = beside(hand, i);
    if (desk_of(other) != desk)
      continue;
    sim_hand_cancel(&other->base, ASK);
    sim_hand_cancel(&other->base, WAIT);
  }
}

/* ---- what it is told -------------------------------------------------------------------------------------- */

/* Keeps a receipt for a later refund. */
static void keep(hand_t *hand, unsigned number, const belay_limiter_result_t *result) {
  if (number == 0 || !sim_hand_chance(&hand->base, 500))
    return;
  kept_t *kept = &hand->kept[sim_hand_between(&hand->base, 0, KEPT - 1)];
  if (kept != hand->returning)
    *kept = (kept_t){.ask = number, .receipt = result->receipt, .reservation = result->reservation};
}

static void be_served(hand_t *hand, unsigned i) {
  sim_hand_t *base = &hand->base;
  hand->served[i] |= base->healing;
  base->cured |= hand->served[ASK] && (hand->served[WAIT] || !reserves(base));
}

static void on_answer(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  hand_t *hand = request->data;
  unsigned number = hand->ask[ASK];
  sim_limits_status(&hand->base, status, result);
  sim_hand_kept(&hand->base, ASK, status);
  hand->ask[ASK] = 0;
  hand->returning = NULL;
  if (number == 0)
    return;
  sim_ask_kind_t kind = sim_limits_asked(sim_world_of(&hand->base), number)->kind;
  sim_limits_told(&hand->base, number, result);
  if (result->verdict == BELAY_ALLOWED && kind != SIM_ASK_REFUND)
    be_served(hand, ASK);
  /* A reservation may be cancelled after any result. */
  if (kind == SIM_ASK_RESERVE || (kind == SIM_ASK_TAKE && result->verdict == BELAY_ALLOWED))
    keep(hand, number, result);
}

static const belay__operation_t *waiting(const hand_t *hand) {
  return (const belay__operation_t *)(const void *)&hand->request[WAIT].belay_private;
}

/* "order": among waits with a known time at the same desk and key. Waits whose time came during
 * a pause of the process do not count. A repeated request whose time has passed does not know
 * it. */
static void check_order(const hand_t *hand, const sim_ask_t *ask, int64_t wait_us) {
  sim_world_t *world = sim_world_of(&hand->base);
  if (wait_us == 0 && waiting(hand)->reply_lost)
    return;
  for (unsigned i = 0; i < world->scenario->actors; i++) {
    const hand_t *other = beside(hand, i);
    if (other == hand || desk_of(other) != desk_of(hand) || !other->base.promise[WAIT].pending ||
        !belay__timer_is_set(&waiting(other)->timer) ||
        waiting(other)->timer.when <= other->base.process->excused)
      continue;
    const sim_ask_t *its = sim_limits_asked(world, other->ask[WAIT]);
    if (its->key == ask->key && its->acts_us < ask->acts_us)
      sim_violation(world, "order: %s is called for k%u before %s, whose turn is %.3f ms before",
                    hand->base.who, ask->key, other->base.who,
                    (double)(ask->acts_us - its->acts_us) / 1e3);
  }
}

static void on_wait(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  hand_t *hand = request->data;
  unsigned number = hand->ask[WAIT];
  sim_limits_status(&hand->base, status, result);
  sim_hand_kept(&hand->base, WAIT, status);
  hand->ask[WAIT] = 0;
  sim_limits_told(&hand->base, number, result);
  if (result->verdict != BELAY_ALLOWED)
    return;
  check_order(hand, sim_limits_asked(sim_world_of(&hand->base), number), result->wait_us);
  be_served(hand, WAIT);
}

/* ---- what it asks ----------------------------------------------------------------------------------------- */

static const char *key_of(unsigned key) {
  static const char *const keys[SIM_LIMIT_KEYS] = {"k0", "k1", "k2", "k3"};
  return keys[key];
}

static unsigned any_key(sim_hand_t *base) {
  return (unsigned)sim_hand_between(base, 0, scenario_of(base)->names - 1);
}

/* How much, in pieces: mostly little, now and then more than fits. */
static uint64_t any_cost(sim_hand_t *base) {
  if (base->healing)
    return 0;
  uint64_t most = sim_hand_chance(base, 100) ? 66 : sim_hand_chance(base, 300) ? 24 : 6;
  return sim_hand_between(base, 0, most);
}

static belay_request_t *prepare(hand_t *hand, unsigned i) {
  hand->request[i] = sim_hand_request(&hand->base);
  return &hand->request[i];
}

/* It was asked, or could not be. */
static void asked(hand_t *hand, unsigned i, const char *what, int error, int64_t more_ms) {
  sim_hand_t *base = &hand->base;
  if (sim_hand_leave(base, what, error, BELAY_EBUSY)) {
    sim_hand_promise(base, i, hand->request[i].timeout_ms + more_ms);
    return;
  }
  if (hand->ask[i] != 0)
    sim_limits_unasked(sim_world_of(base), hand->ask[i]);
  hand->ask[i] = 0;
  hand->returning = NULL;
}

/* A number for it, with its key and cost; NULL: there is none. */
static const sim_ask_t *number(hand_t *hand, unsigned i, sim_ask_kind_t kind, unsigned key,
                               uint64_t times) {
  sim_world_t *world = sim_world_of(&hand->base);
  hand->ask[i] = sim_limits_ask(world, kind, key, times);
  return hand->ask[i] == 0 ? NULL : sim_limits_asked(world, hand->ask[i]);
}

static void take(hand_t *hand) {
  sim_hand_t *base = &hand->base;
  bool penalty = !base->healing && sim_hand_chance(base, 30);
  unsigned key = any_key(base);
  const sim_ask_t *ask =
      number(hand, ASK, penalty ? SIM_ASK_PENALTY : SIM_ASK_TAKE, key, any_cost(base));
  if (ask == NULL)
    return;
  belay_request_t *request = prepare(hand, ASK);
  sim_hand_enter(base);
  int error = penalty ? belay_limiter_penalty(desk_of(hand)->limiter, request,
                                              belay_bytes(key_of(key), 2), ask->cost, on_answer)
                      : belay_limiter_take(desk_of(hand)->limiter, request,
                                           belay_bytes(key_of(key), 2), ask->cost, on_answer);
  asked(hand, ASK, penalty ? "penalty" : "take", error, 0);
}

/* Where the answer is here already there is no callback. */
static void try_it(hand_t *hand) {
  sim_hand_t *base = &hand->base;
  belay_limiter_result_t result;
  unsigned key = any_key(base);
  const sim_ask_t *ask = number(hand, ASK, SIM_ASK_TAKE, key, any_cost(base));
  if (ask == NULL)
    return;
  unsigned asked = hand->ask[ASK];
  hand->ask[ASK] = 0;
  sim_hand_enter(base);
  int error =
      belay_limiter_try(desk_of(hand)->limiter, belay_bytes(key_of(key), 2), ask->cost, &result);
  if (sim_hand_leave(base, "try", error, BELAY_EAGAIN)) {
    sim_limits_told(base, asked, &result);
    if (result.verdict == BELAY_ALLOWED)
      be_served(hand, ASK);
  } else {
    sim_limits_unasked(sim_world_of(base), asked);
  }
}

/* Nothing that is charged. */
static void look(hand_t *hand) {
  sim_hand_t *base = &hand->base;
  belay_limiter_t *limiter = desk_of(hand)->limiter;
  const char *key = key_of(any_key(base));
  bool reset = scenario_of(base)->kind != SIM_SLICE && sim_hand_chance(base, 100);
  belay_request_t *request = prepare(hand, ASK);
  sim_hand_enter(base);
  int error = reset ? belay_limiter_reset(limiter, request, belay_bytes(key, 2), on_answer)
                    : belay_limiter_peek(limiter, request, belay_bytes(key, 2), on_answer);
  asked(hand, ASK, reset ? "reset" : "peek", error, 0);
}

static void refund(hand_t *hand, kept_t *kept) {
  sim_hand_t *base = &hand->base;
  const sim_ask_t *taken = sim_limits_asked(sim_world_of(base), kept->ask);
  uint64_t times = (uint64_t)taken->cost / SIM_ASKS;
  if (times == 0)
    return;
  times = sim_hand_chance(base, 700) ? times - 1 : sim_hand_between(base, 0, times - 1);
  const sim_ask_t *ask = number(hand, ASK, SIM_ASK_REFUND, taken->key, times);
  if (ask == NULL)
    return;
  sim_limits_asked(sim_world_of(base), hand->ask[ASK])->of = kept->ask;
  kept->ask = 0;
  belay_request_t *request = prepare(hand, ASK);
  sim_hand_enter(base);
  int error =
      belay_limiter_refund(desk_of(hand)->limiter, request, belay_bytes(key_of(taken->key), 2),
                           &kept->receipt, ask->cost, on_answer);
  asked(hand, ASK, "refund", error, 0);
}

/* Once, or again. */
static void unreserve(hand_t *hand, kept_t *kept) {
  sim_hand_t *base = &hand->base;
  unsigned key = sim_limits_asked(sim_world_of(base), kept->ask)->key;
  belay_request_t *request = prepare(hand, ASK);
  hand->returning = kept;
  sim_hand_enter(base);
  int error = belay_limiter_cancel_reservation(
      desk_of(hand)->limiter, request, belay_bytes(key_of(key), 2), &kept->reservation, on_answer);
  if (sim_hand_chance(base, 700))
    kept->ask = 0;
  asked(hand, ASK, "cancel", error, 0);
}

static void give_back(hand_t *hand) {
  kept_t *kept = &hand->kept[sim_hand_between(&hand->base, 0, KEPT - 1)];
  if (kept->ask == 0)
    return;
  if (sim_limits_asked(sim_world_of(&hand->base), kept->ask)->kind == SIM_ASK_TAKE)
    refund(hand, kept);
  else
    unreserve(hand, kept);
}

/* Reserves, or waits. */
static void reserve(hand_t *hand, bool waits) {
  sim_hand_t *base = &hand->base;
  unsigned i = waits ? WAIT : ASK, key = any_key(base);
  uint64_t longest =
      base->healing ? SIM_LIMIT_LONGEST_MS : sim_hand_between(base, 0, scenario_of(base)->wait_ms);
  const sim_ask_t *ask =
      number(hand, i, waits ? SIM_ASK_WAIT : SIM_ASK_RESERVE, key, any_cost(base));
  if (ask == NULL)
    return;
  belay_request_t *request = prepare(hand, i);
  belay_limiter_t *limiter = desk_of(hand)->limiter;
  sim_note(sim_world_of(base), base->who, "%lld of k%u within %llu ms, timeout %lld ms",
           (long long)ask->cost, key, (unsigned long long)longest, (long long)request->timeout_ms);
  sim_hand_enter(base);
  int error = waits ? belay_limiter_wait(limiter, request, belay_bytes(key_of(key), 2), ask->cost,
                                         (int64_t)longest * 1000, on_wait)
                    : belay_limiter_reserve(limiter, request, belay_bytes(key_of(key), 2),
                                            ask->cost, (int64_t)longest * 1000, on_answer);
  asked(hand, i, waits ? "wait" : "reserve", error, waits ? (int64_t)longest : 0);
}

/* ---- what it does ----------------------------------------------------------------------------------------- */

static void ask(hand_t *hand) {
  sim_hand_t *base = &hand->base;
  bool leases = scenario_of(base)->kind == SIM_SLICE;
  if (leases && sim_hand_chance(base, 400))
    try_it(hand);
  else if (base->healing)
    take(hand);
  else if (!leases && sim_hand_chance(base, 180))
    give_back(hand);
  else if (sim_hand_chance(base, 60))
    look(hand);
  else if (reserves(base) && sim_hand_chance(base, 400))
    reserve(hand, false);
  else
    take(hand);
}

static void do_something(hand_t *hand) {
  sim_hand_t *base = &hand->base;
  bool waits = reserves(base) && !base->promise[WAIT].pending;
  if (!base->healing && sim_hand_chance(base, 8))
    close_it(hand);
  else if (base->promise[ASK].pending && !base->healing && sim_hand_chance(base, 30))
    sim_hand_cancel_request(base, ASK, &hand->request[ASK]);
  else if (base->promise[WAIT].pending && !base->healing && sim_hand_chance(base, 30))
    sim_hand_cancel_request(base, WAIT, &hand->request[WAIT]);
  else if (waits && (base->healing ? !hand->served[WAIT] : sim_hand_chance(base, 300)))
    reserve(hand, true);
  else if (!base->promise[ASK].pending)
    ask(hand);
}

static void act(sim_hand_t *base) {
  hand_t *hand = of(base);
  const desk_t *desk = desk_of(hand);
  if (desk->closer == NULL && desk->limiter == NULL)
    make(hand);
  else if (desk->closer == NULL && !base->cured)
    do_something(hand);
  sim_hand_think(base);
}

const sim_trade_t sim_limiter_trade = {
    .size = sizeof(hand_t),
    .op = {"question", "wait", "close"},
    .act = act,
    .gone = sim_limits_gone,
    .executed = sim_limits_executed,
};
