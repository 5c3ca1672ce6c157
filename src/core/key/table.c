#include "core/key/table.h"

#include <assert.h>
#include <string.h>

#include "core/key/siphash.h"
#include "core/loop/loop.h"

#define FIRST_SIZE ((size_t)16)
#define BUCKET_SIZE sizeof(void *)

uint64_t belay__table_hash(belay_t *belay, belay__table_t *table, const void *key, size_t len) {
  if (!table->seeded) /* if random() fails, the seed stays 0 */
    (void)belay->host->random(belay, table->seed, sizeof table->seed);
  table->seeded = true;
  return belay__siphash64(table->seed, key, len);
}

static belay__entry_t **bucket(const belay__table_t *table, uint64_t hash) {
  return &table->buckets[hash & (table->size - 1)];
}

belay__entry_t *belay__table_find(const belay__table_t *table, uint64_t hash, belay__equal_fn equal,
                                  const void *key, size_t len) {
  if (table->size == 0)
    return NULL;
  belay__entry_t *entry = *bucket(table, hash);
  while (entry != NULL && (entry->hash != hash || (equal != NULL && !equal(entry, key, len))))
    entry = entry->next;
  return entry;
}

/* Resize the table. If memory is out, returns false and changes nothing. */
static bool resize_table(belay_t *belay, belay__table_t *table, size_t size) {
  belay__table_t old = *table;
  belay__entry_t **buckets = belay__alloc(belay, size * BUCKET_SIZE);
  if (buckets == NULL)
    return false;
  memset(buckets, 0, size * BUCKET_SIZE);
  table->buckets = buckets;
  table->size = size;
  for (size_t i = 0; i < old.size; i++)
    for (belay__entry_t *entry = old.buckets[i], *next; entry != NULL; entry = next) {
      next = entry->next;
      belay__entry_t **to = bucket(table, entry->hash);
      entry->next = *to;
      *to = entry;
    }
  belay__free(belay, old.buckets, old.size * BUCKET_SIZE);
  return true;
}

int belay__table_add(belay_t *belay, belay__table_t *table, belay__entry_t *entry, uint64_t hash) {
  if (table->size == 0 && !resize_table(belay, table, FIRST_SIZE))
    return BELAY_ENOMEM;
  if (table->count >= table->size)
    (void)resize_table(belay, table, 2 * table->size);
  belay__entry_t **to = bucket(table, hash);
  entry->hash = hash;
  entry->next = *to;
  *to = entry;
  table->count++;
  return 0;
}

void belay__table_remove(belay__table_t *table, belay__entry_t *entry) {
  belay__entry_t **at = bucket(table, entry->hash);
  while (*at != entry) {
    assert(*at != NULL);
    at = &(*at)->next;
  }
  *at = entry->next;
  entry->next = NULL;
  table->count--;
}

void belay__table_free(belay_t *belay, belay__table_t *table) {
  belay__free(belay, table->buckets, table->size * BUCKET_SIZE);
  table->buckets = NULL;
  table->size = table->count = 0;
}

/* ---- entries with a copy of their key ---- */

static bool is_key(const belay__entry_t *entry, const void *key, size_t len) {
  const belay__keyed_t *keyed = BELAY__CONTAINER(entry, const belay__keyed_t, entry);
  return keyed->key_len == len && memcmp(keyed->key, key, len) == 0;
}

void *belay__keyed_find(const belay__table_t *table, uint64_t hash, const char *key, size_t len) {
  belay__entry_t *entry = belay__table_find(table, hash, is_key, key, len);
  return entry == NULL ? NULL : BELAY__CONTAINER(entry, belay__keyed_t, entry);
}

void *belay__keyed_new(belay_t *belay, belay__table_t *table, uint64_t hash, size_t size,
                       const char *key, size_t len) {
  belay__keyed_t *keyed = belay__alloc(belay, size + len);
  if (keyed == NULL)
    return NULL;
  memset(keyed, 0, size);
  keyed->key = memcpy((char *)keyed + size, key, len);
  keyed->key_len = (uint32_t)len;
  keyed->size = (uint32_t)size;
  if (belay__table_add(belay, table, &keyed->entry, hash) == 0)
    return keyed;
  belay__keyed_free(belay, keyed);
  return NULL;
}

void belay__keyed_free(belay_t *belay, belay__keyed_t *keyed) {
  belay__free(belay, keyed, keyed->size + keyed->key_len);
}
