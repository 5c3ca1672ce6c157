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
 * silent the connection finds out. It answers in order: one confirmation for each subscription, or one error for each
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

#define GROUP_MAX 128                                  /* channels */
#define MESSAGE_ROOM (BELAY_TOPIC_MESSAGE_MAX + 65536) /* with its channel's name */
#define PROBES 16 /* refused ones that are asked for again at a time */

typedef enum state { QUEUED, ASKED, UP, REFUSED } state_t;

static void on_flush(belay__flush_t *flush);
static void on_retry(belay__timer_t *timer);
static void on_push(belay__transport_t *transport, const belay__reply_t *reply);

void belay__subscriber_init(belay__subscriber_t *subscriber, belay__server_t *server) {
  belay__connection_init(&subscriber->connection, server, false);
  subscriber->connection.is_subscriber = true;
  belay__transport_t *transport = &subscriber->connection.transport;
  if (transport->max_reply < MESSAGE_ROOM)
    transport->max_reply = transport->reader.max_reply = MESSAGE_ROOM;
  transport->on_push = on_push;
  subscriber->flush.run = on_flush;
  subscriber->retry_timer.fire = on_retry;
  belay__list_init(&subscriber->flush.node);
  belay__list_init(&subscriber->queue);
  belay__list_init(&subscriber->asked);
  belay__list_init(&subscriber->up);
  belay__list_init(&subscriber->refused);
}

static belay__channel_t *channel_at(belay__list_t *node) {
  return BELAY__CONTAINER(node, belay__channel_t, node.list);
}

static void move(belay__channel_t *channel, belay__list_t *to, state_t state) {
  belay__list_remove(&channel->node.list);
  belay__list_push(to, &channel->node.list);
  channel->node.state = state;
}

static void queue(belay__subscriber_t *subscriber, belay__channel_t *channel) {
  move(channel, &subscriber->queue, QUEUED);
  belay__host_flush_soon(subscriber->connection.server->settings->host, &subscriber->flush);
}

static void queue_all(belay__subscriber_t *subscriber, belay__list_t *from) {
  while (!belay__list_empty(from))
    queue(subscriber, channel_at(from->next));
}

/* ---- batches ------------------------------------------------------------------------------------------- */

static belay__subscription_group_t *group_at(belay__subscriber_t *subscriber, size_t i) {
  size_t size = sizeof subscriber->groups / sizeof *subscriber->groups;
  return &subscriber->groups[(subscriber->first + i) % size];
}

/* The one that is being answered; NULL if none is. */
static belay__subscription_group_t *head(belay__subscriber_t *subscriber) {
  return subscriber->count == 0 ? NULL : group_at(subscriber, 0);
}

static belay__subscription_group_t *add_group(belay__subscriber_t *subscriber, int kind) {
  assert(subscriber->count < sizeof subscriber->groups / sizeof *subscriber->groups);
  belay__subscription_group_t *group = group_at(subscriber, subscriber->count++);
  *group = (belay__subscription_group_t){.kind = kind, .last = subscriber->last_number};
  return group;
}

static void end_group(belay__subscriber_t *subscriber, belay__subscription_group_t *group) {
  static const char *const argv[] = {"PING"};
  group->pings++;
  group->last = subscriber->last_number;
  belay__transport_send(&subscriber->connection.transport, 1, argv, NULL, true);
  belay__connection_reply_expected(&subscriber->connection);
}

static void forget_groups(belay__subscriber_t *subscriber) {
  subscriber->first = subscriber->count = subscriber->open_groups = 0;
  subscriber->last_number = subscriber->answered_count = 0;
}

/* ---- asking -------------------------------------------------------------------------------------------- */

