/* Shared by the files of counters: one key, many keys, fields of a hash, and locally added sums. */
#ifndef BELAY_DATA_COUNTER_COUNTER_H
#define BELAY_DATA_COUNTER_COUNTER_H

#include "belay/counter.h"
#include "core/client/handle.h"

#define BELAY__COUNTER_NUMBER_MAX 20 /* characters of a number: a sign and 19 digits */
#define BELAY__COUNTER_LABEL_BYTES 16

/* The local adds of one key; belongs to local.c. */
typedef struct belay__adder belay__adder_t;

typedef struct belay__counter_local {
  belay__table_t table;  /* Adders by key */
  belay__list_t ready;   /* Adders in state READY */
  belay__list_t sent;    /* Adders in state SENT */
  belay__list_t lost;    /* Adders in state LOST */
  belay__adder_t *last;  /* Adder of the last add; NULL: none, or it is freed */
  belay__timer_t timer;  /* Next flush; set while an adder is READY */
  belay__task_t task;    /* Reports lost sums */
  uint64_t until;        /* Closing: deadline of the sums */
  uint64_t flushed;      /* Time of the last flush */
  uint64_t requested_at; /* Time of the last belay_counter_flush() */
  uint64_t number;       /* Number of the last sum; part of its operation id */
  int64_t adds;          /* Adds since the last flush */
  unsigned open;         /* Number of adders in state SENT */
  bool postponed;        /* true if sums are due and wait for replies to others */
  bool ended;            /* true if no sum is sent any more */
  char label[2 * BELAY__COUNTER_LABEL_BYTES + 1]; /* Random part of the operation ids */
  belay_counter_stats_t stats;
} belay__counter_local_t;

struct belay_counter {
  belay__handle_t handle;
  belay_counter_options_t options;
  unsigned turn; /* Shard of the next add */
  belay__counter_local_t local;
};

/* ---- one key (counter.c) ---- */

/* Returns BELAY_EINVAL if the counters have shards. what: the operation that needs one key. */
int belay__counter_whole(const belay_counter_t *counter, const char *what);

/* Add the key of a counter, or of one of its shards. */
void belay__counter_arg(const belay_counter_t *counter, belay__call_t *call, belay_bytes_t key,
                        unsigned shard);

/* Make the call that adds to a counter, in the next shard. NULL: memory is out. */
belay__call_t *belay__counter_add_call(belay_counter_t *counter, belay_bytes_t key, int64_t delta);

/* Make the call that adds once. record_ms: lifetime of the record. */
belay__call_t *belay__counter_once_call(const belay_counter_t *counter, belay_bytes_t key,
                                        int64_t delta, belay_bytes_t id, int64_t record_ms);

/* Make the call that reads a counter, or one of its shards. */
belay__call_t *belay__counter_get_call(const belay_counter_t *counter, belay_bytes_t key,
                                       unsigned shard);

/* ---- replies (reply.c) ---- */

/* The values of a request with one result. */
enum { BELAY__COUNTER_APPLIED, BELAY__COUNTER_FOUND, BELAY__COUNTER_VALUE };

/* Call back with these values. */
void belay__counter_notify(belay_request_t *request, void (*cb)(void),
                           const belay__answer_t *answer);

/* Read a number, or nil: then *found is false and *out is 0. Returns 0, BELAY_EWRONGTYPE (with a
 * detail) or BELAY_EPROTO. */
int belay__counter_look(const belay__call_t *call, const belay__reply_t *reply, bool *found,
                        int64_t *out);

/* Read the reply of INCRBY, or of the scripts that add to one key. *applied: true if delta was
 * added. *out: the value now. */
int belay__counter_added(const belay__call_t *call, const belay__reply_t *reply, bool *applied,
                         int64_t *out);

/* The sum of at most BELAY_COUNTER_SHARDS_MAX numbers, which may be out of range meanwhile. */
typedef struct belay__sum {
  int64_t high, low; /* high * 2^32 + low */
  bool found;        /* true if a number was added */
} belay__sum_t;

void belay__sum_add(belay__sum_t *sum, int64_t value);
/* Returns 0, or BELAY_EOVERFLOW. */
int belay__sum_value(const belay__sum_t *sum, int64_t *out);

/* ---- several results (many.c) ---- */

/* The first part of the room of a request about n counters. */
typedef struct belay__counter_many {
  size_t n;
  belay_counter_result_t results[];
} belay__counter_many_t;

/* Begin a request with n results, which have no status yet. more: bytes of room behind them. */
int belay__counter_begin_many(belay_counter_t *counter, belay_request_t *request,
                              const belay__request_ops_t *ops, size_t n, size_t more,
                              void (*cb)(void), belay__operation_t **out);

/* Call back with all results; a result without a status gets the status of the request. */
void belay__counter_notify_many(belay_request_t *request, void (*cb)(void),
                                const belay__answer_t *answer);

/* ---- local adds (local.c) ---- */

void belay__counter_local_init(belay_counter_t *counter,
                               const uint8_t label[BELAY__COUNTER_LABEL_BYTES]);
/* Hooks of the handle. */
void belay__counter_local_close(belay__handle_t *handle);
void belay__counter_local_abort(belay__handle_t *handle);
void belay__counter_local_deinit(belay__handle_t *handle);

#endif /* BELAY_DATA_COUNTER_COUNTER_H */
