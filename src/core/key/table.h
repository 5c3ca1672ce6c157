/* A hash table whose links are inside its entries. The hash has a random seed, so that a party that
 * chooses the keys cannot force collisions.
 *
 * The number of buckets doubles when the table has as many entries as buckets. If memory is out,
 * the table keeps its buckets and becomes slower; only the first allocation must succeed. Do not
 * add or remove entries while iterating over the table. */
#ifndef BELAY_CORE_KEY_TABLE_H
#define BELAY_CORE_KEY_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belay/loop.h"

typedef struct belay__entry belay__entry_t;

struct belay__entry {
  belay__entry_t *next; /* Next entry in the same bucket */
  uint64_t hash;
};

/* {0} is an empty table. */
typedef struct belay__table {
  belay__entry_t **buckets;
  size_t size, count; /* Number of buckets, a power of two or 0; number of entries */
  bool seeded;
  uint64_t seed[2];
} belay__table_t;

/* true if the entry has this key. */
typedef bool (*belay__equal_fn)(const belay__entry_t *entry, const void *key, size_t len);

/* Return the hash of a key in this table. The first call makes the table's seed. */
uint64_t belay__table_hash(belay_t *belay, belay__table_t *table, const void *key, size_t len);

/* Return the entry of a key with this hash; NULL if there is none. equal: NULL accepts any entry
 * with this hash. */
belay__entry_t *belay__table_find(const belay__table_t *table, uint64_t hash, belay__equal_fn equal,
                                  const void *key, size_t len);

/* Add an entry whose key is not in the table. Returns 0 or BELAY_ENOMEM. */
int belay__table_add(belay_t *belay, belay__table_t *table, belay__entry_t *entry, uint64_t hash);

/* Remove an entry that is in the table. */
void belay__table_remove(belay__table_t *table, belay__entry_t *entry);

/* Free the buckets. The entries belong to their owners. */
void belay__table_free(belay_t *belay, belay__table_t *table);

/* A table entry with a copy of its key. A struct that is found by its key begins with a
 * belay__keyed_t. The copy of the key is behind the struct, in the same allocation. */
typedef struct belay__keyed {
  belay__entry_t entry; /* First */
  const char *key;
  uint32_t key_len, size; /* Bytes of the key; bytes of the struct in front of its copy */
} belay__keyed_t;

/* Return the struct with this key; NULL if there is none. hash: from belay__table_hash(). */
void *belay__keyed_find(const belay__table_t *table, uint64_t hash, const char *key, size_t len);

/* Create a struct of `size` bytes, all 0 behind the keyed entry, and add it to the table. The
 * table must not have the key yet. NULL if memory is out. */
void *belay__keyed_new(belay_t *belay, belay__table_t *table, uint64_t hash, size_t size,
                       const char *key, size_t len);

/* Free the struct, which must not be in a table any more. */
void belay__keyed_free(belay_t *belay, belay__keyed_t *keyed);

#endif /* BELAY_CORE_KEY_TABLE_H */
