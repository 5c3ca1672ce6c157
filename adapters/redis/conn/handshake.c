/* The handshake. All commands but the last are sent together: AUTH, ROLE, READONLY, SELECT,
 * CLIENT SETNAME, COMMAND INFO, HELLO, INFO server, INFO replication. CLIENT KILL follows if a
 * connection was lost before.
 *
 *    send all --> reply to the last one --no lost connection on this server--> done
 *                      |
 *                      +--a lost connection on the same server--> CLIENT KILL --reply--> done
 *
 * - COMMAND INFO shows which commands the server has.
 * - HELLO without arguments shows the id of this connection and does not change the protocol.
 * - INFO shows the run id, and when the server last became a primary.
 * - ROLE verifies the role where it matters. It and, for a replica of a cluster, READONLY come
 *   right after AUTH.
 *
 * A server that permits none of COMMAND INFO, HELLO and INFO is used nevertheless. It is then
 * unknown whether the lost connection is dead, and belay uses the older of two possible
 * commands.
 *
 * A lost connection is not known to be dead either if the new server is another one, or the same
 * one after a restart. These two look alike. The old server may be paused, may have been
 * replaced, and may execute what it received once it is primary again.
 *
 * A subscriber sends AUTH, CLIENT SETNAME, PING, COMMAND INFO, INFO server and HELLO 3. It
 * relies on PING. INFO shows whether its server is the server of the calls. Without RESP3 a push
 * cannot be distinguished from a reply. */
#include "redis/conn/handshake.h"

#include <stdio.h>
#include <string.h>

#include "core/call/refusal.h"
#include "redis/conn/cause.h"

#define SECOND INT64_C(1000000000)     /* ns */
#define UPTIME_MAX INT64_C(1000000000) /* s; a longer uptime is cut to this */

#define WORDS_MAX 6 /* words of a step */

/* The error replies that end the handshake. */
typedef enum fatal {
  FATAL_NONE,
  FATAL_LOCKED_OUT, /* the client may not use the server at all, whatever the command */
  FATAL_PASSING,    /* also a temporary refusal; a command that is not permitted may be missing */
  FATAL_ALL
} fatal_t;

/* One command of the handshake, and the function that reads its reply. */
typedef struct step {
  fatal_t fatal;
  /* Reads a reply that is not fatal. NULL: the reply is not used. */
  void (*read)(belay__connection_t *connection, const belay__reply_t *reply);
  const char *words[WORDS_MAX + 1]; /* ends with NULL */
} step_t;

static void done(belay__connection_t *connection, int error) {
  connection->handshake_done(connection, error);
}

/* Returns the reply in a callback. NULL if the connection is ending or the handshake was given
 * up. */
static const belay__reply_t *receive(belay__connection_t *connection, void *object) {
  const belay__reply_t *reply = belay__transport_take_reply(&connection->transport, object);
  return connection->state == BELAY__CONNECTION_HANDSHAKE ? reply : NULL;
}

static bool is_fatal(fatal_t fatal, const belay__refusal_t *refusal) {
  bool locked_out = refusal->error == BELAY_EAUTH || refusal->error == BELAY_EMAXCLIENTS;
  return fatal == FATAL_ALL || (locked_out && fatal != FATAL_NONE) ||
         (refusal->remedy == BELAY__REMEDY_RETRY && fatal == FATAL_PASSING);
}

static void on_reply(redisAsyncContext *ac, void *object, void *privdata) {
  const step_t *step = privdata;
  belay__connection_t *connection = belay__connection_of_context(ac);
  const belay__settings_t *settings = connection->server->settings;
  const belay__reply_t *reply = receive(connection, object);
  if (reply == NULL)
    return;
  if (reply->type == BELAY__REPLY_ERROR) {
    const belay__refusal_t *refusal = belay__refusal_find(reply->str, reply->len);
    if (is_fatal(step->fatal, refusal)) {
      belay__auth_report(&settings->login, settings->client, reply, refusal->error);
      done(connection, refusal->error);
      return;
    }
  }
  if (step->read != NULL)
    step->read(connection, reply);
}

