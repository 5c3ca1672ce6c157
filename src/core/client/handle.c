#include "core/client/handle.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/key/key.h"
#include "core/client/lifecycle.h"

/* ---- the end ---- */

static void free_handle(belay_t *belay, belay__handle_t *handle) {
  belay__free(belay, handle->prefix, handle->prefix_len);
  belay__free(belay, handle, handle->type->size);
}

static void on_task(belay__task_t *task) {
  belay__handle_t *handle = BELAY__CONTAINER(task, belay__handle_t, task);
  belay_client_t *client = handle->client;
  belay_t *belay = client->belay;
  if (handle->holds > 0) /* the last release queues the task again */
    return;
  if (handle->close_cb != NULL)
    handle->run_close_cb(handle);
  if (handle->type->deinit != NULL)
    handle->type->deinit(handle);
  belay__free_loop(belay);
  belay__client_remove(client, &handle->object);
  free_handle(belay, handle);
}

void belay__handle_retain(belay__handle_t *handle) {
  handle->holds++;
}

void belay__handle_release(belay__handle_t *handle) {
  handle->holds--;
  if (handle->closing && handle->holds == 0)
    belay__defer(handle->client->belay, &handle->task);
}

void belay__handle_attach(belay__handle_t *handle, belay__child_t *child) {
  belay__list_push(&handle->children, &child->node);
  belay__handle_retain(handle);
}

void belay__handle_detach(belay__handle_t *handle, belay__child_t *child) {
  belay__list_remove(&child->node);
  belay__handle_release(handle);
}

/* ---- giving back ---- */

belay__give_back_t *belay__give_back_new(belay__handle_t *handle, size_t size) {
  belay__give_back_t *giving = belay__alloc(handle->client->belay, size);
  if (giving == NULL)
    return NULL;
  memset(giving, 0, size);
  giving->handle = handle;
  giving->size = size;
  belay__list_push(&handle->returns, &giving->node);
  belay__handle_retain(handle);
  return giving;
}

void belay__give_back_free(belay__give_back_t *giving) {
  belay__handle_t *handle = giving->handle;
  belay__list_remove(&giving->node);
  belay__free(handle->client->belay, giving, giving->size);
  belay__handle_release(handle);
}

static void on_given_back(belay__call_t *call, const belay__result_t *result) {
  belay__give_back_t *giving = call->owner;
  giving->end(giving, call, result);
}

void belay__give_back_send(belay__give_back_t *giving, belay__call_t *call) {
  call->urgent = true;
  if (belay__call_start(&giving->call, call, on_given_back, giving) != 0)
    giving->end(giving, NULL, NULL);
}

void belay__give_back_own(belay__give_back_t *giving, belay__call_t *call) {
  belay__call_own(&giving->call, call, on_given_back, giving);
}

/* Free the struct. If the call failed, the data that the call should remove lives until its ttl
 * ends. */
static void ignore(belay__give_back_t *giving, belay__call_t *call, const belay__result_t *result) {
  (void)call, (void)result;
  belay__give_back_free(giving);
}

void belay__handle_give_back(belay__handle_t *handle, belay__call_t *call) {
  belay__give_back_t *giving = call == NULL ? NULL : belay__give_back_new(handle, sizeof *giving);
  if (giving == NULL) {
    belay__calls_discard(&call, 1);
    return;
  }
  giving->end = ignore;
  belay__give_back_send(giving, call);
}

/* Abandon the background calls. late_only: only the LATE calls, because these have no deadline and
 * could delay the end of the handle. */
static void abandon_returns(belay__handle_t *handle, bool late_only) {
  for (belay__list_t *i = handle->returns.next, *next; i != &handle->returns; i = next) {
    belay__give_back_t *giving = BELAY__CONTAINER(i, belay__give_back_t, node);
    next = i->next;
    if (late_only && giving->call->state != BELAY__CALL_LATE)
      continue;
    (void)belay__call_cancel(&giving->call);
    giving->end(giving, NULL, NULL);
  }
}

/* ---- closing ---- */

static void on_close(belay__object_t *object) {
  belay__handle_t *handle = BELAY__CONTAINER(object, belay__handle_t, object);
  if (handle->closing)
    return;
  belay__handle_retain(handle);
  belay__hold_loop(handle->client->belay);
  handle->closing = true;
  belay__requests_cancel(&handle->requests);
  for (belay__list_t *i = handle->children.next, *next; i != &handle->children; i = next) {
    next = i->next;
    belay__child_t *child = BELAY__CONTAINER(i, belay__child_t, node);
    child->close(child);
  }
  if (handle->type->close != NULL)
    handle->type->close(handle);
  abandon_returns(handle, true);
  belay__handle_release(handle);
}

