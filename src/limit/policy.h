/* A policy: its checked limits in the format of the scripts, and the meaning of script replies.
 * Independent of keys and connections.
 *
 * All numbers are integers of at most 2^53, sent as doubles, so they are exact. One exception: the
 * reply to a refund or cancel may be a fraction. lua/limit/limit.lua explains the numbers. */
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
  unsigned index; /* Position in the list of limits of the caller, from 0 */
  int64_t most;   /* Tokens: the burst of a bucket or allotment, else the count */
  int64_t p;      /* Of a bucket: units per token; of others: the period in microseconds */
  int64_t r;      /* Of a bucket: units that leak per microsecond; of others: 0 */
  int64_t b;      /* Capacity: of a bucket in units, of others in tokens */
} belay__limit_t;

/* A policy, shared by all requests that were sent with it. */
typedef struct belay__policy {
  unsigned refs;
  size_t limits_len; /* Number of finite limits; 0: no limit applies */
  belay__limit_t limits[BELAY_LIMITER_LIMITS_MAX];
  /* Smallest `most` of the finite limits, in tokens; BELAY_INFINITE if there is none */
  int64_t most;
  bool reservable;                            /* true if all finite limits are token buckets */
  char packed[32 * BELAY_LIMITER_LIMITS_MAX]; /* The limits as ARGV[2] of the scripts */
} belay__policy_t;

/* The numbers of a script's reply, named as at the top of lua/limit/limit.lua. For a log: a is the
 * number of tokens used, b and c are the microseconds until a retry and until a full reset. */
typedef struct belay__limit_reply {
  int64_t answer, at, since, ban;
  struct {
    int64_t a, b, c;
  } limits[BELAY_LIMITER_LIMITS_MAX];
} belay__limit_reply_t;

/* Create a policy with one reference. Returns 0, BELAY_EINVAL with a detail, or BELAY_ENOMEM. */
int belay__policy_new(belay_t *belay, const belay_limit_t *limits, size_t n, belay__policy_t **out);
void belay__policy_release(belay_t *belay, belay__policy_t *policy);

static inline belay__policy_t *belay__policy_retain(belay__policy_t *policy) {
  policy->refs++;
  return policy;
}

static inline bool belay__policy_is_log(const belay__policy_t *policy) {
  return policy->limits_len == 1 && policy->limits[0].kind == BELAY__LIMIT_LOG;
}

static inline size_t belay__policy_packed_len(const belay__policy_t *policy) {
  return 32 * policy->limits_len;
}

/* Append a number as a little-endian double; returns the address behind it. */
char *belay__policy_put(char *out, int64_t value);

/* Read a script's reply. Returns false if it is invalid. exact: NULL if the answer must be an
 * integer. Otherwise *exact gets the answer, and numbers->answer gets the answer rounded down. The
 * short form of a denial, an integer debt, leaves *exact unchanged. */
bool belay__policy_read(const belay__policy_t *policy, const belay__reply_t *reply, double *exact,
                        belay__limit_reply_t *numbers);

/* Set the fields of a result for a take of cost tokens: remaining, retry_after_us, reset_after_us.
 * retry_after_us is 0 if the take is admissible now, and -1 if it never is. Set `window` if a limit
 * blocks the take, and `banned` if a ban blocks it longest; otherwise leave them unchanged. */
void belay__policy_judge(const belay__policy_t *policy, const belay__limit_reply_t *numbers,
                         int64_t cost, belay_limiter_result_t *result);

/* Make the receipt of a take. numbers: the reply to the take. id: the id of the entries that the
 * take added to a log; 0 with other policies. */
void belay__policy_receipt(const belay__policy_t *policy, const belay__limit_reply_t *numbers,
                           int64_t cost, int64_t id, belay_receipt_t *receipt);

/* Change the reply to `takes` + 1 admitted takes of cost tokens each into the reply to the first of
 * them. The policy is not a log. */
void belay__policy_untake(const belay__policy_t *policy, int64_t cost, int64_t takes,
                          belay__limit_reply_t *numbers);

#define BELAY__RECEIPT_MAX (8 * (2 + BELAY_LIMITER_LIMITS_MAX))

/* Write ARGV[4] of a refund to `out`. Returns its length in bytes. */
size_t belay__policy_put_receipt(const belay__policy_t *policy, const belay_receipt_t *receipt,
                                 char out[BELAY__RECEIPT_MAX]);

#endif /* BELAY_LIMIT_POLICY_H */
