/* Random operations on limited keys, with times of their own, and the expected results of
 * limit.lua. */
#ifndef TEST_SUPPORT_MODELS_LIMIT_OPS_H
#define TEST_SUPPORT_MODELS_LIMIT_OPS_H

#include "support/models/limit_model.h"
#include "support/models/limit_suite.h"

#define LIMIT_KEYS 6
#define LIMIT_RECORDS 3 /* reservations of a key */
#define LIMIT_RECEIPTS 6

typedef struct limit_receipt {
  int64_t taken, since, cost;
  int64_t thirds[LIMIT_RULES];
} limit_receipt_t;

typedef struct limit_key {
  limit_state_t state;
  limit_policy_t policy;
  limit_record_t record[LIMIT_RECORDS];
  limit_receipt_t receipt[LIMIT_RECEIPTS];
  size_t receipts;
  int64_t now, ends;
  bool garbled; /* something else is there */
  bool calm;    /* little time passes */
} limit_key_t;

typedef struct limit_world {
  limit_chance_t chance;
  limit_key_t key[LIMIT_KEYS];
} limit_world_t;

/* The operations on a key. */
typedef enum limit_deed {
  LIMIT_ASK,
  LIMIT_FORGET, /* the key and the record are removed */
  LIMIT_DROP,   /* the record is */
  LIMIT_GARBLE  /* something else is put in the key's place */
} limit_deed_t;

typedef struct limit_case {
  limit_deed_t deed;
  size_t key, record;
  limit_policy_t policy;
  limit_request_t request; /* LIMIT_ASK */
  limit_state_t before;
  bool garbled; /* something else is there, before and afterwards */
  limit_outcome_t outcome;
  limit_state_t after;
  limit_record_t record_after;
} limit_case_t;

void limit_world_init(limit_world_t *world, uint64_t seed);
void limit_world_next(limit_world_t *world, limit_case_t *out);

#endif /* TEST_SUPPORT_MODELS_LIMIT_OPS_H */
