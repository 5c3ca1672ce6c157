#include "data/bloom/hash.h"

#include <string.h>
#include <xxhash.h>

_Static_assert(XXH_VERSION_NUMBER >= 800, "XXH3 is what it is since 0.8.0");

belay__bloom_hash_t belay__bloom_hash(const belay__bloom_hasher_t *hasher, const void *item,
                                      size_t len) {
  if (len == 0)
    item = ""; /* memcpy() and XXH3 do not accept NULL */
  if (hasher->keyed)
    return belay__siphash128(hasher->key, item, len);
  XXH128_hash_t hash = XXH3_128bits_withSeed(item, len, hasher->seed);
  return (belay__bloom_hash_t){.h1 = hash.low64, .h2 = hash.high64};
}

/* Hash a fixed text under the key. The hash of one text reveals nothing about the hash of
 * another. */
uint64_t belay__bloom_fingerprint(const belay__bloom_hasher_t *hasher) {
  static const char text[] = "belay: the fingerprint of a Bloom filter's key";
  if (!hasher->keyed)
    return 0;
  belay__hash128_t hash = belay__siphash128(hasher->key, text, sizeof text - 1);
  return hash.h1 ^ hash.h2;
}

uint32_t belay__bloom_segment(belay__bloom_hash_t hash, const belay__bloom_shape_t *shape) {
  return (uint32_t)((hash.h1 >> 32) * shape->segments >> 32);
}

void belay__bloom_positions(belay__bloom_hash_t hash, const belay__bloom_shape_t *shape,
                            uint32_t out[BELAY__BLOOM_K_MAX]) {
  belay__bloom_walk_t walk = {.g = hash.h1, .step = hash.h2};
  for (uint32_t i = 0; i < shape->hashes; i++)
    out[i] = belay__bloom_walk(&walk, i, shape);
}
