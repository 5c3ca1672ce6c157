/* Checkers: the servers' actions, by token. Tokens are random, so a token identifies its
 * attempt. */
#include <assert.h>
#include <string.h>

#include "sim/check/check_state.h"
#include "sim/actors/hand.h"

#define STRAYS_EVERY (10 * SIM_MS)

/* ---- the log -------------------------------------------------------------------------------------------- */

static unsigned slot_of(const uint8_t *bytes) {
  unsigned n;
  memcpy(&n, bytes, sizeof n);
  return n % SIM_TOKEN_SLOTS;
}

void sim_log_init(sim_log_t *log) {
  for (unsigned i = 0; i < SIM_TOKEN_SLOTS; i++)
    log->slot[i] = -1;
}

sim_token_t *sim_log_find(sim_log_t *log, const uint8_t bytes[BELAY__TOKEN_BYTES]) {
  for (int i = log->slot[slot_of(bytes)]; i >= 0; i = log->token[i].next)
    if (memcmp(log->token[i].bytes, bytes, BELAY__TOKEN_BYTES) == 0)
      return &log->token[i];
  return NULL;
}

static void forget(sim_log_t *log, int index) {
  sim_token_t *token = &log->token[index];
  int *from = &log->slot[slot_of(token->bytes)];
  while (*from != index)
    from = &log->token[*from].next;
  *from = token->next;
  token->used = false;
}

sim_token_t *sim_log_get(sim_log_t *log, const uint8_t bytes[BELAY__TOKEN_BYTES]) {
  sim_token_t *token = sim_log_find(log, bytes);
  if (token != NULL)
    return token;
  do { /* every key and every hold ends at some time */
    log->hand = (log->hand + 1) % SIM_TOKENS;
    token = &log->token[log->hand];
  } while (token->used && (token->now_on != 0 || token->pins > 0));
  if (token->used)
    forget(log, (int)log->hand);
  unsigned slot = slot_of(bytes);
  *token = (sim_token_t){.used = true, .next = log->slot[slot]};
  memcpy(token->bytes, bytes, BELAY__TOKEN_BYTES);
  log->slot[slot] = (int)log->hand;
  return token;
}

unsigned sim_token_somewhen(const sim_world_t *world, const sim_token_t *token, uint64_t since) {
  unsigned n = 0;
  for (unsigned i = 0; i < world->scenario->servers; i++)
    n += (token->now_on >> i & 1) != 0 || token->went[i] >= since;
  return n;
}

unsigned sim_token_throughout(const sim_world_t *world, const sim_token_t *token, uint64_t since) {
  unsigned mask = 0;
  for (unsigned i = 0; i < world->scenario->servers; i++)
    mask |= ((token->now_on >> i & 1) != 0 && token->came[i] <= since ? 1u : 0u) << i;
  return mask;
}

/* ---- what stands in a server ---------------------------------------------------------------------------- */

static int digit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* 40 hexadecimal digits, a colon, "p", the process, a dot, its life; false if it is something else. */
bool sim_read_token(engine_word_t value, uint8_t bytes[BELAY__TOKEN_BYTES], unsigned *process,
                    unsigned *life) {
  const size_t digits = 2 * BELAY__TOKEN_BYTES;
  if (value.at == NULL || value.len < digits + 5 || value.at[digits] != ':' ||
      value.at[digits + 1] != 'p' || value.at[digits + 3] != '.')
    return false;
  for (size_t i = 0; i < BELAY__TOKEN_BYTES; i++) {
    int high = digit(value.at[2 * i]), low = digit(value.at[2 * i + 1]);
    if (high < 0 || low < 0)
      return false;
    bytes[i] = (uint8_t)(high << 4 | low);
  }
  *process = (unsigned)(value.at[digits + 2] - '0');
  *life = 0;
  for (size_t i = digits + 4; i < value.len; i++)
    *life = *life * 10 + (unsigned)(value.at[i] - '0');
  return true;
}

bool sim_read_key(const sim_world_t *world, engine_word_t key, unsigned *name) {
  static const char before[] = "::{n";
  const size_t len = sizeof before - 1;
  if (key.len < len + 2 || key.at[key.len - 1] != '}')
    return false;
  size_t at = key.len - 1, digits = 0;
  while (at > 0 && key.at[at - 1] >= '0' && key.at[at - 1] <= '9' && digits < 4) {
    at--;
    digits++;
  }
  if (digits == 0 || at < len || memcmp(key.at + at - len, before, len) != 0)
    return false;
  *name = 0;
  for (size_t i = at; i < at + digits; i++)
    *name = *name * 10 + (unsigned)(key.at[i] - '0');
  return *name < world->scenario->names;
}

