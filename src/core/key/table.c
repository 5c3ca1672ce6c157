#include "core/key/table.h"

#include <assert.h>
#include <string.h>

#include "core/loop/loop.h"

#define FIRST_SIZE ((size_t)16)
#define BUCKET_SIZE sizeof(void *)

/* ---- the hash ------------------------------------------------------------------------------------------ */

static uint64_t rotate(uint64_t x, unsigned by) {
  return x << by | x >> (64 - by);
}

static void mix(uint64_t v[4]) {
  v[0] += v[1];
  v[2] += v[3];
  v[1] = rotate(v[1], 13) ^ v[0];
  v[3] = rotate(v[3], 16) ^ v[2];
  v[0] = rotate(v[0], 32);
  v[2] += v[1];
  v[0] += v[3];
  v[1] = rotate(v[1], 17) ^ v[2];
  v[3] = rotate(v[3], 21) ^ v[0];
  v[2] = rotate(v[2], 32);
}

/* Up to eight bytes, the first one lowest. */
static uint64_t word(const unsigned char *bytes, size_t n) {
  uint64_t w = 0;
  for (size_t i = 0; i < n; i++)
    w |= (uint64_t)bytes[i] << (8 * i);
  return w;
}

uint64_t belay__table_hash(belay_t *belay, belay__table_t *table, const void *key, size_t len) {
  if (!table->seeded) /* without random bytes it goes on with what there is */
    (void)belay->host->random(belay, table->seed, sizeof table->seed);
  table->seeded = true;
  uint64_t v[4] = {
      table->seed[0] ^ UINT64_C(0x736f6d6570736575), table->seed[1] ^ UINT64_C(0x646f72616e646f6d),
      table->seed[0] ^ UINT64_C(0x6c7967656e657261), table->seed[1] ^ UINT64_C(0x7465646279746573)};
  const unsigned char *bytes = key;
  size_t left = len;
  for (; left >= 8; left -= 8, bytes += 8) {
    uint64_t w = word(bytes, 8);
    v[3] ^= w;
    mix(v);
    v[0] ^= w;
  }
  uint64_t last = word(bytes, left) | (uint64_t)(len & 0xff) << 56;
  v[3] ^= last;
  mix(v);
  v[0] ^= last;
  v[2] ^= 0xff;
  for (int i = 0; i < 3; i++)
    mix(v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* ---- the table ----------------------------------------------------------------------------------------- */

static belay__entry_t **bucket(const belay__table_t *table, uint64_t hash) {
  return &table->buckets[hash & (table->size - 1)];
}

belay__entry_t *belay__table_find(const belay__table_t *table, uint64_t hash, belay__equal_fn equal,
                                  const void *key, size_t len) {
  if (table->size == 0)
    return NULL;
  belay__entry_t *entry = *bucket(table, hash);
  while (entry != NULL && (entry->hash != hash || !equal(entry, key, len)))
    entry = entry->next;
  return entry;
}

/* False if memory is out; then it is as it was. */
static bool resize(belay_t *belay, belay__table_t *table, size_t size) {
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
  if (table->size == 0 && !resize(belay, table, FIRST_SIZE))
    return BELAY_ENOMEM;
  if (table->count >= table->size)
    (void)resize(belay, table, 2 * table->size);
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
