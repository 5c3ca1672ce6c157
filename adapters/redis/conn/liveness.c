/* Liveness of a connection that is up. A silent connection may be dead, and an idle extra
 * connection is closed.
 *
 *    UP --idle for idle_timeout_ms, and a call comes or it is a subscriber--> CHECKING --PONG--> UP
 *     |                                                                          |
 *     |                                                                          +--time--> dropped
 *     +--a reply is due, silent for stall_timeout_ms--> dropped
 *     +--extra, idle for idle_timeout_ms--> DOWN */
#include "redis/conn/liveness.h"

#include "redis/conn/cause.h"

#define REPLICA_STALL_MS 1000

static void on_pong(redisAsyncContext *ac, void *object, void *privdata) {
  (void)privdata;
  belay__connection_t *connection = belay__connection_of_context(ac);
  const belay__reply_t *reply = belay__transport_take_reply(&connection->transport, object);
  if (reply == NULL || connection->state != BELAY__CONNECTION_CHECKING)
    return;
  if (!belay__reply_is(reply, "PONG", 4)) {
    belay__transport_drop(&connection->transport, BELAY_EPROTO);
    return;
  }
  connection->state = BELAY__CONNECTION_UP;
  belay__connection_watch(connection);
}

/* Returns the ns since the last read, or since the first command after a time without due
 * replies. */
static uint64_t silence(const belay__connection_t *connection) {
  return belay__now(belay__connection_loop(connection)) - connection->transport.last_activity;
}

bool belay__connection_owes_reply(const belay__connection_t *connection, uint64_t limit) {
  return belay__connection_is_up(connection) && connection->transport.replies_due > 0 &&
         silence(connection) >= limit;
}

bool belay__connection_is_silent(belay__connection_t *connection, uint64_t limit) {
  const belay__transport_t *transport = &connection->transport;
  uint64_t turn = connection->server->settings->host->turns;
  if (!belay__connection_owes_reply(connection, limit))
    return false;
  if (connection->silence_noticed == transport->last_activity)
    return connection->silence_turn != turn;
  connection->silence_noticed = transport->last_activity;
  connection->silence_turn = turn;
  return false;
}

static uint64_t idle_limit(const belay__connection_t *connection) {
  int64_t ms = connection->server->settings->options.idle_timeout_ms;
  return ms == BELAY_FOREVER ? BELAY__NEVER : (uint64_t)ms * BELAY__MS;
}

void belay__connection_ping(belay__connection_t *connection) {
  if (connection->state != BELAY__CONNECTION_UP || connection->transport.replies_due > 0 ||
      connection->is_subscriber)
    return;
  belay__transport_command(&connection->transport, on_pong, NULL, 1, (const char *const[]){"PING"});
  belay__connection_reply_expected(connection);
}

static void send_check(belay__connection_t *connection) {
  static const char *const argv[] = {"PING"};
  connection->state = BELAY__CONNECTION_CHECKING;
  /* A quarter of the connect timeout, so that time is left for a new connection. */
  int64_t ms = (connection->server->settings->options.connect_timeout_ms + 3) / 4;
  belay__timer_set(belay__connection_loop(connection), BELAY__RANK_OTHER, &connection->timer,
                   belay__after_ms(belay__connection_loop(connection), ms));
  if (connection->is_subscriber)
    belay__transport_send(&connection->transport, 1, argv, NULL, true);
  else
    belay__transport_command(&connection->transport, on_pong, NULL, 1, argv);
}

void belay__connection_check_if_idle(belay__connection_t *connection) {
  if (connection->transport.replies_due == 0 && silence(connection) >= idle_limit(connection))
    send_check(connection);
}

/* Returns the limit in ns. It is shorter for a replica, because other servers can answer its
 * reads. */
static uint64_t stall_limit(const belay__connection_t *connection) {
  uint64_t ms = (uint64_t)connection->server->settings->options.stall_timeout_ms;
  if (connection->server->role == BELAY__ROLE_REPLICA && ms > REPLICA_STALL_MS)
    ms = REPLICA_STALL_MS;
  return ms * BELAY__MS;
}

/* Tells the deployment that the server may have been replaced. */
static void suspect_server(belay__connection_t *connection) {
  const belay__deployment_ops_t *ops = connection->server->settings->ops;
  if (ops->suspect != NULL)
    ops->suspect(connection);
}

/* Sets the timer of a connection that is UP, or drops the connection. Without due replies only
 * an extra connection or a subscriber is watched. With due replies the last quarter of the limit
 * starts when the silence is first noticed: a loop that was busy has read nothing either. */
void belay__connection_watch(belay__connection_t *connection) {
  belay_t *belay = belay__connection_loop(connection);
  uint64_t read_at = connection->transport.last_activity, limit = idle_limit(connection), when;
  if (connection->transport.replies_due > 0)
    limit = stall_limit(connection) / 4 * 3;
  else if ((!connection->extra && !connection->is_subscriber) || limit == BELAY__NEVER ||
           connection->queue_len > 0)
    limit = 0; /* Nothing to watch for, or a call is about to be sent. */

  if (limit == 0) {
    belay__timer_stop(belay, BELAY__RANK_OTHER, &connection->timer);
    return;
  }
  if (connection->transport.replies_due > 0 && silence(connection) < limit / 3) {
    when = read_at + limit / 3;
  } else if (silence(connection) < limit) {
    if (connection->transport.replies_due > 0)
      suspect_server(connection);
    when = read_at + limit;
  } else if (connection->transport.replies_due > 0 && connection->stall_noticed != read_at) {
    connection->stall_noticed = read_at;
    when = belay__now(belay) + limit / 3 + 1;
  } else if (connection->transport.replies_due == 0 && connection->is_subscriber) {
    /* A subscriber sends nothing else that would reveal a dead connection. */
    send_check(connection);
    return;
  } else {
    if (connection->transport.replies_due > 0)
      belay__connection_set_cause(connection, "timed out: no answer for %llu ms",
                                  (unsigned long long)(silence(connection) / BELAY__MS));
    else
      connection->state = BELAY__CONNECTION_DOWN; /* An idle extra connection is retired. */
    belay__transport_drop(&connection->transport, BELAY_EUNREACHABLE);
    return;
  }
  belay__timer_set(belay, BELAY__RANK_OTHER, &connection->timer, when);
}

void belay__connection_reply_expected(belay__connection_t *connection) {
  if (connection->state == BELAY__CONNECTION_UP)
    belay__connection_watch(connection);
}

void belay__connection_reply_received(belay__connection_t *connection) {
  bool checked = connection->state == BELAY__CONNECTION_CHECKING;
  connection->failures = 0;
  if (checked)
    connection->state = BELAY__CONNECTION_UP;
  if (checked || connection->transport.replies_due == 0)
    belay__connection_watch(connection);
}
