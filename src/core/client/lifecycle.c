#include "core/client/lifecycle.h"

#include <assert.h>
#include <string.h>

#include "core/call/call.h"
#include "core/client/channel.h"
#include "core/key/key.h"

/* ---- closing ---- */

static void close_node_if_empty(belay_client_t *client) {
  if (!client->closing || client->node_closing || !belay__list_empty(&client->objects))
    return;
  client->node_closing = true;
  belay__timer_stop(client->belay, BELAY__RANK_OTHER, &client->close_timer);
  belay__call_end_rests(client);
  belay__channels_close(client);
  client->node_ops->close(client);
}

void belay__client_remove(belay_client_t *client, belay__object_t *object) {
  belay__list_remove(&object->node);
  client->stats.objects--;
  close_node_if_empty(client);
}

/* Call `abort` of all objects if `now` is true, else `close`. Meanwhile an object may remove itself
 * from the list, but no other object. */
static void end_objects(belay_client_t *client, bool now) {
  for (belay__list_t *i = client->objects.next, *next; i != &client->objects; i = next) {
    next = i->next;
    belay__object_t *object = BELAY__CONTAINER(i, belay__object_t, node);
    (now ? object->ops->abort : object->ops->close)(object);
  }
}

static void close_timeout(belay__timer_t *timer) {
  end_objects(BELAY__CONTAINER(timer, belay_client_t, close_timer), true);
}

static void start_close(belay__closable_t *closable, bool now) {
  belay_client_t *client = BELAY__CONTAINER(closable, belay_client_t, closable);
  if (!client->closing) {
    client->closing = true;
    belay__hold_loop(client->belay);
    belay__timer_set(client->belay, BELAY__RANK_OTHER, &client->close_timer,
                     belay__after_ms(client->belay, client->close_timeout_ms));
    end_objects(client, false);
  }
  if (now)
    end_objects(client, true);
  close_node_if_empty(client);
}

void belay__client_start_close(belay_client_t *client, bool now) {
  start_close(&client->closable, now);
}

int belay_client_close(belay_client_t *client, belay_client_close_cb cb) {
  int error = belay__client_check(client);
  if (error != 0)
    return error;
  client->close_cb = cb;
  belay__client_start_close(client, client->belay->host->dead(client->belay));
  return 0;
}

void belay__client_node_closed(belay_client_t *client) {
  belay__defer(client->belay, &client->close_task);
}

static void free_closed_client(belay__task_t *task) {
  belay_client_t *client = BELAY__CONTAINER(task, belay_client_t, close_task);
  belay_t *belay = client->belay;
  assert(belay__list_empty(&client->objects) && client->stats.pending == 0);
  if (client->close_cb != NULL)
    client->close_cb(client, client->data);
  belay__client_fini(client);
  client->node_ops->free(client);
  belay__free_loop(belay);
  belay__close_if_empty(belay);
}

/* ---- making ---- */

int belay__client_init(belay_client_t *client, belay_t *belay, const belay__node_ops_t *node_ops,
                       const belay_client_options_t *options, const char *owner) {
  *client = (belay_client_t){
      .belay = belay,
      .node_ops = node_ops,
      .timeout_ms = options->timeout_ms,
      .stall_timeout_ms = options->stall_timeout_ms,
      .close_timeout_ms = options->close_timeout_ms,
      .max_bytes = options->max_bytes,
      .max_reply = options->max_reply,
      .read_from = options->read_from,
      .trace = options->trace,
      .trace_ctx = options->trace_ctx,
      .closable = {.close = start_close},
      .close_timer = {.fire = close_timeout},
  };
  client->prefix_len =
      belay__key_namespace(NULL, options->namespace_parts, options->namespace_count);
  client->prefix = belay__alloc(belay, client->prefix_len);
  if (client->prefix == NULL)
    return BELAY_ENOMEM;
  belay__key_namespace(client->prefix, options->namespace_parts, options->namespace_count);
  if (options->owner != NULL)
    owner = options->owner;
  client->owner_len = strlen(owner) < BELAY__OWNER_MAX ? strlen(owner) : BELAY__OWNER_MAX;
  memcpy(client->owner, owner, client->owner_len);
  belay__list_init(&client->resting);
  belay__list_init(&client->pool);
  belay__list_init(&client->objects);
  belay__channels_init(client);
  belay__task_init(&client->close_task, free_closed_client);
  belay__list_push(&belay->closables, &client->closable.node);
  return 0;
}

void belay__client_fini(belay_client_t *client) {
  belay__list_remove(&client->closable.node);
  if (client->extension != NULL)
    client->extension->free(client, client->extension);
  if (client->groups != NULL)
    client->groups->free(client, client->groups);
  belay__channels_free(client);
  belay__call_pool_free(client);
  belay__pool_free(client->belay, &client->rooms);
  belay__free(client->belay, client->prefix, client->prefix_len);
}

/* ---- objects ---- */

void belay__client_add(belay_client_t *client, belay__object_t *object) {
  belay__list_push(&client->objects, &object->node);
  client->stats.objects++;
}

void belay__client_connected(belay_client_t *client) {
  belay__call_hurry_rests(client);
  for (belay__list_t *node = client->objects.next; node != &client->objects; node = node->next) {
    belay__object_t *object = BELAY__CONTAINER(node, belay__object_t, node);
    if (object->ops->connected != NULL)
      object->ops->connected(object);
  }
}

void belay__client_lost_connection(belay_client_t *client) {
  for (belay__list_t *i = client->objects.next; i != &client->objects && !client->closing;
       i = i->next) {
    belay__object_t *object = BELAY__CONTAINER(i, belay__object_t, node);
    if (object->ops->lost_connection != NULL)
      object->ops->lost_connection(object);
  }
}
