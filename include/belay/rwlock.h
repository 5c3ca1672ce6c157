/* A lock for many readers or one writer. */
#ifndef BELAY_RWLOCK_H
#define BELAY_RWLOCK_H

#include "belay/lock.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The access that the holder has. */
typedef enum belay_rwlock_mode {
  BELAY_RWLOCK_READ, /**< beside other readers */
  BELAY_RWLOCK_WRITE /**< alone */
} belay_rwlock_mode_t;

/** Makes a handle for a reader or a writer, on one server (n = 1) or on a quorum of n servers
 * (see belay/redlock.h). The functions of belay/lock.h use it. Each reader has a lease of its
 * own. Sends nothing.
 *
 * A waiting writer stops new readers. When a writer releases, the readers that waited meanwhile
 * are granted before the next writer, so neither side starves the other. Writers have no order
 * among themselves: the first request at the free lock wins. A dead waiter blocks others for at
 * most waiter_ttl_ms.
 *
 * One handle of a client asks the server for all waiting handles of that client, in their order.
 * When a reader is granted, the readers directly behind it are granted too, up to 256, even if a
 * writer waits. A reader behind a writer of its own client begins to wait on the server after
 * that writer's turn.
 *
 * The server does not know which handles belong together. A reader that waits for a second read
 * hold can deadlock: a waiting writer blocks it, and waits for its first hold. A writer that
 * acquires a second handle always waits for itself.
 *
 * Writers and readers get fencing numbers, larger with each grant; a change of mode keeps the
 * number. A resource that has seen a later reader's number refuses an earlier reader's, even
 * after its upgrade. The options owner, fair and key are not permitted.
 *
 * Returns 0, BELAY_EINVAL, BELAY_EDUPLICATE, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_rwlock_new(belay_client_t *const *clients, size_t n, belay_bytes_t name,
                               belay_rwlock_mode_t mode, const belay_lock_options_t *options,
                               belay_lock_t **out);

/** Returns the present mode of the handle. */
BELAY_API belay_rwlock_mode_t belay_rwlock_mode(const belay_lock_t *lock);

/** Turns a writer that holds the lock into a reader; no other client writes in between. From the
 * call on the handle is a reader, whatever the reply is. The call extends the lease, too. belay
 * repeats an unconfirmed change, which extends the lease again, also without a watchdog and past
 * max_hold_ms, until it is confirmed or the lease is over, released or lost.
 *
 * Returns, and calls back, as belay_lock_extend() does; BELAY_EINVAL for a handle that is no
 * reader or writer. */
BELAY_API int belay_rwlock_downgrade(belay_lock_t *lock, int64_t timeout_ms, belay_lock_cb cb);

/** Turns a reader that holds the lock into its writer, if no other reader holds it. The callback's status:
 *   0               it is the writer
 *   BELAY_ESHARED   another reader holds it too. It stays a reader, and is to release if it wants to write: two readers
 *                   that wait for each other would wait for ever
 *   otherwise       as belay_lock_extend(): it stays a reader. BELAY_EUNKNOWN also if it was executed, but an earlier
 *                   call may still be that would make a reader of it: one that was sent on a connection that is
 * lost, and
 *                   that the server does not let us kill. It helps to release and to acquire
 *
 * It goes before writers that wait. Extends the lease as well; and so does, again, what sets a change right that
 * was not confirmed, as in belay_rwlock_downgrade().
 *
 * Returns as belay_lock_extend() does; BELAY_EINVAL for a handle that is not a reader's or writer's. */
BELAY_API int belay_rwlock_upgrade(belay_lock_t *lock, int64_t timeout_ms, belay_lock_cb cb);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_RWLOCK_H */
