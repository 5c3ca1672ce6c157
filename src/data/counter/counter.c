/* Counters with a key each. An add with an operation id is a script; add.c has the other adds. A
 * set is a GETSET, or a SET with PX and GET if there is a ttl. */
#include "data/counter/counter.h"

#include <stdio.h>

#include "core/key/key.h"
#include "scripts.gen.h"

#define TTL_MAX_MS INT64_C(31536000000) /* a year */

static const belay_counter_options_t defaults = {
    .op_ttl_ms = 3600000, .shards = 1, .batch_ms = 100, .max_keys = 10000};

static const belay__range_t ranges[] = {
    BELAY__RANGE(belay_counter_options_t, ttl_ms, 0, TTL_MAX_MS),
    BELAY__RANGE(belay_counter_options_t, op_ttl_ms, 1000, TTL_MAX_MS),
    BELAY__RANGE(belay_counter_options_t, shards, 1, BELAY_COUNTER_SHARDS_MAX),
    BELAY__RANGE(belay_counter_options_t, max_ops, 0, BELAY_COUNTER_OPS_MAX),
    BELAY__RANGE(belay_counter_options_t, batch_ms, 1, 60000),
    BELAY__RANGE(belay_counter_options_t, batch_max, 0, INT64_MAX),
    BELAY__RANGE(belay_counter_options_t, max_keys, 1, 1000000),
    {.name = NULL},
};

static int on_init(belay__handle_t *handle, void *options) {
  belay_counter_t *counter = (belay_counter_t *)handle;
  const belay_counter_options_t *o = options;
  belay_t *belay = handle->client->belay;
  uint8_t label[BELAY__COUNTER_LABEL_BYTES];
  if (o->extend_ttl && o->ttl_ms == 0)
    return belay__invalid(belay, "extend_ttl: without ttl_ms");
  int error = belay->host->random(belay, label, sizeof label);
  if (error != 0)
    return error;
  counter->turn = (unsigned)belay__random_below(belay, o->shards);
  belay__counter_local_init(counter, label);
  return 0;
}

const belay__handle_type_t belay__counter_type = {
    .family = "counter",
    BELAY__HANDLE_LAYOUT(counter),
    .defaults = &defaults,
    .ranges = ranges,
    .copy_at = offsetof(belay_counter_t, options),
    .init = on_init,
    .close = belay__counter_local_close,
    .abort = belay__counter_local_abort,
    .deinit = belay__counter_local_deinit,
};

BELAY__HANDLE_FUNCTIONS(counter)

/* ---- calls ---- */

int belay__counter_whole(const belay_counter_t *counter, const char *what) {
  if (counter->options.shards == 1)
    return 0;
  return belay__invalid(counter->handle.client->belay, "%s: not of a counter with shards", what);
}

/* Add to a call the key of a counter or of one of its shards, followed by part and the escaped
 * id. */
static void add_key(const belay_counter_t *counter, belay__call_t *call, belay_bytes_t key,
                    unsigned shard, const char *part, belay_bytes_t id) {
  char tail[32];
  if (counter->options.shards > 1)
    (void)snprintf(tail, sizeof tail, "::%u}%s", shard, part);
  else
    (void)snprintf(tail, sizeof tail, "}%s", part);
  belay__handle_arg_id(&counter->handle, call, key, tail, id);
}

void belay__counter_arg(const belay_counter_t *counter, belay__call_t *call, belay_bytes_t key,
                        unsigned shard) {
  if (counter->options.shards == 1)
    belay__handle_arg(&counter->handle, call, key.data, key.len, "}");
  else
    add_key(counter, call, key, shard, "", (belay_bytes_t){0});
}

belay__call_t *belay__counter_once_call(const belay_counter_t *counter, belay_bytes_t key,
                                        int64_t delta, belay_bytes_t id, int64_t record_ms) {
  const belay_bytes_t none = {.data = "", .len = 0};
  unsigned shard = belay__key_hash(id.data, id.len) % counter->options.shards;
  bool hash = counter->options.max_ops > 0; /* all records of a shard are in one hash */
  belay__call_t *call = belay__handle_script(&counter->handle, &belay__script_counter_once, 2, 6);
  belay__counter_arg(counter, call, key, shard);
  add_key(counter, call, key, shard, hash ? "::ops" : "::once::", hash ? none : id);
  belay__call_arg_int(call, delta);
  belay__call_arg_int(call, record_ms);
  belay__call_arg_int(call, counter->options.ttl_ms);
  belay__call_arg_int(call, counter->options.extend_ttl);
  belay__call_arg_int(call, counter->options.max_ops);
  belay__call_arg(call, hash ? id.data : "", hash ? id.len : 0);
  return call;
}

