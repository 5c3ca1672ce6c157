#include "redis/conn/batch.h"

#include <stdio.h>
#include <string.h>

#include "core/call/build.h"
#include "core/call/parts.h"
#include "core/call/publish.h"
#include "core/call/refusal.h"
#include "redis/conn/dispatch.h"
#include "redis/conn/liveness.h"

static void on_flush(belay__flush_t *flush);

static belay__call_t *call_of(belay__list_t *node) {
  return BELAY__CONTAINER(node, belay__call_t, node);
}

void belay__convoy_init(belay__convoy_t *convoy) {
  *convoy = (belay__convoy_t){.flush = {.run = on_flush}};
  belay__list_init(&convoy->calls);
  belay__list_init(&convoy->flush.node);
}

/* The last one has left it. */
static void reset(belay__convoy_t *convoy) {
  belay__host_flush_cancel(&convoy->flush);
  convoy->len = convoy->bytes = 0;
  convoy->affinities = 0;
}

void belay__convoy_disperse(belay__link_t *link) {
  while (!belay__list_empty(&link->convoy.calls)) {
    belay__call_t *call = call_of(link->convoy.calls.prev);
    belay__list_remove(&call->node);
    belay__list_push_front(call->urgent ? &link->urgent : &link->queue, &call->node);
  }
  reset(&link->convoy);
}

void belay__convoy_forget(belay__link_t *link, const belay__call_t *call) {
  belay__list_t *calls = &link->convoy.calls, *node = calls->next;
  while (node != calls && node != &call->node)
    node = node->next;
  link->convoy.len -= node != calls;
}

/* ---- there --------------------------------------------------------------------------------------------- */

static void on_replies(redisAsyncContext *ac, void *object, void *privdata);

/* The command's words before the keys; hiredis looks at the first of them, and so is given them in one piece. */
static bool begin(belay__link_t *link, const belay__script_t *many, size_t n,
                  belay__call_t *first) {
  const belay__convoy_t *convoy = &link->convoy;
  char text[128];
  size_t words = 4 + n * (convoy->keys + convoy->args);
  bool known = belay__scripts_add(&link->brought, many);
  int len = known ? snprintf(text, sizeof text, "*%zu\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n", words,
                             many->sha1)
                  : snprintf(text, sizeof text, "*%zu\r\n$4\r\nEVAL\r\n$%zu\r\n", words, many->len);
  if (!belay__wire_append(&link->wire, on_replies, first, text, (size_t)len))
    return false;
  if (!known) {
    belay__wire_extend(&link->wire, many->text, many->len);
    belay__wire_extend(&link->wire, "\r\n", 2);
  }
  return true;
}

static void add_number(belay__wire_t *wire, size_t value) {
  char digits[24], text[40];
  int n = snprintf(digits, sizeof digits, "%zu", value);
  int len = snprintf(text, sizeof text, "$%d\r\n%s\r\n", n, digits);
  belay__wire_extend(wire, text, (size_t)len);
}

/* Appends the command; false if nothing of it was. */
static bool append(belay__link_t *link, size_t n) {
  belay__list_t *calls = &link->convoy.calls;
  belay__call_parts_t parts[BELAY__CONVOY_MAX];
  belay__call_t *first = call_of(calls->next);
  belay__list_t *node = calls->next;
  for (size_t i = 0; i < n; i++, node = node->next) {
    belay__call_t *call = call_of(node);
    if (call->publisher != 0)
      belay__publish_as(call, link->sharded);
    belay__trip(call)->offset = link->wire.appended;
    parts[i] = belay__call_parts(call);
  }
  if (!begin(link, first->script->many, n, first))
    return false;
  add_number(&link->wire, n * link->convoy.keys);
  for (size_t i = 0; i < n; i++)
    belay__wire_extend(&link->wire, parts[i].keys, parts[i].keys_len);
  add_number(&link->wire, n);
  for (size_t i = 0; i < n; i++)
    belay__wire_extend(&link->wire, parts[i].args, parts[i].args_len);
  link->wire.unflushed += (unsigned)n - 1; /* as much work for the server as so many */
  return true;
}

