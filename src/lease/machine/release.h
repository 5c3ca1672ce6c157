/* Transitions of a release and of a close. Each function returns the state to go to. */
#ifndef BELAY_LEASE_MACHINE_RELEASE_H
#define BELAY_LEASE_MACHINE_RELEASE_H

#include "lease/machine/lease.h"

/* The owner gives the lease back: passes it to the next waiter of the client, or releases it. */
belay__lease_state_t belay__release_start(belay__lease_t *lease, int64_t timeout_ms);

/* The release was answered. */
belay__lease_state_t belay__release_answered(belay__lease_t *lease, int status);

/* The next waiter has not answered in time. */
belay__lease_state_t belay__release_overdue(belay__lease_t *lease);

/* Closes the lease, whatever its state. */
belay__lease_state_t belay__release_close(belay__lease_t *lease);

/* All undos are over, or are not waited for any more. */
belay__lease_state_t belay__release_closed(belay__lease_t *lease);

#endif /* BELAY_LEASE_MACHINE_RELEASE_H */
