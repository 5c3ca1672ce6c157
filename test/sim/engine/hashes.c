/* Hashes. */
#include <stdlib.h>

#include "command.h"

enum { NAMES = 1, VALUES = 2 };

/* NULL: there is none of that name, or no hash. */
static engine_field_t *field_of(const engine_object_t *object, engine_word_t name) {
  return object == NULL ? NULL : (engine_field_t *)engine_table_find(&object->as.hash, name);
}

static bool put(engine_object_t *object, engine_word_t name, engine_word_t value) {
  engine_field_t *field = field_of(object, name);
  bool is_new = field == NULL;
  if (is_new)
    field = engine_table_add(&object->as.hash, name, sizeof *field);
  engine_buffer_set(&field->value, value.at, value.len);
  return is_new;
}

bool engine_field_put(engine_call_t *call, engine_word_t key, engine_word_t name,
                      engine_word_t value) {
  engine_object_t *object;
  if (!engine_find_or_make(call, key, ENGINE_HASH, &object))
    return false;
  (void)put(object, name, value);
  return true;
}

/* Sets all fields that are given; returns how many are new, -1 after an error. */
static int64_t put_all(engine_call_t *call) {
  engine_object_t *object;
  int64_t count = 0;
  if (call->argc % 2 != 0) {
    engine_reply_wrong_number(call, call->command);
    return -1;
  }
  if (!engine_find_or_make(call, call->argv[1], ENGINE_HASH, &object))
    return -1;
  for (size_t i = 2; i < call->argc; i += 2)
    count += put(object, call->argv[i], call->argv[i + 1]);
  return count;
}

static void hset(engine_call_t *call) {
  int64_t count = put_all(call);
  if (count >= 0)
    engine_reply_integer(call, count);
}

static void reply_field(engine_call_t *call, const engine_field_t *field) {
  if (field == NULL)
    engine_reply_nil(call);
  else
    engine_reply_word(call, engine_bytes(&field->value));
}

static void hget(engine_call_t *call) {
  engine_object_t *object;
  if (engine_find(call, call->argv[1], ENGINE_HASH, &object))
    reply_field(call, field_of(object, call->argv[2]));
}

static void hmget(engine_call_t *call) {
  engine_object_t *object;
  if (!engine_find(call, call->argv[1], ENGINE_HASH, &object))
    return;
  engine_reply_array(call, call->argc - 2);
  for (size_t i = 2; i < call->argc; i++)
    reply_field(call, field_of(object, call->argv[i]));
}

static void hdel(engine_call_t *call) {
  engine_object_t *object;
  int64_t count = 0;
  if (!engine_find(call, call->argv[1], ENGINE_HASH, &object))
    return;
  for (size_t i = 2; i < call->argc; i++) {
    engine_field_t *field = field_of(object, call->argv[i]);
    if (field == NULL)
      continue;
    engine_table_remove(&object->as.hash, &field->entry);
    engine_buffer_free(&field->value);
    free(field);
    count++;
  }
  if (object != NULL)
    engine_delete_if_empty(call, object);
  engine_reply_integer(call, count);
}

static void hexists(engine_call_t *call) {
  engine_object_t *object;
  if (engine_find(call, call->argv[1], ENGINE_HASH, &object))
    engine_reply_integer(call, field_of(object, call->argv[2]) != NULL);
}

static void hlen(engine_call_t *call) {
  engine_object_t *object;
  if (engine_find(call, call->argv[1], ENGINE_HASH, &object))
    engine_reply_integer(call, object == NULL ? 0 : (int64_t)object->as.hash.count);
}

static void reply_all(engine_call_t *call, unsigned what) {
  engine_object_t *object;
  if (!engine_find(call, call->argv[1], ENGINE_HASH, &object))
    return;
  const engine_table_t *hash = object == NULL ? NULL : &object->as.hash;
  size_t count = hash == NULL ? 0 : hash->count;
  if (what == (NAMES | VALUES))
    engine_reply_map(call, count);
  else
    engine_reply_array(call, count);
  for (const engine_entry_t *entry = hash == NULL ? NULL : hash->first; entry != NULL;
       entry = entry->after) {
    if ((what & NAMES) != 0)
      engine_reply_word(call, entry->key);
    if ((what & VALUES) != 0)
      reply_field(call, (const engine_field_t *)entry);
  }
}

static void hgetall(engine_call_t *call) {
  reply_all(call, NAMES | VALUES);
}

const engine_command_t engine_hash_commands[] = {
    {"HSET", hset, -4, ENGINE_WRITES, NULL}, {"HGET", hget, 3, 0, NULL},
    {"HMGET", hmget, -3, 0, NULL},           {"HDEL", hdel, -3, ENGINE_WRITES, NULL},
    {"HEXISTS", hexists, 3, 0, NULL},        {"HLEN", hlen, 2, 0, NULL},
    {"HGETALL", hgetall, 2, 0, NULL},        {NULL, NULL, 0, 0, NULL},
};
