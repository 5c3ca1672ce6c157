/* A table entry that has a copy of its key. A struct that is found by its key begins with one; the copy stands behind
 * the struct, in the same allocation. */
#ifndef BELAY_CORE_KEY_KEYED_H
#define BELAY_CORE_KEY_KEYED_H

#include "core/key/table.h"

typedef struct belay__keyed {
  belay__entry_t entry; /* first */
  const char *key;
  uint32_t key_len, size; /* bytes of the key; bytes of the struct in front of it */
} belay__keyed_t;

/* The struct of that key; NULL if there is none. hash: the table's, as belay__table_hash() says. */
void *belay__keyed_find(const belay__table_t *table, uint64_t hash, const char *key, size_t len);

/* A new struct of `size` bytes, all 0 behind the keyed entry, in the table; NULL if memory is out. The key must not be in
 * the table yet. */
void *belay__keyed_new(belay_t *belay, belay__table_t *table, uint64_t hash, size_t size,
                       const char *key, size_t len);

/* Gives the memory back; the struct is in no table any more. */
void belay__keyed_free(belay_t *belay, belay__keyed_t *keyed);

#endif /* BELAY_CORE_KEY_KEYED_H */
