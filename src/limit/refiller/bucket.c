/* The refilled bucket: a number of tokens and the index of the next filling, in one key each, and
 * scripts that use both. Each operation is one request. */
#include "limit/refiller/bucket.h"

#include "scripts.gen.h"

#define TTL_MAX_MS INT64_C(31536000000) /* a year */

static const belay_bucket_options_t defaults = {.idle_ms = 3600000, .index_ms = 86400000};

static const belay__range_t ranges[] = {
    BELAY__RANGE(belay_bucket_options_t, capacity, 1, BELAY_BUCKET_TOKENS_MAX),
    BELAY__RANGE(belay_bucket_options_t, idle_ms, 1000, TTL_MAX_MS),
    BELAY__RANGE_FROM(belay_bucket_options_t, index_ms, NOTHING, idle_ms, TTL_MAX_MS),
    {.name = NULL},
};

static int on_init(belay__handle_t *handle, void *options) {
  belay_bucket_t *bucket = (belay_bucket_t *)handle;
  const belay_bucket_options_t *o = options;
  bucket->capacity = o->capacity;
  bucket->idle_ms = o->idle_ms;
  bucket->index_ms = o->index_ms;
  bucket->full = o->full;
  return 0;
}

const belay__handle_type_t belay__bucket_type = {
    .family = "bucket",
    BELAY__HANDLE_LAYOUT(bucket),
    .defaults = &defaults,
    .ranges = ranges,
    .init = on_init,
};

BELAY__HANDLE_FUNCTIONS(bucket)

/* ---- replies ---- */

enum { APPLIED, TOKENS, INDEX, VALUES }; /* values of a request */

static int64_t tokens_of_missing(const belay_bucket_t *bucket) {
  return bucket->full ? bucket->capacity : 0;
}

static int read_state(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply) {
  const belay_bucket_t *bucket = operation->context;
  const int64_t max[VALUES] = {1, bucket->capacity, BELAY_BUCKET_INDEX_MAX};
  int64_t what;
  if (belay__reply_integer(reply, -2, -1, &what))
    return belay__handle_mismatch(call, what == -1 ? "it holds no number of tokens"
                                                   : "its ::index holds no index");
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != VALUES)
    return BELAY_EPROTO;
  for (int i = 0; i < VALUES; i++)
    if (!belay__reply_integer(reply->items[i], 0, max[i], &operation->values[i]))
      return BELAY_EPROTO;
  return 0;
}

/* Read the reply to an add. If an earlier reply was lost and the index differs from the argument,
 * the lost attempt may have added the tokens and incremented the index. So the result is
 * BELAY_EUNKNOWN. */
static int read_added(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply) {
  int error = read_state(operation, call, reply);
  return error == 0 && operation->reply_lost && !operation->values[APPLIED] ? BELAY_EUNKNOWN
                                                                            : error;
}

static int read_deleted(belay__operation_t *operation, const belay__call_t *call,
                        const belay__reply_t *reply) {
  (void)call;
  int64_t keys;
  if (!belay__reply_integer(reply, 0, 2, &keys))
    return BELAY_EPROTO;
  operation->values[APPLIED] = keys > 0;
  operation->values[TOKENS] = tokens_of_missing(operation->context);
  return 0;
}

static void notify_caller(belay_request_t *request, void (*cb)(void),
                          const belay__answer_t *answer) {
  const belay_bucket_state_t unknown = {.tokens = -1, .index = -1};
  const belay_bucket_state_t state = {.applied = answer->values[APPLIED] != 0,
                                      .tokens = answer->values[TOKENS],
                                      .index = answer->values[INDEX]};
  ((belay_bucket_cb)cb)(request, answer->status, answer->status == 0 ? &state : &unknown);
}

static const belay__request_ops_t fetch_ops = {.read = read_state, .notify = notify_caller};
static const belay__request_ops_t add_ops = {
    .read = read_added, .notify = notify_caller, .idempotent = true};
