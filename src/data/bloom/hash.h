/* The bit positions of an item. Pure functions. Their results must never change, and must be equal
 * on all machines: stored filters depend on them.
 *
 * An item is hashed to two 64-bit numbers: the low and high half of XXH3's 128 bits under the
 * seed; or, under a key, the first and second 8 bytes of SipHash-2-4 with 128 bits of output,
 * little-endian.
 *
 *    segment     = floor(high 32 bits of h1 * segments / 2^32)
 *    g(i)        = h1 + i * h2 + (i^3 - i) / 6 mod 2^64, for i = 0 ... k - 1
 *    position(i) = floor((mix(g(i)) >> 25) * bits / 2^39), within the segment
 *
 * mix is a bijection, the finalizer of MurmurHash3. g(i) mod bits would allow at most bits^2
 * different sets of positions. Then too many items would share all positions for low error
 * rates: of 1,000 items in 29,000 bits, more than one in a million. With mix, the positions of two
 * items are independent, unless the items share all 128 bits of h1 and h2. */
#ifndef BELAY_DATA_BLOOM_HASH_H
#define BELAY_DATA_BLOOM_HASH_H

#include <stdbool.h>
#include <stddef.h>

#include "core/key/siphash.h"
#include "data/bloom/shape.h"

typedef belay__hash128_t belay__bloom_hash_t;

/* How items are hashed. */
typedef struct belay__bloom_hasher {
  bool keyed;
  uint64_t seed;                       /* Used if not keyed */
  uint8_t key[BELAY__SIPHASH_KEY_LEN]; /* Used if keyed */
} belay__bloom_hasher_t;

/* Return the hash of an item. The item may be NULL if len is 0. */
belay__bloom_hash_t belay__bloom_hash(const belay__bloom_hasher_t *hasher, const void *item,
                                      size_t len);

/* Return a number that differs between keys and does not reveal the key; 0: no key. */
uint64_t belay__bloom_fingerprint(const belay__bloom_hasher_t *hasher);

uint32_t belay__bloom_segment(belay__bloom_hash_t hash, const belay__bloom_shape_t *shape);

/* Compute the positions of an item one by one, for i = 0, 1, 2 ... A walk begins with g = h1 and
 * step = h2. The differences of (i^3 - i) / 6 are i (i + 1) / 2. The differences of these are 1, 2,
 * 3 ..., so additions suffice. */
typedef struct belay__bloom_walk {
  uint64_t g, step;
} belay__bloom_walk_t;

static inline uint32_t belay__bloom_walk(belay__bloom_walk_t *walk, uint32_t i,
                                         const belay__bloom_shape_t *shape) {
  uint64_t x = walk->g;
  walk->g += walk->step;
  walk->step += i + 1;
  x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
  x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
  return (uint32_t)(((x ^ x >> 33) >> 25) * shape->segment_bits >> 39);
}

/* Compute shape->hashes positions, each less than shape->segment_bits; some may be equal. */
void belay__bloom_positions(belay__bloom_hash_t hash, const belay__bloom_shape_t *shape,
                            uint32_t out[BELAY__BLOOM_K_MAX]);

/* Read or set a bit of a segment. The position is as the server counts bits: bit 0 is the highest
 * bit of the first byte. */
static inline bool belay__bloom_bit(const uint8_t *bits, uint32_t position) {
  return (bits[position >> 3] & 0x80u >> (position & 7)) != 0;
}

static inline void belay__bloom_bit_set(uint8_t *bits, uint32_t position) {
  bits[position >> 3] |= (uint8_t)(0x80u >> (position & 7));
}

#endif /* BELAY_DATA_BLOOM_HASH_H */
