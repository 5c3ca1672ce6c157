#include "redis/conn/batch.h"

#include <stdio.h>
#include <string.h>

#include "core/call/build.h"
#include "core/call/publish.h"
#include "core/call/refusal.h"
#include "redis/conn/dispatch.h"
#include "redis/conn/liveness.h"

static void on_flush(belay__flush_t *flush);

static belay__call_t *call_of(belay__list_t *node) {
  return BELAY__CONTAINER(node, belay__call_t, node);
}

void belay__call_batch_init(belay__call_batch_t *batch) {
  *batch = (belay__call_batch_t){.flush = {.run = on_flush}};
  belay__list_init(&batch->calls);
  belay__list_init(&batch->flush.node);
}

/* Empties the batch after its last call left it. */
static void reset(belay__call_batch_t *batch) {
  belay__host_flush_cancel(&batch->flush);
  batch->len = batch->bytes = 0;
  batch->affinities = 0;
}

void belay__call_batch_disband(belay__connection_t *connection) {
  while (!belay__list_empty(&connection->batch.calls)) {
    belay__call_t *call = call_of(connection->batch.calls.prev);
    belay__list_remove(&call->node);
    belay__list_push_front(call->urgent ? &connection->urgent : &connection->queue, &call->node);
  }
  reset(&connection->batch);
}

void belay__call_batch_remove(belay__connection_t *connection, const belay__call_t *call) {
  belay__list_t *calls = &connection->batch.calls, *node = calls->next;
  while (node != calls && node != &call->node)
    node = node->next;
  connection->batch.len -= node != calls;
}

/* ---- send ---- */

static void on_replies(redisAsyncContext *ac, void *object, void *privdata);

/* True if all calls have the same arguments. */
static bool is_uniform(const belay__call_parts_t *parts, size_t n) {
  for (size_t i = 1; i < n; i++)
    if (parts[i].args_len != parts[0].args_len ||
        memcmp(parts[i].args, parts[0].args, parts[0].args_len) != 0)
      return false;
  return true;
}

/* Writes the command's words before the keys, in one piece: hiredis parses the first word of the
 * appended text. */
static bool start_command(belay__connection_t *connection, size_t words, belay__call_t *first) {
  const belay__script_t *many = first->script->many;
  char text[128];
  bool known = belay__scripts_add(&connection->sent_scripts, many);
  int len = known ? snprintf(text, sizeof text, "*%zu\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n", words,
                             many->sha1)
                  : snprintf(text, sizeof text, "*%zu\r\n$4\r\nEVAL\r\n$%zu\r\n", words, many->len);
  if (!belay__transport_append(&connection->transport, on_replies, first, text, (size_t)len))
    return false;
  if (!known) {
    belay__transport_extend(&connection->transport, many->text, many->len);
    belay__transport_extend(&connection->transport, "\r\n", 2);
  }
  return true;
}

static void add_number(belay__transport_t *transport, long value) {
  char digits[24], text[40];
  int n = snprintf(digits, sizeof digits, "%ld", value);
  int len = snprintf(text, sizeof text, "$%d\r\n%s\r\n", n, digits);
  belay__transport_extend(transport, text, (size_t)len);
}

/* Appends the command to the transport. False if nothing was appended. */
static bool append_command(belay__connection_t *connection, size_t n) {
  belay__list_t *calls = &connection->batch.calls;
  belay__call_parts_t parts[BELAY__CALL_BATCH_MAX];
  belay__call_t *first = call_of(calls->next);
  belay__list_t *node = calls->next;
  for (size_t i = 0; i < n; i++, node = node->next) {
    belay__call_t *call = call_of(node);
    if (call->publisher != 0)
      belay__publish_as(call, connection->sharded);
    belay__dispatch(call)->offset = connection->transport.appended;
    parts[i] = belay__call_parts(call);
  }
  bool uniform = is_uniform(parts, n);
  size_t keys = n * connection->batch.keys, lists = uniform ? 1 : n;
  if (!start_command(connection, 4 + keys + lists * connection->batch.args, first))
    return false;
  add_number(&connection->transport, (long)keys);
  for (size_t i = 0; i < n; i++)
    belay__transport_extend(&connection->transport, parts[i].keys, parts[i].keys_len);
  add_number(&connection->transport, uniform ? -(long)n : (long)n);
  for (size_t i = 0; i < lists; i++)
    belay__transport_extend(&connection->transport, parts[i].args, parts[i].args_len);
  connection->transport.unflushed += (unsigned)n - 1;
  return true;
}