static void send_together(belay__link_t *link, size_t n) {
  belay_client_t *client = link->cable->trunk->client;
  belay__list_t *calls = &link->convoy.calls;
  bool in_debt = link->wire.owed > 0, sending = client->sending != 0;
  if (!append(link, n)) {
    belay__convoy_disperse(link);
    belay__wire_break(&link->wire, BELAY_ENOMEM);
    return;
  }
  if (!sending) /* one look at the clock for all of them */
    client->sending = belay__now(client->belay);
  for (belay__list_t *node = calls->next; node != calls; node = node->next)
    belay__call_sent(call_of(node), link->peer.server.epoch);
  if (!sending)
    client->sending = 0;
  client->stats.batched += n;
  belay__list_remove(calls); /* the ring is left */
  link->queue_len -= n;
  link->in_flight += n;
  reset(&link->convoy);
  if (!in_debt || !belay__timer_is_set(&link->timer))
    belay__link_watch(link);
  belay__wire_check(&link->wire);
}

/* So few that it would not be faster. The connection may turn out to be gone on the way: what was not sent stays where it
 * is put back, in order. */
static void send_each(belay__link_t *link, size_t n) {
  belay__call_t *calls[BELAY__CONVOY_MIN];
  belay__list_t *node = link->convoy.calls.next;
  for (size_t i = 0; i < n; i++, node = node->next)
    calls[i] = call_of(node);
  belay__convoy_disperse(link);
  for (size_t i = 0; i < n && belay__wire_is_open(&link->wire); i++)
    belay__link_handed_over(link, belay__link_hand_over(link, calls[i]));
}

static void leave(belay__link_t *link) {
  size_t n = link->convoy.len;
  if (link->state != BELAY__LINK_UP || !belay__wire_is_open(&link->wire))
    belay__convoy_disperse(link);
  else if (n < BELAY__CONVOY_MIN)
    send_each(link, n);
  else
    send_together(link, n);
}

static void on_flush(belay__flush_t *flush) {
  leave(BELAY__CONTAINER(flush, belay__link_t, convoy.flush));
}

/* ---- who waits ----------------------------------------------------------------------------------------- */

/* What refers to the call before it, or cannot be sent again if all are refused, goes by itself. */
static bool may_join(const belay__link_t *link, belay__call_t *call) {
  return call->script != NULL && call->script->many != NULL && !link->convoy.off &&
         !call->follows && !call->followed && !call->once && !belay__trip(call)->asking &&
         call->needs == 0;
}

static bool fits(const belay__link_t *link, const belay__call_t *call,
                 const belay__call_parts_t *parts) {
  const belay__convoy_t *convoy = &link->convoy;
  const belay__call_t *first = call_of(convoy->calls.next);
  bool by_slots = link->cable->trunk->ops->redirect != NULL;
  return convoy->bytes + parts->keys_len + parts->args_len <= BELAY__CONVOY_BYTES &&
         first->script == call->script && convoy->keys == parts->keys_count &&
         convoy->args == parts->args_count &&
         (!by_slots || belay__call_slot(first) == belay__call_slot(call));
}

static uint64_t bit_of(const belay__call_t *call) {
  return UINT64_C(1) << (call->affinity ^ call->affinity >> 14) % 64;
}

bool belay__convoy_take(belay__link_t *link, belay__call_t *call) {
  belay__convoy_t *convoy = &link->convoy;
  if (!may_join(link, call))
    return false;
  belay__call_parts_t parts = belay__call_parts(call);
  if (convoy->len > 0 && !fits(link, call, &parts))
    leave(link);
  if (!belay__wire_is_open(&link->wire))
    return false;
  if (convoy->len == 0) {
    convoy->keys = parts.keys_count;
    convoy->args = parts.args_count;
    belay__host_flush_soon(link->cable->trunk->host, &convoy->flush);
  }
  belay__list_remove(&call->node);
  belay__list_push(&convoy->calls, &call->node);
  convoy->affinities |= bit_of(call);
  convoy->bytes += parts.keys_len + parts.args_len;
  if (++convoy->len == BELAY__CONVOY_MAX)
    leave(link);
  return true;
}