/* Asks for the first channels of the queue. */
static void send_group(belay__subscriber_t *subscriber) {
  const char *argv[GROUP_MAX + 1] = {subscriber->connection.sharded ? "SSUBSCRIBE" : "SUBSCRIBE"};
  size_t lens[GROUP_MAX + 1] = {subscriber->connection.sharded ? 10 : 9}, n = 0;
  belay__transport_t *transport = &subscriber->connection.transport;
  bool alone = channel_at(subscriber->queue.next)->node.alone;
  while (n < GROUP_MAX && !belay__list_empty(&subscriber->queue)) {
    belay__channel_t *channel = channel_at(subscriber->queue.next);
    if (channel->node.alone != alone)
      break;
    channel->node.number = ++subscriber->last_number;
    move(channel, &subscriber->asked, ASKED);
    n++;
    argv[n] = channel->name;
    lens[n] = channel->len;
  }
  alone = alone || subscriber->connection.sharded ||
          n == 1; /* a shard is a slot's: several may not be one's */
  if (!alone)
    belay__transport_send(transport, n + 1, argv, lens, false);
  for (size_t i = 1; i <= n && alone; i++)
    belay__transport_send(transport, 2, (const char *[]){argv[0], argv[i]},
                          (size_t[]){lens[0], lens[i]}, false);
  subscriber->open_groups++;
  end_group(subscriber, add_group(subscriber, alone ? BELAY__GROUP_ALONE : BELAY__GROUP_TOGETHER));
}

static void on_flush(belay__flush_t *flush) {
  belay__subscriber_t *subscriber = BELAY__CONTAINER(flush, belay__subscriber_t, flush);
  belay__connection_t *connection = &subscriber->connection;
  if (connection->channels > 0)
    belay__connection_connect(connection);
  while (belay__connection_is_up(connection) && belay__transport_is_open(&connection->transport) &&
         !belay__list_empty(&subscriber->queue) &&
         subscriber->open_groups < BELAY__SUBSCRIBER_GROUPS)
    send_group(subscriber);
}

void belay__subscriber_add(belay__subscriber_t *subscriber, belay__channel_t *channel) {
  if (belay__list_empty(&channel->node.list)) {
    channel->node.at = subscriber;
    channel->node.alone = channel->node.probe = false;
    subscriber->connection.channels++;
    queue(subscriber, channel);
  } else if (channel->node.state == REFUSED) {
    queue(subscriber, channel);
  }
}

/* Good-bye to one that the server may think we listen to. */
static void leave(belay__subscriber_t *subscriber, const belay__channel_t *channel) {
  const char *const argv[] = {subscriber->connection.sharded ? "SUNSUBSCRIBE" : "UNSUBSCRIBE",
                              channel->name};
  const size_t lens[] = {subscriber->connection.sharded ? 12 : 11, channel->len};
  if (!belay__transport_is_open(&subscriber->connection.transport))
    return;
  belay__subscription_group_t *group =
      subscriber->count == 0 ? NULL : group_at(subscriber, subscriber->count - 1);
  if (group == NULL || group->kind != BELAY__GROUP_UNSUBSCRIBE)
    group = add_group(subscriber, BELAY__GROUP_UNSUBSCRIBE);
  group->left++;
  belay__transport_send(&subscriber->connection.transport, 2, argv, lens, false);
  end_group(subscriber, group);
}

void belay__subscriber_remove(belay__subscriber_t *subscriber, belay__channel_t *channel) {
  state_t state = channel->node.state;
  channel->node.at = NULL;
  belay__list_remove(&channel->node.list);
  if (--subscriber->connection.channels == 0) {
    belay__timer_stop(belay__connection_loop(&subscriber->connection), BELAY__RANK_OTHER,
                      &subscriber->retry_timer);
    belay__connection_retire(&subscriber->connection);
  } else if (state == ASKED || state == UP) {
    leave(subscriber, channel);
  }
}

void belay__subscriber_close(belay__subscriber_t *subscriber) {
  belay__timer_stop(belay__connection_loop(&subscriber->connection), BELAY__RANK_OTHER,
                    &subscriber->retry_timer);
  belay__host_flush_cancel(&subscriber->flush);
  belay__connection_close(&subscriber->connection);
}

/* ---- the connection ------------------------------------------------------------------------------------ */

