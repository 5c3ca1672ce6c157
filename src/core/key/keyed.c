#include "core/key/keyed.h"

#include <string.h>

#include "core/loop/loop.h"

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
