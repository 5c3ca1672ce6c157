/* Checkers: limits, commands of servers. */
#include <string.h>

#include "sim/check/limit_state.h"

/* ---- what a server does ---- */

typedef struct command {
  sim_server_t *server;
  unsigned key;
  engine_bytes_t op, id; /* id: of a reservation */
  int64_t cost;
  int64_t more[2]; /* ARGV[4]'s first numbers */
  int64_t answer, now_us;
  int64_t left_us; /* until nothing is owed; of buckets */
} command_t;

static void report(const command_t *command, const char *what) {
  sim_violation(command->server->world, "truth: %s: %.*s of %lld from k%u: %s",
                command->server->name, (int)command->op.len, command->op.at,
                (long long)command->cost, command->key, what);
}

static int64_t number_at(engine_bytes_t word, size_t i) {
  double number = 0;
  if (word.len >= 8 * (i + 1))
    memcpy(&number, word.at + 8 * i, sizeof number);
  return (int64_t)number;
}

/* Reads the arguments of a limit script, and the first number of its reply. */
static bool read_command(sim_server_t *server, const engine_bytes_t *argv, size_t argc,
                         engine_bytes_t reply, command_t *command) {
  *command = (command_t){.server = server};
  if (argc < 7 || argv[2].len != 1)
    return false;
  size_t keys = (size_t)(argv[2].at[0] - '0');
  if (keys < 1 || keys > 2 || argc < 6 + keys ||
      !sim_read_number_key(argv[3], &command->key, &command->id) ||
      (keys == 2 && !sim_read_number_key(argv[4], &command->key, &command->id)))
    return false;
  const engine_bytes_t *args = argv + 3 + keys;
  command->op = args[0];
  command->cost = sim_bytes_number(args[2]);
  if (argc > 6 + keys)
    for (size_t i = 0; i < 2; i++)
      command->more[i] = number_at(args[3], i);
  const char *bytes = memchr(reply.at, '\n', reply.len);
  if ((reply.at[0] != '$' && reply.at[0] != ':') || bytes == NULL)
    return false;
  engine_bytes_t value = {bytes + 1, reply.len - (size_t)(bytes + 1 - reply.at)};
  command->answer =
      reply.at[0] == ':' ? -1 : number_at(value, 0); /* a denial may be a debt alone */
  command->now_us = (int64_t)sim_server_clock(server);
  for (size_t i = 0; value.len >= 8 * (11 + 7 * i); i++) {
    int64_t owed = number_at(value, 5 + 7 * i), leak = number_at(value, 9 + 7 * i);
    if (leak > 0 && owed / leak + 1 > command->left_us)
      command->left_us = owed / leak + 1;
  }
  sim_note(server->world, server->name, "k%u, %.*s of %lld at %lld: %lld; owed %lld, %lld",
           command->key, (int)command->op.len, command->op.at, (long long)command->cost,
           (long long)command->now_us, (long long)command->answer, (long long)number_at(value, 4),
           (long long)number_at(value, 5));
  if (command->id.len >= SIM_LIMIT_ID) /* without what stands before it */
    command->id = (engine_bytes_t){command->id.at + command->id.len - SIM_LIMIT_ID, SIM_LIMIT_ID};
  return command->id.len == 0 || command->id.len == SIM_LIMIT_ID;
}

/* The request of the command; NULL: none. */
static sim_limit_request_t *asked(sim_limits_t *limits, const command_t *command) {
  sim_limit_request_t *request = &limits->request[command->cost % SIM_LIMIT_REQUESTS];
  if (request->kind == 0 || request->cost != command->cost || request->key != command->key) {
    report(command, "no actor has sent that request");
    return NULL;
  }
  if (request->unsent)
    report(command, "it was reported as not sent, or refused");
  if (request->executed++ == 0)
    request->at_us = (uint64_t)command->now_us;
  return request;
}

static void took(sim_limits_t *limits, const command_t *command) {
  bool penalty = sim_bytes_are(command->op, "penalty");
  sim_limit_request_t *request = asked(limits, command);
  if (request == NULL)
    return;
  if (request->executed > 1)
    report(command, "executed twice");
  request->admitted = command->answer == 0;
  request->acts_us = request->at_us;
  if (request->admitted) {
    size_t at = sim_account_charge(limits, &limits->account[request->key],
                                   (unsigned)(request - limits->request), request->at_us, !penalty);
    if (!penalty)
      sim_check_bound(command->server, limits, request->key, at);
  } else if (penalty) {
    report(command, "denied");
  } else {
    sim_check_due(command->server, limits, request->key, request->cost, request->at_us, 0);
  }
}

