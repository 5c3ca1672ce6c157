/* The server and its connections. */
#include <stdio.h>

#include "command.h"

#define VERSION "7.0.15"

static void ping(engine_call_t *call) {
  bool listens = !call->in_script && call->conn->channels > 0 && !engine_is_resp3(call);
  if (call->argc > 2) {
    engine_reply_wrong_number(call, call->command);
    return;
  }
  if (listens) {
    engine_reply_array(call, 2);
    engine_reply_text(call, "pong");
    engine_reply_bytes(call, call->argc == 2 ? call->argv[1] : engine_text(""));
  } else if (call->argc == 2) {
    engine_reply_bytes(call, call->argv[1]);
  } else {
    engine_reply_status(call, "PONG");
  }
}

static void reply_text_integer(engine_call_t *call, uint64_t value) {
  char text[24];
  engine_reply_bulk(call, text,
                    (size_t)snprintf(text, sizeof text, "%llu", (unsigned long long)value));
}

static void tell_time(engine_call_t *call) {
  engine_reply_array(call, 2);
  reply_text_integer(call, call->now_us / 1000000);
  reply_text_integer(call, call->now_us % 1000000);
}

/* ---- names, HELLO ---- */

/* A name is a word without blanks; complains if it is none. */
static bool take_name(engine_call_t *call, engine_bytes_t name) {
  char *to = call->conn->name;
  for (size_t i = 0; i < name.len; i++)
    if (name.at[i] < '!' || name.at[i] > '~') {
      engine_reply_error(call,
                         "ERR Client names cannot contain spaces, newlines or special characters.");
      return false;
    }
  size_t most = sizeof call->conn->name - 1, len = name.len < most ? name.len : most;
  if (len > 0)
    memcpy(to, name.at, len);
  to[len] = '\0';
  return true;
}

/* The options behind the version; complains about the first that is none. */
static bool hello_options(engine_call_t *call) {
  size_t i = 2;
  while (i < call->argc) {
    size_t more = call->argc - i - 1;
    engine_bytes_t word = call->argv[i];
    if (engine_bytes_is(word, "AUTH") && more >= 2) {
      if (!engine_bytes_equal(call->argv[i + 1], engine_text("default"))) {
        engine_reply_error(call, "WRONGPASS invalid username-password pair or user is disabled.");
        return false;
      }
      i += 3;
    } else if (engine_bytes_is(word, "SETNAME") && more >= 1) {
      if (!take_name(call, call->argv[i + 1]))
        return false;
      i += 2;
    } else {
      engine_reply_error(call, "ERR Syntax error in HELLO option '%.*s'", (int)word.len, word.at);
      return false;
    }
  }
  return true;
}

static void hello(engine_call_t *call) {
  int64_t version = call->conn->resp == 3 ? 3 : 2;
  if (call->argc > 1 && !engine_bytes_integer(call->argv[1], &version)) {
    engine_reply_error(call, "ERR Protocol version is not an integer or out of range");
    return;
  }
  if (version != 2 && version != 3) {
    engine_reply_error(call, "NOPROTO unsupported protocol version");
    return;
  }
  if (!hello_options(call))
    return;
  call->conn->resp = (int)version;
  engine_reply_map(call, 7);
  engine_reply_text(call, "server");
  engine_reply_text(call, "redis");
  engine_reply_text(call, "version");
  engine_reply_text(call, VERSION);
  engine_reply_text(call, "proto");
  engine_reply_integer(call, version);
  engine_reply_text(call, "id");
  engine_reply_integer(call, call->conn->id);
  engine_reply_text(call, "mode");
  engine_reply_text(call, "standalone");
  engine_reply_text(call, "role");
  engine_reply_text(call, "master");
  engine_reply_text(call, "modules");
  engine_reply_array(call, 0);
}

/* ---- CLIENT ---- */

static void set_name(engine_call_t *call) {
  if (take_name(call, call->argv[2]))
    engine_reply_ok(call);
}

/* Not the connection that asks. */
static void kill_connection(engine_call_t *call) {
  const engine_hooks_t *hooks = &call->engine->options.hooks;
  int64_t id;
  if (!engine_bytes_is(call->argv[2], "ID"))
    engine_reply_syntax_error(call);
  else if (!engine_bytes_integer(call->argv[3], &id) || id < 1)
    engine_reply_error(call, "ERR client-id should be greater than 0");
  else
    engine_reply_integer(call, id != call->conn->id && hooks->kill != NULL &&
                                   hooks->kill(hooks->ctx, id));
}

