/* The refilled bucket: a number of tokens and the index of the next filling, a key for each, and scripts that know
 * both. All its operations are requests.
 *
 *   OPEN --close, the client closes--> CLOSING: its requests are canceled, its parts close
 *                                        |--the last part has left; the task
 *                                        v
 *                                      told, gone
 *
 * The task is queued behind those of the requests, so that they are told before. */
#include "limit/bucket.h"

#include <inttypes.h>
#include <string.h>

#include "core/key.h"
#include "core/request.h"
#include "scripts.gen.h"

#define FAMILY "bucket"
#define NAME_MAX_LEN ((size_t)128)
#define TTL_MAX_MS INT64_C(31536000000) /* a year */

struct belay_bucket {
  belay__object_t object; /* of the client */
  belay_client_t *client;
  belay__list_t requests; /* that are pending */
  belay__list_t parts;
  belay__task_t task;
  belay_bucket_close_cb close_cb;
  void *data;
  int64_t capacity, idle_ms, index_ms;
  bool full, closing;
  size_t prefix_len;
  char prefix[];
};

/* ---- options ------------------------------------------------------------------------------------------- */

void belay_bucket_options_init(belay_bucket_options_t *options) {
  if (options == NULL)
    return;
  *options = (belay_bucket_options_t){.idle_ms = 3600000, .index_ms = 86400000};
}

static int check_range(belay_t *belay, const char *what, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max)
    return 0;
  belay__detail(belay, "%s: not from %" PRId64 " to %" PRId64, what, min, max);
  return BELAY_EINVAL;
}

static int check_options(belay_t *belay, const belay_bucket_options_t *o) {
  if (o->name_len > NAME_MAX_LEN || (o->name == NULL && o->name_len > 0)) {
    belay__detail(belay, "name: NULL, or more than %zu bytes", NAME_MAX_LEN);
    return BELAY_EINVAL;
  }
  int error = check_range(belay, "capacity", o->capacity, 1, BELAY_BUCKET_TOKENS_MAX);
  if (error == 0)
    error = check_range(belay, "idle_ms", o->idle_ms, 1000, TTL_MAX_MS);
  if (error == 0)
    error = check_range(belay, "index_ms", o->index_ms, o->idle_ms, TTL_MAX_MS);
  return error;
}

/* ---- closing ------------------------------------------------------------------------------------------- */

static void on_task(belay__task_t *task) {
  belay_bucket_t *bucket = BELAY__CONTAINER(task, belay_bucket_t, task);
  belay_client_t *client = bucket->client;
  belay_t *belay = client->belay;
  if (bucket->close_cb != NULL)
    bucket->close_cb(bucket, bucket->data);
  belay__client_remove(client, &bucket->object);
  belay__free(belay, bucket, sizeof *bucket + bucket->prefix_len + 1);
}

static void go_if_alone(belay_bucket_t *bucket) {
  if (bucket->closing && belay__list_empty(&bucket->parts))
    belay__defer(bucket->client->belay, &bucket->task);
}

/* Begins to close, unless it has begun. */
static void on_close(belay__object_t *object) {
  belay_bucket_t *bucket = BELAY__CONTAINER(object, belay_bucket_t, object);
  if (bucket->closing)
    return;
  bucket->closing = true;
  belay__requests_cancel(&bucket->requests);
  for (belay__list_t *i = bucket->parts.next, *next; i != &bucket->parts; i = next) {
    next = i->next;
    belay__bucket_part_t *part = BELAY__CONTAINER(i, belay__bucket_part_t, node);
    part->close(part);
  }
  go_if_alone(bucket);
}

static const belay__object_ops_t object_ops = {.close = on_close, .abort = on_close};

void belay__bucket_join(belay_bucket_t *bucket, belay__bucket_part_t *part) {
  belay__list_push(&bucket->parts, &part->node);
}

void belay__bucket_leave(belay_bucket_t *bucket, belay__bucket_part_t *part) {
  belay__list_remove(&part->node);
  go_if_alone(bucket);
}

