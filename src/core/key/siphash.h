/* SipHash: keyed hashes. Without the key, one hash reveals nothing about others. (Aumasson,
 * Bernstein: "SipHash: a fast short-input PRF", 2012.) */
#ifndef BELAY_CORE_KEY_SIPHASH_H
#define BELAY_CORE_KEY_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#define BELAY__SIPHASH_KEY_LEN 16

typedef struct belay__hash128 {
  uint64_t h1, h2; /* The first and the second 8 bytes, little-endian */
} belay__hash128_t;

/* Hash data with SipHash-1-3 to 64 bits, under a key of two words. */
uint64_t belay__siphash64(const uint64_t key[2], const void *data, size_t len);

/* Hash data with SipHash-2-4 to 128 bits. */
belay__hash128_t belay__siphash128(const uint8_t key[BELAY__SIPHASH_KEY_LEN], const void *data,
                                   size_t len);

#endif /* BELAY_CORE_KEY_SIPHASH_H */
