#include "redis/conn/requeue.h"

#include "redis/conn/batch.h"
#include "redis/conn/dispatch.h"

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
  for (belay__list_t *node; (node = belay__list_pop(&connection->dropped)) != NULL;) {
    belay__call_t *call = BELAY__CONTAINER(node, belay__call_t, node);
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
