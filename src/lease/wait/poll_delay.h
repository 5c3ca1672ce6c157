/* When a waiter asks its servers again. */
#ifndef BELAY_LEASE_WAIT_POLL_DELAY_H
#define BELAY_LEASE_WAIT_POLL_DELAY_H

#include "lease/machine/lease.h"

/* When to ask after an attempt that ended with that status. */
uint64_t belay__poll_next(const belay__lease_t *lease, int status, uint64_t now);

/* When to ask after a wake-up. */
uint64_t belay__poll_woken(const belay__lease_t *lease, uint64_t now, belay__woken_t by);

/* When to ask in turn, where waiters of other clients go first. */
uint64_t belay__poll_yielded(const belay__lease_t *lease, uint64_t now, belay__yield_t how);

/* Nanoseconds for which the waiters of one client may hold a lease in a row before they make a pause for waiters of
 * other clients that only poll. */
uint64_t belay__poll_streak_max(const belay__lease_t *lease);

#endif /* BELAY_LEASE_WAIT_POLL_DELAY_H */
