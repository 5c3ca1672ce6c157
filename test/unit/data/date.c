/* Dates: each day of eight centuries has the one that counting gives it. */
#include <stdbool.h>

#include "data/active/date.h"
#include "support/base/test.h"

static bool is_leap(int year) {
  return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int length(int year, int month) {
  static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && is_leap(year) ? 29 : lengths[month - 1];
}

TEST(days_are_counted) {
  int64_t days = 0;
  for (int year = 1970; year < 2400; year++)
    for (int month = 1; month <= 12; month++)
      for (int day = 1; day <= length(year, month); day++, days++) {
        int date = year * 10000 + month * 100 + day;
        assert_int_equal(belay__date_of(days), date);
      }
  days = -1;
  for (int year = 1969; year >= 1600; year--)
    for (int month = 12; month >= 1; month--)
      for (int day = length(year, month); day >= 1; day--, days--) {
        int date = year * 10000 + month * 100 + day;
        assert_int_equal(belay__date_of(days), date);
      }
}

TEST(known_days) {
  static const struct {
    int64_t days;
    int32_t date;
  } rows[] = {{0, 19700101},     {-1, 19691231},   {11016, 20000229},   {11017, 20000301},
              {20778, 20261121}, {-719162, 10101}, {2932896, 99991231}, {2932531, 99981231},
              {47540, 21000228}, {47541, 21000301}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    assert_int_equal(belay__date_of(rows[i].days), rows[i].date);
}

TEST(rounding_is_down) {
  assert_int_equal(belay__date_floor(7, 7), 1);
  assert_int_equal(belay__date_floor(6, 7), 0);
  assert_int_equal(belay__date_floor(0, 7), 0);
  assert_int_equal(belay__date_floor(-1, 7), -1);
  assert_int_equal(belay__date_floor(-7, 7), -1);
  assert_int_equal(belay__date_floor(-8, 7), -2);
}
