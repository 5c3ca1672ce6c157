/* Redlock: one lock over several independent servers. A majority of them grants it. */
#ifndef BELAY_REDLOCK_H
#define BELAY_REDLOCK_H

#include "belay/lock.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Make a handle for the lock of a name on n independent servers, each with its own client. The
 * functions of belay/lock.h use the handle; a plain lock is a quorum of one.
 *
 * Use it for a lock that must survive the loss of a server. It costs one command per server and
 * attempt. If a short outage is acceptable, use belay_lock_new() with a fencing number.
 *
 * @code
 * static void on_acquired(belay_lock_t *lock, int status) {
 *   if (status == 0)
 *     belay_lock_release(lock, BELAY_DEFAULT, NULL); // after the work
 * }
 *
 * int lock_payroll(belay_client_t *const clients[3], belay_lock_t **out) {
 *   int error = belay_redlock_new(clients, 3, belay_string("payroll"), NULL, out);
 *   return error != 0 ? error : belay_lock_acquire(*out, 10000, on_acquired);
 * }
 * @endcode
 *
 * The algorithm is Redlock
 * (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/). The lock is held when
 * n/2 + 1 nodes have granted it. It survives the loss of a minority: 1 of 3, 2 of 5. All nodes are
 * asked at once, and each has timeout_ms to reply. The round ends as soon as the votes decide. A
 * node that was silent for longer than timeout_ms is asked again after it has sent something.
 *
 *   - Time: each grant counts for its ttl minus the drift, from just before its request was sent.
 *     The lease ends with the (n/2 + 1)-th longest grant. Replies count only before that.
 *   - Connections are made at first use, within timeout_ms. Ping the clients first if the first
 *     attempt must not fail.
 *   - Undo: a token that does not end as held is removed from every node that may have it, also
 *     after a cancel or a close. On an unreachable node it expires with its ttl.
 *   - Renewal asks all nodes. It sets a missing key again for the rest of the lease. Such a node
 *     counts only after the next majority without it.
 *   - Quarantine: a server that restarted, or replaced another one, does not vote while former
 *     leases may be valid (belay_quarantine_t). It is on by default. A new server votes max_ttl_ms
 *     after its start, too.
 *   - Fencing (options.fencing): after a majority has granted the lock, the handle proposes a
 *     number that is larger than every number that a majority has stored, and not below the
 *     servers' clocks. The lock is held only after a majority has accepted the number. Two holders
 *     never have the same number, and a later holder has a larger one. This holds if a minority
 *     loses its counters, as long as the servers' clocks do not step back and differ by less than
 *     max_ttl_ms. A server without a vote has none about numbers.
 *
 * With n = 1 a status has the meaning of a plain lock's. Otherwise these differ:
 *
 *   BELAY_EHELD       a majority replied (granted, or held by another owner), with too few grants
 *   BELAY_ENOQUORUM   fewer nodes replied so within timeout_ms, perhaps none; a waiting acquire
 *                     keeps trying. If too many nodes refused for a lasting reason, the status is
 *                     that reason
 *   BELAY_LOST_TAKEN  a majority no longer has the lock: it is gone, or another owner has it
 *
 * The promise is that of a plain lock (belay/lock.h), while at most a minority of the nodes loses
 * data at a time, and only in ways that the quarantine detects. It detects every loss that ends
 * connections: a restart, a failover, a primary that was demoted and promoted again. It does not
 * detect FLUSHALL, eviction, or data of another server loaded into a running one; a clock that
 * jumps forward right after a restart without data; a replica that is promoted before it has the
 * namespace's first marker.
 *
 * clients: 1, or 3 to BELAY_NODES_MAX, all different, of one belay_t, with the same namespace and
 * owner, none of a cluster. 2 nodes protect no better than 1, and need allow_small. The array is
 * copied. Closing one client closes the lock, without a call of on_lost. Two clients of one server
 * are refused where servers tell their run id: by this call if it is known, else by the acquire
 * (BELAY_EDUPLICATE).
 *
 * Returns 0, BELAY_EINVAL, BELAY_EDUPLICATE, BELAY_ESINGLE, BELAY_ENOMEM, BELAY_ESYSTEM,
 * BELAY_ECLOSING or BELAY_EFORK. */
BELAY_API int belay_redlock_new(belay_client_t *const *clients, size_t n, belay_bytes_t name,
                                const belay_lock_options_t *options, belay_lock_t **out);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_REDLOCK_H */
