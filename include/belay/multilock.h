/* A lock on several names at once: all or none of them. */
#ifndef BELAY_MULTILOCK_H
#define BELAY_MULTILOCK_H

#include "belay/lock.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BELAY_MULTILOCK_MAX 64 /**< names of one lock */

/** One of the names, and where it lives. */
typedef struct belay_multilock_name {
  belay_client_t *client; /**< where it is */
  belay_bytes_t name;     /**< 1 to 1024 bytes; copied */
} belay_multilock_name_t;

/** A lock on several names, in one deployment or in several. It excludes, and is excluded by,
 * plain locks (belay_lock_new()) on any of them.
 *
 * The names of one deployment are taken by one script, all or none. Several deployments are
 * asked one after the other, in an order that is the same for everybody whose clients have the
 * same URLs (host or path, port, and database, as they are written there) and, for one URL, the
 * same namespaces: so two who want the same names never hold a part each and wait for the other.
 * While a later one is waited for the earlier ones are held; what was taken is given back if the
 * rest cannot be had in time. The lease is that of all of them: it is lost when the first of
 * them is, and then the others are given back.
 *
 * Of a cluster (redis+cluster://) each slot is a deployment of its own in all of that: names
 * that lie in different ones are asked for one after the other, in the order of the slots. A
 * server that is a node of a cluster, and is called by a URL that does not say so, refuses names
 * of different slots: BELAY_ECROSSSLOT. */
typedef struct belay_multilock belay_multilock_t;

/** How an acquire or a release ended: 0 or an error; exactly once for each that returned 0, on
 * the loop, never inside the call that started it. Anything of belay's may be called in it, a
 * close too. */
typedef void (*belay_multilock_cb)(belay_multilock_t *lock, int status);

/** It is held no more, and the owner did not ask for that: one of the names is lost. Exactly once
 * for each loss, as belay_lock_lost_cb; the others are being given back. With BELAY_LOST_CLOSED
 * one of the clients was closed: told when what it had is given back, and the handle is good for
 * a close only. */
typedef void (*belay_multilock_lost_cb)(belay_multilock_t *lock, belay_lost_t reason);

/** Makes a handle for 1 to BELAY_MULTILOCK_MAX names; a repeated name counts once. Sends nothing.
 *
 * - All clients share a belay_t. Names of the same URL and namespace have the same client.
 * - The keys of one deployment have together at most 65,535 bytes, plus two per key.
 * - The options owner, fair, fencing, key and on_lost of the lock options are not permitted.
 * - on_lost may be NULL.
 *
 * After one of the clients is closed, no acquire is possible: a pending operation ends with
 * BELAY_ECANCELED, and a held multilock is lost (BELAY_LOST_CLOSED). The handle exists until it
 * is closed, or all of its clients are. After the close of the last client began, the handle may
 * only be used in its own callbacks, as any lock.
 *
 * Returns 0, BELAY_EINVAL, BELAY_EDUPLICATE (two clients of one URL and namespace),
 * BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_multilock_new(const belay_multilock_name_t *names, size_t n,
                                  const belay_lock_options_t *options,
                                  belay_multilock_lost_cb on_lost, belay_multilock_t **out);

/** Takes all of them, waiting at most wait_ms for all together (BELAY_DEFAULT: the option's; 0: each deployment is
 * asked once; BELAY_FOREVER). The option max_attempts is for each deployment. After a failure or a loss it may be
 * acquired again at once; that begins when what was taken before is given back, which may take as long as one call.
 *
 * The first attempt at each deployment has its whole timeout_ms, as belay_lock_acquire() says.
 *
 * The callback's status is as that of belay_lock_acquire(), of the deployment that decided it:
 * belay_multilock_error(). In all but 0 none of them is held. Besides, or with another meaning:
 *   BELAY_EEXPIRED    a part was granted, and over before the rest was; with time left all of them are asked again
 *   BELAY_EDUPLICATE  two of the clients reach the same server and database, and one of the names is meant by both
 *   BELAY_ECROSSSLOT  a node of a cluster whose URL does not say so, and names that do not share a slot
 *   BELAY_ECANCELED   belay_multilock_cancel(), a close, or one of the clients is closed
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (held, or an operation is pending), BELAY_ECLOSING (also: one of the
 * clients is) or BELAY_EFORK. */
BELAY_API int belay_multilock_acquire(belay_multilock_t *lock, int64_t wait_ms,
                                      belay_multilock_cb cb);

/** Releases all names. From this call on none is held, and no loss is reported. timeout_ms: for
 * each deployment, all at once; BELAY_DEFAULT: the option's. cb may be NULL. Its status is 0 or
 * the first error of a deployment, as of belay_lock_release(); BELAY_ECANCELED also if a client
 * is closed meanwhile.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ENOTOWNER (not held, or lost), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_multilock_release(belay_multilock_t *lock, int64_t timeout_ms,
                                      belay_multilock_cb cb);

/** Ends a pending acquire with BELAY_ECANCELED; names that it acquired are released.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (no acquire is pending), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_multilock_cancel(belay_multilock_t *lock);

/** How long all of them are certainly held yet, in microseconds; 0: they are not. Reads the clock
 * each time. */
BELAY_API int64_t belay_multilock_remaining_us(const belay_multilock_t *lock);

/** Returns the error of the last failed attempt or renewal, and sets *client to its deployment:
 * after a loss, its cause. Returns 0 if none failed since the last grant; then *client is NULL.
 * *client is also NULL if that client is closed. client may be NULL. If a key has another type,
 * belay_detail() names it in the callback with BELAY_EWRONGTYPE. */
BELAY_API int belay_multilock_error(const belay_multilock_t *lock, belay_client_t **client);

/** A pointer of the caller's own: options.data. */
BELAY_API void *belay_multilock_data(const belay_multilock_t *lock);

/** Whether it keeps the loop alive while it is held. It does not, unless asked to. Asking twice
 * is asking once. */
BELAY_API void belay_multilock_ref(belay_multilock_t *lock);
BELAY_API void belay_multilock_unref(belay_multilock_t *lock);

/** Runs once when belay_multilock_close() is through. data: see CLOSING in belay/loop.h. */
typedef void (*belay_multilock_close_cb)(belay_multilock_t *lock, void *data);

/** Ends the handle, in any state and in any callback. A pending operation ends with
 * BELAY_ECANCELED; what is held, or may be, is released in the background, for at most the
 * clients' close_timeout_ms; then the callback runs (cb may be NULL) and the memory is gone.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING (it is closed already, or all of belay is) or
 * BELAY_EFORK. */
BELAY_API int belay_multilock_close(belay_multilock_t *lock, belay_multilock_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_MULTILOCK_H */
