/* Channels, of two kinds that know nothing of each other: those of SUBSCRIBE and those of SSUBSCRIBE.
 *
 *   pubsub->topics[kind] --table--> topic_t --first, next_of_topic--> engine_channel  (one per subscription)
 *                                   engine_conn_t --first, next_of_conn--> engine_channel
 */
#include "command.h"

#include <stdlib.h>

typedef enum kind { GLOBAL, SHARD, KINDS } kind_t;

typedef struct topic topic_t;

/* One connection's subscription to one channel. */
struct engine_channel {
  topic_t *topic;
  engine_conn_t *conn;
  struct engine_channel *next_of_conn, *next_of_topic;
};

typedef struct engine_channel channel_t;

/* What somebody has subscribed to. */
struct topic {
  engine_entry_t entry; /* the channel's name */
  kind_t kind;
  channel_t *first;
  size_t count;
};

typedef struct engine_pubsub {
  engine_table_t topics[KINDS];
} pubsub_t;

static const char *const messages[KINDS] = {"message", "smessage"};
static const char *const subscribed[KINDS] = {"subscribe", "ssubscribe"};
static const char *const unsubscribed[KINDS] = {"unsubscribe", "sunsubscribe"};

/* ---- who has subscribed to what ------------------------------------------------------------------------ */

static topic_t *find_topic(const engine_t *engine, kind_t kind, engine_word_t name) {
  return engine->pubsub == NULL ? NULL
                                : (topic_t *)engine_table_find(&engine->pubsub->topics[kind], name);
}

static topic_t *find_or_make_topic(engine_t *engine, kind_t kind, engine_word_t name) {
  topic_t *topic = find_topic(engine, kind, name);
  if (topic != NULL)
    return topic;
  if (engine->pubsub == NULL)
    engine->pubsub = engine_allocate(sizeof *engine->pubsub);
  topic = engine_table_add(&engine->pubsub->topics[kind], name, sizeof *topic);
  topic->kind = kind;
  return topic;
}

static channel_t *find_channel(const engine_conn_t *conn, const topic_t *topic) {
  channel_t *channel = conn->first;
  while (channel != NULL && channel->topic != topic)
    channel = channel->next_of_conn;
  return channel;
}

/* Of that kind. */
static int64_t count_of(const engine_conn_t *conn, kind_t kind) {
  int64_t count = 0;
  for (const channel_t *c = conn->first; c != NULL; c = c->next_of_conn)
    count += c->topic->kind == kind;
  return count;
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
  engine_table_remove(&engine->pubsub->topics[topic->kind], &topic->entry);
  free(topic);
}

void engine_pubsub_leave(engine_t *engine, engine_conn_t *conn) {
  while (conn->first != NULL)
    leave(engine, conn->first);
}

/* Connections that are there still have no subscription any more. */
void engine_pubsub_free(engine_t *engine) {
  if (engine->pubsub == NULL)
    return;
  for (unsigned kind = 0; kind < KINDS; kind++) {
    while (engine->pubsub->topics[kind].first != NULL) {
      topic_t *topic = (topic_t *)engine->pubsub->topics[kind].first;
      leave(engine, topic->first);
    }
    engine_table_clear(&engine->pubsub->topics[kind]);
  }
  free(engine->pubsub);
  engine->pubsub = NULL;
}

/* ---- subscribing --------------------------------------------------------------------------------------- */

/* name at NULL: of nothing. */
static void tell(engine_call_t *call, const char *what, engine_word_t name, kind_t kind) {
  engine_reply_push(call, 3);
  engine_reply_text(call, what);
  if (name.at == NULL)
    engine_reply_nil(call);
  else
    engine_reply_word(call, name);
  engine_reply_integer(call, count_of(call->conn, kind));
}

static void subscribe_to(engine_call_t *call, kind_t kind) {
  for (size_t i = 1; i < call->argc; i++) {
    topic_t *topic = find_or_make_topic(call->engine, kind, call->argv[i]);
    if (find_channel(call->conn, topic) == NULL)
      join(call->conn, topic);
    tell(call, subscribed[kind], call->argv[i], kind);
  }
}

static void leave_named(engine_call_t *call, kind_t kind, engine_word_t name) {
  topic_t *topic = find_topic(call->engine, kind, name);
  channel_t *channel = topic != NULL ? find_channel(call->conn, topic) : NULL;
  if (channel != NULL)
    leave(call->engine, channel);
  tell(call, unsubscribed[kind], name, kind);
}

/* Redis leaves them in no particular order; this, in that of subscription. */
static void leave_all(engine_call_t *call, kind_t kind) {
  engine_buffer_t name = {0};
  bool any = false;
  for (channel_t *channel = call->conn->first, *next; channel != NULL; channel = next) {
    next = channel->next_of_conn;
    if (channel->topic->kind != kind)
      continue;
    any = true;
    engine_buffer_set(&name, channel->topic->entry.key.at, channel->topic->entry.key.len);
    leave(call->engine, channel);
    tell(call, unsubscribed[kind], engine_bytes(&name), kind);
  }
  engine_buffer_free(&name);
  if (!any)
    tell(call, unsubscribed[kind], (engine_word_t){NULL, 0}, kind);
}

