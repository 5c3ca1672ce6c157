/* Checkers: the order of waiters on servers, and the rest of their keys after all closes. */
#include <stdlib.h>
#include <string.h>

#include "sim/check/check_state.h"

/* ---- tickets ---- */

static bool is_hex(const char *at, size_t len) {
  for (size_t i = 0; i < len; i++)
    if (!(at[i] >= '0' && at[i] <= '9') && !(at[i] >= 'a' && at[i] <= 'f'))
      return false;
  return true;
}

static bool is_ticket(engine_bytes_t word) {
  return word.len == 16 && is_hex(word.at, 16);
}

static sim_ticket_t *find(sim_queue_t *queue, const char *text) {
  for (unsigned i = 0; i < SIM_TICKETS; i++)
    if (queue->ticket[i].used && memcmp(queue->ticket[i].text, text, 16) == 0)
      return &queue->ticket[i];
  return NULL;
}

/* Keeps tickets as far as there is room; forgotten ones are not checked. */
static sim_ticket_t *get(sim_queue_t *queue, const char *text) {
  sim_ticket_t *ticket = find(queue, text);
  if (ticket != NULL)
    return ticket;
  for (unsigned tries = 0; tries < SIM_TICKETS; tries++) {
    queue->last = (queue->last + 1) % SIM_TICKETS;
    if (!queue->ticket[queue->last].used || queue->ticket[queue->last].waiting == 0)
      break;
  }
  ticket = &queue->ticket[queue->last];
  *ticket = (sim_ticket_t){.used = true};
  memcpy(ticket->text, text, 16);
  return ticket;
}

/* ---- rules: order ---- */

static bool is_ordered(const sim_world_t *world) {
  const sim_scenario_t *scenario = world->scenario;
  return !scenario->broken && scenario->servers == 1 &&
         (scenario->kind == SIM_FAIR || (scenario->kind == SIM_SEMAPHORE && scenario->fair));
}

/* True if this command has granted it. */
static bool was_granted(const sim_server_t *server, const sim_token_t *token, size_t n,
                        engine_bytes_t reply) {
  const sim_world_t *world = server->world;
  if (world->scenario->kind == SIM_SEMAPHORE) /* an extend has fewer arguments */
    return n > 4 && reply.len == 4 && memcmp(reply.at, ":0\r\n", 4) == 0;
  return (token->now_on >> server->index & 1) != 0 && token->came[server->index] == world->now;
}

/* The queue is full; a semaphore has fewer permits than it asks for. */
static bool was_rejected(engine_bytes_t reply) {
  return reply.len == 5 &&
         (memcmp(reply.at, ":-3\r\n", 5) == 0 || memcmp(reply.at, ":-4\r\n", 5) == 0);
}

static void check_order(const sim_server_t *server, unsigned name, const sim_ticket_t *served) {
  sim_world_t *world = server->world;
  const sim_queue_t *queue = &world->check->queue;
  uint64_t now_ms = sim_server_clock(server) / 1000; /* as scripts see it */
  for (unsigned i = 0; i < SIM_TICKETS; i++) {
    const sim_ticket_t *other = &queue->ticket[i];
    if (other != served && other->used && other->name == name && other->waiting != 0 &&
        !other->late && now_ms < other->late_at_ms &&
        (served == NULL || (!served->late && other->came < served->came)))
      sim_violation(
          world, "order: %s serves %.16s for n%u, and %.16s of p%u has come %.3f ms before",
          server->name, served != NULL ? served->text : "no ticket", name, other->text,
          other->process, sim_in_ms((served != NULL ? served->came : world->now) - other->came));
  }
}

/* Its script was executed: it arrives, or keeps its place. */
static void note_asked(sim_server_t *server, sim_ticket_t *ticket) {
  sim_world_t *world = server->world;
  uint8_t bit = (uint8_t)(1u << server->index);
  uint64_t now_ms = sim_server_clock(server) / 1000; /* as scripts see it */
  int64_t keeps = world->scenario->waiter_ttl_ms > 0 ? world->scenario->waiter_ttl_ms : 3000;
  if ((ticket->waiting & bit) == 0) {
    ticket->came = world->now;
    ticket->late = false;
  } else if (now_ms >= ticket->late_at_ms) {
    ticket->late = true;
  }
  ticket->waiting |= bit;
  ticket->ghostly |= server->ghost;
  ticket->late_at_ms = now_ms + (uint64_t)keeps;
}

/* It was served and its reply was lost: it is in front of all waiters again. */
static void return_to_front(sim_server_t *server, sim_ticket_t *ticket, engine_bytes_t reply) {
  sim_queue_t *queue = &server->world->check->queue;
  if (reply.len >= 2 && reply.at[0] == ':' && reply.at[1] == '0')
    return;
  ticket->waiting &= (uint8_t) ~(1u << server->index);
  note_asked(server, ticket);
  for (unsigned i = 0; i < SIM_TICKETS; i++) {
    const sim_ticket_t *other = &queue->ticket[i];
    if (other != ticket && other->used && other->name == ticket->name && other->waiting != 0 &&
        other->came <= ticket->came && other->came > 0)
      ticket->came = other->came - 1;
  }
}

/* "exclusion": the new grant and all holds together fit the present limit. */
static void check_permits(const sim_server_t *server, unsigned name, unsigned granted) {
  sim_world_t *world = server->world;
  unsigned set = world->check->name[name].limit, limit = set > 0 ? set : world->scenario->limit;
  const sim_lock_t *lock;
  for (unsigned i = 0; (lock = sim_next_lock(world, &i)) != NULL;)
    if (lock->name == name && sim_lock_holds(lock, world->now))
      granted += lock->permits;
  if (granted > limit)
    sim_violation(world, "exclusion: %s grants n%u, and then %u of %u permits are in use",
                  server->name, name, granted, limit);
}

