/* Latches and barriers: processes that wait for each other. */
#ifndef BELAY_LATCH_H
#define BELAY_LATCH_H

#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BELAY_LATCH_COUNT_MAX 1000000u /**< largest count of a latch */
#define BELAY_BARRIER_COUNT_MAX 10000u /**< largest count of a barrier */
#define BELAY_LATCH_OP_ID_MAX 64       /**< bytes of an operation id */

/** A handle for a latch. A latch opens when it was counted down `count` times, and stays open. A
 * handle can have one pending wait and any number of pending counts.
 *
 * Use a latch to wait until n jobs are done, or until n servers have started. To let n processes
 * meet again and again, use a barrier below. To bound how many run at the same time, use
 * belay/semaphore.h.
 *
 * On the server a latch is one hash with a field per counted operation id. A latch of a million
 * operations takes some 100 MB. When it expires, the server frees it in one step and serves no
 * other client meanwhile, unless lazyfree-lazy-expire is on.
 *
 * @code
 * static void on_open(belay_latch_t *latch, int status) {
 *   (void)latch;
 *   printf("all imports: %s\n", belay_strerror(status));
 * }
 *
 * int wait_for_imports(belay_client_t *client, belay_latch_t **out) {
 *   belay_latch_options_t options;
 *   belay_latch_options_init(&options);
 *   options.count = 3; // the importers call belay_latch_count_down()
 *   int error = belay_latch_new(client, belay_string("imports/2026-11"), &options, out);
 *   return error != 0 ? error : belay_latch_wait(*out, BELAY_FOREVER, on_open);
 * }
 * @endcode */
typedef struct belay_latch belay_latch_t;

/** Options of a latch or a barrier; belay_latch_options_init() sets the defaults. All handles of a
 * name must have the same count, otherwise BELAY_EMISMATCH, and should have the same ttl_ms. All
 * times are in milliseconds. */
typedef struct belay_latch_options {
  /** Number of operations that open a latch, or of parties that open a barrier: 1 to
   * BELAY_LATCH_COUNT_MAX or BELAY_BARRIER_COUNT_MAX. Default 1. */
  unsigned count;
  /** Lifetime on the server, in milliseconds: 1000 to 604,800,000; default 3,600,000.
   *
   * A latch expires this long after its first use, open or not; the ttl_ms of that use counts. A
   * later use makes a new latch. It never expires before the deadline of a request that has counted
   * it down. A barrier expires this long after its last use. */
  int64_t ttl_ms;
  /** Shortest delay between two polls of a waiter, in milliseconds: 1 to 3,600,000; default 25.
   * Each delay is random. A waiter also gets a message when the latch opens, over one connection
   * for all waiters of the client. It polls because messages can be lost. */
  int64_t retry_min_ms;
  /** Longest delay between two polls of a waiter, in milliseconds: retry_min_ms to 3,600,000;
   * default 75. The default of backoff_max_ms depends on it. */
  int64_t retry_max_ms;
  /** Upper bound of the backoff, in milliseconds: retry_max_ms to 3,600,000; default BELAY_DEFAULT:
   * 300, or retry_max_ms if that is larger. Each poll doubles retry_min_ms and retry_max_ms for the
   * next one, until the longer delay reaches this value. */
  int64_t backoff_max_ms;
  /** Barriers only: time for which a party that waits counts without a sign of life, in
   * milliseconds: 100 to 600,000; default 3000. A living party renews it; a dead party counts until
   * it ends. */
  int64_t waiter_ttl_ms;
  /** Time of one question of a wait, in milliseconds: 1 to 600,000; default BELAY_DEFAULT: the
   * timeout_ms of the client. See TIME LIMITS in belay/request.h. A count is a request and has the
   * time of the request. */
  int64_t timeout_ms;
} belay_latch_options_t;

/** Set all options to their defaults. */
BELAY_API void belay_latch_options_init(belay_latch_options_t *options);

/** Make a handle for a latch. name is 1 to 1024 bytes. It sends nothing: the first count or wait of
 * any client creates the latch.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_latch_new(belay_client_t *client, belay_bytes_t name,
                              const belay_latch_options_t *options, belay_latch_t **out);

/** Reports the end of a count; see CALLBACKS in belay/request.h. left is the remaining count; 0
 * means that the latch is open. left is UINT_MAX unless status is 0. */
typedef void (*belay_latch_count_cb)(belay_request_t *request, int status, unsigned left);

/** Count a latch down by one. Each op_id (1 to BELAY_LATCH_OP_ID_MAX bytes, copied) counts exactly
 * once while the latch exists, however often it is sent. An open latch stays at 0. Absent op_id:
 * belay draws a random one, which the caller cannot repeat.
 *
 * A lost reply is asked for again until the deadline of the request. The latch does not expire
 * before that deadline. status in the callback:
 *
 *   0                    counted, now or earlier with the same op_id
 *   BELAY_EUNKNOWN       it may have been counted: call again with the same op_id
 *   BELAY_EMISMATCH      the latch has another count
 *   BELAY_ECANCELED      belay_request_cancel() or a close
 *   BELAY_EUNREACHABLE and others of belay_connect()
 *                        nothing was sent
 *   another error        the server refused it
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY, BELAY_ENOMEM,
 * BELAY_ESYSTEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_latch_count_down(belay_latch_t *latch, belay_request_t *request,
                                     belay_bytes_t op_id, belay_latch_count_cb cb);

/** Reports the end of a wait: status is 0 or an error that belay_latch_wait() lists. See CALLBACKS
 * in belay/loop.h. */