/* A lease of tokens has no number of a request: it gets one. */
static void leased(sim_limits_t *limits, const command_t *command) {
  sim_world_t *world = command->server->world;
  int64_t granted = command->answer > 0 ? command->answer : 0;
  uint64_t now = (uint64_t)command->now_us;
  if (command->answer > command->cost || (granted > 0 && granted < command->more[0]))
    report(command, "another number of tokens is granted than was requested");
  if (granted < command->cost)
    sim_check_due(command->server, limits, command->key,
                  granted > 0 ? granted + 1 : command->more[0], now, 0);
  unsigned number = granted == 0 ? 0 : sim_limits_number(world, SIM_LIMIT_SLICE, command->key, 0);
  if (number == 0)
    return;
  sim_limit_request_t *request = &limits->request[number];
  request->cost = granted;
  request->at_us = now;
  request->admitted = true;
  request->executed = 1;
  sim_lease_granted(command->server, number);
  sim_check_bound(command->server, limits, command->key,
                  sim_account_charge(limits, &limits->account[command->key], number, now, true));
}

static void refunded(sim_limits_t *limits, const command_t *command) {
  sim_limit_request_t *request = asked(limits, command);
  if (request == NULL)
    return;
  if (request->executed > 1)
    report(command, "executed twice");
  const sim_limit_request_t *of = &limits->request[request->of];
  request->returned = command->answer;
  if (command->answer < 0 || command->answer > request->cost)
    report(command, "more is returned than was requested, or less than nothing");
  if (of->forgotten && command->answer > 0)
    report(command, "tokens from before a reset are returned");
  sim_account_give_back(limits, &limits->account[of->key], request->of, request->cost,
                        command->answer);
}

/* ---- reservations ---- */

static unsigned slot_of(engine_bytes_t id) {
  unsigned hash = 2166136261u;
  for (size_t i = 0; i < id.len; i++)
    hash = (hash ^ (unsigned char)id.at[i]) * 16777619u;
  return hash % SIM_LIMIT_SLOTS;
}

static sim_limit_request_t *by_id(sim_limits_t *limits, engine_bytes_t id) {
  for (unsigned i = limits->slot[slot_of(id)]; i != 0; i = limits->request[i].next)
    if (memcmp(limits->request[i].id, id.at, SIM_LIMIT_ID) == 0)
      return &limits->request[i];
  return NULL;
}

static void name_it(sim_limits_t *limits, sim_limit_request_t *request, engine_bytes_t id) {
  unsigned *slot = &limits->slot[slot_of(id)];
  memcpy(request->id, id.at, SIM_LIMIT_ID);
  request->next = *slot;
  *slot = (unsigned)(request - limits->request);
  for (unsigned i = 0; i < SIM_LIMIT_UNSEEN; i++)
    if (memcmp(limits->canceled[i].id, id.at, SIM_LIMIT_ID) == 0) {
      request->canceled = true;
      request->rest_us = limits->canceled[i].rest_us;
    }
}

static void cancel_unseen(sim_limits_t *limits, const command_t *command) {
  unsigned at = limits->cancels++ % SIM_LIMIT_UNSEEN;
  memcpy(limits->canceled[at].id, command->id.at, SIM_LIMIT_ID);
  limits->canceled[at].rest_us = (uint64_t)(command->now_us + command->more[0]);
  if (command->answer != 0)
    report(command, "tokens are returned without a reservation");
}

/* The first time; or it was forgotten meanwhile. */
static void reserved(sim_limits_t *limits, const command_t *command, sim_limit_request_t *request) {
  if (request->canceled && (uint64_t)command->now_us < request->rest_us)
    report(command, "it was canceled before");
  uint64_t acts_us = (uint64_t)(command->now_us + command->answer);
  bool first = !request->admitted && !request->canceled;
  size_t at = sim_account_charge(limits, &limits->account[request->key],
                                 (unsigned)(request - limits->request), acts_us, first);
  if (first)
    request->acts_us = acts_us;
  request->admitted = true;
  request->forgotten = false;
  int64_t lasts_us = command->left_us > command->more[1] ? command->left_us : command->more[1];
  request->remembered_us = (uint64_t)(command->now_us + lasts_us);
  sim_check_bound(command->server, limits, request->key, at);
}

