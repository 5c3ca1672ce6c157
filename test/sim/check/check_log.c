/* Checkers: the servers' actions, by token. Tokens are random, so a token identifies its
 * attempt. */
#include <assert.h>
#include <string.h>

#include "sim/check/check_state.h"

#define STRAYS_EVERY (10 * SIM_MS)

/* ---- the log ---- */

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
    log->last = (log->last + 1) % SIM_TOKENS;
    token = &log->token[log->last];
  } while (token->used && (token->now_on != 0 || token->holders > 0));
  if (token->used)
    forget(log, (int)log->last);
  unsigned slot = slot_of(bytes);
  *token = (sim_token_t){.used = true, .next = log->slot[slot]};
  memcpy(token->bytes, bytes, BELAY__TOKEN_BYTES);
  log->slot[slot] = (int)log->last;
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

/* ---- what stands in a server ---- */

static int digit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* 40 hexadecimal digits, a colon, "p", the process, a dot, its life. */
bool sim_read_holder(engine_bytes_t value, sim_holder_t *holder) {
  const size_t digits = 2 * BELAY__TOKEN_BYTES;
  if (value.at == NULL || value.len < digits + 5 || value.at[digits] != ':' ||
      value.at[digits + 1] != 'p' || value.at[digits + 3] != '.')
    return false;
  for (size_t i = 0; i < BELAY__TOKEN_BYTES; i++) {
    int high = digit(value.at[2 * i]), low = digit(value.at[2 * i + 1]);
    if (high < 0 || low < 0)
      return false;
    holder->token[i] = (uint8_t)(high << 4 | low);
  }
  holder->process = (unsigned)(value.at[digits + 2] - '0');
  holder->life = 0;
  for (size_t i = digits + 4; i < value.len; i++)
    holder->life = holder->life * 10 + (unsigned)(value.at[i] - '0');
  return true;
}

/* The token in a word, of that name; NULL if there is none. */
static sim_token_t *token_in(sim_check_t *check, engine_bytes_t word, unsigned name) {
  sim_holder_t holder;
  if (!sim_read_holder(word, &holder))
    return NULL;
  sim_token_t *token = sim_log_get(&check->log, holder.token);
  token->name = name;
  token->process = holder.process;
  token->life = holder.life;
  return token;
}

/* The value of the key of a name. */
static engine_bytes_t value_of(const sim_check_t *check, const sim_server_t *server,
                               unsigned name) {
  const sim_name_t *of = &check->name[name];
  if (server->engine == NULL || of->key_len == 0)
    return (engine_bytes_t){NULL, 0};
  return engine_peek(server->engine, sim_server_clock(server),
                     (engine_bytes_t){.at = of->key, .len = of->key_len});
}

