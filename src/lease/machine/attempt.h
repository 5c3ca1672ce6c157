/* Transitions from an acquire to its grant. Each function returns the next state. */
#ifndef BELAY_LEASE_MACHINE_ATTEMPT_H
#define BELAY_LEASE_MACHINE_ATTEMPT_H

#include "lease/machine/lease.h"

/* The owner starts an acquire. */
belay__lease_state_t belay__attempt_begin(belay__lease_t *lease);

/* Sends an attempt with a new token. */
belay__lease_state_t belay__attempt(belay__lease_t *lease);

/* The attempt failed before the owner was notified of a grant. Waits for the next attempt, or ends
 * the acquire. */
belay__lease_state_t belay__attempt_failed(belay__lease_t *lease, int status);

/* A quorum granted the attempt. */
belay__lease_state_t belay__attempt_won(belay__lease_t *lease);

/* FENCING: a READ or ACCEPT round is decided. status: of that round. */
belay__lease_state_t belay__attempt_proposed(belay__lease_t *lease, int status);

/* GRANTED: the deadline passed before the owner was notified of the grant. */
belay__lease_state_t belay__attempt_expired(belay__lease_t *lease);

/* The owner cancels the acquire. */
belay__lease_state_t belay__attempt_canceled(belay__lease_t *lease);

/* QUEUED, WAITING: the lease is next in its queue. */
belay__lease_state_t belay__attempt_turn(belay__lease_t *lease, belay__yield_t yield);

/* QUEUED, WAITING: the wait is over, and the turn came too late or not at all. */
belay__lease_state_t belay__attempt_overdue(belay__lease_t *lease);

/* A message, a subscription or a connection is a reason to advance the next attempt. */
belay__lease_state_t belay__attempt_woken(belay__lease_t *lease, belay__lease_state_t state,
                                          belay__woken_t by);

#endif /* BELAY_LEASE_MACHINE_ATTEMPT_H */
