#include "data/bloom/shape.h"

#include <math.h>

bool belay__bloom_shape_of_bits(uint64_t bits, uint32_t hashes, belay__bloom_shape_t *out) {
  const uint64_t max = BELAY__BLOOM_SEGMENT_BITS_MAX;
  if (bits < 1 || bits > max * BELAY__BLOOM_SEGMENTS_MAX || hashes < 1 ||
      hashes > BELAY__BLOOM_K_MAX)
    return false;
  uint64_t segments = (bits + max - 1) / max;
  *out = (belay__bloom_shape_t){.hashes = hashes,
                                .segments = (uint32_t)segments,
                                .segment_bits = (uint32_t)((bits + segments - 1) / segments)};
  return true;
}

/* Compute the rate as the mean of fill^k, to the second order. fill is the part of a segment's bits
 * that is set; its mean and variance result from drawing the segment's items, and then their bits.
 * Exact for one bit of one item. */
double belay__bloom_shape_rate(const belay__bloom_shape_t *shape, uint64_t n) {
  double m = shape->segment_bits, k = shape->hashes, s = shape->segments, items = (double)n / s;
  if (m <= 1)
    return n > 0;
  /* q: probability that a given bit is clear; r: probability that two given bits are both clear. An
   * item leaves them clear if it is in another segment, or if its k bits are elsewhere. */
  double miss1 = k * log1p(-1 / m), miss2 = k * (m > 2 ? log1p(-2 / m) : -INFINITY);
  double q = exp(n == 0 ? 0 : s > 1 ? items * s * log1p(expm1(miss1) / s) : items * miss1);
  double r = exp(n == 0 ? 0 : s > 1 ? items * s * log1p(expm1(miss2) / s) : items * miss2);
  double fill = 1 - q, variance = q / m + r * (1 - 1 / m) - q * q;
  if (fill <= 0)
    return 0;
  if (variance < 0)
    variance = 0; /* by rounding */
  double rate = pow(fill, k) * (1 + k * (k - 1) / 2 * variance / (fill * fill));
  return rate < 1 ? rate : 1;
}

#define ITEMS_LEAST 16 /* With fewer items the rate is up to twice the estimate */

static double bits_for(double n, double rate, double k) {
  return ceil(-k * n / log1p(-exp(log(rate) / k)));
}

bool belay__bloom_shape_of_capacity(uint64_t n, double rate, belay__bloom_shape_t *out) {
  if (n < 1 || n > UINT64_C(1) << 40 || !(rate >= BELAY__BLOOM_RATE_MIN && rate <= 0.5))
    return false;
  if (n < ITEMS_LEAST)
    n = ITEMS_LEAST;
  double exact = -log2(rate), low = floor(exact), high = ceil(exact);
  double bits_low = bits_for((double)n, rate, low), bits_high = bits_for((double)n, rate, high);
  double k = bits_low <= bits_high ? low : high, bits = fmin(bits_low, bits_high);
  for (;;) {
    if (bits > 0x1p60 || !belay__bloom_shape_of_bits((uint64_t)bits, (uint32_t)k, out))
      return false;
    if (belay__bloom_shape_rate(out, n) <= rate)
      return true;
    bits = ceil(fmax(bits + 1, bits * (1 + 0x1p-14)));
  }
}

double belay__bloom_shape_items(const belay__bloom_shape_t *shape, uint64_t bits_set) {
  double m = shape->segment_bits, set = (double)bits_set;
  if (set > m - 0.5)
    set = m - 0.5; /* all bits are set: a lower limit of the number of items */
  if (m <= 1)
    return bits_set > 0;
  return log1p(-set / m) / (shape->hashes * log1p(-1 / m));
}
