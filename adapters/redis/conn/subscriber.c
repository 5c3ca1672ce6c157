/* A channel:
 *
 *   listen --> QUEUED --batch sent--> ASKED --confirmed--> UP
 *                ^ ^ ^                 |  |                |
 *                | | |                 |  +--its turn: refused--> REFUSED
 *                | | +--refused with---+                   |        |
 *                | |    others: alone                      |        |
 *                | +--------------connection lost----------+--------+
 *                +--asked for again, a few of them every reconnect_max--+
 *
 *   any --unlisten--> gone; the server is told where it was ASKED or UP
 *
 * What is sent is batches, each followed by a PING; so the server owes an answer to everything, and if it is
 * silent the link finds out. It answers in order: one confirmation for each subscription, or one error for each
 * command, and a PONG behind each batch. Subscriptions are numbered as they are sent, and their answers as they
 * come. So the answer to one that was given up is never taken for that to a later one of the same name, and an
 * error is always that of a certain command. Where the server's words do not fit, the connection is dropped.
 *
 * Nothing here is called back by hiredis: it takes everything for a push (reader.h). */
#include "redis/conn/subscriber.h"

#include <assert.h>
#include <belay/topic.h>

#include "core/call/refusal.h"
#include "core/loop/backoff.h"
#include "redis/conn/connection.h"
#include "redis/conn/liveness.h"

#define BATCH_MAX 128                                  /* channels */
#define MESSAGE_ROOM (BELAY_TOPIC_MESSAGE_MAX + 65536) /* with its channel's name */
#define PROBES 16 /* refused ones that are asked for again at a time */

typedef enum state { QUEUED, ASKED, UP, REFUSED } state_t;

static void on_flush(belay__flush_t *flush);
static void on_again(belay__timer_t *timer);
static void on_pushed(belay__wire_t *wire, const belay__reply_t *reply);

void belay__listener_init(belay__listener_t *listener, belay__cable_t *cable) {
  belay__link_init(&listener->link, cable, false);
  listener->link.listens = true;
  belay__wire_t *wire = &listener->link.wire;
  if (wire->max_reply < MESSAGE_ROOM)
    wire->max_reply = wire->reader.max_reply = MESSAGE_ROOM;
  wire->pushed = on_pushed;
  listener->flush.run = on_flush;
  listener->again.fire = on_again;
  belay__list_init(&listener->flush.node);
  belay__list_init(&listener->queue);
  belay__list_init(&listener->asked);
  belay__list_init(&listener->up);
  belay__list_init(&listener->refused);
}

static belay__channel_t *channel_at(belay__list_t *node) {
  return BELAY__CONTAINER(node, belay__channel_t, node.list);
}

static void move(belay__channel_t *channel, belay__list_t *to, state_t state) {
  belay__list_remove(&channel->node.list);
  belay__list_push(to, &channel->node.list);
  channel->node.state = state;
}

static void queue(belay__listener_t *listener, belay__channel_t *channel) {
  move(channel, &listener->queue, QUEUED);
  belay__host_flush_soon(listener->link.cable->trunk->host, &listener->flush);
}

static void queue_all(belay__listener_t *listener, belay__list_t *from) {
  while (!belay__list_empty(from))
    queue(listener, channel_at(from->next));
}

/* ---- batches ------------------------------------------------------------------------------------------- */

static belay__batch_t *batch_at(belay__listener_t *listener, size_t i) {
  size_t size = sizeof listener->batches / sizeof *listener->batches;
  return &listener->batches[(listener->first + i) % size];
}

/* The one that is being answered; NULL if none is. */
static belay__batch_t *head(belay__listener_t *listener) {
  return listener->count == 0 ? NULL : batch_at(listener, 0);
}

static belay__batch_t *add_batch(belay__listener_t *listener, int kind) {
  assert(listener->count < sizeof listener->batches / sizeof *listener->batches);
  belay__batch_t *batch = batch_at(listener, listener->count++);
  *batch = (belay__batch_t){.kind = kind, .last = listener->numbers};
  return batch;
}

