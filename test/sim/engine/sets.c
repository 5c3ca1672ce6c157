/* SADD and related commands. Members keep their order of insertion. */
#include "command.h"

#include <stdlib.h>

static void sadd(engine_call_t *call) {
  engine_object_t *object;
  if (!engine_find_or_make(call, call->argv[1], ENGINE_SET, &object))
    return;
  int64_t added = 0;
  for (size_t i = 2; i < call->argc; i++) {
    if (engine_table_find(&object->as.set, call->argv[i]) != NULL)
      continue;
    engine_table_add(&object->as.set, call->argv[i], sizeof(engine_entry_t));
    added++;
  }
  engine_reply_integer(call, added);
}

static void scard(engine_call_t *call) {
  engine_object_t *object;
  if (engine_find(call, call->argv[1], ENGINE_SET, &object))
    engine_reply_integer(call, object != NULL ? (int64_t)object->as.set.count : 0);
}

static void smembers(engine_call_t *call) {
  engine_object_t *object;
  if (!engine_find(call, call->argv[1], ENGINE_SET, &object))
    return;
  engine_reply_set(call, object != NULL ? object->as.set.count : 0);
  if (object == NULL)
    return;
  for (const engine_entry_t *entry = object->as.set.first; entry != NULL; entry = entry->after)
    engine_reply_word(call, entry->key);
}

const engine_command_t engine_set_commands[] = {
    {"SADD", sadd, -3, ENGINE_WRITES, NULL},
    {"SCARD", scard, 2, 0, NULL},
    {"SMEMBERS", smembers, 2, 0, NULL},
    {NULL, NULL, 0, 0, NULL},
};
