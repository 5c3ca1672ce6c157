/* Shared by the files of dedup: the handle, its keys, and batches that are sent in chunks. */
#ifndef BELAY_DATA_DEDUP_DEDUP_H
#define BELAY_DATA_DEDUP_DEDUP_H

#include "belay/dedup.h"
#include "core/client/handle.h"

#define BELAY__DEDUP_PART ((size_t)512) /* items that one call has at most */
#define BELAY__DEDUP_ALL_KINDS 15U

struct belay_dedup {
  belay__handle_t handle; /* first */
  belay_dedup_kind_t kind;
  int64_t ttl_ms, window_ms, max_items, op_ttl_ms;
  uint64_t max_offset;
  bool extend_ttl, evict;
};

/* ---- checks: 0 or an error, as belay__handle_check() ----------------------------------------------------- */

/* Of an operation that the kinds can do which have their bits (1 << BELAY_DEDUP_SET and so on) in `kinds`. */
int belay__dedup_check(const belay_dedup_t *dedup, const belay_request_t *request, unsigned kinds,
                       bool has_cb);

/* ---- calls ----------------------------------------------------------------------------------------------- */

/* Begins a script, or a command; NULL if memory is out. */
belay__call_t *belay__dedup_script(const belay_dedup_t *dedup, const belay__script_t *script,
                                   size_t keys, size_t args);
belay__call_t *belay__dedup_command(const belay_dedup_t *dedup, const char *name, size_t argc);

/* Adds the key of a set; or the key of an operation's stored answer. */
void belay__dedup_arg_key(const belay_dedup_t *dedup, belay__call_t *call, const char *key,
                          size_t key_len);
void belay__dedup_arg_answer(const belay_dedup_t *dedup, belay__call_t *call, const char *key,
                             size_t key_len, const void *id, size_t id_len);

/* ---- batches --------------------------------------------------------------------------------------------- */

typedef struct belay__dedup_batch belay__dedup_batch_t;

/* An operation on items of one set: in one call if they are few, in several at once if not. */
struct belay__dedup_batch {
  belay_dedup_t *dedup;
  unsigned kinds; /* that can do it: bits 1 << BELAY_DEDUP_SET and so on */
  const char *key;
  size_t key_len;
  const belay_bytes_t *items;
  size_t n, max; /* items, and how many there may be */
  bool
      many; /* verdicts are in the request's room, one for each item; else there is one, in values[0] */
  bool once; /* it has an id, under which the server keeps its reply for op_ttl_ms */
  const void *id;
  size_t id_len;
  int64_t op_ttl_ms; /* belay__dedup_start() sets it */
  const belay__request_ops_t *ops;
  const belay__request_ops_t *count_ops; /* of a count; NULL: ops */

  /* Makes the call for n of the items; NULL if memory is out. */
  belay__call_t *(*part)(const belay__dedup_batch_t *batch, const belay_bytes_t *items, size_t n);
};

/* Checks a batch, and sends it. */
int belay__dedup_start(belay__dedup_batch_t *batch, belay_request_t *request, void (*cb)(void));

/* The number of words of n items in a call, and the items: of a bitmap `word`, u1, the number, and 1 behind SET. */
size_t belay__dedup_words(const belay__dedup_batch_t *batch, const char *word, size_t n);
void belay__dedup_arg_items(const belay__dedup_batch_t *batch, const char *word,
                            belay__call_t *call, const belay_bytes_t *items, size_t n);

/* Returns the error that a script of sets and windows replied, or 0. */
int belay__dedup_fault(const belay__call_t *call, const belay__reply_t *reply);

/* Reads what one call has answered for its items: a digit, a number or an integer of an array for each, which is what
 * verdicts[] has there, or -1: it cannot be that. */
int belay__dedup_read(belay__operation_t *operation, const belay__call_t *call,
                      const belay__reply_t *reply, const int verdicts[3]);

/* Calls back a belay_dedup_cb or a belay_dedup_many_cb. */
void belay__dedup_tell(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer);
void belay__dedup_tell_many(belay_request_t *request, void (*cb)(void),
                            const belay__answer_t *answer);

#endif /* BELAY_DATA_DEDUP_DEDUP_H */
