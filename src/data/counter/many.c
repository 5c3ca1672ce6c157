/* Many counters in one round trip: a call for each add, or for each shard of each key to read. */
#include "data/counter/counter.h"

#define OPEN 1 /* status of a result that is not known yet */

int belay__counter_begin_many(belay_counter_t *counter, belay_request_t *request,
                              const belay__request_ops_t *ops, size_t n, size_t more,
                              void (*cb)(void), belay__operation_t **out) {
  const size_t size = sizeof(belay__counter_many_t) + n * sizeof(belay_counter_result_t) + more;
  int error = belay__handle_begin_room(&counter->handle, request, ops, cb, size, out);
  if (error != 0)
    return error;
  belay__counter_many_t *many = (*out)->room;
  many->n = n;
  for (size_t i = 0; i < n; i++)
    many->results[i].status = OPEN;
  return 0;
}

void belay__counter_notify_many(belay_request_t *request, void (*cb)(void),
                                const belay__answer_t *answer) {
  belay__counter_many_t *many = answer->room;
  for (size_t i = 0; i < many->n; i++) {
    belay_counter_result_t *result = &many->results[i];
    if (result->status == OPEN)
      result->status = answer->status;
    if (result->status != 0)
      *result = (belay_counter_result_t){.status = result->status};
  }
  ((belay_counter_many_cb)cb)(request, answer->status, many->results, many->n);
}

/* The arguments of a request about many keys. */
typedef struct many_args {
  const belay_counter_add_item_t *adds; /* NULL: the request reads `keys` */
  const belay_bytes_t *keys;
  int64_t record_ms;
} many_args_t;

static belay__call_t *make_call(belay__operation_t *operation, size_t i, const void *arg) {
  belay_counter_t *counter = operation->context;
  const many_args_t *args = arg;
  if (args->adds == NULL) {
    const belay_bytes_t *key = &args->keys[i / counter->options.shards];
    return belay__counter_get_call(counter, *key, (unsigned)(i % counter->options.shards));
  }
  const belay_counter_add_item_t *item = &args->adds[i];
  return item->op_id.len > 0 ? belay__counter_once_call(counter, item->key, item->delta,
                                                        item->op_id, args->record_ms)
                             : belay__counter_add_call(counter, item->key, item->delta);
}

/* Begin a request with n results, and send `calls` calls. more: bytes of room behind the
 * results. */
static int start(belay_counter_t *counter, belay_request_t *request, const many_args_t *args,
                 size_t n, size_t calls, size_t more, const belay__request_ops_t *ops,
                 void (*cb)(void)) {
  belay__operation_t *operation;
  int error = belay__counter_begin_many(counter, request, ops, n, more, cb, &operation);
  if (error != 0)
    return error;
  return belay__request_begun(operation,
                              belay__request_send_each(operation, calls, make_call, args));
}

static int read_added(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply) {
  belay_counter_result_t *result =
      &((belay__counter_many_t *)operation->room)->results[operation->index];
  int error = belay__counter_added(call, reply, &result->applied, &result->value);
  if (error == 0)
    result->status = 0;
  return error;
}

static void add_failed(belay__operation_t *operation, int status) {
  ((belay__counter_many_t *)operation->room)->results[operation->index].status = status;
}

static const belay__request_ops_t add_ops = {
    .read = read_added, .failed = add_failed, .notify = belay__counter_notify_many};
static const belay__request_ops_t once_ops = {.read = read_added,
                                              .failed = add_failed,
                                              .notify = belay__counter_notify_many,
                                              .idempotent = true};