/* Why: what the server says does not fit. */
static void drop(belay__subscriber_t *subscriber, int error, const char *why) {
  if (why != NULL)
    belay__log(belay__connection_loop(&subscriber->connection), BELAY_LOG_ERROR,
               "connection dropped: %s", why);
  belay__transport_break(&subscriber->connection.transport, error);
}

static void check_place(belay__subscriber_t *subscriber) {
  belay__connection_t *connection = &subscriber->connection;
  const belay__server_info_t *here = &connection->peer.info, *there = &subscriber->calls_at;
  if (connection->attempt_number > subscriber->calls_dialed || here->run_id_len == 0 ||
      there->run_id_len == 0 || belay__server_info_is(here, there->run_id, there->run_id_len))
    return;
  if (belay__connection_is_up(connection))
    drop(subscriber, BELAY_EUNREACHABLE, NULL);
  else
    belay__connection_retry_refused(connection);
}

void belay__subscriber_check_server(belay__subscriber_t *subscriber,
                                    const belay__connection_t *connection) {
  if (connection->attempt_number < subscriber->calls_dialed)
    return;
  subscriber->calls_at = connection->peer.info;
  subscriber->calls_dialed = connection->attempt_number;
  check_place(subscriber);
}

void belay__subscriber_connected(belay__subscriber_t *subscriber) {
  forget_groups(subscriber);
  subscriber->connection.transport.reader.push_mode = true;
  belay__host_flush_soon(subscriber->connection.server->settings->host, &subscriber->flush);
  check_place(subscriber);
}

typedef struct loss {
  const belay__subscriber_t *subscriber;
  int error;
} loss_t;

static void tell_lost(belay__channel_t *channel, void *arg) {
  const loss_t *loss = arg;
  if (channel->node.at == loss->subscriber)
    belay__channel_lost(channel, loss->error);
}

void belay__subscriber_lost(belay__subscriber_t *subscriber, int error) {
  forget_groups(subscriber);
  belay__timer_stop(belay__connection_loop(&subscriber->connection), BELAY__RANK_OTHER,
                    &subscriber->retry_timer);
  queue_all(subscriber, &subscriber->asked);
  queue_all(subscriber, &subscriber->up);
  queue_all(subscriber, &subscriber->refused); /* alone, as before */
  belay__channels_each(subscriber->connection.server->settings->client, tell_lost,
                       &(loss_t){.subscriber = subscriber, .error = error});
}

/* ---- answers ------------------------------------------------------------------------------------------- */

/* The channel whose turn it is, if it is still wanted. */
static belay__channel_t *answered(belay__subscriber_t *subscriber) {
  if (belay__list_empty(&subscriber->asked))
    return NULL;
  belay__channel_t *channel = channel_at(subscriber->asked.next);
  assert(channel->node.number >= subscriber->answered_count);
  return channel->node.number == subscriber->answered_count ? channel : NULL;
}

static bool is_named(const belay__channel_t *channel, const belay__reply_t *name) {
  return channel->len == name->len && memcmp(channel->name, name->str, name->len) == 0;
}

static void on_subscribed(belay__subscriber_t *subscriber, const belay__reply_t *name) {
  const belay__subscription_group_t *group = head(subscriber);
  if (group == NULL || group->kind == BELAY__GROUP_UNSUBSCRIBE ||
      subscriber->answered_count == group->last) {
    drop(subscriber, BELAY_EPROTO, "a subscription that nobody asked for");
    return;
  }
  subscriber->answered_count++;
  belay__channel_t *channel = answered(subscriber);
  if (channel == NULL)
    return;
  if (!is_named(channel, name)) {
    drop(subscriber, BELAY_EPROTO, "a subscription to another channel");
    return;
  }
  if (channel->node.probe)
    queue_all(subscriber, &subscriber->refused); /* something has changed */
  channel->node.alone = channel->node.probe = false;
  move(channel, &subscriber->up, UP);
  belay__channel_confirmed(channel);
}

/* The channel's slot has gone elsewhere. Where to is what is answered if it is asked for again. */
static void on_taken_away(belay__subscriber_t *subscriber, belay__channel_t *channel) {
  queue(subscriber, channel);
  belay__channel_lost(channel, BELAY_ECLUSTERDOWN);
}

