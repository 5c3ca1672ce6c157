#include "redis/conn/call_queue.h"

#include "redis/conn/batch.h"
#include "redis/conn/dispatch.h"
#include "redis/conn/liveness.h"

/* ---- connected ---- */

/* Returns the next call to send: an urgent call always, another call if there is room. NULL if
 * there is none. */
static belay__call_t *next_call(const belay__connection_t *connection) {
  if (!belay__list_empty(&connection->urgent))
    return BELAY__CONTAINER(connection->urgent.next, belay__call_t, node);
  if (!belay__list_empty(&connection->queue) && !belay__transport_is_full(&connection->transport) &&
      connection->in_flight + connection->batch.len <
          connection->server->settings->options.max_pending)
    return BELAY__CONTAINER(connection->queue.next, belay__call_t, node);
  return NULL;
}

/* Dispatches a call and the calls that belong behind it. False if the transport did not take all
 * of them. */
static bool hand_over_all(belay__connection_t *connection, belay__call_t *call) {
  belay__list_t *list = call->urgent ? &connection->urgent : &connection->queue;
  for (;;) {
    bool followed = call->followed;
    belay__call_batch_yield_to(connection, call);
    if (!belay__transport_is_open(&connection->transport))
      return false;
    if (!belay__connection_dispatch(connection, call))
      return false;
    if (!followed || belay__list_empty(list))
      return true;
    call = BELAY__CONTAINER(list->next, belay__call_t, node);
  }
}

/* Urgent calls, which undo, overtake the others. No undo can overtake the call that it undoes,
 * because that call was withdrawn from the queue before. */
void belay__connection_send_queued(belay__connection_t *connection) {
  for (belay__call_t *call; (call = next_call(connection)) != NULL;) {
    if (connection->state == BELAY__CONNECTION_UP)
      belay__connection_check_if_idle(connection);
    if (connection->state != BELAY__CONNECTION_UP ||
        !belay__transport_is_open(&connection->transport))
      return;
    if (!belay__call_batch_add(connection, call))
      belay__connection_dispatched(connection, hand_over_all(connection, call));
  }
}

/* ---- not connected ---- */

void belay__connection_take_queued(belay__connection_t *connection, belay__list_t *out) {
  belay__call_batch_disband(connection);
  belay__list_splice_front(out, &connection->queue);
  belay__list_splice_front(out, &connection->urgent);
  connection->queue_len = 0;
}

void belay__connection_refuse_queued(belay__connection_t *connection, int error) {
  belay__list_t refused;
  belay__list_init(&refused);
  belay__call_batch_disband(connection);
  belay__list_splice_front(&refused, &connection->queue);
  belay__list_splice_front(&refused, &connection->urgent);
  for (belay__call_t *call; (call = belay__pop_call(&refused)) != NULL;) {
    connection->queue_len--; /* The callback may withdraw other calls of this list. */
    belay__call_refused(call, error);
  }
}

/* ---- the connection ended ---- */

/* Refuses calls at the front of the queue that belong behind a call that was sent: they are
 * useless on another connection. */
static void refuse_followers(belay__connection_t *connection, belay__list_t *list) {
  while (!belay__list_empty(list)) {
    belay__call_t *call = BELAY__CONTAINER(list->next, belay__call_t, node);
    if (!call->follows)
      return;
    belay__list_remove(&call->node);
    connection->queue_len--;
    belay__call_refused(call, BELAY_EUNREACHABLE);
  }
}

void belay__connection_requeue_dropped(belay__connection_t *connection, int error) {
  belay__list_t again, urgent;
  belay__list_init(&again);
  belay__list_init(&urgent);
  bool kept = false; /* True if the call before was queued again. */
  belay__connection_cancel_redirect(connection, NULL);
  belay__call_batch_disband(connection);
  for (belay__call_t *call; (call = belay__pop_call(&connection->dropped)) != NULL;) {
    bool sent = belay__dispatch(call)->offset < connection->transport.written,
         follows = call->follows;
    bool queue = belay__call_dropped(call, sent, error);
    if (queue && ((follows && !kept) || connection->state == BELAY__CONNECTION_CLOSED)) {
      /* The call before it, to which it belongs, is not sent again. */
      belay__call_refused(call, BELAY_EUNREACHABLE);
      queue = false;
    }
    if (queue) {
      belay__list_push(call->urgent ? &urgent : &again, &call->node);
      connection->queue_len++;
    }
    kept = queue;
  }
  belay__list_splice_front(&connection->queue, &again);
  belay__list_splice_front(&connection->urgent, &urgent);
  refuse_followers(connection, &connection->queue);
  refuse_followers(connection, &connection->urgent);
}