/* Sends the command of a step. last: one more word; NULL: none. */
static void send_step(belay__connection_t *connection, const step_t *step, const char *last) {
  const char *argv[WORDS_MAX + 1];
  size_t n = 0;
  for (; step->words[n] != NULL; n++)
    argv[n] = step->words[n];
  if (last != NULL)
    argv[n++] = last;
  belay__transport_command(&connection->transport, on_reply, (void *)(uintptr_t)step, n, argv);
}

/* ---- replies ---- */

const char *belay__role_words(belay__role_t role) {
  return role == BELAY__ROLE_PRIMARY ? "the server says that it is not a primary"
                                     : "the server says that it is not a replica that is connected "
                                       "to its primary";
}

bool belay__role_is(const belay__reply_t *reply, belay__role_t role) {
  if (reply->type != BELAY__REPLY_ARRAY || reply->count < 1)
    return false;
  if (role == BELAY__ROLE_PRIMARY)
    return belay__reply_is(reply->items[0], "master", 6);
  return belay__reply_is(reply->items[0], "slave", 5) && reply->count >= 4 &&
         belay__reply_is(reply->items[3], "connected",
                         9); /* The replica has its primary, so it is not far behind. */
}

static void on_auth(redisAsyncContext *ac, void *object, void *privdata) {
  (void)privdata;
  belay__connection_t *connection = belay__connection_of_context(ac);
  const belay__settings_t *settings = connection->server->settings;
  const belay__reply_t *reply = receive(connection, object);
  int error = reply == NULL ? 0 : belay__auth_read(&settings->login, settings->client, reply);
  if (error != 0)
    done(connection, error);
}

/* Sentinels and lists of addresses may be out of date; the server's own reply decides. */
static void read_role(belay__connection_t *connection, const belay__reply_t *reply) {
  if (belay__role_is(reply, connection->server->role))
    return;
  belay__connection_set_cause(connection, "%s", belay__role_words(connection->server->role));
  done(connection, BELAY_EREADONLY);
}

static void read_ok(belay__connection_t *connection, const belay__reply_t *reply) {
  if (!belay__reply_is(reply, "OK", 2))
    done(connection, BELAY_EPROTO);
}

static const step_t role = {FATAL_ALL, read_role, {"ROLE"}},
                    readonly = {FATAL_ALL, read_ok, {"READONLY"}},
                    select_db = {FATAL_ALL, read_ok, {"SELECT"}},
                    setname = {FATAL_LOCKED_OUT, NULL, {"CLIENT", "SETNAME"}};

static void read_commands(belay__connection_t *connection, const belay__reply_t *reply);

/* The commands to look for, and the capabilities of a server that has them. */
static const step_t commands = {
    FATAL_PASSING,
    read_commands,
    {"COMMAND", "INFO", "bitfield_ro", "ssubscribe", "delifeq", "delex"}};
static const unsigned abilities[] = {
    1u << BELAY__BITFIELD_RO,
    /* No command shows that SET takes NX with GET. Redis 7.0 introduced both that and
     * SSUBSCRIBE. */
    1u << BELAY__SHARDED_CHANNELS | 1u << BELAY__SET_NX_GET,
    1u << BELAY__DELIFEQ,
    1u << BELAY__DELEX,
};
#define PROBES (sizeof abilities / sizeof *abilities)
_Static_assert(2 + PROBES == WORDS_MAX, "an ability for each command");

/* Reads one element for each command: an array that begins with the command's name, or nil for
 * an unknown command. After any other reply no capability is assumed. */
static void read_commands(belay__connection_t *connection, const belay__reply_t *reply) {
  unsigned all = 0;
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != PROBES)
    return;
  for (size_t i = 0; i < PROBES; i++) {
    const belay__reply_t *item = reply->items[i];
    const char *name = commands.words[2 + i];
    if (item->type == BELAY__REPLY_NIL)
      continue;
    if (item->type != BELAY__REPLY_ARRAY || item->count == 0 ||
        !belay__reply_is(item->items[0], name, strlen(name)))
      return;
    all |= abilities[i];
  }
  connection->peer.capabilities = all;
}