static void reserve(sim_limits_t *limits, const command_t *command) {
  sim_limit_request_t *request = asked(limits, command);
  if (request == NULL)
    return;
  if (request->id[0] == '\0')
    name_it(limits, request, command->id);
  else if (memcmp(request->id, command->id.at, SIM_LIMIT_ID) != 0)
    report(command, "repeated as another reservation");
  uint64_t acts_us = (uint64_t)(command->now_us + command->answer);
  bool known = request->admitted && (uint64_t)command->now_us < request->remembered_us;
  if (command->answer < 0 && known && !request->canceled)
    report(command, "denied, and it was reserved before");
  else if (command->answer < 0 && !request->admitted && !request->canceled)
    sim_check_due(command->server, limits, request->key, request->cost, (uint64_t)command->now_us,
                  command->more[0]);
  else if (command->answer >= 0 && known && !request->canceled &&
           (acts_us > (uint64_t)command->now_us ? acts_us != request->acts_us
                                                : request->acts_us > acts_us))
    report(command, "the same reservation has another time");
  else if (command->answer >= 0 && (!known || request->canceled))
    reserved(limits, command, request);
}

/* A cancel may concern a reservation whose reply was lost: its number is unknown then. */
static void canceled(sim_limits_t *limits, const command_t *command) {
  sim_limit_request_t *request = by_id(limits, command->id);
  if (request == NULL) {
    cancel_unseen(limits, command);
    return;
  }
  uint64_t now = (uint64_t)command->now_us;
  if (request->acted && request->kind == SIM_LIMIT_WAIT)
    report(command, "its wait has succeeded, and it is canceled");
  if (request->forgotten && !request->canceled && command->answer > 0)
    report(command, "tokens from before a reset are returned");
  if (command->answer < 0 || command->answer > request->cost)
    report(command, "more is returned than was reserved, or less than nothing");
  if (request->canceled && now < request->rest_us && command->answer != request->returned)
    report(command, "canceled twice, and the replies differ");
  limits->account[request->key].murky |= limits->n > 1 && request->admitted;
  if (!request->canceled || now >= request->rest_us)
    sim_account_give_back(limits, &limits->account[request->key],
                          (unsigned)(request - limits->request), request->cost, command->answer);
  request->canceled = true;
  request->returned = command->answer;
  request->rest_us = now + (uint64_t)command->more[0];
}

static void forget(sim_limits_t *limits, unsigned key, uint64_t now_us) {
  sim_account_t *account = &limits->account[key];
  for (unsigned i = 1; i <= limits->requests; i++)
    if (limits->request[i].key == key && limits->request[i].executed > 0)
      limits->request[i].forgotten = limits->request[i].at_us < now_us;
  memset(account, 0, sizeof *account);
  account->reset_us = now_us;
}

void sim_limits_executed(sim_server_t *server, const engine_bytes_t *argv, size_t argc,
                         engine_bytes_t reply) {
  sim_limits_t *limits = sim_limits_of(server->world);
  command_t command;
  engine_bytes_t id;
  unsigned key;
  if (argc == 2 && sim_bytes_are(argv[0], "DEL") && sim_read_number_key(argv[1], &key, &id)) {
    forget(limits, key, sim_server_clock(server));
    return;
  }
  if (!read_command(server, argv, argc, reply, &command))
    return;
  if (sim_bytes_are(command.op, "take") || sim_bytes_are(command.op, "penalty"))
    took(limits, &command);
  else if (sim_bytes_are(command.op, "slice"))
    leased(limits, &command);
  else if (sim_bytes_are(command.op, "refund") && limits->slice > 0)
    sim_lease_returned(server, command.key, command.cost, (uint64_t)command.more[0],
                       command.answer);
  else if (sim_bytes_are(command.op, "refund"))
    refunded(limits, &command);
  else if (sim_bytes_are(command.op, "reserve"))
    reserve(limits, &command);
  else if (sim_bytes_are(command.op, "cancel"))
    canceled(limits, &command);
}
