/* Actors that take from keys, all under one policy, and give back; and that reserve and wait. The
 * actors of a process share handles. */
#include "sim/check/limit.h"

#include "core/client/request.h"

#define HANDLES 2 /* of a process */
#define KEPT 4    /* receipts and reservations that an actor keeps */

enum { ASK, WAIT };

typedef struct limiter limiter_t;

/* A handle that actors of a process share. It is embedded in the first of them. */
typedef struct handle {
  belay_limiter_t *limiter;
  limiter_t *closer; /* the actor whose close is pending */
} handle_t;

typedef struct kept {
  unsigned number; /* of the request; 0: nothing is kept */
  belay_receipt_t receipt;
  belay_reservation_t reservation;
} kept_t;

struct limiter {
  sim_actor_t base; /* first */
  handle_t handle;
  unsigned number[2]; /* of the requests ASK and WAIT; 0: none */
  kept_t kept[KEPT];
  kept_t *returning; /* ASK: a reservation that is given back */
  bool served[2];    /* healing */
};

static bool reserves(const limiter_t *self) {
  return self->base.world->scenario->kind == SIM_RESERVE;
}

/* Actor i of the same process. */
static limiter_t *sibling(const limiter_t *self, unsigned i) {
  const sim_world_t *world = self->base.world;
  return (limiter_t *)sim_actor_at(world, self->base.process->index * world->scenario->actors + i);
}

static handle_t *handle_of(const limiter_t *self) {
  return &sibling(self, self->base.index % HANDLES)->handle;
}

/* ---- the handle ---- */

static int make(sim_actor_t *actor) {
  limiter_t *self = (limiter_t *)actor;
  sim_limits_t *limits = sim_limits_of(actor->world);
  belay_limiter_options_t options;
  belay_limiter_options_init(&options);
  options.name = belay_string("l");
  options.limits = sim_limits_policy(limits, &options.limits_len);
  options.max_denied =
      (uint32_t)(sim_actor_chance(actor, 600) ? 0 : sim_actor_between(actor, 1, 3));
  options.max_waiting = (uint32_t)sim_actor_between(actor, 1, 4);
  options.lease_tokens = sim_limits_slice(limits, &options.lease_ms);
  if (options.lease_tokens == 0)
    options.lease_ms = 1000;
  options.data = handle_of(self);
  return belay_limiter_new(actor->process->client[0], &options, &handle_of(self)->limiter);
}

static void on_closed(belay_limiter_t *limiter, void *data) {
  handle_t *handle = data;
  limiter_t *self = handle->closer;
  (void)limiter;
  *handle = (handle_t){0};
  sim_actor_closed(&self->base);
}

static int close_limiter(sim_actor_t *actor) {
  return belay_limiter_close(handle_of((limiter_t *)actor)->limiter, on_closed);
}

static void close_handle(limiter_t *self) {
  if (!sim_actor_close(&self->base))
    return;
  handle_of(self)->closer = self;
  for (unsigned i = 0; i < self->base.world->scenario->actors; i++) {
    limiter_t *other = sibling(self, i);
    if (handle_of(other) != handle_of(self))
      continue;
    sim_actor_canceled(&other->base, ASK);
    sim_actor_canceled(&other->base, WAIT);
  }
}

/* ---- callbacks ---- */

/* Keeps a receipt for a later refund. */
static void keep(limiter_t *self, unsigned number, const belay_limiter_result_t *result) {
  if (number == 0 || !sim_actor_chance(&self->base, 500))
    return;
  kept_t *kept = &self->kept[sim_actor_between(&self->base, 0, KEPT - 1)];
  if (kept != self->returning)
    *kept =
        (kept_t){.number = number, .receipt = result->receipt, .reservation = result->reservation};
}

static void note_served(limiter_t *self, unsigned i) {
  self->served[i] |= self->base.healing;
  self->base.served |= self->served[ASK] && (self->served[WAIT] || !reserves(self));
}

