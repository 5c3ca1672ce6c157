/* Dates: each day of eight centuries has the one that counting gives it, and others are refused. */
#include <stdlib.h>

#include "data/active/date.h"
#include "support/base/unit.h"

static bool is_leap(int year) {
  return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int length(int year, int month) {
  static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && is_leap(year) ? 29 : lengths[month - 1];
}

static void test_days_are_counted(void **state) {
  (void)state;
  int64_t days = 0, back;
  for (int year = 1970; year < 2400; year++)
    for (int month = 1; month <= 12; month++)
      for (int day = 1; day <= length(year, month); day++, days++) {
        int date = year * 10000 + month * 100 + day;
        assert_int_equal(belay__date_of(days), date);
        assert_true(belay__date_days(date, &back) && back == days);
      }
  days = -1;
  for (int year = 1969; year >= 1600; year--)
    for (int month = 12; month >= 1; month--)
      for (int day = length(year, month); day >= 1; day--, days--) {
        int date = year * 10000 + month * 100 + day;
        assert_int_equal(belay__date_of(days), date);
        assert_true(belay__date_days(date, &back) && back == days);
      }
}

static void test_known_days(void **state) {
  (void)state;
  static const struct {
    int64_t days;
    int32_t date;
  } rows[] = {{0, 19700101},     {-1, 19691231},   {11016, 20000229},   {11017, 20000301},
              {20778, 20261121}, {-719162, 10101}, {2932896, 99991231}, {2932531, 99981231},
              {47540, 21000228}, {47541, 21000301}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int64_t days = 0;
    assert_int_equal(belay__date_of(rows[i].days), rows[i].date);
    assert_true(belay__date_days(rows[i].date, &days));
    assert_int_equal(days, rows[i].days);
  }
}

static void test_what_is_no_date(void **state) {
  (void)state;
  static const int64_t dates[] = {0,         -1,        1,         10100,     20260001, 20261301,
                                  20260100,  20260132,  20260229,  20260431,  21000229, 20261199,
                                  100000101, -20260101, INT64_MAX, INT64_MIN, 20240230, 1231};
  int64_t days = 42;
  for (size_t i = 0; i < sizeof dates / sizeof *dates; i++)
    assert_false(belay__date_days(dates[i], &days));
  assert_true(belay__date_days(20240229, &days));
}

static void test_rounding_is_down(void **state) {
  (void)state;
  assert_int_equal(belay__date_floor(7, 7), 1);
  assert_int_equal(belay__date_floor(6, 7), 0);
  assert_int_equal(belay__date_floor(0, 7), 0);
  assert_int_equal(belay__date_floor(-1, 7), -1);
  assert_int_equal(belay__date_floor(-7, 7), -1);
  assert_int_equal(belay__date_floor(-8, 7), -2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_days_are_counted),
      cmocka_unit_test(test_known_days),
      cmocka_unit_test(test_what_is_no_date),
      cmocka_unit_test(test_rounding_is_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
