/* Transitions of a lease that is held: renewals, extends, its loss, its release, its close. Each
 * function returns the next state. */
#ifndef BELAY_LEASE_MACHINE_HOLD_H
#define BELAY_LEASE_MACHINE_HOLD_H

#include "lease/machine/lease.h"

/* GRANTED: schedules the first renewal, because the task is about to notify the owner of the
 * grant. */
belay__lease_state_t belay__hold_begin(belay__lease_t *lease);

/* Starts an EXTEND round: a renewal, or the owner's extend. */
belay__lease_state_t belay__hold_renew(belay__lease_t *lease, int64_t timeout_ms);

/* Handles the result of a member; in HELD, a result after the round was decided. The lease is LOST
 * if no quorum keeps it any more. */
belay__lease_state_t belay__hold_answered(belay__lease_t *lease);

/* Handles a sign that a server may have lost the lease since its last reply. If the watchdog renews
 * the lease, advances the next renewal; in EXTENDING, does so after the extend. */
belay__lease_state_t belay__hold_check(belay__lease_t *lease, belay__check_t why);

/* HELD, EXTENDING: makes the lease LOST, because the deadline passed. */
belay__lease_state_t belay__hold_expired(belay__lease_t *lease);

/* Sets the ttl that the owner's extend asks for. A shorter ttl lowers the deadline at once. */
void belay__lease_change_ttl(belay__lease_t *lease, uint32_t ttl_ms);

/* Starts the release of the owner: as a hand-over to the next waiter of the client if possible,
 * otherwise as a RELEASE round. */
belay__lease_state_t belay__release_start(belay__lease_t *lease, int64_t timeout_ms);

/* RELEASING: ends the owner's release after its round or hand-over ended with this status. */
belay__lease_state_t belay__release_answered(belay__lease_t *lease, int status);

/* RELEASING with a partner: ends the release with BELAY_EUNKNOWN, because the partner's attempt did
 * not end before the deadline. */
belay__lease_state_t belay__release_overdue(belay__lease_t *lease);

/* Starts the close of a lease in any state before CLOSING. */
belay__lease_state_t belay__release_close(belay__lease_t *lease);

/* Ends the close: all undos are over, close_timeout has passed, or the client aborts. The lease no
 * longer waits for undos. */
belay__lease_state_t belay__release_closed(belay__lease_t *lease);

#endif /* BELAY_LEASE_MACHINE_HOLD_H */
