/* What a link carries: calls are handed to the wire, and their replies to them.
 *
 *   queue --room, in order--> the wire --reply--> over
 *                               |  ^   |
 *                               |  +---+ NOSCRIPT: the script's text, at once
 *                               |
 *                               +--MOVED, ASK--> told to the trunk's owner, who queues it elsewhere
 *
 * Calls that belong behind one another are all queued elsewhere if the first is refused so; for that the answers to the
 * others are waited for, and thrown away. That is possible as none of the others has an effect on its own: such as WAIT.
 */
#include "redis/conn/dispatch.h"

#include "core/call/publish.h"
#include "core/call/refusal.h"
#include "redis/conn/liveness.h"

static void on_reply(redisAsyncContext *ac, void *object, void *privdata);

/* ---- there --------------------------------------------------------------------------------------------- */

/* To this there is nothing to say: what it was said for is answered next. */
static void on_asking(redisAsyncContext *ac, void *object, void *privdata) {
  (void)privdata;
  (void)belay__wire_reply(&belay__link_of(ac)->wire, object);
}

/* Hands a call to the wire; false if it did not take it. */
static bool append(belay__link_t *link, belay__call_t *call) {
  bool in_debt = link->wire.owed > 0;
  if (call->publisher != 0)
    belay__publish_as(call, link->sharded);
  belay__call_bring_script(call, &link->brought);
  if (belay__trip(call)->asking)
    belay__wire_command(&link->wire, on_asking, NULL, 1, (const char *const[]){"ASKING"});
  belay__trip(call)->offset = link->wire.appended;
  if (!belay__wire_append(&link->wire, on_reply, call, call->data, call->len))
    return false;
  link->in_flight++;
  belay__call_sent(call, link->peer.server.epoch);
  if (!in_debt || !belay__timer_is_set(&link->timer))
    belay__link_watch(link);
  return true;
}

bool belay__link_hand_over(belay__link_t *link, belay__call_t *call) {
  belay__list_remove(&call->node);
  link->queue_len--;
  if (append(link, call))
    return true;
  belay__list_push_front(call->urgent ? &link->urgent : &link->queue, &call->node);
  link->queue_len++;
  return false;
}

void belay__link_handed_over(belay__link_t *link, bool all) {
  if (all)
    belay__wire_check(&link->wire);
  else if (belay__wire_is_open(&link->wire)) /* else what it has said is still read */
    belay__wire_break(&link->wire, BELAY_ENOMEM);
}

/* ---- elsewhere ----------------------------------------------------------------------------------------- */

/* All is answered that is to go elsewhere together. */
static void redirect(belay__link_t *link) {
  bool may = true;
  for (belay__list_t *node = link->parted.next; node != &link->parted; node = node->next)
    may = may && belay__call_may_redirect(BELAY__CONTAINER(node, belay__call_t, node));
  if (!may) {
    belay__link_stay(link, NULL);
    return;
  }
  for (belay__list_t *node = link->parted.next; node != &link->parted; node = node->next)
    belay__call_redirect(BELAY__CONTAINER(node, belay__call_t, node));
  link->cable->trunk->ops->redirect(link, &link->redirect, &link->parted);
}

/* It is to go elsewhere, or belongs behind what is. */
static void part(belay__link_t *link, belay__call_t *call) {
  belay__list_push(&link->parted, &call->node);
  if (!call->followed)
    redirect(link);
}

static void part_first(belay__link_t *link, belay__call_t *call, const belay__reply_t *reply) {
  const belay__trunk_ops_t *ops = link->cable->trunk->ops;
  if (call->as_eval)
    link->brought = (belay__scripts_t){.bits = {0}}; /* it was not read */
  if (ops->redirect == NULL) {
    belay__call_stay(call, reply, BELAY_EMOVED);
  } else if (call->follows ||
             !belay__slotmap_redirect(reply, &link->target.place, &link->redirect)) {
    belay__call_stay(call, reply, BELAY_ECLUSTERDOWN);
    ops->doubt(link);
  } else {
    part(link, call);
  }
}