static const belay__request_ops_t read_ops = {
    .read = read_state, .notify = notify_caller, .idempotent = true};
static const belay__request_ops_t delete_ops = {.read = read_deleted, .notify = notify_caller};

/* ---- operations ---- */

static int check(const belay_bucket_t *bucket, const belay_request_t *request, belay_bytes_t key,
                 int64_t tokens, belay_bucket_cb cb) {
  int error = belay__handle_check_key((const belay__handle_t *)bucket, request, key, cb != NULL);
  return error != 0 ? error
                    : belay__check_range(bucket->handle.client->belay, "tokens", tokens, 1,
                                         bucket->capacity);
}

/* Add both keys of a bucket. */
static void put_keys(const belay_bucket_t *bucket, belay__call_t *call, belay_bytes_t key) {
  belay__handle_arg(&bucket->handle, call, key.data, key.len, "}");
  belay__handle_arg(&bucket->handle, call, key.data, key.len, BELAY__BUCKET_INDEX);
}

/* tokens: 0 only reads. */
static int start_fetch(belay_bucket_t *bucket, belay_request_t *request, belay_bytes_t key,
                       int64_t tokens, const belay__request_ops_t *ops, belay_bucket_cb cb) {
  belay__call_t *call = belay__handle_script(&bucket->handle, &belay__script_bucket_fetch, 2, 4);
  put_keys(bucket, call, key);
  belay__call_arg_int(call, tokens);
  belay__call_arg_int(call, bucket->capacity);
  belay__call_arg_int(call, tokens_of_missing(bucket));
  belay__call_arg_int(call, bucket->idle_ms);
  return belay__handle_start(&bucket->handle, request, call, ops, BELAY__CB(cb));
}

int belay_bucket_fetch(belay_bucket_t *bucket, belay_request_t *request, belay_bytes_t key,
                       int64_t tokens, belay_bucket_cb cb) {
  int error = check(bucket, request, key, tokens, cb);
  return error != 0 ? error : start_fetch(bucket, request, key, tokens, &fetch_ops, cb);
}

int belay_bucket_read(belay_bucket_t *bucket, belay_request_t *request, belay_bytes_t key,
                      belay_bucket_cb cb) {
  int error = check(bucket, request, key, 1, cb);
  return error != 0 ? error : start_fetch(bucket, request, key, 0, &read_ops, cb);
}

int belay_bucket_add(belay_bucket_t *bucket, belay_request_t *request, belay_bytes_t key,
                     int64_t tokens, int64_t index, belay_bucket_cb cb) {
  int error = check(bucket, request, key, tokens, cb);
  if (error == 0)
    error = belay__check_range(bucket->handle.client->belay, "index", index, 0,
                               BELAY_BUCKET_INDEX_MAX - 1);
  if (error != 0)
    return error;
  belay__call_t *call = belay__handle_script(&bucket->handle, &belay__script_bucket_add, 2, 6);
  put_keys(bucket, call, key);
  belay__call_arg_int(call, tokens);
  belay__call_arg_int(call, index);
  belay__call_arg_int(call, bucket->capacity);
  belay__call_arg_int(call, tokens_of_missing(bucket));
  belay__call_arg_int(call, bucket->idle_ms);
  /* the index must not expire before the command is resent: a missing index counts as 0 */
  belay__call_arg_int(call,
                      belay__request_keep_ms(bucket->handle.client, request, bucket->index_ms));
  return belay__handle_start(&bucket->handle, request, call, &add_ops, BELAY__CB(cb));
}

int belay_bucket_delete(belay_bucket_t *bucket, belay_request_t *request, belay_bytes_t key,
                        belay_bucket_cb cb) {
  int error = check(bucket, request, key, 1, cb);
  if (error != 0)
    return error;
  belay__call_t *call = belay__handle_command(&bucket->handle, "DEL", 3);
  put_keys(bucket, call, key);
  return belay__handle_start(&bucket->handle, request, call, &delete_ops, BELAY__CB(cb));
}
