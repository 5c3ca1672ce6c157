/* A belay_t without servers, whose memory fails on demand, and repeatable random numbers. */
#ifndef TEST_SUPPORT_BASE_SMALL_H
#define TEST_SUPPORT_BASE_SMALL_H

#include <belay.h>
#include <stdlib.h>
#include <string.h>

#include "core/loop/loop.h"
#include "support/base/random.h"
#include "support/base/test.h"

typedef struct world {
  belay_t belay;
  size_t allocations, fail_at; /* the one that fails; 0: none */
  bool fail_on;                /* and all after it */
  uint64_t seed;
} world_t;

static inline void *small_alloc(void *ctx, size_t size) {
  world_t *world = ctx;
  size_t n = ++world->allocations;
  if (world->fail_at > 0 && (n == world->fail_at || (world->fail_on && n > world->fail_at)))
    return NULL;
  return malloc(size);
}

static inline void small_free(void *ctx, void *ptr) {
  (void)ctx;
  free(ptr);
}

static inline uint64_t draw(world_t *world) {
  return next_random(&world->seed);
}

static inline size_t below(world_t *world, size_t limit) {
  return (size_t)(draw(world) % limit);
}

static inline int small_random(belay_t *belay, void *buffer, size_t len) {
  unsigned char *bytes = buffer;
  for (size_t i = 0; i < len; i++)
    bytes[i] = (unsigned char)draw(BELAY__CONTAINER(belay, world_t, belay));
  return 0;
}

static inline world_t *world_open(void) {
  static const belay__host_ops_t host = {.random = small_random};
  world_t *world = calloc(1, sizeof *world);
  assert_non_null(world);
  belay_options_t options;
  belay_options_init(&options);
  options.allocator = (belay_allocator_t){small_alloc, small_free, world};
  belay__init(&world->belay, &host, &options);
  return world;
}

/* Checks that all memory was given back. */
static inline void world_close(world_t *world) {
  assert_int_equal(world->belay.stats.memory_bytes, 0);
  free(world);
}

#define WORLD_TEST(name) TEST_IN(name, world, world_open())

#endif /* TEST_SUPPORT_BASE_SMALL_H */
