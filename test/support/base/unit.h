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

/* Steps that return this status, one after the other; at most four:
 * assert_each(BELAY_EHELD, try_lock(a), try_lock(b)). */
#define assert_each(status, ...)                                                                   \
  EACH_OF_(__VA_ARGS__, EACH_4_, EACH_3_, EACH_2_, EACH_1_, )(status, __VA_ARGS__)
#define assert_ok(...) assert_each(0, __VA_ARGS__)
#define EACH_OF_(first, second, third, fourth, macro, ...) macro
#define EACH_1_(status, step)                                                                      \
  do {                                                                                             \
    const int error_ = (step);                                                                     \
    if (error_ != (status))                                                                        \
      fail_msg("%s: %s, not %s", #step, belay_err_name(error_), belay_err_name(status));           \
  } while (0)
#define EACH_2_(status, step, ...)                                                                 \
  do {                                                                                             \
    EACH_1_(status, step);                                                                         \
    EACH_1_(status, __VA_ARGS__);                                                                  \
  } while (0)
#define EACH_3_(status, step, ...)                                                                 \
  do {                                                                                             \
    EACH_1_(status, step);                                                                         \
    EACH_2_(status, __VA_ARGS__);                                                                  \
  } while (0)
#define EACH_4_(status, step, ...)                                                                 \
  do {                                                                                             \
    EACH_1_(status, step);                                                                         \
    EACH_3_(status, __VA_ARGS__);                                                                  \
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
