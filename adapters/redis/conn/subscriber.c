/* The subscriptions of one connection. A channel:
 *
 *    add --> QUEUED --sent--> ASKED --confirmed--> UP
 *              ^ ^              |                   |
 *              | |              +--refused--> REFUSED
 *              | +--connection lost--+-------+------+
 *              +--a few of them again every reconnect_max_ms
 *
 *    any --remove--> gone; ASKED and UP send an UNSUBSCRIBE
 *
 * Each channel has its own command, so that a refusal concerns one channel. Commands are sent in
 * groups. Each group ends with a PING, so that a silent server is noticed. The server answers in
 * order: one confirmation or error per command, then a PONG. Subscriptions are numbered when they
 * are sent, and replies when they arrive. So the reply to a removed subscription is not taken for
 * that to a newer one of the same name, and an error belongs to a known command. If a reply does
 * not fit, the connection is dropped.
 *
 * hiredis calls back nothing here: it takes all replies for pushes (reader.h). */
#include "redis/conn/subscriber.h"

#include <assert.h>
#include <belay/topic.h>

#include "core/call/refusal.h"
#include "core/loop/backoff.h"
#include "redis/conn/connection.h"
#include "redis/conn/liveness.h"

#define GROUP_MAX 128                                  /* channels in a group */
#define MESSAGE_ROOM (BELAY_TOPIC_MESSAGE_MAX + 65536) /* bytes of a message with its channel */
#define PROBES 16 /* refused channels that are tried again at a time */

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

/* ---- groups of subscriptions ---- */

static belay__subscription_group_t *group_at(belay__subscriber_t *subscriber, size_t i) {
  size_t size = sizeof subscriber->groups / sizeof *subscriber->groups;
  return &subscriber->groups[(subscriber->first + i) % size];
}

/* Returns the group whose replies are due; NULL: none. */
static belay__subscription_group_t *head(belay__subscriber_t *subscriber) {
  return subscriber->count == 0 ? NULL : group_at(subscriber, 0);
}

static belay__subscription_group_t *add_group(belay__subscriber_t *subscriber, bool unsubscribes) {
  assert(subscriber->count < sizeof subscriber->groups / sizeof *subscriber->groups);
  belay__subscription_group_t *group = group_at(subscriber, subscriber->count++);
  *group =
      (belay__subscription_group_t){.unsubscribes = unsubscribes, .last = subscriber->last_number};
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

/* ---- subscribe ---- */

/* Sends a group with the first channels of the queue. */
static void send_group(belay__subscriber_t *subscriber) {
  bool sharded = subscriber->connection.sharded;
  for (int n = 0; n < GROUP_MAX && !belay__list_empty(&subscriber->queue); n++) {
    belay__channel_t *channel = channel_at(subscriber->queue.next);
    const char *const argv[] = {sharded ? "SSUBSCRIBE" : "SUBSCRIBE", channel->keyed.key};
    const size_t lens[] = {sharded ? 10 : 9, channel->keyed.key_len};
    channel->node.number = ++subscriber->last_number;
    move(channel, &subscriber->asked, ASKED);
    belay__transport_send(&subscriber->connection.transport, 2, argv, lens, false);
  }
  subscriber->open_groups++;
  end_group(subscriber, add_group(subscriber, false));
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
    channel->node.probe = false;
    subscriber->connection.channels++;
    queue(subscriber, channel);
  } else if (channel->node.state == REFUSED) {
    queue(subscriber, channel);
  }
}

