/* Keys, whatever is in them. When they end is in expiry.c. */
#include "command.h"

static void del(engine_call_t *call) {
  int64_t count = 0;
  for (size_t i = 1; i < call->argc; i++) {
    engine_object_t *object = engine_look(call, call->argv[i]);
    if (object == NULL)
      continue;
    engine_delete(call, object);
    count++;
  }
  engine_reply_integer(call, count);
}

static void exists(engine_call_t *call) {
  int64_t count = 0;
  for (size_t i = 1; i < call->argc; i++)
    count += engine_look(call, call->argv[i]) != NULL;
  engine_reply_integer(call, count);
}

static void type(engine_call_t *call) {
  const engine_object_t *object = engine_look(call, call->argv[1]);
  engine_reply_status(call, object == NULL ? "none" : engine_type_name(object->type));
}

/* NULL: there is none, and the reply says so. */
static engine_object_t *find_to_rename(engine_call_t *call) {
  engine_object_t *object = engine_look(call, call->argv[1]);
  if (object == NULL)
    engine_reply_error(call, "ERR no such key");
  return object;
}

static void rename_key(engine_call_t *call) {
  engine_object_t *object = find_to_rename(call);
  if (object == NULL)
    return;
  if (!engine_word_equal(call->argv[1], call->argv[2]))
    engine_rename(call, object, call->argv[2]);
  engine_reply_ok(call);
}

static void renamenx(engine_call_t *call) {
  engine_object_t *object = find_to_rename(call);
  if (object == NULL)
    return;
  bool is_free = engine_look(call, call->argv[2]) == NULL; /* not if it is the same one */
  if (is_free)
    engine_rename(call, object, call->argv[2]);
  engine_reply_integer(call, is_free);
}

/* Those that have ended are gone after a while in Redis, whether somebody looks at them or not. */
static void remove_ended(engine_call_t *call) {
  for (engine_entry_t *entry = call->engine->keys.first, *after; entry != NULL; entry = after) {
    after = entry->after;
    if (engine_has_ended((engine_object_t *)entry, call->now_ms))
      (void)engine_look(call, entry->key);
  }
}

static void dbsize(engine_call_t *call) {
  remove_ended(call);
  engine_reply_integer(call, (int64_t)call->engine->keys.count);
}

static bool is_wanted(const engine_entry_t *entry, engine_word_t pattern) {
  return (pattern.len == 1 && pattern.at[0] == '*') || engine_word_matches(entry->key, pattern);
}

static void keys(engine_call_t *call) {
  engine_word_t pattern = call->argv[1];
  size_t count = 0;
  remove_ended(call);
  const engine_entry_t *first = call->engine->keys.first, *entry;
  for (entry = first; entry != NULL; entry = entry->after)
    count += is_wanted(entry, pattern);
  engine_reply_array(call, count);
  for (entry = first; entry != NULL; entry = entry->after)
    if (is_wanted(entry, pattern))
      engine_reply_word(call, entry->key);
}

static void flush(engine_call_t *call) {
  bool known = call->argc == 1 || (call->argc == 2 && (engine_word_is(call->argv[1], "SYNC") ||
                                                       engine_word_is(call->argv[1], "ASYNC")));
  if (!known) {
    engine_reply_syntax_error(call);
    return;
  }
  engine_flush(call);
  engine_reply_ok(call);
}

const engine_command_t engine_key_commands[] = {
    {"DEL", del, -2, ENGINE_WRITES, NULL},
    {"UNLINK", del, -2, ENGINE_WRITES, NULL},
    {"EXISTS", exists, -2, 0, NULL},
    {"TOUCH", exists, -2, 0, NULL},
    {"TYPE", type, 2, 0, NULL},
    {"RENAME", rename_key, 3, ENGINE_WRITES, NULL},
    {"RENAMENX", renamenx, 3, ENGINE_WRITES, NULL},
    {"DBSIZE", dbsize, 1, 0, NULL},
    {"KEYS", keys, 2, 0, NULL},
    {"FLUSHALL", flush, -1, ENGINE_WRITES, NULL},
    {"FLUSHDB", flush, -1, ENGINE_WRITES, NULL},
    {NULL, NULL, 0, 0, NULL},
};
