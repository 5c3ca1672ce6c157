#include "redis/conn/queue.h"

#include "redis/conn/batch.h"
#include "redis/conn/dispatch.h"
#include "redis/conn/liveness.h"

/* ---- while there is a connection ------------------------------------------------------------- */

/* The call that may be handed over next: an urgent one always, another if there is room. */
static belay__call_t *next_call(const belay__link_t *link) {
  if (!belay__list_empty(&link->urgent))
    return BELAY__CONTAINER(link->urgent.next, belay__call_t, node);
  if (!belay__list_empty(&link->queue) && !belay__wire_is_full(&link->wire) &&
      link->in_flight + link->convoy.len < link->cable->trunk->max_pending)
    return BELAY__CONTAINER(link->queue.next, belay__call_t, node);
  return NULL;
}

/* Hands a call over, and those that belong behind it; false if the wire did not take all of them. */
static bool hand_over_all(belay__link_t *link, belay__call_t *call) {
  belay__list_t *list = call->urgent ? &link->urgent : &link->queue;
  for (;;) {
    bool followed = call->followed;
    belay__convoy_give_way(link, call);
    if (!belay__wire_is_open(&link->wire))
      return false;
    if (!belay__link_hand_over(link, call))
      return false;
    if (!followed || belay__list_empty(list))
      return true;
    call = BELAY__CONTAINER(list->next, belay__call_t, node);
  }
}

/* What is urgent overtakes what is not: it undoes nothing that is still queued, because that was withdrawn. */
void belay__link_pump(belay__link_t *link) {
  for (belay__call_t *call; (call = next_call(link)) != NULL;) {
    if (link->state == BELAY__LINK_UP)
      belay__link_check_if_idle(link);
    if (link->state != BELAY__LINK_UP || !belay__wire_is_open(&link->wire))
      return;
    if (!belay__convoy_take(link, call))
      belay__link_handed_over(link, hand_over_all(link, call));
  }
}

/* ---- while there is none --------------------------------------------------------------------- */

void belay__link_surrender(belay__link_t *link, belay__list_t *out) {
  belay__convoy_disperse(link);
  belay__list_splice_front(out, &link->queue);
  belay__list_splice_front(out, &link->urgent);
  link->queue_len = 0;
}

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
    bool sent = belay__trip(call)->offset < link->wire.written, follows = call->follows;
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
