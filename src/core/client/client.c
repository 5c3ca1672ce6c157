#include "core/client/client.h"

#include <assert.h>
#include <string.h>

#include "core/client/channel.h"
#include "core/key/key.h"

/* ---- options ------------------------------------------------------------------------------------------- */

static const char *const default_namespace[] = {"belay"};

void belay_client_options_init(belay_client_options_t *options) {
  if (options == NULL)
    return;
  *options = (belay_client_options_t){
      .db = -1,
      .namespace_parts = default_namespace,
      .namespace_count = 1,
      .client_name = "belay",
      .links = 1,
      .connect_timeout_ms = 2000,
      .timeout_ms = 2000,
      .stall_timeout_ms = 5000,
      .idle_timeout_ms = 30000,
      .reconnect_min_ms = 20,
      .reconnect_max_ms = 2000,
      .close_timeout_ms = 1000,
      .tcp_user_timeout_ms = 10000,
      .keepalive_ms = 15000,
      .max_pending = 65536,
      .max_bytes = (size_t)64 << 20,
      .max_reply = (size_t)16 << 20,
      .on_full = BELAY_FULL_REFUSE,
  };
}

bool belay__is_label(const char *text, size_t max) {
  size_t n = strlen(text);
  if (n < 1 || n > max)
    return false;
  for (size_t i = 0; i < n; i++)
    if (text[i] <= ' ' || text[i] > '~')
      return false;
  return true;
}

static int check_ranges(belay_t *belay, const belay_client_options_t *o) {
  const struct {
    const char *name;
    int64_t value, min, max;
  } ranges[] = {
      {"db", o->db, -1, 65535},
      {"namespace_count", (int64_t)o->namespace_count, 1, BELAY__NAMESPACE_PARTS},
      {"links", o->links, 1, 64},
      {"connect_timeout_ms", o->connect_timeout_ms, 1, 600000},
      {"timeout_ms", o->timeout_ms, 1, 600000},
      {"stall_timeout_ms", o->stall_timeout_ms, 10, 600000},
      {"idle_timeout_ms", o->idle_timeout_ms == BELAY_FOREVER ? 10 : o->idle_timeout_ms, 10,
       86400000},
      {"reconnect_min_ms", o->reconnect_min_ms, 1, 60000},
      {"reconnect_max_ms", o->reconnect_max_ms, o->reconnect_min_ms, 600000},
      {"close_timeout_ms", o->close_timeout_ms, 0, 600000},
      {"tcp_user_timeout_ms", o->tcp_user_timeout_ms, 0, 86400000},
      {"keepalive_ms", o->keepalive_ms, 0, 86400000},
      {"max_pending", o->max_pending > INT32_MAX ? INT32_MAX : (int64_t)o->max_pending, 1,
       INT32_MAX},
      {"max_bytes", o->max_bytes > INT64_MAX ? 0 : (int64_t)o->max_bytes, 65536, INT64_MAX},
      {"max_reply", o->max_reply > INT64_MAX ? 0 : (int64_t)o->max_reply, 65536, INT64_MAX},
      {"on_full", (int64_t)o->on_full, BELAY_FULL_REFUSE, BELAY_FULL_WAIT},
      {"read_from", (int64_t)o->read_from, BELAY_READ_PRIMARY, BELAY_READ_ANY},
  };
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
    if (ranges[i].value < ranges[i].min || ranges[i].value > ranges[i].max) {
      belay__detail(belay, "%s: not from %lld to %lld", ranges[i].name, (long long)ranges[i].min,
                    (long long)ranges[i].max);
      return BELAY_EINVAL;
    }
  return 0;
}

