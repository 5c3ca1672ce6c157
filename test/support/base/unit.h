/* cmocka with the headers that it needs before its own. */
#ifndef TEST_SUPPORT_BASE_UNIT_H
#define TEST_SUPPORT_BASE_UNIT_H

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

/* Compare two errors by their names. */
#define assert_error(actual, expected)                                                             \
  assert_string_equal(belay_err_name(actual), belay_err_name(expected))

/* Steps that return 0, one after the other; at most four: assert_ok(try_lock(a), release(a)). */
#define assert_ok(...) OK_OF_(__VA_ARGS__, OK_4_, OK_3_, OK_2_, OK_1_, )(__VA_ARGS__)
#define OK_OF_(first, second, third, fourth, macro, ...) macro
#define OK_1_(step)                                                                                \
  do {                                                                                             \
    const int error_ = (step);                                                                     \
    if (error_ != 0)                                                                               \
      fail_msg("%s: %s", #step, belay_err_name(error_));                                           \
  } while (0)
#define OK_2_(step, ...)                                                                           \
  do {                                                                                             \
    OK_1_(step);                                                                                   \
    OK_1_(__VA_ARGS__);                                                                            \
  } while (0)
#define OK_3_(step, ...)                                                                           \
  do {                                                                                             \
    OK_1_(step);                                                                                   \
    OK_2_(__VA_ARGS__);                                                                            \
  } while (0)
#define OK_4_(step, ...)                                                                           \
  do {                                                                                             \
    OK_1_(step);                                                                                   \
    OK_3_(__VA_ARGS__);                                                                            \
  } while (0)

/* An operation starts, and ends with this status: assert_ends(begin(&x), end_of(&x), 0). */
#define assert_ends(started, end, status)                                                          \
  do {                                                                                             \
    assert_error(started, 0);                                                                      \
    assert_error(end, status);                                                                     \
  } while (0)

/* The range assertion of cmocka does not support negative numbers. */
#define assert_between(value, min, max)                                                            \
  do {                                                                                             \
    const long long value_ = (value), min_ = (min), max_ = (max);                                  \
    if (value_ < min_ || value_ > max_)                                                            \
      fail_msg("%s: %lld is not from %lld to %lld", #value, value_, min_, max_);                   \
  } while (0)

#endif /* TEST_SUPPORT_BASE_UNIT_H */