void sim_queue_executed(sim_server_t *server, unsigned name, const sim_token_t *token,
                        const engine_bytes_t *args, size_t n, engine_bytes_t reply) {
  sim_queue_t *queue = &server->world->check->queue;
  sim_ticket_t *ticket = NULL;
  for (size_t i = 1; i < n && ticket == NULL; i++)
    if (is_ticket(args[i]))
      ticket = token != NULL ? get(queue, args[i].at) : find(queue, args[i].at);
  const sim_scenario_t *scenario = server->world->scenario;
  bool is_release = sim_is_release(args, n);
  bool keeps = is_release && n == 3 && args[2].len > 17 && args[2].at[16] == '+' &&
               is_hex(args[2].at, 16) && scenario->kind != SIM_RWLOCK;
  if (keeps && token != NULL)
    ticket = get(queue, args[2].at);
  if (ticket != NULL && token != NULL) {
    ticket->name = name;
    ticket->process = token->process;
    ticket->life = token->life;
    if (!is_release)
      note_asked(server, ticket);
  }
  bool granted = !is_release && token != NULL && was_granted(server, token, n, reply);
  bool permits = scenario->kind == SIM_SEMAPHORE && !scenario->broken;
  if (permits && token == NULL && n == 2) /* it was resized */
    server->world->check->name[name].limit = (unsigned)sim_bytes_number(args[0]);
  if (permits && granted)
    check_permits(server, name, (unsigned)sim_bytes_number(args[2]));
  if (granted && is_ordered(server->world))
    check_order(server, name, ticket);
  if (keeps && ticket != NULL)
    return_to_front(server, ticket, reply);
  else if (ticket != NULL && (granted || is_release || was_rejected(reply)))
    ticket->waiting &= (uint8_t) ~(1u << server->index);
}

/* ---- rules: liveness ---- */

/* A waiter for the name since then; NULL: none. */
static const sim_lock_t *find_waiter(const sim_check_t *check, unsigned name, uint64_t since) {
  const sim_lock_t *lock;
  for (unsigned i = 0; (lock = sim_next_lock(check->world, &i)) != NULL;)
    if (lock->handle != NULL && lock->name == name && lock->base.op[SIM_ACQUIRE].pending &&
        lock->base.op[SIM_ACQUIRE].since <= since)
      return lock;
  return NULL;
}

void sim_queue_check(sim_check_t *check) {
  sim_world_t *world = check->world;
  const sim_server_t *server = &world->server[0];
  uint64_t most = world->scenario->free_ms * SIM_MS;
  for (unsigned i = 0; most > 0 && i < world->scenario->names; i++) {
    sim_name_t *name = &check->name[i];
    engine_bytes_t key = {.at = name->key, .len = name->key_len};
    if (server->down || name->key_len == 0 ||
        engine_peek(server->engine, sim_server_clock(server), key).at != NULL)
      name->free_since = world->now;
    const sim_lock_t *lock =
        world->now > name->free_since + most ? find_waiter(check, i, world->now - most) : NULL;
    if (lock != NULL)
      sim_violation(world, "liveness: n%u is free for %.0f ms, and %s waits for it", i,
                    sim_in_ms(world->now - name->free_since), lock->base.who);
  }
}

/* ---- rules: leaks ---- */

typedef struct value_check {
  sim_check_t *check;
  const sim_server_t *server;
  int64_t now_ms;
} value_check_t;

/* The latest token is remembered with its fencing number. */
static bool remembers(engine_bytes_t key) {
  static const char counter[] = "::fence";
  size_t len = sizeof counter - 1;
  return key.len > len && memcmp(key.at + key.len - len, counter, len) == 0;
}

static void check_value(void *ctx, engine_bytes_t key, engine_bytes_t word, int64_t until_ms) {
  const value_check_t *value_check = ctx;
  sim_check_t *check = value_check->check;
  sim_holder_t holder;
  if (until_ms <= value_check->now_ms || remembers(key))
    return; /* it has expired, and will be swept */
  bool held = sim_read_holder(word, &holder) && holder.process < check->world->scenario->processes;
  const sim_token_t *token = held ? sim_log_find(&check->log, holder.token) : NULL;
  if (token != NULL && check->seen[holder.process].closed &&
      !sim_is_excused(check, value_check->server, holder.process, holder.life, token->ghostly,
                      token->came[value_check->server->index]))
    sim_violation(check->world, "leaks: %.*s on %s keeps a token of p%u, which is closed",
                  (int)key.len, key.at, value_check->server->name, holder.process);
  const sim_ticket_t *ticket = is_ticket(word) ? find(&check->queue, word.at) : NULL;
  if (ticket != NULL && check->seen[ticket->process].closed &&
      !sim_is_excused(check, value_check->server, ticket->process, ticket->life, ticket->ghostly,
                      ticket->came))
    sim_violation(check->world, "leaks: %.*s on %s keeps a ticket of p%u, which is closed",
                  (int)key.len, key.at, value_check->server->name, ticket->process);
}

void sim_queue_end(sim_check_t *check) {
  const sim_world_t *world = check->world;
  if (world->scenario->kind == SIM_LOCK) /* its keys contain only tokens: sim_check_end() */
    return;
  for (unsigned i = 0; i < world->scenario->servers; i++) {
    const sim_server_t *server = &world->server[i];
    value_check_t value_check = {.check = check, .server = server};
    value_check.now_ms = (int64_t)(sim_server_clock(server) / 1000);
    if (!server->down)
      engine_each_value(server->engine, sim_server_clock(server), check_value, &value_check);
  }
}
