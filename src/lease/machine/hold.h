/* Transitions of a lease that is held. Each function returns the state to go to. */
#ifndef BELAY_LEASE_MACHINE_HOLD_H
#define BELAY_LEASE_MACHINE_HOLD_H

#include "lease/machine/lease.h"

/* The owner is about to be notified of the grant. */
belay__lease_state_t belay__hold_begin(belay__lease_t *lease);

/* Extends the lease: a renewal, or the owner's extend. */
belay__lease_state_t belay__hold_renew(belay__lease_t *lease, int64_t timeout_ms);

/* A member answered, perhaps after the others had decided. */
belay__lease_state_t belay__hold_answered(belay__lease_t *lease);

/* A server may have lost the lease since it was asked. */
belay__lease_state_t belay__hold_check(belay__lease_t *lease, belay__check_t why);

/* The deadline passed. */
belay__lease_state_t belay__hold_expired(belay__lease_t *lease);

/* Sets the ttl that the owner's extend asks for. A shorter one lowers the deadline at once. */
void belay__lease_change_ttl(belay__lease_t *lease, uint32_t ttl_ms);

#endif /* BELAY_LEASE_MACHINE_HOLD_H */