static void read_id(belay__connection_t *connection, const belay__reply_t *reply) {
  const belay__reply_t *mode = belay__reply_field(reply, "mode");
  const belay__reply_t *id = belay__reply_field(reply, "id");
  connection->sharded = mode != NULL && belay__reply_is(mode, "cluster", 7) &&
                        (connection->peer.capabilities >> BELAY__SHARDED_CHANNELS & 1) != 0;
  if (id == NULL || !belay__reply_integer(id, 1, INT64_MAX, &connection->peer.id))
    connection->peer.id = 0;
}

/* Checks that the server is of the kind that the URL says. A Sentinel ends the handshake; a
 * cluster node behind a URL of one server only logs a warning, once per client. */
static void check_kind(belay__connection_t *connection, const belay__reply_t *reply) {
  static const char sentinel[] = "it is a sentinel, which has no data: redis+sentinel://";
  belay__settings_t *settings = connection->server->settings;
  const belay__reply_t *mode = belay__reply_field(reply, "mode");
  char place[BELAY__TARGET_WORDS];
  if (mode != NULL && belay__reply_is(mode, "sentinel", 8)) {
    belay__client_refused(settings->client, BELAY_EREFUSED, sentinel, sizeof sentinel - 1);
    done(connection, BELAY_EREFUSED);
  } else if (mode != NULL && belay__reply_is(mode, "cluster", 7) &&
             settings->ops->redirect == NULL && !settings->cluster_warned) {
    settings->cluster_warned = true;
    belay__log(settings->client->belay, BELAY_LOG_WARNING,
               "%s is a node of a cluster, and refuses the keys of others: redis+cluster://",
               belay__target_words(&connection->target, place));
  }
}

static void read_hello(belay__connection_t *connection, const belay__reply_t *reply) {
  read_id(connection, reply);
  check_kind(connection, reply);
}

/* ---- connections that carry calls ---- */

static void read_kill(belay__connection_t *connection, const belay__reply_t *reply) {
  int64_t killed;
  bool over = belay__reply_integer(reply, 0, 1, &killed);
  if (over && connection->several_lost) {
    connection->lost_peer.id = 0;
  } else if (over) {
    connection->dead_epoch = connection->lost_peer.info.epoch;
    connection->lost_peer.info.epoch = 0;
  }
  done(connection, 0);
}

static void kill_lost_peer(belay__connection_t *connection) {
  static const step_t kill = {FATAL_NONE, read_kill, {"CLIENT", "KILL", "ID"}};
  char id[24];
  snprintf(id, sizeof id, "%lld", (long long)connection->lost_peer.id);
  send_step(connection, &kill, id);
}

/* Appends the value of a field of INFO to out, cut to the room that is left. Returns the new
 * length. */
static size_t add_field(const belay__reply_t *info, const char *name, char *out, size_t len,
                        size_t max) {
  size_t n = 0;
  const char *value = belay__info_field(info, name, &n);
  if (value == NULL)
    return len;
  if (n > max - len)
    n = max - len;
  memcpy(out + len, value, n);
  return len + n;
}

/* Returns the FNV-1a hash of a text; 0 for an empty text. */
static uint32_t mark_of(const char *text, size_t len) {
  uint32_t mark = UINT32_C(2166136261);
  for (size_t i = 0; i < len; i++)
    mark = (mark ^ (unsigned char)text[i]) * UINT32_C(16777619);
  return len == 0 ? 0 : mark | 1;
}

/* Reads the server's start time and run id. The uptime is a difference of two clocks in whole
 * seconds and may be one second too long. An uptime that is no number is ignored. */