static void on_reply(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  limiter_t *self = request->data;
  sim_actor_t *actor = &self->base;
  unsigned number = self->number[ASK];
  sim_limits_status(actor, status, result);
  sim_actor_ended(actor, ASK, status);
  self->number[ASK] = 0;
  self->returning = NULL;
  if (number == 0)
    return;
  sim_limit_kind_t kind = sim_limits_request(actor->world, number)->kind;
  sim_limits_result(actor, number, result);
  if (result->verdict == BELAY_ALLOWED && kind != SIM_LIMIT_REFUND)
    note_served(self, ASK);
  /* A reservation may be cancelled after any result. */
  if (kind == SIM_LIMIT_RESERVE || (kind == SIM_LIMIT_TAKE && result->verdict == BELAY_ALLOWED))
    keep(self, number, result);
}

static const belay__operation_t *wait_of(const limiter_t *self) {
  return (const belay__operation_t *)(const void *)&self->base.request[WAIT].belay_private;
}

/* "order": among waits with a known time at the same handle and key. Waits whose time came during a
 * pause of the process do not count. A repeated request whose time has passed does not know it. */
static void check_order(const limiter_t *self, const sim_limit_request_t *request,
                        int64_t wait_us) {
  sim_world_t *world = self->base.world;
  if (wait_us == 0 && wait_of(self)->reply_lost)
    return;
  for (unsigned i = 0; i < world->scenario->actors; i++) {
    const limiter_t *other = sibling(self, i);
    if (other == self || handle_of(other) != handle_of(self) || !other->base.op[WAIT].pending ||
        !belay__timer_is_set(&wait_of(other)->timer) ||
        wait_of(other)->timer.when <= other->base.process->excused)
      continue;
    const sim_limit_request_t *its = sim_limits_request(world, other->number[WAIT]);
    if (its->key == request->key && its->acts_us < request->acts_us)
      sim_violation(world,
                    "order: a wait of %s for k%u ends before that of %s, whose time is %.3f ms "
                    "earlier",
                    self->base.who, request->key, other->base.who,
                    (double)(request->acts_us - its->acts_us) / 1e3);
  }
}

static void on_wait(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  limiter_t *self = request->data;
  sim_actor_t *actor = &self->base;
  unsigned number = self->number[WAIT];
  sim_limits_status(actor, status, result);
  sim_actor_ended(actor, WAIT, status);
  self->number[WAIT] = 0;
  sim_limits_result(actor, number, result);
  if (result->verdict != BELAY_ALLOWED)
    return;
  check_order(self, sim_limits_request(actor->world, number), result->wait_us);
  note_served(self, WAIT);
}

/* ---- requests ---- */

static belay_bytes_t name_of(unsigned key) {
  static const char *const keys[SIM_LIMIT_KEYS] = {"k0", "k1", "k2", "k3"};
  return belay_bytes(keys[key], 2);
}

static unsigned draw_key(sim_actor_t *actor) {
  return (unsigned)sim_actor_between(actor, 0, actor->world->scenario->names - 1);
}

/* Mostly a small number of pieces, at times more than fits. */
static uint64_t draw_cost(sim_actor_t *actor) {
  if (actor->healing)
    return 0;
  uint64_t most = sim_actor_chance(actor, 100) ? 66 : sim_actor_chance(actor, 300) ? 24 : 6;
  return sim_actor_between(actor, 0, most);
}

/* Sends request i: `call` uses `limiter` and `request`. */
#define SEND(self, i, more_ms, what, call)                                                         \
  do {                                                                                             \
    belay_limiter_t *limiter = handle_of(self)->limiter;                                           \
    belay_request_t *request = sim_actor_request(&(self)->base, i);                                \
    int64_t timeout_ms = request->timeout_ms;                                                      \
    if (SIM_CALL(&(self)->base, what, BELAY_EBUSY, call))                                          \
      sim_actor_expect(&(self)->base, i, timeout_ms + (more_ms));                                  \
    else                                                                                           \
      forget_request(self, i);                                                                     \
  } while (0)

