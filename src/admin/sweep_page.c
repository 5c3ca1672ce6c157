/* The requests of a sweep, and the reading of their replies. */
#include "admin/sweep.h"

#include <string.h>

static belay_t *belay_of(const belay_sweep_t *sweep) {
  return sweep->handle.client->belay;
}

void belay__sweep_drop_page(belay_sweep_t *sweep) {
  belay__free(belay_of(sweep), sweep->page.keys, sweep->page.size);
  sweep->page = (belay__sweep_page_t){0};
}

/* true if the key belongs to the page: the key is in the namespace, and sweep->work accepts it. The
 * function checks the namespace because a wrong reply could have other keys. */
static bool is_wanted(const belay_sweep_t *sweep, const belay__reply_t *key) {
  const belay_client_t *client = sweep->handle.client;
  const belay__sweep_work_t *work = sweep->work;
  size_t len = client->prefix_len;
  return key->len >= len + 2 && memcmp(key->str, client->prefix, len) == 0 &&
         memcmp(key->str + len, "::", 2) == 0 &&
         (work == NULL || work->accepts == NULL || work->accepts(sweep, key->str, key->len));
}

static bool keep_page(belay_sweep_t *sweep, const belay__reply_t *keys) {
  size_t n = 0, bytes = 0;
  for (size_t i = 0; i < keys->count; i++)
    if (is_wanted(sweep, keys->items[i])) {
      n++;
      bytes += keys->items[i]->len;
    }
  belay__sweep_drop_page(sweep);
  if (n == 0)
    return true;
  size_t size = n * sizeof(belay_bytes_t) + bytes;
  belay_bytes_t *out = belay__alloc(belay_of(sweep), size);
  if (out == NULL)
    return false;
  char *text = (char *)(out + n);
  sweep->page = (belay__sweep_page_t){.keys = out, .size = size, .n = n};
  for (size_t i = 0; i < keys->count; i++) {
    const belay__reply_t *key = keys->items[i];
    if (!is_wanted(sweep, key))
      continue;
    *out++ = (belay_bytes_t){.data = memcpy(text, key->str, key->len), .len = key->len};
    text += key->len;
  }
  return true;
}

/* Finds the i-th server and the present version of the slot map; false if there is no such
 * server. */
static bool find_shard(const belay_sweep_t *sweep, size_t i, uint32_t *route, uint32_t *version) {
  const belay_client_t *client = sweep->handle.client;
  return client->node_ops->shard(client, i, route, version);
}

void belay__sweep_begin(belay_sweep_t *sweep) {
  belay__sweep_position_t *position = &sweep->position;
  *position = (belay__sweep_position_t){0};
  (void)find_shard(sweep, 0, &position->route, &position->version);
}

/* Moves the position to the next page of the server; after cursor 0 to the next server, or to the
 * end. */
static void advance(belay_sweep_t *sweep, uint64_t cursor) {
  belay__sweep_position_t *position = &sweep->position, next = {.shard = position->shard + 1};
  position->cursor = cursor;
  if (cursor != 0)
    return;
  if (find_shard(sweep, next.shard, &next.route, &next.version))
    *position = next;
  else
    position->over = true;
}

/* True if the slot map has changed since the scan began: keys may have moved between the servers.
 * Before the first reply the version may be 0 (unknown): then the function stores the present
 * version. */
static bool have_slots_moved(belay_sweep_t *sweep) {
  belay__sweep_position_t *position = &sweep->position;
  uint32_t route, version;
  (void)find_shard(sweep, 0, &route, &version);
  if (position->version == 0 && position->shard == 0 && position->cursor == 0)
    position->version = version;
  return version != position->version;
}

/* Returns true if the reply comes from the process that made the cursor, or is the first of this
 * server. Remembers the process of the reply. Without a run id the connection identifies the
 * process. */
static bool is_same_server(belay_sweep_t *sweep, const belay__call_t *call) {
  belay_client_t *client = call->client;
  belay__sweep_position_t *position = &sweep->position;
  const belay__server_info_t *server =
      client->node_ops->server(client, (belay__conn_class_t)call->conn_class, call->route);
  belay__sweep_position_t now = *position;
  now.known = true;
  now.epoch = call->epoch;
  now.run_id_len = 0;
  if (server != NULL) {
    now.run_id_len = server->run_id_len;
    memcpy(now.run_id, server->run_id, server->run_id_len);
  }
  bool same = !position->known ||
              (now.run_id_len > 0 && now.run_id_len == position->run_id_len
                   ? memcmp(now.run_id, position->run_id, now.run_id_len) == 0
                   : now.run_id_len == position->run_id_len && now.epoch == position->epoch);
  *position = now;
  return same;
}

