/* The keyspace. */
#include <stdlib.h>
#include <string.h>

#include "command.h"

const char *engine_type_name(engine_type_t type) {
  static const char *const names[] = {"string", "hash", "set", "zset", "list"};
  return names[type];
}

static engine_bytes_t nothing(void) {
  return (engine_bytes_t){NULL, 0};
}

static void report_change(engine_t *engine, engine_bytes_t key, engine_bytes_t was,
                          engine_bytes_t is, engine_cause_t cause) {
  const engine_hooks_t *hooks = &engine->options.hooks;
  if (hooks->changed != NULL)
    hooks->changed(hooks->ctx, key, was, is, cause);
}

/* ---- values ---- */

static void clear_hash(engine_table_t *hash) {
  for (engine_entry_t *entry = hash->first; entry != NULL; entry = entry->after)
    engine_buffer_free(&((engine_field_t *)entry)->value);
  engine_table_clear(hash);
}

static void clear_value(engine_object_t *object) {
  switch (object->type) {
  case ENGINE_STRING:
    engine_buffer_free(&object->as.string);
    break;
  case ENGINE_HASH:
    clear_hash(&object->as.hash);
    break;
  case ENGINE_SET:
    engine_table_clear(&object->as.set);
    break;
  case ENGINE_ZSET:
    engine_zset_clear(&object->as.zset);
    break;
  case ENGINE_LIST:
    engine_list_clear(&object->as.list);
    break;
  }
}

static void copy_hash(engine_table_t *to, const engine_table_t *from) {
  for (engine_entry_t *entry = from->first; entry != NULL; entry = entry->after) {
    engine_field_t *field = engine_table_add(to, entry->key, sizeof *field);
    engine_bytes_t value = engine_buffer_bytes(&((engine_field_t *)entry)->value);
    engine_buffer_set(&field->value, value.at, value.len);
  }
}

static void copy_value(engine_object_t *to, const engine_object_t *from) {
  const engine_entry_t *entry;
  switch (from->type) {
  case ENGINE_STRING:
    engine_buffer_set(&to->as.string, from->as.string.at, from->as.string.len);
    break;
  case ENGINE_HASH:
    copy_hash(&to->as.hash, &from->as.hash);
    break;
  case ENGINE_SET:
    for (entry = from->as.set.first; entry != NULL; entry = entry->after)
      engine_table_add(&to->as.set, entry->key, sizeof *entry);
    break;
  case ENGINE_ZSET:
    for (entry = from->as.zset.members.first; entry != NULL; entry = entry->after)
      engine_zset_set(&to->as.zset, entry->key, ((const engine_score_t *)entry)->score);
    break;
  case ENGINE_LIST:
    for (size_t i = 0; i < from->as.list.count; i++)
      engine_list_insert(&to->as.list, i, engine_buffer_bytes(&from->as.list.items[i]));
    break;
  }
}

void engine_keys_clear(engine_table_t *keys) {
  for (engine_entry_t *entry = keys->first; entry != NULL; entry = entry->after)
    clear_value((engine_object_t *)entry);
  engine_table_clear(keys);
}

static engine_object_t *add(engine_table_t *keys, engine_bytes_t key, engine_type_t type) {
  engine_object_t *object = engine_table_add(keys, key, sizeof *object);
  object->type = type;
  object->ends_ms = ENGINE_FOREVER;
  return object;
}

void engine_keys_copy(engine_table_t *to, const engine_table_t *from) {
  for (engine_entry_t *entry = from->first; entry != NULL; entry = entry->after) {
    const engine_object_t *object = (const engine_object_t *)entry;
    engine_object_t *copy = add(to, entry->key, object->type);
    copy->ends_ms = object->ends_ms;
    copy_value(copy, object);
  }
}

/* ---- keys ---- */

static void remove_object(engine_t *engine, engine_object_t *object, engine_cause_t cause) {
  engine_table_remove(&engine->keys, &object->entry);
  if (object->type == ENGINE_STRING)
    report_change(engine, object->entry.key, engine_buffer_bytes(&object->as.string), nothing(),
                  cause);
  clear_value(object);
  free(object);
}

void engine_delete(engine_call_t *call, engine_object_t *object) {
  remove_object(call->engine, object, ENGINE_BY_COMMAND);
}

engine_object_t *engine_lookup(engine_call_t *call, engine_bytes_t key) {
  engine_object_t *object = (engine_object_t *)engine_table_find(&call->engine->keys, key);
  if (object == NULL || !engine_has_ended(object, call->now_ms))
    return object;
  remove_object(call->engine, object, ENGINE_BY_EXPIRY);
  return NULL;
}