/* The library refused to send it. */
static void forget_request(limiter_t *self, unsigned i) {
  if (self->number[i] != 0)
    sim_limits_request(self->base.world, self->number[i])->unsent = true;
  self->number[i] = 0;
  self->returning = NULL;
}

/* Gives the request a number; NULL: there is none. */
static sim_limit_request_t *number_request(limiter_t *self, unsigned i, sim_limit_kind_t kind,
                                           unsigned key, uint64_t times) {
  self->number[i] = sim_limits_number(self->base.world, kind, key, times);
  return self->number[i] == 0 ? NULL : sim_limits_request(self->base.world, self->number[i]);
}

static void take(limiter_t *self) {
  sim_actor_t *actor = &self->base;
  bool penalty = !actor->healing && sim_actor_chance(actor, 30);
  unsigned key = draw_key(actor);
  const sim_limit_request_t *take = number_request(
      self, ASK, penalty ? SIM_LIMIT_PENALTY : SIM_LIMIT_TAKE, key, draw_cost(actor));
  if (take != NULL)
    SEND(self, ASK, 0, penalty ? "penalty" : "take",
         (penalty ? belay_limiter_penalty : belay_limiter_take)(limiter, request, name_of(key),
                                                                take->cost, on_reply));
}

/* A try without a server: there is no callback. */
static void try_it(limiter_t *self) {
  sim_actor_t *actor = &self->base;
  belay_limiter_result_t result;
  unsigned key = draw_key(actor);
  sim_limit_request_t *take = number_request(self, ASK, SIM_LIMIT_TAKE, key, draw_cost(actor));
  if (take == NULL)
    return;
  unsigned number = self->number[ASK];
  self->number[ASK] = 0;
  if (SIM_CALL(actor, "try", BELAY_EAGAIN,
               belay_limiter_try(handle_of(self)->limiter, name_of(key), take->cost, &result))) {
    sim_limits_result(actor, number, &result);
    if (result.verdict == BELAY_ALLOWED)
      note_served(self, ASK);
  } else {
    take->unsent = true;
  }
}

static void peek_or_reset(limiter_t *self) {
  sim_actor_t *actor = &self->base;
  unsigned key = draw_key(actor);
  bool reset = actor->world->scenario->kind != SIM_SLICE && sim_actor_chance(actor, 100);
  SEND(
      self, ASK, 0, reset ? "reset" : "peek",
      (reset ? belay_limiter_reset : belay_limiter_peek)(limiter, request, name_of(key), on_reply));
}

static void refund(limiter_t *self, kept_t *kept) {
  sim_actor_t *actor = &self->base;
  const sim_limit_request_t *taken = sim_limits_request(actor->world, kept->number);
  uint64_t times = (uint64_t)taken->cost / SIM_LIMIT_REQUESTS;
  if (times == 0)
    return;
  times = sim_actor_chance(actor, 700) ? times - 1 : sim_actor_between(actor, 0, times - 1);
  sim_limit_request_t *refund = number_request(self, ASK, SIM_LIMIT_REFUND, taken->key, times);
  if (refund == NULL)
    return;
  refund->of = kept->number;
  kept->number = 0;
  SEND(self, ASK, 0, "refund",
       belay_limiter_refund(limiter, request, name_of(taken->key), &kept->receipt, refund->cost,
                            on_reply));
}

