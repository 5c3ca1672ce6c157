/* Hands that take from refilled buckets and fill them, several with the same index.
 *
 *    filled   an index is applied once, then the next one is due; a bucket never holds more than its
 *             capacity; its content is the sum of fillings minus the takes, unless it was deleted
 *    truth    a take is executed at most once; callbacks agree with the server
 *
 * The number of requested tokens identifies the request: its remainder is a number. */
#include "belay/bucket.h"

#include <stdlib.h>
#include <string.h>

#include "sim/actors/hand.h"

#define ASKS 32768
#define CAPACITY (INT64_C(40) * ASKS)
#define KEYS 4

enum { ASK };

typedef enum kind { FETCH = 1, ADD, READ, DELETE } kind_t;

/* A request. */
typedef struct ask {
  uint8_t kind, key;
  bool unsent;  /* true if a callback said that it was not sent or was refused */
  bool applied; /* by the server */
  unsigned executed;
  int64_t tokens, index;
} ask_t;

typedef struct ledger {
  bool begun, full, idles;
  unsigned asks;
  ask_t ask[ASKS];
  struct {
    int64_t tokens; /* as many as are there, */
    int64_t index;  /* and the next index */
  } bucket[KEYS];
} ledger_t;

typedef struct hand {
  sim_hand_t base; /* first */
  belay_bucket_t *bucket;
  belay_request_t request;
  unsigned ask;       /* 0: it has a look, or deletes */
  int64_t seen[KEYS]; /* the reported next index */
} hand_t;

static hand_t *of(sim_hand_t *base) {
  return (hand_t *)base;
}

static ledger_t *ledger_of(sim_world_t *world) {
  ledger_t *ledger = sim_ledger(world, sizeof *ledger);
  if (ledger->begun)
    return ledger;
  ledger->begun = true;
  ledger->full = sim_chance(&world->random, 300);
  ledger->idles = !ledger->full && sim_chance(&world->random, 300);
  for (int i = 0; i < KEYS && ledger->full; i++)
    ledger->bucket[i].tokens = CAPACITY;
  return ledger;
}

/* ---- rules: filled -------------------------------------------------------------------------------------- */

typedef struct command {
  sim_server_t *server;
  unsigned key;
  int64_t tokens, index; /* index: -1, a fetch */
  int64_t reply[3];      /* applied, tokens, index */
} command_t;

static void lie(const command_t *command, const char *rule, const char *what) {
  sim_violation(
      command->server->world, "%s: %s: %s of %lld, k%u, index %lld: %s (%lld, %lld, %lld)", rule,
      command->server->name, command->index < 0 ? "fetch" : "add", (long long)command->tokens,
      command->key, (long long)command->index, what, (long long)command->reply[0],
      (long long)command->reply[1], (long long)command->reply[2]);
}

static bool is_word(engine_word_t word, const char *text) {
  return word.len == strlen(text) && memcmp(word.at, text, word.len) == 0;
}

static int64_t decimal(engine_word_t word) {
  char text[24] = "";
  memcpy(text, word.at, word.len < sizeof text ? word.len : 0);
  return strtoll(text, NULL, 10);
}

/* "...{kN}", and maybe more. */
static bool read_key(engine_word_t word, unsigned *key) {
  for (size_t i = 0; i + 3 < word.len; i++)
    if (memcmp(word.at + i, "{k", 2) == 0 && word.at[i + 3] == '}') {
      *key = (unsigned)(word.at[i + 2] - '0');
      return *key < KEYS;
    }
  return false;
}

/* "*3", and three integers. */
static bool read_reply(engine_word_t reply, int64_t out[3]) {
  char text[128];
  if (reply.len >= sizeof text)
    return false;
  memcpy(text, reply.at, reply.len);
  text[reply.len] = '\0';
  long long n[3];
  if (sscanf(text, "*3\r\n:%lld\r\n:%lld\r\n:%lld", &n[0], &n[1], &n[2]) != 3)
    return false;
  for (int i = 0; i < 3; i++)
    out[i] = n[i];
  return true;
}

/* A bucket may have been forgotten that was idle: then it is empty. */
static void check_state(const command_t *command, const ledger_t *ledger) {
  const int64_t *reply = command->reply;
  int64_t tokens = ledger->bucket[command->key].tokens;
  bool empty = ledger->idles && reply[1] <= tokens;
  if (reply[1] < 0 || reply[1] > CAPACITY)
    lie(command, "filled", "that is no number of tokens");
  if (reply[1] != tokens && !empty)
    lie(command, "filled", "there are others");
  if (reply[2] != ledger->bucket[command->key].index)
    lie(command, "filled", "another index is due");
}