int belay__bucket_check(const belay_bucket_t *bucket) {
  int error = bucket == NULL ? BELAY_EINVAL : belay__client_check(bucket->client);
  return error == 0 && bucket->closing ? BELAY_ECLOSING : error;
}

int belay_bucket_close(belay_bucket_t *bucket, belay_bucket_close_cb cb) {
  int error = belay__bucket_check(bucket);
  if (error != 0)
    return error;
  bucket->close_cb = cb;
  on_close(&bucket->object);
  return 0;
}

/* ---- a new one ----------------------------------------------------------------------------------------- */

/* The family of its keys, its name in it. */
static void put_family(char out[sizeof FAMILY + 2 + 3 * NAME_MAX_LEN],
                       const belay_bucket_options_t *o) {
  size_t n = sizeof FAMILY - 1;
  memcpy(out, FAMILY "::", sizeof FAMILY + 2);
  if (o->name_len > 0)
    n += 2 + belay__key_escape(out + n + 2, o->name, o->name_len);
  out[n] = '\0';
}

int belay_bucket_new(belay_client_t *client, const belay_bucket_options_t *options,
                     belay_bucket_t **out) {
  belay_bucket_options_t o;
  char family[sizeof FAMILY + 2 + 3 * NAME_MAX_LEN];
  if (out == NULL)
    return BELAY_EINVAL;
  *out = NULL;
  int error = belay__client_check(client);
  if (error != 0)
    return error;
  belay_bucket_options_init(&o);
  if (options != NULL)
    o = *options;
  if ((error = check_options(client->belay, &o)) != 0)
    return error;
  put_family(family, &o);
  size_t len = belay__key_build(NULL, client->prefix, client->prefix_len, family, "", 0);
  belay_bucket_t *bucket = belay__alloc(client->belay, sizeof *bucket + len);
  if (bucket == NULL)
    return BELAY_ENOMEM;
  *bucket = (belay_bucket_t){.object = {.ops = &object_ops},
                             .client = client,
                             .data = o.data,
                             .capacity = o.capacity,
                             .idle_ms = o.idle_ms,
                             .index_ms = o.index_ms,
                             .full = o.full,
                             .prefix_len = len - 1}; /* without the last brace */
  belay__key_build(bucket->prefix, client->prefix, client->prefix_len, family, "", 0);
  belay__list_init(&bucket->requests);
  belay__list_init(&bucket->parts);
  belay__task_init(&bucket->task, on_task);
  belay__client_add(client, &bucket->object);
  *out = bucket;
  return 0;
}

/* ---- answers ------------------------------------------------------------------------------------------- */

enum { APPLIED, TOKENS, INDEX, VALUES }; /* of a request */

static int64_t tokens_of_missing(const belay_bucket_t *bucket) {
  return bucket->full ? bucket->capacity : 0;
}

static int mismatch(belay_client_t *client, const char *text) {
  belay__client_refused(client, BELAY_EMISMATCH, text, strlen(text));
  return BELAY_EMISMATCH;
}

static int read_state(belay__pending_t *pending, const belay__call_t *call,
                      const belay__reply_t *reply) {
  (void)call;
  const belay_bucket_t *bucket = pending->context;
  const int64_t max[VALUES] = {1, bucket->capacity, BELAY_BUCKET_INDEX_MAX};
  int64_t what;
  if (belay__reply_integer(reply, -2, -1, &what))
    return mismatch(pending->client, what == -1
                                         ? "what the bucket's key holds is no number of tokens"
                                         : "what the bucket's ::index key holds is no index");
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != VALUES)
    return BELAY_EPROTO;
  for (int i = 0; i < VALUES; i++)
    if (!belay__reply_integer(reply->items[i], 0, max[i], &pending->values[i]))
      return BELAY_EPROTO;
  return 0;
}