void belay__link_stay(belay__link_t *link, const belay__reply_t *reply) {
  for (belay__list_t *node; (node = belay__list_pop(&link->parted)) != NULL;)
    belay__call_stay(BELAY__CONTAINER(node, belay__call_t, node), reply, BELAY_ECLUSTERDOWN);
}

/* ---- and back ------------------------------------------------------------------------------------------ */

void belay__link_resend(belay__link_t *link, belay__call_t *call) {
  call->first_sent = 0;
  if (!belay__wire_is_open(&link->wire) || !append(link, call)) {
    belay__trip(call)->offset = UINT64_MAX; /* what was sent of it was refused */
    belay__list_push(&link->dropped, &call->node);
    if (!link->wire.cut) /* else what it has said is still read */
      belay__wire_drop(&link->wire, BELAY_ENOMEM);
  }
  belay__wire_check(&link->wire);
}

/* A server that does not know a script any more knows none. Not every call may fall back to its text. */
static bool has_forgotten(const belay__reply_t *reply) {
  return reply->type == BELAY__REPLY_ERROR &&
         belay__refusal_find(reply->str, reply->len)->remedy == BELAY__REMEDY_EVAL;
}

/* A command that the user may not run counts as missing, whatever the server has: he may be let run it before the next
 * connection is made. */
static void note_denied(belay__link_t *link, belay__call_t *call, const belay__reply_t *reply) {
  unsigned denied = belay__call_denied(call, reply);
  if (denied == 0)
    return;
  link->peer.can &= ~denied;
  link->cable->trunk->can_known = false;
}

/* TRYAGAIN is about keys that are being moved. */
static bool is_passing(const belay__reply_t *reply) {
  if (reply->type != BELAY__REPLY_ERROR)
    return false;
  const belay__refusal_t *refusal = belay__refusal_find(reply->str, reply->len);
  return (refusal->remedy == BELAY__REMEDY_RETRY || refusal->remedy == BELAY__REMEDY_RECONNECT) &&
         strcmp(refusal->prefix, "TRYAGAIN") != 0;
}

static void note_refusal(belay__link_t *link, const belay__reply_t *reply) {
  const belay__trunk_ops_t *ops = link->cable->trunk->ops;
  if (!is_passing(reply))
    link->refusing_since = 0;
  else if (link->refusing_since == 0)
    link->refusing_since = belay__now(&link->cable->trunk->host->base);
  else if (ops->redirect != NULL)
    ops->doubt(link);
}

void belay__link_answer(belay__link_t *link, belay__call_t *call, const belay__reply_t *reply) {
  if (has_forgotten(reply))
    link->brought = (belay__scripts_t){.bits = {0}};
  note_denied(link, call, reply);
  note_refusal(link, reply);
  switch (belay__call_reply(call, reply)) {
  case BELAY__VERDICT_OVER:
    if (link->state == BELAY__LINK_UP)
      link->failures = 0;
    break;
  case BELAY__VERDICT_RECONNECT:
    if (link->state == BELAY__LINK_UP)
      link->state = BELAY__LINK_DRAINING;
    break;
  case BELAY__VERDICT_REDIRECT:
    part_first(link, call, reply);
    break;
  case BELAY__VERDICT_RESEND:
    belay__link_resend(link, call);
    break;
  }
}

void belay__link_answered(belay__link_t *link) {
  if (link->state == BELAY__LINK_DRAINING && link->in_flight == 0)
    belay__wire_drop(&link->wire, BELAY_EREADONLY);
}

static void on_reply(redisAsyncContext *ac, void *object, void *privdata) {
  belay__link_t *link = belay__link_of(ac);
  belay__call_t *call = privdata;
  const belay__reply_t *reply = belay__wire_reply(&link->wire, object);
  if (reply == NULL) { /* the wire is ending; its end judges */
    belay__list_push(&link->dropped, &call->node);
    return;
  }
  link->in_flight--;
  if (belay__list_empty(&link->parted))
    belay__link_answer(link, call, reply);
  else
    part(link, call);
  belay__link_answered(link);
}