bool engine_find(engine_call_t *call, engine_bytes_t key, engine_type_t type,
                 engine_object_t **found) {
  *found = engine_lookup(call, key);
  if (*found == NULL || (*found)->type == type)
    return true;
  engine_reply_wrongtype(call);
  return false;
}

bool engine_find_or_make(engine_call_t *call, engine_bytes_t key, engine_type_t type,
                         engine_object_t **found) {
  if (!engine_find(call, key, type, found))
    return false;
  if (*found == NULL)
    *found = add(&call->engine->keys, key, type);
  return true;
}

engine_object_t *engine_make(engine_call_t *call, engine_bytes_t key, engine_type_t type) {
  engine_object_t *object = engine_lookup(call, key);
  if (object != NULL)
    engine_delete(call, object);
  return add(&call->engine->keys, key, type);
}

void engine_rename(engine_call_t *call, engine_object_t *object, engine_bytes_t key) {
  engine_t *engine = call->engine;
  engine_object_t *old = engine_lookup(call, key);
  if (old != NULL)
    engine_delete(call, old);
  engine_object_t *copy = add(&engine->keys, key, object->type);
  copy->ends_ms = object->ends_ms;
  copy->as = object->as;
  engine_table_remove(&engine->keys, &object->entry);
  if (copy->type == ENGINE_STRING) {
    engine_bytes_t bytes = engine_buffer_bytes(&copy->as.string);
    report_change(engine, object->entry.key, bytes, nothing(), ENGINE_BY_COMMAND);
    report_change(engine, copy->entry.key, nothing(), bytes, ENGINE_BY_COMMAND);
  }
  free(object);
}

void engine_delete_if_empty(engine_call_t *call, engine_object_t *object) {
  if (object == NULL)
    return;
  size_t count = object->type == ENGINE_LIST   ? object->as.list.count
                 : object->type == ENGINE_ZSET ? object->as.zset.members.count
                                               : object->as.set.count;
  if (count == 0)
    engine_delete(call, object);
}

void engine_flush(engine_call_t *call) {
  engine_table_t *keys = &call->engine->keys;
  while (keys->first != NULL)
    remove_object(call->engine, (engine_object_t *)keys->first, ENGINE_BY_FLUSH);
  engine_table_clear(keys);
}

/* ---- strings ---- */

/* The string at a key; an empty one if there was none, without bytes if it had another type. */
static engine_object_t *make_string(engine_call_t *call, engine_bytes_t key) {
  engine_object_t *object = engine_lookup(call, key);
  if (object == NULL) {
    object = add(&call->engine->keys, key, ENGINE_STRING);
  } else if (object->type != ENGINE_STRING) {
    clear_value(object);
    object->type = ENGINE_STRING;
    memset(&object->as, 0, sizeof object->as);
  }
  return object;
}

engine_object_t *engine_string_put(engine_call_t *call, engine_bytes_t key, engine_bytes_t bytes,
                                   bool keep_ttl) {
  engine_object_t *object = make_string(call, key);
  engine_buffer_t was = object->as.string;
  object->as.string = (engine_buffer_t){0};
  engine_buffer_set(&object->as.string, bytes.at, bytes.len);
  if (!keep_ttl)
    object->ends_ms = ENGINE_FOREVER;
  report_change(call->engine, object->entry.key, (engine_bytes_t){was.at, was.len},
                engine_buffer_bytes(&object->as.string), ENGINE_BY_COMMAND);
  engine_buffer_free(&was);
  return object;
}

engine_object_t *engine_string_open(engine_call_t *call, engine_bytes_t key, size_t len) {
  engine_object_t *object;
  if (!engine_find(call, key, ENGINE_STRING, &object))
    return NULL;
  engine_buffer_t *was = &call->engine->was;
  was->len = 0;
  call->engine->was_there = object != NULL;
  if (object == NULL)
    object = add(&call->engine->keys, key, ENGINE_STRING);
  else if (call->engine->options.hooks.changed != NULL)
    engine_buffer_set(was, object->as.string.at, object->as.string.len);
  engine_buffer_t *string = &object->as.string;
  size_t more = len > string->len ? len - string->len : 0;
  memset(engine_buffer_room(string, more), 0, more);
  string->len += more;
  return object;
}

void engine_string_close(engine_call_t *call, engine_object_t *object) {
  engine_t *engine = call->engine;
  report_change(engine, object->entry.key,
                engine->was_there ? engine_buffer_bytes(&engine->was) : nothing(),
                engine_buffer_bytes(&object->as.string), ENGINE_BY_COMMAND);
}
