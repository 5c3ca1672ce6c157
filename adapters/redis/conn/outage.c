/* Outages: whether a server is away, for all connections to it together, and the cause.
 *
 *             an attempt to connect fails, or runs for AWAY_MS at the deadline of a call
 *          +------------------------------------------------------------------------------> FAILED
 *    HERE -+                                                                                  |
 *     ^    +--a deadline passes, nothing read for AWAY_MS--> SILENT --an attempt fails--------+
 *     |                                                         |                             |
 *     +--a byte is read; a connection is made-------------------+                             |
 *     +--a connection is made; no connection tries any more-----------------------------------+
 *
 * FAILED means that server->failed is set. SILENT is decided for each connection: nothing was
 * read on it since server->silent_since. So a connection with replies goes on while another is
 * dead. Idle connections get a PING as a test.
 *
 * A call with fail_fast is not queued for a server that is away, and a queued one ends when the
 * server goes away. The connections themselves detect the server's return. Connections that are
 * down try again: one of them often, the others rarely until that one succeeds. A silent server
 * owes replies, and the first reply ends the silence. */
#include "redis/conn/outage.h"

#include <stdio.h>
#include <string.h>

#include "redis/conn/batch.h"
#include "redis/conn/cause.h"
#include "redis/conn/liveness.h"

/* ms; shorter silences and attempts are no outage, even for calls with a shorter timeout */
#define AWAY_MS UINT64_C(100)
/* ms; a deadline that runs later proves nothing: the loop was busy, and the reply may be in the
 * socket */
#define LATE_MS UINT64_C(50)
/* ms after the last refused call during which connections try to connect */
#define PROBE_MS UINT64_C(3600000)

/* ---- is the server away? ---- */

static int judge(const belay__connection_t *connection) {
  const belay__server_t *server = connection->server;
  if (belay__connection_is_up(connection))
    return connection->transport.last_read <= server->silent_since ? BELAY_EUNREACHABLE : 0;
  if (server->failed != 0)
    return server->failed;
  return server->last_read <= server->silent_since && server->silent_since != 0 ? BELAY_EUNREACHABLE
                                                                                : 0;
}

static void explain_away(const belay__connection_t *connection, int error) {
  const belay__server_t *server = connection->server;
  char cause[64];
  if (!belay__connection_is_up(connection) && server->failed != 0) {
    belay__client_refused(server->settings->client, error, server->outage_cause,
                          strlen(server->outage_cause));
    return;
  }
  uint64_t ms = (belay__now(belay__server_loop(server)) - server->silent_since) / BELAY__MS;
  (void)snprintf(cause, sizeof cause, "timed out: no answer for %llu ms", (unsigned long long)ms);
  belay__connection_report(connection, error, cause);
}

int belay__outage_check(belay__connection_t *connection) {
  int error = judge(connection);
  if (error == 0)
    return 0;
  explain_away(connection, error);
  connection->server->probe_until =
      belay__now(belay__connection_loop(connection)) + PROBE_MS * BELAY__MS;
  return error;
}

/* ---- begin and end of an outage ---- */

static void take_fail_fast(belay__list_t *from, belay__list_t *out) {
  for (belay__list_t *node = from->next, *next; node != from; node = next) {
    next = node->next;
    if (!BELAY__CONTAINER(node, belay__call_t, node)->fail_fast)
      continue;
    belay__list_remove(node);
    belay__list_push(out, node);
  }
}

static void refuse_queued(belay__connection_t *connection, int error) {
  belay__list_t refused;
  belay__list_init(&refused);
  belay__call_batch_disband(connection);
  take_fail_fast(&connection->urgent, &refused);
  take_fail_fast(&connection->queue, &refused);
  for (belay__call_t *call; (call = belay__pop_call(&refused)) != NULL;) {
    connection->queue_len--; /* A callback may withdraw other calls of this list. */
    explain_away(connection, error);
    belay__call_refused(call, error);
  }
}

void belay__outage_on_refuse(belay__timer_t *timer) {
  belay__server_t *server = BELAY__CONTAINER(timer, belay__server_t, refuse_timer);
  for (size_t i = 0; i < server->count; i++) {
    belay__connection_t *connection = &server->connections[i];
    int error = connection->state == BELAY__CONNECTION_CLOSED || connection->queue_len == 0
                    ? 0
                    : judge(connection);
    if (error != 0)
      refuse_queued(connection, error);
  }
}

void belay__outage_refuse_soon(belay__server_t *server) {
  belay__timer_set(belay__server_loop(server), BELAY__RANK_OTHER, &server->refuse_timer,
                   belay__now(belay__server_loop(server)));
}

/* Notes a failed attempt to connect. Subscribers do not count, because their failure may be
 * theirs alone. An empty cause means that the client has the text of the resolver. */
static void fail(belay__connection_t *connection, int error, const char *cause) {
  belay__server_t *server = connection->server;
  const char *found = server->settings->client->refused.text;
  char place[BELAY__TARGET_WORDS];
  if (connection->is_subscriber)
    return;
  server->failed = belay__unsent_error(error);
  if (cause[0] == '\0')
    (void)snprintf(server->outage_cause, sizeof server->outage_cause, "%s", found);
  else
    (void)snprintf(server->outage_cause, sizeof server->outage_cause, "%s: %s",
                   belay__target_words(&connection->target, place), cause);
  belay__outage_refuse_soon(server);
}

