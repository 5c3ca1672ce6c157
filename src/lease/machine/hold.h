/* Transitions of a lease that is held: renewals, extends, its loss, its release, its close. Each
 * function returns the next state. */
#ifndef BELAY_LEASE_MACHINE_HOLD_H
#define BELAY_LEASE_MACHINE_HOLD_H

#include "lease/machine/lease.h"

/* The owner is about to be notified of the grant. */
belay__lease_state_t belay__hold_begin(belay__lease_t *lease);

/* Extends the lease: a renewal, or the owner's extend. */
belay__lease_state_t belay__hold_renew(belay__lease_t *lease, int64_t timeout_ms);

/* A member replied to a renewal; or late, when the round was decided. */
belay__lease_state_t belay__hold_answered(belay__lease_t *lease);

/* A server may have lost the lease since its last reply. */
belay__lease_state_t belay__hold_check(belay__lease_t *lease, belay__check_t why);

/* The deadline passed. */
belay__lease_state_t belay__hold_expired(belay__lease_t *lease);

/* Sets the ttl that the owner's extend asks for. A shorter ttl lowers the deadline at once. */
void belay__lease_change_ttl(belay__lease_t *lease, uint32_t ttl_ms);

/* The owner releases the lease: a hand-over to the next waiter of the client, or a release. */
belay__lease_state_t belay__release_start(belay__lease_t *lease, int64_t timeout_ms);

/* The release, or its hand-over, ended with this status. */
belay__lease_state_t belay__release_answered(belay__lease_t *lease, int status);

/* The next waiter has no reply in time. */
belay__lease_state_t belay__release_overdue(belay__lease_t *lease);

/* A close, in any state before CLOSING. */
belay__lease_state_t belay__release_close(belay__lease_t *lease);

/* All undos are over, or are no longer waited for. */
belay__lease_state_t belay__release_closed(belay__lease_t *lease);

#endif /* BELAY_LEASE_MACHINE_HOLD_H */