int belay__client_options_check(belay_t *belay, const belay_client_options_t *o) {
  int error = check_ranges(belay, o);
  if (error != 0)
    return error;
  if (o->namespace_parts == NULL) {
    belay__detail(belay, "namespace_parts: NULL");
    return BELAY_EINVAL;
  }
  for (size_t i = 0; i < o->namespace_count; i++) {
    size_t n = o->namespace_parts[i] == NULL ? 0 : strlen(o->namespace_parts[i]);
    if (n < 1 || n > BELAY__NAMESPACE_PART_MAX) {
      belay__detail(belay, "namespace_parts[%zu]: not 1 to 128 bytes", i);
      return BELAY_EINVAL;
    }
  }
  if (o->client_name == NULL || !belay__is_label(o->client_name, 64)) {
    belay__detail(belay, "client_name: not 1 to 64 printable bytes");
    return BELAY_EINVAL;
  }
  if (o->owner != NULL && !belay__is_label(o->owner, BELAY__OWNER_MAX)) {
    belay__detail(belay, "owner: not 1 to 64 printable bytes");
    return BELAY_EINVAL;
  }
  return 0;
}

/* ---- making -------------------------------------------------------------------------------------------- */

static void ping_told(belay__task_t *task);
void belay__client_connected(belay_client_t *client) {
  belay__call_hurry_rests(client);
  for (belay__list_t *node = client->objects.next; node != &client->objects; node = node->next) {
    belay__object_t *object = BELAY__CONTAINER(node, belay__object_t, node);
    if (object->ops->connected != NULL)
      object->ops->connected(object);
  }
}

static void close_node_if_empty(belay_client_t *client);
static void gone(belay__task_t *task);
static void close_timeout(belay__timer_t *timer);

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
  belay__list_init(&client->terms);
  belay__list_init(&client->objects);
  belay__channels_init(client);
  belay__task_init(&client->ping_task, ping_told);
  belay__task_init(&client->close_task, gone);
  belay__list_push(&belay->clients, &client->node);
  return 0;
}

void belay__client_fini(belay_client_t *client) {
  belay__list_remove(&client->node);
  belay__channels_free(client);
  belay__call_pool_free(client);
  belay__table_free(client->belay, &client->lines);
  belay__pool_free(client->belay, &client->bids);
  belay__free(client->belay, client->prefix, client->prefix_len);
}

int belay__client_check(belay_client_t *client) {
  if (client == NULL)
    return BELAY_EINVAL;
  int error = belay__check(client->belay);
  return error == 0 && client->closing ? BELAY_ECLOSING : error;
}

bool belay__client_can(belay_client_t *client, belay__capability_t what) {
  return client->node_ops->can(client, what);
}

bool belay__client_ghost(const belay_client_t *client, const belay__call_t *answered,
                         uint32_t epoch) {
  if (epoch == 0 || epoch == answered->epoch)
    return false;
  return epoch > client->node_ops->dead_epoch(client, answered->lane, answered->affinity);
}

void belay__client_refused(belay_client_t *client, int error, const char *text, size_t len) {
  belay__said_t said;
  belay__said_begin(&said, text, len);
  (void)belay__said_write(&said, client->refused.text);
  client->refused.key_len = 0;
  client->refused.error = error;
}

void belay__client_explain(belay_client_t *client, int status, const char *key, size_t key_len) {
  belay_t *belay = client->belay;
  const belay__refused_t *refused = &client->refused;
  char shown[BELAY__KEY_SHOWN];
  belay->detail[0] = '\0';
  if (status == 0 || status != refused->error)
    return;
  if (status != BELAY_EWRONGTYPE || key == NULL) {
    belay__detail(belay, "%s", refused->text);
    return;
  }
  (void)belay__words(shown, sizeof shown, key, key_len);
  belay__detail(belay, "%s: %s", shown, refused->text + refused->key_len);
}

/* ---- ping ---------------------------------------------------------------------------------------------- */

static void ping_told(belay__task_t *task) {
  belay_client_t *client = BELAY__CONTAINER(task, belay_client_t, ping_task);
  belay_client_cb cb = client->ping_cb;
  client->ping_cb = NULL;
  belay__free_loop(client->belay);
  belay__client_explain(client, client->ping_status, NULL, 0);
  cb(client, client->ping_status);
  close_node_if_empty(client);
}

static void ping_done(belay__call_t *call, const belay__result_t *result) {
  belay_client_t *client = call->owner;
  client->ping = NULL;
  client->ping_status = result->error;
  if (result->outcome == BELAY_OUTCOME_REPLY && !belay__reply_is(result->reply, "PONG", 4)) {
    client->ping_status = BELAY_EPROTO;
    belay__call_distrust(call, result->reply);
  }
  belay__defer(client->belay, &client->ping_task);
}

