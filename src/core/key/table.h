/* A hash table that lives inside what it holds. The hash is seeded, so that nobody who chooses names can choose which
 * of them meet.
 *
 * It doubles when it is full. Where memory is out it stays as it is, and is slower: only its first buckets must be
 * there. Who walks it and adds or takes out meanwhile, walks something else. */
#ifndef BELAY_CORE_KEY_TABLE_H
#define BELAY_CORE_KEY_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belay/loop.h"

typedef struct belay__entry belay__entry_t;

struct belay__entry {
  belay__entry_t *next; /* in the same bucket */
  uint64_t hash;
};

/* {0} is an empty one. */
typedef struct belay__table {
  belay__entry_t **buckets;
  size_t size, count; /* buckets, a power of two or 0; entries */
  bool seeded;
  uint64_t seed[2];
} belay__table_t;

/* Whether an entry is the one of that key. */
typedef bool (*belay__equal_fn)(const belay__entry_t *entry, const void *key, size_t len);

uint64_t belay__table_hash(belay_t *belay, belay__table_t *table, const void *key, size_t len);

/* The entry of a key whose hash is known; NULL if there is none. equal: NULL: any entry of that hash. */
belay__entry_t *belay__table_find(const belay__table_t *table, uint64_t hash, belay__equal_fn equal,
                                  const void *key, size_t len);

/* Adds an entry whose key is not there. Returns 0 or BELAY_ENOMEM. */
int belay__table_add(belay_t *belay, belay__table_t *table, belay__entry_t *entry, uint64_t hash);

/* Takes out one that is there. */
void belay__table_remove(belay__table_t *table, belay__entry_t *entry);

/* Gives the buckets back; the entries are their owners'. */
void belay__table_free(belay_t *belay, belay__table_t *table);

#endif /* BELAY_CORE_KEY_TABLE_H */
