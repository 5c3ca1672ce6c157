/* Scores as servers write them. */
#include "data/ranking/ranking.h"

#include <string.h>

#include "support/base/test.h"

TEST(whole_numbers) {
  static const struct {
    const char *text;
    int64_t score;
  } rows[] = {
      {"0", 0},
      {"-0", 0},
      {"7", 7},
      {"-7", -7},
      {"9007199254740991", BELAY_RANKING_SCORE_MAX},
      {"-9007199254740991", BELAY_RANKING_SCORE_MIN},
      {"9.007199254740991e+15", BELAY_RANKING_SCORE_MAX},
      {"-9.007199254740991e+15", BELAY_RANKING_SCORE_MIN},
      {"1e+15", INT64_C(1000000000000000)},
      {"9e15", INT64_C(9000000000000000)},
      {"1e+8", 100000000},
      {"1.5e+3", 1500},
      {"1.20e1", 12},
      {"12.0", 12},
      {"120e-1", 12},
      {"0e+999", 0},
      {"0.000", 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int64_t score = 1;
    if (!belay__ranking_score(rows[i].text, strlen(rows[i].text), &score))
      fail_msg("%s", rows[i].text);
    assert_int_equal(score, rows[i].score);
  }
}

TEST(everything_else) {
  static const char *const rows[] = {"",
                                     "-",
                                     "+1",
                                     " 1",
                                     "1 ",
                                     "1.",
                                     ".5",
                                     "1.5",
                                     "0.1",
                                     "1..0",
                                     "1.5e+0",
                                     "15e-1",
                                     "1e",
                                     "1e+",
                                     "e5",
                                     "1e5.0",
                                     "1e1000",
                                     "--1",
                                     "inf",
                                     "-inf",
                                     "nan",
                                     "0x10",
                                     "9007199254740992",
                                     "-9007199254740992",
                                     "9.007199254740992e+15",
                                     "1e+16",
                                     "1e+17",
                                     "1e+308",
                                     "99999999999999999",
                                     "999999999999999999",
                                     "18446744073709551616",
                                     "1e-5"};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int64_t score;
    if (belay__ranking_score(rows[i], strlen(rows[i]), &score))
      fail_msg("\"%s\" is %lld", rows[i], (long long)score);
  }
  int64_t score;
  assert_false(belay__ranking_score("1\0", 2, &score));
  assert_true(belay__ranking_score("12x", 2, &score)); /* no more than is said */
  assert_int_equal(score, 12);
}