/* The answer to a good-bye; or nobody said one, and the channel is taken away. */
static void on_unsubscribed(belay__subscriber_t *subscriber, const belay__reply_t *name) {
  belay__subscription_group_t *group = head(subscriber);
  belay_client_t *client = subscriber->connection.server->settings->client;
  belay__channel_t *channel = belay__channel_find(client, name->str, name->len);
  bool sharded = subscriber->connection.sharded;
  if (sharded && channel != NULL && channel->node.at == subscriber && channel->node.state == UP)
    on_taken_away(subscriber, channel);
  else if (group != NULL && group->kind == BELAY__GROUP_UNSUBSCRIBE && group->left > 0)
    group->left--;
  else if (!sharded) /* else it was left, and taken away too */
    drop(subscriber, BELAY_EUNREACHABLE, NULL);
}

static void retry_refused_later(belay__subscriber_t *subscriber) {
  uint64_t most = (uint64_t)subscriber->connection.server->settings->reconnect_max_ms * BELAY__MS;
  belay_t *belay = belay__connection_loop(&subscriber->connection);
  if (belay__timer_is_set(&subscriber->retry_timer))
    return;
  belay__timer_set(belay, BELAY__RANK_OTHER, &subscriber->retry_timer,
                   belay__now(belay) + belay__period(belay, most));
}

static void on_retry(belay__timer_t *timer) {
  belay__subscriber_t *subscriber = BELAY__CONTAINER(timer, belay__subscriber_t, retry_timer);
  for (int i = 0; i < PROBES && !belay__list_empty(&subscriber->refused); i++) {
    belay__channel_t *channel = channel_at(subscriber->refused.next);
    channel->node.probe = true;
    queue(subscriber, channel);
  }
  if (!belay__list_empty(&subscriber->refused))
    retry_refused_later(subscriber);
}

/* The owner of the settings sees that it is listened to there. */
static void tell_moved(belay__subscriber_t *subscriber, const belay__reply_t *reply) {
  belay__connection_t *connection = &subscriber->connection;
  const belay__deployment_ops_t *ops = connection->server->settings->ops;
  belay__list_t none;
  belay__list_init(&none);
  if (belay__redirect_parse(reply, &connection->target.place, &connection->redirect))
    ops->redirect(connection, &connection->redirect, &none);
  else
    ops->suspect(connection);
}

/* One was refused for itself. */
static void refuse(belay__subscriber_t *subscriber, const belay__reply_t *reply, int error) {
  subscriber->answered_count++;
  belay__channel_t *channel = answered(subscriber);
  const belay__settings_t *settings = subscriber->connection.server->settings;
  bool moved = error == BELAY_EMOVED && settings->ops->redirect != NULL;
  if (moved)
    tell_moved(subscriber, reply);
  if (channel == NULL)
    return;
  belay__client_refused(settings->client, error, reply->str, reply->len);
  channel->node.alone = true;
  channel->node.probe = false;
  move(channel, &subscriber->refused, REFUSED);
  retry_refused_later(subscriber);
  belay__channel_lost(channel, moved ? BELAY_ECLUSTERDOWN : error);
}

/* Several were refused together, perhaps because of one of them. */
static void part(belay__subscriber_t *subscriber, uint64_t last) {
  subscriber->answered_count = last;
  while (!belay__list_empty(&subscriber->asked)) {
    belay__channel_t *channel = channel_at(subscriber->asked.next);
    if (channel->node.number > last)
      break;
    channel->node.alone = true;
    queue(subscriber, channel);
  }
}