/* Whether a handle believes in the name at this time, with this token (or with another one). */
static const sim_watch_t *find_believer(const sim_check_t *check, unsigned name,
                                        const sim_token_t *token, bool with_it) {
  const sim_world_t *world = check->world;
  for (unsigned i = 0; i < world->scenario->processes; i++) {
    uint64_t now = sim_clock_at(&world->process[i].clock, world->now);
    for (unsigned j = 0; j < SIM_ACTORS_MAX; j++) {
      const sim_watch_t *watch = check->seen[i].watch[j];
      if (watch == NULL || !watch->held || watch->name != name ||
          (watch->token == token) != with_it)
        continue;
      if (belay__lease_deadline(sim_watch_lease(watch)) >= now + 1000)
        return watch;
    }
  }
  return NULL;
}

/* ---- rules: truth --------------------------------------------------------------------------------------- */

/* An undone token is set again only by bytes of a dead connection. */
static void check_set(sim_check_t *check, const sim_server_t *server, sim_token_t *token) {
  sim_world_t *world = check->world;
  unsigned bit = 1u << server->index;
  token->ghostly |= server->ghost;
  if (token->refused)
    sim_violation(
        world,
        "truth: %s has set n%u to a token of p%u, which was told that it was refused or never sent",
        server->name, token->name, token->process);
  if ((token->undone_on & bit) != 0 && !server->ghost)
    sim_violation(world, "truth: %s has set n%u again to a token of p%u that was taken back",
                  server->name, token->name, token->process);
  if (check->faithful && (token->set_on & bit) != 0 && !token->ghostly)
    sim_violation(world, "truth: %s has set n%u twice to a token of p%u", server->name, token->name,
                  token->process);
  const sim_watch_t *other =
      check->faithful ? find_believer(check, token->name, token, false) : NULL;
  if (other != NULL)
    sim_violation(world, "exclusion: %s gives n%u to p%u while %s believes in it", server->name,
                  token->name, token->process, other->who);
}

/* "loss": the holder knows before a server grants the name again; with several nodes, if it
 * counts this one. */
static void check_gone(sim_check_t *check, const sim_server_t *server, const sim_token_t *token,
                       engine_cause_t cause) {
  sim_world_t *world = check->world;
  static const char *const causes[] = {"removed", "expired", "flushed"};
  const sim_watch_t *holder =
      check->faithful ? find_believer(check, token->name, token, true) : NULL;
  if (holder != NULL)
    sim_violation(world, "loss: n%u is %s on %s while %s believes in it", token->name,
                  causes[cause], server->name, holder->who);
  if (world->scenario->broken || check->faithful || !check->tokens ||
      check->lost_data[server->index] >= token->came[server->index])
    return;
  sim_seen_t *seen = &check->seen[token->process];
  for (unsigned i = 0; i < SIM_ACTORS_MAX; i++) {
    const sim_watch_t *watch = seen->watch[i];
    if (watch == NULL || !watch->held || watch->token != token)
      continue;
    const belay__lease_t *lease = sim_watch_lease(watch);
    if (lease->member[server->index].until > sim_clock_at(&watch->process->clock, world->now))
      sim_violation(world, "loss: n%u is %s on %s while %s counts on it there", token->name,
                    causes[cause], server->name, watch->who);
  }
}

static void gone(sim_check_t *check, const sim_server_t *server, sim_token_t *token,
                 engine_cause_t cause) {
  unsigned bit = 1u << server->index;
  token->now_on &= (uint8_t)~bit;
  token->went[server->index] = check->world->now;
  if (cause == ENGINE_BY_COMMAND)
    token->removed_on |= (uint8_t)bit;
  check_gone(check, server, token, cause);
}

static void set(sim_check_t *check, const sim_server_t *server, unsigned name, engine_word_t is) {
  sim_world_t *world = check->world;
  uint8_t bytes[BELAY__TOKEN_BYTES];
  unsigned process, life;
  if (!sim_read_token(is, bytes, &process, &life) || process >= world->scenario->processes) {
    sim_violation(world, "truth: %s has set n%u to what is no token", server->name, name);
    return;
  }
  sim_token_t *token = sim_log_get(&check->log, bytes);
  token->name = name;
  token->process = process;
  token->life = life;
  check_set(check, server, token);
  token->set_on |= (uint8_t)(1u << server->index);
  token->now_on |= (uint8_t)(1u << server->index);
  token->came[server->index] = world->now;
}

void sim_check_changed(sim_server_t *server, engine_word_t key, engine_word_t was, engine_word_t is,
                       engine_cause_t cause) {
  sim_world_t *world = server->world;
  sim_check_t *check = world->check;
  uint8_t bytes[BELAY__TOKEN_BYTES];
  unsigned name, process, life;
  if (!sim_read_key(world, key, &name) || world->scenario->kind == SIM_REENTRANT)
    return; /* or it is an owner */
  sim_token_t *token =
      sim_read_token(was, bytes, &process, &life) ? sim_log_find(&check->log, bytes) : NULL;
  if (token != NULL)
    gone(check, server, token, cause);
  if (is.at != NULL)
    set(check, server, name, is);
}