static void send_together(belay__connection_t *connection, size_t n) {
  belay_client_t *client = connection->server->settings->client;
  belay__list_t *calls = &connection->batch.calls;
  bool had_replies_due = connection->transport.replies_due > 0, sending = client->sending != 0;
  if (!append_command(connection, n)) {
    belay__call_batch_disband(connection);
    belay__transport_break(&connection->transport, BELAY_ENOMEM);
    return;
  }
  if (!sending) /* One clock reading serves all calls of the batch. */
    client->sending = belay__now(client->belay);
  for (belay__list_t *node = calls->next; node != calls; node = node->next)
    belay__call_sent(call_of(node), connection->peer.info.epoch);
  if (!sending)
    client->sending = 0;
  client->stats.batched += n;
  belay__list_remove(calls); /* The calls stay linked in a ring without a head. */
  connection->queue_len -= n;
  connection->in_flight += n;
  reset(&connection->batch);
  if (!had_replies_due || !belay__timer_is_set(&connection->timer))
    belay__connection_watch(connection);
  belay__transport_commit(&connection->transport, connection->in_flight);
}

/* Sends the calls one by one: a batch of fewer than BELAY__CALL_BATCH_MIN calls is not faster.
 * The connection may end on the way. The calls that were not sent are then in their queues
 * again, in order. */
static void send_each(belay__connection_t *connection, size_t n) {
  belay__call_t *calls[BELAY__CALL_BATCH_MIN];
  belay__list_t *node = connection->batch.calls.next;
  for (size_t i = 0; i < n; i++, node = node->next)
    calls[i] = call_of(node);
  belay__call_batch_disband(connection);
  for (size_t i = 0; i < n && belay__transport_is_open(&connection->transport); i++)
    belay__connection_dispatched(connection, belay__connection_dispatch(connection, calls[i]));
}

static void send_batch(belay__connection_t *connection) {
  size_t n = connection->batch.len;
  if (connection->state != BELAY__CONNECTION_UP ||
      !belay__transport_is_open(&connection->transport))
    belay__call_batch_disband(connection);
  else if (n < BELAY__CALL_BATCH_MIN)
    send_each(connection, n);
  else
    send_together(connection, n);
}

static void on_flush(belay__flush_t *flush) {
  send_batch(BELAY__CONTAINER(flush, belay__connection_t, batch.flush));
}

/* ---- collect ---- */

/* True if the call may be part of a batch. A call that belongs to the call before it may not,
 * and neither may a call that must not be sent twice: a refused batch is sent again. */
static bool may_join(const belay__connection_t *connection, belay__call_t *call) {
  return call->script != NULL && call->script->many != NULL && !connection->batch.off &&
         !call->follows && !call->followed && !call->no_retry && !call->asking && call->needs == 0;
}

static bool fits(const belay__connection_t *connection, const belay__call_t *call,
                 const belay__call_parts_t *parts) {
  const belay__call_batch_t *batch = &connection->batch;
  const belay__call_t *first = call_of(batch->calls.next);
  bool by_slots = connection->server->settings->ops->redirect != NULL;
  return batch->bytes + parts->keys_len + parts->args_len <= BELAY__CALL_BATCH_BYTES &&
         first->script == call->script && batch->keys == parts->keys_count &&
         batch->args == parts->args_count &&
         (!by_slots || belay__call_slot(first) == belay__call_slot(call));
}

static uint64_t bit_of(const belay__call_t *call) {
  return UINT64_C(1) << (call->route ^ call->route >> 14) % 64;
}

/* Queues the batch's flush ahead of the transport's, so that both need one write. */
static void flush_before_write(belay__connection_t *connection) {
  belay__host_t *host = connection->server->settings->host;
  belay__flush_t *write = &connection->transport.flush;
  bool queued = !belay__list_empty(&write->node);
  belay__host_flush_cancel(write);
  belay__host_flush_soon(host, &connection->batch.flush);
  if (queued)
    belay__host_flush_soon(host, write);
}

bool belay__call_batch_add(belay__connection_t *connection, belay__call_t *call) {
  belay__call_batch_t *batch = &connection->batch;
  if (!may_join(connection, call))
    return false;
  belay__call_parts_t parts = belay__call_parts(call);
  if (batch->len > 0 && !fits(connection, call, &parts))
    send_batch(connection);
  if (!belay__transport_is_open(&connection->transport))
    return false;
  if (batch->len == 0) {
    batch->keys = parts.keys_count;
    batch->args = parts.args_count;
    flush_before_write(connection);
  }
  belay__list_remove(&call->node);
  belay__list_push(&batch->calls, &call->node);
  batch->affinities |= bit_of(call);
  batch->bytes += parts.keys_len + parts.args_len;
  if (++batch->len == BELAY__CALL_BATCH_MAX)
    send_batch(connection);
  return true;
}

