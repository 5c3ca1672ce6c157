/* Actors that start several requests on one key in one turn of the loop: takes of one cost, bounded
 * adds of one delta, or adds. Taken tokens never come back and bounded counters only grow, so each
 * of their units belongs to one request. The sum of an add says which requests it is for.
 *
 *    shared   no unit is reported to two requests; the requests of a turn get theirs in order; an
 *             add reports the value that it has at the server, in its turn
 *    truth    a server takes the units that callbacks report, and at most those of requests with an
 *             unknown outcome besides; no add is executed twice, or after it was reported as not
 *             sent */
#include "belay/counter.h"
#include "belay/limiter.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/actors/actor.h"

enum { BURST = 3, ADDS = 8192, ROOM = 40, KEYS = 4096, KINDS = 3, KEY_TTL_MS = 3600000 };

typedef enum kind { TAKE, ADD, BOUNDED } kind_t;

/* What happens to the units of a kind. */
typedef struct account {
  unsigned key;                               /* that is not used up yet */
  int64_t executed;                           /* by servers */
  int64_t reported;                           /* to requests that succeeded */
  int64_t unknown;                            /* of requests whose outcome is unknown */
  int64_t open;                               /* of requests without an outcome */
  uint64_t units[KEYS * (ROOM + 1) / 64 + 1]; /* that were reported, a bit for each */
} account_t;

/* An add. The adds of burst b have the deltas 8b + 1, 8b + 2 and 8b + 4. */
typedef struct add {
  bool unsent; /* true if a callback reported that it was not sent, or was refused */
  unsigned executed;
  int64_t value; /* after its execution */
} add_t;

typedef struct shared {
  account_t account[KINDS];
  unsigned bursts; /* of adds */
  add_t add[ADDS][BURST];
} shared_t;

typedef struct group group_t;

typedef struct slot {
  group_t *group;
  unsigned index;
  belay_request_t request;
  int64_t cost;
} slot_t;

struct group {
  sim_actor_t base; /* first */
  kind_t kind;      /* of the handle */
  unsigned key;
  unsigned burst; /* of adds */
  bool calm;      /* the burst began without faults: its requests are not sent again one by one */
  int64_t last;   /* position of the last request of the burst that succeeded */
  slot_t slot[BURST];
};

static shared_t *shared_of(const sim_world_t *world) {
  return sim_shared((sim_world_t *)world, sizeof(shared_t));
}

static account_t *account_of(const sim_world_t *world, kind_t kind) {
  return &shared_of(world)->account[kind];
}

static int64_t delta_of(unsigned burst, unsigned i) {
  return 8 * (int64_t)burst + (1 << i);
}

/* ---- rules ---- */

static void check_sums(sim_world_t *world, kind_t kind, const char *who) {
  const account_t *account = account_of(world, kind);
  if (account->reported > account->executed)
    sim_violation(world, "truth: %s: %" PRId64 " units were reported, and %" PRId64 " were taken",
                  who, account->reported, account->executed);
  if (account->executed > account->reported + account->unknown + account->open)
    sim_violation(world,
                  "truth: %s: %" PRId64 " units were taken, %" PRId64 " were reported, and %" PRId64
                  " may have been",
                  who, account->executed, account->reported, account->unknown + account->open);
}

/* The request got the units up to this position of the key. */
static void check_units(group_t *self, const slot_t *slot, int64_t position) {
  sim_world_t *world = self->base.world;
  account_t *account = account_of(world, self->kind);
  if (position < slot->cost || position > ROOM) {
    sim_violation(world, "shared: %s: position %" PRId64, self->base.who, position);
    return;
  }
  if (self->calm && world->phase == SIM_CALM && position <= self->last)
    sim_violation(world, "shared: %s: an earlier request of the turn got later units",
                  self->base.who);
  self->last = position;
  int64_t base = (int64_t)self->key * (ROOM + 1);
  for (int64_t unit = base + position - slot->cost + 1; unit <= base + position; unit++) {
    uint64_t *word = &account->units[unit / 64], bit = UINT64_C(1) << unit % 64;
    if ((*word & bit) != 0)
      sim_violation(world, "shared: %s: unit %" PRId64 " was reported before", self->base.who,
                    unit);
    *word |= bit;
  }
}

/* ---- what a server does ---- */

static bool has(engine_bytes_t word, const char *text) {
  return memmem(word.at, word.len, text, strlen(text)) != NULL;
}

/* The units that a script of a limiter took: its reply begins with a double. */
static int64_t taken(const engine_bytes_t *argv, size_t argc, engine_bytes_t reply) {
  const char *text = memchr(reply.at, '\n', reply.len);
  double answer = 0;
  if (argc < 7 || !sim_bytes_are(argv[4], "take") || reply.at[0] != '$' || text == NULL)
    return 0;
  memcpy(&answer, text + 1, sizeof answer);
  int64_t cost = sim_bytes_number(argv[6]);
  return answer < 0 ? 0 : answer == 0 ? cost : (int64_t)answer * cost;
}

