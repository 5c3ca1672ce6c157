/* Dispatch: calls go to the transport, and replies go to the calls.
 *
 *    queue --room, in order--> transport --reply--> call ends
 *                                |  ^   |
 *                                |  +---+ NOSCRIPT: sent again with the script's text, at once
 *                                |
 *                                +--MOVED, ASK--> the deployment, which queues the call elsewhere
 *
 * Calls that belong together go to the new server together if the first of them is redirected.
 * The replies to the others are awaited and discarded. That is safe because the others have no
 * effect of their own (WAIT). */
#include "redis/conn/dispatch.h"

#include "core/call/publish.h"
#include "core/call/refusal.h"
#include "redis/conn/liveness.h"

static void on_reply(redisAsyncContext *ac, void *object, void *privdata);

/* ---- send ---- */

/* Ignores the reply to ASKING: the reply to the call that follows says all. */
static void on_asking(redisAsyncContext *ac, void *object, void *privdata) {
  (void)privdata;
  (void)belay__transport_take_reply(&belay__connection_of_context(ac)->transport, object);
}

/* Appends a call to the transport. False if the transport did not take it. */
static bool append_call(belay__connection_t *connection, belay__call_t *call) {
  bool had_replies_due = connection->transport.replies_due > 0;
  if (call->publisher != 0)
    belay__publish_as(call, connection->sharded);
  belay__call_bring_script(call, &connection->sent_scripts);
  if (call->asking)
    belay__transport_command(&connection->transport, on_asking, NULL, 1,
                             (const char *const[]){"ASKING"});
  belay__dispatch(call)->offset = connection->transport.appended;
  if (!belay__transport_append(&connection->transport, on_reply, call, call->data, call->len))
    return false;
  connection->in_flight++;
  belay__call_sent(call, connection->peer.info.epoch);
  if (!had_replies_due || !belay__timer_is_set(&connection->timer))
    belay__connection_watch(connection);
  return true;
}

bool belay__connection_dispatch(belay__connection_t *connection, belay__call_t *call) {
  belay__list_remove(&call->node);
  connection->queue_len--;
  if (append_call(connection, call))
    return true;
  belay__list_push_front(call->urgent ? &connection->urgent : &connection->queue, &call->node);
  connection->queue_len++;
  return false;
}

void belay__connection_dispatched(belay__connection_t *connection, bool all) {
  if (all)
    belay__transport_commit(&connection->transport, connection->in_flight);
  else if (belay__transport_is_open(
               &connection->transport)) /* else arrived replies are still read */
    belay__transport_break(&connection->transport, BELAY_ENOMEM);
}

/* ---- redirect ---- */

/* Hands the redirected calls to the deployment. All replies of the group are in. */
static void send_redirected(belay__connection_t *connection) {
  bool may = true;
  for (belay__list_t *node = connection->redirected.next; node != &connection->redirected;
       node = node->next)
    may = may && belay__call_may_redirect(BELAY__CONTAINER(node, belay__call_t, node));
  if (!may) {
    belay__connection_cancel_redirect(connection, NULL);
    return;
  }
  for (belay__list_t *node = connection->redirected.next; node != &connection->redirected;
       node = node->next)
    belay__call_redirect(BELAY__CONTAINER(node, belay__call_t, node));
  connection->server->settings->ops->redirect(connection, &connection->redirect,
                                              &connection->redirected);
}

/* Adds a redirected call, or a call that belongs behind one. */
static void add_redirected(belay__connection_t *connection, belay__call_t *call) {
  belay__list_push(&connection->redirected, &call->node);
  if (!call->followed)
    send_redirected(connection);
}

static void start_redirect(belay__connection_t *connection, belay__call_t *call,
                           const belay__reply_t *reply) {
  const belay__deployment_ops_t *ops = connection->server->settings->ops;
  if (call->as_eval) /* the server redirected the call before it read the script */
    connection->sent_scripts = (belay__scripts_t){.bits = {0}};
  if (ops->redirect == NULL) {
    belay__call_stay(call, reply, BELAY_EMOVED);
  } else if (call->follows ||
             !belay__redirect_parse(reply, &connection->target.place, &connection->redirect)) {
    belay__call_stay(call, reply, BELAY_ECLUSTERDOWN);
    ops->suspect(connection);
  } else {
    add_redirected(connection, call);
  }
}

