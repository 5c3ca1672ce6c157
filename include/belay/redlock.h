/* Redlock: one lock over several independent servers, which is held by whoever a majority granted it to. */
#ifndef BELAY_REDLOCK_H
#define BELAY_REDLOCK_H

#include <stddef.h>

#include "belay/client.h"
#include "belay/export.h"
#include "belay/lock.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Makes a handle for the lock of that name on n servers that know nothing of each other, each reached by a
 * client of its own. It is used with the functions of belay/lock.h, and means what they say; a plain lock is a
 * quorum of one. The algorithm is Redlock, https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/,
 * with the changes that are told here.
 *
 * It is held when n/2 + 1 nodes have granted it. All are asked at once; each has timeout_ms to answer; the
 * decision falls as soon as the votes allow one, so that a node that is slow or away delays nothing. A node that
 * has been silent for longer than timeout_ms is not asked again before something is heard of it. The lock survives
 * the loss of any minority: 1 of 3, 2 of 5. An even number survives no more losses than the odd one before it.
 *
 * - **Time.** Each node's grant is believed in for its ttl less the drift, from just before it was asked. The
 *   lease ends when the time of the n/2 + 1st longest grant is over. An answer is only good before that.
 * - **Connections** are made when they are first needed, within timeout_ms as all else: where the first attempt
 *   matters, ping the clients before it.
 * - **Undo.** What did not end as held is taken back on every node that may have it, behind the call that
 *   may have left it there, also after a cancel and a close. A node that cannot be reached forgets it when
 *   the ttl is over.
 * - **Renewal** asks all nodes, and sets the key again where it is gone, for the time that is left. Such a
 *   node counts only after the next majority that was reached without it.
 * - **Quarantine.** A server that was restarted, or took another's place, does not vote while leases from
 *   before may run: see belay_quarantine_t. On by default. A server that has just been started for the first
 *   time is no different: it votes once it has been up for max_ttl_ms.
 * - **Fencing** (option fencing): when a majority has granted the lock, a number is proposed that is larger
 *   than any that a majority has stored, and no smaller than the servers' clocks; the lock is held only
 *   when a majority has accepted it. Two holders never have the same number, and a later one has a larger one, also
 *   when a minority loses its counters, as long as the servers' clocks do not step back and are less than
 *   max_ttl_ms apart. A server without a vote has none about the number either.
 *
 * With fewer than n/2 + 1 of the nodes in reach an acquire ends with BELAY_ENOQUORUM, with none of them too, within
 * timeout_ms; one that waits goes on trying, and has the lock when enough are back. With n = 4 the majority is 3.
 *
 * Differences from a plain lock in what callbacks say: BELAY_EHELD if enough nodes answered and somebody else has
 * too many of them; BELAY_ENOQUORUM if too few answered, unless so many refused for a lasting reason that
 * there can be no quorum: then it is that reason. BELAY_LOST_TAKEN if so many nodes said that it is gone or someone
 * else's that those whose grant still counts are no majority. With n = 1 the statuses are a plain lock's.
 *
 * What it promises is what a plain lock promises (README.md), while at most a minority of the nodes lose data
 * at a time and only in ways that the quarantine sees. It sees what makes a new connection necessary: a restart, a
 * failover, a primary that was made a replica and a primary again (Sentinel closes its connections). It does
 * not see FLUSHALL, eviction, data of another server put into a running one behind its clients' backs, a clock
 * that jumps forward right after a restart without data, and a replica that takes over before it has received
 * the namespace's first marker.
 *
 * clients: 1 or 3 to BELAY_NODES_MAX, all different, of one belay_t, with the same namespace and owner, none of a cluster
 * (BELAY_EINVAL, whatever the quarantine is: the nodes of a cluster are not independent of each other);
 * 2 protect against nothing that 1 does not, and are refused unless allow_small. The array is copied. Closing one of
 * them closes the lock. That two of them reach the same server is refused where servers tell their run id: here
 * if it is known, else by the acquire (BELAY_EDUPLICATE).
 *
 * Returns 0, BELAY_EINVAL, BELAY_EDUPLICATE, BELAY_ESINGLE, BELAY_ENOMEM, BELAY_ECLOSING or
 * BELAY_EFORK. */
BELAY_API int belay_redlock_new(belay_client_t *const *clients, size_t n, belay_bytes_t name,
                                const belay_lock_options_t *options, belay_lock_t **out);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_REDLOCK_H */