static void end_batch(belay__listener_t *listener, belay__batch_t *batch) {
  static const char *const argv[] = {"PING"};
  batch->pings++;
  batch->last = listener->numbers;
  belay__wire_say(&listener->link.wire, 1, argv, NULL, true);
  belay__link_owed(&listener->link);
}

static void forget_batches(belay__listener_t *listener) {
  listener->first = listener->count = listener->asks = 0;
  listener->numbers = listener->heard = 0;
}

/* ---- asking -------------------------------------------------------------------------------------------- */

/* Asks for the first channels of the queue. */
static void ask(belay__listener_t *listener) {
  const char *argv[BATCH_MAX + 1] = {listener->link.sharded ? "SSUBSCRIBE" : "SUBSCRIBE"};
  size_t lens[BATCH_MAX + 1] = {listener->link.sharded ? 10 : 9}, n = 0;
  belay__wire_t *wire = &listener->link.wire;
  bool alone = channel_at(listener->queue.next)->node.alone;
  while (n < BATCH_MAX && !belay__list_empty(&listener->queue)) {
    belay__channel_t *channel = channel_at(listener->queue.next);
    if (channel->node.alone != alone)
      break;
    channel->node.number = ++listener->numbers;
    move(channel, &listener->asked, ASKED);
    n++;
    argv[n] = channel->name;
    lens[n] = channel->len;
  }
  alone =
      alone || listener->link.sharded || n == 1; /* a shard is a slot's: several may not be one's */
  if (!alone)
    belay__wire_say(wire, n + 1, argv, lens, false);
  for (size_t i = 1; i <= n && alone; i++)
    belay__wire_say(wire, 2, (const char *[]){argv[0], argv[i]}, (size_t[]){lens[0], lens[i]},
                    false);
  listener->asks++;
  end_batch(listener, add_batch(listener, alone ? BELAY__BATCH_ALONE : BELAY__BATCH_TOGETHER));
}

static void on_flush(belay__flush_t *flush) {
  belay__listener_t *listener = BELAY__CONTAINER(flush, belay__listener_t, flush);
  belay__link_t *link = &listener->link;
  if (link->channels > 0)
    belay__link_want(link);
  while (belay__link_is_up(link) && belay__wire_is_open(&link->wire) &&
         !belay__list_empty(&listener->queue) && listener->asks < BELAY__LISTENER_ASKS)
    ask(listener);
}

void belay__listener_listen(belay__listener_t *listener, belay__channel_t *channel) {
  if (belay__list_empty(&channel->node.list)) {
    channel->node.at = listener;
    channel->node.alone = channel->node.probe = false;
    listener->link.channels++;
    queue(listener, channel);
  } else if (channel->node.state == REFUSED) {
    queue(listener, channel);
  }
}

/* Good-bye to one that the server may think we listen to. */
static void leave(belay__listener_t *listener, const belay__channel_t *channel) {
  const char *const argv[] = {listener->link.sharded ? "SUNSUBSCRIBE" : "UNSUBSCRIBE",
                              channel->name};
  const size_t lens[] = {listener->link.sharded ? 12 : 11, channel->len};
  if (!belay__wire_is_open(&listener->link.wire))
    return;
  belay__batch_t *batch = listener->count == 0 ? NULL : batch_at(listener, listener->count - 1);
  if (batch == NULL || batch->kind != BELAY__BATCH_LEAVE)
    batch = add_batch(listener, BELAY__BATCH_LEAVE);
  batch->left++;
  belay__wire_say(&listener->link.wire, 2, argv, lens, false);
  end_batch(listener, batch);
}

