/* Shared by the files of the refiller. refiller.c has the diagram. */
#ifndef BELAY_LIMIT_REFILLER_REFILLER_H
#define BELAY_LIMIT_REFILLER_REFILLER_H

#include "belay/lock.h"
#include "belay/refiller.h"
#include "core/call/call.h"
#include "core/client/client.h"
#include "core/key/table.h"
#include "limit/refiller/bucket.h"

#define BELAY__REFILL_SLOTS_MAX 256 /* requests in flight at once */
#define BELAY__REFILL_UNKNOWN (-1)  /* an index */

typedef struct belay__refill_key belay__refill_key_t;

/* A request in flight, or memory for one. */
typedef struct belay__refill_slot {
  belay__list_t node; /* Link in refiller->slots or refiller->asked */
  belay_request_t request;
  belay_refiller_t *refiller;
  belay__refill_key_t *key; /* Key that the request is about; NULL: removed meanwhile */
  bool adds;
} belay__refill_slot_t;

/* A bucket to fill. */
struct belay__refill_key {
  belay__keyed_t keyed;   /* first */
  belay__list_t due_node; /* Link in table->due; unlinked: a request is in flight */
  belay__refill_slot_t *slot;
  uint64_t due; /* Time of the next request: a period after the last answer, in nanoseconds */
  int64_t index;
  uint64_t election; /* Election in which the index was learnt */
  int64_t tokens;    /* Tokens per filling; 0: the default of the refiller */
};

typedef struct belay__refill_table {
  belay__table_t table;
  belay__list_t due; /* Keys in the order of key->due */
} belay__refill_table_t;

struct belay_refiller {
  belay__child_t child;
  belay_bucket_t *bucket;
  belay_client_t *client;
  belay_lock_t *lock; /* The place; NULL: given back */
  belay__timer_t timer;
  belay__task_t task;
  belay_refiller_change_cb on_change;
  belay_refiller_round_cb on_round;
  belay_refiller_close_cb close_cb;
  void *data;
  uint64_t period; /* Time between two fillings, in nanoseconds */
  uint64_t next_round;
  int64_t lease_ms, tokens;
  belay__refill_table_t table;
  belay__list_t slots, asked; /* Unused slots; slots in flight */
  unsigned asked_len;
  belay__list_t requests; /* Pending requests of belay_refiller_members() */
  uint8_t state;
  belay_refiller_stats_t stats;
  size_t size, election_len;
  char election[]; /* Name of the semaphore */
};

static inline belay_t *belay__refiller_host(const belay_refiller_t *refiller) {
  return refiller->client->belay;
}

/* Check that a refiller can be used. Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
int belay__refiller_check(const belay_refiller_t *refiller);

/* ---- limit/refiller/table.c: the buckets ---- */

void belay__refill_table_init(belay__refill_table_t *table);

/* The bucket with this key; NULL if there is none. */
belay__refill_key_t *belay__refill_find(belay_refiller_t *refiller, const char *key, size_t len);

/* Add a bucket that is not in the table; it is due first. Returns 0, BELAY_EBUSY or
 * BELAY_ENOMEM. */
int belay__refill_add(belay_refiller_t *refiller, const char *key, size_t len,
                      belay__refill_key_t **out);

void belay__refill_drop(belay_refiller_t *refiller, belay__refill_key_t *key);

/* Remove some of the buckets. Returns true if none is left. */
bool belay__refill_clear(belay_refiller_t *refiller);

/* ---- limit/refiller/fill.c: rounds and fillings ---- */

/* Send requests for the keys that are due, up to the limit of slots, and set the timer for the
 * next one. */
void belay__refill(belay_refiller_t *refiller);

/* Cancel all requests in flight; belay__refiller_answered() is called for each. */
void belay__refill_cancel(belay_refiller_t *refiller);
void belay__refiller_answered(belay_refiller_t *refiller);

/* Free the memory of unused slots; none is in flight. */
void belay__refill_free_slots(belay_refiller_t *refiller);

/* ---- limit/refiller/refiller.c ---- */

/* true if the refiller may fill now. */
bool belay__refiller_fills(const belay_refiller_t *refiller);

#endif /* BELAY_LIMIT_REFILLER_REFILLER_H */