int belay_client_ping(belay_client_t *client, int64_t timeout_ms, belay_client_cb cb) {
  int error = belay__client_check(client);
  if (error != 0)
    return error;
  if (timeout_ms == BELAY_DEFAULT)
    timeout_ms = client->timeout_ms;
  if (cb == NULL || timeout_ms < 1 || timeout_ms > 600000) {
    belay__detail(client->belay, cb == NULL ? "cb: NULL" : "timeout_ms: not from 1 to 600000");
    return BELAY_EINVAL;
  }
  if (client->ping_cb != NULL)
    return BELAY_ESTATE;
  belay__call_t *call = belay__call_new(client, BELAY__LANE_LEASE);
  if (call == NULL)
    return BELAY_ENOMEM;
  belay__call_command(call, "PING", 1);
  call->deadline = belay__after_ms(client->belay, timeout_ms);
  call->done = ping_done;
  call->owner = client;
  error = belay__call_send(&call, 1);
  if (error == BELAY_EBUSY || error == BELAY_ENOMEM)
    return error;
  client->ping_cb = cb;
  belay__hold_loop(client->belay);
  if (error == 0) {
    client->ping = call;
  } else { /* the server does not let us in: that is an answer */
    client->ping_status = error;
    belay__defer(client->belay, &client->ping_task);
  }
  return 0;
}

/* ---- closing ------------------------------------------------------------------------------------------- */

void belay__client_add(belay_client_t *client, belay__object_t *object) {
  belay__list_push(&client->objects, &object->node);
  client->stats.objects++;
}

static void close_node_if_empty(belay_client_t *client) {
  if (!client->closing || client->node_closing || !belay__list_empty(&client->objects) ||
      client->ping_cb != NULL)
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

void belay__client_lost_connection(belay_client_t *client) {
  for (belay__list_t *i = client->objects.next; i != &client->objects && !client->closing;
       i = i->next) {
    belay__object_t *object = BELAY__CONTAINER(i, belay__object_t, node);
    if (object->ops->lost_connection != NULL)
      object->ops->lost_connection(object);
  }
}

/* Calls close or abort of every object. One that ends takes itself out, and no other. */
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

void belay__client_start_close(belay_client_t *client, bool now) {
  if (!client->closing) {
    client->closing = true;
    belay__hold_loop(client->belay);
    if (client->ping != NULL) {
      belay__call_abandon(client->ping);
      client->ping = NULL;
      client->ping_status = BELAY_ECANCELED;
      belay__defer(client->belay, &client->ping_task);
    }
    belay__timer_set(client->belay, BELAY__RANK_OTHER, &client->close_timer,
                     belay__after_ms(client->belay, client->close_timeout_ms));
    end_objects(client, false);
  }
  if (now)
    end_objects(client, true);
  close_node_if_empty(client);
}

int belay_client_close(belay_client_t *client, belay_client_close_cb cb) {
  int error = belay__client_check(client);
  if (error != 0)
    return error;
  client->close_cb = cb;
  belay__client_start_close(client, client->belay->host->dead(client->belay));
  return 0;
}

void belay__client_gone(belay_client_t *client) {
  belay__defer(client->belay, &client->close_task);
}

static void gone(belay__task_t *task) {
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

/* ---- the rest ------------------------------------------------------------------------------------------ */

void belay_client_set_data(belay_client_t *client, void *data) {
  if (client != NULL)
    client->data = data;
}

void *belay_client_data(const belay_client_t *client) {
  return client == NULL ? NULL : client->data;
}

belay_t *belay_client_belay(const belay_client_t *client) {
  return client == NULL ? NULL : client->belay;
}

void belay_client_stats(const belay_client_t *client, belay_client_stats_t *out) {
  *out = (belay_client_stats_t){0};
  if (client == NULL)
    return;
  *out = client->stats;
  out->objects -= out->undo_pending; /* an undo is an object too, but not one that was asked for */
  out->links_up = client->node_ops->links_up(client);
}