static int read_page(belay__operation_t *operation, const belay__call_t *call,
                     const belay__reply_t *reply) {
  belay_sweep_t *sweep = operation->context;
  uint64_t cursor;
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != 2 ||
      !belay__reply_number(reply->items[0], 0, UINT64_MAX, &cursor) ||
      reply->items[1]->type != BELAY__REPLY_ARRAY)
    return BELAY_EPROTO;
  const belay__reply_t *keys = reply->items[1];
  for (size_t i = 0; i < keys->count; i++)
    if (keys->items[i]->type != BELAY__REPLY_STRING)
      return BELAY_EPROTO;
  if (!keep_page(sweep, keys))
    return BELAY_ENOMEM;
  bool first_page = sweep->position.cursor == 0, same = is_same_server(sweep, call);
  if ((same || first_page) && !have_slots_moved(sweep)) {
    advance(sweep, cursor);
  } else {
    sweep->totals.restarts++;
    belay__sweep_begin(sweep);
  }
  return 0;
}

static belay__call_t *new_call(belay_sweep_t *sweep, const char *name, size_t argc) {
  belay__call_t *call = belay__call_new(sweep->handle.client, BELAY__CLASS_BULK);
  belay__call_command(call, name, argc);
  if (call != NULL)
    call->route = sweep->position.route; /* SCAN has no key that would select the server */
  return call;
}

static const belay__request_ops_t scan_ops = {
    .read = read_page, .notify = belay__sweep_notify, .idempotent = true};

int belay__sweep_scan(belay_sweep_t *sweep) {
  size_t type_len = strlen(sweep->type);
  belay__sweep_drop_page(sweep);
  sweep->cost = sweep->count;
  belay__call_t *call = new_call(sweep, "SCAN", type_len > 0 ? 8 : 6);
  belay__call_arg_uint(call, sweep->position.cursor);
  belay__call_arg_text(call, "MATCH");
  belay__call_arg(call, sweep->match, sweep->match_len);
  belay__call_arg_text(call, "COUNT");
  belay__call_arg_int(call, sweep->count);
  if (type_len > 0) {
    belay__call_arg_text(call, "TYPE");
    belay__call_arg(call, sweep->type, type_len);
  }
  return belay__handle_start(&sweep->handle, &sweep->request, call, &scan_ops, NULL);
}

int belay__sweep_work(belay_sweep_t *sweep) {
  const belay__sweep_page_t *page = &sweep->page;
  belay__call_t *calls[BELAY__SWEEP_CALLS_MAX];
  belay__operation_t *operation;
  size_t left = page->n - page->next, n = left < sweep->calls ? left : sweep->calls, made = 0;
  int error =
      belay__handle_begin(&sweep->handle, &sweep->request, &sweep->work->ops, NULL, &operation);
  if (error != 0)
    return error;
  while (made < n &&
         (calls[made] = sweep->work->call(sweep, &page->keys[page->next + made])) != NULL)
    made++;
  sweep->cost = (uint32_t)made;
  error = made == 0 ? BELAY_ENOMEM : belay__request_send_all(operation, calls, made);
  return belay__request_begun(operation, error);
}

static belay__call_t *new_unlink(belay_sweep_t *sweep, const belay_bytes_t *key) {
  belay__call_t *call = new_call(sweep, "UNLINK", 2);
  belay__call_arg(call, key->data, key->len);
  return call;
}

static int read_unlinked(belay__operation_t *operation, const belay__call_t *call,
                         const belay__reply_t *reply) {
  belay_sweep_t *sweep = operation->context;
  int64_t n;
  (void)call;
  if (!belay__reply_integer(reply, 0, 1, &n))
    return BELAY_EPROTO;
  sweep->totals.deleted += (uint64_t)n;
  return 0;
}

const belay__sweep_work_t belay__sweep_deleting = {
    .call = new_unlink,
    .ops = {.read = read_unlinked, .notify = belay__sweep_notify, .idempotent = true}};