static void on_abort(belay__object_t *object) {
  belay__handle_t *handle = BELAY__CONTAINER(object, belay__handle_t, object);
  on_close(object);
  abandon_returns(handle, false);
  if (handle->type->abort != NULL && handle->holds > 0)
    handle->type->abort(handle);
}

static const belay__object_ops_t object_ops = {.close = on_close, .abort = on_abort};

int belay__handle_close(belay__handle_t *handle, void (*cb)(void),
                        void (*run_close_cb)(belay__handle_t *handle)) {
  int error = belay__handle_check(handle);
  if (error != 0)
    return error;
  handle->close_cb = cb;
  handle->run_close_cb = run_close_cb;
  on_close(&handle->object);
  return 0;
}

/* ---- a new one ---- */

static bool make_prefix(belay__handle_t *handle, belay_bytes_t name) {
  const belay_client_t *client = handle->client;
  const belay__handle_type_t *type = handle->type;
  char escaped[3 * BELAY__NAME_MAX], text[sizeof escaped + BELAY__NAMESPACE_MAX + 64];
  size_t escaped_len = belay__key_escape(escaped, name.data, name.len);
  const char *before = type->whole ? "{" : "", *behind = type->whole ? "" : "{";
  const char *separator = type->whole || name.len == 0 ? "" : "::";
  handle->prefix_len = (size_t)snprintf(text, sizeof text, "%.*s::%s::%s%.*s%s%s",
                                        (int)client->prefix_len, client->prefix, type->family,
                                        before, (int)escaped_len, escaped, separator, behind);
  assert(handle->prefix_len < sizeof text);
  handle->route = belay__key_route(escaped, escaped_len);
  handle->prefix = belay__alloc(client->belay, handle->prefix_len);
  if (handle->prefix != NULL)
    memcpy(handle->prefix, text, handle->prefix_len);
  return handle->prefix != NULL;
}

static int init(belay__handle_t *handle, belay_client_t *client, const belay__handle_type_t *type,
                void *options, belay_bytes_t name) {
  memset(handle, 0, type->size);
  handle->object.ops = &object_ops;
  handle->client = client;
  handle->type = type;
  memcpy(&handle->data, (char *)options + type->data_at, sizeof handle->data);
  belay__list_init(&handle->requests);
  belay__list_init(&handle->children);
  belay__list_init(&handle->returns);
  belay__task_init(&handle->task, on_task);
  if (!make_prefix(handle, name))
    return BELAY_ENOMEM;
  int error = type->init == NULL ? 0 : type->init(handle, options);
  if (error == 0 && type->copy_at != 0)
    memcpy((char *)handle + type->copy_at, options, type->options_size);
  return error;
}

static belay_bytes_t find_name(const belay__handle_type_t *type, const char *options) {
  belay_bytes_t name = {0};
  if (!type->unnamed)
    memcpy(&name, options + type->name_at, sizeof name);
  return name;
}

int belay__handle_new(belay_client_t *client, const belay__handle_type_t *type, const void *options,
                      void *filled, belay__handle_t **out) {
  int error = belay__client_check(client);
  if (error != 0)
    return error;
  belay_t *belay = client->belay;
  memcpy(filled, options == NULL ? type->defaults : options, type->options_size);
  const belay_bytes_t name = find_name(type, filled);
  if (type->ranges != NULL)
    error = belay__check_ranges(belay, filled, type->ranges);
  if (error != 0)
    return error;
  if (type->variant != NULL)
    type = type->variant(filled);
  error = belay__check_bytes(belay, "name", name, type->whole ? 1 : 0,
                             type->name_max > 0 ? type->name_max : BELAY__HANDLE_NAME_MAX);
  if (error != 0)
    return error;
  belay__handle_t *handle = belay__alloc(belay, type->size);
  if (handle == NULL)
    return BELAY_ENOMEM;
  error = init(handle, client, type, filled, name);
  if (error != 0) {
    free_handle(belay, handle);
    return error;
  }
  belay__client_add(client, &handle->object);
  *out = handle;
  return 0;
}

/* ---- checks ---- */

int belay__handle_check(const belay__handle_t *handle) {
  int error = handle == NULL ? BELAY_EINVAL : belay__client_check(handle->client);
  return error == 0 && handle->closing ? BELAY_ECLOSING : error;
}

