/* One connection: the state machine.
 *
 *    DOWN --a call--> RESOLVING --found--> DIALING --connected--> HANDSHAKE --done--> UP
 *     ^                 |  ^                  |                       |                |
 *     |                 v  | time and slot    v                       v                v
 *     |               BACKOFF <---------------+-----------------------+----------------+
 *     |                 |
 *     +--no call waits--+
 *
 *    UP --idle, a call--> CHECKING --PONG--> UP        CHECKING --time--> BACKOFF
 *    UP --READONLY--> DRAINING --last reply--> BACKOFF
 *
 * A lasting error leads to REFUSED instead of BACKOFF.
 *
 *    any --close--> CLOSED
 *
 * RESOLVING takes no time for a server at a fixed address. Otherwise it takes as long as the
 * deployment's resolver. Before each new attempt the connection waits for a slot of the connect
 * limiter (uv/connect_limiter.h). So many clients that lose a server together do not reconnect
 * at the same moment.
 *
 * When a connection ends, the transport gives back the calls without a reply. Each call is
 * judged by its offset in the stream of bytes: calls that left are UNKNOWN, the others are
 * queued again, in order, in front of all calls queued since. connection->lost_peer keeps the id
 * of the ended connection until the server is known to have closed it (handshake.c). */
#include "redis/conn/connection.h"

#include <assert.h>

#include "core/client/lifecycle.h"
#include "redis/conn/batch.h"
#include "redis/conn/call_queue.h"
#include "redis/conn/cause.h"
#include "redis/conn/handshake.h"
#include "redis/conn/liveness.h"
#include "redis/conn/outage.h"
#include "redis/conn/reconnect_delay.h"

static void on_dialed(belay__dial_t *dial, int error, int fd, belay__uv_handle_t *handle);
static void on_closed(belay__transport_t *transport, int error);
static void on_read(belay__transport_t *transport);
static void on_ready(belay__transport_t *transport);
static void on_timer(belay__timer_t *timer);
static void on_connect_slot(belay__connect_slot_t *turn);

static belay__connection_t *connection_of(const belay__transport_t *transport) {
  return BELAY__CONTAINER(transport, belay__connection_t, transport);
}

static void set_timer(belay__connection_t *connection, int64_t ms) {
  belay__timer_set(belay__connection_loop(connection), BELAY__RANK_OTHER, &connection->timer,
                   belay__after_ms(belay__connection_loop(connection), ms));
}

static void on_dial_over(belay__dial_t *dial) {
  belay__connection_t *connection = BELAY__CONTAINER(dial, belay__connection_t, dial);
  connection->server->settings->ops->handle_closed(connection->server->settings,
                                                   connection->server);
}

void belay__connection_init(belay__connection_t *connection, belay__server_t *server, bool extra) {
  *connection = (belay__connection_t){
      .server = server,
      .extra = extra,
      .timer = {.fire = on_timer},
      .transport = {.host = server->settings->host,
                    .stats = &server->settings->client->stats,
                    .max_reply = server->settings->options.max_reply,
                    .on_ready = on_ready,
                    .on_read = on_read,
                    .on_closed = on_closed,
                    .dial = &connection->dial},
  };
  belay__connect_slot_init(&connection->turn, on_connect_slot);
  belay__list_init(&connection->urgent);
  belay__list_init(&connection->queue);
  belay__call_batch_init(&connection->batch);
  belay__list_init(&connection->dropped);
  belay__list_init(&connection->redirected);
  belay__transport_init(&connection->transport);
  belay__dial_init(&connection->dial, server->settings->host, &connection->target, &server->handles,
                   on_dialed, on_dial_over);
}

void belay__connection_deinit(belay__connection_t *connection) {
  belay__transport_deinit(&connection->transport);
}

/* ---- end of a connection ---- */

static void remember_lost_peer(belay__connection_t *connection) {
  if (connection->peer.info.epoch == 0)
    return;
  connection->several_lost = connection->lost_peer.info.epoch != 0;
  connection->lost_peer = connection->peer;
  connection->peer.info.epoch = 0;
}

