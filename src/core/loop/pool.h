/* A pool of unused blocks of one size, for objects that are allocated and freed all the time. */
#ifndef BELAY_CORE_LOOP_POOL_H
#define BELAY_CORE_LOOP_POOL_H

#include <stddef.h>

#include "belay/loop.h"

/* {0} is an empty pool. */
typedef struct belay__pool {
  void *first; /* First unused block; each block begins with the address of the next one */
  size_t len;
  size_t size; /* Size of each block, in bytes */
} belay__pool_t;

/* Take a block, not initialized; NULL if memory is out. The size is the same in all calls, and
 * at least that of a pointer. */
void *belay__pool_take(belay_t *belay, belay__pool_t *pool, size_t size);

/* Give a block back. A pool keeps at most 2048 blocks. */
void belay__pool_give(belay_t *belay, belay__pool_t *pool, void *block, size_t size);

/* Free the blocks in the pool. */
void belay__pool_free(belay_t *belay, belay__pool_t *pool);

#endif /* BELAY_CORE_LOOP_POOL_H */
