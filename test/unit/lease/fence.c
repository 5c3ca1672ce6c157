/* The guard of a resource: accepted and refused requests, and the stored state after each. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "belay/error.h"
#include "belay/fence.h"
#include "support/base/test.h"

#define LARGEST (UINT64_C(1) << 53)
#define TOKEN_MAX BELAY_FENCE_TOKEN_MAX

/* A fence with this content that never stored anything longer. */
static belay_fence_t fence_of(uint64_t number, const char *token, size_t len) {
  belay_fence_t fence;
  memset(&fence, 0, sizeof fence);
  fence.number = number;
  fence.token_len = len;
  memcpy(fence.token, token, len);
  return fence;
}

static void expect(int row, int actual, int expected) {
  if (actual != expected)
    fail_msg("row %d: %s instead of %s", row, belay_err_name(actual), belay_err_name(expected));
}

/* The answer is this; and the request is remembered if it went on, else nothing changes at all. */
static void check(int row, const belay_fence_t *before, uint64_t number, const char *token,
                  size_t len, int expected) {
  belay_fence_t fence = *before, after = *before;
  if (expected == 0)
    after = fence_of(number, token, len);
  expect(row, belay_fence_guard(&fence, number, belay_bytes(token, len)), expected);
  assert_memory_equal(&fence, &after, sizeof fence);
}

#define BEFORE 100 /* stored before the row's request, with the token "mine" */

static const struct {
  uint64_t number;
  const char *token;
  int expected;
} requests[] = {
    {BEFORE + 1, "mine", 0},
    {BEFORE + 1, "another", 0},
    {LARGEST - 1, "another", 0},
    {LARGEST, "another", 0},
    {BEFORE, "mine", 0},
    {BEFORE, "another", BELAY_EFENCED},
    {BEFORE, "min", BELAY_EFENCED},
    {BEFORE, "mine!", BELAY_EFENCED},
    {BEFORE, "mInE", BELAY_EFENCED},
    {BEFORE - 1, "mine", BELAY_EFENCED},
    {BEFORE - 1, "another", BELAY_EFENCED},
    {1, "mine", BELAY_EFENCED},
    {0, "mine", BELAY_EINVAL},
    {LARGEST + 1, "mine", BELAY_EINVAL},
    {UINT64_MAX, "mine", BELAY_EINVAL},
    {BEFORE, "", BELAY_EINVAL},
    {BEFORE + 1, "", BELAY_EINVAL},
    {0, "", BELAY_EINVAL},
};
#define REQUESTS ((int)(sizeof requests / sizeof *requests))

TEST(second_requests) {
  belay_fence_t before = fence_of(BEFORE, "mine", 4);
  for (int i = 0; i < REQUESTS; i++)
    check(i, &before, requests[i].number, requests[i].token, strlen(requests[i].token),
          requests[i].expected);
}

/* An empty fence accepts every valid request. */
TEST(first_request_is_accepted) {
  belay_fence_t fresh = {0};
  for (int i = 0; i < REQUESTS; i++)
    check(i, &fresh, requests[i].number, requests[i].token, strlen(requests[i].token),
          requests[i].expected == BELAY_EINVAL ? BELAY_EINVAL : 0);
}

TEST(numbers_near_the_maximum) {
  belay_fence_t almost = fence_of(LARGEST - 1, "a", 1), full = fence_of(LARGEST, "a", 1);
  check(0, &almost, LARGEST - 2, "a", 1, BELAY_EFENCED);
  check(1, &almost, LARGEST - 1, "b", 1, BELAY_EFENCED);
  check(2, &almost, LARGEST, "b", 1, 0);
  check(3, &full, LARGEST - 1, "a", 1, BELAY_EFENCED);
  check(4, &full, LARGEST, "a", 1, 0);
  check(5, &full, LARGEST, "b", 1, BELAY_EFENCED);
  check(6, &full, LARGEST + 1, "b", 1, BELAY_EINVAL);
}

