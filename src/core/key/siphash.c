#include "core/key/siphash.h"

#include "core/key/bytes.h"

static uint64_t rotate(uint64_t x, unsigned by) {
  return x << by | x >> (64 - by);
}

static inline void mix(uint64_t v[4], unsigned rounds) {
  for (unsigned i = 0; i < rounds; i++) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
  }
}

static inline void add_word(uint64_t v[4], uint64_t word, unsigned rounds) {
  v[3] ^= word;
  mix(v, rounds);
  v[0] ^= word;
}

/* Initialize the state with a key, and add all data. */
static inline void add_all(uint64_t v[4], uint64_t k0, uint64_t k1, const uint8_t *bytes,
                           size_t len, unsigned rounds) {
  v[0] ^= k0 ^ UINT64_C(0x736f6d6570736575);
  v[1] ^= k1 ^ UINT64_C(0x646f72616e646f6d);
  v[2] ^= k0 ^ UINT64_C(0x6c7967656e657261);
  v[3] ^= k1 ^ UINT64_C(0x7465646279746573);
  size_t left = len;
  for (; left >= 8; left -= 8, bytes += 8)
    add_word(v, belay__get_le(bytes, 8), rounds);
  add_word(v, (uint64_t)(len & 0xff) << 56 | belay__get_le(bytes, left), rounds);
}

static inline uint64_t output(uint64_t v[4], unsigned rounds) {
  mix(v, rounds);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t belay__siphash64(const uint64_t key[2], const void *data, size_t len) {
  uint64_t v[4] = {0};
  add_all(v, key[0], key[1], data, len, 1);
  v[2] ^= 0xff;
  return output(v, 3);
}

belay__hash128_t belay__siphash128(const uint8_t key[BELAY__SIPHASH_KEY_LEN], const void *data,
                                   size_t len) {
  uint64_t v[4] = {0, 0xee};
  add_all(v, belay__get_le(key, 8), belay__get_le(key + 8, 8), data, len, 2);
  v[2] ^= 0xee;
  belay__hash128_t hash = {.h1 = output(v, 4)};
  v[1] ^= 0xdd;
  hash.h2 = output(v, 4);
  return hash;
}