static void unsubscribe_from(engine_call_t *call, kind_t kind) {
  if (call->argc == 1)
    leave_all(call, kind);
  for (size_t i = 1; i < call->argc; i++)
    leave_named(call, kind, call->argv[i]);
}

static void subscribe(engine_call_t *call) {
  subscribe_to(call, GLOBAL);
}

static void ssubscribe(engine_call_t *call) {
  subscribe_to(call, SHARD);
}

static void unsubscribe(engine_call_t *call) {
  unsubscribe_from(call, GLOBAL);
}

static void sunsubscribe(engine_call_t *call) {
  unsubscribe_from(call, SHARD);
}

/* ---- publishing ---------------------------------------------------------------------------------------- */

/* As the one who hears it understands it. */
static void push_message(engine_call_t *call, kind_t kind, engine_conn_t *to) {
  const engine_hooks_t *hooks = &call->engine->options.hooks;
  engine_buffer_t bytes = {0};
  engine_call_t message = {.out = &bytes, .conn = to};
  engine_reply_push(&message, 3);
  engine_reply_text(&message, messages[kind]);
  engine_reply_word(&message, call->argv[1]);
  engine_reply_word(&message, call->argv[2]);
  if (hooks->push != NULL)
    hooks->push(hooks->ctx, to, bytes.at, bytes.len);
  engine_buffer_free(&bytes);
}

static void publish_on(engine_call_t *call, kind_t kind) {
  const topic_t *topic = find_topic(call->engine, kind, call->argv[1]);
  for (channel_t *c = topic != NULL ? topic->first : NULL; c != NULL; c = c->next_of_topic)
    push_message(call, kind, c->conn);
  engine_reply_integer(call, topic != NULL ? (int64_t)topic->count : 0);
}

static void publish(engine_call_t *call) {
  publish_on(call, GLOBAL);
}

static void spublish(engine_call_t *call) {
  publish_on(call, SHARD);
}

/* ---- PUBSUB -------------------------------------------------------------------------------------------- */

static bool is_listed(const engine_call_t *call, const engine_entry_t *entry) {
  return call->argc == 2 || engine_word_matches(entry->key, call->argv[2]);
}

static void list_channels(engine_call_t *call, kind_t kind) {
  if (call->argc > 3) {
    engine_reply_error(call,
                       "ERR unknown subcommand or wrong number of arguments for '%.*s'. "
                       "Try PUBSUB HELP.",
                       (int)call->argv[1].len, call->argv[1].at);
    return;
  }
  const pubsub_t *pubsub = call->engine->pubsub;
  const engine_entry_t *first = pubsub != NULL ? pubsub->topics[kind].first : NULL;
  size_t count = 0;
  for (const engine_entry_t *entry = first; entry != NULL; entry = entry->after)
    count += is_listed(call, entry);
  engine_reply_array(call, count);
  for (const engine_entry_t *entry = first; entry != NULL; entry = entry->after)
    if (is_listed(call, entry))
      engine_reply_word(call, entry->key);
}

static void count_subscribers(engine_call_t *call, kind_t kind) {
  engine_reply_array(call, (call->argc - 2) * 2);
  for (size_t i = 2; i < call->argc; i++) {
    const topic_t *topic = find_topic(call->engine, kind, call->argv[i]);
    engine_reply_word(call, call->argv[i]);
    engine_reply_integer(call, topic != NULL ? (int64_t)topic->count : 0);
  }
}

static void pubsub_channels(engine_call_t *call) {
  list_channels(call, GLOBAL);
}

static void pubsub_shardchannels(engine_call_t *call) {
  list_channels(call, SHARD);
}

static void pubsub_numsub(engine_call_t *call) {
  count_subscribers(call, GLOBAL);
}

static void pubsub_shardnumsub(engine_call_t *call) {
  count_subscribers(call, SHARD);
}

static void pubsub_numpat(engine_call_t *call) {
  engine_reply_integer(call, 0);
}

static const engine_command_t pubsub_parts[] = {
    {"CHANNELS", pubsub_channels, -2, 0, NULL},
    {"NUMSUB", pubsub_numsub, -2, 0, NULL},
    {"NUMPAT", pubsub_numpat, 2, 0, NULL},
    {"SHARDCHANNELS", pubsub_shardchannels, -2, 0, NULL},
    {"SHARDNUMSUB", pubsub_shardnumsub, -2, 0, NULL},
    {NULL, NULL, 0, 0, NULL},
};

const engine_command_t engine_pubsub_commands[] = {
    {"SUBSCRIBE", subscribe, -2, ENGINE_NO_SCRIPT | ENGINE_SUBSCRIBED, NULL},
    {"UNSUBSCRIBE", unsubscribe, -1, ENGINE_NO_SCRIPT | ENGINE_SUBSCRIBED, NULL},
    {"SSUBSCRIBE", ssubscribe, -2, ENGINE_NO_SCRIPT | ENGINE_SUBSCRIBED, NULL},
    {"SUNSUBSCRIBE", sunsubscribe, -1, ENGINE_NO_SCRIPT | ENGINE_SUBSCRIBED, NULL},
    {"PUBLISH", publish, 3, ENGINE_WRITES, NULL}, /* what replicas hear too counts as written */
    {"SPUBLISH", spublish, 3, ENGINE_WRITES, NULL},
    {"PUBSUB", NULL, -2, 0, pubsub_parts},
    {NULL, NULL, 0, 0, NULL},
};
