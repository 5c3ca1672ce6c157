/* A refiller: adds tokens to buckets at intervals while it is elected. */
#ifndef BELAY_REFILLER_H
#define BELAY_REFILLER_H

#include "belay/bucket.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A refiller: it adds tokens to a table of buckets, once per period, while it is elected. Of all
 * processes with a refiller of one name, options.refillers are elected at a time; each of them
 * holds a permit of a semaphore, whose lease is renewed.
 *
 * Use it if a program decides which buckets get how many tokens. If a constant rate per key is
 * enough, a limiter (belay/limiter.h) needs no refiller. All processes should use the same period,
 * lease and number of refillers.
 *
 *   - Each elected refiller tries to fill each bucket once per period. The index of the bucket
 *     admits one of them. So two fillings of a bucket are at least one period apart, whatever the
 *     number of refillers. A bucket that was deleted, or whose index was forgotten, counts as
 *     another bucket.
 *   - While at least one refiller is left, fillings are at most one period plus the server's
 *     response time apart.
 *   - Missed fillings are not repeated. A newly elected refiller first reads the index, and fills
 *     one period later. After a filling that failed, the refiller reads the index one period later,
 *     and fills one more period later.
 *   - If a refiller dies, another one replaces it when its lease is over. If it closes, another one
 *     replaces it at once.
 *
 * The semaphore (belay/semaphore.h) has the name refill/LENGTH/BUCKET/NAME. BUCKET is the bucket's
 * name as in its keys, LENGTH is the number of its bytes. Its keys are
 * NAMESPACE::semaphore::{refill/LENGTH/BUCKET/NAME}, with suffixes. belay_refiller_election()
 * returns the name.
 *
 * @code
 * static void on_change(belay_refiller_t *refiller, belay_refiller_state_t state) {
 *   (void)refiller;
 *   printf(state == BELAY_REFILLER_ELECTED ? "filling\n" : "waiting\n");
 * }
 *
 * int fill_mails(belay_bucket_t *bucket, belay_refiller_t **out) {
 *   belay_refiller_options_t options;
 *   belay_refiller_options_init(&options);
 *   options.name = belay_string("mailer");
 *   options.period_ms = 1000;
 *   options.tokens = 10; // per period
 *   options.on_change = on_change;
 *   int error = belay_refiller_new(bucket, &options, out);
 *   return error != 0 ? error : belay_refiller_add(*out, belay_string("mails"), 0);
 * }
 * @endcode */
typedef struct belay_refiller belay_refiller_t;

#define BELAY_REFILLER_KEYS_MAX 1000000 /**< buckets in the table of one refiller */

/** State of a refiller. */
typedef enum belay_refiller_state {
  BELAY_REFILLER_WAITING = 1, /**< it waits to be elected */
  BELAY_REFILLER_ELECTED,     /**< it is elected, and fills */
  /** It is elected, and fills, but less than half of its lease is left. A renewal starts after a
   * third of the lease, so one has failed. If none succeeds before the lease is over, another
   * refiller takes its place. */
  BELAY_REFILLER_SUSPECT
} belay_refiller_state_t;

/** Runs when the refiller is elected (BELAY_REFILLER_ELECTED), and when it has lost its place
 * (BELAY_REFILLER_WAITING; it then waits to be elected again). It may close the refiller. */
typedef void (*belay_refiller_change_cb)(belay_refiller_t *refiller, belay_refiller_state_t state);

/** Runs once per period while the refiller is elected, before it fills the buckets that are due;
 * the first time right after the election. It may change the table with belay_refiller_add() and
 * belay_refiller_remove(), or close. */
typedef void (*belay_refiller_round_cb)(belay_refiller_t *refiller);