static void on_closed(belay__transport_t *transport, int error) {
  belay__connection_t *connection = connection_of(transport);
  belay_client_t *client = connection->server->settings->client;
  connection->in_flight = 0;
  connection->server->settings->capabilities_known = false;
  if (connection->state == BELAY__CONNECTION_DOWN) {
    /* The connection was retired: no reply was due, so the server executes nothing late. */
    connection->peer.info.epoch = 0;
    return;
  }
  remember_lost_peer(connection);
  belay__connection_set_transport_cause(connection, error);
  if (belay__connection_is_up(connection)) {
    client->stats.drops++;
    belay__connection_was_lost(connection, error);
    if (!connection->is_subscriber)
      belay__client_lost_connection(client);
  } else if (connection->state != BELAY__CONNECTION_CLOSED) {
    belay__connection_attempt_failed(connection, error);
  }
  belay__connection_requeue_dropped(connection, error);
}

/* ---- start of a connection ---- */

static void stop_waiting(belay__connection_t *connection) {
  belay__connect_limiter_leave(&connection->server->settings->host->connect_limiter,
                               &connection->turn);
  belay__timer_stop(belay__connection_loop(connection), BELAY__RANK_OTHER, &connection->timer);
}

/* Starts to connect. The timer bounds the whole attempt, the handshake included. */
static void dial(belay__connection_t *connection) {
  set_timer(connection, connection->server->settings->options.connect_timeout_ms);
  connection->state = BELAY__CONNECTION_DIALING;
  connection->cause_set = false;
  connection->attempt_number = ++connection->server->settings->attempts;
  connection->target = connection->server->target;
  belay__dial_start(&connection->dial, connection->timer.when);
}

static void start_attempt(belay__connection_t *connection) {
  const belay__deployment_ops_t *ops = connection->server->settings->ops;
  connection->connect_requested = false;
  connection->attempt_since = belay__now(belay__connection_loop(connection));
  stop_waiting(connection);
  if (ops->resolve == NULL) {
    dial(connection);
    return;
  }
  connection->state = BELAY__CONNECTION_RESOLVING;
  ops->resolve(connection->server);
}

void belay__connection_on_resolved(belay__connection_t *connection, int error) {
  if (connection->state != BELAY__CONNECTION_RESOLVING)
    return;
  if (error == 0) {
    dial(connection);
    return;
  }
  connection->cause[0] = '\0';
  connection->cause_set = true; /* The client has the text of the resolver. */
  belay__connection_attempt_failed(connection, error);
}

/* Waits for a slot of the connect limiter, after the back-off time. */
static void queue_for_turn(belay__connection_t *connection) {
  belay__timer_stop(belay__connection_loop(connection), BELAY__RANK_OTHER, &connection->timer);
  belay__connect_limiter_queue(&connection->server->settings->host->connect_limiter,
                               &connection->turn, false);
}

/* Goes on with on() if a call, a channel or a probe still needs the connection. Otherwise the
 * connection is DOWN. */
static void continue_if_needed(belay__connection_t *connection,
                               void (*on)(belay__connection_t *connection)) {
  if (connection->queue_len > 0 || connection->connect_requested || connection->channels > 0 ||
      belay__outage_should_probe(connection)) {
    on(connection);
    return;
  }
  connection->state = BELAY__CONNECTION_DOWN;
  belay__outage_stopped_trying(connection);
}

static void on_connect_slot(belay__connect_slot_t *turn) {
  continue_if_needed(BELAY__CONTAINER(turn, belay__connection_t, turn), start_attempt);
}

/* Connects a connection that is DOWN. The first attempt needs no slot of the connect limiter,
 * except where many clients learn of a server at once. */
static void start_connecting(belay__connection_t *connection) {
  if (connection->error == 0 && !connection->server->queue_first_dial) {
    start_attempt(connection);
  } else {
    connection->state = BELAY__CONNECTION_BACKOFF;
    queue_for_turn(connection);
  }
}

static void on_dialed(belay__dial_t *finished, int error, int fd, belay__uv_handle_t *handle) {
  belay__connection_t *connection = BELAY__CONTAINER(finished, belay__connection_t, dial);
  assert(connection->state == BELAY__CONNECTION_DIALING);
  connection->in_flight = 0;
  connection->sent_scripts = (belay__scripts_t){.bits = {0}};
  connection->batch.off = false;
  connection->state = BELAY__CONNECTION_HANDSHAKE;
  if (error == 0)
    error = belay__transport_open(&connection->transport, fd, handle,
                                  connection->server->settings->tls, connection->target.place.host);
  else if (finished->system_error != 0)
    belay__connection_set_cause(connection, "%s", uv_strerror(finished->system_error));
  if (error != 0)
    belay__connection_attempt_failed(connection, error);
}

