#include "core/client/channel.h"

#include <assert.h>
#include <string.h>

#define CHANNELS_MAX ((size_t)65536)
#define LINGERING_MAX ((size_t)1024)
#define LINGER_MS 1000

static void on_timer(belay__timer_t *timer);

void belay__channels_init(belay_client_t *client) {
  client->channels = (belay__channels_t){.timer = {.fire = on_timer}};
  belay__list_init(&client->channels.all);
  belay__list_init(&client->channels.lingering);
}

/* ---- the registry ---- */

belay__channel_t *belay__channel_find(belay_client_t *client, const char *name, size_t len) {
  belay__table_t *table = &client->channels.table;
  if (table->count == 0)
    return NULL;
  return belay__keyed_find(table, belay__table_hash(client->belay, table, name, len), name, len);
}

static belay__channel_t *make_channel(belay_client_t *client, const char *name, size_t len) {
  belay__table_t *table = &client->channels.table;
  uint64_t hash = belay__table_hash(client->belay, table, name, len);
  belay__channel_t *channel =
      belay__keyed_new(client->belay, table, hash, sizeof *channel, name, len);
  if (channel == NULL)
    return NULL;
  channel->client = client;
  belay__list_init(&channel->lingers);
  belay__list_init(&channel->subscriptions);
  belay__list_init(&channel->node.list);
  belay__list_push(&client->channels.all, &channel->all);
  return channel;
}

static void discard_channel(belay__channel_t *channel) {
  belay__list_remove(&channel->all);
  belay__table_remove(&channel->client->channels.table, &channel->keyed.entry);
  belay__keyed_free(channel->client->belay, &channel->keyed);
}

/* ---- lingering ---- */

/* Remove the channel from the lingering ones: it has a subscription again, or is dropped. */
static void end_linger(belay__channel_t *channel) {
  if (belay__list_empty(&channel->lingers))
    return;
  belay__list_remove(&channel->lingers);
  channel->client->channels.lingering_len--;
}

static void drop_channel(belay__channel_t *channel) {
  belay_client_t *client = channel->client;
  end_linger(channel);
  client->node_ops->unlisten(client, channel);
  discard_channel(channel);
}

/* Set the timer to the end of the first lingering channel. A timer that is already set stays,
 * because it can only be too early. */
static void set_timer(belay_client_t *client) {
  belay__channels_t *channels = &client->channels;
  if (belay__list_empty(&channels->lingering) || belay__timer_is_set(&channels->timer))
    return;
  const belay__channel_t *first =
      BELAY__CONTAINER(channels->lingering.next, belay__channel_t, lingers);
  belay__timer_set(client->belay, BELAY__RANK_OTHER, &channels->timer, first->lingers_until);
}

static void on_timer(belay__timer_t *timer) {
  belay_client_t *client = BELAY__CONTAINER(timer, belay_client_t, channels.timer);
  belay__list_t *lingering = &client->channels.lingering;
  uint64_t now = belay__now(client->belay);
  while (!belay__list_empty(lingering)) {
    belay__channel_t *first = BELAY__CONTAINER(lingering->next, belay__channel_t, lingers);
    if (first->lingers_until > now)
      break;
    drop_channel(first);
  }
  set_timer(client);
}

/* Drop the channel that has lingered longest. Returns false if no channel lingers. */
static bool evict_channel(belay_client_t *client) {
  belay__list_t *lingering = &client->channels.lingering;
  if (belay__list_empty(lingering))
    return false;
  drop_channel(BELAY__CONTAINER(lingering->next, belay__channel_t, lingers));
  return true;
}

/* Start the linger time of a channel without subscriptions. */
static void begin_linger(belay__channel_t *channel) {
  belay_client_t *client = channel->client;
  channel->lingers_until = belay__after_ms(client->belay, LINGER_MS);
  belay__list_push(&client->channels.lingering, &channel->lingers);
  if (++client->channels.lingering_len > LINGERING_MAX)
    (void)evict_channel(client);
  set_timer(client);
}

/* ---- subscriptions ---- */

int belay__listen(belay_client_t *client, const char *name, size_t len,
                  belay__subscription_t *subscription) {
  assert(subscription->channel == NULL && !client->node_closing);
  belay__channel_t *channel = belay__channel_find(client, name, len);
  bool fresh = channel == NULL;
  if (fresh && client->channels.table.count >= CHANNELS_MAX && !evict_channel(client))
    return BELAY_EBUSY;
  if (fresh && (channel = make_channel(client, name, len)) == NULL)
    return BELAY_ENOMEM;
  end_linger(channel);
  subscription->channel = channel;
  subscription->up = channel->up;
  subscription->reported = 0;
  belay__list_push(&channel->subscriptions, &subscription->node);
  client->node_ops->listen(client, channel);
  return 0;
}