TEST(later_holder_replaces_earlier) {
  belay_fence_t fence = {0};
  for (uint64_t number = 1; number < 1000; number++) {
    const char *token = number % 2 ? "odd" : "even", *last = number % 2 ? "even" : "odd";
    for (int times = 0; times < 3; times++)
      assert_int_equal(belay_fence_guard(&fence, number, belay_string(token)), 0);
    if (number > 1)
      assert_int_equal(belay_fence_guard(&fence, number - 1, belay_string(last)), BELAY_EFENCED);
  }
}

#define TOKEN(text)                                                                                \
  { text, sizeof text - 1 }

static const struct {
  const char *text;
  size_t len;
} alike[] = {
    TOKEN("a"),    TOKEN("aa"),    TOKEN("aaa"),    TOKEN("ab"),   TOKEN("A"),    TOKEN(" a"),
    TOKEN("a "),   TOKEN("a\n"),   TOKEN("\0"),     TOKEN("\0\0"), TOKEN("a\0"),  TOKEN("a\0\0"),
    TOKEN("a\0b"), TOKEN("a\0bb"), TOKEN("a\0\0b"), TOKEN("\0a"),  TOKEN("\xff"), TOKEN("\x7f"),
};
#define ALIKE ((int)(sizeof alike / sizeof *alike))

TEST(similar_tokens_differ) {
  for (int i = 0; i < ALIKE; i++) {
    belay_fence_t before = fence_of(7, alike[i].text, alike[i].len);
    for (int j = 0; j < ALIKE; j++)
      check(i * ALIKE + j, &before, 7, alike[j].text, alike[j].len, i == j ? 0 : BELAY_EFENCED);
  }
}

/* Memory of exactly that size, so that the sanitizer sees a byte too many. */
static char *token_of(size_t len) {
  char *token = malloc(len);
  assert_non_null(token);
  memset(token, 'x', len);
  return token;
}

TEST(token_lengths) {
  belay_fence_t fresh = {0};
  for (size_t len = 1; len <= TOKEN_MAX; len++) {
    char *token = token_of(len);
    belay_fence_t longest = fence_of(7, token, len);
    check((int)len, &fresh, 7, token, len, 0);
    check((int)len, &longest, 7, token, len, 0);
    if (len > 1) /* 0 is the length of all of it */
      check((int)len, &longest, 7, token, len - 1, BELAY_EFENCED);
    token[len - 1] = 'y';
    check((int)len, &longest, 7, token, len, BELAY_EFENCED);
    free(token);
  }
}

TEST(too_long_token) {
  belay_fence_t fresh = {0}, before = fence_of(7, "x", 1);
  static const size_t lengths[] = {TOKEN_MAX + 1, 2 * TOKEN_MAX, SIZE_MAX};
  char *token = token_of(1);
  for (int i = 0; i < 3; i++) {
    check(i, &fresh, 7, token, lengths[i], BELAY_EINVAL);
    check(i, &before, 8, token, lengths[i], BELAY_EINVAL);
  }
  free(token);
}

TEST(shorter_token_clears_the_rest) {
  char longest[TOKEN_MAX];
  memset(longest, 'x', sizeof longest);
  belay_fence_t before = fence_of(7, longest, sizeof longest);
  check(0, &before, 8, "x", 1, 0);
}

TEST(null_arguments) {
  belay_fence_t fresh = {0};
  assert_int_equal(belay_fence_guard(NULL, 7, belay_string("x")), BELAY_EINVAL);
  check(0, &fresh, 7, NULL, 0, BELAY_EINVAL);
  check(1, &fresh, 7, NULL, 1, BELAY_EINVAL);
}

TEST(script_text) {
  size_t len = 0;
  const char *text = belay_fence_script(&len);
  assert_non_null(text);
  assert_int_equal(strlen(text), len);
  assert_non_null(strstr(text, belay_strerror(BELAY_EFENCED)));
  assert_ptr_equal(belay_fence_script(NULL), text);
}
