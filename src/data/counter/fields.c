/* Many counters in one hash: HINCRBY, HGET, HMGET, HDEL. Scripts add with a ttl, add to several
 * fields (to all or none), and read all fields. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/counter/counter.h"
#include "scripts.gen.h"

#define FIELD_BYTES 256 /* bytes of max_reply for each number in a reply */

static int check(const belay_counter_t *counter, const belay_request_t *request, belay_bytes_t key,
                 bool has_cb) {
  int error = belay__handle_check_key((const belay__handle_t *)counter, request, key, has_cb);
  return error != 0 ? error : belay__counter_whole(counter, "fields");
}

static int check_name(const belay_counter_t *counter, belay_bytes_t field) {
  return belay__check_bytes(counter->handle.client->belay, "field", field, 1,
                            BELAY_COUNTER_FIELD_MAX);
}

static int check_field(const belay_counter_t *counter, const belay_request_t *request,
                       belay_bytes_t key, belay_bytes_t field, bool has_cb) {
  int error = check(counter, request, key, has_cb);
  return error != 0 ? error : check_name(counter, field);
}

/* Make a command with the key of a group, and `more` arguments to be added. */
static belay__call_t *make_call(const belay_counter_t *counter, const char *name, belay_bytes_t key,
                                size_t more) {
  belay__call_t *call = belay__handle_command(&counter->handle, name, 2 + more);
  belay__counter_arg(counter, call, key, 0);
  return call;
}

/* Maximum number of fields whose values fit into one reply; not above `most`. */
static size_t most_numbers(const belay_counter_t *counter, size_t most) {
  size_t max = counter->handle.client->max_reply / FIELD_BYTES;
  return max < most ? max : most;
}

enum {
  APPLIED = BELAY__COUNTER_APPLIED,
  FOUND = BELAY__COUNTER_FOUND,
  VALUE = BELAY__COUNTER_VALUE
};

static belay__call_t *make_script_add(const belay_counter_t *counter, belay_bytes_t key,
                                      const belay_counter_add_item_t *items, size_t n) {
  belay__call_t *call =
      belay__handle_script(&counter->handle, &belay__script_counter_fields, 1, 2 + 4 * n);
  belay__counter_arg(counter, call, key, 0);
  belay__call_arg_int(call, counter->options.ttl_ms);
  belay__call_arg_int(call, counter->options.extend_ttl);
  for (size_t i = 0; i < n; i++) {
    int64_t delta = items[i].delta;
    belay__call_arg(call, items[i].key.data, items[i].key.len);
    belay__call_arg_int(call, delta);
    belay__call_arg_int(call, delta < 0 ? INT64_MIN - delta : INT64_MIN);
    belay__call_arg_int(call, delta > 0 ? INT64_MAX - delta : INT64_MAX);
  }
  return call;
}

static int read_added(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply) {
  int64_t *value = &operation->values[VALUE];
  operation->values[APPLIED] = 1;
  if (call->script == NULL)
    return belay__reply_integer(reply, INT64_MIN, INT64_MAX, value) ? 0 : BELAY_EPROTO;
  bool one = reply->type == BELAY__REPLY_ARRAY && reply->count == 1;
  return one && belay__reply_int64(reply->items[0], value) ? 0 : BELAY_EPROTO;
}

static const belay__request_ops_t add_ops = {.read = read_added, .notify = belay__counter_notify};

int belay_counter_add_field(belay_counter_t *counter, belay_request_t *request, belay_bytes_t key,
                            belay_bytes_t field, int64_t delta, belay_counter_cb cb) {
  int error = check_field(counter, request, key, field, cb != NULL);
  if (error != 0)
    return error;
  const belay_counter_add_item_t item = {.key = field, .delta = delta};
  belay__call_t *call = counter->options.ttl_ms > 0 ? make_script_add(counter, key, &item, 1)
                                                    : make_call(counter, "HINCRBY", key, 2);
  if (counter->options.ttl_ms == 0) {
    belay__call_arg(call, field.data, field.len);
    belay__call_arg_int(call, delta);
  }
  return belay__handle_start(&counter->handle, request, call, &add_ops, BELAY__CB(cb));
}

static int by_name(const void *a, const void *b) {
  const belay_counter_add_item_t *x = *(const belay_counter_add_item_t *const *)a;
  const belay_counter_add_item_t *y = *(const belay_counter_add_item_t *const *)b;
  if (x->key.len != y->key.len)
    return x->key.len < y->key.len ? -1 : 1;
  return memcmp(x->key.data, y->key.data, x->key.len);
}

/* Reject repeated fields. The script checks all fields before its first add, so it would check the
 * second add to a field against an outdated value. */
static int check_distinct(belay_t *belay, const belay_counter_add_item_t *items, size_t n) {
  typedef const belay_counter_add_item_t *item_t;
  item_t *sorted = belay__alloc(belay, n * sizeof(item_t));
  if (sorted == NULL)
    return BELAY_ENOMEM;
  for (size_t i = 0; i < n; i++)
    sorted[i] = &items[i];
  qsort(sorted, n, sizeof(item_t), by_name);
  int error = 0;
  for (size_t i = 1; i < n && error == 0; i++)
    if (by_name(&sorted[i - 1], &sorted[i]) == 0)
      error = BELAY_EINVAL;
  belay__free(belay, sorted, n * sizeof(item_t));
  if (error != 0)
    belay__detail(belay, "items: a field comes twice");
  return error;
}