bool sim_read_key(const sim_world_t *world, engine_bytes_t key, unsigned *name) {
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

/* A lock that holds the name now with this token, or with another one; NULL: none. */
static const sim_lock_t *find_holder(const sim_check_t *check, unsigned name,
                                     const sim_token_t *token, bool with_it) {
  const sim_lock_t *lock;
  for (unsigned i = 0; (lock = sim_next_lock(check->world, &i)) != NULL;)
    if (lock->name == name && (lock->token == token) == with_it &&
        sim_lock_holds(lock, check->world->now))
      return lock;
  return NULL;
}

/* ---- rules: truth ---- */

/* An undone token is set again only by bytes of a dead connection. */
static void check_set(sim_check_t *check, const sim_server_t *server, sim_token_t *token) {
  unsigned bit = 1u << server->index;
  const char *fault = NULL;
  token->ghostly |= server->ghost;
  if (check->lossless && (token->set_on & bit) != 0 && !token->ghostly)
    fault = "which it had set before";
  if ((token->undone_on & bit) != 0 && !server->ghost)
    fault = "which was released before";
  if (token->refused)
    fault = "which was reported as refused or not sent";
  if (fault != NULL)
    sim_violation(check->world, "truth: %s sets n%u to a token of p%u, %s", server->name,
                  token->name, token->process, fault);
  const sim_lock_t *other = check->lossless ? find_holder(check, token->name, token, false) : NULL;
  if (other != NULL)
    sim_violation(check->world, "exclusion: %s grants n%u to p%u while %s holds it", server->name,
                  token->name, token->process, other->base.who);
}

/* "loss": the holder knows before a server grants the name again; with several nodes, if it
 * counts this one. */
static void check_gone(sim_check_t *check, const sim_server_t *server, const sim_token_t *token,
                       engine_cause_t cause) {
  static const char *const causes[] = {"removed", "expired", "flushed"};
  sim_world_t *world = check->world;
  const sim_lock_t *lock = check->lossless ? find_holder(check, token->name, token, true) : NULL;
  if (lock != NULL)
    sim_violation(world, "loss: n%u is %s on %s while %s holds it", token->name, causes[cause],
                  server->name, lock->base.who);
  if (world->scenario->broken || check->lossless || !check->tokens ||
      check->lost_data[server->index] >= token->came[server->index])
    return;
  for (unsigned i = 0; (lock = sim_next_lock(world, &i)) != NULL;) {
    if (!lock->held || lock->token != token)
      continue;
    if (sim_lock_lease(lock)->member[server->index].until >
        sim_clock_at(&lock->base.process->clock, world->now))
      sim_violation(world, "loss: n%u is %s on %s while %s counts that server", token->name,
                    causes[cause], server->name, lock->base.who);
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

static void set(sim_check_t *check, const sim_server_t *server, unsigned name, engine_bytes_t is) {
  uint8_t bit = (uint8_t)(1u << server->index);
  sim_token_t *token = token_in(check, is, name);
  if (token == NULL || token->process >= check->world->scenario->processes) {
    sim_violation(check->world, "truth: %s sets n%u to a value that is no token", server->name,
                  name);
    return;
  }
  check_set(check, server, token);
  token->set_on |= bit;
  token->now_on |= bit;
  token->came[server->index] = check->world->now;
}

void sim_check_changed(sim_server_t *server, engine_bytes_t key, engine_bytes_t was,
                       engine_bytes_t is, engine_cause_t cause) {
  sim_check_t *check = server->world->check;
  sim_holder_t holder;
  unsigned name;
  if (!sim_read_key(server->world, key, &name) || server->world->scenario->kind == SIM_REENTRANT)
    return; /* the value of a reentrant lock is an owner */
  sim_token_t *token =
      sim_read_holder(was, &holder) ? sim_log_find(&check->log, holder.token) : NULL;
  if (token != NULL)
    gone(check, server, token, cause);
  if (is.at != NULL)
    set(check, server, name, is);
}

bool sim_is_release(const engine_bytes_t *args, size_t n) {
  return n > 1 && (args[1].len == 0 || sim_bytes_are(args[1], "PUBLISH") ||
                   sim_bytes_are(args[1], "SPUBLISH"));
}

/* A lease script has the key first, and the token before its other arguments; a release may have
 * a second token, of the next holder. Tokens set before a release are gone; those set after it
 * were late. */
void sim_check_executed(sim_server_t *server, const engine_bytes_t *argv, size_t argc,
                        engine_bytes_t reply) {
  sim_world_t *world = server->world;
  unsigned name;
  sim_actors_executed(server, argv, argc, reply);
  size_t keys = argc > 4 && argv[2].len == 1 ? (size_t)(argv[2].at[0] - '0') : 0;
  if (keys < 1 || keys > 9 || argc < 4 + keys || !sim_read_key(world, argv[3], &name))
    return;
  const engine_bytes_t *args = argv + 3 + keys;
  size_t n = argc - 3 - keys;
  bool is_release = sim_is_release(args, n);
  for (size_t i = 0; is_release && i < n; i += 2) {
    sim_token_t *token = token_in(world->check, args[i], name);
    if (token != NULL)
      token->undone_on |= (uint8_t)(1u << server->index);
  }
  sim_queue_executed(server, name, token_in(world->check, args[0], name), args, n, reply);
}

/* ---- restarts ---- */

void sim_check_restarted(sim_server_t *server) {
  sim_world_t *world = server->world;
  sim_check_t *check = world->check;
  uint8_t bit = (uint8_t)(1u << server->index);
  check->lost_data[server->index] = world->now;
  for (unsigned i = 0; i < SIM_TOKENS; i++)
    check->log.token[i].found = false;
  for (unsigned i = 0; i < world->scenario->names; i++) {
    sim_token_t *token = token_in(check, value_of(check, server, i), i);
    if (token == NULL)
      continue;
    token->found = true;
    if ((token->now_on & bit) == 0)
      token->came[server->index] = world->now;
    token->now_on |= bit;
  }
  for (unsigned i = 0; i < SIM_TOKENS; i++) {
    sim_token_t *token = &check->log.token[i];
    if (!token->used || (token->now_on & bit) == 0 || token->found)
      continue;
    token->now_on &= (uint8_t)~bit;
    token->went[server->index] = world->now;
  }
}

/* ---- rules: ttl, leaks ---- */

typedef struct ttl_check {
  sim_check_t *check;
  const sim_server_t *server;
} ttl_check_t;

/* The library leaves keys of two families without a ttl. */
static void check_ttl(void *ctx, engine_bytes_t key, const char *type, int64_t ttl_ms) {
  static const char *const lasting[] = {"::node::{marker}", "::idgen::{"};
  const ttl_check_t *ttl_check = ctx;
  (void)type;
  for (size_t i = 0; i < sizeof lasting / sizeof *lasting; i++)
    if (ttl_ms >= 0 || memmem(key.at, key.len, lasting[i], strlen(lasting[i])) != NULL)
      return;
  sim_violation(ttl_check->check->world, "ttl: %.*s on %s has none", (int)key.len, key.at,
                ttl_check->server->name);
}

/* True if a handle acquires with it, holds it, or is releasing it. */
static bool is_in_use(const sim_check_t *check, const sim_token_t *token) {
  const sim_lock_t *lock;
  for (unsigned i = 0; (lock = sim_next_lock(check->world, &i)) != NULL;) {
    if (lock->base.process->index != token->process || lock->handle == NULL || lock->closing ||
        lock->name != token->name)
      continue;
    const belay__lease_t *lease = sim_lock_lease(lock);
    if (memcmp(&lease->token, token->bytes, BELAY__TOKEN_BYTES) == 0 &&
        lease->state != BELAY__LEASE_IDLE && lease->state != BELAY__LEASE_WAITING &&
        lease->state != BELAY__LEASE_LOST)
      return true;
  }
  return false;
}

/* The token in the key of a name; NULL: none that was seen before. */
static sim_token_t *token_of(sim_check_t *check, const sim_server_t *server, unsigned name) {
  sim_holder_t holder;
  return !server->down && sim_read_holder(value_of(check, server, name), &holder)
             ? sim_log_find(&check->log, holder.token)
             : NULL;
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

/* True if its process may be undoing it. */
static bool is_being_undone(const sim_check_t *check, const sim_server_t *server,
                            const sim_token_t *token) {
  const sim_process_t *process = &check->world->process[token->process];
  const belay_client_t *client = process->client[server->index];
  return process->life != SIM_UP || check->seen[token->process].clients_closing > 0 ||
         client == NULL || client->stats.undo_pending > 0;
}

/* "leaks": a token without a holder or an attempt is being undone. */
static void check_strays(sim_check_t *check, const sim_server_t *server) {
  for (unsigned i = 0; i < check->world->scenario->names; i++) {
    const sim_token_t *token = token_of(check, server, i);
    if (token != NULL && !is_in_use(check, token) && !is_excused(check, server, token) &&
        !is_being_undone(check, server, token))
      sim_violation(check->world, "leaks: n%u on %s keeps a token of p%u, and no process undoes it",
                    i, server->name, token->process);
  }
}

static void on_strays(sim_event_t *event) {
  sim_check_t *check = SIM_CONTAINER(event, sim_check_t, strays);
  sim_world_t *world = check->world;
  for (unsigned i = 0; i < world->scenario->servers; i++)
    check_strays(check, &world->server[i]);
  sim_queue_check(check);
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
    ttl_check_t ttl_check = {.check = world->check, .server = server};
    if (server->down)
      continue;
    engine_each_key(server->engine, sim_server_clock(server), check_ttl, &ttl_check);
  }
}

/* "leaks": when all is closed every undo has run, but those that were given up. */
void sim_check_end(sim_world_t *world) {
  sim_check_t *check = world->check;
  sim_check_regularly(world);
  sim_queue_end(check);
  for (unsigned i = 0; i < world->scenario->servers; i++)
    for (unsigned j = 0; j < world->scenario->names; j++) {
      const sim_server_t *server = &world->server[i];
      const sim_token_t *token = token_of(check, server, j);
      if (token != NULL && check->seen[token->process].closed && !is_excused(check, server, token))
        sim_violation(world, "leaks: n%u on %s keeps a token of p%u, which is closed", j,
                      server->name, token->process);
    }
}
