/* Tables: a list in the order of insertion, with buckets above it once it is not short any more.
 * And sorted sets: a table with an array in the order of the scores. */
#include <stdlib.h>
#include <string.h>

#include "store.h"

enum { FEW = 8 }; /* number of entries up to which a linear search is faster */

#define PRIME_1 UINT64_C(0x9e3779b97f4a7c15)
#define PRIME_2 UINT64_C(0xbf58476d1ce4e5b9)

static uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * PRIME_2;
  return hash ^ (hash >> 29);
}

uint64_t engine_hash(const char *at, size_t len) {
  uint64_t hash = len * PRIME_1, word;
  for (; len >= sizeof word; at += sizeof word, len -= sizeof word) {
    memcpy(&word, at, sizeof word);
    hash = mix(hash, word);
  }
  word = 0;
  if (len > 0)
    memcpy(&word, at, len);
  return mix(mix(hash, word), PRIME_1);
}

static bool is(const engine_entry_t *entry, uint64_t hash, engine_bytes_t key) {
  return entry->hash == hash && entry->key.len == key.len &&
         memcmp(entry->key.at, key.at, key.len) == 0;
}

static engine_entry_t *find(const engine_table_t *table, engine_bytes_t key, uint64_t hash) {
  engine_entry_t *entry;
  if (table->buckets == NULL) {
    for (entry = table->first; entry != NULL && !is(entry, hash, key);)
      entry = entry->after;
    return entry;
  }
  for (entry = table->buckets[hash & (table->buckets_count - 1)];
       entry != NULL && !is(entry, hash, key);)
    entry = entry->chain;
  return entry;
}

engine_entry_t *engine_table_find(const engine_table_t *table, engine_bytes_t key) {
  if (table->count == 0)
    return NULL;
  return find(table, key, engine_hash(key.at, key.len));
}

static void enter(engine_table_t *table, engine_entry_t *entry) {
  engine_entry_t **bucket = &table->buckets[entry->hash & (table->buckets_count - 1)];
  entry->chain = *bucket;
  *bucket = entry;
}

static void grow(engine_table_t *table) {
  table->buckets_count = table->buckets_count == 0 ? 4 * FEW : 4 * table->buckets_count;
  free(table->buckets);
  table->buckets = engine_allocate(table->buckets_count * sizeof *table->buckets);
  for (engine_entry_t *entry = table->first; entry != NULL; entry = entry->after)
    enter(table, entry);
}

void *engine_table_add(engine_table_t *table, engine_bytes_t key, size_t size) {
  engine_entry_t *entry = engine_allocate(size + key.len + 1);
  char *copy = (char *)entry + size;
  if (key.len > 0)
    memcpy(copy, key.at, key.len);
  entry->key = (engine_bytes_t){copy, key.len};
  entry->hash = engine_hash(copy, key.len);
  entry->before = table->last;
  if (table->last != NULL)
    table->last->after = entry;
  else
    table->first = entry;
  table->last = entry;
  table->count++;
  if (table->buckets != NULL)
    enter(table, entry);
  if (table->count > (table->buckets == NULL ? FEW : table->buckets_count))
    grow(table);
  return entry;
}

void engine_table_remove(engine_table_t *table, engine_entry_t *entry) {
  if (entry->before != NULL)
    entry->before->after = entry->after;
  else
    table->first = entry->after;
  if (entry->after != NULL)
    entry->after->before = entry->before;
  else
    table->last = entry->before;
  table->count--;
  if (table->buckets == NULL)
    return;
  engine_entry_t **at = &table->buckets[entry->hash & (table->buckets_count - 1)];
  while (*at != entry)
    at = &(*at)->chain;
  *at = entry->chain;
}

void engine_table_clear(engine_table_t *table) {
  for (engine_entry_t *entry = table->first; entry != NULL;) {
    engine_entry_t *after = entry->after;
    free(entry);
    entry = after;
  }
  free(table->buckets);
  *table = (engine_table_t){0};
}

/* ---- sorted sets ---- */

static int compare(double score, engine_bytes_t member, const engine_score_t *other) {
  if (score != other->score)
    return score < other->score ? -1 : 1;
  engine_bytes_t key = other->entry.key;
  int order = memcmp(member.at, key.at, member.len < key.len ? member.len : key.len);
  return order != 0 ? order : (member.len > key.len) - (member.len < key.len);
}

/* How many of the first `count` come before. */
static size_t place(const engine_zset_t *zset, size_t count, double score, engine_bytes_t member) {
  size_t low = 0;
  while (low < count) {
    size_t middle = low + (count - low) / 2;
    if (compare(score, member, zset->sorted[middle]) > 0)
      low = middle + 1;
    else
      count = middle;
  }
  return low;
}

size_t engine_zset_rank(const engine_zset_t *zset, const engine_score_t *entry) {
  return place(zset, zset->members.count, entry->score, entry->entry.key);
}

static void move(engine_zset_t *zset, size_t to, size_t from, size_t count) {
  if (count > 0)
    memmove(zset->sorted + to, zset->sorted + from, count * sizeof *zset->sorted);
}

void engine_zset_set(engine_zset_t *zset, engine_bytes_t member, double score) {
  engine_score_t *entry = (engine_score_t *)engine_table_find(&zset->members, member);
  size_t others = zset->members.count;
  if (entry != NULL) {
    size_t was = engine_zset_rank(zset, entry);
    others--;
    move(zset, was, was + 1, others - was);
  } else {
    entry = engine_table_add(&zset->members, member, sizeof *entry);
  }
  if (zset->members.count > zset->cap) {
    zset->cap = zset->cap == 0 ? 8 : 2 * zset->cap;
    zset->sorted = engine_reallocate(zset->sorted, zset->cap * sizeof *zset->sorted);
  }
  entry->score = score;
  size_t at = place(zset, others, score, entry->entry.key);
  move(zset, at + 1, at, others - at);
  zset->sorted[at] = entry;
}

void engine_zset_remove(engine_zset_t *zset, engine_score_t *entry) {
  size_t at = engine_zset_rank(zset, entry);
  move(zset, at, at + 1, zset->members.count - 1 - at);
  engine_table_remove(&zset->members, &entry->entry);
  free(entry);
}

void engine_zset_clear(engine_zset_t *zset) {
  engine_table_clear(&zset->members);
  free(zset->sorted);
  *zset = (engine_zset_t){0};
}
