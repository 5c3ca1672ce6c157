/* The list of errors and the three questions about one. */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "belay/error.h"
#include "support/base/test.h"

/* libuv's errors and negative errno values lie above this. */
#define LOWEST_FOREIGN (-4096)
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

static int is_listed(int error) {
  for (size_t i = 0; i < LIST_LEN; i++)
    if (list[i].value == error)
      return 1;
  return 0;
}

TEST(values_are_unique) {
  for (size_t i = 0; i < LIST_LEN; i++)
    for (size_t j = 0; j < i; j++)
      if (list[i].value == list[j].value)
        fail_msg("%s and %s", list[i].name, list[j].name);
}

TEST(values_lie_in_one_range_of_their_own) {
  assert_true(RANGE_FIRST < LOWEST_FOREIGN);
  for (size_t i = 0; i < LIST_LEN; i++)
    if (list[i].value > RANGE_FIRST || list[i].value < RANGE_LAST)
      fail_msg("%s is %d", list[i].name, list[i].value);
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

TEST(names_are_those_of_the_list_and_unique) {
  for (size_t i = 0; i < LIST_LEN; i++) {
    assert_string_equal(belay_err_name(list[i].value), list[i].name);
    assert_int_equal(list[i].name[0], 'E');
    for (size_t j = 0; j < i; j++)
      assert_string_not_equal(list[i].name, list[j].name);
  }
}

TEST(texts_are_those_of_the_list_and_unique) {
  for (size_t i = 0; i < LIST_LEN; i++) {
    assert_string_equal(belay_strerror(list[i].value), list[i].text);
    for (size_t j = 0; j < i; j++)
      assert_string_not_equal(list[i].text, list[j].text);
  }
}

TEST(texts_are_one_short_printable_line) {
  for (size_t i = 0; i < LIST_LEN; i++) {
    size_t len = strlen(list[i].text);
    assert_in_range(len, 5, 100);
    for (size_t j = 0; j < len; j++)
      assert_in_range(list[i].text[j], ' ', '~');
  }
}

/* An independent list of errors that may pass by themselves and are safe to retry. */
static int may_pass(int error) {
  switch (error) {
  case BELAY_ENOMEM:
  case BELAY_EBUSY:
  case BELAY_ESYSTEM:
  case BELAY_ETIMEDOUT:
  case BELAY_EHELD:
  case BELAY_ESHARED:
  case BELAY_EEXPIRED:
  case BELAY_ELIMITED:
  case BELAY_ELOAD:
  case BELAY_ENOSENTINEL:
  case BELAY_ESPLIT:
  case BELAY_ENOQUORUM:
  case BELAY_EQUARANTINED:
  case BELAY_EUNREACHABLE:
  case BELAY_ERESOLVE:
  case BELAY_EOOM:
  case BELAY_EMISCONF:
  case BELAY_ENOREPLICAS:
  case BELAY_ELOADING:
  case BELAY_ESCRIPTBUSY:
  case BELAY_EREADONLY:
  case BELAY_ECLUSTERDOWN:
  case BELAY_EMAXCLIENTS:
    return 1;
  default:
    return 0;
  }
}

TEST(what_may_pass_is_retryable_and_nothing_else) {
  for (size_t i = 0; i < LIST_LEN; i++)
    if (belay_err_retryable(list[i].value) != may_pass(list[i].value))
      fail_msg("%s", list[i].name);
}

TEST(unknown_outcome_is_not_retryable) {
  assert_int_equal(belay_err_retryable(BELAY_EUNKNOWN), 0);
}

TEST(zero_is_success) {
  assert_string_equal(belay_err_name(0), "OK");
  assert_string_equal(belay_strerror(0), "success");
  assert_int_equal(belay_err_retryable(0), 0);
}

static void check_stranger(int error) {
  assert_string_equal(belay_err_name(error), "E?");
  assert_string_equal(belay_strerror(error), "not an error of belay");
  assert_int_equal(belay_err_retryable(error), 0);
}

TEST(strangers_have_a_name_and_a_text_and_are_not_retryable) {
  const int strangers[] = {1, -1, ENOMEM, -ENOMEM, -4095, -BELAY_EINVAL, INT_MAX, INT_MIN};
  for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++)
    check_stranger(strangers[i]);
}

TEST(gaps_in_the_range_are_strangers) {
  int gaps = 0;
  for (int error = RANGE_FIRST + 1; error >= RANGE_LAST - 1; error--) {
    if (is_listed(error))
      continue;
    check_stranger(error);
    gaps++;
  }
  assert_true(gaps >= 2);
}
