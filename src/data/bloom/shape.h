/* The size of a Bloom filter. Pure functions.
 *
 * An item sets k of m bits, at random. After n items, a bit is set with probability 1 -
 * e^(-kn/m). A new item finds all k bits set with the k-th power of this probability. The power
 * must be at most the rate p. So k is -log2 p, rounded down or up, and m is ceil(-k n / ln(1 -
 * p^(1/k))). The k with the smaller m is used.
 *
 * This formula is the power of a mean. The real rate is the mean of a power, which is a little
 * larger, because the number of set bits varies, and because hashes spread items unevenly over
 * segments. belay__bloom_shape_rate() computes both effects, and m grows until the result is at
 * most p. The difference is negligible for many bits. The estimate is poor below 16 items, so a
 * shape has room for at least 16. */
#ifndef BELAY_DATA_BLOOM_SHAPE_H
#define BELAY_DATA_BLOOM_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

/* Limits of a layer: bits per item, rate of false positives, segments, bits of a segment */
#define BELAY__BLOOM_K_MAX 64
#define BELAY__BLOOM_RATE_MIN 1e-18
#define BELAY__BLOOM_SEGMENTS_MAX 4096u
#define BELAY__BLOOM_SEGMENT_BITS_MAX (UINT32_C(1) << 25)
#define BELAY__BLOOM_HASHES_DEFAULT 14

/* The shape of a layer. The shape and the hash of an item determine the bit positions of the item.
 * All segments have the same size. */
typedef struct belay__bloom_shape {
  uint32_t hashes;
  uint32_t segments;
  uint32_t segment_bits;
} belay__bloom_shape_t;

/* Compute the shape with at least `bits` bits. Returns false if an argument is out of range. */
bool belay__bloom_shape_of_bits(uint64_t bits, uint32_t hashes, belay__bloom_shape_t *out);

/* Compute a shape that meets the rate with n items. Returns false if an argument is out of range,
 * or if the shape needs too many bits. */
bool belay__bloom_shape_of_capacity(uint64_t n, double rate, belay__bloom_shape_t *out);

static inline uint64_t belay__bloom_shape_bits(const belay__bloom_shape_t *shape) {
  return (uint64_t)shape->segments * shape->segment_bits;
}

/* The rate of false positives after n different items. */
double belay__bloom_shape_rate(const belay__bloom_shape_t *shape, uint64_t n);

/* Estimate the number of added items of a segment from its number of set bits. */
double belay__bloom_shape_items(const belay__bloom_shape_t *shape, uint64_t bits_set);

#endif /* BELAY_DATA_BLOOM_SHAPE_H */
