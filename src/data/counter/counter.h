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
  belay__table_t table; /* Adders by key */
  belay__list_t ready;  /* Adders in state READY */
  belay__list_t sent;   /* Adders in state SENT */
  belay__list_t lost;   /* Adders in state LOST */
  belay__adder_t *last; /* Adder of the last add; NULL: none, or it was freed */
  /* Sends the READY adders. Set while an adder is READY, unless all of them are postponed */
  belay__timer_t timer;
  belay__task_t task;    /* Reports lost sums */
  uint64_t until;        /* Closing: time at which the open sums become lost */
  uint64_t flushed;      /* Time at which `timer` last fired */
  uint64_t requested_at; /* Time of the last belay_counter_flush() */
  uint64_t number;       /* Number of the last sum; part of its operation id */
  int64_t adds;          /* Local adds since `flushed` */
  unsigned open;         /* Number of adders in state SENT */
  bool postponed;        /* true if `timer` fired and some READY adders were not sent */
  bool ended;            /* true after abort: no sum is sent any more */
  char label[2 * BELAY__COUNTER_LABEL_BYTES + 1]; /* Random part of the operation ids */
  belay_counter_stats_t stats;
} belay__counter_local_t;

struct belay_counter {
  belay__handle_t handle;
  belay_counter_options_t options;
  unsigned turn; /* Shard of the next add without an operation id */
  belay__counter_local_t local;
};

/* ---- one key (counter.c, add.c) ---- */

/* Check that counters have one shard, because the operation needs one key. what: name of the
 * operation, for the detail. Returns 0, or BELAY_EINVAL if there are several shards. */
int belay__counter_whole(const belay_counter_t *counter, const char *what);

/* Add to a call the key of a counter, or of one of its shards. */
void belay__counter_arg(const belay_counter_t *counter, belay__call_t *call, belay_bytes_t key,
                        unsigned shard);

/* Make a call that adds to the next shard of a counter. Returns NULL if memory is out. */
belay__call_t *belay__counter_add_call(belay_counter_t *counter, belay_bytes_t key, int64_t delta);

/* Make a call that adds once per operation id; the id determines the shard. record_ms: lifetime of
 * the operation's record on the server. */
belay__call_t *belay__counter_once_call(const belay_counter_t *counter, belay_bytes_t key,
                                        int64_t delta, belay_bytes_t id, int64_t record_ms);

/* Make the call that reads a counter, or one of its shards. */
belay__call_t *belay__counter_get_call(const belay_counter_t *counter, belay_bytes_t key,
                                       unsigned shard);

/* ops->read of an add. */
int belay__counter_read_added(belay__operation_t *operation, const belay__call_t *call,
                              const belay__reply_t *reply);

/* ---- replies (reply.c) ---- */

/* Indexes of operation->values, in a request with one result. */
enum { BELAY__COUNTER_APPLIED, BELAY__COUNTER_FOUND, BELAY__COUNTER_VALUE };

/* ops->notify of a request with one result: passes these values to a belay_counter_cb. */
void belay__counter_notify(belay_request_t *request, void (*cb)(void),
                           const belay__answer_t *answer);

/* Read a number, or nil: then *found is false and *out is 0. Returns 0, BELAY_EWRONGTYPE (the reply
 * is a string but no number; with a detail) or BELAY_EPROTO. */
int belay__counter_read_value(const belay__call_t *call, const belay__reply_t *reply, bool *found,
                              int64_t *out);

/* Read the reply of INCRBY, or of the scripts that add to one key. *applied: false if a bounded add
 * left the value unchanged; else true. *out: the value now; of an add with an operation id, the
 * value after its first execution. */
int belay__counter_added(const belay__call_t *call, const belay__reply_t *reply, bool *applied,
                         int64_t *out);

/* The sum of at most BELAY_COUNTER_SHARDS_MAX numbers. A partial sum may be out of the range of
 * int64_t. */
typedef struct belay__sum {
  int64_t high, low; /* high * 2^32 + low */
  bool found;        /* true if a number was added */
} belay__sum_t;

void belay__sum_add(belay__sum_t *sum, int64_t value);
/* Set *out to the sum. Returns 0, or BELAY_EOVERFLOW if the sum is out of the range of int64_t. */
int belay__sum_value(const belay__sum_t *sum, int64_t *out);

/* ---- several results (many.c) ---- */

/* The first part of the room of a request about n counters. */
typedef struct belay__counter_many {
  size_t n;
  belay_counter_result_t results[];
} belay__counter_many_t;

/* Begin a request with n results, which have no status yet. more: bytes of room behind the
 * results. */
int belay__counter_begin_many(belay_counter_t *counter, belay_request_t *request,
                              const belay__request_ops_t *ops, size_t n, size_t more,
                              void (*cb)(void), belay__operation_t **out);

/* ops->notify: passes all results to a belay_counter_many_cb. A result without a status gets the
 * status of the request. */
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
