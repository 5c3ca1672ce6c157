/* What the files of the limiter share: the handle, and the state of one operation.
 *
 *   limiter.c                                options, a new limiter, another policy, its end
 *      |
 *   take.c, operations.c, reserve.c          what users call
 *      |
 *   token_lease.c                            tokens that were taken ahead
 *      |
 *   request.c, refund.c                      one operation as a request; what is given back in the background
 *      |
 *   command.c, denial_cache.c, fallback.c    the call; denials that are remembered; answers while the server is away
 *      |
 *   policy.c, denial_table.c                 limits and replies as numbers; the table of denials
 *
 * A file includes headers of lower rows, and of its own row to its right. */
#ifndef BELAY_LIMIT_STATE_H
#define BELAY_LIMIT_STATE_H

#include "core/client/handle.h"
#include "core/key/keyed.h"
#include "limit/denial_table.h"
#include "limit/policy.h"

typedef struct belay__token_lease belay__token_lease_t;
typedef struct belay__limit_queue belay__limit_queue_t;

typedef enum belay__limiter_verb {
  BELAY__LIMITER_TAKE,
  BELAY__LIMITER_LEASE, /* a take of as many tokens as there are */
  BELAY__LIMITER_PEEK,
  BELAY__LIMITER_PENALTY,
  BELAY__LIMITER_REFUND,
  BELAY__LIMITER_RESET,
  BELAY__LIMITER_BAN,
  BELAY__LIMITER_RESERVE,
  BELAY__LIMITER_CANCEL,
  BELAY__LIMITER_WAIT
} belay__limiter_verb_t;

struct belay_limiter {
  belay__handle_t handle; /* first */
  belay_client_t *client; /* the handle's */
  belay__policy_t *policy;
  belay_limiter_options_t options; /* without the name and the limits, which are not kept */
  belay__denied_t denied;
  struct {
    belay__table_t table; /* by the keys' hashes, which are belay__limiter_hash()'s */
    belay__list_t all;
  } leases; /* token_lease.c */
  struct {
    belay__table_t table; /* by the same hashes */
    belay__list_t used;   /* the least recently used bucket first */
    struct belay__local_bucket *shared;
  } fallback;            /* fallback.c: the buckets of BELAY_AWAY_LOCAL */
  belay__table_t queues; /* reserve.c: keys that requests wait for */
  int64_t time;          /* of the scripts, in microseconds; 0: they ask the server. Tests set it */
  belay_limiter_stats_t stats;
};

/* One operation: what is in its request's values. */
typedef struct belay__limit_op {
  belay__policy_t *policy; /* under which it was sent; a reference */
  int64_t cost;
  union {
    int64_t id;      /* of the entries that a take adds to a log */
    double returned; /* of a refund and a cancel: tokens */
  };
  uint8_t verb;   /* belay__limiter_verb_t */
  uint8_t source; /* belay_source_t */
  uint32_t epoch; /* of its key, when it was sent: belay__denied_epoch() */
  uint64_t hash;  /* of its key: belay__limiter_hash() */
  belay_reservation_t reservation;
  union {
    belay__limit_queue_t *queue; /* of a wait */
    belay__token_lease_t *lease; /* of a take that waits for it; or NULL */
  };
  belay__limit_reply_t numbers; /* what the server says */
} __attribute__((may_alias)) belay__limit_op_t;

_Static_assert(sizeof(belay__limit_op_t) <= BELAY__REQUEST_VALUES * sizeof(int64_t), "it has room");

static inline belay__limit_op_t *belay__limit_op_of(belay__operation_t *operation) {
  return (belay__limit_op_t *)(void *)operation->values;
}

/* The hash of a key in the tables of denials, leases and fallback buckets. */
static inline uint64_t belay__limiter_hash(belay_limiter_t *limiter, const char *key, size_t len) {
  return belay__table_hash(limiter->client->belay, &limiter->denied.table, key, len);
}

#endif /* BELAY_LIMIT_STATE_H */
