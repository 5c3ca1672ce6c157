/* The median. */
#include "samples.h"
#include "support/base/test.h"

TEST(medians) {
  double none[1] = {0}, one[] = {7}, two[] = {3, 1}, three[] = {9, 1, 5}, four[] = {8, 1, 4, 2};
  assert_true(samples_median(none, 0) == 0);
  assert_true(samples_median(one, 1) == 7);
  assert_true(samples_median(two, 2) == 2);
  assert_true(samples_median(three, 3) == 5);
  assert_true(samples_median(four, 4) == 3);
}

TEST(percentiles) {
  double four[] = {8, 1, 4, 2};
  uint32_t whole[] = {8, 1, 4, 2};
  assert_true(samples_at(four, 4, 0) == 1 && samples_at(four, 4, 1) == 8);
  assert_int_equal(samples_at_u32(whole, 4, 0.99), 8);
}
