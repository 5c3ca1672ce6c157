/* Actors that take from refilled buckets and fill them, several with the same index.
 *
 *    filled   an index is applied once, then the next one is due; a bucket never holds more than
 *             its capacity; its content is the sum of fillings minus the takes, unless it was
 *             deleted
 *
 * The number of tokens identifies the request: its remainder is the number of the request. */
#include "belay/bucket.h"

#include <inttypes.h>
#include <string.h>

#include "sim/actors/actor.h"

#define REQUESTS 32768
#define CAPACITY (INT64_C(40) * REQUESTS)
#define KEYS 4

enum { REQUEST };

typedef enum kind { FETCH = 1, ADD, READ, DELETE } kind_t;

/* A fetch or an add. */
typedef struct record {
  uint8_t kind, key;
  bool unsent;  /* true if a callback reported that it was not sent or was refused */
  bool applied; /* by the server */
  unsigned executed;
  int64_t tokens, index;
} record_t;

typedef struct shared {
  bool begun, full, idles;
  unsigned requests;
  record_t request[REQUESTS];
  struct {
    int64_t tokens;
    int64_t index; /* the next one */
  } bucket[KEYS];
} shared_t;

typedef struct bucket {
  sim_actor_t base;         /* first */
  unsigned number;          /* of the present request; 0: it is a read or a delete */
  int64_t next_index[KEYS]; /* the reported one */
} bucket_t;

static shared_t *shared_of(sim_world_t *world) {
  shared_t *shared = sim_shared(world, sizeof *shared);
  if (shared->begun)
    return shared;
  shared->begun = true;
  shared->full = sim_chance(&world->random, 300);
  shared->idles = !shared->full && sim_chance(&world->random, 300);
  for (int i = 0; i < KEYS && shared->full; i++)
    shared->bucket[i].tokens = CAPACITY;
  return shared;
}

/* ---- rules: filled ---- */

typedef struct command {
  sim_server_t *server;
  unsigned key;
  int64_t tokens, index; /* index: -1, a fetch */
  int64_t reply[3];      /* applied, tokens, index */
} command_t;

static void report_command(const command_t *command, const char *rule, const char *what) {
  sim_violation(
      command->server->world, "%s: %s: %s of %lld, k%u, index %lld: %s (%lld, %lld, %lld)", rule,
      command->server->name, command->index < 0 ? "fetch" : "add", (long long)command->tokens,
      command->key, (long long)command->index, what, (long long)command->reply[0],
      (long long)command->reply[1], (long long)command->reply[2]);
}

/* "*3", and three integers. */
static bool read_reply(engine_bytes_t reply, int64_t out[3]) {
  char text[128];
  if (reply.len >= sizeof text)
    return false;
  memcpy(text, reply.at, reply.len);
  text[reply.len] = '\0';
  return sscanf(text, "*3\r\n:%" SCNd64 "\r\n:%" SCNd64 "\r\n:%" SCNd64, &out[0], &out[1],
                &out[2]) == 3;
}

/* An idle bucket may have expired: then it is empty. */
static void check_state(const command_t *command, const shared_t *shared) {
  const int64_t *reply = command->reply;
  int64_t tokens = shared->bucket[command->key].tokens;
  bool empty = shared->idles && reply[1] <= tokens;
  if (reply[1] < 0 || reply[1] > CAPACITY)
    report_command(command, "filled", "the number of tokens is out of range");
  if (reply[1] != tokens && !empty)
    report_command(command, "filled", "the bucket holds another number of tokens");
  if (reply[2] != shared->bucket[command->key].index)
    report_command(command, "filled", "another index is due");
}

static void check_truth(const command_t *command, const record_t *request) {
  if (command->tokens == 0)
    return;
  if (request->kind == 0 || request->tokens != command->tokens)
    report_command(command, "truth", "no actor has sent that request");
  if (request->unsent)
    report_command(command, "truth", "it was reported as not sent, or refused");
  if (command->index < 0 && request->executed > 0)
    report_command(command, "truth", "executed twice");
}

static void check_executed(const command_t *command) {
  shared_t *shared = shared_of(command->server->world);
  record_t *request = &shared->request[command->tokens % REQUESTS];
  const int64_t *reply = command->reply;
  int64_t *tokens = &shared->bucket[command->key].tokens;
  int64_t *index = &shared->bucket[command->key].index;
  bool adds = command->index >= 0, applied = reply[0] != 0;
  check_truth(command, request);
  if (adds && applied != (command->index == *index))
    report_command(command, "filled", applied ? "another index is due" : "this index is due");
  request->executed++;
  request->applied |= applied;
  if (adds && applied) {
    ++*index;
    if (shared->idles && reply[1] - command->tokens < *tokens)
      *tokens = reply[1] > command->tokens ? reply[1] - command->tokens : 0;
    *tokens += command->tokens < CAPACITY - *tokens ? command->tokens : CAPACITY - *tokens;
  } else if (applied) {
    *tokens -= command->tokens;
  } else if (!adds && command->tokens > 0 && reply[1] >= command->tokens) {
    report_command(command, "filled", "the bucket holds enough tokens");
  }
  check_state(command, shared);
  if (shared->idles)
    *tokens = reply[1];
}

static void on_executed(sim_server_t *server, const engine_bytes_t *argv, size_t argc,
                        engine_bytes_t reply) {
  command_t command = {.server = server, .index = -1};
  shared_t *shared = shared_of(server->world);
  engine_bytes_t rest;
  if (argc < 3 ||
      !sim_read_number_key(argv[argc > 3 && argv[2].len == 1 ? 3 : 1], &command.key, &rest) ||
      command.key >= KEYS)
    return;
  if (sim_bytes_are(argv[0], "DEL")) {
    shared->bucket[command.key].tokens = shared->full ? CAPACITY : 0;
    shared->bucket[command.key].index = 0;
    return;
  }
  if (argc < 9 || !read_reply(reply, command.reply))
    return;
  command.tokens = sim_bytes_number(argv[5]);
  if (argc == 11)
    command.index = sim_bytes_number(argv[6]);
  check_executed(&command);
}