bool sim_is_release(const engine_word_t *args, size_t n) {
  static const char *const publishers[] = {"PUBLISH", "SPUBLISH", ""};
  for (size_t i = 0; n > 1 && i < sizeof publishers / sizeof *publishers; i++)
    if (args[1].len == strlen(publishers[i]) && memcmp(args[1].at, publishers[i], args[1].len) == 0)
      return true;
  return false;
}

/* The word as a token of that name; NULL if it is none. */
static sim_token_t *token_in(sim_check_t *check, engine_word_t word, unsigned name) {
  uint8_t bytes[BELAY__TOKEN_BYTES];
  unsigned process, life;
  if (!sim_read_token(word, bytes, &process, &life))
    return NULL;
  sim_token_t *token = sim_log_get(&check->log, bytes);
  token->name = name;
  token->process = process;
  token->life = life;
  return token;
}

/* A lease script has the key first, and the token before its other arguments; a release may have
 * a second token, of the next holder. Tokens set before a release are gone; those set after it
 * were late. */
void sim_check_executed(sim_server_t *server, const engine_word_t *argv, size_t argc,
                        engine_word_t reply) {
  sim_world_t *world = server->world;
  unsigned name;
  sim_hands_executed(server, argv, argc, reply);
  size_t keys = argc > 4 && argv[2].len == 1 ? (size_t)(argv[2].at[0] - '0') : 0;
  if (keys < 1 || keys > 9 || argc < 4 + keys || !sim_read_key(world, argv[3], &name))
    return;
  const engine_word_t *args = argv + 3 + keys;
  size_t n = argc - 3 - keys;
  bool is_release = sim_is_release(args, n);
  for (size_t i = 0; is_release && i < n; i += 2) {
    sim_token_t *token = token_in(world->check, args[i], name);
    if (token != NULL)
      token->undone_on |= (uint8_t)(1u << server->index);
  }
  sim_line_executed(server, name, token_in(world->check, args[0], name), args, n, reply);
}

/* ---- restarts ------------------------------------------------------------------------------------------- */

void sim_check_restarted(sim_server_t *server) {
  sim_world_t *world = server->world;
  sim_check_t *check = world->check;
  uint64_t now_us = sim_server_clock(server);
  sim_token_t *there[64];
  size_t n = 0;
  check->lost_data[server->index] = world->now;
  for (unsigned i = 0; i < world->scenario->names && n < 64; i++) {
    uint8_t bytes[BELAY__TOKEN_BYTES];
    unsigned process, life;
    const sim_name_t *name = &check->name[i];
    engine_word_t value =
        engine_peek(server->engine, now_us, (engine_word_t){.at = name->key, .len = name->key_len});
    if (name->key_len == 0 || !sim_read_token(value, bytes, &process, &life))
      continue;
    sim_token_t *token = sim_log_get(&check->log, bytes);
    token->name = i;
    token->process = process;
    token->life = life;
    there[n++] = token;
  }
  uint8_t bit = (uint8_t)(1u << server->index);
  for (unsigned i = 0; i < SIM_TOKENS; i++)
    if (check->log.token[i].used && (check->log.token[i].now_on & bit) != 0)
      for (size_t j = 0; j <= n; j++) {
        if (j < n && there[j] == &check->log.token[i])
          break;
        if (j == n) {
          check->log.token[i].now_on &= (uint8_t)~bit;
          check->log.token[i].went[server->index] = world->now;
        }
      }
  for (size_t j = 0; j < n; j++)
    if ((there[j]->now_on & bit) == 0) {
      there[j]->now_on |= bit;
      there[j]->came[server->index] = world->now;
    }
}

/* ---- rules: ttl, leaks ---------------------------------------------------------------------------------- */

/* Keys that the library leaves without a ttl. */
static const char *const lasting[] = {"::node::{marker}", "::idgen::{"};

static bool may_last(engine_word_t key) {
  for (size_t i = 0; i < sizeof lasting / sizeof *lasting; i++)
    if (memmem(key.at, key.len, lasting[i], strlen(lasting[i])) != NULL)
      return true;
  return false;
}

typedef struct look {
  sim_check_t *check;
  const sim_server_t *server;
} look_t;

static void look_at_key(void *ctx, engine_word_t key, const char *type, int64_t ttl_ms) {
  const look_t *look = ctx;
  sim_world_t *world = look->check->world;
  (void)type;
  if (ttl_ms < 0 && !may_last(key))
    sim_violation(world, "ttl: %.*s on %s has none", (int)key.len, key.at, look->server->name);
}