/* A server has added a sum. The reply is "*2", ":1" and the value now. */
static void check_added(sim_server_t *server, int64_t sum, engine_bytes_t reply) {
  unsigned which = (unsigned)(sum % 8), n = (unsigned)__builtin_popcount(which);
  unsigned burst = n == 0 ? 0 : (unsigned)(sum / 8 / n);
  const char *line = reply.at;
  for (int i = 0; i < 3; i++)
    line = (const char *)memchr(line, '\n', 16) + 1;
  int64_t value = strtoll(line, NULL, 10) - sum;
  shared_t *shared = shared_of(server->world);
  if (burst == 0 || burst > shared->bursts || sum != 8 * (int64_t)burst * n + which) {
    sim_violation(server->world, "truth: %s: a sum of no adds: %" PRId64, server->name, sum);
    return;
  }
  for (unsigned i = 0; i < BURST; i++) {
    add_t *add = &shared->add[burst][i];
    if ((which & 1u << i) == 0)
      continue;
    add->value = value += delta_of(burst, i);
    if (add->executed++ > 0 || add->unsent)
      sim_violation(server->world, "truth: %s: an add is executed %s", server->name,
                    add->unsent ? "and was reported as not sent" : "twice");
  }
}

static void on_executed(sim_server_t *server, const engine_bytes_t *argv, size_t argc,
                        engine_bytes_t reply) {
  sim_world_t *world = server->world;
  if (argc < 6)
    return;
  kind_t kind = has(argv[3], "::limit::") ? TAKE : BOUNDED;
  bool added = reply.len > 6 && memcmp(reply.at, "*2\r\n:1", 6) == 0;
  if (added && has(argv[3], "::add::"))
    check_added(server, sim_bytes_number(argv[4]), reply);
  else if (kind == TAKE)
    account_of(world, kind)->executed += taken(argv, argc, reply);
  else if (added)
    account_of(world, kind)->executed += sim_bytes_number(argv[4]);
  check_sums(world, kind, server->name);
}

/* ---- callbacks ---- */

static void note_added(slot_t *slot, int status, int64_t value) {
  group_t *self = slot->group;
  sim_actor_t *actor = &self->base;
  add_t *add = &shared_of(actor->world)->add[self->burst][slot->index];
  sim_actor_ended(actor, slot->index, status);
  if (status == 0) {
    sim_actor_granted(actor);
    actor->served |= actor->healing;
    if (add->executed == 0 || add->value != value)
      sim_violation(actor->world, "%s: %s: an add reports %" PRId64 ", and its value is %" PRId64,
                    add->executed == 0 ? "truth" : "shared", actor->who, value, add->value);
  } else if (status != BELAY_EUNKNOWN && status != BELAY_ECANCELED) {
    add->unsent = true;
    if (add->executed > 0)
      sim_violation(actor->world, "truth: %s: an add ends with %s, and was executed", actor->who,
                    belay_err_name(status));
  }
}

/* done: it got its units, up to that position. Otherwise it was denied: less than its cost is left
 * in the key (left; -1: not reported). */
static void note_end(slot_t *slot, int status, bool done, int64_t position, int64_t left) {
  group_t *self = slot->group;
  sim_actor_t *actor = &self->base;
  account_t *account = account_of(actor->world, self->kind);
  sim_actor_ended(actor, slot->index, status);
  account->open -= slot->cost;
  if (status == BELAY_EUNKNOWN || status == BELAY_ECANCELED) {
    account->unknown += slot->cost;
  } else if (status == 0 && done) {
    account->reported += slot->cost;
    sim_actor_granted(actor);
    check_units(self, slot, position);
    actor->served |= actor->healing;
  } else if (status == 0) {
    if (left >= slot->cost)
      sim_violation(actor->world, "truth: %s: denied, and %" PRId64 " units are left", actor->who,
                    left);
    if (account->key == self->key && account->key + 1 < KEYS)
      account->key++;
  }
  check_sums(actor->world, self->kind, actor->who);
}

static void on_taken(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  note_end(request->data, status, result->verdict == BELAY_ALLOWED, ROOM - result->remaining,
           result->remaining);
}

static void on_added(belay_request_t *request, int status, const belay_counter_result_t *result) {
  note_added(request->data, status, result->value);
}

static void on_bounded(belay_request_t *request, int status, const belay_counter_result_t *result) {
  note_end(request->data, status, result->applied, result->value, ROOM - result->value);
}

/* ---- the handle ---- */

SIM_ACTOR_CLOSE(limiter)
SIM_ACTOR_CLOSE(counter)

