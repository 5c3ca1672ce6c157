/* A latch that opens when it was counted down so often, and a barrier that opens when so many have come. */
#ifndef BELAY_LATCH_H
#define BELAY_LATCH_H

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BELAY_LATCH_COUNT_MAX 1000000u
#define BELAY_BARRIER_COUNT_MAX 10000u
#define BELAY_LATCH_OP_ID_MAX 64 /**< bytes of an operation's id */

/** Options of a latch and of a barrier. All who use the name must have the same count and ttl. Milliseconds. */
typedef struct belay_latch_options {
  unsigned
      count; /**< 1 to BELAY_LATCH_COUNT_MAX, of a barrier to BELAY_BARRIER_COUNT_MAX; default 1 */
  /** The server forgets a latch so long after it was first used, open or not: who comes later finds a new one. Only
   * not before the time of a request that has counted it down is over. A barrier is forgotten so long after it was
   * last used. Default 3,600,000; 1000 to 604,800,000. */
  int64_t ttl_ms;
  /** Who waits is told when it opens, through the connection that listens for all waiters of the client, and asks now
   * and then all the same: after a random time from here ... default 25; 1 to 3,600,000 */
  int64_t retry_min_ms;
  /** ... to here; default 75; retry_min_ms to 3,600,000. The default of backoff_max_ms depends on
   * it */
  int64_t retry_max_ms;
  /** both double each time until the larger one is this; default BELAY_DEFAULT: 300, or retry_max_ms if that is
   * more; retry_max_ms to 3,600,000 */
  int64_t backoff_max_ms;
  /** a barrier: who came and died counts for so long; who lives renews that; default 3000; 100 to 600,000 */
  int64_t waiter_ttl_ms;
  /** Time of one question of a wait, in milliseconds: 1 to 600,000; default BELAY_DEFAULT: the
   * client's. See TIME LIMITS in belay/request.h. A count is a request, and has the time of one. */
  int64_t timeout_ms;
} belay_latch_options_t;

BELAY_API void belay_latch_options_init(belay_latch_options_t *options);

/** A handle for a latch. One wait and any number of counts may be pending. On the server a latch is one hash, with
 * a field for each operation that was counted: one of a million takes some 100 MB, which the server gives back in
 * one go when it forgets it, and serves nobody else meanwhile (lazyfree-lazy-expire has it done in the background). */
typedef struct belay_latch belay_latch_t;

/** Makes a handle; sends nothing. A latch is made by the first who counts it down or waits for it.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_latch_new(belay_client_t *client, belay_bytes_t name,
                              const belay_latch_options_t *options, belay_latch_t **out);

/** A callback of the shape of belay/request.h. left: what is left to count down; 0: it is open. UINT_MAX unless status is
 * 0. */
typedef void (*belay_latch_count_cb)(belay_request_t *request, int status, unsigned left);

/** Counts down by one, exactly once for each operation id (1 to BELAY_LATCH_OP_ID_MAX bytes, copied), however often
 * it is asked for, as long as the latch is remembered. Below 0 it does not count. NULL: an id of its own, which can
 * then not be repeated by the caller. An answer that was lost is asked for again until the request's time is over,
 * and in that time the latch is not forgotten. BELAY_EUNKNOWN: it may have been counted; do it again with the same
 * id. BELAY_EMISMATCH: the latch has another count.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY, BELAY_ENOMEM, BELAY_ESYSTEM,
 * BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_latch_count_down(belay_latch_t *latch, belay_request_t *request,
                                     belay_bytes_t op_id, belay_latch_count_cb cb);

typedef void (*belay_latch_cb)(belay_latch_t *latch, int status);

/** Waits until it is open, at most wait_ms (BELAY_FOREVER: no limit; 0: asks once). The end of the wait cuts short
 * every question but the first, which has its whole timeout_ms. Status: 0 open; BELAY_ETIMEDOUT
 * it was not at the last question that was not cut short; BELAY_ECANCELED; BELAY_EMISMATCH; BELAY_EUNKNOWN: the server could not
 * be asked, or has forgotten the latch that was waited for, which may have been open; another error: the last that
 * the server could not be asked for.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (it waits), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_latch_wait(belay_latch_t *latch, int64_t wait_ms, belay_latch_cb cb);
/** Ends a wait with BELAY_ECANCELED.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (there is none), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_latch_cancel(belay_latch_t *latch);

BELAY_API void belay_latch_set_data(belay_latch_t *latch, void *data);
BELAY_API void *belay_latch_data(const belay_latch_t *latch);

/** Runs once when belay_latch_close() is through. data: see CLOSING in belay/loop.h. */
typedef void (*belay_latch_close_cb)(belay_latch_t *latch, void *data);
/** Ends the handle; a wait and counts that are pending end with BELAY_ECANCELED, or as it is known that they have
 * ended.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_latch_close(belay_latch_t *latch, belay_latch_close_cb cb);

/** A handle for a barrier: one party. */
typedef struct belay_barrier belay_barrier_t;

/** Makes a handle; sends nothing. options->count: how many parties it opens for.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_barrier_new(belay_client_t *client, belay_bytes_t name,
                                const belay_latch_options_t *options, belay_barrier_t **out);

/** generation: numbers the openings of the barrier from 1, as long as the server remembers it; valid if status is
 * 0. */
typedef void (*belay_barrier_cb)(belay_barrier_t *barrier, int status, uint64_t generation);

/** Comes, and waits until all parties have, at most wait_ms (BELAY_FOREVER: no limit; 0: asks once): then all of
 * them are called back with the same generation, and the barrier is closed again for the next. Exactly as many as
 * it opens for are of one generation.
 *
 * The end of the wait cuts short every question but the first, as of a latch.
 *
 * Who stops waiting (time, cancel, close) has not come, unless it was too late for that: then the status is 0. The
 * server is asked which of the two it is, so that the end may come by timeout_ms later (after a close:
 * close_timeout_ms). A party that dies while it waits counts until its waiter_ttl_ms ends.
 *
 * Status: 0; BELAY_ETIMEDOUT, BELAY_ECANCELED: it has not come; BELAY_EUNKNOWN: the server could not be asked, so
 * that the barrier may have opened with it, or do so before waiter_ttl_ms ends; also when it did not answer for 40
 * seconds, because it does not remember for much longer who was there (it is asked every 10 seconds at least,
 * however rarely the options say); BELAY_EMISMATCH: the barrier has another count; another error: the last that it
 * could not be asked for.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (it waits), BELAY_ESYSTEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_barrier_wait(belay_barrier_t *barrier, int64_t wait_ms, belay_barrier_cb cb);
/** Ends a wait: with BELAY_ECANCELED, or as it says above.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (there is none), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_barrier_cancel(belay_barrier_t *barrier);
BELAY_API void belay_barrier_set_data(belay_barrier_t *barrier, void *data);
BELAY_API void *belay_barrier_data(const belay_barrier_t *barrier);
/** Runs once when belay_barrier_close() is through. data: see CLOSING in belay/loop.h. */
typedef void (*belay_barrier_close_cb)(belay_barrier_t *barrier, void *data);
/** Ends the handle, and a wait before that.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_barrier_close(belay_barrier_t *barrier, belay_barrier_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_LATCH_H */