void belay__outage_failed(belay__connection_t *connection, int error) {
  fail(connection, error, connection->cause);
  connection->attempt_since = 0;
}

bool belay__outage_connected(belay__connection_t *connection) {
  belay__server_t *server = connection->server;
  bool back = server->failed != 0 && !connection->is_subscriber;
  connection->attempt_since = 0;
  connection->cause[0] = '\0';
  connection->cause_set = false;
  belay__outage_bytes_read(connection);
  if (back) {
    server->failed = 0;
    server->probe = NULL;
  }
  return back;
}

void belay__outage_bytes_read(belay__connection_t *connection) {
  if (!connection->is_subscriber)
    connection->server->last_read = connection->transport.last_read;
}

/* ---- deadlines ---- */

/* Starts a silence. Connections that have read nothing since then get a PING, because they may
 * be alive. */
static void fall_silent(belay__server_t *server, uint64_t since) {
  if (server->silent_since >= since)
    return;
  server->silent_since = since;
  for (size_t i = 0; i < server->count; i++)
    if (server->connections[i].transport.last_read <= since)
      belay__connection_ping(&server->connections[i]);
  belay__outage_refuse_soon(server);
}

void belay__outage_call_overdue(belay__connection_t *connection, const belay__call_t *call) {
  uint64_t now = belay__now(belay__connection_loop(connection));
  uint64_t silence = now - connection->transport.last_activity, took = now - call->started;
  char cause[64];
  (void)snprintf(cause, sizeof cause, "timed out: no answer within %llu ms",
                 (unsigned long long)(took / BELAY__MS));
  belay__connection_report(connection, BELAY_EUNKNOWN, cause);
  bool waits = call->conn_class == BELAY__CLASS_DURABLE; /* WAIT holds the answers up */
  if (!waits && belay__connection_is_up(connection) && connection->transport.replies_due > 0 &&
      silence >= AWAY_MS * BELAY__MS && now - call->deadline < LATE_MS * BELAY__MS)
    fall_silent(connection->server, connection->transport.last_activity);
}

int belay__outage_unsent_error(belay__connection_t *connection) {
  belay__server_t *server = connection->server;
  int error = belay__unsent_error(connection->error);
  uint64_t now = belay__now(belay__server_loop(server));
  char cause[64];
  bool trying = connection->attempt_since != 0 && connection->state != BELAY__CONNECTION_RESOLVING;
  if (!trying) {
    if (connection->cause[0] == '\0' && server->failed == error)
      belay__client_refused(server->settings->client, error, server->outage_cause,
                            strlen(server->outage_cause));
    else if (!belay__error_is_lasting(error))
      belay__connection_report_cause(connection, error);
    return error;
  }
  uint64_t took = now - connection->attempt_since;
  (void)snprintf(cause, sizeof cause, "timed out: not connected after %llu ms",
                 (unsigned long long)(took / BELAY__MS));
  if (server->failed == 0 && took >= AWAY_MS * BELAY__MS)
    fail(connection, BELAY_EUNREACHABLE, cause);
  belay__connection_report(connection, error,
                           connection->cause[0] != '\0' ? connection->cause : cause);
  return error;
}

/* ---- temporary refusals ---- */

bool belay__outage_refuses_call(const belay__connection_t *connection, const belay__call_t *call) {
  return call->fail_fast && connection->refusing_since != 0 &&
         belay__now(belay__connection_loop(connection)) - connection->refusing_since >=
             AWAY_MS * BELAY__MS;
}

/* ---- which connection tries ---- */

static bool is_trying(const belay__connection_t *connection) {
  return connection->state == BELAY__CONNECTION_RESOLVING ||
         connection->state == BELAY__CONNECTION_DIALING ||
         connection->state == BELAY__CONNECTION_HANDSHAKE ||
         connection->state == BELAY__CONNECTION_BACKOFF;
}

bool belay__outage_may_retry_rarely(belay__connection_t *connection) {
  belay__server_t *server = connection->server;
  if (server->failed == 0)
    return false;
  if (!connection->is_subscriber && (server->probe == NULL || !is_trying(server->probe)))
    server->probe = connection;
  return server->probe != NULL && server->probe != connection && is_trying(server->probe);
}

bool belay__outage_should_probe(const belay__connection_t *connection) {
  const belay__server_t *server = connection->server;
  return !connection->is_subscriber && (server->probe == NULL || server->probe == connection) &&
         belay__now(belay__server_loop(server)) < server->probe_until;
}

void belay__outage_stopped_trying(belay__connection_t *connection) {
  belay__server_t *server = connection->server;
  for (size_t i = 0; i < server->count; i++)
    if (is_trying(&server->connections[i]) || belay__connection_is_up(&server->connections[i]))
      return;
  server->probe = NULL;
  server->failed = 0;
  server->silent_since = 0;
}
