/* Hands that count latches down and wait for them. A latch that has opened is followed by the next one, under another
 * name. */
#include "belay/latch.h"

#include <stdlib.h>
#include <string.h>

#include "sim/actors/hand.h"

#define LATCHES 4096
#define OPERATIONS 64 /* ids of each */

enum { WAIT, COUNT };

/* The operations that servers have executed. */
typedef struct ledger {
  unsigned latch; /* the present one's number */
  struct {
    uint64_t executed; /* a bit for each operation */
    unsigned given;    /* ids */
  } of[LATCHES];
} ledger_t;

typedef struct hand {
  sim_hand_t base; /* first */
  belay_latch_t *latch;
  belay_request_t request;
  unsigned number;    /* the latch's */
  unsigned operation; /* the present or the last one's, */
  bool again;         /* which is to be asked for again */
} hand_t;

static hand_t *of(sim_hand_t *base) {
  return (hand_t *)base;
}

static ledger_t *ledger_of(sim_world_t *world) {
  return sim_ledger(world, sizeof(ledger_t));
}

static unsigned executed(sim_world_t *world, unsigned latch) {
  return (unsigned)__builtin_popcountll(ledger_of(world)->of[latch].executed);
}

static unsigned left_of(sim_world_t *world, unsigned latch) {
  unsigned count = world->scenario->limit, done = executed(world, latch);
  return done < count ? count - done : 0;
}

/* ---- rules ---------------------------------------------------------------------------------------------- */

/* Whether it is the id of an operation: "op-LATCH-NUMBER". */
static bool read_operation(engine_word_t word, unsigned *latch, unsigned *operation) {
  char text[32], *end;
  if (word.len < 6 || word.len >= sizeof text || memcmp(word.at, "op-", 3) != 0)
    return false;
  memcpy(text, word.at, word.len);
  text[word.len] = '\0';
  *latch = (unsigned)strtoul(text + 3, &end, 10);
  if (*end != '-' || *latch >= LATCHES)
    return false;
  *operation = (unsigned)strtoul(end + 1, &end, 10);
  return *end == '\0' && *operation < OPERATIONS;
}

/* An operation counts once, whatever hand sent it and however often. Operations on an open latch
 * count here, too. */
static void on_executed(sim_server_t *server, const engine_word_t *argv, size_t argc,
                        engine_word_t reply) {
  sim_world_t *world = server->world;
  unsigned latch, operation;
  for (size_t i = 3; i < argc; i++) {
    if (!read_operation(argv[i], &latch, &operation))
      continue;
    ledger_of(world)->of[latch].executed |= UINT64_C(1) << operation;
    unsigned left = left_of(world, latch);
    if (reply.len > 1 && reply.at[0] == ':' && strtol(reply.at + 1, NULL, 10) != (long)left)
      sim_violation(world, "count: %s says that %ld are left of latch %u, and there are %u",
                    server->name, strtol(reply.at + 1, NULL, 10), latch, left);
  }
}

/* ---- what it does --------------------------------------------------------------------------------------- */

static void on_wait(belay_latch_t *latch, int status);
static void on_count(belay_request_t *request, int status, unsigned left);

static void on_closed(belay_latch_t *latch, void *data) {
  hand_t *hand = data;
  (void)latch;
  hand->latch = NULL;
  sim_hand_closed(&hand->base);
}

static void make(hand_t *hand) {
  sim_hand_t *base = &hand->base;
  sim_world_t *world = sim_world_of(base);
  belay_latch_options_t options;
  char name[16];
  hand->number = ledger_of(world)->latch;
  int len = snprintf(name, sizeof name, "l%u", hand->number);
  belay_latch_options_init(&options);
  options.count = world->scenario->limit;
  if (world->scenario->asleep_ms > 0) {
    options.retry_min_ms = world->scenario->asleep_ms;
    options.retry_max_ms = options.backoff_max_ms = 2 * world->scenario->asleep_ms;
  }
  sim_hand_enter(base);
  int error = belay_latch_new(base->process->client[0], belay_bytes(name, (size_t)len), &options,
                              &hand->latch);
  if (sim_hand_leave(base, "new", error, 0))
    belay_latch_set_data(hand->latch, hand);
  hand->again = false;
  sim_hand_think(base);
}

static void close_it(hand_t *hand) {
  sim_hand_enter(&hand->base);
  sim_hand_close(&hand->base, belay_latch_close(hand->latch, on_closed));
}

