/* How large a Bloom filter is. Pure.
 *
 * An item sets k of m bits, at random. When n items have, a bit is set with probability 1 - e^(-kn/m), and all k of
 * another item are with the k-th power of that, which is to be p at most: k in {floor, ceil} of -log2 p and
 * m = ceil(-k n / ln(1 - p^(1/k))), whichever m is smaller.
 *
 * That is the power of a mean; what counts is the mean of a power, which is a little more, since the number of bits that
 * are set varies, and more so where items are spread over segments by their hashes, and some get more than
 * others. belay__bloom_shape_rate() knows both, and m grows until it is right: by nothing that can be noticed where there
 * are many bits. Of fewer than 16 items it does not know enough: for these there is room for 16. */
#ifndef BELAY_DATA_BLOOM_SHAPE_H
#define BELAY_DATA_BLOOM_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#define BELAY__BLOOM_K_MAX 64           /* of a layer of whatever kind */
#define BELAY__BLOOM_RATE_MIN 1e-18     /* of a layer */
#define BELAY__BLOOM_SEGMENTS_MAX 4096u /* of a layer */
#define BELAY__BLOOM_SEGMENT_BITS_MAX (UINT32_C(1) << 25)
#define BELAY__BLOOM_HASHES_DEFAULT 14

/* What decides, with the hash, where the bits of an item are. All segments are of one size. */
typedef struct belay__bloom_shape {
  uint32_t hashes;
  uint32_t segments;
  uint32_t segment_bits;
} belay__bloom_shape_t;

/* One that has at least so many bits. False: out of range. */
bool belay__bloom_shape_of_bits(uint64_t bits, uint32_t hashes, belay__bloom_shape_t *out);

/* One that meets the rate when n items have been added. False: out of range, or it would take too many bits. */
bool belay__bloom_shape_of_capacity(uint64_t n, double rate, belay__bloom_shape_t *out);

static inline uint64_t belay__bloom_shape_bits(const belay__bloom_shape_t *shape) {
  return (uint64_t)shape->segments * shape->segment_bits;
}

/* The probability that an item that was not added is found when n have been. */
double belay__bloom_shape_rate(const belay__bloom_shape_t *shape, uint64_t n);

/* How many items have been added to a segment, about, if so many bits are set. */
double belay__bloom_shape_items(const belay__bloom_shape_t *shape, uint64_t bits_set);

#endif /* BELAY_DATA_BLOOM_SHAPE_H */
