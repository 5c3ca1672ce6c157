/* Actors that count latches down and wait for them. A latch that has opened is followed by the
 * next one, under another name. */
#include "belay/latch.h"

#include <stdlib.h>
#include <string.h>

#include "sim/actors/actor.h"

#define LATCHES 4096
#define OPERATIONS 64 /* ids of each */

enum { WAIT, COUNT };

/* The operations that servers have executed. */
typedef struct shared {
  unsigned latch; /* number of the present one */
  struct {
    uint64_t executed; /* a bit for each operation */
    unsigned ids;      /* in use */
  } of[LATCHES];
} shared_t;

typedef struct latch {
  sim_actor_t base;   /* first */
  unsigned number;    /* of the latch */
  unsigned operation; /* the present or the last one */
  bool again;         /* the operation is to be sent again */
} latch_t;

static shared_t *shared_of(sim_world_t *world) {
  return sim_shared(world, sizeof(shared_t));
}

static unsigned left_of(sim_world_t *world, unsigned latch) {
  unsigned count = world->scenario->limit;
  unsigned done = (unsigned)__builtin_popcountll(shared_of(world)->of[latch].executed);
  return done < count ? count - done : 0;
}

/* ---- rules ---- */

/* True if it is the id of an operation: "op-LATCH-NUMBER". */
static bool read_operation(engine_bytes_t word, unsigned *latch, unsigned *operation) {
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

/* An operation counts once, whatever actor sent it and however often. Operations on an open latch
 * count here, too. */
static void on_executed(sim_server_t *server, const engine_bytes_t *argv, size_t argc,
                        engine_bytes_t reply) {
  sim_world_t *world = server->world;
  unsigned latch, operation;
  for (size_t i = 3; i < argc; i++) {
    if (!read_operation(argv[i], &latch, &operation))
      continue;
    shared_of(world)->of[latch].executed |= UINT64_C(1) << operation;
    unsigned left = left_of(world, latch);
    if (reply.len > 1 && reply.at[0] == ':' && strtol(reply.at + 1, NULL, 10) != (long)left)
      sim_violation(world, "count: %s replies that %ld are left of latch %u, and there are %u",
                    server->name, strtol(reply.at + 1, NULL, 10), latch, left);
  }
}

/* ---- callbacks ---- */

static void on_wait(belay_latch_t *handle, int status) {
  latch_t *self = belay_latch_data(handle);
  sim_actor_t *actor = &self->base;
  sim_actor_ended(actor, WAIT, status);
  if (status != 0)
    return;
  unsigned left = left_of(actor->world, self->number);
  if (left > 0)
    sim_violation(actor->world, "count: for %s latch %u is open, and %u are left", actor->who,
                  self->number, left);
  sim_actor_granted(actor);
  actor->served |= actor->healing;
}

/* The reported rest never grows, and is at least the present rest. */
static void on_count(belay_request_t *request, int status, unsigned left) {
  latch_t *self = request->data;
  sim_actor_t *actor = &self->base;
  sim_world_t *world = actor->world;
  sim_actor_ended(actor, COUNT, status);
  bool done = (shared_of(world)->of[self->number].executed >> self->operation & 1) != 0;
  if (status == 0 && !done)
    sim_violation(world, "count: a count of %s succeeds, and no server has counted", actor->who);
  if (status == 0 && (left < left_of(world, self->number) || left >= world->scenario->limit))
    sim_violation(world, "count: for %s %u are left of latch %u, and there are %u", actor->who,
                  left, self->number, left_of(world, self->number));
  self->again = status != 0 && sim_actor_chance(actor, 800);
}

/* ---- actions ---- */

SIM_ACTOR_CLOSE(latch)

static int make(sim_actor_t *actor) {
  latch_t *self = (latch_t *)actor;
  belay_latch_options_t options;
  char name[16];
  self->number = shared_of(actor->world)->latch;
  self->again = false;
  int len = snprintf(name, sizeof name, "l%u", self->number);
  belay_latch_options_init(&options);
  options.count = actor->world->scenario->limit;
  SIM_SET_POLLS(&options, actor->world->scenario);
  int error = belay_latch_new(actor->process->client[0], belay_bytes(name, (size_t)len), &options,
                              (belay_latch_t **)&actor->handle);
  if (error == 0)
    belay_latch_set_data(actor->handle, actor);
  return error;
}

/* A new operation, or one that this or another actor has sent before. */
static void count(latch_t *self) {
  sim_actor_t *actor = &self->base;
  unsigned *ids = &shared_of(actor->world)->of[self->number].ids;
  if (!self->again && *ids < OPERATIONS && !(*ids > 0 && sim_actor_chance(actor, 250)))
    self->operation = (*ids)++;
  else if (!self->again)
    self->operation = (unsigned)sim_actor_between(actor, 0, *ids - 1);
  char id[32];
  int len = snprintf(id, sizeof id, "op-%u-%u", self->number, self->operation);
  bool brief = sim_actor_chance(actor, 500);
  int64_t timeout_ms = brief ? (int64_t)sim_actor_between(actor, 5, 400) : BELAY_DEFAULT;
  actor->request[COUNT] = (belay_request_t){.data = actor, .timeout_ms = timeout_ms};
  (void)SIM_START(actor, COUNT, brief ? timeout_ms : BELAY_FOREVER, "count", BELAY_EBUSY,
                  belay_latch_count_down(actor->handle, &actor->request[COUNT],
                                         belay_bytes(id, (size_t)len), on_count));
}

/* The first question has its whole timeout. */
static void wait(latch_t *self) {
  sim_actor_t *actor = &self->base;
  uint64_t most = actor->world->scenario->wait_ms;
  bool forever =
      actor->healing ? left_of(actor->world, self->number) == 0 : sim_actor_chance(actor, 50);
  int64_t wait_ms = forever ? BELAY_FOREVER : (int64_t)sim_actor_between(actor, 0, most);
  bool bound = wait_ms != 0 && wait_ms != BELAY_FOREVER;
  (void)SIM_START(actor, WAIT, bound ? wait_ms + SIM_CALL_MS : BELAY_FOREVER, "wait", 0,
                  belay_latch_wait(actor->handle, wait_ms, on_wait));
}

/* The next latch begins a while after this one has opened. */
static void begin_next_latch(sim_actor_t *actor) {
  shared_t *shared = shared_of(actor->world);
  if (left_of(actor->world, shared->latch) == 0 && !actor->healing && shared->latch + 1 < LATCHES &&
      sim_actor_chance(actor, 200))
    shared->latch++;
}

static void act(sim_actor_t *actor) {
  latch_t *self = (latch_t *)actor;
  const sim_world_t *world = actor->world;
  begin_next_latch(actor);
  if (sim_actor_is_closing(actor))
    return;
  if (actor->handle == NULL) {
    sim_actor_make(actor);
    sim_actor_think(actor);
    return;
  }
  bool busy = actor->op[WAIT].pending || actor->op[COUNT].pending;
  bool old = self->number != shared_of(actor->world)->latch;
  if ((old && !busy) || (!actor->healing && sim_actor_chance(actor, 20)))
    sim_actor_close(actor);
  else if (!actor->op[COUNT].pending && (self->again || sim_actor_chance(actor, 500)))
    count(self);
  else if (!actor->op[WAIT].pending)
    wait(self);
  else if (!actor->healing && sim_actor_chance(actor, 200) &&
           SIM_CALL(actor, "cancel", BELAY_ESTATE, belay_latch_cancel(actor->handle)))
    sim_actor_canceled(actor, WAIT);
  if (!sim_actor_is_closing(actor))
    sim_actor_later(actor, actor->healing ? sim_actor_between(actor, 10 * SIM_MS, 50 * SIM_MS)
                                          : sim_around(&actor->world->random,
                                                       world->scenario->think_ms * SIM_MS));
}

const sim_actor_type_t sim_latch_type = {
    .size = sizeof(latch_t),
    .op = {"wait", "count", "close"},
    .ends = {[WAIT] = {BELAY_ETIMEDOUT}},
    .make = make,
    .close = close_latch,
    .act = act,
    .executed = on_executed,
};