void belay__listener_unlisten(belay__listener_t *listener, belay__channel_t *channel) {
  state_t state = channel->node.state;
  channel->node.at = NULL;
  belay__list_remove(&channel->node.list);
  if (--listener->link.channels == 0) {
    belay__timer_stop(belay__link_loop(&listener->link), BELAY__RANK_OTHER, &listener->again);
    belay__link_retire(&listener->link);
  } else if (state == ASKED || state == UP) {
    leave(listener, channel);
  }
}

void belay__listener_close(belay__listener_t *listener) {
  belay__timer_stop(belay__link_loop(&listener->link), BELAY__RANK_OTHER, &listener->again);
  belay__host_flush_cancel(&listener->flush);
  belay__link_close(&listener->link);
}

/* ---- the connection ------------------------------------------------------------------------------------ */

/* Why: what the server says does not fit. */
static void drop(belay__listener_t *listener, int error, const char *why) {
  if (why != NULL)
    belay__log(belay__link_loop(&listener->link), BELAY_LOG_ERROR, "connection dropped: %s", why);
  belay__wire_break(&listener->link.wire, error);
}

static void check_place(belay__listener_t *listener) {
  belay__link_t *link = &listener->link;
  const belay__server_t *here = &link->peer.server, *there = &listener->calls_at;
  if (link->dialed > listener->calls_dialed || here->run_id_len == 0 || there->run_id_len == 0 ||
      belay__server_is(here, there->run_id, there->run_id_len))
    return;
  if (belay__link_is_up(link))
    drop(listener, BELAY_EUNREACHABLE, NULL);
  else
    belay__link_try_again(link);
}

void belay__listener_met(belay__listener_t *listener, const belay__link_t *link) {
  if (link->dialed < listener->calls_dialed)
    return;
  listener->calls_at = link->peer.server;
  listener->calls_dialed = link->dialed;
  check_place(listener);
}

void belay__listener_up(belay__listener_t *listener) {
  forget_batches(listener);
  listener->link.wire.reader.pushed = true;
  belay__host_flush_soon(listener->link.cable->trunk->host, &listener->flush);
  check_place(listener);
}

typedef struct loss {
  const belay__listener_t *listener;
  int error;
} loss_t;

static void tell_lost(belay__channel_t *channel, void *arg) {
  const loss_t *loss = arg;
  if (channel->node.at == loss->listener)
    belay__channel_lost(channel, loss->error);
}

void belay__listener_lost(belay__listener_t *listener, int error) {
  forget_batches(listener);
  belay__timer_stop(belay__link_loop(&listener->link), BELAY__RANK_OTHER, &listener->again);
  queue_all(listener, &listener->asked);
  queue_all(listener, &listener->up);
  queue_all(listener, &listener->refused); /* alone, as before */
  belay__channels_each(listener->link.cable->trunk->client, tell_lost,
                       &(loss_t){.listener = listener, .error = error});
}

/* ---- answers ------------------------------------------------------------------------------------------- */

/* The channel whose turn it is, if it is still wanted. */
static belay__channel_t *answered(belay__listener_t *listener) {
  if (belay__list_empty(&listener->asked))
    return NULL;
  belay__channel_t *channel = channel_at(listener->asked.next);
  assert(channel->node.number >= listener->heard);
  return channel->node.number == listener->heard ? channel : NULL;
}

static bool is_named(const belay__channel_t *channel, const belay__reply_t *name) {
  return channel->len == name->len && memcmp(channel->name, name->str, name->len) == 0;
}

static void on_subscribed(belay__listener_t *listener, const belay__reply_t *name) {
  const belay__batch_t *batch = head(listener);
  if (batch == NULL || batch->kind == BELAY__BATCH_LEAVE || listener->heard == batch->last) {
    drop(listener, BELAY_EPROTO, "a subscription that nobody asked for");
    return;
  }
  listener->heard++;
  belay__channel_t *channel = answered(listener);
  if (channel == NULL)
    return;
  if (!is_named(channel, name)) {
    drop(listener, BELAY_EPROTO, "a subscription to another channel");
    return;
  }
  if (channel->node.probe)
    queue_all(listener, &listener->refused); /* something has changed */
  channel->node.alone = channel->node.probe = false;
  move(channel, &listener->up, UP);
  belay__channel_confirmed(channel);
}