static void on_handshake_done(belay__connection_t *connection, int error) {
  belay__server_t *server = connection->server;
  belay__settings_t *settings = server->settings;
  char place[BELAY__TARGET_WORDS];
  if (error != 0) {
    belay__transport_drop(&connection->transport, error);
    return;
  }
  settings->client->stats.connects++;
  settings->capabilities_known = false;
  connection->peer.info.epoch = ++settings->epochs;
  connection->error = 0;
  connection->state = BELAY__CONNECTION_UP;
  if (belay__outage_connected(connection))
    server->ops->retry_now(server);
  belay__log(settings->client->belay, BELAY_LOG_INFO, "%s to %s",
             connection->is_subscriber ? "listening" : "connected",
             belay__target_words(&connection->target, place));
  server->ops->up(connection);
  belay__client_connected(settings->client);
  belay__connection_watch(connection);
  belay__connection_send_queued(connection);
}

static void on_ready(belay__transport_t *transport) {
  belay__handshake_start(connection_of(transport), on_handshake_done);
}

/* ---- calls ---- */

static void on_read(belay__transport_t *transport) {
  belay__outage_bytes_read(connection_of(transport));
  belay__connection_send_queued(connection_of(transport));
}

int belay__connection_check_room(const belay__connection_t *connection, bool urgent, size_t n) {
  const belay__settings_t *settings = connection->server->settings;
  if (connection->state == BELAY__CONNECTION_CLOSED)
    return BELAY_ECLOSING;
  if (connection->state == BELAY__CONNECTION_REFUSED)
    return connection->error;
  /* A group of calls that belong together is admitted when nothing else is pending, even above
   * max_pending. */
  size_t pending = connection->in_flight + connection->queue_len;
  bool full = pending > 0 && pending + n > settings->options.max_pending;
  return full && !urgent && settings->options.on_full == BELAY_FULL_REFUSE ? BELAY_EBUSY : 0;
}

int belay__connection_check_fail_fast(belay__connection_t *connection) {
  int error = belay__outage_check(connection);
  if (error != 0)
    belay__connection_connect(connection);
  return error;
}

int belay__connection_submit(belay__connection_t *connection, belay__call_t *const *calls,
                             size_t n) {
  int error = belay__connection_check_room(connection, calls[0]->urgent, n);
  if (error == 0 && calls[0]->fail_fast)
    error = belay__connection_check_fail_fast(connection);
  if (error != 0)
    return error;
  for (size_t i = 0; i < n; i++) {
    *belay__dispatch(calls[i]) = (belay__dispatch_t){.at = connection};
    calls[i]->no_rest = belay__outage_refuses_call(connection, calls[i]);
    belay__list_push(calls[0]->urgent ? &connection->urgent : &connection->queue, &calls[i]->node);
  }
  connection->queue_len += n;
  if (connection->state == BELAY__CONNECTION_DOWN)
    start_connecting(connection);
  belay__connection_send_queued(connection);
  return 0;
}

void belay__connection_enqueue(belay__connection_t *connection, belay__call_t *call) {
  if (connection->state == BELAY__CONNECTION_CLOSED ||
      connection->state == BELAY__CONNECTION_REFUSED) {
    belay__call_refused(call, connection->error != 0 ? connection->error : BELAY_EUNREACHABLE);
    return;
  }
  belay__dispatch(call)->at = connection;
  call->no_rest = belay__outage_refuses_call(connection, call);
  if (call->fail_fast && belay__connection_check_fail_fast(connection) != 0)
    belay__outage_refuse_soon(connection->server);
  belay__list_push(call->urgent ? &connection->urgent : &connection->queue, &call->node);
  connection->queue_len++;
  if (connection->state == BELAY__CONNECTION_DOWN)
    start_connecting(connection);
  if (!call->followed)
    belay__connection_send_queued(connection);
}

int belay__connection_withdraw(belay__connection_t *connection, belay__call_t *call) {
  belay__call_batch_remove(connection, call);
  belay__list_remove(&call->node);
  connection->queue_len--;
  if (connection->state == BELAY__CONNECTION_UP)
    return BELAY_EBUSY; /* The connection is up, but the call was still in the queue. */
  return belay__outage_unsent_error(connection);
}

void belay__connection_retry_now(belay__connection_t *connection) {
  connection->failures = 0;
  if (connection->state == BELAY__CONNECTION_BACKOFF &&
      !belay__connect_slot_is_awaited(&connection->turn))
    on_timer(&connection->timer);
}

