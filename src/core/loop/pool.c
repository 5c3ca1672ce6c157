#include "core/loop/pool.h"

#include <assert.h>
#include <string.h>

#include "core/loop/loop.h"

#define KEPT_MAX 2048

static void *pop(belay__pool_t *pool) {
  void *block = pool->first;
  memcpy(&pool->first, block, sizeof pool->first);
  pool->len--;
  return block;
}

void *belay__pool_take(belay_t *belay, belay__pool_t *pool, size_t size) {
  return pool->len > 0 ? pop(pool) : belay__alloc(belay, size);
}

void belay__pool_give(belay_t *belay, belay__pool_t *pool, void *block, size_t size) {
  assert(size >= sizeof pool->first && (pool->len == 0 || size == pool->size));
  if (pool->len >= KEPT_MAX) {
    belay__free(belay, block, size);
    return;
  }
  memcpy(block, &pool->first, sizeof pool->first);
  pool->first = block;
  pool->size = size;
  pool->len++;
}

void belay__pool_free(belay_t *belay, belay__pool_t *pool) {
  while (pool->len > 0)
    belay__free(belay, pop(pool), pool->size);
}
