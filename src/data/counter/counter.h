/* Shared by the files of counters: one key, many keys, fields of a hash, and locally added sums. */
#ifndef BELAY_DATA_COUNTER_COUNTER_H
#define BELAY_DATA_COUNTER_COUNTER_H

#include "belay/counter.h"
#include "core/client/handle.h"

#define BELAY__COUNTER_NUMBER_MAX 20 /* characters of a number: a sign and 19 digits */
#define BELAY__COUNTER_TAIL_MAX 256  /* bytes behind a key, the 0 included */
#define BELAY__COUNTER_LABEL_BYTES 16

/* A sum that was added locally and is not on the server yet; belongs to local.c. */
typedef struct belay__tally belay__tally_t;

typedef struct belay__counter_local {
  belay__table_t table; /* of tallies, by key */
  belay__list_t ready;  /* that may be sent when the timer fires */
  belay__list_t sent;   /* that wait for an answer */
  belay__list_t lost;   /* lost sums that are still to be reported */
  belay__tally_t *last; /* that was added to; NULL: none, or it is gone */
  belay__timer_t timer; /* the next flush; set while there is something ready */
  belay__task_t task;   /* tells of those that are lost */
  uint64_t until;       /* closing: it ends then */
  uint64_t flushed;     /* when the last flush was */
  uint64_t asked;       /* when one was last asked for */
  uint64_t number;      /* of the last sum; part of its operation id */
  int64_t adds;         /* since the last flush */
  unsigned open;        /* how many are SENT */
  bool more;            /* some were due, and wait for answers to the others */
  bool ended;           /* nothing is sent any more */
  char label[2 * BELAY__COUNTER_LABEL_BYTES + 1]; /* tells our operation ids from another's */
  belay_counter_stats_t stats;
} belay__counter_local_t;

struct belay_counter {
  belay__handle_t handle; /* first */
  belay_counter_lost_cb on_lost;
  int64_t ttl_ms, op_ttl_ms, batch_ms, batch_max;
  size_t max_keys;
  int64_t max_ops;       /* recorded operations of a counter; 0: each is a key */
  unsigned shards, turn; /* turn: the next shard to be added to */
  bool extend_ttl;       /* each add makes it live for ttl_ms again */
  belay__counter_local_t local;
};

/* ---- one key (counter.c) --------------------------------------------------------------------------------- */

/* Whether the handle's counters are in one key each; else BELAY_EINVAL, which says what cannot be done. */
int belay__counter_whole(const belay_counter_t *counter, const char *what);

/* Adds the key of a counter; of that shard, if it has several. */
void belay__counter_arg(const belay_counter_t *counter, belay__call_t *call, const char *key,
                        size_t key_len, unsigned shard);

/* The call that adds to a counter: to the shard whose turn it is; NULL if memory is out. */
belay__call_t *belay__counter_add_call(belay_counter_t *counter, const char *key, size_t key_len,
                                       int64_t delta);

/* The call that adds once; record_ms: how long that is known. */
belay__call_t *belay__counter_once_call(const belay_counter_t *counter, const char *key,
                                        size_t key_len, int64_t delta, const void *id,
                                        size_t id_len, int64_t record_ms);

/* The call that reads a counter, or one of its shards. */
belay__call_t *belay__counter_get_call(const belay_counter_t *counter, const char *key,
                                       size_t key_len, unsigned shard);

/* ---- replies (reply.c) --------------------------------------------------------------------------- */

/* The values of a request with one result. */
enum { BELAY__COUNTER_APPLIED, BELAY__COUNTER_FOUND, BELAY__COUNTER_VALUE, BELAY__COUNTER_MORE };

/* Call back with these values. */
void belay__counter_tell(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer);

/* A number that was read, or nil: then *found is false, and *out is 0. 0, BELAY_EWRONGTYPE (with a detail) or
 * BELAY_EPROTO. */
int belay__counter_look(const belay__call_t *call, const belay__reply_t *reply, bool *found,
                        int64_t *out);

/* Whether it was added, and the value now: of INCRBY, or of the scripts that add to one key or add once. */
int belay__counter_added(const belay__call_t *call, const belay__reply_t *reply, bool *applied,
                         int64_t *out);

/* A sum that knows no bounds, until it is asked for. */
typedef struct belay__sum {
  int64_t high, low; /* high * 2^32 + low */
  bool found;
} belay__sum_t;

void belay__sum_add(belay__sum_t *sum, int64_t value);
/* 0, or BELAY_EOVERFLOW. */
int belay__sum_value(const belay__sum_t *sum, int64_t *out);

/* ---- several results (many.c) -------------------------------------------------------------------- */

/* The beginning of the room of a request about n counters. */
typedef struct belay__counter_many {
  size_t n;
  belay_counter_result_t results[];
} belay__counter_many_t;

/* Begin a request about n things: its results have no status yet, and `more` bytes are behind them. */
int belay__counter_begin_many(belay_counter_t *counter, belay_request_t *request,
                              const belay__request_ops_t *ops, size_t n, size_t more,
                              belay_counter_many_cb cb, belay__operation_t **out);

/* Calls back with all results; a result without a status gets the status of the request. */
void belay__counter_tell_many(belay_request_t *request, void (*cb)(void),
                              const belay__answer_t *answer);

/* ---- what is added here first (local.c) ---------------------------------------------------------- */

void belay__counter_local_init(belay_counter_t *counter,
                               const uint8_t label[BELAY__COUNTER_LABEL_BYTES]);
void belay__counter_local_close(belay_counter_t *counter);
void belay__counter_local_abort(belay_counter_t *counter);
void belay__counter_local_free(belay_counter_t *counter);

#endif /* BELAY_DATA_COUNTER_COUNTER_H */