/* A new operation, or one that this or another hand has sent before. */
static void count(hand_t *hand) {
  sim_hand_t *base = &hand->base;
  ledger_t *ledger = ledger_of(sim_world_of(base));
  unsigned *given = &ledger->of[hand->number].given;
  if (!hand->again && *given < OPERATIONS && !(*given > 0 && sim_hand_chance(base, 250)))
    hand->operation = (*given)++;
  else if (!hand->again)
    hand->operation = (unsigned)sim_hand_between(base, 0, *given - 1);
  char id[32];
  int len = snprintf(id, sizeof id, "op-%u-%u", hand->number, hand->operation);
  hand->request = (belay_request_t){.data = hand};
  hand->request.timeout_ms =
      sim_hand_chance(base, 500) ? (int64_t)sim_hand_between(base, 5, 400) : BELAY_DEFAULT;
  int64_t timeout = hand->request.timeout_ms;
  sim_hand_enter(base);
  int error =
      belay_latch_count_down(hand->latch, &hand->request, belay_bytes(id, (size_t)len), on_count);
  if (sim_hand_leave(base, "count", error, BELAY_EBUSY))
    sim_hand_promise(base, COUNT, timeout == BELAY_DEFAULT ? BELAY_FOREVER : timeout);
  else
    sim_hand_think(base);
}

static void wait(hand_t *hand) {
  sim_hand_t *base = &hand->base;
  uint64_t most = sim_world_of(base)->scenario->wait_ms;
  bool ever =
      base->healing ? left_of(sim_world_of(base), hand->number) == 0 : sim_hand_chance(base, 50);
  int64_t wait_ms = ever ? BELAY_FOREVER : (int64_t)sim_hand_between(base, 0, most);
  sim_hand_enter(base);
  int error = belay_latch_wait(hand->latch, wait_ms, on_wait);
  if (!sim_hand_leave(base, "wait", error, 0)) {
    sim_hand_think(base);
    return;
  }
  /* The first question has its whole timeout. */
  bool bound = wait_ms != 0 && wait_ms != BELAY_FOREVER;
  sim_hand_promise(base, WAIT, bound ? wait_ms + SIM_CALL_MS : BELAY_FOREVER);
}

static void cancel(hand_t *hand) {
  sim_hand_enter(&hand->base);
  int error = belay_latch_cancel(hand->latch);
  if (sim_hand_leave(&hand->base, "cancel", error, BELAY_ESTATE))
    sim_hand_cancel(&hand->base, WAIT);
}

/* The next latch's turn comes a while after this one has opened. */
static void go_on(sim_hand_t *base) {
  sim_world_t *world = sim_world_of(base);
  ledger_t *ledger = ledger_of(world);
  if (left_of(world, ledger->latch) == 0 && !base->healing && ledger->latch + 1 < LATCHES &&
      sim_hand_chance(base, 200))
    ledger->latch++;
}

static void act(sim_hand_t *base) {
  hand_t *hand = of(base);
  go_on(base);
  if (sim_hand_is_closing(base))
    return;
  if (hand->latch == NULL) {
    make(hand);
    return;
  }
  bool busy = base->promise[WAIT].pending || base->promise[COUNT].pending;
  bool old = hand->number != ledger_of(sim_world_of(base))->latch;
  if ((old && !busy) || (!base->healing && sim_hand_chance(base, 20)))
    close_it(hand);
  else if (!base->promise[COUNT].pending && (hand->again || sim_hand_chance(base, 500)))
    count(hand);
  else if (!base->promise[WAIT].pending)
    wait(hand);
  else if (!base->healing && sim_hand_chance(base, 200))
    cancel(hand);
  if (!sim_hand_is_closing(base))
    sim_hand_later(base, base->healing
                             ? sim_hand_between(base, 10 * SIM_MS, 50 * SIM_MS)
                             : sim_around(&sim_world_of(base)->random,
                                          sim_world_of(base)->scenario->think_ms * SIM_MS));
}

/* ---- what it is told ------------------------------------------------------------------------------------ */

static void on_wait(belay_latch_t *latch, int status) {
  hand_t *hand = belay_latch_data(latch);
  sim_world_t *world = sim_world_of(&hand->base);
  sim_hand_kept(&hand->base, WAIT, status);
  if (status != 0)
    return;
  unsigned left = left_of(world, hand->number);
  if (left > 0)
    sim_violation(world, "count: %s is told that latch %u is open, and %u are left", hand->base.who,
                  hand->number, left);
  sim_hand_granted(&hand->base);
  hand->base.cured |= hand->base.healing;
}

/* The rest never grows, and is at least the present rest. */
static void on_count(belay_request_t *request, int status, unsigned left) {
  hand_t *hand = request->data;
  sim_world_t *world = sim_world_of(&hand->base);
  sim_hand_kept(&hand->base, COUNT, status);
  bool done = (ledger_of(world)->of[hand->number].executed >> hand->operation & 1) != 0;
  if (status == 0 && !done)
    sim_violation(world, "count: %s is told that it has counted, and no server has",
                  hand->base.who);
  if (status == 0 && (left < left_of(world, hand->number) || left >= world->scenario->limit))
    sim_violation(world, "count: %s is told that %u are left of latch %u, and there are %u",
                  hand->base.who, left, hand->number, left_of(world, hand->number));
  hand->again = status != 0 && sim_hand_chance(&hand->base, 800);
}

const sim_trade_t sim_latch_trade = {
    .size = sizeof(hand_t),
    .op = {"wait", "count", "close"},
    .ends = {[WAIT] = {BELAY_ETIMEDOUT}},
    .act = act,
    .executed = on_executed,
};
