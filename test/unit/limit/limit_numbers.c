/* The permitted replies of a limiter's script: no value can overflow the arithmetic. */
#include "limit/policy.h"

#include <math.h>
#include <string.h>

#include "support/base/test.h"

#define BIG (INT64_C(1) << 52)
#define ANY (INT64_C(1) << 53)

/* As belay__policy_new() makes them: the extremes of each kind. */
static const belay__limit_t limits[] = {
    {BELAY__LIMIT_BUCKET, 0, 5, 7000000, 3, 35000000},
    {BELAY__LIMIT_BUCKET, 0, 1, BIG, 1, BIG},
    {BELAY__LIMIT_BUCKET, 0, BIG, 1, BIG, BIG},
    {BELAY__LIMIT_BUCKET, 0, BIG, 1, 1, BIG},
    {BELAY__LIMIT_SLIDING, 0, 1, BIG, 0, 1},
    {BELAY__LIMIT_SLIDING, 0, BIG, 1, 0, BIG},
    {BELAY__LIMIT_SLIDING, 0, 1 << 26, 1 << 26, 0, 1 << 26},
    {BELAY__LIMIT_FIXED, 0, 1, BIG, 0, 1},
    {BELAY__LIMIT_ALIGNED, 0, 1 << 20, 1000000, 0, 1 << 20},
    {BELAY__LIMIT_ALLOTMENT, 0, BIG, 1, 0, BIG},
    {BELAY__LIMIT_LOG, 0, 100000, 1000000, 0, 100000},
};
enum { LIMITS = sizeof limits / sizeof *limits };

static void make(belay__policy_t *policy, size_t first, size_t n) {
  *policy = (belay__policy_t){.refs = 1, .limits_len = n, .most = BELAY_INFINITE};
  for (size_t i = 0; i < n; i++) {
    policy->limits[i] = limits[(first + i) % (LIMITS - 1)];
    policy->limits[i].index = (unsigned)i;
    if (policy->limits[i].most < policy->most)
      policy->most = policy->limits[i].most;
  }
  if (first == LIMITS - 1) {
    policy->limits[0] = limits[first];
    policy->most = limits[first].most;
  }
}

static char *put(char *out, double number) {
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  for (int i = 0; i < 8; i++)
    *out++ = (char)(bits >> 8 * i & 255);
  return out;
}

/* Reads the numbers; if they are accepted, whatever is asked of them is answered within its range.
 */
static bool survives(const belay__policy_t *policy, const double *numbers, size_t n) {
  char bytes[8 * 40];
  for (size_t i = 0; i < n; i++)
    put(bytes + 8 * i, numbers[i]);
  belay__limit_reply_t limit_reply;
  const belay__reply_t reply = {.type = BELAY__REPLY_STRING, .str = bytes, .len = 8 * n};
  if (!belay__policy_read(policy, &reply, NULL, &limit_reply))
    return false;
  int64_t costs[] = {0, 1, policy->most, policy->most / 2, policy->most + 1, INT64_MAX};
  for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) {
    belay_limiter_result_t result = {0};
    belay__policy_judge(policy, &limit_reply, costs[i], &result);
    assert_between(result.remaining, 0, policy->most);
    assert_between(result.retry_after_us, costs[i] > policy->most ? -1 : 0, 4 * ANY);
    assert_between(result.reset_after_us, 0, 4 * ANY);
    assert_true(result.window < policy->limits_len);
    if (costs[i] > policy->most)
      assert_int_equal(result.retry_after_us, -1);
  }
  return true;
}