void belay__convoy_give_way(belay__link_t *link, const belay__call_t *call) {
  belay__list_t *calls = &link->convoy.calls;
  if (link->convoy.len > 0 && belay__call_has_keys(call)) { /* any of them may be another's */
    leave(link);
    return;
  }
  if ((link->convoy.affinities & bit_of(call)) == 0)
    return;
  for (belay__list_t *node = calls->next; node != calls; node = node->next)
    if (call_of(node)->affinity == call->affinity) {
      leave(link);
      return;
    }
}

/* ---- and back ------------------------------------------------------------------------------------------ */

/* The whole command was refused: nothing was executed, unless the script itself was stopped, behind its first line. Then
 * that was in what runs the calls, behind the last line of theirs, so that none of them can know. */
static bool is_stopped(const belay__refusal_t *refusal, const belay__reply_t *reply) {
  return refusal->maybe && belay__refusal_line(reply->str, reply->len) != 1;
}

/* What passes by itself concerns all of them; else it may be only one that is refused. TRYAGAIN is said of keys of which
 * some are there and others are on their way: each by itself is in one place. */
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

static void refuse_all(belay__link_t *link, belay__list_t *calls, const belay__reply_t *reply) {
  const belay__refusal_t *refusal = belay__refusal_find(reply->str, reply->len);
  bool for_all = is_stopped(refusal, reply) || concerns_all(refusal);
  if (refusal->remedy == BELAY__REMEDY_NONE) {
    link->convoy.off = true;
    belay__log(link->cable->trunk->client->belay, BELAY_LOG_INFO,
               "calls go one by one from now on, since several were refused: %s",
               belay_strerror(refusal->error));
  }
  link->brought = (belay__scripts_t){.bits = {0}}; /* it was not read, or is forgotten */
  for (belay__list_t *node; (node = belay__list_pop(calls)) != NULL;) {
    belay__call_t *call = call_of(node);
    link->in_flight--;
    if (for_all || call->state == BELAY__CALL_LATE)
      belay__link_answer(link, call, reply);
    else
      belay__link_resend(link, call);
  }
}

/* Whoever hears his reply may end the connection: what is said on it is not believed any more then. */
static void answer_all(belay__link_t *link, const redisContext *c, belay__list_t *calls,
                       const belay__reply_t *reply) {
  for (size_t i = 0; i < reply->count && !(c->flags & REDIS_FREEING); i++) {
    link->in_flight--;
    belay__link_answer(link, call_of(belay__list_pop(calls)), reply->items[i]);
  }
}

static void drop_all(belay__link_t *link, belay__list_t *calls) {
  for (belay__list_t *node; (node = belay__list_pop(calls)) != NULL;)
    belay__list_push(&link->dropped, node);
}

static size_t length(const belay__list_t *calls) {
  size_t n = 0;
  for (const belay__list_t *node = calls->next; node != calls; node = node->next)
    n++;
  return n;
}

static void on_replies(redisAsyncContext *ac, void *object, void *privdata) {
  belay__link_t *link = belay__link_of(ac);
  belay__list_t calls;
  belay__list_init(&calls);
  belay__list_insert_before(&((belay__call_t *)privdata)->node, &calls);
  const belay__reply_t *reply = belay__wire_reply(&link->wire, object);
  if (reply == NULL) { /* the wire is ending; its end judges */
    drop_all(link, &calls);
    return;
  }
  if (reply->type == BELAY__REPLY_ERROR) {
    refuse_all(link, &calls, reply);
  } else if (reply->type == BELAY__REPLY_ARRAY && reply->count == length(&calls)) {
    answer_all(link, &ac->c, &calls, reply);
  } else {
    link->wire.reader.refused = "an answer to several that is not one for each";
    belay__wire_drop(&link->wire, BELAY_EPROTO);
  }
  drop_all(link, &calls); /* who was not answered */
  belay__link_answered(link);
}
