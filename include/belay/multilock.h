/* A lock on several names at once: all or none of them. */
#ifndef BELAY_MULTILOCK_H
#define BELAY_MULTILOCK_H

#include "belay/lock.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BELAY_MULTILOCK_MAX 64 /**< names of one lock */

/** One of the names, and the deployment that it lives in. */
typedef struct belay_multilock_name {
  belay_client_t *client; /**< client of the deployment */
  belay_bytes_t name;     /**< 1 to 1024 bytes; copied */
} belay_multilock_name_t;

/** A handle for a lock on several names, in one deployment or in several. It excludes, and is
 * excluded by, plain locks (belay_lock_new()) on any of the names.
 *
 * Use it for work on several objects that have locks of their own, such as a transfer between two
 * accounts. For one name use belay/lock.h.
 *
 * @code
 * static void on_acquired(belay_multilock_t *lock, int status) {
 *   if (status == 0)
 *     belay_multilock_release(lock, BELAY_DEFAULT, NULL); // after the transfer
 * }
 *
 * int lock_accounts(belay_client_t *client, belay_multilock_t **out) {
 *   const belay_multilock_name_t names[] = {{client, belay_string("account/1")},
 *                                           {client, belay_string("account/2")}};
 *   int error = belay_multilock_new(names, 2, NULL, NULL, out);
 *   return error != 0 ? error : belay_multilock_acquire(*out, 5000, on_acquired);
 * }
 * @endcode
 *
 * One script takes the names of one deployment, all or none. Several deployments are asked one
 * after another, in an order that is the same in all clients with the same URLs (as written there:
 * host or path, port, database) and namespaces. So two multilocks never wait for each other.
 * Earlier deployments stay locked while a later one is waited for. If the rest is not granted in
 * time, all names are released. If an earlier lease is lost meanwhile, the acquire starts again.
 * The lease ends with the first lease of a deployment; then the others are released.
 *
 * In a cluster (redis+cluster://) each slot counts as a deployment of its own, in the order of the
 * slots. A node of a cluster whose URL does not say so refuses names of different slots:
 * BELAY_ECROSSSLOT. */
typedef struct belay_multilock belay_multilock_t;

/** Reports the end of an acquire or a release; see belay_lock_cb. */
typedef void (*belay_multilock_cb)(belay_multilock_t *lock, int status);

/** Reports that one of the names is lost; see belay_lock_lost_cb. The others are being released.
 * BELAY_LOST_CLOSED: one of the clients was closed. The callback then runs after its names were
 * released, and the handle can only be closed. */
typedef void (*belay_multilock_lost_cb)(belay_multilock_t *lock, belay_lost_t reason);

/** Make a handle. n is 1 to BELAY_MULTILOCK_MAX; names that are equal are locked once. It sends
 * nothing.
 *
 *   - All clients share a belay_t. Names of the same URL and namespace have the same client.
 *   - The sum of (length + 2) over the keys of one deployment is at most 65,535 bytes.
 *   - The options owner, fair, fencing, key, label and on_lost of the lock options are not
 *     permitted. max_attempts counts for each deployment.
 *   - on_lost may be NULL.
 *
 * After one of the clients is closed, no acquire is possible: a pending operation ends with
 * BELAY_ECANCELED, and a held multilock is lost (BELAY_LOST_CLOSED). The handle exists until it is
 * closed, or all of its clients are. After the close of the last client began, the handle may only
 * be used in its own callbacks, as any lock.
 *
 * Returns 0, BELAY_EINVAL, BELAY_EDUPLICATE (two clients of one URL and namespace), BELAY_ENOMEM,
 * BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_multilock_new(const belay_multilock_name_t *names, size_t n,
                                  const belay_lock_options_t *options,
                                  belay_multilock_lost_cb on_lost, belay_multilock_t **out);

/** Acquire all names. wait_ms is the longest wait for all of them together: BELAY_DEFAULT for
 * options.wait_ms, 0 for one attempt at each deployment, BELAY_FOREVER for no limit. The first
 * attempt at each deployment has its whole timeout_ms. After a failure or a loss the first attempt
 * starts when all names are released, which may take as long as one call.
 *
 * The status in the callback is that of belay_lock_acquire() for the deployment that decided it
 * (belay_multilock_error()). With any status except 0 no name is held. These differ:
 *
 *   BELAY_EEXPIRED    an earlier lease was lost, and no time to start again was left
 *   BELAY_EDUPLICATE  two of the clients reach the same server and database, and have a common name
 *   BELAY_ECROSSSLOT  a node of a cluster whose URL does not say so, and names of different slots
 *   BELAY_ECANCELED   belay_multilock_cancel(), a close, or one of the clients is closed
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (held, or an operation is pending), BELAY_ECLOSING (the
 * handle or a client is closed) or BELAY_EFORK. */
BELAY_API int belay_multilock_acquire(belay_multilock_t *lock, int64_t wait_ms,
                                      belay_multilock_cb cb);

/** Release all names. From this call on none is held, and no loss is reported. timeout_ms: for each
 * deployment, all at once; BELAY_DEFAULT for options.timeout_ms. cb may be NULL. Its status is 0 or
 * the first error in the order of the deployments, as of belay_lock_release(); BELAY_ECANCELED also
 * if a client is closed meanwhile.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ENOTOWNER (not held, or lost), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_multilock_release(belay_multilock_t *lock, int64_t timeout_ms,
                                      belay_multilock_cb cb);

/** End a pending acquire with BELAY_ECANCELED; names that it acquired are released.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ESTATE (no acquire is pending), BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_multilock_cancel(belay_multilock_t *lock);

/** Return the time for which all names are certainly held, in microseconds; 0 if they are not. Each
 * call reads the clock. */
BELAY_API int64_t belay_multilock_remaining_us(const belay_multilock_t *lock);

/** Return the error of the last failed attempt or renewal, and set *client to its deployment: after
 * a loss, its cause. 0 if none failed since the last grant; then *client is NULL. *client is also
 * NULL if that client is closed. client may be NULL. If a key has another type, belay_detail()
 * names it in the callback with BELAY_EWRONGTYPE. */
BELAY_API int belay_multilock_error(const belay_multilock_t *lock, belay_client_t **client);

/** Return options.data. */
BELAY_API void *belay_multilock_data(const belay_multilock_t *lock);

/** Let the lock keep the loop alive while it is held; off by default. belay_multilock_unref()
 * undoes it. Further calls have no effect. */
BELAY_API void belay_multilock_ref(belay_multilock_t *lock);
BELAY_API void belay_multilock_unref(belay_multilock_t *lock);

/** Runs once when the handle is gone. data is described at CLOSING in belay/loop.h. */
typedef void (*belay_multilock_close_cb)(belay_multilock_t *lock, void *data);

/** Close the handle, in any state and in any callback. A pending operation ends with
 * BELAY_ECANCELED. Names that are held, or may be, are released in the background, within the
 * clients' close_timeout_ms. Then cb runs (NULL is allowed), and the memory is freed.
 *
 * Returns 0, BELAY_EINVAL, BELAY_ECLOSING (closed already, or all of belay is) or BELAY_EFORK. */
BELAY_API int belay_multilock_close(belay_multilock_t *lock, belay_multilock_close_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_MULTILOCK_H */
