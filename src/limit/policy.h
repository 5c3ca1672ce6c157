/* A policy: its limits, checked, as the scripts want them; and what their replies mean. Nothing here knows of keys or
 * connections.
 *
 * Exact: all numbers are integers, at most 2^53, and travel as doubles. lua/limit/limit.lua says what they are. */
#ifndef BELAY_LIMIT_POLICY_H
#define BELAY_LIMIT_POLICY_H

#include "belay/limiter.h"
#include "core/loop/loop.h"
#include "core/call/reply.h"

typedef enum belay__limit_kind {
  BELAY__LIMIT_BUCKET = 1,
  BELAY__LIMIT_SLIDING,
  BELAY__LIMIT_FIXED,
  BELAY__LIMIT_ALIGNED,
  BELAY__LIMIT_ALLOTMENT,
  BELAY__LIMIT_LOG
} belay__limit_kind_t;

typedef struct belay__limit {
  belay__limit_kind_t kind;
  unsigned index; /* in the user's list */
  int64_t most;   /* tokens: the burst, or the count */
  int64_t p,
      r; /* a bucket's: units of a token, units that leak in a microsecond; others: the period, 0 */
  int64_t b; /* what fits: a bucket's in units, others in tokens */
} belay__limit_t;

/* Shared by all requests that were sent under it. */
typedef struct belay__policy {
  unsigned refs;
  size_t limits_len; /* 0: nothing limits */
  belay__limit_t limits[BELAY_LIMITER_LIMITS_MAX];
  int64_t most;                               /* the smallest; BELAY_INFINITE */
  bool reservable;                            /* buckets alone, that are filled */
  char packed[32 * BELAY_LIMITER_LIMITS_MAX]; /* ARGV of the scripts */
} belay__policy_t;

/* What a reply says: the numbers at the top of lua/limit/limit.lua. Of a log: a is the count, b the retry, c the reset. */
typedef struct belay__limit_reply {
  int64_t answer, at, since, ban;
  struct {
    int64_t a, b, c;
  } limits[BELAY_LIMITER_LIMITS_MAX];
} belay__limit_reply_t;

/* Makes one with a reference. Returns 0, BELAY_EINVAL with a detail, or BELAY_ENOMEM. */
int belay__policy_new(belay_t *belay, const belay_limit_t *limits, size_t n, belay__policy_t **out);
void belay__policy_drop(belay_t *belay, belay__policy_t *policy);

static inline bool belay__policy_is_log(const belay__policy_t *policy) {
  return policy->limits_len == 1 && policy->limits[0].kind == BELAY__LIMIT_LOG;
}

static inline size_t belay__policy_packed_len(const belay__policy_t *policy) {
  return 32 * policy->limits_len;
}

/* Appends a number as a little-endian double; returns what is behind it. */
char *belay__policy_put(char *out, int64_t value);

/* Reads a script's reply; false if it is none. Where the answer may be a fraction, *exact is set to
 * it, and numbers->answer is rounded down; NULL: it may not. */
bool belay__policy_read(const belay__policy_t *policy, const belay__reply_t *reply, double *exact,
                        belay__limit_reply_t *numbers);

/* What that means for somebody who wanted cost tokens: remaining, retry_after_us, reset_after_us, window, banned. */
void belay__policy_judge(const belay__policy_t *policy, const belay__limit_reply_t *numbers,
                         int64_t cost, belay_limiter_result_t *result);

/* What was taken, as numbers says after it; id: of a log's entries. */
void belay__policy_receipt(const belay__policy_t *policy, const belay__limit_reply_t *numbers,
                           int64_t cost, int64_t id, belay_receipt_t *receipt);

#define BELAY__RECEIPT_MAX (8 * (2 + BELAY_LIMITER_LIMITS_MAX))

/* Writes what the refund of a receipt has as ARGV[4]; returns its length. */
size_t belay__policy_put_receipt(const belay__policy_t *policy, const belay_receipt_t *receipt,
                                 char out[BELAY__RECEIPT_MAX]);

#endif /* BELAY_LIMIT_POLICY_H */
