/* Redlock: one lock over several independent servers. A majority of them grants it. */
#ifndef BELAY_REDLOCK_H
#define BELAY_REDLOCK_H

#include <stddef.h>

#include "belay/client.h"
#include "belay/export.h"
#include "belay/lock.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Makes a handle for the lock `name` on n independent servers, each with a client of its own.
 * The functions of belay/lock.h use it, with the same meaning; a plain lock is a quorum of one.
 * The algorithm is Redlock,
 * https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/, with the changes
 * below.
 *
 * The lock is held when n/2 + 1 nodes have granted it. All nodes are asked at once, and each has
 * timeout_ms to reply. The round ends as soon as the votes decide, so a slow or absent node
 * delays nothing. A node that was silent for longer than timeout_ms is asked again after it has
 * sent something. The lock survives the loss of a minority: 1 of 3, 2 of 5. An even n survives
 * no more losses than n - 1.
 *
 * - **Time.** Each grant counts for its ttl minus the drift, from just before its request was
 *   sent. The lease ends with the (n/2 + 1)-th longest grant. Replies count only before that.
 * - **Connections** are made at first use, within timeout_ms. Ping the clients first if the
 *   first attempt must not fail.
 * - **Undo.** A token that does not end as held is removed from every node that may have it,
 *   also after a cancel or a close. On an unreachable node it expires with its ttl.
 * - **Renewal** asks all nodes. It sets a missing key again for the rest of the lease. Such a
 *   node counts only after the next majority without it.
 * - **Quarantine.** A server that restarted, or replaced another one, does not vote while former
 *   leases may be valid: see belay_quarantine_t. On by default. A new server votes max_ttl_ms
 *   after its start, too.
 * - **Fencing** (option fencing). After a majority has granted the lock, the handle proposes a
 *   number that is larger than every number that a majority has stored, and not below the
 *   servers' clocks. The lock is held only after a majority has accepted the number. Two holders
 *   never have the same number, and a later holder has a larger one. This holds if a minority
 *   loses its counters, as long as the servers' clocks do not step back and differ by less than
 *   max_ttl_ms. A server without a vote has none about numbers.
 *
 * With fewer than n/2 + 1 reachable nodes, even with none, an acquire ends with BELAY_ENOQUORUM
 * within timeout_ms. A waiting acquire keeps trying until enough nodes are back. For n = 4 the
 * majority is 3.
 *
 * Statuses that differ from a plain lock's:
 *
 * - BELAY_EHELD: enough nodes replied, and another owner has too many of them.
 * - BELAY_ENOQUORUM: too few nodes replied. If too many nodes refused for a lasting reason, the
 *   status is that reason.
 * - BELAY_LOST_TAKEN: the lock is gone or another owner's on so many nodes that the remaining
 *   grants are no majority.
 *
 * With n = 1 the statuses are a plain lock's.
 *
 * The promise is that of a plain lock (README.md), while at most a minority of the nodes loses
 * data at a time, and only in ways that the quarantine detects. It detects every loss that ends
 * connections: a restart, a failover, a primary that was demoted and promoted again. It does not
 * detect:
 *
 * - FLUSHALL, eviction, or data of another server loaded into a running one;
 * - a clock that jumps forward right after a restart without data;
 * - a replica that is promoted before it has the namespace's first marker.
 *
 * clients: 1, or 3 to BELAY_NODES_MAX, all different, of one belay_t, with the same namespace
 * and owner, none of a cluster (BELAY_EINVAL, with any quarantine: nodes of a cluster are not
 * independent). 2 nodes protect no better than 1, and need allow_small. The array is copied.
 * Closing one client closes the lock. Two clients of one server are refused where servers tell
 * their run id: by this call if it is known, else by the acquire (BELAY_EDUPLICATE).
 *
 * Returns 0, BELAY_EINVAL, BELAY_EDUPLICATE, BELAY_ESINGLE, BELAY_ENOMEM, BELAY_ECLOSING or
 * BELAY_EFORK. */
BELAY_API int belay_redlock_new(belay_client_t *const *clients, size_t n, belay_bytes_t name,
                                const belay_lock_options_t *options, belay_lock_t **out);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_REDLOCK_H */
