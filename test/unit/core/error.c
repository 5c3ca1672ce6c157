/* The list of errors, and the three functions that read it. */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "belay/error.h"
#include "support/base/test.h"

/* libuv's errors and negative errno values lie above -4096. */
#define RANGE_FIRST (-20001)
#define RANGE_LAST (-20099)

static const struct {
  const char *name;
  int value, retryable;
  const char *text;
} list[] = {
#define ROW(name, value, retryable, text) {#name, value, retryable, text},
    BELAY_ERRORS(ROW)
#undef ROW
};
#define LIST_LEN (sizeof list / sizeof *list)

TEST(functions_return_the_row_of_the_list) {
  for (size_t i = 0; i < LIST_LEN; i++) {
    assert_string_equal(belay_err_name(list[i].value), list[i].name);
    assert_string_equal(belay_strerror(list[i].value), list[i].text);
    assert_int_equal(belay_err_retryable(list[i].value), list[i].retryable);
  }
  assert_string_equal(belay_err_name(0), "OK");
  assert_string_equal(belay_strerror(0), "success");
  assert_int_equal(belay_err_retryable(0), 0);
}

TEST(rows_are_unique) {
  for (size_t i = 0; i < LIST_LEN; i++)
    for (size_t j = 0; j < i; j++) {
      assert_int_not_equal(list[i].value, list[j].value);
      assert_string_not_equal(list[i].name, list[j].name);
      assert_string_not_equal(list[i].text, list[j].text);
    }
}

TEST(values_are_in_one_range) {
  for (size_t i = 0; i < LIST_LEN; i++)
    assert_between(list[i].value, RANGE_LAST, RANGE_FIRST);
}

/* Programs were compiled with them. */
TEST(values_do_not_change) {
  assert_int_equal(BELAY_EINVAL, -20001);
  assert_int_equal(BELAY_ENOMEM, -20003);
  assert_int_equal(BELAY_ECLOSING, -20005);
  assert_int_equal(BELAY_ECANCELED, -20020);
  assert_int_equal(BELAY_ETIMEDOUT, -20021);
  assert_int_equal(BELAY_EHELD, -20022);
  assert_int_equal(BELAY_EUNKNOWN, -20025);
  assert_int_equal(BELAY_EAUTH, -20040);
  assert_int_equal(BELAY_EREFUSED, -20053);
}

TEST(texts_are_one_short_printable_line) {
  for (size_t i = 0; i < LIST_LEN; i++) {
    size_t len = strlen(list[i].text);
    assert_int_equal(list[i].name[0], 'E');
    assert_in_range(len, 5, 100);
    for (size_t j = 0; j < len; j++)
      assert_in_range(list[i].text[j], ' ', '~');
  }
}

/* An independent list of errors that may pass by themselves and are safe to retry. */
TEST(retryable_errors) {
  static const int retryable[] = {
      BELAY_ENOMEM,    BELAY_EBUSY,        BELAY_ESYSTEM,      BELAY_ETIMEDOUT,
      BELAY_EHELD,     BELAY_ESHARED,      BELAY_EEXPIRED,     BELAY_ELIMITED,
      BELAY_ELOAD,     BELAY_ENOSENTINEL,  BELAY_ESPLIT,       BELAY_ENOQUORUM,
      BELAY_EOOM,      BELAY_EQUARANTINED, BELAY_EUNREACHABLE, BELAY_ERESOLVE,
      BELAY_EMISCONF,  BELAY_ELOADING,     BELAY_ENOREPLICAS,  BELAY_ESCRIPTBUSY,
      BELAY_EREADONLY, BELAY_ECLUSTERDOWN, BELAY_EMAXCLIENTS,
  };
  for (size_t i = 0; i < LIST_LEN; i++) {
    int expected = 0;
    for (size_t j = 0; j < sizeof retryable / sizeof *retryable; j++)
      expected |= retryable[j] == list[i].value;
    if (list[i].retryable != expected)
      fail_msg("%s", list[i].name);
  }
}

static int is_listed(int error) {
  for (size_t i = 0; i < LIST_LEN; i++)
    if (list[i].value == error)
      return 1;
  return 0;
}

static void expect_unlisted(int error) {
  assert_string_equal(belay_err_name(error), "E?");
  assert_string_equal(belay_strerror(error), "not an error of belay");
  assert_int_equal(belay_err_retryable(error), 0);
}

TEST(other_numbers_are_no_errors) {
  const int others[] = {1, -1, ENOMEM, -ENOMEM, -4095, -BELAY_EINVAL, 12345, INT_MAX, INT_MIN};
  int gaps = 0;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    expect_unlisted(others[i]);
  for (int error = RANGE_FIRST + 1; error >= RANGE_LAST - 1; error--)
    if (!is_listed(error)) {
      expect_unlisted(error);
      gaps++;
    }
  assert_true(gaps >= 2);
}