static void executed(const command_t *command) {
  ledger_t *ledger = ledger_of(command->server->world);
  ask_t *ask = &ledger->ask[command->tokens % ASKS];
  const int64_t *reply = command->reply;
  int64_t *tokens = &ledger->bucket[command->key].tokens;
  int64_t *index = &ledger->bucket[command->key].index;
  bool adds = command->index >= 0, applied = reply[0] != 0;
  if (command->tokens > 0 && (ask->kind == 0 || ask->tokens != command->tokens))
    lie(command, "truth", "nobody has asked for that");
  if (command->tokens > 0 && ask->unsent)
    lie(command, "truth", "who asked was told that it was not sent, or refused");
  if (command->tokens > 0 && !adds && ask->executed > 0)
    lie(command, "truth", "executed twice");
  if (adds && applied != (command->index == *index))
    lie(command, "filled", applied ? "another index is due" : "its turn has come");
  ask->executed++;
  ask->applied |= applied;
  if (adds && applied) {
    ++*index;
    if (ledger->idles && reply[1] - command->tokens < *tokens)
      *tokens = reply[1] > command->tokens ? reply[1] - command->tokens : 0;
    *tokens += command->tokens < CAPACITY - *tokens ? command->tokens : CAPACITY - *tokens;
  } else if (applied) {
    *tokens -= command->tokens;
  } else if (!adds && command->tokens > 0 && reply[1] >= command->tokens) {
    lie(command, "filled", "there are as many");
  }
  check_state(command, ledger);
  if (ledger->idles)
    *tokens = reply[1];
}

static void on_executed(sim_server_t *server, const engine_word_t *argv, size_t argc,
                        engine_word_t reply) {
  command_t command = {.server = server, .index = -1};
  ledger_t *ledger = ledger_of(server->world);
  if (argc < 3 || !read_key(argv[argc > 3 && argv[2].len == 1 ? 3 : 1], &command.key))
    return;
  if (is_word(argv[0], "DEL")) {
    ledger->bucket[command.key].tokens = ledger->full ? CAPACITY : 0;
    ledger->bucket[command.key].index = 0;
    return;
  }
  if (argc < 9 || !read_reply(reply, command.reply))
    return;
  command.tokens = decimal(argv[5]);
  if (argc == 11)
    command.index = decimal(argv[6]);
  executed(&command);
}

/* ---- rules: truth --------------------------------------------------------------------------------------- */

static void false_to(const hand_t *hand, const ask_t *ask, const char *what, int status) {
  sim_violation(sim_world_of(&hand->base), "truth: %s, %s of %lld, k%u: %s (%s)", hand->base.who,
                ask->kind == ADD ? "add" : "fetch", (long long)ask->tokens, ask->key, what,
                belay_err_name(status));
}

static void told(hand_t *hand, ask_t *ask, int status, const belay_bucket_state_t *state) {
  if (status == 0 && ask->executed == 0)
    false_to(hand, ask, "done, and no server has done it", status);
  if (status == 0 && state->applied != ask->applied)
    false_to(hand, ask, state->applied ? "it was not applied" : "it was applied", status);
  if (status == 0 && state->applied)
    sim_hand_granted(&hand->base);
  if (status == 0 || status == BELAY_EUNKNOWN || status == BELAY_ECANCELED)
    return;
  ask->unsent = true;
  if (ask->executed > 0)
    false_to(hand, ask, "not sent, or refused, and a server has executed it", status);
}

static void on_answer(belay_request_t *request, int status, const belay_bucket_state_t *state) {
  hand_t *hand = request->data;
  sim_hand_t *base = &hand->base;
  sim_world_t *world = sim_world_of(base);
  unsigned number = hand->ask;
  sim_hand_kept(base, ASK, status);
  hand->ask = 0;
  if ((status == 0) != (state->tokens >= 0 && state->index >= 0))
    sim_violation(world, "callbacks: %s is told %s, and %lld tokens", base->who,
                  belay_err_name(status), (long long)state->tokens);
  if (number == 0)
    return;
  ask_t *ask = &ledger_of(world)->ask[number];
  if (status == 0)
    hand->seen[ask->key] = state->index;
  told(hand, ask, status, state);
  base->cured |= base->healing && ask->kind == FETCH && status == 0 && state->applied;
}

/* ---- what it does --------------------------------------------------------------------------------------- */

