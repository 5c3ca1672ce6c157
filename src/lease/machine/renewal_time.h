/* When a holder asks its servers again. */
#ifndef BELAY_LEASE_MACHINE_RENEWAL_TIME_H
#define BELAY_LEASE_MACHINE_RENEWAL_TIME_H

#include "lease/machine/lease.h"

/* True if the watchdog renews the lease: it is on, and max_hold is not over. */
bool belay__lease_renews(const belay__lease_t *lease, uint64_t now);

/* When to renew; BELAY__NEVER: not at all. */
uint64_t belay__lease_renewal_due(const belay__lease_t *lease, uint64_t now);

/* When to try again after a failed renewal: with backoff, or soon because a connection is up. */
uint64_t belay__lease_renewal_retry(const belay__lease_t *lease, uint64_t now);
uint64_t belay__lease_renewal_soon(const belay__lease_t *lease, uint64_t now);

/* When to ask because the server may have lost the lease. */
uint64_t belay__lease_check_at(const belay__lease_t *lease, uint64_t now, belay__check_t why);

#endif /* BELAY_LEASE_MACHINE_RENEWAL_TIME_H */