/* Unsubscribes from a channel to which the server may have subscribed this connection. */
static void leave(belay__subscriber_t *subscriber, const belay__channel_t *channel) {
  const char *const argv[] = {subscriber->connection.sharded ? "SUNSUBSCRIBE" : "UNSUBSCRIBE",
                              channel->keyed.key};
  const size_t lens[] = {subscriber->connection.sharded ? 12 : 11, channel->keyed.key_len};
  if (!belay__transport_is_open(&subscriber->connection.transport))
    return;
  belay__subscription_group_t *group =
      subscriber->count == 0 ? NULL : group_at(subscriber, subscriber->count - 1);
  if (group == NULL || !group->unsubscribes)
    group = add_group(subscriber, true);
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

/* ---- connection ---- */

/* Drops the connection. why: text for the log if the server broke the protocol; else NULL. */
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

static void report_lost(belay__channel_t *channel, void *arg) {
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
  queue_all(subscriber, &subscriber->refused);
  belay__channels_each(subscriber->connection.server->settings->client, report_lost,
                       &(loss_t){.subscriber = subscriber, .error = error});
}

/* ---- answers ---- */

/* Returns the channel to which the present reply belongs; NULL if it was removed. */
static belay__channel_t *answered(belay__subscriber_t *subscriber) {
  if (belay__list_empty(&subscriber->asked))
    return NULL;
  belay__channel_t *channel = channel_at(subscriber->asked.next);
  assert(channel->node.number >= subscriber->answered_count);
  return channel->node.number == subscriber->answered_count ? channel : NULL;
}

static bool is_named(const belay__channel_t *channel, const belay__reply_t *name) {
  return channel->keyed.key_len == name->len &&
         memcmp(channel->keyed.key, name->str, name->len) == 0;
}

static void on_subscribed(belay__subscriber_t *subscriber, const belay__reply_t *name) {
  const belay__subscription_group_t *group = head(subscriber);
  if (group == NULL || group->unsubscribes || subscriber->answered_count == group->last) {
    drop(subscriber, BELAY_EPROTO, "a confirmation without a subscription");
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
    /* The server's rules have changed, so all refused channels are tried again. */
    queue_all(subscriber, &subscriber->refused);
  channel->node.probe = false;
  move(channel, &subscriber->up, UP);
  belay__channel_confirmed(channel);
}

/* Handles a channel whose slot moved to another server. The next SSUBSCRIBE returns the new
 * server. */
static void on_taken_away(belay__subscriber_t *subscriber, belay__channel_t *channel) {
  queue(subscriber, channel);
  belay__channel_lost(channel, BELAY_ECLUSTERDOWN);
}

/* Handles the reply to an UNSUBSCRIBE, or the message that the server sends when the slot of a
 * channel moves. */
static void on_unsubscribed(belay__subscriber_t *subscriber, const belay__reply_t *name) {
  belay__subscription_group_t *group = head(subscriber);
  belay_client_t *client = subscriber->connection.server->settings->client;
  belay__channel_t *channel = belay__channel_find(client, name->str, name->len);
  bool sharded = subscriber->connection.sharded;
  if (sharded && channel != NULL && channel->node.at == subscriber && channel->node.state == UP)
    on_taken_away(subscriber, channel);
  else if (group != NULL && group->unsubscribes && group->left > 0)
    group->left--;
  else if (!sharded) /* If sharded, the channel was removed and its slot moved at the same time. */
    drop(subscriber, BELAY_EUNREACHABLE, NULL);
}

static void retry_refused_later(belay__subscriber_t *subscriber) {
  uint64_t most =
      (uint64_t)subscriber->connection.server->settings->options.reconnect_max_ms * BELAY__MS;
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

/* Reports to the deployment where the channel is, or that the cluster has changed. */
static void report_moved(belay__subscriber_t *subscriber, const belay__reply_t *reply) {
  belay__connection_t *connection = &subscriber->connection;
  const belay__deployment_ops_t *ops = connection->server->settings->ops;
  belay__list_t none;
  belay__list_init(&none);
  if (belay__redirect_parse(reply, &connection->target.place, &connection->redirect))
    ops->redirect(connection, &connection->redirect, &none);
  else
    ops->suspect(connection);
}

/* Handles the refusal of a single subscription. */
static void refuse(belay__subscriber_t *subscriber, const belay__reply_t *reply, int error) {
  subscriber->answered_count++;
  belay__channel_t *channel = answered(subscriber);
  const belay__settings_t *settings = subscriber->connection.server->settings;
  bool moved = error == BELAY_EMOVED && settings->ops->redirect != NULL;
  if (moved)
    report_moved(subscriber, reply);
  if (channel == NULL)
    return;
  belay__client_refused(settings->client, error, reply->str, reply->len);
  channel->node.probe = false;
  move(channel, &subscriber->refused, REFUSED);
  retry_refused_later(subscriber);
  belay__channel_lost(channel, moved ? BELAY_ECLUSTERDOWN : error);
}

static void on_error(belay__subscriber_t *subscriber, const belay__reply_t *reply) {
  const belay__refusal_t *refusal = belay__refusal_find(reply->str, reply->len);
  belay__subscription_group_t *group = head(subscriber);
  bool leaves = group != NULL && group->unsubscribes;
  /* Channels of other slots may be accepted. */
  bool of_slot = refusal->error == BELAY_ECLUSTERDOWN || refusal->error == BELAY_EMOVED;
  if (leaves && of_slot &&
      subscriber->connection
          .sharded) /* The slot may have moved, and that message was counted as the reply. */
    group->left -= group->left > 0;
  else if (group == NULL || subscriber->connection.state == BELAY__CONNECTION_CHECKING ||
           (refusal->remedy != BELAY__REMEDY_NONE && !of_slot) ||
           (leaves ? group->left == 0 : subscriber->answered_count == group->last))
    /* The error is the reply to PING, or the server cannot answer at present. */
    drop(subscriber, refusal->error, NULL);
  else if (leaves)
    group->left--; /* Messages of the removed channel may still arrive; they are ignored. */
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
    subscriber->open_groups -= !group->unsubscribes;
    subscriber->count--;
    subscriber->first = (subscriber->first + 1) % (sizeof subscriber->groups / sizeof *group);
  }
  belay__connection_reply_received(connection);
  if (!belay__list_empty(&subscriber->queue))
    belay__host_flush_soon(connection->server->settings->host, &subscriber->flush);
}

/* ---- pushes ---- */

static bool is_string(const belay__reply_t *reply) {
  return reply->type == BELAY__REPLY_STRING;
}

/* Ignores pushes of unknown kinds. */
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