/** Options; belay_refiller_options_init() sets the defaults. */
typedef struct belay_refiller_options {
  /** Name of the election, 1 to 128 bytes; copied. Required. */
  belay_bytes_t name;
  /** Label of this refiller in lists, such as "host:port": 1 to 64 printable bytes without spaces;
   * copied. Default NULL: the client's owner label. */
  const char *label;
  /** Number of refillers that are elected at a time, 1 to 1000. Default 3. It should be the same in
   * all processes. */
  uint32_t refillers;
  /** Time of an election's lease, in milliseconds: 1,000 to 600,000. Default 10,000. */
  uint32_t lease_ms;
  /** Time between two fillings of a bucket, in milliseconds: 10 to 86,400,000. At most half of the
   * bucket's idle_ms and a tenth of its index_ms, so that both outlast it. Default 1000. */
  uint32_t period_ms;
  /** Tokens per filling for buckets that were added with tokens 0: 1 to the bucket's capacity.
   * Default 1. */
  int64_t tokens;

  /** Default NULL: none. */
  belay_refiller_change_cb on_change;
  /** Default NULL: none. */
  belay_refiller_round_cb on_round;
  /** Pointer of the caller, returned by belay_refiller_data(). Default NULL. */
  void *data;
} belay_refiller_options_t;

/** Set all options to their defaults. */
BELAY_API void belay_refiller_options_init(belay_refiller_options_t *options);

/** Make a refiller, and start to wait for an election. It keeps the loop alive until it is closed.
 * It closes with the bucket handle, without a callback.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_refiller_new(belay_bucket_t *bucket, const belay_refiller_options_t *options,
                                 belay_refiller_t **out);

/** Add a bucket to the table, or change the tokens of one that is in the table. tokens: tokens per
 * filling, up to the bucket's capacity; 0: options.tokens. The first filling comes one period after
 * the refiller has read the bucket's index.
 *
 * Returns 0, BELAY_EINVAL, BELAY_EBUSY (a new key, and the table is full), BELAY_ENOMEM,
 * BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_refiller_add(belay_refiller_t *refiller, belay_bytes_t key, int64_t tokens);

/** Remove a bucket from the table. The bucket stays on the server.
 *
 * Returns 0 (also if the bucket was not in the table), BELAY_EINVAL, BELAY_ECLOSING or
 * BELAY_EFORK. */
BELAY_API int belay_refiller_remove(belay_refiller_t *refiller, belay_bytes_t key);

/** Return the state of this refiller. */
BELAY_API belay_refiller_state_t belay_refiller_state(const belay_refiller_t *refiller);

/** Return the name of the semaphore that elects. belay_semaphore_holders() lists the elected
 * refillers by it: the label of each, and the remaining time of its lease. With less than half of
 * lease_ms left, a refiller is BELAY_REFILLER_SUSPECT. The bytes are valid until the refiller is
 * closed. */
BELAY_API belay_bytes_t belay_refiller_election(const belay_refiller_t *refiller);

/** Statistics since the refiller was made, unless a comment says "now". */
typedef struct belay_refiller_stats {
  size_t keys;        /**< buckets in the table now */
  uint64_t filled;    /**< fillings that were applied */
  uint64_t late;      /**< fillings that were not applied: another refiller was first */
  uint64_t failed;    /**< fillings that were not answered, or refused */
  uint64_t elections; /**< elections that this refiller won */
} belay_refiller_stats_t;

/** Copy the statistics to *stats. */
BELAY_API void belay_refiller_stats(const belay_refiller_t *refiller,
                                    belay_refiller_stats_t *stats);

/** Return options.data. */
BELAY_API void *belay_refiller_data(const belay_refiller_t *refiller);

/** Runs when belay_refiller_close() has completed; see CLOSING in belay/loop.h. */
typedef void (*belay_refiller_close_cb)(belay_refiller_t *refiller, void *data);

/** Close the refiller and release its place. Allowed inside any callback. Pending requests end with
 * BELAY_ECANCELED. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_refiller_close(belay_refiller_t *refiller, belay_refiller_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_REFILLER_H */
