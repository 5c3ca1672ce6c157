/* Transitions of a lease that is held: renewals, extends, its loss, its release, its close. Each
 * function returns the next state. */
#ifndef BELAY_LEASE_MACHINE_HOLD_H
#define BELAY_LEASE_MACHINE_HOLD_H

#include "lease/machine/lease.h"

/* GRANTED: the task is about to notify the owner of the grant. */
belay__lease_state_t belay__hold_begin(belay__lease_t *lease);

/* Starts an EXTEND round: a renewal, or the owner's extend. */
belay__lease_state_t belay__hold_renew(belay__lease_t *lease, int64_t timeout_ms);

/* EXTENDING: a member has a result. HELD: a member has a result after its round was decided. */
belay__lease_state_t belay__hold_answered(belay__lease_t *lease);

/* A server may have lost the lease since its last reply. If the watchdog renews the lease, advances
 * the next renewal; in EXTENDING, does so after the extend. */
belay__lease_state_t belay__hold_check(belay__lease_t *lease, belay__check_t why);

/* HELD, EXTENDING: the deadline passed, and the lease is lost. */
belay__lease_state_t belay__hold_expired(belay__lease_t *lease);

/* Sets the ttl that the owner's extend asks for. A shorter ttl lowers the deadline at once. */
void belay__lease_change_ttl(belay__lease_t *lease, uint32_t ttl_ms);

/* The owner releases the lease: a hand-over to the next waiter of the client, or a release. */
belay__lease_state_t belay__release_start(belay__lease_t *lease, int64_t timeout_ms);

/* RELEASING: the release, or its hand-over, ended with this status. */
belay__lease_state_t belay__release_answered(belay__lease_t *lease, int status);

/* RELEASING with a partner: its attempt did not end before the deadline of the release. */
belay__lease_state_t belay__release_overdue(belay__lease_t *lease);

/* A close, in any state before CLOSING. */
belay__lease_state_t belay__release_close(belay__lease_t *lease);

/* CLOSING: all undos are over, close_timeout has passed, or the client aborts. Stops waiting for
 * undos. */
belay__lease_state_t belay__release_closed(belay__lease_t *lease);

#endif /* BELAY_LEASE_MACHINE_HOLD_H */
