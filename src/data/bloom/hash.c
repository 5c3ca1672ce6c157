#include "data/bloom/hash.h"

#include <string.h>
#include <xxhash.h>

_Static_assert(XXH_VERSION_NUMBER >= 800, "XXH3 is what it is since 0.8.0");

/* ---- SipHash ------------------------------------------------------------------------------------------- */

typedef struct sip {
  uint64_t v0, v1, v2, v3;
} sip_t;

static uint64_t rotate(uint64_t x, unsigned by) {
  return x << by | x >> (64 - by);
}

static uint64_t load(const uint8_t *bytes, size_t len) {
  uint64_t x = 0;
  for (size_t i = 0; i < len; i++)
    x |= (uint64_t)bytes[i] << 8 * i;
  return x;
}

static void sip_rounds(sip_t *s, unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    s->v0 += s->v1;
    s->v1 = rotate(s->v1, 13) ^ s->v0;
    s->v0 = rotate(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotate(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotate(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotate(s->v1, 17) ^ s->v2;
    s->v2 = rotate(s->v2, 32);
  }
}

static void sip_word(sip_t *s, uint64_t word) {
  s->v3 ^= word;
  sip_rounds(s, 2);
  s->v0 ^= word;
}

belay__bloom_hash_t belay__siphash128(const uint8_t key[BELAY__BLOOM_KEY_LEN], const void *item,
                                      size_t len) {
  const uint8_t *bytes = item;
  uint64_t k0 = load(key, 8), k1 = load(key + 8, 8);
  sip_t s = {.v0 = k0 ^ UINT64_C(0x736f6d6570736575),
             .v1 = k1 ^ UINT64_C(0x646f72616e646f6d) ^ 0xee,
             .v2 = k0 ^ UINT64_C(0x6c7967656e657261),
             .v3 = k1 ^ UINT64_C(0x7465646279746573)};
  size_t left = len;
  for (; left >= 8; left -= 8, bytes += 8)
    sip_word(&s, load(bytes, 8));
  sip_word(&s, (uint64_t)(len & 0xff) << 56 | load(bytes, left));
  belay__bloom_hash_t hash;
  s.v2 ^= 0xee;
  sip_rounds(&s, 4);
  hash.h1 = s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
  s.v1 ^= 0xdd;
  sip_rounds(&s, 4);
  hash.h2 = s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
  return hash;
}

/* ---- items --------------------------------------------------------------------------------------------- */

belay__bloom_hash_t belay__bloom_hash(const belay__bloom_hasher_t *hasher, const void *item,
                                      size_t len) {
  if (len == 0)
    item = ""; /* nothing is read of it, and NULL is not for everybody */
  if (hasher->keyed)
    return belay__siphash128(hasher->key, item, len);
  XXH128_hash_t hash = XXH3_128bits_withSeed(item, len, hasher->seed);
  return (belay__bloom_hash_t){.h1 = hash.low64, .h2 = hash.high64};
}

/* What a key makes of a text says nothing of what it makes of another one. */
uint64_t belay__bloom_fingerprint(const belay__bloom_hasher_t *hasher) {
  static const char text[] = "belay: the fingerprint of a Bloom filter's key";
  if (!hasher->keyed)
    return 0;
  belay__bloom_hash_t hash = belay__siphash128(hasher->key, text, sizeof text - 1);
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
