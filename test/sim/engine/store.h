/* The keyspace, and the containers of its values.
 *
 *    engine_t.keys --table--> engine_object_t (one per key) --> string: bytes
 *                                                               hash:   table of engine_field_t
 *                                                               set:    table of engine_entry_t
 *                                                               zset:   table of engine_score_t,
 *                                                                       and a sorted array
 *                                                               list:   array of bytes
 *
 * Every iteration is in the order of insertion, independent of addresses and seeds. */
#ifndef TEST_SIM_ENGINE_STORE_H
#define TEST_SIM_ENGINE_STORE_H

#include "engine.h"

typedef struct engine_call engine_call_t; /* command.h */

/* ---- memory (buffer.c) ---- */

/* They abort if there is no memory. free() releases it. */
void *engine_allocate(size_t size); /* zeros */
void *engine_reallocate(void *at, size_t size);

/* Makes room for more bytes behind the end and returns their place. The caller adds to len. */
char *engine_buffer_room(engine_buffer_t *buffer, size_t more);

/* Replaces the bytes. */
void engine_buffer_set(engine_buffer_t *buffer, const char *at, size_t len);

/* ---- tables (table.c) ---- */

/* The first member of table entries. The key's bytes follow the struct in the same memory. */
typedef struct engine_entry {
  struct engine_entry *chain; /* the next one in the same bucket */
  struct engine_entry *before, *after;
  engine_bytes_t key;
  uint64_t hash;
} engine_entry_t;

/* Keys, each with something. All zeros is an empty table. */
typedef struct engine_table {
  engine_entry_t *first, *last; /* in the order of insertion: linked by after and before */
  size_t count;
  engine_entry_t **buckets; /* NULL while there are few */
  size_t buckets_count;     /* a power of two */
} engine_table_t;

/* NULL: it is not there. */
engine_entry_t *engine_table_find(const engine_table_t *table, engine_bytes_t key);

/* Adds a key that is not in the table yet; it is copied. size: of the struct that begins with
 * the engine_entry_t; the rest of it is zeros. */
void *engine_table_add(engine_table_t *table, engine_bytes_t key, size_t size);

/* Removes the entry from the table. The caller frees it. */
void engine_table_remove(engine_table_t *table, engine_entry_t *entry);

/* Frees the entries, but nothing that they point to. The table is empty then. */
void engine_table_clear(engine_table_t *table);

/* A hash of bytes; the same in every run. */
uint64_t engine_hash(const char *at, size_t len);

/* The table entries of a hash. */
typedef struct engine_field {
  engine_entry_t entry; /* the field's name */
  engine_buffer_t value;
} engine_field_t;

/* The table entries of a sorted set. */
typedef struct engine_score {
  engine_entry_t entry; /* the member */
  double score;
} engine_score_t;

/* All zeros is an empty one. Read it with engine_table_find(&zset->members, ...) and sorted;
 * change it only with the functions below. */
typedef struct engine_zset {
  engine_table_t members;
  engine_score_t **sorted; /* members.count of them: by score, then by the member's bytes */
  size_t cap;
} engine_zset_t;

/* Adds the member, or gives it another score. */
void engine_zset_set(engine_zset_t *zset, engine_bytes_t member, double score);

/* Removes and frees it. */
void engine_zset_remove(engine_zset_t *zset, engine_score_t *entry);

/* Its place in sorted. */
size_t engine_zset_rank(const engine_zset_t *zset, const engine_score_t *entry);
void engine_zset_clear(engine_zset_t *zset);

/* All zeros is an empty one. */
typedef struct engine_list {
  engine_buffer_t *items;
  size_t count, cap;
} engine_list_t;

/* Inserts a copy of the bytes before the item at that place, or behind the last one; removes
 * items from a place on. */
void engine_list_insert(engine_list_t *list, size_t at, engine_bytes_t word);
void engine_list_remove(engine_list_t *list, size_t at, size_t count);
void engine_list_clear(engine_list_t *list);

/* ---- the keyspace (store.c) ---- */

typedef enum engine_type {
  ENGINE_STRING,
  ENGINE_HASH,
  ENGINE_SET,
  ENGINE_ZSET,
  ENGINE_LIST,
} engine_type_t;

#define ENGINE_FOREVER (-1) /* instead of a time: it does not end */

typedef struct engine_object {
  engine_entry_t entry; /* the key */
  engine_type_t type;
  int64_t ends_ms; /* since 1970; the key still exists at that time */
  union {
    engine_buffer_t string;
    engine_table_t hash;
    engine_table_t set;
    engine_zset_t zset;
    engine_list_t list;
  } as;
} engine_object_t;

static inline bool engine_has_ended(const engine_object_t *object, int64_t now_ms) {
  return object->ends_ms != ENGINE_FOREVER && object->ends_ms < now_ms;
}

/* The object at that key; NULL: none. Expired objects are removed here, as Redis does; so an
 * older pointer to an object of the same key is invalid afterwards. */
engine_object_t *engine_lookup(engine_call_t *call, engine_bytes_t key);

/* The same for one type: *found is NULL if there is no key. False: it has another type, and
 * WRONGTYPE is the reply. */
bool engine_find(engine_call_t *call, engine_bytes_t key, engine_type_t type,
                 engine_object_t **found);

/* The same, but an empty value without a ttl is made if there was none. Not for strings. */
bool engine_find_or_make(engine_call_t *call, engine_bytes_t key, engine_type_t type,
                         engine_object_t **found);

/* Makes an empty value without a ttl at a key of any type. Not for strings. */
engine_object_t *engine_make(engine_call_t *call, engine_bytes_t key, engine_type_t type);

/* Moves it with its ttl to another key of any type. The object itself is freed. */
void engine_rename(engine_call_t *call, engine_object_t *object, engine_bytes_t key);

/* Deletes it, and reports it if it is a string. */
void engine_delete(engine_call_t *call, engine_object_t *object);

/* Deletes an empty hash, set, sorted set or list: to be called after each removal. NULL: does
 * nothing. */
void engine_delete_if_empty(engine_call_t *call, engine_object_t *object);

/* Puts a string at a key of any type. Its ttl is the old one, or none. The bytes may be those
 * of another object or of the old one. */
engine_object_t *engine_string_put(engine_call_t *call, engine_bytes_t key, engine_bytes_t bytes,
                                   bool keep_ttl);

/* For changes in place (SETBIT, APPEND): opens the string at a key, created if absent and
 * extended with zeros to at least that length. Its bytes (object->as.string) may then be written
 * and extended by engine_buffer_add(). Close it before the next call of the store; closing
 * reports the change. NULL: WRONGTYPE is the reply. */
engine_object_t *engine_string_open(engine_call_t *call, engine_bytes_t key, size_t len);
void engine_string_close(engine_call_t *call, engine_object_t *object);

/* FLUSHALL. */
void engine_flush(engine_call_t *call);

/* For engine_free() and images: without reports. */
void engine_keys_clear(engine_table_t *keys);
void engine_keys_copy(engine_table_t *to, const engine_table_t *from);

/* What TYPE says. */
const char *engine_type_name(engine_type_t type);

#endif /* TEST_SIM_ENGINE_STORE_H */
