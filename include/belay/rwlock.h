/* A lock for many readers or one writer. */
#ifndef BELAY_RWLOCK_H
#define BELAY_RWLOCK_H

#include "belay/lock.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What the holder does with what is locked. */
typedef enum belay_rwlock_mode {
  BELAY_RWLOCK_READ, /**< beside other readers */
  BELAY_RWLOCK_WRITE /**< alone */
} belay_rwlock_mode_t;

/** Makes a handle that reads or writes, on one server (n = 1) or on a quorum of n (see belay/redlock.h). It is used
 * with the functions of belay/lock.h; each reader has a lease of its own. Sends nothing.
 *
 * A writer that waits stops new readers. When a writer releases, the readers that have waited meanwhile are served
 * before the next writer: so neither starves the other. Among writers there is no order: of those that wait, the
 * one whose question reaches the server first when it is free has it. A waiter that dies keeps others out for at
 * most waiter_ttl_ms.
 *
 * Of the readers of one client that wait one asks for all (and of all that wait in a client, one, in their order):
 * when it is let in, so are those that stand right behind it, up to 256, also beside a writer that waits. A reader
 * behind a writer of its own client begins to wait on the server when that writer has had its turn.
 *
 * Nothing tells who asks for whom: whoever reads and waits to read once more, with another handle, may wait for
 * itself, since a writer that waits meanwhile keeps it out, and waits for its first hold to end. A writer that asks
 * once more, in either mode, waits for itself in any case.
 *
 * Fencing numbers are given to writers and readers alike, larger for each grant, and a change of mode is none: a
 * resource that has seen the number of a later reader refuses that of an earlier one, also when it has become the
 * writer. The options owner, fair and key are not for this lock.
 *
 * Returns 0, BELAY_EINVAL, BELAY_EDUPLICATE, BELAY_ENOMEM, BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_rwlock_new(belay_client_t *const *clients, size_t n, belay_bytes_t name,
                               belay_rwlock_mode_t mode, const belay_lock_options_t *options,
                               belay_lock_t **out);

/** What the handle is: as it was made, or as it was changed since. */
BELAY_API belay_rwlock_mode_t belay_rwlock_mode(const belay_lock_t *lock);

/** Turns a writer that holds the lock into a reader that does; nobody else writes in between. From the call on the
 * handle is a reader's, whatever the answer is. Extends the lease as well. If the change is not confirmed, belay
 * goes on asking for it, and so extends the lease again, also without a watchdog and past max_hold_ms, until it is
 * confirmed, or the lease is over, released or lost.
 *
 * Returns, and calls back, as belay_lock_extend() does; BELAY_EINVAL for a handle that is not a reader's or
 * writer's. */
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