int belay_counter_add_many(belay_counter_t *counter, belay_request_t *request,
                           const belay_counter_add_item_t *items, size_t n,
                           belay_counter_many_cb cb) {
  int error = belay__handle_check_request((const belay__handle_t *)counter, request, cb != NULL);
  if (error != 0)
    return error;
  belay_t *belay = counter->handle.client->belay;
  size_t ids = 0;
  error = belay__check_count(belay, "item", items, n, BELAY_COUNTER_MANY_MAX);
  for (size_t i = 0; i < n && error == 0; i++) {
    error = belay__check_bytes(belay, "key", items[i].key, 1, BELAY_COUNTER_KEY_MAX);
    if (error == 0)
      error = belay__check_optional(belay, "op_id", items[i].op_id, BELAY_COUNTER_OP_ID_MAX);
    ids += items[i].op_id.len > 0;
  }
  if (error != 0)
    return error;
  const many_args_t args = {.adds = items,
                            .record_ms = belay__request_keep_ms(counter->handle.client, request,
                                                                counter->options.op_ttl_ms)};
  return start(counter, request, &args, n, n, 0, ids == n ? &once_ops : &add_ops, BELAY__CB(cb));
}

/* Sum and number of those shards of a key that have replied. */
typedef struct parts {
  belay__sum_t sum;
  unsigned replied;
} parts_t;

static int read_shard(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply) {
  const belay_counter_t *counter = operation->context;
  belay__counter_many_t *many = operation->room;
  size_t i = operation->index / counter->options.shards;
  parts_t *parts = (parts_t *)(void *)&many->results[many->n] + i;
  belay_counter_result_t *result = &many->results[i];
  int64_t value;
  bool found;
  int error = belay__counter_read_value(call, reply, &found, &value);
  if (error != 0)
    return error;
  if (found)
    belay__sum_add(&parts->sum, value);
  if (++parts->replied < counter->options.shards)
    return 0;
  error = belay__sum_value(&parts->sum, &result->value);
  result->found = parts->sum.found;
  if (error == 0)
    result->status = 0;
  return error;
}

/* A key gets the first error of its shards, or BELAY_EUNKNOWN if one of them has this status. */
static void get_failed(belay__operation_t *operation, int status) {
  const belay_counter_t *counter = operation->context;
  int *known = &((belay__counter_many_t *)operation->room)
                    ->results[operation->index / counter->options.shards]
                    .status;
  if (*known == OPEN || status == BELAY_EUNKNOWN)
    *known = status;
}

static const belay__request_ops_t get_ops = {.read = read_shard,
                                             .failed = get_failed,
                                             .notify = belay__counter_notify_many,
                                             .idempotent = true};

static void notify_one(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  belay__counter_many_t *many = answer->room;
  if (answer->status != 0)
    many->results[0] = (belay_counter_result_t){.status = answer->status};
  ((belay_counter_cb)cb)(request, answer->status, many->results);
}

static const belay__request_ops_t get_one_ops = {
    .read = read_shard, .notify = notify_one, .idempotent = true};

static int start_get(belay_counter_t *counter, belay_request_t *request, const belay_bytes_t *keys,
                     size_t n, const belay__request_ops_t *ops, void (*cb)(void)) {
  const many_args_t args = {.keys = keys};
  return start(counter, request, &args, n, n * counter->options.shards, n * sizeof(parts_t), ops,
               cb);
}

int belay_counter_get(belay_counter_t *counter, belay_request_t *request, belay_bytes_t key,
                      belay_counter_cb cb) {
  int error = belay__handle_check_key((const belay__handle_t *)counter, request, key, cb != NULL);
  return error != 0 ? error : start_get(counter, request, &key, 1, &get_one_ops, BELAY__CB(cb));
}

int belay_counter_get_many(belay_counter_t *counter, belay_request_t *request,
                           const belay_bytes_t *keys, size_t n, belay_counter_many_cb cb) {
  int error = belay__handle_check_request((const belay__handle_t *)counter, request, cb != NULL);
  if (error != 0)
    return error;
  error = belay__handle_check_array(&counter->handle, "key", keys, n,
                                    BELAY_COUNTER_MANY_MAX / counter->options.shards, 1,
                                    BELAY_COUNTER_KEY_MAX);
  if (error != 0)
    return error;
  return start_get(counter, request, keys, n, &get_ops, BELAY__CB(cb));
}
