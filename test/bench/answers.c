/* Answers are counted wherever what a server sends is cut, and an error is seen wherever it
 * stands. */
#include <string.h>

#include "load/subjects/answers.h"
#include "support/base/test.h"

/* In two pieces; returns whether there was no error. */
static bool count(const char *text, size_t cut, uint64_t *n) {
  answers_t answers = {0};
  bool good =
      answers_count(&answers, text, cut) && answers_count(&answers, text + cut, strlen(text) - cut);
  *n = answers.n;
  return good;
}

static void assert_counts(const char *text, uint64_t expected) {
  uint64_t n;
  for (size_t cut = 0; cut <= strlen(text); cut++) {
    assert_true(count(text, cut, &n));
    assert_int_equal(n, expected);
  }
}

static void assert_refuses(const char *text) {
  uint64_t n;
  for (size_t cut = 0; cut <= strlen(text); cut++)
    assert_false(count(text, cut, &n));
}

TEST(replies_are_counted) {
  assert_counts("", 0);
  assert_counts("+OK\r\n:1\r\n:-1\r\n", 3);
  assert_counts("$-1\r\n*-1\r\n*0\r\n$0\r\n\r\n", 4);
  assert_counts("$5\r\na\r\n-b\r\n:7\r\n", 2);
  assert_counts("*3\r\n:1\r\n$1\r\nx\r\n*2\r\n+a\r\n+b\r\n+OK\r\n", 2);
  assert_counts("*2\r\n*0\r\n*-1\r\n", 1);
}

/* A string's last byte is what makes it an answer, and it is one then. */
TEST(partial_reply_is_not_counted) {
  const char text[] = "*2\r\n:1\r\n$3\r\nabc\r\n";
  answers_t answers = {0};
  assert_true(answers_count(&answers, text, sizeof text - 2));
  assert_int_equal(answers.n, 0);
  assert_true(answers_count(&answers, text + sizeof text - 2, 1));
  assert_int_equal(answers.n, 1);
}

TEST(invalid_reply_is_refused) {
  assert_refuses("+OK\r\n-ERR no\r\n");
  assert_refuses("*2\r\n:1\r\n-ERR one of them\r\n");
  assert_refuses("*2\r\n*2\r\n:1\r\n-WRONGTYPE\r\n:3\r\n:4\r\n");
}