static const engine_command_t client_parts[] = {
    {"SETNAME", set_name, 3, ENGINE_NO_SCRIPT, NULL},
    {"KILL", kill_connection, 4, ENGINE_NO_SCRIPT, NULL},
    {NULL, NULL, 0, 0, NULL},
};

/* ---- COMMAND ---- */

/* Its name, and its arity; all else that a server tells of a command is left empty. */
static void describe(engine_call_t *call, const engine_command_t *command) {
  enum { ITEMS = 10, NUMBERS_END = 6, NUMBERS = 3 };
  char name[32];
  size_t len = 0;
  for (; command->name[len] != '\0' && len < sizeof name; len++) {
    char c = command->name[len];
    name[len] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
  }
  engine_reply_array(call, ITEMS);
  engine_reply_bulk(call, name, len);
  engine_reply_integer(call, command->arity);
  for (int i = 2; i < ITEMS; i++)
    if (i >= NUMBERS && i < NUMBERS_END)
      engine_reply_integer(call, 0);
    else
      engine_reply_set(call, 0);
}

static void describe_all(engine_call_t *call) {
  engine_reply_array(call, call->argc - 2);
  for (size_t i = 2; i < call->argc; i++) {
    const engine_command_t *command = engine_command_find(call->argv[i]);
    if (command != NULL)
      describe(call, command);
    else
      engine_reply_nil(call);
  }
}

static const engine_command_t command_parts[] = {
    {"INFO", describe_all, -2, 0, NULL},
    {NULL, NULL, 0, 0, NULL},
};

/* ---- INFO ---- */

enum { SERVER = 1, REPLICATION = 2, INFO_MAX = 1024 };

static unsigned sections_of(const engine_call_t *call) {
  unsigned sections = call->argc == 1 ? SERVER | REPLICATION : 0;
  for (size_t i = 1; i < call->argc; i++) {
    engine_bytes_t word = call->argv[i];
    bool all = engine_bytes_is(word, "ALL") || engine_bytes_is(word, "DEFAULT") ||
               engine_bytes_is(word, "EVERYTHING");
    if (all || engine_bytes_is(word, "SERVER"))
      sections |= SERVER;
    if (all || engine_bytes_is(word, "REPLICATION"))
      sections |= REPLICATION;
  }
  return sections;
}

static size_t print_server(const engine_call_t *call, char *text, size_t max) {
  const engine_t *engine = call->engine;
  uint64_t started = engine->options.started_us / 1000000, now = call->now_us / 1000000;
  uint64_t up = now > started ? now - started : 0;
  int len = snprintf(text, max,
                     "# Server\r\nredis_version:" VERSION "\r\nredis_mode:standalone\r\n"
                     "run_id:%s\r\nserver_time_usec:%llu\r\nuptime_in_seconds:%llu\r\n"
                     "uptime_in_days:%llu\r\n",
                     engine->run_id, (unsigned long long)call->now_us, (unsigned long long)up,
                     (unsigned long long)(up / 86400));
  return len < 0 ? 0 : (size_t)len;
}

/* The replication id is the process's own, as after each restart. */
static size_t print_replication(const engine_call_t *call, char *text, size_t max) {
  const engine_t *engine = call->engine;
  int len = snprintf(text, max,
                     "# Replication\r\nrole:master\r\nconnected_slaves:%u\r\n"
                     "master_failover_state:no-failover\r\nmaster_replid:%s\r\n"
                     "master_replid2:%s\r\nmaster_repl_offset:0\r\nsecond_repl_offset:%lld\r\n",
                     engine->options.replicas, engine->run_id, engine->data_id,
                     (long long)engine->options.data_offset);
  return len < 0 ? 0 : (size_t)len;
}

static void info(engine_call_t *call) {
  char text[INFO_MAX];
  size_t len = 0;
  unsigned sections = sections_of(call);
  if ((sections & SERVER) != 0)
    len += print_server(call, text, sizeof text);
  if (sections == (SERVER | REPLICATION)) {
    memcpy(text + len, "\r\n", 2);
    len += 2;
  }
  if ((sections & REPLICATION) != 0)
    len += print_replication(call, text + len, sizeof text - len);
  engine_reply_verbatim(call, text, len);
}

const engine_command_t engine_server_commands[] = {
    {"PING", ping, -1, ENGINE_SUBSCRIBED, NULL},
    {"TIME", tell_time, 1, 0, NULL},
    {"HELLO", hello, -1, ENGINE_NO_SCRIPT, NULL},
    {"CLIENT", NULL, -2, ENGINE_NO_SCRIPT, client_parts},
    {"COMMAND", NULL, -2, 0, command_parts},
    {"INFO", info, -1, 0, NULL},
    {NULL, NULL, 0, 0, NULL},
};