/* Where an answer was lost, and this time the index is another one, it may be we who have stepped it. */
static int read_added(belay__pending_t *pending, const belay__call_t *call,
                      const belay__reply_t *reply) {
  int error = read_state(pending, call, reply);
  return error == 0 && pending->maybe && !pending->values[APPLIED] ? BELAY_EUNKNOWN : error;
}

static int read_deleted(belay__pending_t *pending, const belay__call_t *call,
                        const belay__reply_t *reply) {
  (void)call;
  int64_t keys;
  if (!belay__reply_integer(reply, 0, 2, &keys))
    return BELAY_EPROTO;
  pending->values[APPLIED] = keys > 0;
  pending->values[TOKENS] = tokens_of_missing(pending->context);
  return 0;
}

static void tell(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  const belay_bucket_state_t state = {.applied = answer->values[APPLIED] != 0,
                                      .tokens = answer->values[TOKENS],
                                      .index = answer->values[INDEX]};
  ((belay_bucket_cb)cb)(request, answer->status, answer->status == 0 ? &state : NULL);
}

static const belay__request_ops_t fetch_ops = {.read = read_state, .tell = tell};
static const belay__request_ops_t add_ops = {.read = read_added, .tell = tell, .idempotent = true};
static const belay__request_ops_t read_ops = {.read = read_state, .tell = tell, .idempotent = true};
static const belay__request_ops_t delete_ops = {.read = read_deleted, .tell = tell};

/* ---- operations ---------------------------------------------------------------------------------------- */

static int check(const belay_bucket_t *bucket, const belay_request_t *request, const char *key,
                 size_t key_len, bool has_cb) {
  int error = belay__bucket_check(bucket);
  if (error != 0)
    return error;
  belay_t *belay = bucket->client->belay;
  if (key == NULL || key_len < 1 || key_len > BELAY_BUCKET_KEY_MAX) {
    belay__detail(belay, "key: not 1 to %zu bytes", BELAY_BUCKET_KEY_MAX);
    return BELAY_EINVAL;
  }
  if (!has_cb) {
    belay__detail(belay, "cb: NULL");
    return BELAY_EINVAL;
  }
  return belay__request_check(bucket->client, request);
}

static int check_tokens(const belay_bucket_t *bucket, int64_t tokens) {
  return check_range(bucket->client->belay, "tokens", tokens, 1, bucket->capacity);
}

/* Adds both keys of a bucket. Calls of one key share a connection, and so keep their order. */
static void put_keys(const belay_bucket_t *bucket, belay__call_t *call, const char *key,
                     size_t key_len) {
  static const char index[] = BELAY__BUCKET_INDEX;
  char rest[3 * BELAY_BUCKET_KEY_MAX + sizeof index];
  size_t n = belay__key_escape(rest, key, key_len);
  memcpy(rest + n, index, sizeof index);
  belay__call_arg_joined(call, bucket->prefix, bucket->prefix_len, rest, n + 1);
  belay__call_arg_joined(call, bucket->prefix, bucket->prefix_len, rest, n + sizeof index - 1);
  call->affinity = belay__key_affinity(key, key_len);
}

static int start(belay_bucket_t *bucket, belay_request_t *request, belay__call_t *call,
                 const belay__request_ops_t *ops, belay_bucket_cb cb) {
  return belay__request_start(request, call, ops, bucket, &bucket->requests, (void (*)(void))cb);
}

/* Of 0 tokens it is a look. */
static belay__call_t *new_fetch(const belay_bucket_t *bucket, const char *key, size_t key_len,
                                int64_t tokens) {
  belay__call_t *call = belay__call_new(bucket->client, BELAY__LANE_DATA);
  if (call == NULL)
    return NULL;
  belay__call_script(call, &belay__script_bucket_fetch, 2, 4);
  put_keys(bucket, call, key, key_len);
  belay__call_arg_int(call, tokens);
  belay__call_arg_int(call, bucket->capacity);
  belay__call_arg_int(call, tokens_of_missing(bucket));
  belay__call_arg_int(call, bucket->idle_ms);
  return call;
}