/* Whether a handle asks for it, has it, or is giving it back. */
static bool is_known(const sim_check_t *check, const sim_token_t *token) {
  for (unsigned i = 0; i < SIM_ACTORS_MAX; i++) {
    const sim_watch_t *watch = check->seen[token->process].watch[i];
    if (watch == NULL || watch->lock == NULL || watch->closing || watch->name != token->name)
      continue;
    const belay__lease_t *lease = sim_watch_lease(watch);
    if (memcmp(&lease->token, token->bytes, BELAY__TOKEN_BYTES) == 0 &&
        lease->state != BELAY__LEASE_IDLE && lease->state != BELAY__LEASE_WAITING &&
        lease->state != BELAY__LEASE_LOST)
      return true;
  }
  return false;
}

/* The token that stands in a server's key; NULL: none that is known. */
static sim_token_t *stands_in(sim_check_t *check, const sim_server_t *server, unsigned name) {
  uint8_t bytes[BELAY__TOKEN_BYTES];
  unsigned process, life;
  const sim_name_t *of = &check->name[name];
  if (server->down || of->key_len == 0)
    return NULL;
  engine_word_t value = engine_peek(server->engine, sim_server_clock(server),
                                    (engine_word_t){.at = of->key, .len = of->key_len});
  return sim_read_token(value, bytes, &process, &life) ? sim_log_find(&check->log, bytes) : NULL;
}

/* True if the late execution could not be known or undone. */
bool sim_is_excused(const sim_check_t *check, const sim_server_t *server, unsigned process,
                    unsigned life, bool ghostly, uint64_t came) {
  bool unforeseen = ghostly && check->world->scenario->secretive &&
                    check->world->scenario->ghost_ms == 0; /* else undos outlast ghosts */
  return unforeseen || life != check->world->process[process].lives ||
         check->seen[process].unclean || check->lost_data[server->index] >= came;
}

static bool is_excused(const sim_check_t *check, const sim_server_t *server,
                       const sim_token_t *token) {
  return sim_is_excused(check, server, token->process, token->life, token->ghostly,
                        token->came[server->index]);
}

/* Whether its process has something under way that may be to take it back. */
static bool is_being_undone(const sim_check_t *check, const sim_server_t *server,
                            const sim_token_t *token) {
  const sim_process_t *process = &check->world->process[token->process];
  const belay_client_t *client = process->client[server->index];
  return process->life != SIM_UP || check->seen[token->process].clients_closing > 0 ||
         client == NULL || client->stats.undo_pending > 0;
}

/* "leaks": a token without a holder or an attempt is being undone. */
static void look_for_strays(sim_check_t *check, const sim_server_t *server) {
  sim_world_t *world = check->world;
  for (unsigned i = 0; i < world->scenario->names; i++) {
    const sim_token_t *token = stands_in(check, server, i);
    if (token != NULL && !is_known(check, token) && !is_excused(check, server, token) &&
        !is_being_undone(check, server, token))
      sim_violation(world, "leaks: n%u on %s keeps a token of p%u that nobody takes back", i,
                    server->name, token->process);
  }
}

static void on_strays(sim_event_t *event) {
  sim_check_t *check = SIM_CONTAINER(event, sim_check_t, strays);
  sim_world_t *world = check->world;
  for (unsigned i = 0; i < world->scenario->servers; i++)
    look_for_strays(check, &world->server[i]);
  sim_line_look(check);
  sim_event_set(world, event, world->now + STRAYS_EVERY);
}

void sim_strays_begin(sim_check_t *check) {
  check->strays.run = on_strays;
  if (!sim_event_is_set(&check->strays))
    sim_event_set(check->world, &check->strays, check->world->now + STRAYS_EVERY);
}

void sim_check_regularly(sim_world_t *world) {
  for (unsigned i = 0; i < world->scenario->servers; i++) {
    const sim_server_t *server = &world->server[i];
    look_t look = {.check = world->check, .server = server};
    if (server->down)
      continue;
    engine_each_key(server->engine, sim_server_clock(server), look_at_key, &look);
  }
}

/* "leaks": when all is closed every undo has run, but those that were given up. */
void sim_check_end(sim_world_t *world) {
  sim_check_t *check = world->check;
  sim_check_regularly(world);
  sim_line_end(check);
  for (unsigned i = 0; i < world->scenario->servers; i++)
    for (unsigned j = 0; j < world->scenario->names; j++) {
      const sim_server_t *server = &world->server[i];
      const sim_token_t *token = stands_in(check, server, j);
      if (token != NULL && check->seen[token->process].closed && !is_excused(check, server, token))
        sim_violation(world, "leaks: n%u on %s keeps a token of p%u, which is closed", j,
                      server->name, token->process);
    }
}
