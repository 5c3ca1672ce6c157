#include "core/client/handle.h"

#include <assert.h>
#include <string.h>

#include "core/key/key.h"
#include "core/client/lifecycle.h"

/* ---- the end ------------------------------------------------------------------------------------------- */

static void on_task(belay__task_t *task) {
  belay__family_t *family = BELAY__CONTAINER(task, belay__family_t, task);
  belay_client_t *client = family->client;
  belay_t *belay = client->belay;
  size_t size = family->ops->size;
  if (family->holds > 0) /* the last of them comes back here */
    return;
  family->ops->gone(family);
  belay__free_loop(belay);
  belay__client_remove(client, &family->object);
  belay__free(belay, family->prefix, family->prefix_len);
  belay__free(belay, family, size);
}

void belay__family_hold(belay__family_t *family) {
  family->holds++;
}

void belay__family_free(belay__family_t *family) {
  family->holds--;
  if (family->closing && family->holds == 0)
    belay__defer(family->client->belay, &family->task);
}

void belay__family_join(belay__family_t *family, belay__part_t *part) {
  belay__list_push(&family->parts, &part->node);
  belay__family_hold(family);
}

void belay__family_leave(belay__family_t *family, belay__part_t *part) {
  belay__list_remove(&part->node);
  belay__family_free(family);
}

/* ---- giving back --------------------------------------------------------------------------------------- */

typedef struct give_back {
  belay__list_t node; /* in family->returns */
  belay__family_t *family;
  belay__call_t *call;
} give_back_t;

static void end_give_back(give_back_t *giving) {
  belay__family_t *family = giving->family;
  belay__list_remove(&giving->node);
  belay__free(family->client->belay, giving, sizeof *giving);
  belay__family_free(family);
}

static void on_given_back(belay__call_t *call, const belay__result_t *result) {
  (void)result; /* on a failure the key lives until its ttl ends */
  end_give_back(call->owner);
}

void belay__family_give_back(belay__family_t *family, belay__call_t *call) {
  give_back_t *giving = call == NULL ? NULL : belay__alloc(family->client->belay, sizeof *giving);
  if (giving == NULL) {
    belay__calls_discard(&call, 1);
    return;
  }
  *giving = (give_back_t){.family = family};
  belay__list_push(&family->returns, &giving->node);
  belay__family_hold(family);
  call->urgent = true;
  if (belay__call_start(&giving->call, call, on_given_back, giving) != 0)
    end_give_back(giving);
}

static void abandon_returns(belay__family_t *family) {
  while (!belay__list_empty(&family->returns)) {
    give_back_t *giving = BELAY__CONTAINER(family->returns.next, give_back_t, node);
    (void)belay__call_cancel(&giving->call);
    end_give_back(giving);
  }
}

/* ---- closing ------------------------------------------------------------------------------------------- */

static void on_close(belay__object_t *object) {
  belay__family_t *family = BELAY__CONTAINER(object, belay__family_t, object);
  if (family->closing)
    return;
  belay__family_hold(family);
  belay__hold_loop(family->client->belay);
  family->closing = true;
  belay__requests_cancel(&family->requests);
  for (belay__list_t *i = family->parts.next, *next; i != &family->parts; i = next) {
    next = i->next;
    belay__part_t *part = BELAY__CONTAINER(i, belay__part_t, node);
    part->close(part);
  }
  if (family->ops->close != NULL)
    family->ops->close(family);
  belay__family_free(family);
}

static void on_abort(belay__object_t *object) {
  belay__family_t *family = BELAY__CONTAINER(object, belay__family_t, object);
  on_close(object);
  abandon_returns(family);
  if (family->ops->abort != NULL && family->holds > 0)
    family->ops->abort(family);
}

static const belay__object_ops_t object_ops = {.close = on_close, .abort = on_abort};

int belay__family_close(belay__family_t *family, void (*cb)(void)) {
  int error = belay__family_check(family);
  if (error != 0)
    return error;
  family->close_cb = cb;
  on_close(&family->object);
  return 0;
}

void *belay__family_data(const belay__family_t *family) {
  return family == NULL ? NULL : family->data;
}

/* ---- a new one ----------------------------------------------------------------------------------------- */

static size_t put(char *out, size_t at, const char *text, size_t len) {
  if (len > 0)
    memcpy(out + at, text, len);
  return at + len;
}

