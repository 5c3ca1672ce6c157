/* Blocks of one size that are not in use: what is taken and given back all the time costs no allocation. */
#ifndef BELAY_CORE_LOOP_POOL_H
#define BELAY_CORE_LOOP_POOL_H

#include <stddef.h>

#include "belay/loop.h"

/* {0} is an empty one. */
typedef struct belay__pool {
  void *first; /* each begins with the next one */
  size_t len;
  size_t size; /* of each */
} belay__pool_t;

/* A block, not initialized; NULL if memory is out. The size is the same each time, and no less than a pointer's. */
void *belay__pool_take(belay_t *belay, belay__pool_t *pool, size_t size);

/* Gives one back; a pool keeps 1024 at most. */
void belay__pool_give(belay_t *belay, belay__pool_t *pool, void *block, size_t size);

/* Gives back what the pool keeps. */
void belay__pool_free(belay_t *belay, belay__pool_t *pool);

#endif /* BELAY_CORE_LOOP_POOL_H */