static int check_items(const belay_counter_t *counter, const belay_counter_add_item_t *items,
                       size_t n) {
  belay_t *belay = counter->handle.client->belay;
  int error =
      belay__check_count(belay, "item", items, n, most_numbers(counter, BELAY_COUNTER_FIELDS_MAX));
  for (size_t i = 0; i < n && error == 0; i++) {
    error = check_name(counter, items[i].key);
    if (error == 0 && belay__is_given(items[i].op_id))
      error = belay__invalid(belay, "op_id: not of a field");
  }
  return error != 0 ? error : check_distinct(belay, items, n);
}

static int read_all_added(belay__operation_t *operation, const belay__call_t *call,
                          const belay__reply_t *reply) {
  (void)call;
  belay__counter_many_t *many = operation->room;
  belay_counter_result_t *results = many->results;
  size_t n = many->n;
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != n)
    return BELAY_EPROTO;
  for (size_t i = 0; i < n; i++) {
    if (!belay__reply_int64(reply->items[i], &results[i].value))
      return BELAY_EPROTO;
    results[i].applied = true;
  }
  for (size_t i = 0; i < n; i++)
    results[i].status = 0;
  return 0;
}

static const belay__request_ops_t add_all_ops = {.read = read_all_added,
                                                 .notify = belay__counter_notify_many};

/* Begin a request with n results, and send its call. If the request cannot begin, discard the
 * call. */
static int start_many(belay_counter_t *counter, belay_request_t *request, belay__call_t *call,
                      size_t n, const belay__request_ops_t *ops, belay_counter_many_cb cb) {
  belay__operation_t *operation;
  int error = belay__counter_begin_many(counter, request, ops, n, 0, BELAY__CB(cb), &operation);
  if (error == 0)
    return belay__request_begun(operation, belay__request_send(operation, call));
  belay__calls_discard(&call, 1);
  return error;
}

int belay_counter_add_fields(belay_counter_t *counter, belay_request_t *request, belay_bytes_t key,
                             const belay_counter_add_item_t *items, size_t n,
                             belay_counter_many_cb cb) {
  int error = check(counter, request, key, cb != NULL);
  if (error == 0)
    error = check_items(counter, items, n);
  if (error != 0)
    return error;
  belay__call_t *call = make_script_add(counter, key, items, n);
  return start_many(counter, request, call, n, &add_all_ops, cb);
}

static int read_field(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply) {
  bool found;
  int error = belay__counter_read_value(call, reply, &found, &operation->values[VALUE]);
  operation->values[FOUND] = found;
  return error;
}

static const belay__request_ops_t get_ops = {
    .read = read_field, .notify = belay__counter_notify, .idempotent = true};

int belay_counter_get_field(belay_counter_t *counter, belay_request_t *request, belay_bytes_t key,
                            belay_bytes_t field, belay_counter_cb cb) {
  int error = check_field(counter, request, key, field, cb != NULL);
  if (error != 0)
    return error;
  belay__call_t *call = belay__call_stale(make_call(counter, "HGET", key, 1));
  belay__call_arg(call, field.data, field.len);
  return belay__handle_start(&counter->handle, request, call, &get_ops, BELAY__CB(cb));
}

/* Reads the values of the requested fields: each is a number, missing, or invalid. An invalid field
 * determines the status of the request, and does not affect the results of the other fields. */
static int read_fields(belay__operation_t *operation, const belay__call_t *call,
                       const belay__reply_t *reply) {
  belay__counter_many_t *many = operation->room;
  belay_counter_result_t *results = many->results;
  size_t n = many->n;
  int error = 0;
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != n)
    return BELAY_EPROTO;
  for (size_t i = 0; i < n; i++) {
    results[i].status =
        belay__counter_read_value(call, reply->items[i], &results[i].found, &results[i].value);
    if (results[i].status == BELAY_EPROTO || error == 0)
      error = results[i].status;
  }
  return error;
}

static const belay__request_ops_t get_fields_ops = {
    .read = read_fields, .notify = belay__counter_notify_many, .idempotent = true};

static int check_names(const belay_counter_t *counter, const belay_bytes_t *fields, size_t n,
                       size_t max) {
  return belay__handle_check_array(&counter->handle, "field", fields, n, max, 1,
                                   BELAY_COUNTER_FIELD_MAX);
}

static belay__call_t *call_of_fields(const belay_counter_t *counter, const char *name,
                                     belay_bytes_t key, const belay_bytes_t *fields, size_t n) {
  belay__call_t *call = make_call(counter, name, key, n);
  for (size_t i = 0; i < n; i++)
    belay__call_arg(call, fields[i].data, fields[i].len);
  return call;
}