void belay__connection_cancel_redirect(belay__connection_t *connection,
                                       const belay__reply_t *reply) {
  for (belay__call_t *call; (call = belay__pop_call(&connection->redirected)) != NULL;)
    belay__call_stay(call, reply, BELAY_ECLUSTERDOWN);
}

/* ---- receive ---- */

void belay__connection_resend(belay__connection_t *connection, belay__call_t *call) {
  call->first_sent = 0;
  if (!belay__transport_is_open(&connection->transport) || !append_call(connection, call)) {
    /* The bytes that were sent of this call were refused, so it counts as not sent. */
    belay__dispatch(call)->offset = UINT64_MAX;
    belay__list_push(&connection->dropped, &call->node);
    /* If the peer stopped reading, the replies that it sent before are still read. */
    if (!connection->transport.write_closed)
      belay__transport_drop(&connection->transport, BELAY_ENOMEM);
  }
  belay__transport_commit(&connection->transport, connection->in_flight);
}

/* True if the server has lost a script. It has then lost all of them (SCRIPT FLUSH, restart).
 * Some calls must not fall back to the script's text, so this is noted even for them. */
static bool has_lost_scripts(const belay__reply_t *reply) {
  return reply->type == BELAY__REPLY_ERROR &&
         belay__refusal_find(reply->str, reply->len)->remedy == BELAY__REMEDY_EVAL;
}

/* A command that the user may not run counts as missing until the next connection. The user may
 * have gained the right by then. */
static void note_denied(belay__connection_t *connection, belay__call_t *call,
                        const belay__reply_t *reply) {
  unsigned denied = belay__call_denied(call, reply);
  if (denied == 0)
    return;
  connection->peer.capabilities &= ~denied;
  connection->server->settings->capabilities_known = false;
}

/* True for a temporary refusal of the server. TRYAGAIN is none: it is about the keys of one
 * call. */
static bool is_passing(const belay__reply_t *reply) {
  if (reply->type != BELAY__REPLY_ERROR)
    return false;
  const belay__refusal_t *refusal = belay__refusal_find(reply->str, reply->len);
  return (refusal->remedy == BELAY__REMEDY_RETRY || refusal->remedy == BELAY__REMEDY_RECONNECT) &&
         strcmp(refusal->prefix, "TRYAGAIN") != 0;
}

static void note_refusal(belay__connection_t *connection, const belay__reply_t *reply) {
  const belay__deployment_ops_t *ops = connection->server->settings->ops;
  if (!is_passing(reply))
    connection->refusing_since = 0;
  else if (connection->refusing_since == 0)
    connection->refusing_since = belay__now(&connection->server->settings->host->base);
  else if (ops->redirect != NULL)
    ops->suspect(connection);
}

void belay__connection_finish_call(belay__connection_t *connection, belay__call_t *call,
                                   const belay__reply_t *reply) {
  if (has_lost_scripts(reply))
    connection->sent_scripts = (belay__scripts_t){.bits = {0}};
  note_denied(connection, call, reply);
  note_refusal(connection, reply);
  switch (belay__call_reply(call, reply)) {
  case BELAY__VERDICT_OVER:
    if (connection->state == BELAY__CONNECTION_UP)
      connection->failures = 0;
    break;
  case BELAY__VERDICT_RECONNECT:
    if (connection->state == BELAY__CONNECTION_UP)
      connection->state = BELAY__CONNECTION_DRAINING;
    break;
  case BELAY__VERDICT_REDIRECT:
    start_redirect(connection, call, reply);
    break;
  case BELAY__VERDICT_RESEND:
    belay__connection_resend(connection, call);
    break;
  }
}

void belay__connection_replies_done(belay__connection_t *connection) {
  if (connection->state == BELAY__CONNECTION_DRAINING && connection->in_flight == 0)
    belay__transport_drop(&connection->transport, BELAY_EREADONLY);
}

static void on_reply(redisAsyncContext *ac, void *object, void *privdata) {
  belay__connection_t *connection = belay__connection_of_context(ac);
  belay__call_t *call = privdata;
  const belay__reply_t *reply = belay__transport_take_reply(&connection->transport, object);
  /* The transport is closing. belay__connection_requeue_dropped() decides the outcome of the
   * call. */
  if (reply == NULL) {
    belay__list_push(&connection->dropped, &call->node);
    return;
  }
  connection->in_flight--;
  if (belay__list_empty(&connection->redirected))
    belay__connection_finish_call(connection, call, reply);
  else
    add_redirected(connection, call);
  belay__connection_replies_done(connection);
}