int belay_bucket_fetch(belay_bucket_t *bucket, belay_request_t *request, const char *key,
                       size_t key_len, int64_t tokens, belay_bucket_cb cb) {
  int error = check(bucket, request, key, key_len, cb != NULL);
  if (error == 0)
    error = check_tokens(bucket, tokens);
  if (error != 0)
    return error;
  belay__call_t *call = new_fetch(bucket, key, key_len, tokens);
  return call == NULL ? BELAY_ENOMEM : start(bucket, request, call, &fetch_ops, cb);
}

int belay_bucket_read(belay_bucket_t *bucket, belay_request_t *request, const char *key,
                      size_t key_len, belay_bucket_cb cb) {
  int error = check(bucket, request, key, key_len, cb != NULL);
  if (error != 0)
    return error;
  belay__call_t *call = new_fetch(bucket, key, key_len, 0);
  return call == NULL ? BELAY_ENOMEM : start(bucket, request, call, &read_ops, cb);
}

/* The index outlives the last time that this may be sent, or that would find a bucket that has no index again. */
static int64_t index_ms(const belay_bucket_t *bucket, const belay_request_t *request) {
  int64_t ms = belay__request_timeout_ms(bucket->client, request);
  ms += ms / 100 + 2;
  return ms > bucket->index_ms ? ms : bucket->index_ms;
}

int belay_bucket_add(belay_bucket_t *bucket, belay_request_t *request, const char *key,
                     size_t key_len, int64_t tokens, int64_t index, belay_bucket_cb cb) {
  int error = check(bucket, request, key, key_len, cb != NULL);
  if (error == 0)
    error = check_tokens(bucket, tokens);
  if (error == 0)
    error = check_range(bucket->client->belay, "index", index, 0, BELAY_BUCKET_INDEX_MAX - 1);
  if (error != 0)
    return error;
  belay__call_t *call = belay__call_new(bucket->client, BELAY__LANE_DATA);
  if (call == NULL)
    return BELAY_ENOMEM;
  belay__call_script(call, &belay__script_bucket_add, 2, 6);
  put_keys(bucket, call, key, key_len);
  belay__call_arg_int(call, tokens);
  belay__call_arg_int(call, index);
  belay__call_arg_int(call, bucket->capacity);
  belay__call_arg_int(call, tokens_of_missing(bucket));
  belay__call_arg_int(call, bucket->idle_ms);
  belay__call_arg_int(call, index_ms(bucket, request));
  return start(bucket, request, call, &add_ops, cb);
}

int belay_bucket_delete(belay_bucket_t *bucket, belay_request_t *request, const char *key,
                        size_t key_len, belay_bucket_cb cb) {
  int error = check(bucket, request, key, key_len, cb != NULL);
  if (error != 0)
    return error;
  belay__call_t *call = belay__call_new(bucket->client, BELAY__LANE_DATA);
  if (call == NULL)
    return BELAY_ENOMEM;
  belay__call_command(call, "DEL", 3);
  put_keys(bucket, call, key, key_len);
  return start(bucket, request, call, &delete_ops, cb);
}

/* ---- the rest ------------------------------------------------------------------------------------------ */

void *belay_bucket_data(const belay_bucket_t *bucket) {
  return bucket == NULL ? NULL : bucket->data;
}

belay_client_t *belay__bucket_client(const belay_bucket_t *bucket) {
  return bucket->client;
}

int64_t belay__bucket_capacity(const belay_bucket_t *bucket) {
  return bucket->capacity;
}

int64_t belay__bucket_idle_ms(const belay_bucket_t *bucket) {
  return bucket->idle_ms;
}

int64_t belay__bucket_index_ms(const belay_bucket_t *bucket) {
  return bucket->index_ms;
}

const char *belay__bucket_prefix(const belay_bucket_t *bucket, size_t *len) {
  *len = bucket->prefix_len;
  return bucket->prefix;
}