void belay__call_batch_yield_to(belay__connection_t *connection, const belay__call_t *call) {
  belay__list_t *calls = &connection->batch.calls;
  /* Any of its keys may be the key of a call in the batch. */
  if (connection->batch.len > 0 && belay__call_has_keys(call)) {
    send_batch(connection);
    return;
  }
  if ((connection->batch.affinities & bit_of(call)) == 0)
    return;
  for (belay__list_t *node = calls->next; node != calls; node = node->next)
    if (call_of(node)->route == call->route) {
      send_batch(connection);
      return;
    }
}

/* ---- receive ---- */

/* True if the batch was stopped while it ran (SCRIPT KILL or a time limit). Any other error of
 * the whole command means that nothing was executed. A stop happens between the scripts of two
 * calls, so no call can tell whether its script ran. */
static bool is_stopped(const belay__refusal_t *refusal, const belay__reply_t *reply) {
  return refusal->may_have_written && belay__refusal_line(reply->str, reply->len) != 1;
}

/* True if an error of the whole command applies to each call. Temporary errors (BUSY, LOADING)
 * do. Any other error may be about one call. TRYAGAIN does not apply to all: it means that some
 * keys were moved to another server, but each call alone has its key on one server. */
static bool concerns_all(const belay__refusal_t *refusal) {
  switch (refusal->remedy) {
  case BELAY__REMEDY_NONE:
  case BELAY__REMEDY_EVAL:
  case BELAY__REMEDY_REDIRECT:
    return false;
  default:
    return strcmp(refusal->prefix, "TRYAGAIN") != 0;
  }
}

static void refuse_all(belay__connection_t *connection, belay__list_t *calls,
                       const belay__reply_t *reply) {
  const belay__refusal_t *refusal = belay__refusal_find(reply->str, reply->len);
  bool for_all = is_stopped(refusal, reply) || concerns_all(refusal);
  if (refusal->remedy == BELAY__REMEDY_NONE) {
    connection->batch.off = true;
    belay__log(connection->server->settings->client->belay, BELAY_LOG_INFO,
               "calls go one by one from now on, since several were refused: %s",
               belay_strerror(refusal->error));
  }
  /* The server did not read the script, or has lost it. */
  connection->sent_scripts = (belay__scripts_t){.bits = {0}};
  for (belay__call_t *call; (call = belay__pop_call(calls)) != NULL;) {
    connection->in_flight--;
    if (for_all || call->state == BELAY__CALL_LATE || !belay__call_restore(call))
      belay__connection_finish_call(connection, call, reply);
    else
      belay__connection_resend(connection, call);
  }
}

/* A reply callback may close the connection. The remaining replies of the batch are then
 * ignored. */
static void answer_all(belay__connection_t *connection, const redisContext *c, belay__list_t *calls,
                       const belay__reply_t *reply) {
  for (size_t i = 0; i < reply->count && !(c->flags & REDIS_FREEING); i++) {
    connection->in_flight--;
    belay__connection_finish_call(connection, belay__pop_call(calls), reply->items[i]);
  }
}

static void drop_all(belay__connection_t *connection, belay__list_t *calls) {
  for (belay__list_t *node; (node = belay__list_pop(calls)) != NULL;)
    belay__list_push(&connection->dropped, node);
}

static size_t count_calls(const belay__list_t *calls) {
  size_t n = 0;
  for (const belay__list_t *node = calls->next; node != calls; node = node->next)
    n++;
  return n;
}

static void on_replies(redisAsyncContext *ac, void *object, void *privdata) {
  belay__connection_t *connection = belay__connection_of_context(ac);
  belay__list_t calls;
  belay__list_init(&calls);
  belay__list_insert_before(&((belay__call_t *)privdata)->node, &calls);
  const belay__reply_t *reply = belay__transport_take_reply(&connection->transport, object);
  /* The transport is closing. belay__connection_requeue_dropped() decides the outcome of the
   * calls. */
  if (reply == NULL) {
    drop_all(connection, &calls);
    return;
  }
  if (reply->type == BELAY__REPLY_ERROR) {
    refuse_all(connection, &calls, reply);
  } else if (reply->type == BELAY__REPLY_ARRAY && reply->count == count_calls(&calls)) {
    answer_all(connection, &ac->c, &calls, reply);
  } else {
    connection->transport.reader.rejection = "an answer to several that is not one for each";
    belay__transport_drop(&connection->transport, BELAY_EPROTO);
  }
  drop_all(connection, &calls); /* the calls without a reply */
  belay__connection_replies_done(connection);
}