/* Cancels a reservation, once or again. */
static void unreserve(limiter_t *self, kept_t *kept) {
  sim_actor_t *actor = &self->base;
  unsigned key = sim_limits_request(actor->world, kept->number)->key;
  belay_limiter_t *limiter = handle_of(self)->limiter;
  belay_request_t *request = sim_actor_request(actor, ASK);
  int64_t timeout_ms = request->timeout_ms;
  self->returning = kept;
  sim_actor_enter(actor);
  int error = belay_limiter_cancel_reservation(limiter, request, name_of(key), &kept->reservation,
                                               on_reply);
  if (sim_actor_chance(actor, 700))
    kept->number = 0;
  if (sim_actor_leave(actor, "cancel", error, BELAY_EBUSY))
    sim_actor_expect(actor, ASK, timeout_ms);
  else
    forget_request(self, ASK);
}

static void give_back(limiter_t *self) {
  kept_t *kept = &self->kept[sim_actor_between(&self->base, 0, KEPT - 1)];
  if (kept->number == 0)
    return;
  if (sim_limits_request(self->base.world, kept->number)->kind == SIM_LIMIT_TAKE)
    refund(self, kept);
  else
    unreserve(self, kept);
}

static void reserve_or_wait(limiter_t *self, bool waits) {
  sim_actor_t *actor = &self->base;
  unsigned i = waits ? WAIT : ASK, key = draw_key(actor);
  int64_t longest_ms =
      (int64_t)(actor->healing ? SIM_LIMIT_LONGEST_MS
                               : sim_actor_between(actor, 0, actor->world->scenario->wait_ms));
  const sim_limit_request_t *its =
      number_request(self, i, waits ? SIM_LIMIT_WAIT : SIM_LIMIT_RESERVE, key, draw_cost(actor));
  if (its == NULL)
    return;
  SEND(self, i, waits ? longest_ms : 0, waits ? "wait" : "reserve",
       waits ? belay_limiter_wait(limiter, request, name_of(key), its->cost, longest_ms * 1000,
                                  on_wait)
             : belay_limiter_reserve(limiter, request, name_of(key), its->cost, longest_ms * 1000,
                                     on_reply));
}

/* ---- actions ---- */

static void ask(limiter_t *self) {
  sim_actor_t *actor = &self->base;
  bool leases = actor->world->scenario->kind == SIM_SLICE;
  if (leases && sim_actor_chance(actor, 400))
    try_it(self);
  else if (actor->healing)
    take(self);
  else if (!leases && sim_actor_chance(actor, 180))
    give_back(self);
  else if (sim_actor_chance(actor, 60))
    peek_or_reset(self);
  else if (reserves(self) && sim_actor_chance(actor, 400))
    reserve_or_wait(self, false);
  else
    take(self);
}

static void do_something(limiter_t *self) {
  sim_actor_t *actor = &self->base;
  bool waits = reserves(self) && !actor->op[WAIT].pending;
  if (!actor->healing && sim_actor_chance(actor, 8))
    close_handle(self);
  else if (actor->op[ASK].pending && !actor->healing && sim_actor_chance(actor, 30))
    sim_actor_cancel_request(actor, ASK);
  else if (actor->op[WAIT].pending && !actor->healing && sim_actor_chance(actor, 30))
    sim_actor_cancel_request(actor, WAIT);
  else if (waits && (actor->healing ? !self->served[WAIT] : sim_actor_chance(actor, 300)))
    reserve_or_wait(self, true);
  else if (!actor->op[ASK].pending)
    ask(self);
}

static void act(sim_actor_t *actor) {
  limiter_t *self = (limiter_t *)actor;
  const handle_t *handle = handle_of(self);
  if (handle->closer == NULL && handle->limiter == NULL) {
    sim_actor_make(actor);
    sim_actor_think(actor);
  } else if (handle->closer == NULL && !actor->served) {
    do_something(self);
  }
  sim_actor_think(actor);
}

const sim_actor_type_t sim_limiter_type = {
    .size = sizeof(limiter_t),
    .op = {"request", "wait", "close"},
    .make = make,
    .close = close_limiter,
    .act = act,
    .ended = sim_limits_ended,
    .executed = sim_limits_executed,
};
