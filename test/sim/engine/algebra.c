/* SUNION, SINTER, SDIFF. */
#include "command.h"

#include <stdlib.h>

typedef enum operation { UNION, INTER, DIFF } operation_t;

typedef struct operands {
  engine_object_t **object; /* NULL: there is nothing at that key */
  size_t count;
} operands_t;

static bool is_in(const engine_object_t *object, engine_word_t member) {
  return object != NULL && engine_table_find(&object->as.set, member) != NULL;
}

/* False: one of them is no set, and the reply says so. */
static bool find_all(engine_call_t *call, size_t first, operands_t *operands) {
  operands->count = call->argc - first;
  operands->object = engine_allocate(operands->count * sizeof(engine_object_t *));
  for (size_t i = 0; i < operands->count; i++)
    if (!engine_find(call, call->argv[first + i], ENGINE_SET, &operands->object[i]))
      return false;
  return true;
}

static bool is_wanted(const operands_t *operands, operation_t operation, engine_word_t member) {
  for (size_t i = 1; i < operands->count && operation != UNION; i++)
    if (is_in(operands->object[i], member) != (operation == INTER))
      return false;
  return true;
}

static void collect(const operands_t *operands, operation_t operation, engine_table_t *out) {
  size_t sources = operation == UNION ? operands->count : 1;
  for (size_t i = 0; i < sources; i++) {
    const engine_object_t *source = operands->object[i];
    if (source == NULL)
      continue;
    for (const engine_entry_t *e = source->as.set.first; e != NULL; e = e->after)
      if (engine_table_find(out, e->key) == NULL && is_wanted(operands, operation, e->key))
        engine_table_add(out, e->key, sizeof *e);
  }
}

static void store(engine_call_t *call, const engine_table_t *members) {
  engine_object_t *old = engine_look(call, call->argv[1]);
  if (members->count == 0 && old != NULL)
    engine_delete(call, old);
  if (members->count > 0) {
    engine_object_t *object = engine_make(call, call->argv[1], ENGINE_SET);
    for (const engine_entry_t *e = members->first; e != NULL; e = e->after)
      engine_table_add(&object->as.set, e->key, sizeof *e);
  }
  engine_reply_integer(call, (int64_t)members->count);
}

static void operate(engine_call_t *call, operation_t operation, bool stores) {
  operands_t operands;
  engine_table_t members = {0};
  if (find_all(call, stores ? 2 : 1, &operands)) {
    collect(&operands, operation, &members);
    if (stores) {
      store(call, &members);
    } else {
      engine_reply_set(call, members.count);
      for (const engine_entry_t *e = members.first; e != NULL; e = e->after)
        engine_reply_word(call, e->key);
    }
  }
  engine_table_clear(&members);
  free(operands.object);
}

static void sunion(engine_call_t *call) {
  operate(call, UNION, false);
}

static void sinter(engine_call_t *call) {
  operate(call, INTER, false);
}

static void sdiff(engine_call_t *call) {
  operate(call, DIFF, false);
}

static void sunionstore(engine_call_t *call) {
  operate(call, UNION, true);
}

static void sinterstore(engine_call_t *call) {
  operate(call, INTER, true);
}

static void sdiffstore(engine_call_t *call) {
  operate(call, DIFF, true);
}

const engine_command_t engine_algebra_commands[] = {
    {"SUNION", sunion, -2, 0, NULL},
    {"SINTER", sinter, -2, 0, NULL},
    {"SDIFF", sdiff, -2, 0, NULL},
    {"SUNIONSTORE", sunionstore, -3, ENGINE_WRITES, NULL},
    {"SINTERSTORE", sinterstore, -3, ENGINE_WRITES, NULL},
    {"SDIFFSTORE", sdiffstore, -3, ENGINE_WRITES, NULL},
    {NULL, NULL, 0, 0, NULL},
};