static int make(sim_actor_t *actor) {
  group_t *self = (group_t *)actor;
  const belay_limit_t limit = {
      .kind = BELAY_LIMIT_BUCKET, .burst = ROOM, .period_us = INT64_C(1000) * KEY_TTL_MS};
  self->kind = (kind_t)sim_actor_between(actor, 0, KINDS - 1);
  if (self->kind != TAKE) {
    belay_counter_options_t options;
    belay_counter_options_init(&options);
    options.name = belay_string(self->kind == ADD ? "add" : "bounded");
    options.ttl_ms = KEY_TTL_MS;
    options.data = actor;
    return belay_counter_new(actor->process->client[0], &options,
                             (belay_counter_t **)&actor->handle);
  }
  belay_limiter_options_t options;
  belay_limiter_options_init(&options);
  options.limits = &limit;
  options.limits_len = 1;
  options.max_denied = 0;
  options.data = actor;
  return belay_limiter_new(actor->process->client[0], &options, (belay_limiter_t **)&actor->handle);
}

static int close_handle(sim_actor_t *actor) {
  return ((group_t *)actor)->kind == TAKE ? close_limiter(actor) : close_counter(actor);
}

/* ---- actions ---- */

static int call(group_t *self, slot_t *slot, belay_bytes_t key) {
  const belay_counter_bounds_t bounds = {.min = 0, .max = ROOM};
  void *handle = self->base.handle;
  if (self->kind == TAKE)
    return belay_limiter_take(handle, &slot->request, key, slot->cost, on_taken);
  if (self->kind == ADD)
    return belay_counter_add(handle, &slot->request, key, slot->cost, on_added);
  return belay_counter_add_bounded(handle, &slot->request, key, slot->cost, &bounds, on_bounded);
}

static void start(group_t *self, unsigned i, belay_bytes_t key, int64_t cost, int64_t timeout_ms) {
  static const char *const names[] = {"take", "add", "bounded add"};
  slot_t *slot = &self->slot[i];
  account_t *account = account_of(self->base.world, self->kind);
  *slot = (slot_t){.group = self, .index = i, .cost = cost};
  slot->request.data = slot;
  slot->request.timeout_ms = timeout_ms;
  if (!SIM_CALL(&self->base, names[self->kind], BELAY_EBUSY, call(self, slot, key))) {
    shared_of(self->base.world)->add[self->burst][i].unsent |= self->kind == ADD;
    return;
  }
  account->open += cost;
  sim_actor_expect(&self->base, i, timeout_ms);
}

static void cancel(group_t *self, unsigned i) {
  if (self->base.op[i].pending &&
      SIM_CALL(&self->base, "cancel", 0, belay_request_cancel(&self->slot[i].request)))
    sim_actor_canceled(&self->base, i);
}

static void burst(group_t *self) {
  sim_actor_t *actor = &self->base;
  char text[16];
  self->key = self->kind == ADD ? 0 : account_of(actor->world, self->kind)->key;
  int len = snprintf(text, sizeof text, "k%u", self->key);
  int64_t cost = (int64_t)sim_actor_between(actor, 1, 3);
  int64_t timeout_ms =
      sim_actor_chance(actor, 500) ? (int64_t)sim_actor_between(actor, 5, 400) : SIM_CALL_MS;
  if (self->kind == ADD && shared_of(actor->world)->bursts + 1 >= ADDS)
    return;
  if (self->kind == ADD)
    self->burst = ++shared_of(actor->world)->bursts;
  self->last = 0;
  self->calm = actor->world->phase == SIM_CALM;
  for (unsigned i = 0; i < BURST; i++) {
    if (self->kind == ADD)
      cost = delta_of(self->burst, i);
    else if (sim_actor_chance(actor, 60))
      cost = (int64_t)sim_actor_between(actor, 1, 4);
    start(self, i, belay_bytes(text, (size_t)len), cost, timeout_ms);
  }
  for (int i = 0; i < 2 && !actor->healing && sim_actor_chance(actor, 120); i++)
    cancel(self, (unsigned)sim_actor_between(actor, 0, BURST - 1)); /* before it is sent */
}

static void act(sim_actor_t *actor) {
  group_t *self = (group_t *)actor;
  bool pending = false;
  for (unsigned i = 0; i < BURST; i++)
    pending |= actor->op[i].pending;
  if (sim_actor_is_closing(actor))
    return;
  if (actor->handle == NULL)
    sim_actor_make(actor);
  else if (!actor->healing && sim_actor_chance(actor, 10))
    sim_actor_close(actor);
  else if (pending && !actor->healing && sim_actor_chance(actor, 30))
    cancel(self, (unsigned)sim_actor_between(actor, 0, BURST - 1));
  else if (!pending)
    burst(self);
  sim_actor_think(actor);
}

/* The process has crashed or is closed: callbacks that are missing do not come. */
static void ended(sim_actor_t *actor) {
  group_t *self = (group_t *)actor;
  for (unsigned i = 0; i < BURST; i++)
    if (actor->op[i].pending) {
      account_of(actor->world, self->kind)->open -= self->slot[i].cost;
      account_of(actor->world, self->kind)->unknown += self->slot[i].cost;
    }
}

const sim_actor_type_t sim_group_type = {
    .size = sizeof(group_t),
    .op = {"first", "second", "third", "close"},
    .make = make,
    .close = close_handle,
    .act = act,
    .ended = ended,
    .executed = on_executed,
};
