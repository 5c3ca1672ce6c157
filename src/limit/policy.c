#include "limit/policy.h"

#include <math.h>
#include <string.h>

#include "core/key/bytes.h"

#define UNITS_MAX BELAY_LIMITER_UNITS_MAX
#define EXACT_MAX (INT64_C(1) << 53)

/* ---- making it ---- */

static int64_t gcd(int64_t a, int64_t b) {
  while (b != 0) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static int refuse(belay_t *belay, size_t i, const char *why) {
  return belay__invalid(belay, "limits[%zu].%s", i, why);
}

static int check_limit(belay_t *belay, size_t i, size_t n, const belay_limit_t *limit) {
  bool bucket = limit->kind == BELAY_LIMIT_BUCKET;
  if (limit->kind < BELAY_LIMIT_BUCKET || limit->kind > BELAY_LIMIT_LOG)
    return refuse(belay, i, "kind: unknown");
  if (limit->count < 0)
    return refuse(belay, i, "count: negative");
  if (limit->burst < 0)
    return refuse(belay, i, "burst: negative");
  if (limit->burst != 0 && !bucket)
    return refuse(belay, i, "burst: only a bucket has one");
  if (limit->aligned && limit->kind != BELAY_LIMIT_FIXED)
    return refuse(belay, i, "aligned: only a fixed window is");
  if (limit->count == BELAY_INFINITE)
    return 0;
  if (limit->count == 0 && !bucket)
    return refuse(belay, i, "count: 0");
  if (limit->count == 0 && limit->burst == 0)
    return refuse(belay, i, "burst: 0, as count is");
  if (limit->period_us < 1)
    return refuse(belay, i,
                  limit->count == 0 ? "period_us: needed as the ttl where count is 0"
                                    : "period_us: not positive");
  if (limit->kind == BELAY_LIMIT_LOG && limit->count > BELAY_LIMITER_LOG_MAX)
    return refuse(belay, i, "count: over BELAY_LIMITER_LOG_MAX");
  if (limit->kind == BELAY_LIMIT_LOG && n > 1)
    return refuse(belay, i, "kind: a log is the only limit of its policy");
  return 0;
}

/* Convert a checked, finite limit of the caller to a belay__limit_t. Returns 0 or BELAY_EINVAL. */
static int set_limit(belay_t *belay, size_t i, const belay_limit_t *from, belay__limit_t *limit) {
  static const belay__limit_kind_t kinds[] = {
      [BELAY_LIMIT_BUCKET] = BELAY__LIMIT_BUCKET,
      [BELAY_LIMIT_FIXED] = BELAY__LIMIT_FIXED,
      [BELAY_LIMIT_SLIDING] = BELAY__LIMIT_SLIDING,
      [BELAY_LIMIT_LOG] = BELAY__LIMIT_LOG,
  };
  *limit = (belay__limit_t){.kind = kinds[from->kind],
                            .index = (unsigned)i,
                            .most = from->burst != 0 ? from->burst : from->count,
                            .p = from->period_us};
  if (from->aligned)
    limit->kind = BELAY__LIMIT_ALIGNED;
  if (from->kind == BELAY_LIMIT_BUCKET && from->count == 0)
    limit->kind = BELAY__LIMIT_ALLOTMENT;
  if (limit->kind == BELAY__LIMIT_BUCKET) {
    int64_t divisor = gcd(from->period_us, from->count);
    limit->p /= divisor;
    limit->r = from->count / divisor;
  }
  if (limit->r > UNITS_MAX)
    return refuse(belay, i, "count / gcd(count, period_us): over BELAY_LIMITER_UNITS_MAX");
  if (limit->p > UNITS_MAX || limit->most > UNITS_MAX / limit->p)
    return refuse(belay, i, "burst, or count, times period_us: over BELAY_LIMITER_UNITS_MAX");
  limit->b = limit->kind == BELAY__LIMIT_BUCKET ? limit->most * limit->p : limit->most;
  return 0;
}

int belay__policy_new(belay_t *belay, const belay_limit_t *limits, size_t n,
                      belay__policy_t **out) {
  belay__policy_t policy = {.refs = 1, .most = BELAY_INFINITE, .reservable = true};
  if (limits == NULL || n < 1 || n > BELAY_LIMITER_LIMITS_MAX)
    return belay__invalid(belay, "limits: NULL, or not 1 to %d", BELAY_LIMITER_LIMITS_MAX);
  char *packed = policy.packed;
  for (size_t i = 0; i < n; i++) {
    belay__limit_t *limit = &policy.limits[policy.limits_len];
    int error = check_limit(belay, i, n, &limits[i]);
    if (error == 0 && limits[i].count != BELAY_INFINITE)
      error = set_limit(belay, i, &limits[i], limit);
    if (error != 0)
      return error;
    if (limits[i].count == BELAY_INFINITE)
      continue;
    policy.limits_len++;
    policy.reservable = policy.reservable && limit->kind == BELAY__LIMIT_BUCKET;
    if (limit->most < policy.most)
      policy.most = limit->most;
    packed = belay__policy_put(packed, (int64_t)limit->kind);
    packed = belay__policy_put(packed, limit->p);
    packed = belay__policy_put(packed, limit->r);
    packed = belay__policy_put(packed, limit->b);
  }
  *out = belay__alloc(belay, sizeof **out);
  if (*out == NULL)
    return BELAY_ENOMEM;
  **out = policy;
  return 0;
}

void belay__policy_release(belay_t *belay, belay__policy_t *policy) {
  if (policy != NULL && --policy->refs == 0)
    belay__free(belay, policy, sizeof *policy);
}

/* ---- numbers ---- */

char *belay__policy_put(char *out, int64_t value) {
  double number = (double)value;
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  belay__put_le(out, bits, 8);
  return out + 8;
}

/* Read the double at data. Returns false if it is not a number, or not from -2^53 to 2^53, the
 * range in which a double represents each integer exactly. */
static bool get_number(const char *data, double *number) {
  uint64_t bits = belay__get_le(data, 8);
  memcpy(number, &bits, sizeof *number);
  return fabs(*number) <= (double)EXACT_MAX;
}

/* Read the double at data. Returns false if it is not an integer from -2^53 to 2^53. */
static bool get(const char *data, int64_t *value) {
  double number;
  if (!get_number(data, &number) || number != floor(number))
    return false;
  *value = (int64_t)number;
  return true;
}

/* true if the numbers are in the ranges that the script keeps. Then computations with them do not
 * overflow. */
static bool possible(const belay__limit_t *limit, int64_t now, int64_t a, int64_t b, int64_t c) {
  if (a < 0 || b < 0 || c < 0)
    return false;
  if (limit->kind == BELAY__LIMIT_BUCKET || limit->kind == BELAY__LIMIT_LOG)
    return true;
  int64_t most = UNITS_MAX / limit->p;
  return (b == 0 && c == 0) || (b <= most && c <= most && a <= now && now - a < limit->p);
}

/* Read the short form of a denial: an integer, the debt of the only limit, a bucket. */
static bool read_debt(const belay__policy_t *policy, const belay__reply_t *reply,
                      belay__limit_reply_t *numbers) {
  *numbers = (belay__limit_reply_t){.answer = -1};
  return policy->limits_len == 1 && policy->limits[0].kind == BELAY__LIMIT_BUCKET &&
         belay__reply_integer(reply, 1, EXACT_MAX, &numbers->limits[0].a);
}

bool belay__policy_read(const belay__policy_t *policy, const belay__reply_t *reply, double *exact,
                        belay__limit_reply_t *numbers) {
  double answer;
  if (reply->type != BELAY__REPLY_STRING)
    return read_debt(policy, reply, numbers);
  const char *data = reply->str;
  size_t len = reply->len;
  size_t n = policy->limits_len, brief = 32 + 24 * n, whole = 32 + 56 * n;
  if (len != brief && len != whole)
    return false;
  *numbers = (belay__limit_reply_t){0};
  if (!get_number(data, &answer) || answer < -1 || !get(data + 8, &numbers->at) ||
      !get(data + 16, &numbers->since) || !get(data + 24, &numbers->ban))
    return false;
  numbers->answer = (int64_t)floor(answer);
  if (exact != NULL)
    *exact = answer;
  else if (answer > (double)numbers->answer)
    return false;
  const char *at = data + 32;
  for (size_t i = 0; i < n; i++, at += len == brief ? 24 : 56) {
    int64_t *a = &numbers->limits[i].a, *b = &numbers->limits[i].b, *c = &numbers->limits[i].c;
    if (!get(at, a) || !get(at + 8, b) || !get(at + 16, c) ||
        !possible(&policy->limits[i], numbers->at, *a, *b, *c))
      return false;
  }
  return true;
}

/* ---- what it means ---- */

static int64_t positive(int64_t value) {
  return value > 0 ? value : 0;
}

/* Divide and round up; value is not negative. */
static int64_t divide_up(int64_t value, int64_t by) {
  return value / by + (value % by != 0);
}

typedef struct judgement {
  int64_t remaining, retry, reset;
} judgement_t;

static judgement_t judge_bucket(const belay__limit_t *limit, int64_t debt, int64_t cost) {
  return (judgement_t){
      .remaining = positive(limit->b - debt) / limit->p,
      .retry = divide_up(positive(debt + cost * limit->p - limit->b), limit->r),
      .reset = divide_up(debt, limit->r),
  };
}

/* Judge a take of `cost` tokens by a sliding window. count: tokens in the window that began at
 * `since`. before: tokens in the previous window. The weight of `before` is 1 at `since`, and falls
 * by 1/P in each microsecond. */
static judgement_t judge_sliding(const belay__limit_t *limit, int64_t now, int64_t since,
                                 int64_t count, int64_t before, int64_t cost) {
  int64_t p = limit->p, left = since + p - now, room = limit->b - count - cost;
  judgement_t is = {
      .remaining = positive(limit->b - count - divide_up(before * left, p)),
      .reset = count > 0    ? left + p
               : before > 0 ? left
                            : 0,
  };
  if (room >= 0 && before > 0)
    is.retry = positive(left - room * p / before);
  else if (room < 0) /* admitted in the next window, where `count` becomes `before` */
    is.retry = left + (count > 0 ? positive(p - (limit->b - cost) * p / count) : 0);
  return is;
}

static judgement_t judge_window(const belay__limit_t *limit, int64_t now, int64_t since,
                                int64_t count, int64_t cost) {
  int64_t left = count > 0 ? since + limit->p - now : 0;
  return (judgement_t){
      .remaining = positive(limit->b - count),
      .retry = count + cost > limit->b ? left : 0,
      .reset = left,
  };
}

static judgement_t judge(const belay__limit_t *limit, const belay__limit_reply_t *numbers, size_t i,
                         int64_t cost) {
  int64_t a = numbers->limits[i].a, b = numbers->limits[i].b, c = numbers->limits[i].c;
  switch (limit->kind) {
  case BELAY__LIMIT_BUCKET:
    return judge_bucket(limit, a, cost);
  case BELAY__LIMIT_SLIDING:
    return judge_sliding(limit, numbers->at, a, b, c, cost);
  case BELAY__LIMIT_LOG:
    return (judgement_t){.remaining = positive(limit->b - a), .retry = b, .reset = c};
  case BELAY__LIMIT_FIXED:
  case BELAY__LIMIT_ALIGNED:
  case BELAY__LIMIT_ALLOTMENT:
    break;
  }
  return judge_window(limit, numbers->at, a, b, cost);
}

void belay__policy_judge(const belay__policy_t *policy, const belay__limit_reply_t *numbers,
                         int64_t cost, belay_limiter_result_t *result) {
  int64_t retry = 0, banned = numbers->ban - numbers->at;
  result->remaining = policy->most;
  result->reset_after_us = positive(banned);
  for (size_t i = 0; i < policy->limits_len; i++) {
    const belay__limit_t *limit = &policy->limits[i];
    bool never = cost > limit->most;
    judgement_t is = judge(limit, numbers, i, never ? 0 : cost);
    if (is.remaining < result->remaining)
      result->remaining = is.remaining;
    if (is.reset > result->reset_after_us)
      result->reset_after_us = is.reset;
    if (never)
      is.retry = INT64_MAX;
    if (is.retry > retry) {
      retry = is.retry;
      result->window = limit->index;
    }
  }
  if (retry == INT64_MAX) {
    retry = -1;
  } else if (banned > retry) {
    retry = banned;
    result->banned = true;
  }
  if (banned > 0)
    result->remaining = 0;
  result->retry_after_us = retry;
}

/* Subtract the later takes. If a bucket's b is at its maximum, b may be less than the sum, and the
 * last take has changed `since`. Then the other takes can no longer be given back: their `since`
 * becomes 0, which no receipt of a server has. */
void belay__policy_untake(const belay__policy_t *policy, int64_t cost, int64_t takes,
                          belay__limit_reply_t *numbers) {
  for (size_t i = 0; i < policy->limits_len; i++) {
    const belay__limit_t *limit = &policy->limits[i];
    if (limit->kind == BELAY__LIMIT_BUCKET) {
      if (takes > 0 && numbers->limits[i].b >= EXACT_MAX - 1)
        numbers->since = 0;
      numbers->limits[i].a -= takes * cost * limit->p;
    }
    numbers->limits[i].b -= takes * cost * (limit->kind == BELAY__LIMIT_BUCKET ? limit->p : 1);
  }
}

/* ---- receipts ---- */

void belay__policy_receipt(const belay__policy_t *policy, const belay__limit_reply_t *numbers,
                           int64_t cost, int64_t id, belay_receipt_t *receipt) {
  int64_t *number = receipt->belay_private;
  number[0] = cost;
  number[1] = id;
  number[2] = numbers->at;
  number[3] = numbers->since;
  for (size_t i = 0; i < policy->limits_len; i++) {
    bool bucket = policy->limits[i].kind == BELAY__LIMIT_BUCKET;
    number[4 + i] = bucket ? numbers->limits[i].b : numbers->limits[i].a;
  }
}

size_t belay__policy_put_receipt(const belay__policy_t *policy, const belay_receipt_t *receipt,
                                 char out[BELAY__RECEIPT_MAX]) {
  const int64_t *number = receipt->belay_private;
  char *end = out;
  if (belay__policy_is_log(policy))
    return (size_t)(belay__hex(out, &number[1], sizeof number[1]) - out);
  for (size_t i = 0; i < 2 + policy->limits_len; i++)
    end = belay__policy_put(end, number[2 + i]);
  return (size_t)(end - out);
}
