/* A request: memory of the caller's for one operation on a key. */
#ifndef BELAY_REQUEST_H
#define BELAY_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "belay/client.h"
#include "belay/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An operation that has no handle. Initialize it with {0}, or with belay_request_init(); hand it to one operation at
 * a time; it is the caller's again when that operation's callback runs. An operation that returned an error never
 * took it. */
typedef struct belay_request {
  void *data; /**< the caller's own */
  /** Time of one operation, in milliseconds: 1 to 600,000. 0 or BELAY_DEFAULT: the client's, and of
   * a get of a cache that of the cache's options (see TIME LIMITS). */
  int64_t timeout_ms;

  /** belay's: only its initialization, with 0, is the caller's */
  struct {
    void *pointers[24];
    int64_t numbers[26];
  } belay_private;
} belay_request_t;

/* Callbacks of requests. Each has the shape
 *
 *     void cb(belay_request_t *request, int status, RESULT)
 *
 * and runs exactly once, on the loop, never inside the call that began the operation. The request is the caller's again,
 * and may be used in the callback. Everything that the callback is given is valid until it returns.
 *
 * status   0: the operation completed, and RESULT is valid. Otherwise an error; each header lists its errors.
 * RESULT   is one of
 *   a pointer to a struct   never NULL. If status is not 0, all fields are 0, false or NULL, but for those whose comment
 *                           gives another value for "not known"
 *   an array and n          n is 0 unless status is 0. If n is 0, the array may be NULL. Where each item has a status of
 *                           its own (belay_counter_many_cb, belay_cache_many_cb), n is always as asked for
 *   a number, a bool        0 or false unless status is 0, but where the comment gives another value
 *
 * request->data is the caller's: belay neither reads nor writes it. */

/* TIME LIMITS, of all primitives. An operation has one deadline, which is set when it begins. The
 * deadline covers all of its steps: connecting, waiting behind other calls, redirects, repeats, and
 * further questions to the server. Its distance is the first of these that is given (not
 * BELAY_DEFAULT, and of a request not 0):
 *
 *   1. request.timeout_ms; or the argument timeout_ms of an operation without a request, such as
 *      belay_lock_release()
 *   2. options.timeout_ms of the handle: locks, elections, waits of latches and barriers, gets of
 *      caches
 *   3. belay_client_options_t.timeout_ms
 *
 * Two kinds of operations take longer than one question to the server. Each question in them ends
 * after rule 2 or 3, or with the whole operation if that is earlier:
 *
 *   a wait for others
 *       A separate argument limits the whole: wait_ms of belay_lock_acquire() and of
 *       belay_latch_wait(), max_wait_us of belay_limiter_wait(). Rules 1 to 3 then give the time
 *       of each question. The first question always has its whole time, so that the wait may end
 *       that much later.
 *   a get of a cache
 *       options.timeout_ms of a cache is the time of a get; a question takes at most the client's
 *       timeout_ms. With BELAY_CACHE_AWAY_LOAD the first question takes at most half of the time
 *       of the get, so that the other half is left for the load.
 *
 * A policy for a server that is away (belay_away_t, belay_cache_away_t) acts when the question has
 * failed. Except for that load it needs no time. */

/** Everything 0. */
BELAY_API void belay_request_init(belay_request_t *request);

/** Ends a pending operation with BELAY_ECANCELED; it may have been executed all the same. One whose end is known
 * and only not told yet ends as it has.
 *
 * Returns 0, BELAY_EINVAL, BELAY_EFORK, or BELAY_ESTATE if nothing is pending. */
BELAY_API int belay_request_cancel(belay_request_t *request);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_REQUEST_H */