int belay__handle_check_request(const belay__handle_t *handle, const belay_request_t *request,
                                bool has_cb) {
  int error = belay__handle_check(handle);
  return error != 0 ? error : belay__request_check(handle->client, request, has_cb);
}

int belay__handle_check_key(const belay__handle_t *handle, const belay_request_t *request,
                            belay_bytes_t key, bool has_cb) {
  int error = belay__handle_check_request(handle, request, has_cb);
  return error != 0
             ? error
             : belay__check_bytes(handle->client->belay, "key", key, 1, BELAY__HANDLE_KEY_MAX);
}

int belay__handle_check_array(const belay__handle_t *handle, const char *what,
                              const belay_bytes_t *items, size_t n, size_t max_n, size_t min_len,
                              size_t max_len) {
  belay_t *belay = handle->client->belay;
  int error = belay__check_count(belay, what, items, n, max_n);
  for (size_t i = 0; i < n && error == 0; i++)
    error = belay__check_bytes(belay, what, items[i], min_len, max_len);
  return error;
}

/* ---- calls ---- */

belay__call_t *belay__handle_command(const belay__handle_t *handle, const char *name, size_t argc) {
  belay__call_t *call = belay__call_new(handle->client, BELAY__CLASS_DATA);
  belay__call_command(call, name, argc);
  return call;
}

belay__call_t *belay__handle_script(const belay__handle_t *handle, const belay__script_t *script,
                                    size_t keys, size_t args) {
  belay__call_t *call = belay__call_new(handle->client, BELAY__CLASS_DATA);
  belay__call_script(call, script, keys, args);
  return call;
}

void belay__handle_arg_id(const belay__handle_t *handle, belay__call_t *call, belay_bytes_t key,
                          const char *tail, belay_bytes_t id) {
  char rest[3 * BELAY__HANDLE_KEY_MAX + 128 + 3 * BELAY__HANDLE_KEY_MAX];
  size_t n = belay__key_escape(rest, key.data, key.len), tail_len = strlen(tail);
  uint32_t route = key.len > 0 ? belay__key_route(rest, n) : handle->route;
  assert(n + tail_len + 3 * id.len <= sizeof rest);
  memcpy(rest + n, tail, tail_len);
  n += tail_len;
  n += belay__key_escape(rest + n, id.data, id.len);
  belay__call_arg_joined(call, handle->prefix, handle->prefix_len, rest, n);
  if (call != NULL)
    call->route = route;
}

void belay__handle_arg(const belay__handle_t *handle, belay__call_t *call, const char *key,
                       size_t key_len, const char *tail) {
  belay__handle_arg_id(handle, call, belay_bytes(key, key_len), tail, (belay_bytes_t){0});
}

void belay__handle_arg_like(belay__call_t *call, const belay__call_t *like) {
  size_t len;
  const char *key = belay__call_key(like, &len);
  belay__call_arg(call, key, len);
  if (call != NULL)
    call->route = like->route;
}

int belay__handle_begin(belay__handle_t *handle, belay_request_t *request,
                        const belay__request_ops_t *ops, void (*cb)(void),
                        belay__operation_t **out) {
  return belay__request_begin(handle->client, request, ops, handle, &handle->requests, cb, out);
}

int belay__handle_begin_room(belay__handle_t *handle, belay_request_t *request,
                             const belay__request_ops_t *ops, void (*cb)(void), size_t room,
                             belay__operation_t **out) {
  int error = belay__handle_begin(handle, request, ops, cb, out);
  if (error != 0 || belay__request_room(*out, room) != NULL)
    return error;
  return belay__request_begun(*out, BELAY_ENOMEM);
}

int belay__handle_start(belay__handle_t *handle, belay_request_t *request, belay__call_t *call,
                        const belay__request_ops_t *ops, void (*cb)(void)) {
  return call == NULL ? BELAY_ENOMEM
                      : belay__request_start(request, call, ops, handle, &handle->requests, cb);
}

int belay__handle_mismatch(const belay__call_t *call, const char *text) {
  return belay__call_blame(call, BELAY_EMISMATCH, text);
}

int belay__handle_fault(const belay__call_t *call, const belay__reply_t *reply,
                        const belay__fault_t *faults, size_t n) {
  int64_t code;
  if (!belay__reply_integer(reply, -(int64_t)n, -1, &code))
    return 0;
  const belay__fault_t *fault = &faults[-1 - code];
  return fault->text == NULL ? fault->error : belay__call_blame(call, fault->error, fault->text);
}
