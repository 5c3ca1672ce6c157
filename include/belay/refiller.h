/* A refiller: fills buckets at intervals, while it is one of the few that are elected to. */
#ifndef BELAY_REFILLER_H
#define BELAY_REFILLER_H

#include "belay/bucket.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Of any number of processes that have a refiller of one name, `refillers` are elected: they have a permit of a
 * semaphore, a lease that is renewed. Each of them tries to fill each bucket once in a period, and the bucket's index
 * lets one of them. Two fillings of a bucket are at least a period apart, however many there are, and as long as one is
 * left it goes on: with a period, and the time that the server takes to answer, between one and the next. (A bucket
 * that was deleted, or whose index was forgotten, in between is another one.) What was missed is not caught up on; and
 * who was just elected learns the index first, and fills a period after that. All should say the same period and
 * lease. Who dies is replaced as soon as its lease is over, and who closes at once: the others are woken by the
 * vacancy.
 *
 * The semaphore (belay/semaphore.h) is called refill/LENGTH/BUCKET/NAME: BUCKET is the bucket's name as it stands in its
 * keys, LENGTH how many bytes that has; so are NAMESPACE::semaphore::{refill/LENGTH/BUCKET/NAME} and what is beside it. */
typedef struct belay_refiller belay_refiller_t;

#define BELAY_REFILLER_KEYS_MAX 1000000 /**< in the table of one */

typedef enum belay_refiller_state {
  BELAY_REFILLER_WAITING = 1, /**< for a place */
  BELAY_REFILLER_ELECTED,     /**< it fills */
  BELAY_REFILLER_SUSPECT /**< elected, and fills; but less than half of its lease is left, of which a third is the
                          * time to renew it: if that does not happen before all of it is over, its place is another's */
} belay_refiller_state_t;

/** It was elected (ELECTED), or is not any more (WAITING: it goes on waiting for a place). */
typedef void (*belay_refiller_change_cb)(belay_refiller_t *refiller, belay_refiller_state_t state);

/** Once in a period, while it is elected, before what is due is filled: may call belay_refiller_add() and
 * belay_refiller_remove(), and anything else. */
typedef void (*belay_refiller_round_cb)(belay_refiller_t *refiller);

/** Options; belay_refiller_options_init() sets the defaults. */
typedef struct belay_refiller_options {
  belay_bytes_t name; /**< of the election, 1 to 128 bytes; copied. Must be given */
  /** Who this is, in lists: such as host:port. 1 to 64 printable bytes without spaces; copied. NULL: the client's
   * owner label. */
  const char *label;
  uint32_t
      refillers; /**< so many are elected: 1 to 1000; default 3. All processes should say the same */
  uint32_t lease_ms; /**< 1,000 to 600,000; default 10,000 */
  /** Between fillings of one bucket: 10 to 86,400,000, at most half of the bucket's idle_ms and a tenth of its index_ms,
   * which are to outlast it; default 1000 */
  uint32_t period_ms;
  /** of one filling, where belay_refiller_add() says nothing else: 1 to the bucket's capacity; default 1 */
  int64_t tokens;

  belay_refiller_change_cb on_change; /**< may be NULL */
  belay_refiller_round_cb on_round;   /**< may be NULL */
  void *data;                         /**< belay_refiller_data() */
} belay_refiller_options_t;

BELAY_API void belay_refiller_options_init(belay_refiller_options_t *options);

/** Makes one and begins to wait for a place. It keeps the loop alive until it is closed.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_refiller_new(belay_bucket_t *bucket, const belay_refiller_options_t *options,
                                 belay_refiller_t **out);

/** Adds a bucket to the table, or changes what it gets: tokens in each filling (0: options.tokens). The first filling
 * comes a period after its index was learnt.
 *
 * Returns 0, BELAY_EINVAL, BELAY_EBUSY (the table is full), BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_refiller_add(belay_refiller_t *refiller, belay_bytes_t key, int64_t tokens);

/** Takes it out of the table. 0, also if it was not there; BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_refiller_remove(belay_refiller_t *refiller, belay_bytes_t key);

/** Where this one is: WAITING, ELECTED, or SUSPECT. */
BELAY_API belay_refiller_state_t belay_refiller_state(const belay_refiller_t *refiller);

/** Who has a place. */
typedef struct belay_refiller_member {
  const char *label;            /**< who it is */
  belay_refiller_state_t state; /**< ELECTED or SUSPECT */
  int64_t remaining_ms;         /**< of its lease, by the server's clock */
} belay_refiller_member_t;

/** A callback of the shape of belay/request.h. members: n of them, those that have a place; those that wait are not known to
 * the server. status: as of belay_bucket_cb. */
typedef void (*belay_refiller_members_cb)(belay_request_t *request, int status,
                                          const belay_refiller_member_t *members, size_t n);

/** Asks the server who is elected. Returns as belay_bucket_read() does. */
BELAY_API int belay_refiller_members(belay_refiller_t *refiller, belay_request_t *request,
                                     belay_refiller_members_cb cb);

/** What was done since it was made. */
typedef struct belay_refiller_stats {
  size_t keys;        /**< in the table */
  uint64_t filled;    /**< fillings of ours that were applied */
  uint64_t late;      /**< that another had done */
  uint64_t failed;    /**< that were not answered, or refused */
  uint64_t elections; /**< how often it was elected */
} belay_refiller_stats_t;

BELAY_API void belay_refiller_stats(const belay_refiller_t *refiller,
                                    belay_refiller_stats_t *stats);

BELAY_API void *belay_refiller_data(const belay_refiller_t *refiller);

/** Runs once when belay_refiller_close() is through. data: see CLOSING in belay/loop.h. */
typedef void (*belay_refiller_close_cb)(belay_refiller_t *refiller, void *data);

/** Ends it, in any callback, and gives its place back. cb may be NULL.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_refiller_close(belay_refiller_t *refiller, belay_refiller_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_REFILLER_H */
