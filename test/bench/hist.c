/* The histogram of durations, against the durations themselves. */
#include <stdlib.h>

#include "load/driver/hist.h"
#include "support/base/random.h"
#include "support/base/test.h"

enum { VALUES = 100000 };
#define ERROR 0.016

static hist_t hist, other;
static uint64_t values[VALUES];

static void empty(void) {
  hist = other = (hist_t){0};
}

/* As many of each size. */
static uint64_t next_value(uint64_t *seed) {
  uint64_t z = next_random(seed);
  return z >> (24 + z % 40);
}

static int compare(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void assert_near(uint64_t value, uint64_t expected) {
  double apart = value > expected ? (double)(value - expected) : (double)(expected - value);
  assert_true(apart <= ERROR * (double)expected);
}

TEST(empty_histogram) {
  empty();
  assert_int_equal(hist_at(&hist, 0.5), 0);
  assert_int_equal(hist_at(&hist, 1), 0);
}

TEST(value_of_each_size) {
  empty();
  for (unsigned bit = 0; bit < 42; bit++)
    for (unsigned part = 0; part < 4; part++) {
      uint64_t value = (UINT64_C(1) << bit) + ((uint64_t)part << bit >> 2);
      hist = (hist_t){0};
      hist_add(&hist, value);
      hist_add(&hist, value * 2); /* or the largest would be known */
      assert_near(hist_at(&hist, 0.5), value);
      assert_int_equal(hist_at(&hist, 1) <= value * 2, 1);
    }
}

TEST(percentiles) {
  empty();
  static const double all[] = {0.001, 0.01, 0.1, 0.25, 0.5, 0.9, 0.99, 0.999};
  uint64_t seed = 1;
  for (unsigned i = 0; i < VALUES; i++) {
    values[i] = next_value(&seed);
    hist_add(i % 3 == 0 ? &other : &hist, values[i]);
  }
  hist_merge(&hist, &other);
  assert_int_equal(hist.total, VALUES);
  qsort(values, VALUES, sizeof *values, compare);
  for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
    assert_near(hist_at(&hist, all[i]), values[(unsigned)(all[i] * VALUES) - 1]);
  assert_int_equal(hist.largest, values[VALUES - 1]);
  assert_near(hist_at(&hist, 1), values[VALUES - 1]);
}

TEST(value_beyond_last_bucket) {
  empty();
  hist_add(&hist, 5);
  hist_add(&hist, UINT64_MAX);
  assert_int_equal(hist.total, 2);
  assert_int_equal(hist.largest, UINT64_MAX);
  assert_int_equal(hist_at(&hist, 0.5), 5);
  assert_true(hist_at(&hist, 1) > UINT64_C(4000000000000));
}