static void on_closed(belay_bucket_t *bucket, void *data) {
  hand_t *hand = data;
  (void)bucket;
  hand->bucket = NULL;
  sim_hand_closed(&hand->base);
}

static void make(hand_t *hand) {
  sim_hand_t *base = &hand->base;
  const ledger_t *ledger = ledger_of(sim_world_of(base));
  belay_bucket_options_t options;
  belay_bucket_options_init(&options);
  options.name = belay_string("b");
  options.capacity = CAPACITY;
  options.full = ledger->full;
  if (ledger->idles)
    options.idle_ms = 1000;
  options.data = hand;
  sim_hand_enter(base);
  int error = belay_bucket_new(base->process->client[0], &options, &hand->bucket);
  (void)sim_hand_leave(base, "new", error, 0);
}

static void close_it(hand_t *hand) {
  sim_hand_enter(&hand->base);
  sim_hand_close(&hand->base, belay_bucket_close(hand->bucket, on_closed));
}

/* A number for it; false: there is none. */
static bool number(hand_t *hand, kind_t kind, unsigned key) {
  sim_hand_t *base = &hand->base;
  ledger_t *ledger = ledger_of(sim_world_of(base));
  hand->ask = 0;
  if (kind == READ || kind == DELETE)
    return true;
  if (ledger->asks + 1 >= (base->healing ? ASKS : ASKS - ASKS / 16))
    return false;
  uint64_t times = base->healing && kind == FETCH ? 0 : sim_hand_between(base, 0, 12);
  hand->ask = ++ledger->asks;
  ledger->ask[hand->ask] = (ask_t){.kind = (uint8_t)kind,
                                   .key = (uint8_t)key,
                                   .tokens = (int64_t)(times * ASKS + hand->ask),
                                   .index = hand->seen[key]};
  return true;
}

static int call(hand_t *hand, kind_t kind, unsigned key) {
  static const char *const keys[KEYS] = {"k0", "k1", "k2", "k3"};
  const ask_t *ask = &ledger_of(sim_world_of(&hand->base))->ask[hand->ask];
  switch (kind) {
  case FETCH:
    return belay_bucket_fetch(hand->bucket, &hand->request, belay_bytes(keys[key], 2), ask->tokens,
                              on_answer);
  case ADD:
    return belay_bucket_add(hand->bucket, &hand->request, belay_bytes(keys[key], 2), ask->tokens,
                            ask->index, on_answer);
  case READ:
    return belay_bucket_read(hand->bucket, &hand->request, belay_bytes(keys[key], 2), on_answer);
  case DELETE:
    break;
  }
  return belay_bucket_delete(hand->bucket, &hand->request, belay_bytes(keys[key], 2), on_answer);
}

static kind_t any_kind(sim_hand_t *base) {
  static const uint8_t kinds[] = {FETCH, FETCH, FETCH, FETCH, ADD, ADD, ADD, READ};
  if (!base->healing && sim_hand_chance(base, 8))
    return DELETE;
  return kinds[sim_hand_between(base, 0, sizeof kinds - 1)];
}

static void ask(hand_t *hand) {
  sim_hand_t *base = &hand->base;
  static const char *const names[] = {"", "fetch", "add", "read", "delete"};
  unsigned key = (unsigned)sim_hand_between(base, 0, sim_world_of(base)->scenario->names - 1);
  kind_t kind = any_kind(base);
  if (!number(hand, kind, key))
    return;
  hand->request = sim_hand_request(base);
  sim_hand_enter(base);
  int error = call(hand, kind, key);
  if (sim_hand_leave(base, names[kind], error, BELAY_EBUSY))
    sim_hand_promise(base, ASK, hand->request.timeout_ms);
  else if (hand->ask != 0)
    ledger_of(sim_world_of(base))->ask[hand->ask].unsent = true;
}

static void act(sim_hand_t *base) {
  hand_t *hand = of(base);
  if (sim_hand_is_closing(base))
    return;
  if (hand->bucket == NULL)
    make(hand);
  else if (!base->healing && sim_hand_chance(base, 10))
    close_it(hand);
  else if (!base->promise[ASK].pending)
    ask(hand);
  else if (!base->healing && sim_hand_chance(base, 30))
    sim_hand_cancel_request(base, ASK, &hand->request);
  sim_hand_think(base);
}

const sim_trade_t sim_bucket_trade = {
    .size = sizeof(hand_t),
    .op = {"question", "close"},
    .act = act,
    .executed = on_executed,
};
