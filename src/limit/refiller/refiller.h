/* What the parts of a refiller share. refiller.c has the diagram. */
#ifndef BELAY_LIMIT_REFILLER_REFILLER_H
#define BELAY_LIMIT_REFILLER_REFILLER_H

#include "belay/lock.h"
#include "belay/refiller.h"
#include "core/call/call.h"
#include "core/client/client.h"
#include "core/key/keyed.h"
#include "limit/refiller/bucket.h"

#define BELAY__REFILL_SLOTS_MAX 256 /* questions that are out at once */
#define BELAY__REFILL_UNKNOWN (-1)  /* an index */

typedef struct belay__refill_key belay__refill_key_t;

/* A question that is out, or memory for one. */
typedef struct belay__refill_slot {
  belay__list_t node; /* in refiller->slots or refiller->asked */
  belay_request_t request;
  belay_refiller_t *refiller;
  belay__refill_key_t *key; /* NULL: it was taken out meanwhile */
  bool adds;
} belay__refill_slot_t;

/* A bucket that is filled. */
struct belay__refill_key {
  belay__keyed_t keyed;   /* first */
  belay__list_t due_node; /* in table->due, or alone: asked */
  belay__refill_slot_t *slot;
  uint64_t due; /* when it may be asked: a period after the last answer */
  int64_t index;
  uint64_t election; /* in which it was learnt */
  int64_t tokens;    /* 0: as many as all */
};

typedef struct belay__refill_table {
  belay__table_t table;
  belay__list_t due; /* in the order of key->due: all are asked a period after they were last */
} belay__refill_table_t;

struct belay_refiller {
  belay__child_t child;
  belay_bucket_t *bucket;
  belay_client_t *client;
  belay_lock_t *lock; /* the place; NULL: given back */
  belay__timer_t timer;
  belay__task_t task;
  belay_refiller_change_cb on_change;
  belay_refiller_round_cb on_round;
  belay_refiller_close_cb close_cb;
  void *data;
  uint64_t period; /* nanoseconds */
  uint64_t next_round;
  int64_t lease_ms, tokens;
  belay__refill_table_t table;
  belay__list_t slots, asked; /* free ones; those that are out */
  unsigned asked_len;
  belay__list_t requests; /* of belay_refiller_members(), pending */
  uint8_t state;
  belay_refiller_stats_t stats;
  size_t size, election_len;
  char election[]; /* the semaphore's name */
};

static inline belay_t *belay__refiller_host(const belay_refiller_t *refiller) {
  return refiller->client->belay;
}

/* 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
int belay__refiller_check(const belay_refiller_t *refiller);

/* ---- limit/refiller/table.c: the buckets ---- */

void belay__refill_table_init(belay__refill_table_t *table);

/* NULL: it is not there. */
belay__refill_key_t *belay__refill_find(belay_refiller_t *refiller, const char *key, size_t len);

/* Adds one that is not there, to be asked next. Returns 0, BELAY_EBUSY or BELAY_ENOMEM. */
int belay__refill_add(belay_refiller_t *refiller, const char *key, size_t len,
                      belay__refill_key_t **out);

void belay__refill_drop(belay_refiller_t *refiller, belay__refill_key_t *key);

/* Drops some of all that are left; whether none is. */
bool belay__refill_clear(belay_refiller_t *refiller);

/* ---- limit/refiller/fill.c: rounds and fillings ---- */

/* Asks for what is due, as far as it may, and sets the timer for what comes next. */
void belay__refill(belay_refiller_t *refiller);

/* Ends all questions that are out; each is told, as belay__refiller_answered() hears. */
void belay__refill_cancel(belay_refiller_t *refiller);
void belay__refiller_answered(belay_refiller_t *refiller);

/* Gives the memory of questions back; none is out. */
void belay__refill_free_slots(belay_refiller_t *refiller);

/* ---- limit/refiller/refiller.c ---- */

/* Whether it may fill now. */
bool belay__refiller_fills(const belay_refiller_t *refiller);

#endif /* BELAY_LIMIT_REFILLER_REFILLER_H */
