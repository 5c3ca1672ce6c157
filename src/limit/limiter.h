/* belay_limiter_t: a policy and what is pending under it. A close waits until each request has been told and each errand
 * is over, or the client is out of patience. A request is one call, or an answer that is here already; core/client/request.h
 * has its states. */
#ifndef BELAY_LIMIT_LIMITER_H
#define BELAY_LIMIT_LIMITER_H

#include "core/client/handle.h"
#include "limit/fallback.h"
#include "limit/denial_table.h"
#include "limit/policy.h"
#include "limit/token_lease.h"

typedef struct belay__queue belay__queue_t;

typedef enum belay__limiter_op {
  BELAY__LIMITER_TAKE,
  BELAY__LIMITER_SLICE,
  BELAY__LIMITER_PEEK,
  BELAY__LIMITER_PENALTY,
  BELAY__LIMITER_REFUND,
  BELAY__LIMITER_RESET,
  BELAY__LIMITER_BAN,
  BELAY__LIMITER_RESERVE,
  BELAY__LIMITER_CANCEL,
  BELAY__LIMITER_WAIT
} belay__limiter_op_t;

struct belay_limiter {
  belay__family_t family; /* first */
  belay_client_t *client; /* the family's */
  belay__policy_t *policy;
  belay_limiter_options_t options; /* its name and limits are not kept */
  belay__list_t errands;           /* what is given back in the background; refund.c's */
  belay__denied_t denied;
  belay__slices_t slices;
  belay__away_t away;
  belay__table_t queues; /* keys that are waited for; reserve.c's */
  int64_t time; /* what scripts are told, in microseconds; 0: they ask the server. Tests set it */
  belay_limiter_stats_t stats;
};

/* What is in a request's values. */
struct belay__wanted {
  belay__policy_t *policy; /* under which it was asked; a reference */
  int64_t cost;
  union {
    int64_t id;      /* of what a log's take adds */
    double returned; /* of a refund and a cancel: tokens */
  };
  uint8_t op;     /* belay__limiter_op_t */
  uint8_t source; /* belay_source_t */
  uint32_t epoch; /* of its key, when it was sent */
  uint64_t hash;  /* of its key */
  belay_reservation_t reservation;
  union {
    belay__queue_t *queue; /* of a wait */
    belay__slice_t *slice; /* of a take: that it waits for */
  };
  belay__owed_t owed; /* what the server says */
} __attribute__((may_alias));

_Static_assert(sizeof(belay__wanted_t) <= BELAY__REQUEST_VALUES * sizeof(int64_t), "it has room");

static inline belay__wanted_t *belay__wanted_of(belay__pending_t *pending) {
  return (belay__wanted_t *)(void *)pending->values;
}

/* What a script is called with. */
typedef struct belay__question {
  belay__limiter_op_t op;
  const char *key;
  size_t key_len;
  int64_t cost;
  const char *more; /* ARGV[4] */
  size_t more_len;
  const belay_reservation_t *reservation; /* NULL: no second key */
} belay__question_t;

/* The call that asks it; NULL if memory is out. */
belay__call_t *belay__limiter_call(belay_limiter_t *limiter, const belay__question_t *question);

/* 0 or an error, with a detail: what all operations check. */
int belay__limiter_check(belay_limiter_t *limiter, const char *key, size_t key_len);
int belay__limiter_check_request(belay_limiter_t *limiter, const belay_request_t *request,
                                 const char *key, size_t key_len, belay_limiter_cb cb);

/* 0, or BELAY_EINVAL with a detail. */
int belay__limiter_range(belay_limiter_t *limiter, const char *what, int64_t value, int64_t min,
                         int64_t max);

/* What requests do with a reply, and how they tell. */
int belay__limiter_read(belay__pending_t *pending, const belay__call_t *call,
                        const belay__reply_t *reply);
void belay__limiter_tell(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer);

/* The call that gives back so many of what a receipt is for. */
belay__call_t *belay__limiter_refund_call(belay_limiter_t *limiter, const char *key, size_t key_len,
                                          const belay_receipt_t *receipt, int64_t tokens);

/* The key, at most so long as it is escaped, that a script was called for; false if it is none of this limiter's. */
bool belay__limiter_key_of(const belay_limiter_t *limiter, const belay__call_t *call,
                           char out[3 * BELAY_LIMITER_KEY_MAX], size_t *len);

/* The hash of a key in the tables of what is known. */
static inline uint64_t belay__limiter_hash(belay_limiter_t *limiter, const char *key, size_t len) {
  return belay__table_hash(limiter->client->belay, &limiter->denied.table, key, len);
}

/* Reads the reply to the fetch of a slice: the answer is -1, or 1 to asked. False: it is none, and the connection is not
 * trusted any more. */
bool belay__limiter_read_grant(const belay__policy_t *policy, belay__call_t *call,
                               const belay__reply_t *reply, int64_t asked, belay__owed_t *owed);

/* Begins a request: PARKED, with its values set. */
int belay__limiter_begin(belay_limiter_t *limiter, belay_request_t *request,
                         const belay__request_ops_t *ops, belay__limiter_op_t op, int64_t cost,
                         belay_limiter_cb cb, belay__pending_t **out);

/* Asks; on an error the request is PARKED still. A log's id for what is added is drawn here. */
int belay__limiter_send(belay_limiter_t *limiter, belay__pending_t *pending,
                        const belay__question_t *question);

/* The same; an operation that fails here was never begun. */
int belay__limiter_ask(belay_limiter_t *limiter, belay__pending_t *pending,
                       const belay__question_t *question);

/* Ends one that is PARKED without its being told. */
void belay__limiter_forget(belay__pending_t *pending);

/* Ends one that is PARKED, without the server. */
void belay__limiter_answer(belay__pending_t *pending, belay_source_t source, int64_t answer);

#endif /* BELAY_LIMIT_LIMITER_H */
