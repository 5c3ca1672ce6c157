/* Lists and sets. Members of sets keep their order of insertion. */
#include "command.h"

#include <stdlib.h>

/* ---- items ---- */

void engine_list_insert(engine_list_t *list, size_t at, engine_bytes_t word) {
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

/* ---- lists ---- */

static void rpush(engine_call_t *call) {
  engine_list_t *list = &call->object->as.list;
  for (size_t i = 2; i < call->argc; i++)
    engine_list_insert(list, list->count, call->argv[i]);
  engine_reply_integer(call, (int64_t)list->count);
}

static void llen(engine_call_t *call) {
  engine_reply_integer(call, (int64_t)count_of(call->object));
}

/* The two integers as places in the list: *from is at least 0, and less than *to if the range is
 * not empty. */
static void read_range(const engine_call_t *call, int64_t *from, int64_t *to) {
  int64_t count = (int64_t)count_of(call->object);
  *from = call->number[0] < 0 ? call->number[0] + count : call->number[0];
  *to = call->number[1] < 0 ? call->number[1] + count : call->number[1];
  *from = *from < 0 ? 0 : *from;
  *to = *to >= count ? count : *to + 1;
  if (*from >= *to)
    *from = *to = 0;
}

static void lrange(engine_call_t *call) {
  int64_t from, to;
  read_range(call, &from, &to);
  engine_reply_array(call, (size_t)(to - from));
  for (int64_t i = from; i < to; i++)
    engine_reply_bytes(call, engine_buffer_bytes(&call->object->as.list.items[i]));
}

static void ltrim(engine_call_t *call) {
  int64_t from, to;
  read_range(call, &from, &to);
  if (call->object != NULL) {
    engine_list_t *list = &call->object->as.list;
    engine_list_remove(list, (size_t)to, list->count - (size_t)to);
    engine_list_remove(list, 0, (size_t)from);
    engine_delete_if_empty(call, call->object);
  }
  engine_reply_ok(call);
}

/* ---- sets ---- */

static void sadd(engine_call_t *call) {
  engine_table_t *set = &call->object->as.set;
  int64_t added = 0;
  for (size_t i = 2; i < call->argc; i++) {
    if (engine_table_find(set, call->argv[i]) != NULL)
      continue;
    engine_table_add(set, call->argv[i], sizeof(engine_entry_t));
    added++;
  }
  engine_reply_integer(call, added);
}

static void scard(engine_call_t *call) {
  engine_reply_integer(call, call->object != NULL ? (int64_t)call->object->as.set.count : 0);
}

static void smembers(engine_call_t *call) {
  engine_reply_set(call, call->object != NULL ? call->object->as.set.count : 0);
  if (call->object == NULL)
    return;
  for (const engine_entry_t *entry = call->object->as.set.first; entry; entry = entry->after)
    engine_reply_bytes(call, entry->key);
}

const engine_command_t engine_list_commands[] = {
    {"RPUSH", rpush, -3, ENGINE_WRITES | ENGINE_OF(LIST) | ENGINE_MAKES, NULL},
    {"LLEN", llen, 2, ENGINE_OF(LIST), NULL},
    {"LRANGE", lrange, 4, ENGINE_OF(LIST) | ENGINE_INTEGER_2 | ENGINE_INTEGER_3, NULL},
    {"LTRIM", ltrim, 4, ENGINE_WRITES | ENGINE_OF(LIST) | ENGINE_INTEGER_2 | ENGINE_INTEGER_3,
     NULL},
    {"SADD", sadd, -3, ENGINE_WRITES | ENGINE_OF(SET) | ENGINE_MAKES, NULL},
    {"SCARD", scard, 2, ENGINE_OF(SET), NULL},
    {"SMEMBERS", smembers, 2, ENGINE_OF(SET), NULL},
    {NULL, NULL, 0, 0, NULL},
};