belay__call_t *belay__counter_get_call(const belay_counter_t *counter, belay_bytes_t key,
                                       unsigned shard) {
  belay__call_t *call = belay__handle_command(&counter->handle, "GET", 2);
  belay__counter_arg(counter, call, key, shard);
  return belay__call_stale(call);
}

/* ---- replies ---- */

enum {
  APPLIED = BELAY__COUNTER_APPLIED,
  FOUND = BELAY__COUNTER_FOUND,
  VALUE = BELAY__COUNTER_VALUE
};

int belay__counter_read_added(belay__operation_t *operation, const belay__call_t *call,
                              const belay__reply_t *reply) {
  bool applied;
  int error = belay__counter_added(call, reply, &applied, &operation->values[VALUE]);
  operation->values[APPLIED] = applied;
  return error;
}

static int read_set(belay__operation_t *operation, const belay__call_t *call,
                    const belay__reply_t *reply) {
  int64_t *values = operation->values;
  bool found;
  int error = belay__counter_read_value(call, reply, &found, &values[VALUE]);
  values[APPLIED] = 1;
  values[FOUND] = found;
  return error == BELAY_EWRONGTYPE
             ? belay__handle_mismatch(call, "the value before the set was not a number")
             : error;
}

static int read_deleted(belay__operation_t *operation, const belay__call_t *call,
                        const belay__reply_t *reply) {
  (void)call;
  int64_t keys;
  if (!belay__reply_integer(reply, 0, 1, &keys))
    return BELAY_EPROTO;
  operation->values[APPLIED] = 1;
  operation->values[FOUND] |= keys;
  return 0;
}

static const belay__request_ops_t once_ops = {
    .read = belay__counter_read_added, .notify = belay__counter_notify, .idempotent = true};
static const belay__request_ops_t set_ops = {.read = read_set, .notify = belay__counter_notify};
static const belay__request_ops_t delete_ops = {.read = read_deleted,
                                                .notify = belay__counter_notify};

/* ---- operations ---- */

static int check(const belay_counter_t *counter, const belay_request_t *request, belay_bytes_t key,
                 belay_counter_cb cb) {
  return belay__handle_check_key((const belay__handle_t *)counter, request, key, cb != NULL);
}

int belay_counter_add_once(belay_counter_t *counter, belay_request_t *request, belay_bytes_t key,
                           int64_t delta, belay_bytes_t op_id, belay_counter_cb cb) {
  int error = check(counter, request, key, cb);
  if (error == 0)
    error = belay__check_bytes(counter->handle.client->belay, "op_id", op_id, 1,
                               BELAY_COUNTER_OP_ID_MAX);
  if (error != 0)
    return error;
  belay__call_t *call = belay__counter_once_call(
      counter, key, delta, op_id,
      belay__request_keep_ms(counter->handle.client, request, counter->options.op_ttl_ms));
  return belay__handle_start(&counter->handle, request, call, &once_ops, BELAY__CB(cb));
}

int belay_counter_set(belay_counter_t *counter, belay_request_t *request, belay_bytes_t key,
                      int64_t value, belay_counter_cb cb) {
  int error = check(counter, request, key, cb);
  if (error == 0)
    error = belay__counter_whole(counter, "a set");
  if (error != 0)
    return error;
  bool lives = counter->options.ttl_ms > 0;
  belay__call_t *call =
      belay__handle_command(&counter->handle, lives ? "SET" : "GETSET", lives ? 6 : 3);
  belay__counter_arg(counter, call, key, 0);
  belay__call_arg_int(call, value);
  if (lives) {
    belay__call_arg_text(call, "PX");
    belay__call_arg_int(call, counter->options.ttl_ms);
    belay__call_arg_text(call, "GET");
  }
  return belay__handle_start(&counter->handle, request, call, &set_ops, BELAY__CB(cb));
}

/* Make the call that deletes a shard. The key may hold a large group of fields, so UNLINK frees its
 * memory in the background. */
static belay__call_t *delete_shard(belay__operation_t *operation, size_t shard, const void *key) {
  const belay_counter_t *counter = operation->context;
  const belay_bytes_t *k = key;
  belay__call_t *call = belay__handle_command(&counter->handle, "UNLINK", 2);
  belay__counter_arg(counter, call, *k, (unsigned)shard);
  return call;
}

int belay_counter_delete(belay_counter_t *counter, belay_request_t *request, belay_bytes_t key,
                         belay_counter_cb cb) {
  belay__operation_t *operation;
  int error = check(counter, request, key, cb);
  if (error == 0)
    error = belay__handle_begin(&counter->handle, request, &delete_ops, BELAY__CB(cb), &operation);
  if (error != 0)
    return error;
  return belay__request_begun(
      operation, belay__request_send_each(operation, counter->options.shards, delete_shard, &key));
}
