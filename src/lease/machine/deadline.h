/* Times of a lease that is held: its local deadline, and the time of its next renewal. */
#ifndef BELAY_LEASE_MACHINE_DEADLINE_H
#define BELAY_LEASE_MACHINE_DEADLINE_H

#include "lease/machine/lease.h"

/* Nanoseconds for which a ttl can be trusted: the ttl less the drift. */
uint64_t belay__lease_validity(uint32_t ttl_ms, int32_t drift_ms);

/* Nanoseconds after which a server has forgotten a key with that ttl, whatever the rate of its
 * clock. */
uint64_t belay__lease_forgotten_after(uint32_t ttl_ms);

/* The time until which a quorum of members keeps the lease: the quorum-th largest of the members'
 * times. 0: no quorum does. */
uint64_t belay__lease_deadline(const belay__lease_t *lease);

/* Nanoseconds for which the lease is certainly held; 0 if it is not. */
uint64_t belay__lease_remaining(const belay__lease_t *lease);

/* Sets the expiry timer to the deadline. False if the deadline is not ahead. */
bool belay__lease_set_expiry(belay__lease_t *lease);

/* True if the watchdog renews the lease: it is on, and max_hold is not over. */
bool belay__lease_renews(const belay__lease_t *lease);

/* Time of the next renewal: renew_after behind the send that the deadline counts from, or earlier,
 * so that renewals that are due at about the same time share a batch. BELAY__NEVER: none. */
uint64_t belay__lease_renewal_due(const belay__lease_t *lease);

/* Time of the next try after a failed renewal, with backoff. */
uint64_t belay__lease_renewal_retry(const belay__lease_t *lease);

/* Time at which a holder asks a server that may have lost the lease. */
uint64_t belay__lease_check_at(const belay__lease_t *lease, belay__check_t why);

#endif /* BELAY_LEASE_MACHINE_DEADLINE_H */