typedef void (*belay_latch_cb)(belay_latch_t *latch, int status);

/** Wait until the latch is open, at most wait_ms: BELAY_FOREVER for no limit, 0 to ask once. The
 * first question has its whole timeout_ms, even if the wait is shorter; the end of the wait cuts
 * later questions short. status in the callback:
 *
 *   0                open
 *   BELAY_ETIMEDOUT  wait_ms has passed: the latch was not open at the last complete question
 *   BELAY_ECANCELED  belay_latch_cancel() or a close
 *   BELAY_EMISMATCH  the latch has another count
 *   BELAY_EUNKNOWN   the server did not answer; or the latch expired during the wait, and may have
 *                    been open before
 *   another error    cause of the last failed question
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (a wait is pending), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_latch_wait(belay_latch_t *latch, int64_t wait_ms, belay_latch_cb cb);
/** End a wait with BELAY_ECANCELED.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (no wait is pending), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_latch_cancel(belay_latch_t *latch);

/** Set the pointer that belay_latch_data() returns. */
BELAY_API void belay_latch_set_data(belay_latch_t *latch, void *data);
/** Return the last pointer given to belay_latch_set_data(); NULL if there is none. */
BELAY_API void *belay_latch_data(const belay_latch_t *latch);

/** Runs once when the handle is gone. data is described at CLOSING in belay/loop.h. */
typedef void (*belay_latch_close_cb)(belay_latch_t *latch, void *data);
/** Close the handle, in any callback. A pending wait and pending counts end with BELAY_ECANCELED,
 * or with their result if it is already known. Then cb runs (NULL is allowed).
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_latch_close(belay_latch_t *latch, belay_latch_close_cb cb);

/** A handle for a barrier: one party. A barrier opens when `count` parties wait at it. It calls all
 * of them back, and closes again for the next `count` parties. Use it for processes that work in
 * phases. */
typedef struct belay_barrier belay_barrier_t;

/** Make a handle for a barrier. name is 1 to 1024 bytes. It sends nothing. options->count is the
 * number of parties.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_barrier_new(belay_client_t *client, belay_bytes_t name,
                                const belay_latch_options_t *options, belay_barrier_t **out);

/** Reports the end of a wait: status is 0 or an error that belay_barrier_wait() lists. See
 * CALLBACKS in belay/loop.h. generation is valid if status is 0: the number of this opening of the
 * barrier, from 1, while the server remembers the barrier. */
typedef void (*belay_barrier_cb)(belay_barrier_t *barrier, int status, uint64_t generation);

/** Join the barrier and wait until `count` parties have joined, at most wait_ms: BELAY_FOREVER for
 * no limit, 0 to ask once. Then the callbacks of exactly `count` parties get the same generation.
 *
 *   - The first question has its whole timeout_ms, even if the wait is shorter. The end of the wait
 *     cuts later questions short.
 *   - A party that stops waiting (wait_ms, cancel, close) leaves the barrier, unless it has already
 *     opened: then status is 0. belay asks the server which of the two is true. So the callback can
 *     come up to timeout_ms later; after a close, up to close_timeout_ms.
 *   - A party that dies while it waits counts until its waiter_ttl_ms ends.
 *   - A waiting party asks the server at least every 10 seconds, whatever the options say.
 *
 * status in the callback:
 *
 *   0                the barrier has opened
 *   BELAY_ETIMEDOUT  wait_ms has passed, and the party has left
 *   BELAY_ECANCELED  belay_barrier_cancel() or a close, and the party has left
 *   BELAY_EUNKNOWN   the server did not answer: the barrier may have opened with this party, or may
 *                    still open with it before waiter_ttl_ms ends. Also after 40 seconds without an
 *                    answer, because the server forgets soon after that which parties had joined
 *   BELAY_EMISMATCH  the barrier has another count
 *   another error    cause of the last failed question
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (a wait is pending), BELAY_ESYSTEM, BELAY_ECLOSING or
 * BELAY_EFORK. */
BELAY_API int belay_barrier_wait(belay_barrier_t *barrier, int64_t wait_ms, belay_barrier_cb cb);
/** End a wait. Its status is BELAY_ECANCELED, or another one that belay_barrier_wait() lists.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (no wait is pending), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_barrier_cancel(belay_barrier_t *barrier);
/** Set the pointer that belay_barrier_data() returns. */
BELAY_API void belay_barrier_set_data(belay_barrier_t *barrier, void *data);
/** Return the last pointer given to belay_barrier_set_data(); NULL if there is none. */
BELAY_API void *belay_barrier_data(const belay_barrier_t *barrier);
/** Runs once when the handle is gone. data is described at CLOSING in belay/loop.h. */
typedef void (*belay_barrier_close_cb)(belay_barrier_t *barrier, void *data);
/** Close the handle, in any callback. A pending wait ends first, as after belay_barrier_cancel().
 * Then cb runs (NULL is allowed).
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_barrier_close(belay_barrier_t *barrier, belay_barrier_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_LATCH_H */
