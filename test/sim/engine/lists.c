/* LPUSH and its kin. */
#include "command.h"

#include <stdlib.h>

/* ---- items --------------------------------------------------------------------------------------------- */

void engine_list_insert(engine_list_t *list, size_t at, engine_word_t word) {
  if (list->count == list->cap) {
    list->cap = list->cap == 0 ? 8 : 2 * list->cap;
    list->items = engine_reallocate(list->items, list->cap * sizeof *list->items);
  }
  memmove(list->items + at + 1, list->items + at, (list->count - at) * sizeof *list->items);
  list->items[at] = (engine_buffer_t){0};
  engine_buffer_set(&list->items[at], word.at, word.len);
  list->count++;
}

void engine_list_remove(engine_list_t *list, size_t at, size_t count) {
  if (count == 0)
    return;
  for (size_t i = at; i < at + count; i++)
    engine_buffer_free(&list->items[i]);
  memmove(list->items + at, list->items + at + count,
          (list->count - at - count) * sizeof *list->items);
  list->count -= count;
}

void engine_list_clear(engine_list_t *list) {
  engine_list_remove(list, 0, list->count);
  free(list->items);
  *list = (engine_list_t){0};
}

static size_t count_of(const engine_object_t *object) {
  return object == NULL ? 0 : object->as.list.count;
}

/* ---- commands ------------------------------------------------------------------------------------------ */

static void push(engine_call_t *call, bool front, bool make) {
  engine_object_t *object;
  if (make ? !engine_find_or_make(call, call->argv[1], ENGINE_LIST, &object)
           : !engine_find(call, call->argv[1], ENGINE_LIST, &object))
    return;
  for (size_t i = 2; object != NULL && i < call->argc; i++)
    engine_list_insert(&object->as.list, front ? 0 : object->as.list.count, call->argv[i]);
  engine_reply_integer(call, (int64_t)count_of(object));
}

static void rpush(engine_call_t *call) {
  push(call, false, true);
}

static void llen(engine_call_t *call) {
  engine_object_t *object;
  if (engine_find(call, call->argv[1], ENGINE_LIST, &object))
    engine_reply_integer(call, (int64_t)count_of(object));
}

/* Both ends, as places in a list of so many: from is 0 or more, and less than to if there is anything. */
static bool read_range(engine_call_t *call, int64_t *from, int64_t *to) {
  return engine_get_integer(call, call->argv[2], from) &&
         engine_get_integer(call, call->argv[3], to);
}

static void fit_range(int64_t count, int64_t *from, int64_t *to) {
  *from = *from < 0 ? *from + count : *from;
  *to = *to < 0 ? *to + count : *to;
  *from = *from < 0 ? 0 : *from;
  *to = *to >= count ? count : *to + 1;
  if (*from >= *to)
    *from = *to = 0;
}

static void lrange(engine_call_t *call) {
  engine_object_t *object;
  int64_t from, to;
  if (!read_range(call, &from, &to) || !engine_find(call, call->argv[1], ENGINE_LIST, &object))
    return;
  fit_range((int64_t)count_of(object), &from, &to);
  engine_reply_array(call, (size_t)(to - from));
  for (int64_t i = from; i < to; i++)
    engine_reply_word(call, engine_bytes(&object->as.list.items[i]));
}

static void ltrim(engine_call_t *call) {
  engine_object_t *object;
  int64_t from, to;
  if (!read_range(call, &from, &to) || !engine_find(call, call->argv[1], ENGINE_LIST, &object))
    return;
  if (object != NULL) {
    engine_list_t *list = &object->as.list;
    fit_range((int64_t)list->count, &from, &to);
    engine_list_remove(list, (size_t)to, list->count - (size_t)to);
    engine_list_remove(list, 0, (size_t)from);
    engine_delete_if_empty(call, object);
  }
  engine_reply_ok(call);
}

const engine_command_t engine_list_commands[] = {
    {"RPUSH", rpush, -3, ENGINE_WRITES, NULL},
    {"LLEN", llen, 2, 0, NULL},
    {"LRANGE", lrange, 4, 0, NULL},
    {"LTRIM", ltrim, 4, ENGINE_WRITES, NULL},
    {NULL, NULL, 0, 0, NULL},
};
