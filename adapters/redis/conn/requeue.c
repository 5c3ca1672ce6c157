/* What becomes of the calls of a link when there is no connection. */
#include "redis/conn/connection.h"

void belay__link_refuse(belay__link_t *link, int error) {
  belay__list_t refused;
  belay__list_init(&refused);
  belay__convoy_disperse(link);
  belay__list_splice_front(&refused, &link->queue);
  belay__list_splice_front(&refused, &link->urgent);
  for (belay__list_t *node; (node = belay__list_pop(&refused)) != NULL;) {
    link->queue_len--; /* whoever is told may withdraw others of these */
    belay__call_refused(BELAY__CONTAINER(node, belay__call_t, node), error);
  }
}

/* A call that belongs behind one that was handed over is of no use on another connection. */
static void refuse_followers(belay__link_t *link, belay__list_t *list) {
  while (!belay__list_empty(list)) {
    belay__call_t *call = BELAY__CONTAINER(list->next, belay__call_t, node);
    if (!call->follows)
      return;
    belay__list_remove(&call->node);
    link->queue_len--;
    belay__call_refused(call, BELAY_EUNREACHABLE);
  }
}

void belay__link_settle(belay__link_t *link, int error) {
  belay__list_t again, urgent;
  belay__list_init(&again);
  belay__list_init(&urgent);
  bool kept = false; /* the call before was queued again */
  belay__link_stay(link, NULL);
  belay__convoy_disperse(link);
  for (belay__list_t *node; (node = belay__list_pop(&link->dropped)) != NULL;) {
    belay__call_t *call = BELAY__CONTAINER(node, belay__call_t, node);
    bool sent = call->offset < link->wire.written, follows = call->follows;
    bool queue = belay__call_dropped(call, sent, error);
    if (queue && ((follows && !kept) || link->state == BELAY__LINK_CLOSED)) {
      belay__call_refused(call, BELAY_EUNREACHABLE); /* what it belongs behind is not sent again */
      queue = false;
    }
    if (queue) {
      belay__list_push(call->urgent ? &urgent : &again, &call->node);
      link->queue_len++;
    }
    kept = queue;
  }
  belay__list_splice_front(&link->queue, &again);
  belay__list_splice_front(&link->urgent, &urgent);
  refuse_followers(link, &link->queue);
  refuse_followers(link, &link->urgent);
}