TEST(each_number_in_turn) {
  const double never[] = {
      NAN,    INFINITY,           -INFINITY,           0.5,         -0.5, 1e300, -1e300,
      5e-324, 9007199254740994.0, -9007199254740994.0, 1.5e15 + 0.5};
  const double perhaps[] = {-1, -2, 0, 1, 4503599627370497.0, 9007199254740992.0, 1.7e15};
  for (size_t p = 0; p < LIMITS; p++)
    for (size_t at = 0; at < 7; at++) {
      belay__policy_t policy;
      make(&policy, p, 1);
      double numbers[11] = {0, 1.7e15, 1.7e15, 0, 1.7e15, 0, 0, 1, 1, 1, 1};
      assert_true(survives(&policy, numbers, 7));
      assert_true(survives(&policy, numbers, 11));
      for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        numbers[at] = never[i];
        assert_false(survives(&policy, numbers, 7));
        assert_false(survives(&policy, numbers, 11));
      }
      for (size_t i = 0; i < sizeof perhaps / sizeof *perhaps; i++) {
        numbers[at] = perhaps[i];
        bool read = survives(&policy, numbers, 7);
        if ((at >= 4 && numbers[at] < 0) || (at == 0 && numbers[at] < -1))
          assert_false(read);
      }
    }
}

TEST(lengths) {
  double numbers[40] = {0};
  for (size_t limit = 1; limit <= BELAY_LIMITER_LIMITS_MAX; limit++)
    for (size_t n = 0; n <= 40; n++) {
      belay__policy_t policy;
      make(&policy, 0, limit);
      assert_int_equal(survives(&policy, numbers, n), n == 4 + 3 * limit || n == 4 + 7 * limit);
    }
}

/* A denial may be no more than the debt, of a bucket that is alone. */
TEST(a_debt) {
  for (size_t p = 0; p < LIMITS; p++)
    for (size_t n = 1; n <= 2 && p + n < LIMITS; n++) {
      belay__policy_t policy;
      make(&policy, p, n);
      const int64_t debts[] = {INT64_MIN, -1, 0, 1, BIG, ANY, ANY + 1, INT64_MAX};
      for (size_t i = 0; i < 8; i++) {
        const belay__reply_t reply = {.type = BELAY__REPLY_INTEGER, .integer = debts[i]};
        belay__limit_reply_t limit_reply;
        bool may = n == 1 && limits[p].kind == BELAY__LIMIT_BUCKET && i > 2 && i < 6;
        assert_int_equal(belay__policy_read(&policy, &reply, NULL, &limit_reply), may);
        if (!may)
          continue;
        belay_limiter_result_t result = {0};
        belay__policy_judge(&policy, &limit_reply, 1, &result);
        assert_int_equal(limit_reply.answer, -1);
        assert_between(result.remaining, 0, policy.most);
        assert_between(result.retry_after_us, 0, 2 * ANY);
        assert_between(result.reset_after_us, 1, 2 * ANY);
      }
    }
}

static uint64_t seed = 3;

static unsigned draw(void) {
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (unsigned)(seed >> 33);
}

static double some_number(void) {
  static const double edges[] = {
      0,    1,      2,  1e6,        4503599627370496.0, 9007199254740992.0,
      1e15, 1.7e15, -1, 67108864.0, 9007199254740991.0, 100000};
  double edge = edges[draw() % 12];
  unsigned by = draw() % 9;
  return by < 5 ? edge : by < 7 ? edge - draw() % 3 : floor(edge * (draw() % 1000) / 1000);
}

TEST(numbers_at_random) {
  unsigned read = 0;
  for (int turn = 0; turn < 200000; turn++) {
    belay__policy_t policy;
    size_t first = (size_t)draw() % LIMITS;
    size_t n = first == LIMITS - 1 ? 1 : (size_t)draw() % 4 + 1;
    make(&policy, first, n);
    double numbers[40];
    for (size_t i = 0; i < 4 + 3 * n; i++)
      numbers[i] = some_number();
    for (size_t i = 0; i < n && draw() % 2; i++) /* windows that may be */
      numbers[4 + 3 * i] = numbers[1] - draw() % 2;
    read += survives(&policy, numbers, 4 + 3 * n);
  }
  assert_true(read > 1000);
}
