/* A semaphore: a limited number of permits, each of them a lease. */
#ifndef BELAY_SEMAPHORE_H
#define BELAY_SEMAPHORE_H

#include "belay/lock.h"
#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BELAY_SEMAPHORE_MAX 1000000u /**< the largest limit */

/** How much there is, and how much of it one lock takes. */
typedef struct belay_semaphore_size {
  unsigned limit;   /**< permits that may be held at once */
  unsigned permits; /**< permits of this lock */
} belay_semaphore_size_t;

/** Makes a handle that acquires `permits` of the semaphore's `limit` at once, all or none (each 1
 * to BELAY_SEMAPHORE_MAX, permits at most limit). The functions of belay/lock.h use it. Sends
 * nothing.
 *
 * - **Dead holders.** Permits return when the ttl ends by the server's clock.
 * - **Limit.** A limit set with belay_semaphore_resize() counts while the server remembers it: 7
 *   days after the last acquire or extension. Otherwise the limit of each acquiring handle
 *   counts. If the server loses only the key NAME::permits, it grants no permits until all
 *   holders have extended or lost theirs. An acquire of more permits than a set limit ends with
 *   BELAY_EMISMATCH.
 * - **Waiters.** One handle of a client asks the server, and the others are served behind it in
 *   order, whatever number they want. With the option fair all waiters queue on the server in
 *   order of arrival: a waiter for many permits is not overtaken, not even by handles without
 *   the option. Behind 100,000 waiters an acquire asks repeatedly and ends with BELAY_EBUSY at
 *   the end of its wait.
 * - BELAY_EHELD and BELAY_ETIMEDOUT mean that too few permits are free.
 * - The options owner, key and fencing are not permitted; max_handovers has no effect.
 *
 * With several clients (n > 1) the limit must be 1, otherwise this returns BELAY_ESINGLE: with a
 * limit of two, each of five servers would grant two holders, and majorities of them three. fair
 * is not permitted for several clients, and a set limit does not count there. An acquire ends
 * with BELAY_EDUPLICATE if two clients lead to one server.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESINGLE, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_semaphore_new(belay_client_t *const *clients, size_t n, belay_bytes_t name,
                                  const belay_semaphore_size_t *size,
                                  const belay_lock_options_t *options, belay_lock_t **out);

/** How a semaphore stands. All 0 if status is not 0. */
typedef struct belay_semaphore_state {
  unsigned limit;   /**< as it was set; 0 if it was not */
  unsigned used;    /**< permits that are out */
  unsigned holders; /**< who has them */
  unsigned waiting; /**< in the server's queue: with fair */
} belay_semaphore_state_t;

/** A callback of the shape of belay/request.h. status:
 *
 *   0                    the server answered
 *   BELAY_EUNREACHABLE   nothing was sent (BELAY_ERESOLVE: the name does not resolve)
 *   BELAY_EUNKNOWN       sent, and not answered in time
 *   BELAY_ECANCELED      belay_request_cancel() or a close
 *   another error        the server's refusal, such as BELAY_EWRONGTYPE */
typedef void (*belay_semaphore_cb)(belay_request_t *request, int status,
                                   const belay_semaphore_state_t *state);

/** Asks how it stands. The request is the caller's, and belay's until the callback runs.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY, BELAY_ENOMEM,
 * BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_semaphore_read(belay_client_t *client, belay_request_t *request,
                                   belay_bytes_t name, belay_semaphore_cb cb);

/** One that has permits. */
typedef struct belay_semaphore_holder {
  const char *label;    /**< of its token: the option label, or its client's owner */
  unsigned permits;     /**< 0: the server has forgotten how many */
  int64_t remaining_ms; /**< of its lease, by the server's clock */
} belay_semaphore_holder_t;

#define BELAY_SEMAPHORE_HOLDERS_MAX 1000 /**< that are told */

/** holders: n entries, ordered by label; n is 0 unless status is 0. status: as with
 * belay_semaphore_read(); BELAY_EMISMATCH: belay did not write the key's value. */
typedef void (*belay_semaphore_holders_cb)(belay_request_t *request, int status,
                                           const belay_semaphore_holder_t *holders, size_t n);

/** Lists the holders of permits. If there are more than BELAY_SEMAPHORE_HOLDERS_MAX, or than fit
 * into the client's max_reply, those with the latest ends are listed; belay_semaphore_read()
 * returns their number.
 *
 * Returns as belay_semaphore_read() does. */
BELAY_API int belay_semaphore_holders(belay_client_t *client, belay_request_t *request,
                                      belay_bytes_t name, belay_semaphore_holders_cb cb);

/** Sets the limit for all who use it: 1 to BELAY_SEMAPHORE_MAX. If more permits are out, none is
 * taken back, and none given until enough have come back. Waiters are woken. Doing it twice is
 * doing it once.
 *
 * Status: as with belay_semaphore_read(); and BELAY_EUNKNOWN: it was sent and not answered, and
 * not sent again. It may have been executed, or may yet be, also after a limit that is set
 * later.
 *
 * Returns as belay_semaphore_read() does. */
BELAY_API int belay_semaphore_resize(belay_client_t *client, belay_request_t *request,
                                     belay_bytes_t name, unsigned limit, belay_semaphore_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_SEMAPHORE_H */
