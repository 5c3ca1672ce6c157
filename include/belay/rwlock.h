/* A lock for many readers or one writer. */
#ifndef BELAY_RWLOCK_H
#define BELAY_RWLOCK_H

#include "belay/lock.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The access that a holder has. */
typedef enum belay_rwlock_mode {
  BELAY_RWLOCK_READ, /**< together with other readers */
  BELAY_RWLOCK_WRITE /**< exclusive */
} belay_rwlock_mode_t;

/** Make a handle for a reader or a writer, on one server (n = 1) or on a quorum of n servers (see
 * belay/redlock.h). The functions of belay/lock.h use it. It sends nothing. The options owner,
 * fair, key and label are not permitted (BELAY_EINVAL).
 *
 * Use it if holds for reading are long or frequent. Each reader has a lease of its own, so a short
 * hold costs as much as that of a plain lock (belay/lock.h).
 *
 * @code
 * static void on_acquired(belay_lock_t *lock, int status) {
 *   if (status == 0)
 *     belay_lock_release(lock, BELAY_DEFAULT, NULL); // after reading
 * }
 *
 * int read_catalog(belay_client_t *client, belay_lock_t **out) {
 *   int error =
 *       belay_rwlock_new(&client, 1, belay_string("catalog"), BELAY_RWLOCK_READ, NULL, out);
 *   return error != 0 ? error : belay_lock_acquire(*out, 5000, on_acquired);
 * }
 * @endcode
 *
 * A waiting writer stops new readers. When a writer releases, the readers that waited meanwhile are
 * granted before the next writer, so neither side starves the other. Writers have no order among
 * themselves. A dead waiter blocks others for at most waiter_ttl_ms.
 *
 * One handle of a client asks the server for all waiting handles of that client, in their order.
 * When a reader is granted, the readers directly behind it are granted too, up to 257, even if a
 * writer waits. A reader behind a writer of its own client begins to wait on the server after that
 * writer's turn.
 *
 * The server does not know which handles belong together. A reader that waits for a second read
 * hold can deadlock: a waiting writer blocks it, and waits for its first hold. A writer that
 * acquires a second handle always waits for itself.
 *
 * With options.fencing writers and readers get fencing numbers, larger with each grant; a change of
 * mode keeps the number. A resource that has seen a later reader's number refuses an earlier
 * reader's, even after its upgrade.
 *
 * Returns 0, BELAY_EINVAL, BELAY_EDUPLICATE, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_rwlock_new(belay_client_t *const *clients, size_t n, belay_bytes_t name,
                               belay_rwlock_mode_t mode, const belay_lock_options_t *options,
                               belay_lock_t **out);

/** Return the present mode of the handle. */
BELAY_API belay_rwlock_mode_t belay_rwlock_mode(const belay_lock_t *lock);

/** Turn a writer that holds the lock into a reader; no other client writes in between. Once the
 * call has returned 0, the handle is a reader, whatever the reply is. The call extends the lease,
 * too. belay repeats an unconfirmed change, which extends the lease again, also without a watchdog
 * and past max_hold_ms, until it is confirmed or the lease is over.
 *
 * Returns, and calls back, as belay_lock_extend() does; BELAY_EINVAL for a handle that is no reader
 * or writer. */
BELAY_API int belay_rwlock_downgrade(belay_lock_t *lock, int64_t timeout_ms, belay_lock_cb cb);

/** Turn a reader that holds the lock into its writer, if no other reader holds it. The handle is a
 * reader until the callback. It goes before waiting writers. The call extends the lease, too; for a
 * writer it does nothing else. An unconfirmed upgrade is not repeated: belay makes the handle a
 * reader on the server again, which extends the lease, also without a watchdog, until that is
 * confirmed or the lease is over. Status in the callback:
 *
 *   0              the handle is the writer
 *   BELAY_ESHARED  another reader holds the lock; the handle stays a reader. To write, release it
 *                  and acquire as a writer: two readers that both retry block each other for ever
 *   another error  as for belay_lock_extend(); the handle stays a reader. With BELAY_EUNKNOWN the
 *                  upgrade may have been executed
 *
 * Returns as belay_rwlock_downgrade() does. */
BELAY_API int belay_rwlock_upgrade(belay_lock_t *lock, int64_t timeout_ms, belay_lock_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_RWLOCK_H */