static void note_server(belay__connection_t *connection, const belay__reply_t *info) {
  belay__server_info_t *info_of_server = &connection->peer.info;
  uint64_t uptime = 0;
  (void)belay__info_number(info, "uptime_in_seconds", 1, UINT64_MAX, &uptime);
  int64_t up = uptime == 0 ? 0 : uptime < UPTIME_MAX ? (int64_t)uptime - 1 : UPTIME_MAX;
  info_of_server->started_by =
      (int64_t)belay__now(&connection->server->settings->host->base) - up * SECOND;
  info_of_server->run_id_len =
      add_field(info, "run_id", info_of_server->run_id, 0, BELAY__RUN_ID_MAX);
  info_of_server->mark = mark_of(info_of_server->run_id, info_of_server->run_id_len);
}

/* Reads the id of the data with which the server last became a primary: master_replid2 and
 * second_repl_offset. Both are empty values for a server that was never promoted. master_replid
 * itself is not used, because it changes more often. */
static void read_data_id(belay__server_info_t *info_of_server, const belay__reply_t *info) {
  size_t n = add_field(info, "master_replid2", info_of_server->data_id, 0, BELAY__DATA_ID_MAX);
  info_of_server->data_id_len =
      add_field(info, "second_repl_offset", info_of_server->data_id, n, BELAY__DATA_ID_MAX);
}

static void read_server(belay__connection_t *connection, const belay__reply_t *reply) {
  if (reply->type == BELAY__REPLY_STRING)
    note_server(connection, reply);
}

static void read_replication(belay__connection_t *connection, const belay__reply_t *reply) {
  belay__server_info_t *info_of_server = &connection->peer.info,
                       *lost_peer = &connection->lost_peer.info;
  if (reply->type == BELAY__REPLY_STRING)
    read_data_id(info_of_server, reply);
  bool known = lost_peer->epoch != 0 && lost_peer->run_id_len > 0 && connection->lost_peer.id != 0;
  if (known && belay__server_info_is(info_of_server, lost_peer->run_id, lost_peer->run_id_len))
    kill_lost_peer(connection);
  else
    done(connection, 0);
}

static const step_t hello = {FATAL_LOCKED_OUT, read_hello, {"HELLO"}},
                    server_info = {FATAL_PASSING, read_server, {"INFO", "server"}},
                    replication = {FATAL_PASSING, read_replication, {"INFO", "replication"}};

/* ---- subscribers ---- */

static void read_pong(belay__connection_t *connection, const belay__reply_t *reply) {
  if (!belay__reply_is(reply, "PONG", 4))
    done(connection, BELAY_EPROTO);
}

static void read_hello_3(belay__connection_t *connection, const belay__reply_t *reply) {
  if (reply->type == BELAY__REPLY_ARRAY)
    read_id(connection, reply);
  done(connection, reply->type == BELAY__REPLY_ARRAY ? 0 : BELAY_EPROTO);
}

static const step_t ping = {FATAL_ALL, read_pong, {"PING"}},
                    hello_3 = {FATAL_ALL, read_hello_3, {"HELLO", "3"}};

/* ---- start ---- */

void belay__handshake_start(belay__connection_t *connection,
                            void (*handshake_done)(belay__connection_t *connection, int error)) {
  const belay__server_t *server = connection->server;
  const belay__settings_t *settings = server->settings;
  char db[12];
  connection->handshake_done = handshake_done;
  connection->peer = (belay__peer_t){0};
  connection->sharded = false;
  int error = belay__auth_send(&settings->login, settings->client, &connection->transport, on_auth);
  if (error != 0) {
    done(connection, error);
    return;
  }
  if (server->role != BELAY__ROLE_ANY)
    send_step(connection, &role, NULL);
  if (server->readonly)
    send_step(connection, &readonly, NULL);
  if (!connection->is_subscriber && settings->options.db != 0) {
    snprintf(db, sizeof db, "%d", settings->options.db);
    send_step(connection, &select_db, db);
  }
  send_step(connection, &setname, settings->options.client_name);
  if (connection->is_subscriber)
    send_step(connection, &ping, NULL);
  send_step(connection, &commands, NULL);
  if (!connection->is_subscriber)
    send_step(connection, &hello, NULL);
  send_step(connection, &server_info, NULL);
  send_step(connection, connection->is_subscriber ? &hello_3 : &replication, NULL);
}
