/* Requests: memory of the caller for one operation. */
#ifndef BELAY_REQUEST_H
#define BELAY_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "belay/client.h"
#include "belay/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Memory for one operation on keys, as uv_write_t is in libuv. Initialize it with {0} or
 * belay_request_init(). It carries one operation at a time: starting a second one returns
 * BELAY_ESTATE. An operation that returned 0 owns it until its callback runs. Then the caller may
 * reuse or free it, in the callback too. An operation that returned an error does not use it.
 *
 * @code
 * static void on_published(belay_request_t *request, int status, int64_t receivers) {
 *   printf("%s: %s, %lld\n", (const char *)request->data, belay_strerror(status),
 *          (long long)receivers);
 * }
 *
 * int say_hello(belay_client_t *client) {
 *   static belay_request_t request; // lives until on_published() has run
 *   request.data = (void *)"hello";
 *   request.timeout_ms = 100;
 *   return belay_topic_publish(client, &request, belay_string("chat"), belay_string("hello"),
 *                              on_published);
 * }
 * @endcode */
typedef struct belay_request {
  /** Pointer of the caller. belay does not use it. */
  void *data;
  /** Time of the operation, in milliseconds: 1 to 600,000. 0 or BELAY_DEFAULT: the timeout_ms of
   * the client; for a get of a cache that of the cache's options. See TIME LIMITS. */
  int64_t timeout_ms;

  /** Private fields of belay. The caller only initializes them with 0. */
  struct {
    void *pointers[24];
    int64_t numbers[26];
  } belay_private;
} belay_request_t;

/* CALLBACKS of requests (see CALLBACKS in belay/loop.h) have the shape
 *
 *     void cb(belay_request_t *request, int status, RESULT)
 *
 * status   0: the operation completed, and RESULT is valid. Otherwise an error. Each header lists
 *          its own errors. Common to all operations are
 *   BELAY_EUNREACHABLE      nothing was sent (also BELAY_ERESOLVE, BELAY_EBUSY)
 *   BELAY_ENOMEM            nothing was sent, or the reply could not be copied
 *   BELAY_EUNKNOWN          sent and not answered; it may have been executed. It comes as soon as
 *                           the connection ends, or at the deadline. Each header says which
 *                           operations are retried until the deadline
 *   BELAY_ECANCELED         belay_request_cancel() or a close
 *   another error           the server's refusal, such as BELAY_EWRONGTYPE
 * RESULT   is one of
 *   a pointer to a struct   never NULL. If status is not 0, all fields are 0, false or NULL. The
 *                           comment of a field names another value for "not known", if there is one
 *   an array and n          n is 0 unless status is 0. If n is 0, the array may be NULL. Where each
 *                           item has its own status (belay_counter_many_cb, belay_cache_many_cb), n
 *                           is always the number of items in the call
 *   a number, a bool        0 or false unless status is 0; the comment names any other value */

/* REPETITIONS, of all primitives. An operation that its header calls retried is sent again when its
 * reply was lost, until its deadline. If the repetition is refused, or its reply reports an error
 * (also "no record"), the operation ends as BELAY_EUNKNOWN at once: that error says nothing about
 * the first attempt. */

/* TIME LIMITS, of all primitives. An operation has one deadline, which is set when it begins. The
 * deadline covers all of its steps: connecting, waiting behind other calls, redirections, repeats,
 * and further questions to the server. The time until the deadline is the first of these that is
 * set (not BELAY_DEFAULT, and in a request not 0):
 *
 *   1. request.timeout_ms; or the argument timeout_ms of an operation without a request, such as
 *      belay_lock_release()
 *   2. options.timeout_ms of the handle: locks, elections, waits of latches and barriers, gets of
 *      caches
 *   3. belay_client_options_t.timeout_ms
 *
 * Two kinds of operations can take longer than one question to the server. Each of their questions
 * ends after the time of rule 2 or 3, or with the whole operation if that is earlier:
 *
 *   a wait for others
 *       A separate argument limits the whole wait: wait_ms of belay_lock_acquire() and of
 *       belay_latch_wait(), max_wait_us of belay_limiter_wait(). Rules 1 to 3 then give the time
 *       of each question. The first question always has its whole time, so the wait may end that
 *       much later.
 *   a get of a cache
 *       options.timeout_ms of a cache is the time of a get. A question takes at most the timeout_ms
 *       of the client. With BELAY_CACHE_AWAY_LOAD the first question takes at most half of the time
 *       of the get, so that the other half is left for the load.
 *
 * A policy for a server that is away (belay_away_t, belay_cache_away_t) acts after the question has
 * failed. It needs no further time, except for that load. */

/** Set all fields to 0. */
BELAY_API void belay_request_init(belay_request_t *request);

/** End a pending operation with BELAY_ECANCELED. The server may have executed it, or may still
 * execute it. An operation whose result is already known ends with that result.
 *
 * Returns 0, BELAY_EINVAL, BELAY_EFORK, or BELAY_ESTATE if nothing is pending. */
BELAY_API int belay_request_cancel(belay_request_t *request);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_REQUEST_H */