void belay__connection_disconnect(belay__connection_t *connection, int error, const char *cause) {
  connection->failures = 0;
  if (connection->state == BELAY__CONNECTION_DIALING) {
    belay__dial_cancel(&connection->dial);
    connection->state = BELAY__CONNECTION_BACKOFF;
    queue_for_turn(connection);
  } else if (connection->transport.ac != NULL) {
    belay__connection_set_cause(connection, "%s", cause);
    belay__transport_break(&connection->transport, error);
  }
}

void belay__connection_drain(belay__connection_t *connection, int error, const char *cause) {
  if (connection->state == BELAY__CONNECTION_UP && connection->in_flight > 0)
    connection->state = BELAY__CONNECTION_DRAINING;
  else if (connection->state != BELAY__CONNECTION_DRAINING)
    belay__connection_disconnect(connection, error, cause);
}

void belay__connection_distrust(belay__connection_t *connection, uint32_t epoch) {
  if (connection->peer.info.epoch == epoch)
    belay__transport_drop(&connection->transport, BELAY_EPROTO);
}

/* ---- timers ---- */

static void on_timer(belay__timer_t *timer) {
  belay__connection_t *connection = BELAY__CONTAINER(timer, belay__connection_t, timer);
  int error;
  switch (connection->state) {
  case BELAY__CONNECTION_DIALING:
    error = belay__dial_expire(&connection->dial);
    belay__connection_set_cause(
        connection, "timed out: %s within %lld ms",
        error == BELAY_ERESOLVE ? "the name was not looked up" : "not connected",
        (long long)connection->server->settings->options.connect_timeout_ms);
    belay__connection_attempt_failed(connection, error);
    break;
  case BELAY__CONNECTION_HANDSHAKE:
    connection->transport.system_error = UV_ETIMEDOUT;
    belay__transport_drop(&connection->transport, BELAY_EUNREACHABLE);
    break;
  case BELAY__CONNECTION_CHECKING:
    belay__connection_set_cause(connection,
                                "timed out: the connection was idle, and PING is not answered");
    belay__transport_drop(&connection->transport, BELAY_EUNREACHABLE);
    break;
  case BELAY__CONNECTION_UP:
  case BELAY__CONNECTION_DRAINING:
    belay__connection_watch(connection);
    break;
  case BELAY__CONNECTION_BACKOFF:
  case BELAY__CONNECTION_REFUSED:
    continue_if_needed(connection, queue_for_turn);
    break;
  case BELAY__CONNECTION_DOWN:
  case BELAY__CONNECTION_RESOLVING:
  case BELAY__CONNECTION_CLOSED:
    break;
  }
}

/* ---- requests other than calls ---- */

void belay__connection_connect(belay__connection_t *connection) {
  connection->connect_requested = connection->connect_requested ||
                                  connection->state == BELAY__CONNECTION_DOWN ||
                                  connection->state == BELAY__CONNECTION_BACKOFF ||
                                  connection->state == BELAY__CONNECTION_REFUSED;
  if (connection->state == BELAY__CONNECTION_DOWN)
    start_connecting(connection);
}

void belay__connection_retry_refused(belay__connection_t *connection) {
  if (connection->state == BELAY__CONNECTION_REFUSED)
    start_attempt(connection);
}

void belay__connection_retire(belay__connection_t *connection) {
  if (connection->state == BELAY__CONNECTION_DIALING)
    belay__dial_cancel(&connection->dial);
  else if (connection->state != BELAY__CONNECTION_RESOLVING &&
           connection->state != BELAY__CONNECTION_HANDSHAKE && !belay__connection_is_up(connection))
    /* In the back-off states the timer goes on, so that a prompt new request still waits its
     * time. */
    return;
  belay__timer_stop(belay__connection_loop(connection), BELAY__RANK_OTHER, &connection->timer);
  connection->connect_requested = false;
  connection->state = BELAY__CONNECTION_DOWN;
  belay__transport_drop(&connection->transport, BELAY_EUNREACHABLE);
}

/* ---- close ---- */

void belay__connection_close(belay__connection_t *connection) {
  stop_waiting(connection);
  belay__dial_close(&connection->dial);
  connection->state = BELAY__CONNECTION_CLOSED;
  belay__transport_drop(&connection->transport, BELAY_ECANCELED);
  belay__connection_refuse_queued(connection, BELAY_ECANCELED);
}

bool belay__connection_is_over(const belay__connection_t *connection) {
  return connection->state == BELAY__CONNECTION_CLOSED && connection->transport.ac == NULL &&
         !belay__dial_busy(&connection->dial);
}
