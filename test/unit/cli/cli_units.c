/* Durations, rates and numbers of a command line. */
#include <stdint.h>
#include <string.h>

#include "cli/shell/units.h"
#include "support/base/test.h"

#define SAME INT64_C(-77) /* a value that must not change */

static const struct {
  const char *text;
  int64_t ms; /* SAME: invalid */
} durations[] = {
    {"0", 0},
    {"0s", 0},
    {"250ms", 250},
    {"90s", 90000},
    {"1m30s", 90000},
    {"1.5h", 5400000},
    {"1h30m", 5400000},
    {"24h", 86400000},
    {"7d", 604800000},
    {"2w", 1209600000},
    {"1w1d1h1m1s1ms", 694861001},
    {"1m1ms", 60001},
    {"0.001s", 1},
    {"0.25m", 15000},
    {"1.500s", 1500},
    {"1.50000000s", 1500},
    {"0.0000001w", SAME}, /* 60.48 ms */
    {"9223372036854775807ms", INT64_MAX},
    {"9223372036854775808ms", SAME},
    {"9223372036854775807s", SAME},
    {"9223372036854775s808ms", SAME},
    {"15250284453w", SAME},
    {"99999999999999999999999999999999s", SAME},
    {"", SAME},
    {"1", SAME},
    {"30", SAME},
    {"s", SAME},
    {"-1s", SAME},
    {"+1s", SAME},
    {" 1s", SAME},
    {"1s ", SAME},
    {"1 s", SAME},
    {"1S", SAME},
    {"1y", SAME},
    {"1ss", SAME},
    {"1s1s", SAME},
    {"1s1m", SAME},
    {"1m30", SAME},
    {"1m30s5", SAME},
    {".5s", SAME},
    {"1.s", SAME},
    {"1.5.5s", SAME},
    {"0.0005s", SAME},
    {"0.5ms", SAME},
    {"0.00000000000000000000001s", SAME},
    {"1e3s", SAME},
    {"0x10s", SAME},
    {"00", SAME},
    {"forever", SAME},
    {"5min", 300000},
    {"1hour30minutes", 5400000},
    {"2days", 172800000},
    {"1week", 604800000},
    {"1second", 1000},
    {"90secs", 90000},
    {"1min1m", SAME},
    {"1s1minute", SAME},
    {"1minut", SAME},
};

TEST(durations_are_parsed) {
  for (size_t i = 0; i < sizeof durations / sizeof *durations; i++) {
    int64_t ms = SAME;
    if (units_duration(durations[i].text, &ms) != (durations[i].ms != SAME) ||
        ms != durations[i].ms)
      fail_msg("%s: %lld", durations[i].text, (long long)ms);
  }
}

TEST(formatted_durations_parse_to_the_same_value) {
  static const int64_t all[] = {0, 1, 999, 1000, 60001, 3599999, 86400000, 90061001, INT64_MAX};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    char shown[UNITS_DURATION_MAX];
    int64_t ms = SAME;
    assert_true(units_duration(units_show_exactly(shown, all[i]), &ms));
    assert_int_equal(ms, all[i]);
  }
  char shown[UNITS_DURATION_MAX];
  assert_string_equal(units_show_exactly(shown, 90500), "1m30s500ms");
  static const struct {
    int64_t ms;
    const char *text;
  } brief[] = {{90500, "1m30s"},    {1500, "1s500ms"},  {60001, "1m"},    {999, "999ms"},
               {3599999, "59m59s"}, {90061001, "1d1h"}, {86400000, "1d"}, {86460000, "1d"}};
  for (size_t i = 0; i < sizeof brief / sizeof *brief; i++)
    assert_string_equal(units_show_duration(shown, brief[i].ms), brief[i].text);
  assert_string_equal(units_show_duration(shown, 0), "0s");
}

TEST(rates) {
  static const struct {
    const char *text;
    rate_t rate; /* {0}: invalid */
  } all[] = {
      {"10/s", {10, 1000}},
      {"100/min", {100, 60000}},
      {"100/m", {100, 60000}},
      {"5/h", {5, 3600000}},
      {"1000/d", {1000, 86400000}},
      {"1/second", {1, 1000}},
      {"1/day", {1, 86400000}},
      {"3/10s", {3, 10000}},
      {"3/1m30s", {3, 90000}},
      {"9223372036854775807/s", {INT64_MAX, 1000}},
      {"9223372036854775808/s", {0}},
      {"0/s", {0}},
      {"-1/s", {0}},
      {"1/0s", {0}},
      {"1/0", {0}},
      {"1/", {0}},
      {"/s", {0}},
      {"10", {0}},
      {"10/x", {0}},
      {"10/s/s", {0}},
      {"1.5/s", {0}},
      {"10 /s", {0}},
      {"100000000000000000000000000000000000/s", {0}},
      {"", {0}},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    rate_t rate = {0};
    bool is = units_rate(all[i].text, &rate);
    if (is != (all[i].rate.count != 0) || memcmp(&rate, &all[i].rate, sizeof rate) != 0)
      fail_msg("%s: %lld per %lld", all[i].text, (long long)rate.count, (long long)rate.per_ms);
  }
}

TEST(numbers) {
  static const char *const invalid[] = {"",
                                        "-",
                                        "+",
                                        "x",
                                        "1x",
                                        " 1",
                                        "1 ",
                                        "0x10",
                                        "1.0",
                                        "--1",
                                        "9223372036854775808",
                                        "-9223372036854775809"};
  int64_t number = SAME;
  for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++)
    assert_false(units_number(invalid[i], &number));
  assert_int_equal(number, SAME);
  assert_true(units_number("-9223372036854775808", &number));
  assert_true(number == INT64_MIN);
  assert_true(units_number("+7", &number));
  assert_int_equal(number, 7);
}
