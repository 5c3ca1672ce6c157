#include "redis/conn/reconnect_delay.h"

#include <string.h>

#include "core/loop/backoff.h"
#include "redis/conn/cause.h"
#include "redis/conn/outage.h"
#include "redis/conn/call_queue.h"

/* Longest delay for a subscriber that the server or a proxy refuses, usually because it lacks
 * RESP3. That does not change until the server or the proxy is replaced. */
#define REFUSED_SUBSCRIBER_NS (UINT64_C(300) * 1000 * BELAY__MS)

/* ---- delay ---- */

/* Returns the time until the next attempt, in ns. The upper bound is half of the time since the
 * first failure, but within reconnect_min_ms and reconnect_max_ms. The delay is drawn from 0 to
 * the bound. It is drawn from half of the bound to the bound if the error is lasting or another
 * connection tries often.
 *
 * So a server that was away briefly is used soon after its return, and one that is away for long
 * is tried rarely. */
static uint64_t choose_delay(belay__connection_t *connection, int error) {
  belay_t *belay = belay__connection_loop(connection);
  const belay__settings_t *settings = connection->server->settings;
  uint64_t now = belay__now(belay), most = (uint64_t)settings->options.reconnect_max_ms * BELAY__MS;
  bool lasting = belay__error_is_lasting(error);
  bool spares = !lasting && belay__outage_may_retry_rarely(connection);
  uint64_t first =
      lasting || spares ? most : (uint64_t)settings->options.reconnect_min_ms * BELAY__MS;
  if (connection->failures == 0)
    connection->trouble_since = now;
  uint64_t limit = (now - connection->trouble_since) / 2;
  if (connection->is_subscriber && error == BELAY_EREFUSED && most < REFUSED_SUBSCRIBER_NS)
    most = REFUSED_SUBSCRIBER_NS;
  if (limit < first)
    limit = first;
  if (limit > most)
    limit = most;
  uint64_t least = lasting || spares ? limit / 2 : 0;
  return belay__delay_draw(belay, (belay__delay_t){least + 1, limit});
}

/* Waits before the next attempt. With a lasting error the queued calls are refused, otherwise
 * they wait. */
static void back_off(belay__connection_t *connection, int error) {
  belay_t *belay = belay__connection_loop(connection);
  if (connection->state == BELAY__CONNECTION_CLOSED)
    return;
  bool lasting = belay__error_is_lasting(error);
  uint64_t delay = choose_delay(connection, error);
  connection->error = error;
  connection->failures++;
  connection->state = lasting ? BELAY__CONNECTION_REFUSED : BELAY__CONNECTION_BACKOFF;
  belay__timer_set(belay, BELAY__RANK_OTHER, &connection->timer, belay__now(belay) + delay);
  if (lasting)
    belay__connection_refuse_queued(connection, error);
  connection->server->ops->lost(connection, error);
}

/* ---- reports ---- */

/* Makes the cause the client's last refusal. Returns true if it differs from the one before. If
 * no cause was set, the text of the server or the resolver becomes the cause. */
static bool explain(belay__connection_t *connection, int error) {
  belay_client_t *client = connection->server->settings->client;
  bool is_new = error != connection->error;
  if (!connection->cause_set) {
    bool explained = client->refused.error == error;
    belay__connection_set_cause(connection, "%s",
                                explained ? client->refused.text : belay_strerror(error));
  } else if (connection->cause[0] == '\0') {
    return is_new; /* The client has the text of the resolver. */
  } else if (belay__error_is_lasting(error)) {
    is_new = is_new ||
             strncmp(connection->cause, client->refused.text, sizeof connection->cause - 1) != 0;
    belay__client_refused(client, error, connection->cause, strlen(connection->cause));
  } else {
    belay__connection_report_cause(connection, error);
  }
  return is_new;
}

void belay__connection_attempt_failed(belay__connection_t *connection, int error) {
  belay_client_t *client = connection->server->settings->client;
  char place[BELAY__TARGET_WORDS];
  bool logged = connection->state == BELAY__CONNECTION_RESOLVING; /* by the resolver */
  client->stats.connect_errors++;
  bool lasting = belay__error_is_lasting(error), is_new = explain(connection, error);
  belay__target_words(&connection->target, place);
  if (!logged && lasting && is_new) /* once for each cause */
    belay__log(client->belay, BELAY_LOG_ERROR, "no connection to %s: %s: %s", place,
               belay_strerror(error), client->refused.text);
  else if (!logged && !lasting)
    belay__log(client->belay, BELAY_LOG_WARNING, "no connection to %s: %s", place,
               connection->cause);
  belay__outage_failed(connection, error);
  back_off(connection, error);
}

/* Counts the calls from the transport that end as unknown. */
static size_t count_unknown(belay__connection_t *connection) {
  size_t n = 0;
  for (belay__list_t *node = connection->dropped.next; node != &connection->dropped;
       node = node->next) {
    belay__call_t *call = BELAY__CONTAINER(node, belay__call_t, node);
    n += call->state == BELAY__CALL_SENT &&
         belay__dispatch(call)->offset < connection->transport.written;
  }
  return n;
}

void belay__connection_was_lost(belay__connection_t *connection, int error) {
  belay_t *belay = belay__connection_loop(connection);
  char place[BELAY__TARGET_WORDS];
  size_t n = count_unknown(connection);
  belay__target_words(&connection->target, place);
  if (n == 0) {
    belay__log(belay, BELAY_LOG_INFO, "connection to %s lost: %s", place, connection->cause);
  } else {
    belay__log(belay, BELAY_LOG_WARNING, "connection to %s lost: %s; %zu call%s as unknown", place,
               connection->cause, n, n == 1 ? " ends" : "s end");
    belay__connection_report_cause(connection, BELAY_EUNKNOWN);
  }
  back_off(connection, error);
}
