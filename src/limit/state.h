/* Shared by the files of the limiter: the handle, and the state of one operation.
 *
 *    limiter.c                                options, creation, change of policy, close
 *       |
 *    take.c, operations.c, reserve.c          public functions
 *       |
 *    token_lease.c, group.c                   tokens that were fetched ahead; equal takes
 *       |
 *    request.c, refund.c                      one operation as a request; background refunds
 *       |
 *    denial_cache.c, fallback.c               cached denials; takes without a reply
 *       |
 *    command.c, policy.c                      the call; limits and replies as numbers
 *
 * A file includes headers of lower rows, and of its own row to its right. */
#ifndef BELAY_LIMIT_STATE_H
#define BELAY_LIMIT_STATE_H

#include "core/client/handle.h"
#include "core/key/table.h"
#include "limit/policy.h"

typedef struct belay__token_lease belay__token_lease_t;
typedef struct belay__limit_queue belay__limit_queue_t;

typedef enum belay__limiter_verb {
  BELAY__LIMITER_TAKE,
  BELAY__LIMITER_LEASE, /* a fetch of a token lease; the scripts call it slice */
  BELAY__LIMITER_PEEK,
  BELAY__LIMITER_PENALTY,
  BELAY__LIMITER_REFUND,
  BELAY__LIMITER_RESET,
  BELAY__LIMITER_BAN,
  BELAY__LIMITER_RESERVE,
  BELAY__LIMITER_CANCEL,
  BELAY__LIMITER_WAIT
} belay__limiter_verb_t;

#define BELAY__DENIED_EPOCHS 64

/* A denial: takes of `cost` tokens or more are denied for retry_us microseconds. In the cache,
 * retry_us starts just before the call was sent; in a result, it starts now. */
typedef struct belay__denial {
  int64_t cost, retry_us;
  unsigned window;
  bool banned;
} belay__denial_t;

struct belay_limiter {
  belay__handle_t handle; /* first */
  belay__policy_t *policy;
  belay_limiter_options_t options; /* The options without name and limits, which are not kept */
  struct {
    belay__table_t table; /* Denials by key. belay__limiter_hash() uses this table's seed */
    belay__heap_t first;  /* Denials, the first to end at the root */
    uint32_t epochs[BELAY__DENIED_EPOCHS];
  } denied; /* for denial_cache.c */
  struct {
    belay__table_t table; /* Token leases by key; hash: belay__limiter_hash() */
    belay__list_t all;
  } leases; /* for token_lease.c */
  struct {
    belay__table_t table; /* Local buckets by belay__limiter_hash(), without keys */
    belay__list_t used;   /* Local buckets, the least recently used first */
    struct belay__local_bucket *shared;
  } fallback;            /* for fallback.c: buckets of BELAY_AWAY_LOCAL */
  belay__table_t queues; /* for reserve.c: a belay__limit_queue_t per key with waits */
  /* Time that tests pass to the scripts, in microseconds; 0: the server's time */
  int64_t time;
  belay_limiter_stats_t stats;
};

/* One operation, stored in the values of its request. */
typedef struct belay__limit_op {
  belay__policy_t *policy; /* Policy that applies to the operation; one reference */
  int64_t cost;
  union {
    int64_t id;      /* Id of the entries that a take or penalty adds to a log */
    double returned; /* Tokens that a refund or cancel gave back */
  };
  uint8_t verb;   /* A belay__limiter_verb_t */
  uint8_t source; /* A belay_source_t */
  uint32_t epoch; /* belay__denied_epoch() of the key when the command was sent */
  uint64_t hash;  /* belay__limiter_hash() of the key */
  belay_reservation_t reservation;
  union {
    belay__limit_queue_t *queue; /* Queue of a wait */
    belay__token_lease_t *lease; /* Token lease for which a take waits; NULL: none */
  };
  union {
    belay__limit_reply_t numbers; /* Reply of the server */
    belay__denial_t denial;       /* BELAY_SOURCE_DENIAL: the cached denial */
  };
} __attribute__((may_alias)) belay__limit_op_t;

_Static_assert(sizeof(belay__limit_op_t) <= BELAY__REQUEST_VALUES * sizeof(int64_t), "it has room");

static inline belay__limit_op_t *belay__limit_op_of(belay__operation_t *operation) {
  return (belay__limit_op_t *)(void *)operation->values;
}

static inline belay_t *belay__limiter_belay(const belay_limiter_t *limiter) {
  return limiter->handle.client->belay;
}

/* Return the hash of a key in the tables of denials, token leases and local buckets. */
static inline uint64_t belay__limiter_hash(belay_limiter_t *limiter, belay_bytes_t key) {
  return belay__table_hash(belay__limiter_belay(limiter), &limiter->denied.table, key.data,
                           key.len);
}

#endif /* BELAY_LIMIT_STATE_H */