/* ---- rules: truth ---- */

static void report_status(const bucket_t *self, const record_t *request, const char *what,
                          int status) {
  sim_violation(self->base.world, "truth: %s, %s of %lld, k%u: %s (%s)", self->base.who,
                request->kind == ADD ? "add" : "fetch", (long long)request->tokens, request->key,
                what, belay_err_name(status));
}

static void check_status(bucket_t *self, record_t *request, int status,
                         const belay_bucket_state_t *state) {
  if (status == 0 && request->executed == 0)
    report_status(self, request, "success, and no server has executed it", status);
  if (status == 0 && state->applied != request->applied)
    report_status(self, request, state->applied ? "it was not applied" : "it was applied", status);
  if (status == 0 && state->applied)
    sim_actor_granted(&self->base);
  if (status == 0 || status == BELAY_EUNKNOWN || status == BELAY_ECANCELED)
    return;
  request->unsent = true;
  if (request->executed > 0)
    report_status(self, request, "not sent, or refused, and a server has executed it", status);
}

static void on_reply(belay_request_t *handle, int status, const belay_bucket_state_t *state) {
  bucket_t *self = handle->data;
  sim_actor_t *actor = &self->base;
  unsigned number = self->number;
  sim_actor_ended(actor, REQUEST, status);
  self->number = 0;
  if ((status == 0) != (state->tokens >= 0 && state->index >= 0))
    sim_violation(actor->world, "callbacks: %s: %s, and %lld tokens", actor->who,
                  belay_err_name(status), (long long)state->tokens);
  if (number == 0)
    return;
  record_t *request = &shared_of(actor->world)->request[number];
  if (status == 0)
    self->next_index[request->key] = state->index;
  check_status(self, request, status, state);
  actor->served |= actor->healing && request->kind == FETCH && status == 0 && state->applied;
}

/* ---- actions ---- */

SIM_ACTOR_CLOSE(bucket)

static int make(sim_actor_t *actor) {
  const shared_t *shared = shared_of(actor->world);
  belay_bucket_options_t options;
  belay_bucket_options_init(&options);
  options.name = belay_string("b");
  options.capacity = CAPACITY;
  options.full = shared->full;
  if (shared->idles)
    options.idle_ms = 1000;
  options.data = actor;
  return belay_bucket_new(actor->process->client[0], &options, (belay_bucket_t **)&actor->handle);
}

/* Gives a fetch or an add a number; false: there is none. */
static bool number_request(bucket_t *self, kind_t kind, unsigned key) {
  sim_actor_t *actor = &self->base;
  shared_t *shared = shared_of(actor->world);
  self->number = 0;
  if (kind == READ || kind == DELETE)
    return true;
  if (shared->requests + 1 >= (actor->healing ? REQUESTS : REQUESTS - REQUESTS / 16))
    return false;
  uint64_t times = actor->healing && kind == FETCH ? 0 : sim_actor_between(actor, 0, 12);
  self->number = ++shared->requests;
  shared->request[self->number] = (record_t){.kind = (uint8_t)kind,
                                             .key = (uint8_t)key,
                                             .tokens = (int64_t)(times * REQUESTS + self->number),
                                             .index = self->next_index[key]};
  return true;
}

static int call(bucket_t *self, kind_t kind, unsigned key) {
  static const char *const keys[KEYS] = {"k0", "k1", "k2", "k3"};
  belay_bucket_t *bucket = self->base.handle;
  belay_request_t *request = &self->base.request[REQUEST];
  const record_t *record = &shared_of(self->base.world)->request[self->number];
  belay_bytes_t name = belay_bytes(keys[key], 2);
  if (kind == FETCH)
    return belay_bucket_fetch(bucket, request, name, record->tokens, on_reply);
  if (kind == ADD)
    return belay_bucket_add(bucket, request, name, record->tokens, record->index, on_reply);
  return kind == READ ? belay_bucket_read(bucket, request, name, on_reply)
                      : belay_bucket_delete(bucket, request, name, on_reply);
}

static kind_t draw_kind(sim_actor_t *actor) {
  static const uint8_t kinds[] = {FETCH, FETCH, FETCH, FETCH, ADD, ADD, ADD, READ};
  if (!actor->healing && sim_actor_chance(actor, 8))
    return DELETE;
  return kinds[sim_actor_between(actor, 0, sizeof kinds - 1)];
}

static void ask(sim_actor_t *actor) {
  static const char *const names[] = {"", "fetch", "add", "read", "delete"};
  bucket_t *self = (bucket_t *)actor;
  unsigned key = (unsigned)sim_actor_between(actor, 0, actor->world->scenario->names - 1);
  kind_t kind = draw_kind(actor);
  if (!number_request(self, kind, key))
    return;
  int64_t timeout_ms = sim_actor_request(actor, REQUEST)->timeout_ms;
  if (SIM_CALL(actor, names[kind], BELAY_EBUSY, call(self, kind, key)))
    sim_actor_expect(actor, REQUEST, timeout_ms);
  else if (self->number != 0)
    shared_of(actor->world)->request[self->number].unsent = true;
}

const sim_actor_type_t sim_bucket_type = {
    .size = sizeof(bucket_t),
    .op = {"request", "close"},
    .make = make,
    .close = close_bucket,
    .act = sim_actor_send_requests,
    .ask = ask,
    .executed = on_executed,
};