/* The channel's slot has gone elsewhere. Where to is what is answered if it is asked for again. */
static void on_taken_away(belay__listener_t *listener, belay__channel_t *channel) {
  queue(listener, channel);
  belay__channel_lost(channel, BELAY_ECLUSTERDOWN);
}

/* The answer to a good-bye; or nobody said one, and the channel is taken away. */
static void on_unsubscribed(belay__listener_t *listener, const belay__reply_t *name) {
  belay__batch_t *batch = head(listener);
  belay_client_t *client = listener->link.cable->trunk->client;
  belay__channel_t *channel = belay__channel_find(client, name->str, name->len);
  bool sharded = listener->link.sharded;
  if (sharded && channel != NULL && channel->node.at == listener && channel->node.state == UP)
    on_taken_away(listener, channel);
  else if (batch != NULL && batch->kind == BELAY__BATCH_LEAVE && batch->left > 0)
    batch->left--;
  else if (!sharded) /* else it was left, and taken away too */
    drop(listener, BELAY_EUNREACHABLE, NULL);
}

static void ask_again_later(belay__listener_t *listener) {
  uint64_t most = (uint64_t)listener->link.cable->trunk->reconnect_max_ms * BELAY__MS;
  belay_t *belay = belay__link_loop(&listener->link);
  if (belay__timer_is_set(&listener->again))
    return;
  belay__timer_set(belay, BELAY__RANK_OTHER, &listener->again,
                   belay__now(belay) + belay__period(belay, most));
}

static void on_again(belay__timer_t *timer) {
  belay__listener_t *listener = BELAY__CONTAINER(timer, belay__listener_t, again);
  for (int i = 0; i < PROBES && !belay__list_empty(&listener->refused); i++) {
    belay__channel_t *channel = channel_at(listener->refused.next);
    channel->node.probe = true;
    queue(listener, channel);
  }
  if (!belay__list_empty(&listener->refused))
    ask_again_later(listener);
}

/* The owner of the trunk sees that it is listened to there. */
static void tell_moved(belay__listener_t *listener, const belay__reply_t *reply) {
  belay__link_t *link = &listener->link;
  const belay__trunk_ops_t *ops = link->cable->trunk->ops;
  belay__list_t none;
  belay__list_init(&none);
  if (belay__slotmap_redirect(reply, &link->target.place, &link->redirect))
    ops->redirect(link, &link->redirect, &none);
  else
    ops->doubt(link);
}

/* One was refused for itself. */
static void refuse(belay__listener_t *listener, const belay__reply_t *reply, int error) {
  listener->heard++;
  belay__channel_t *channel = answered(listener);
  const belay__trunk_t *trunk = listener->link.cable->trunk;
  bool moved = error == BELAY_EMOVED && trunk->ops->redirect != NULL;
  if (moved)
    tell_moved(listener, reply);
  if (channel == NULL)
    return;
  belay__client_refused(trunk->client, error, reply->str, reply->len);
  channel->node.alone = true;
  channel->node.probe = false;
  move(channel, &listener->refused, REFUSED);
  ask_again_later(listener);
  belay__channel_lost(channel, moved ? BELAY_ECLUSTERDOWN : error);
}

/* Several were refused together, perhaps because of one of them. */
static void part(belay__listener_t *listener, uint64_t last) {
  listener->heard = last;
  while (!belay__list_empty(&listener->asked)) {
    belay__channel_t *channel = channel_at(listener->asked.next);
    if (channel->node.number > last)
      break;
    channel->node.alone = true;
    queue(listener, channel);
  }
}