void belay__unlisten(belay__subscription_t *subscription) {
  belay__channel_t *channel = subscription->channel;
  if (channel == NULL)
    return;
  belay__list_remove(&subscription->node);
  subscription->channel = NULL;
  subscription->up = false;
  if (belay__list_empty(&channel->subscriptions) && !channel->busy) /* else notify_all() checks */
    begin_linger(channel);
}

bool belay__subscription_is_up(const belay__subscription_t *subscription) {
  return subscription->channel != NULL && subscription->channel->up;
}

bool belay__channel_is_up(belay_client_t *client, const char *name, size_t len) {
  const belay__channel_t *channel = belay__channel_find(client, name, len);
  return channel != NULL && channel->up;
}

/* ---- events ---- */

/* Return true if the subscription must be notified of the event. Update its `up` and `reported`. */
static bool concerns(belay__subscription_t *subscription, belay__channel_event_t what, int status) {
  bool was_up = subscription->up;
  switch (what) {
  case BELAY__CHANNEL_UP:
    subscription->up = true;
    subscription->reported = 0;
    return !was_up;
  case BELAY__CHANNEL_MESSAGE:
    return true;
  case BELAY__CHANNEL_GAP:
    if (!was_up && (belay_err_retryable(status) || subscription->reported == status))
      return false;
    subscription->up = false;
    subscription->reported = belay_err_retryable(status) ? 0 : status;
    return true;
  }
  return false;
}

/* Notify all subscriptions, but not those that are added meanwhile: they have the new state
 * already. */
static void notify_all(belay__channel_t *channel, belay__channel_event_t what, const char *data,
                       size_t len, int status) {
  belay__list_t rest;
  if (belay__list_empty(&channel->subscriptions))
    return;
  belay__list_init(&rest);
  belay__list_splice_front(&rest, &channel->subscriptions);
  channel->busy = true;
  for (belay__list_t *node; (node = belay__list_pop(&rest)) != NULL;) {
    belay__subscription_t *subscription = BELAY__CONTAINER(node, belay__subscription_t, node);
    belay__list_push(&channel->subscriptions, &subscription->node);
    if (concerns(subscription, what, status))
      subscription->on_event(subscription, what, data, len, status);
  }
  channel->busy = false;
  if (belay__list_empty(&channel->subscriptions))
    begin_linger(channel);
}

void belay__channel_confirmed(belay__channel_t *channel) {
  channel->up = true;
  notify_all(channel, BELAY__CHANNEL_UP, NULL, 0, 0);
}

void belay__channel_lost(belay__channel_t *channel, int error) {
  channel->up = false;
  notify_all(channel, BELAY__CHANNEL_GAP, NULL, 0, error);
}

void belay__channel_message(belay_client_t *client, const char *name, size_t name_len,
                            const char *data, size_t len) {
  belay__channel_t *channel = belay__channel_find(client, name, name_len);
  /* drop the message if the client has ended this subscription, or the server has not confirmed
   * it */
  if (channel != NULL && channel->up)
    notify_all(channel, BELAY__CHANNEL_MESSAGE, data, len, 0);
}

void belay__channels_each(belay_client_t *client,
                          void (*visit)(belay__channel_t *channel, void *arg), void *arg) {
  belay__list_t *all = &client->channels.all, rest;
  belay__list_init(&rest);
  belay__list_splice_front(&rest, all);
  for (belay__list_t *node; (node = belay__list_pop(&rest)) != NULL;) {
    belay__list_push(all, node);
    visit(BELAY__CONTAINER(node, belay__channel_t, all), arg);
  }
}

/* ---- the end ---- */

void belay__channels_close(belay_client_t *client) {
  belay__timer_stop(client->belay, BELAY__RANK_OTHER, &client->channels.timer);
}

void belay__channels_free(belay_client_t *client) {
  belay__channels_t *channels = &client->channels;
  for (belay__list_t *node; (node = belay__list_pop(&channels->all)) != NULL;) {
    belay__channel_t *channel = BELAY__CONTAINER(node, belay__channel_t, all);
    assert(belay__list_empty(&channel->subscriptions));
    discard_channel(channel);
  }
  belay__table_free(client->belay, &channels->table);
}