static void on_error(belay__subscriber_t *subscriber, const belay__reply_t *reply) {
  const belay__refusal_t *refusal = belay__refusal_find(reply->str, reply->len);
  belay__subscription_group_t *group = head(subscriber);
  bool leaves = group != NULL && group->kind == BELAY__GROUP_UNSUBSCRIBE;
  /* others may be served */
  bool of_slot = refusal->error == BELAY_ECLUSTERDOWN || refusal->error == BELAY_EMOVED;
  if (leaves && of_slot &&
      subscriber->connection
          .sharded) /* perhaps taken away by then, which was heard as the answer */
    group->left -= group->left > 0;
  else if (group == NULL || subscriber->connection.state == BELAY__CONNECTION_CHECKING ||
           (refusal->remedy != BELAY__REMEDY_NONE && !of_slot) ||
           (leaves ? group->left == 0 : subscriber->answered_count == group->last))
    drop(subscriber, refusal->error, NULL); /* it is the PING's; or a server that cannot now */
  else if (leaves)
    group->left--; /* what is not wanted comes all the same, and is not heard */
  else if (group->kind == BELAY__GROUP_TOGETHER)
    part(subscriber, group->last);
  else
    refuse(subscriber, reply, refusal->error);
}

static void on_pong(belay__subscriber_t *subscriber) {
  belay__connection_t *connection = &subscriber->connection;
  belay__subscription_group_t *group = head(subscriber);
  connection->transport.replies_due--;
  bool checked = connection->state == BELAY__CONNECTION_CHECKING;
  if (!checked && (group == NULL || subscriber->answered_count < group->last)) {
    drop(subscriber, BELAY_EPROTO, "a subscription was not answered");
    return;
  }
  if (!checked && --group->pings == 0) {
    subscriber->open_groups -= group->kind != BELAY__GROUP_UNSUBSCRIBE;
    subscriber->count--;
    subscriber->first = (subscriber->first + 1) % (sizeof subscriber->groups / sizeof *group);
  }
  belay__connection_reply_received(connection);
  if (!belay__list_empty(&subscriber->queue))
    belay__host_flush_soon(connection->server->settings->host, &subscriber->flush);
}

/* ---- what is said -------------------------------------------------------------------------------------- */

static bool is_string(const belay__reply_t *reply) {
  return reply->type == BELAY__REPLY_STRING;
}

/* Words of another kind are not for us, and do no harm. */
static void on_words(belay__subscriber_t *subscriber, const belay__reply_t *reply) {
  belay__reply_t **words = reply->items;
  if (reply->count < 1 || !is_string(words[0])) {
    drop(subscriber, BELAY_EPROTO, "a push without a name");
    return;
  }
  size_t skip =
      subscriber->connection.sharded && words[0]->str[0] == 's'; /* smessage, ssubscribe */
  const belay__reply_t kind = {
      .type = BELAY__REPLY_STRING, .str = words[0]->str + skip, .len = words[0]->len - skip};
  bool message = belay__reply_is(&kind, "message", 7);
  bool on = belay__reply_is(&kind, "subscribe", 9), off = belay__reply_is(&kind, "unsubscribe", 11);
  if (!message && !on && !off)
    return;
  if (reply->count != 3 || !is_string(words[1]) || (message && !is_string(words[2])))
    drop(subscriber, BELAY_EPROTO, "a malformed push");
  else if (message)
    belay__channel_message(subscriber->connection.server->settings->client, words[1]->str,
                           words[1]->len, words[2]->str, words[2]->len);
  else if (on)
    on_subscribed(subscriber, words[1]);
  else
    on_unsubscribed(subscriber, words[1]);
}

static void on_push(belay__transport_t *transport, const belay__reply_t *reply) {
  belay__subscriber_t *subscriber =
      BELAY__CONTAINER(transport, belay__subscriber_t, connection.transport);
  if (!belay__connection_is_up(&subscriber->connection))
    drop(subscriber, BELAY_EPROTO, "a push before it was agreed on");
  else if (reply->type == BELAY__REPLY_ARRAY)
    on_words(subscriber, reply);
  else if (reply->type == BELAY__REPLY_ERROR)
    on_error(subscriber, reply);
  else if (belay__reply_is(reply, "PONG", 4))
    on_pong(subscriber);
  else
    drop(subscriber, BELAY_EPROTO, "a reply of an unexpected type");
}
