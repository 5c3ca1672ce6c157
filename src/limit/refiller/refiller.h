/* Shared by the files of the refiller. refiller.c has the diagram. */
#ifndef BELAY_LIMIT_REFILLER_REFILLER_H
#define BELAY_LIMIT_REFILLER_REFILLER_H

#include "belay/lock.h"
#include "belay/refiller.h"
#include "core/key/table.h"
#include "limit/refiller/bucket.h"

typedef struct belay__filling belay__filling_t;

/* A bucket to fill. */
typedef struct belay__refill_key {
  belay__keyed_t keyed;      /* first */
  belay__list_t due_node;    /* Link in refiller->due; unlinked: a request is in flight */
  belay__filling_t *filling; /* Request in flight; or NULL */
  /* Time of the next request: a period after the end of the last request; 0: at once */
  uint64_t due;
  int64_t index;     /* Index of the next filling; -1: unknown */
  uint64_t election; /* Election in which a reply reported the index */
  int64_t tokens;    /* Tokens per filling; 0: the default of the refiller */
} belay__refill_key_t;

struct belay_refiller {
  belay__child_t child;
  belay_bucket_t *bucket;
  belay_lock_t *lock; /* Semaphore whose permit is the place; NULL: closed */
  belay__timer_t timer;
  belay__task_t task;
  belay_refiller_change_cb on_change;
  belay_refiller_round_cb on_round;
  belay_refiller_close_cb close_cb;
  void *data;
  uint64_t period; /* Shortest time between two fillings of a bucket, in nanoseconds */
  uint64_t next_round;
  int64_t lease_ms, tokens;
  belay__table_t keys;
  belay__list_t due;       /* Keys without a request in flight, in the order of key->due */
  belay__list_t in_flight; /* Requests in flight */
  unsigned in_flight_len;
  uint8_t state;
  belay_refiller_stats_t stats;
  size_t size, election_len;
  char election[]; /* Name of the semaphore, with a terminating 0 */
};

static inline belay_t *belay__refiller_belay(const belay_refiller_t *refiller) {
  return refiller->bucket->handle.client->belay;
}

/* ---- limit/refiller/fill.c: the buckets, and their fillings ---- */

/* Send requests for the keys that are due, up to the limit of requests in flight, and set the
 * timer for the next one. */
void belay__refill(belay_refiller_t *refiller);

/* Cancel all requests in flight. belay__refiller_replied() runs at the end of each. */
void belay__refill_cancel(belay_refiller_t *refiller);

/* Remove up to 1000 keys. No request may be in flight. Returns true if no key is left; then the
 * table is freed too. */
bool belay__refill_clear(belay_refiller_t *refiller);

/* ---- limit/refiller/refiller.c ---- */

/* Check a refiller and a key. Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
int belay__refiller_check_key(const belay_refiller_t *refiller, belay_bytes_t key);

/* true if the refiller may fill now: it is elected, and the lease of its place is not over. */
bool belay__refiller_fills(const belay_refiller_t *refiller);

/* true if the refiller is elected and the lock has not reported the loss of its place. The lease of
 * the place may be over already. */
bool belay__refiller_is_elected(const belay_refiller_t *refiller);

/* Call this when a request in flight has ended, or the lock has closed: fill on, or end a close. */
void belay__refiller_replied(belay_refiller_t *refiller);

#endif /* BELAY_LIMIT_REFILLER_REFILLER_H */
