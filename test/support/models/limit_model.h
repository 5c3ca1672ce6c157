/* A second statement of the contract of limit.lua: in integers, with 128 bits for products. */
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

/* The debt under one limit. */
typedef struct limit_used {
  /* Bucket: the debt. Others: the start of the window; void if there is nothing in it. */
  int64_t a;
  /* Bucket: the debt without refunds below other debts. Others: tokens in the window. */
  int64_t b;
  int64_t c; /* sliding: tokens in the window before */
  limit_rule_t rule;
} limit_used_t;

typedef struct limit_state {
  int64_t at, since;
  int64_t ban;  /* until then; 0 or past: there is none */
  int64_t last; /* when the last of those who have reserved acts; 0: none waits */
  size_t count; /* 0: there is no such key */
  limit_used_t used[LIMIT_RULES];
} limit_state_t;

/* The record of a reservation. */
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
  int64_t takes;                             /* LIMIT_TAKE: how many; 0: one */
  int64_t taken, since, thirds[LIMIT_RULES]; /* LIMIT_REFUND */
  int64_t ban_us;                            /* LIMIT_BAN */
  int64_t longest;                           /* LIMIT_RESERVE */
  int64_t remember;                          /* LIMIT_RESERVE, LIMIT_CANCEL */
} limit_request_t;

/* The change of a key. */
typedef enum limit_change { LIMIT_KEPT, LIMIT_SET, LIMIT_GONE } limit_change_t;

typedef struct limit_outcome {
  int64_t answer;      /* -1: denied */
  double returned;     /* LIMIT_REFUND, LIMIT_CANCEL: tokens, which answer has rounded down */
  limit_state_t reply; /* as of now */
  limit_change_t key, record;
  int64_t key_ttl_ms, record_ttl_ms; /* LIMIT_SET */
} limit_outcome_t;

/* Executes a request and changes both keys as the server must. record may be NULL if none is
 * used. */
limit_outcome_t limit_model(limit_state_t *state, limit_record_t *record,
                            const limit_request_t *request);

/* For searches of a limit: the time at which the same cost alone would be admitted, by the
 * result; -1: never. */
int64_t limit_model_retry(const limit_state_t *reply, int64_t cost);

#endif /* TEST_SUPPORT_MODELS_LIMIT_MODEL_H */
