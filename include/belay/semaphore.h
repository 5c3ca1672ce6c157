/* A semaphore: a limited number of permits, each of them a lease. */
#ifndef BELAY_SEMAPHORE_H
#define BELAY_SEMAPHORE_H

#include "belay/lock.h"
#include "belay/request.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BELAY_SEMAPHORE_MAX 1000000u /**< largest limit */

/** The limit of a semaphore, and the number of permits that one handle takes. */
typedef struct belay_semaphore_size {
  unsigned limit;   /**< permits that all holders together may have: 1 to BELAY_SEMAPHORE_MAX */
  unsigned permits; /**< permits of this handle: 1 to limit */
} belay_semaphore_size_t;

/** Make a handle that acquires size->permits of the semaphore's limit at once, all or none. The
 * functions of belay/lock.h use it. It sends nothing. The options owner, key and fencing are not
 * permitted; max_handovers has no effect.
 *
 * Use a semaphore to bound how many processes work at the same time. To bound how often they start,
 * use belay/limiter.h.
 *
 * @code
 * static void on_acquired(belay_lock_t *permit, int status) {
 *   if (status == 0)
 *     belay_lock_release(permit, BELAY_DEFAULT, NULL); // after the work
 * }
 *
 * int enter_pool(belay_client_t *client, belay_lock_t **out) {
 *   const belay_semaphore_size_t size = {.limit = 10, .permits = 1};
 *   int error = belay_semaphore_new(&client, 1, belay_string("pool"), &size, NULL, out);
 *   return error != 0 ? error : belay_lock_acquire(*out, 5000, on_acquired);
 * }
 * @endcode
 *
 *   - Dead holders: permits return when the ttl ends by the server's clock.
 *   - Limit: a limit set with belay_semaphore_resize() counts while the server remembers it: 7 days
 *     after the last resize, acquire or extension. Otherwise the limit of each acquiring handle
 *     counts. If the server loses only the key NAME::permits, it grants no permits until all
 *     holders have extended or lost theirs. An acquire of more permits than a set limit ends with
 *     BELAY_EMISMATCH at once.
 *   - Waiters: one handle of a client asks the server, and the others are served behind it in
 *     order, for any number of permits. With options.fair all waiters queue on the server in order
 *     of arrival: a waiter for many permits is not overtaken, not even by handles without the
 *     option. Behind 100,000 waiters an acquire asks repeatedly and ends with BELAY_EBUSY at the
 *     end of its wait.
 *   - BELAY_EHELD and BELAY_ETIMEDOUT mean that too few permits are free.
 *
 * With several clients (n > 1) the limit must be 1, otherwise this returns BELAY_ESINGLE: with a
 * limit of two, each of five servers would grant two holders, and majorities of them three. fair is
 * not permitted for several clients, and a set limit does not count there. If two clients lead to
 * one server, this returns BELAY_EDUPLICATE, or the acquire ends with it.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESINGLE, BELAY_EDUPLICATE, BELAY_ENOMEM, BELAY_ECLOSING or
 * BELAY_EFORK. */
BELAY_API int belay_semaphore_new(belay_client_t *const *clients, size_t n, belay_bytes_t name,
                                  const belay_semaphore_size_t *size,
                                  const belay_lock_options_t *options, belay_lock_t **out);

/** State of a semaphore. All fields are 0 if status is not 0, or if the semaphore was never
 * used. */
typedef struct belay_semaphore_state {
  unsigned limit;   /**< limit set by belay_semaphore_resize(); 0: none */
  unsigned used;    /**< permits that holders have */
  unsigned holders; /**< number of holders */
  unsigned waiting; /**< number of waiters in the server's queue (options.fair) */
} belay_semaphore_state_t;

/** Reports the state of a semaphore; see CALLBACKS in belay/request.h. */
typedef void (*belay_semaphore_cb)(belay_request_t *request, int status,
                                   const belay_semaphore_state_t *state);

/** Read the state of a semaphore.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (the request is pending), BELAY_EBUSY, BELAY_ENOMEM,
 * BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_semaphore_read(belay_client_t *client, belay_request_t *request,
                                   belay_bytes_t name, belay_semaphore_cb cb);

/** A holder of permits. */
typedef struct belay_semaphore_holder {
  const char *label;    /**< label of the holder's token: options.label, or its client's owner */
  unsigned permits;     /**< number of its permits; 0: the server lost the number */
  int64_t remaining_ms; /**< rest of its lease by the server's clock, in milliseconds */
} belay_semaphore_holder_t;

#define BELAY_SEMAPHORE_HOLDERS_MAX 1000 /**< most holders that belay_semaphore_holders() lists */

/** Reports the n holders, ordered by label; n is 0 unless status is 0. status: as for
 * belay_semaphore_cb; BELAY_EMISMATCH: belay did not write the key's value. */
typedef void (*belay_semaphore_holders_cb)(belay_request_t *request, int status,
                                           const belay_semaphore_holder_t *holders, size_t n);

/** List the holders of permits. If there are more than BELAY_SEMAPHORE_HOLDERS_MAX, or than fit
 * into the client's max_reply, those with the latest ends are listed; belay_semaphore_read()
 * returns their number. Returns as belay_semaphore_read() does. */
BELAY_API int belay_semaphore_holders(belay_client_t *client, belay_request_t *request,
                                      belay_bytes_t name, belay_semaphore_holders_cb cb);

/** Set the limit for all clients: 1 to BELAY_SEMAPHORE_MAX. If holders have more permits, none is
 * taken back, and none granted until enough have returned. Waiters are woken. With BELAY_EUNKNOWN
 * the server may execute the call later, also after a limit that is set later: it is not sent
 * again. Returns as belay_semaphore_read() does. */
BELAY_API int belay_semaphore_resize(belay_client_t *client, belay_request_t *request,
                                     belay_bytes_t name, unsigned limit, belay_semaphore_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_SEMAPHORE_H */
