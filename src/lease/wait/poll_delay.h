/* The time at which a waiter sends its next attempt. */
#ifndef BELAY_LEASE_WAIT_POLL_DELAY_H
#define BELAY_LEASE_WAIT_POLL_DELAY_H

#include "lease/machine/lease.h"

/* After an attempt that ended with this status. */
uint64_t belay__poll_next(const belay__lease_t *lease, int status, uint64_t now);

/* After a wake-up. */
uint64_t belay__poll_woken(const belay__lease_t *lease, uint64_t now, belay__woken_t by);

/* When the turn came, but waiters of other clients go first. */
uint64_t belay__poll_yielded(const belay__lease_t *lease, uint64_t now, belay__yield_t how);

/* Time for which the waiters of one client hold a lease in a row, in ns. After that they pause for
 * waiters of other clients that only poll. */
uint64_t belay__poll_streak_max(const belay__lease_t *lease);

#endif /* BELAY_LEASE_WAIT_POLL_DELAY_H */
