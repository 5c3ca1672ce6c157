/* Keys, whatever is in them. When they end is in expiry.c. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

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

/* ---- SCAN ---------------------------------------------------------------------------------------------- */

typedef struct scanning {
  uint64_t cursor;
  int64_t count;
  engine_word_t pattern;
  const engine_word_t *type; /* NULL: any */
} scanning_t;

/* Redis asks strtoul(): nothing at all is 0. */
static bool read_cursor(engine_call_t *call, engine_word_t word, uint64_t *cursor) {
  char text[32] = "", *end = text;
  bool good = word.len < sizeof text && (word.len == 0 || !isspace((unsigned char)word.at[0]));
  if (good) {
    if (word.len > 0)
      memcpy(text, word.at, word.len);
    errno = 0;
    *cursor = strtoull(text, &end, 10);
    good = *end == '\0' && errno != ERANGE;
  }
  if (!good)
    engine_reply_error(call, "ERR invalid cursor");
  return good;
}

static bool read_scan_options(engine_call_t *call, scanning_t *scanning) {
  for (size_t i = 2; i < call->argc; i += 2) {
    bool has_value = i + 1 < call->argc;
    if (has_value && engine_word_is(call->argv[i], "COUNT")) {
      if (!engine_get_integer(call, call->argv[i + 1], &scanning->count))
        return false;
    } else if (has_value && engine_word_is(call->argv[i], "MATCH")) {
      scanning->pattern = call->argv[i + 1];
    } else if (has_value && engine_word_is(call->argv[i], "TYPE")) {
      scanning->type = &call->argv[i + 1];
    } else {
      scanning->count = 0;
    }
    if (scanning->count < 1) {
      engine_reply_syntax_error(call);
      return false;
    }
  }
  return true;
}

static int by_hash(const void *one, const void *other) {
  uint64_t a = (*(const engine_entry_t *const *)one)->hash;
  uint64_t b = (*(const engine_entry_t *const *)other)->hash;
  return (a > b) - (a < b);
}

static bool is_scanned(const scanning_t *scanning, const engine_entry_t *entry) {
  const char *type = engine_type_name(((const engine_object_t *)entry)->type);
  const engine_word_t *wanted = scanning->type;
  return is_wanted(entry, scanning->pattern) &&
         (wanted == NULL ||
          (wanted->len == strlen(type) && strncasecmp(wanted->at, type, wanted->len) == 0));
}

/* In the order of the hashes of the keys, and the cursor is one of them: so whatever comes or goes meanwhile, a key
 * that stays is told of once. */
static void scan(engine_call_t *call) {
  scanning_t scanning = {.count = 10, .pattern = engine_word("*")};
  if (!read_cursor(call, call->argv[1], &scanning.cursor) || !read_scan_options(call, &scanning))
    return;
  remove_ended(call);
  const engine_table_t *table = &call->engine->keys;
  const engine_entry_t **left = engine_allocate((table->count + 1) * sizeof *left);
  size_t count = 0, end, told = 0;
  for (const engine_entry_t *entry = table->first; entry != NULL; entry = entry->after)
    if (entry->hash >= scanning.cursor)
      left[count++] = entry;
  qsort(left, count, sizeof *left, by_hash);
  for (end = 0;
       end < count && ((int64_t)end < scanning.count || left[end]->hash == left[end - 1]->hash);)
    told += is_scanned(&scanning, left[end++]);
  char cursor[24];
  snprintf(cursor, sizeof cursor, "%llu", end < count ? (unsigned long long)left[end]->hash : 0ULL);
  engine_reply_array(call, 2);
  engine_reply_text(call, cursor);
  engine_reply_array(call, told);
  for (size_t i = 0; i < end; i++)
    if (is_scanned(&scanning, left[i]))
      engine_reply_word(call, left[i]->key);
  free(left);
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
    {"SCAN", scan, -2, 0, NULL},
    {"FLUSHALL", flush, -1, ENGINE_WRITES, NULL},
    {"FLUSHDB", flush, -1, ENGINE_WRITES, NULL},
    {NULL, NULL, 0, 0, NULL},
};