static bool make_prefix(belay__family_t *family, const char *name, size_t name_len) {
  const belay_client_t *client = family->client;
  const belay__family_ops_t *ops = family->ops;
  char escaped[3 * BELAY__FAMILY_NAME_MAX];
  size_t escaped_len = belay__key_escape(escaped, name, name_len);
  size_t named = ops->whole || name_len == 0 ? 0 : 2; /* "::" */
  size_t len = client->prefix_len + 2 + strlen(ops->name) + 3 + escaped_len + named;
  char *out = family->prefix = belay__alloc(client->belay, len);
  if (out == NULL)
    return false;
  family->prefix_len = len;
  size_t at = put(out, 0, client->prefix, client->prefix_len);
  at = put(out, at, "::", 2);
  at = put(out, at, ops->name, strlen(ops->name));
  at = put(out, at, ops->whole ? "::{" : "::", ops->whole ? 3 : 2);
  at = put(out, at, escaped, escaped_len);
  at = put(out, at, "::", named);
  put(out, at, "{", ops->whole ? 0 : 1);
  family->affinity = belay__key_affinity(escaped, escaped_len);
  return true;
}

int belay__family_new(belay_client_t *client, const belay__family_ops_t *ops, const char *name,
                      size_t name_len, belay__family_t **out) {
  if (out == NULL)
    return BELAY_EINVAL;
  *out = NULL;
  name_len = belay__text_len(name, name_len);
  int error = belay__client_check(client);
  if (error == 0)
    error = belay__check_bytes(client->belay, "name", name, name_len, ops->whole ? 1 : 0,
                               BELAY__FAMILY_NAME_MAX);
  if (error != 0)
    return error;
  belay__family_t *family = belay__alloc(client->belay, ops->size);
  if (family == NULL)
    return BELAY_ENOMEM;
  memset(family, 0, ops->size);
  family->object.ops = &object_ops;
  family->client = client;
  family->ops = ops;
  if (!make_prefix(family, name, name_len)) {
    belay__free(client->belay, family, ops->size);
    return BELAY_ENOMEM;
  }
  belay__list_init(&family->requests);
  belay__list_init(&family->parts);
  belay__list_init(&family->returns);
  belay__task_init(&family->task, on_task);
  belay__client_add(client, &family->object);
  *out = family;
  return 0;
}

/* ---- checks -------------------------------------------------------------------------------------------- */

int belay__family_check(const belay__family_t *family) {
  int error = family == NULL ? BELAY_EINVAL : belay__client_check(family->client);
  return error == 0 && family->closing ? BELAY_ECLOSING : error;
}

int belay__family_check_request(const belay__family_t *family, const belay_request_t *request,
                                bool has_cb) {
  int error = belay__family_check(family);
  return error != 0 ? error : belay__request_check(family->client, request, has_cb);
}

int belay__family_check_key(const belay__family_t *family, const belay_request_t *request,
                            const char *key, size_t key_len, bool has_cb) {
  int error = belay__family_check_request(family, request, has_cb);
  return error != 0 ? error
                    : belay__check_bytes(family->client->belay, "key", key, key_len, 1,
                                         BELAY__FAMILY_KEY_MAX);
}

int belay__family_check_items(const belay__family_t *family, const belay_bytes_t *items, size_t n,
                              size_t min_len, size_t max_len) {
  belay_t *belay = family->client->belay;
  if (items == NULL || n < 1 || n > BELAY__FAMILY_KEYS_MAX) {
    belay__detail(belay, "items: NULL, or not 1 to %d of them", BELAY__FAMILY_KEYS_MAX);
    return BELAY_EINVAL;
  }
  int error = 0;
  for (size_t i = 0; i < n && error == 0; i++)
    error = belay__check_bytes(belay, "item", items[i].data, items[i].len, min_len, max_len);
  return error;
}

/* ---- calls --------------------------------------------------------------------------------------------- */

void belay__family_arg(const belay__family_t *family, belay__call_t *call, const char *key,
                       size_t key_len, const char *tail) {
  char rest[3 * BELAY__FAMILY_KEY_MAX + 128];
  size_t n = belay__key_escape(rest, key, key_len), tail_len = strlen(tail);
  assert(tail_len <= 128);
  memcpy(rest + n, tail, tail_len);
  belay__call_arg_joined(call, family->prefix, family->prefix_len, rest, n + tail_len);
  call->affinity = key_len > 0 ? belay__key_affinity(rest, n) : family->affinity;
}

int belay__family_begin(belay__family_t *family, belay_request_t *request,
                        const belay__request_ops_t *ops, void (*cb)(void), belay__pending_t **out) {
  return belay__request_begin(family->client, request, ops, family, &family->requests, cb, out);
}

int belay__family_start(belay__family_t *family, belay_request_t *request, belay__call_t *call,
                        const belay__request_ops_t *ops, void (*cb)(void)) {
  return call == NULL ? BELAY_ENOMEM
                      : belay__request_start(request, call, ops, family, &family->requests, cb);
}

int belay__family_mismatch(const belay__call_t *call, const char *text) {
  return belay__call_blame(call, BELAY_EMISMATCH, text);
}
