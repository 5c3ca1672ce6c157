/* What the script limit.lua is to do, said once more: in whole numbers, of 128 bits where products are formed, and from
 * its contract alone. */
#ifndef TEST_SUPPORT_MODELS_LIMIT_MODEL_H
#define TEST_SUPPORT_MODELS_LIMIT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIMIT_RULES 4
#define LIMIT_DEBT_MOST ((INT64_C(1) << 53) - 1) /* units of a bucket's debt */
#define LIMIT_UNITS_MOST (INT64_C(1) << 52)      /* of a burst; and tokens times P of a window */

typedef enum limit_kind {
  LIMIT_BUCKET = 1,
  LIMIT_SLIDING,
  LIMIT_FIXED,
  LIMIT_ALIGNED,
  LIMIT_ALLOTMENT
} limit_kind_t;

/* One limit of a policy. */
typedef struct limit_rule {
  limit_kind_t kind;
  int64_t p; /* bucket: units of a token; else microseconds */
  int64_t r; /* bucket: units that leak in a microsecond; else 0 */
  int64_t b; /* bucket: units that it holds; else tokens */
} limit_rule_t;

typedef struct limit_policy {
  size_t count;
  limit_rule_t rule[LIMIT_RULES];
} limit_policy_t;

/* What is owed under one of them. */
typedef struct limit_owed {
  int64_t
      a; /* bucket: the debt; else when the window began: means nothing if there is nothing in it */
  int64_t
      b; /* bucket: the debt without what was given back below other debts; else tokens in the window */
  int64_t c; /* sliding: tokens in the window before */
  limit_rule_t rule;
} limit_owed_t;

typedef struct limit_state {
  int64_t at, since;
  int64_t ban;  /* until then; 0 or past: there is none */
  int64_t last; /* when the last of those who have reserved acts; 0: none waits */
  size_t count; /* 0: there is no such key */
  limit_owed_t owed[LIMIT_RULES];
} limit_state_t;

/* What is remembered of a reservation. */
typedef struct limit_record {
  enum { LIMIT_NO_RECORD, LIMIT_RESERVED, LIMIT_CANCELED } what;
  int64_t act, taken, since, cost;
  size_t count;
  int64_t thirds[LIMIT_RULES];
  double returned; /* LIMIT_CANCELED */
} limit_record_t;

typedef enum limit_op {
  LIMIT_TAKE,
  LIMIT_SLICE,
  LIMIT_PEEK,
  LIMIT_PENALTY,
  LIMIT_REFUND,
  LIMIT_BAN,
  LIMIT_RESERVE,
  LIMIT_CANCEL
} limit_op_t;

typedef struct limit_request {
  limit_op_t op;
  const limit_policy_t *policy;
  int64_t cost, now;
  int64_t fewest;                            /* LIMIT_SLICE */
  int64_t taken, since, thirds[LIMIT_RULES]; /* LIMIT_REFUND */
  int64_t ban_us;                            /* LIMIT_BAN */
  int64_t longest;                           /* LIMIT_RESERVE */
  int64_t remember;                          /* LIMIT_RESERVE, LIMIT_CANCEL */
} limit_request_t;

/* What becomes of a key. */
typedef enum limit_change { LIMIT_KEPT, LIMIT_SET, LIMIT_GONE } limit_change_t;

typedef struct limit_outcome {
  int64_t answer;     /* -1: denied */
  double returned;    /* LIMIT_REFUND, LIMIT_CANCEL: tokens, which answer has rounded down */
  limit_state_t told; /* as of now */
  limit_change_t key, record;
  int64_t key_ttl_ms, record_ttl_ms; /* LIMIT_SET */
} limit_outcome_t;

/* Does it; what there is at both keys is changed as the server's is to be. record may be NULL where none is asked for. */
limit_outcome_t limit_model(limit_state_t *state, limit_record_t *record,
                            const limit_request_t *request);

/* For whoever looks for the limits: when the same cost, if alone, would be admitted by what is told; -1: never. */
int64_t limit_model_retry(const limit_state_t *told, int64_t cost);

#endif /* TEST_SUPPORT_MODELS_LIMIT_MODEL_H */
