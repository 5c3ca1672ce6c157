/* A table entry with a copy of its key. A struct that is found by its key begins with one; the
 * copy is behind the struct, in the same allocation. */
#ifndef BELAY_CORE_KEY_KEYED_H
#define BELAY_CORE_KEY_KEYED_H

#include "core/key/table.h"

typedef struct belay__keyed {
  belay__entry_t entry; /* First */
  const char *key;
  uint32_t key_len, size; /* Bytes of the key; bytes of the struct before it */
} belay__keyed_t;

/* The struct with this key; NULL if there is none. hash: that of belay__table_hash(). */
void *belay__keyed_find(const belay__table_t *table, uint64_t hash, const char *key, size_t len);

/* Create a struct of `size` bytes, all 0 behind the keyed entry, and add it to the table. The
 * table must not have the key yet. NULL if memory is out. */
void *belay__keyed_new(belay_t *belay, belay__table_t *table, uint64_t hash, size_t size,
                       const char *key, size_t len);

/* Free the struct, which must not be in a table any more. */
void belay__keyed_free(belay_t *belay, belay__keyed_t *keyed);

#endif /* BELAY_CORE_KEY_KEYED_H */
