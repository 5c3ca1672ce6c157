/* Hashes. */
#include <stdlib.h>

#include "command.h"

/* NULL: there is no such field, or no hash. */
static engine_field_t *field_of(const engine_object_t *object, engine_bytes_t name) {
  return object == NULL ? NULL : (engine_field_t *)engine_table_find(&object->as.hash, name);
}

static bool put(engine_object_t *object, engine_bytes_t name, engine_bytes_t value) {
  engine_field_t *field = field_of(object, name);
  bool is_new = field == NULL;
  if (is_new)
    field = engine_table_add(&object->as.hash, name, sizeof *field);
  engine_buffer_set(&field->value, value.at, value.len);
  return is_new;
}

static void hset(engine_call_t *call) {
  engine_object_t *object;
  int64_t added = 0;
  if (call->argc % 2 != 0) {
    engine_reply_wrong_number(call, call->command);
    return;
  }
  if (!engine_find_or_make(call, call->argv[1], ENGINE_HASH, &object))
    return;
  for (size_t i = 2; i < call->argc; i += 2)
    added += put(object, call->argv[i], call->argv[i + 1]);
  engine_reply_integer(call, added);
}

static void reply_field(engine_call_t *call, const engine_field_t *field) {
  if (field == NULL)
    engine_reply_nil(call);
  else
    engine_reply_bytes(call, engine_buffer_bytes(&field->value));
}

static void hget(engine_call_t *call) {
  reply_field(call, field_of(call->object, call->argv[2]));
}

static void hmget(engine_call_t *call) {
  engine_reply_array(call, call->argc - 2);
  for (size_t i = 2; i < call->argc; i++)
    reply_field(call, field_of(call->object, call->argv[i]));
}

static void hdel(engine_call_t *call) {
  int64_t count = 0;
  for (size_t i = 2; i < call->argc; i++) {
    engine_field_t *field = field_of(call->object, call->argv[i]);
    if (field == NULL)
      continue;
    engine_table_remove(&call->object->as.hash, &field->entry);
    engine_buffer_free(&field->value);
    free(field);
    count++;
  }
  engine_delete_if_empty(call, call->object);
  engine_reply_integer(call, count);
}

static void hexists(engine_call_t *call) {
  engine_reply_integer(call, field_of(call->object, call->argv[2]) != NULL);
}

static void hlen(engine_call_t *call) {
  engine_reply_integer(call, call->object == NULL ? 0 : (int64_t)call->object->as.hash.count);
}

static void hgetall(engine_call_t *call) {
  static const engine_table_t none;
  const engine_table_t *hash = call->object == NULL ? &none : &call->object->as.hash;
  engine_reply_map(call, hash->count);
  for (const engine_entry_t *entry = hash->first; entry != NULL; entry = entry->after) {
    engine_reply_bytes(call, entry->key);
    reply_field(call, (const engine_field_t *)entry);
  }
}

/* The integer that is added is argv[3]. */
static void hincrby(engine_call_t *call) {
  const engine_field_t *field = field_of(call->object, call->argv[2]);
  engine_object_t *object;
  int64_t value = 0;
  char text[ENGINE_NUMBER_MAX];
  if (field != NULL && !engine_bytes_integer(engine_buffer_bytes(&field->value), &value)) {
    engine_reply_error(call, "ERR hash value is not an integer");
    return;
  }
  if (!engine_add(call, value, call->number[1], &value))
    return;
  if (!engine_find_or_make(call, call->argv[1], ENGINE_HASH, &object))
    return;
  (void)put(object, call->argv[2], engine_print_integer(text, value));
  engine_reply_integer(call, value);
}

const engine_command_t engine_hash_commands[] = {
    {"HSET", hset, -4, ENGINE_WRITES, NULL},
    {"HGET", hget, 3, ENGINE_OF(HASH), NULL},
    {"HMGET", hmget, -3, ENGINE_OF(HASH), NULL},
    {"HDEL", hdel, -3, ENGINE_WRITES | ENGINE_OF(HASH), NULL},
    {"HEXISTS", hexists, 3, ENGINE_OF(HASH), NULL},
    {"HLEN", hlen, 2, ENGINE_OF(HASH), NULL},
    {"HGETALL", hgetall, 2, ENGINE_OF(HASH), NULL},
    {"HINCRBY", hincrby, 4, ENGINE_WRITES | ENGINE_OF(HASH) | ENGINE_INTEGER_3, NULL},
    {NULL, NULL, 0, 0, NULL},
};