int belay_counter_get_fields(belay_counter_t *counter, belay_request_t *request, belay_bytes_t key,
                             const belay_bytes_t *fields, size_t n, belay_counter_many_cb cb) {
  int error = check(counter, request, key, cb != NULL);
  if (error != 0)
    return error;
  error = check_names(counter, fields, n, most_numbers(counter, BELAY_COUNTER_MANY_MAX));
  if (error != 0)
    return error;
  belay__call_t *call = belay__call_stale(call_of_fields(counter, "HMGET", key, fields, n));
  return start_many(counter, request, call, n, &get_fields_ops, cb);
}

enum { COUNT, MAX }; /* indexes of operation->values, for belay_counter_get_all() */

static int too_many(const belay__call_t *call, int64_t n) {
  char text[64];
  (void)snprintf(text, sizeof text, "it has %lld fields", (long long)n);
  return belay__call_blame(call, BELAY_EOVERFLOW, text);
}

/* Keep the fields in the room, followed by their names. */
static int keep_fields(belay__operation_t *operation, const belay__call_t *call,
                       const belay__reply_t *reply, size_t n) {
  size_t size = n * sizeof(belay_counter_field_t);
  for (size_t i = 0; i < n; i++)
    size += reply->items[2 * i]->len + 1;
  belay_counter_field_t *fields = belay__request_room(operation, size);
  if (fields == NULL)
    return BELAY_ENOMEM;
  char *names = (char *)&fields[n];
  for (size_t i = 0; i < n; i++) {
    const belay__reply_t *name = reply->items[2 * i];
    bool found;
    int error = belay__counter_read_value(call, reply->items[2 * i + 1], &found, &fields[i].value);
    if (error != 0)
      return error;
    fields[i].name = memcpy(names, name->str, name->len);
    fields[i].name_len = name->len;
    names += name->len + 1; /* the terminating 0 is there: the room was all 0 */
  }
  operation->values[COUNT] = (int64_t)n;
  return 0;
}

static int read_all(belay__operation_t *operation, const belay__call_t *call,
                    const belay__reply_t *reply) {
  int64_t many;
  if (belay__reply_integer(reply, 1, INT64_MAX, &many))
    return too_many(call, many);
  if (reply->type != BELAY__REPLY_ARRAY || reply->count % 2 != 0 ||
      reply->count / 2 > (size_t)operation->values[MAX])
    return BELAY_EPROTO;
  for (size_t i = 0; i < reply->count; i++)
    if (reply->items[i]->type != BELAY__REPLY_STRING)
      return BELAY_EPROTO;
  return reply->count == 0 ? 0 : keep_fields(operation, call, reply, reply->count / 2);
}

static void notify_all(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer) {
  size_t n = answer->status == 0 ? (size_t)answer->values[COUNT] : 0;
  ((belay_counter_all_cb)cb)(request, answer->status, n > 0 ? answer->room : NULL, n);
}

static const belay__request_ops_t all_ops = {
    .read = read_all, .notify = notify_all, .idempotent = true};

int belay_counter_get_all(belay_counter_t *counter, belay_request_t *request, belay_bytes_t key,
                          size_t max, belay_counter_all_cb cb) {
  belay__operation_t *operation;
  int error = check(counter, request, key, cb != NULL);
  if (error != 0)
    return error;
  belay_client_t *client = counter->handle.client;
  error = belay__check_range(client->belay, "max", max > INT32_MAX ? 0 : (int64_t)max, 1,
                             BELAY_COUNTER_MANY_MAX);
  if (error != 0)
    return error;
  error = belay__handle_begin(&counter->handle, request, &all_ops, BELAY__CB(cb), &operation);
  if (error != 0)
    return error;
  operation->values[MAX] = (int64_t)max;
  belay__call_t *call = belay__call_stale(belay__call_new(client, BELAY__CLASS_BULK));
  belay__call_script(call, &belay__script_counter_all, 1, 2);
  belay__counter_arg(counter, call, key, 0);
  belay__call_arg_int(call, (int64_t)max);
  belay__call_arg_int(call, (int64_t)client->max_reply);
  return belay__request_begun(operation, belay__request_send(operation, call));
}

static int read_deleted(belay__operation_t *operation, const belay__call_t *call,
                        const belay__reply_t *reply) {
  (void)call;
  if (!belay__reply_integer(reply, 0, BELAY_COUNTER_MANY_MAX, &operation->values[VALUE]))
    return BELAY_EPROTO;
  operation->values[APPLIED] = 1;
  operation->values[FOUND] = operation->values[VALUE] > 0;
  return 0;
}

static const belay__request_ops_t delete_ops = {.read = read_deleted,
                                                .notify = belay__counter_notify};

int belay_counter_delete_fields(belay_counter_t *counter, belay_request_t *request,
                                belay_bytes_t key, const belay_bytes_t *fields, size_t n,
                                belay_counter_cb cb) {
  int error = check(counter, request, key, cb != NULL);
  if (error == 0)
    error = check_names(counter, fields, n, BELAY_COUNTER_MANY_MAX);
  if (error != 0)
    return error;
  belay__call_t *call = call_of_fields(counter, "HDEL", key, fields, n);
  return belay__handle_start(&counter->handle, request, call, &delete_ops, BELAY__CB(cb));
}
