/* Channels of SUBSCRIBE.
 *
 *   engine->topics --table--> topic_t --first, next_of_topic--> engine_channel
 *                             engine_conn_t --first, next_of_conn--> engine_channel
 *
 * Each engine_channel is one subscription. */
#include "command.h"

#include <stdlib.h>

typedef struct topic topic_t;

/* One connection's subscription to one channel. */
struct engine_channel {
  topic_t *topic;
  engine_conn_t *conn;
  struct engine_channel *next_of_conn, *next_of_topic;
};

typedef struct engine_channel channel_t;

/* A channel that has subscribers. */
struct topic {
  engine_entry_t entry; /* the channel's name */
  channel_t *first;
  size_t count;
};

/* ---- subscriptions ---- */

static topic_t *find_topic(const engine_t *engine, engine_bytes_t name) {
  return (topic_t *)engine_table_find(&engine->topics, name);
}

static channel_t *find_channel(const engine_conn_t *conn, const topic_t *topic) {
  channel_t *channel = conn->first;
  while (channel != NULL && channel->topic != topic)
    channel = channel->next_of_conn;
  return channel;
}

/* Both lists are in the order of subscription. */
static void join(engine_conn_t *conn, topic_t *topic) {
  channel_t *channel = engine_allocate(sizeof *channel), **end;
  *channel = (channel_t){.topic = topic, .conn = conn};
  for (end = &conn->first; *end != NULL; end = &(*end)->next_of_conn)
    ;
  *end = channel;
  for (end = &topic->first; *end != NULL; end = &(*end)->next_of_topic)
    ;
  *end = channel;
  topic->count++;
  conn->channels++;
}

/* The topic goes with its last subscription. */
static void leave(engine_t *engine, channel_t *channel) {
  topic_t *topic = channel->topic;
  channel_t **at;
  for (at = &channel->conn->first; *at != channel; at = &(*at)->next_of_conn)
    ;
  *at = channel->next_of_conn;
  for (at = &topic->first; *at != channel; at = &(*at)->next_of_topic)
    ;
  *at = channel->next_of_topic;
  channel->conn->channels--;
  free(channel);
  if (--topic->count > 0)
    return;
  engine_table_remove(&engine->topics, &topic->entry);
  free(topic);
}

void engine_pubsub_leave(engine_t *engine, engine_conn_t *conn) {
  while (conn->first != NULL)
    leave(engine, conn->first);
}

/* Connections that are there still have no subscription any more. */
void engine_pubsub_free(engine_t *engine) {
  while (engine->topics.first != NULL)
    leave(engine, ((topic_t *)engine->topics.first)->first);
  engine_table_clear(&engine->topics);
}

/* ---- commands ---- */

static void reply_count(engine_call_t *call, const char *what, engine_bytes_t name) {
  engine_reply_push(call, 3);
  engine_reply_text(call, what);
  engine_reply_bytes(call, name);
  engine_reply_integer(call, (int64_t)call->conn->channels);
}

static void subscribe(engine_call_t *call) {
  for (size_t i = 1; i < call->argc; i++) {
    topic_t *topic = find_topic(call->engine, call->argv[i]);
    if (topic == NULL)
      topic = engine_table_add(&call->engine->topics, call->argv[i], sizeof *topic);
    if (find_channel(call->conn, topic) == NULL)
      join(call->conn, topic);
    reply_count(call, "subscribe", call->argv[i]);
  }
}

/* A client looks for this name only, to learn the server's version. */
static void ssubscribe(engine_call_t *call) {
  engine_reply_error(call, "ERR the engine has no channels of shards");
}

static void unsubscribe(engine_call_t *call) {
  for (size_t i = 1; i < call->argc; i++) {
    topic_t *topic = find_topic(call->engine, call->argv[i]);
    channel_t *channel = topic != NULL ? find_channel(call->conn, topic) : NULL;
    if (channel != NULL)
      leave(call->engine, channel);
    reply_count(call, "unsubscribe", call->argv[i]);
  }
}

/* In the protocol of the connection that gets it. */
static void push_message(engine_call_t *call, engine_conn_t *to) {
  const engine_hooks_t *hooks = &call->engine->options.hooks;
  engine_buffer_t bytes = {0};
  engine_call_t message = {.out = &bytes, .conn = to};
  engine_reply_push(&message, 3);
  engine_reply_text(&message, "message");
  engine_reply_bytes(&message, call->argv[1]);
  engine_reply_bytes(&message, call->argv[2]);
  if (hooks->push != NULL)
    hooks->push(hooks->ctx, to, bytes.at, bytes.len);
  engine_buffer_free(&bytes);
}

static void publish(engine_call_t *call) {
  const topic_t *topic = find_topic(call->engine, call->argv[1]);
  for (channel_t *c = topic != NULL ? topic->first : NULL; c != NULL; c = c->next_of_topic)
    push_message(call, c->conn);
  engine_reply_integer(call, topic != NULL ? (int64_t)topic->count : 0);
}

const engine_command_t engine_pubsub_commands[] = {
    {"SUBSCRIBE", subscribe, -2, ENGINE_NO_SCRIPT | ENGINE_SUBSCRIBED, NULL},
    {"SSUBSCRIBE", ssubscribe, -2, ENGINE_NO_SCRIPT, NULL},
    {"UNSUBSCRIBE", unsubscribe, -2, ENGINE_NO_SCRIPT | ENGINE_SUBSCRIBED, NULL},
    {"PUBLISH", publish, 3, ENGINE_WRITES, NULL}, /* counts as a write, because replicas get it */
    {NULL, NULL, 0, 0, NULL},
};