static void on_error(belay__listener_t *listener, const belay__reply_t *reply) {
  const belay__refusal_t *refusal = belay__refusal_find(reply->str, reply->len);
  belay__batch_t *batch = head(listener);
  bool leaves = batch != NULL && batch->kind == BELAY__BATCH_LEAVE;
  /* others may be served */
  bool of_slot = refusal->error == BELAY_ECLUSTERDOWN || refusal->error == BELAY_EMOVED;
  if (leaves && of_slot &&
      listener->link.sharded) /* perhaps taken away by then, which was heard as the answer */
    batch->left -= batch->left > 0;
  else if (batch == NULL || listener->link.state == BELAY__LINK_CHECKING ||
           (refusal->remedy != BELAY__REMEDY_NONE && !of_slot) ||
           (leaves ? batch->left == 0 : listener->heard == batch->last))
    drop(listener, refusal->error, NULL); /* it is the PING's; or a server that cannot now */
  else if (leaves)
    batch->left--; /* what is not wanted comes all the same, and is not heard */
  else if (batch->kind == BELAY__BATCH_TOGETHER)
    part(listener, batch->last);
  else
    refuse(listener, reply, refusal->error);
}

static void on_pong(belay__listener_t *listener) {
  belay__link_t *link = &listener->link;
  belay__batch_t *batch = head(listener);
  link->wire.owed--;
  bool checked = link->state == BELAY__LINK_CHECKING;
  if (!checked && (batch == NULL || listener->heard < batch->last)) {
    drop(listener, BELAY_EPROTO, "a subscription was not answered");
    return;
  }
  if (!checked && --batch->pings == 0) {
    listener->asks -= batch->kind != BELAY__BATCH_LEAVE;
    listener->count--;
    listener->first = (listener->first + 1) % (sizeof listener->batches / sizeof *batch);
  }
  belay__link_paid(link);
  if (!belay__list_empty(&listener->queue))
    belay__host_flush_soon(link->cable->trunk->host, &listener->flush);
}

/* ---- what is said -------------------------------------------------------------------------------------- */

static bool is_string(const belay__reply_t *reply) {
  return reply->type == BELAY__REPLY_STRING;
}

/* Words of another kind are not for us, and do no harm. */
static void on_words(belay__listener_t *listener, const belay__reply_t *reply) {
  belay__reply_t **words = reply->items;
  if (reply->count < 1 || !is_string(words[0])) {
    drop(listener, BELAY_EPROTO, "a push without a name");
    return;
  }
  size_t skip = listener->link.sharded && words[0]->str[0] == 's'; /* smessage, ssubscribe */
  const belay__reply_t kind = {
      .type = BELAY__REPLY_STRING, .str = words[0]->str + skip, .len = words[0]->len - skip};
  bool message = belay__reply_is(&kind, "message", 7);
  bool on = belay__reply_is(&kind, "subscribe", 9), off = belay__reply_is(&kind, "unsubscribe", 11);
  if (!message && !on && !off)
    return;
  if (reply->count != 3 || !is_string(words[1]) || (message && !is_string(words[2])))
    drop(listener, BELAY_EPROTO, "a malformed push");
  else if (message)
    belay__channel_message(listener->link.cable->trunk->client, words[1]->str, words[1]->len,
                           words[2]->str, words[2]->len);
  else if (on)
    on_subscribed(listener, words[1]);
  else
    on_unsubscribed(listener, words[1]);
}

static void on_pushed(belay__wire_t *wire, const belay__reply_t *reply) {
  belay__listener_t *listener = BELAY__CONTAINER(wire, belay__listener_t, link.wire);
  if (!belay__link_is_up(&listener->link))
    drop(listener, BELAY_EPROTO, "a push before it was agreed on");
  else if (reply->type == BELAY__REPLY_ARRAY)
    on_words(listener, reply);
  else if (reply->type == BELAY__REPLY_ERROR)
    on_error(listener, reply);
  else if (belay__reply_is(reply, "PONG", 4))
    on_pong(listener);
  else
    drop(listener, BELAY_EPROTO, "a reply of an unexpected type");
}
