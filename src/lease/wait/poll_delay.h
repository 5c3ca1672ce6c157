/* The time at which a waiter sends its next attempt. Times are in ns. The first two functions
 * return at most the end of the wait. */
#ifndef BELAY_LEASE_WAIT_POLL_DELAY_H
#define BELAY_LEASE_WAIT_POLL_DELAY_H

#include "lease/machine/lease.h"

/* Returns the time of the attempt after one that ended with this status. BELAY_EHELD: that attempt
 * found the lease held. */
uint64_t belay__poll_next(const belay__lease_t *lease, int status, uint64_t now);

/* Returns the time of the next attempt after a wake-up. */
uint64_t belay__poll_woken(const belay__lease_t *lease, uint64_t now, belay__woken_t by);

/* Returns the time of the next attempt after the lease's turn in the client's queue has come, if
 * waiters of other clients go first. */
uint64_t belay__poll_yielded(const belay__lease_t *lease, uint64_t now, belay__yield_t how);

/* Duration of consecutive grants to leases of one client, in ns. After this time the next lease may
 * pause for waiters of other clients that only poll. */
uint64_t belay__poll_streak_max(const belay__lease_t *lease);

#endif /* BELAY_LEASE_WAIT_POLL_DELAY_H */
