/* Transitions from an acquire to its grant. Each function returns the next state. */
#ifndef BELAY_LEASE_MACHINE_ATTEMPT_H
#define BELAY_LEASE_MACHINE_ATTEMPT_H

#include "lease/machine/lease.h"

/* Starts an acquire: sends the first attempt, or waits for a turn. */
belay__lease_state_t belay__attempt_begin(belay__lease_t *lease);

/* Sends an attempt with a new token. */
belay__lease_state_t belay__attempt(belay__lease_t *lease);

/* Continues after an attempt that failed before the owner was notified of a grant. Waits for the
 * next attempt, or ends the acquire. */
belay__lease_state_t belay__attempt_failed(belay__lease_t *lease, int status);

/* Continues after a quorum granted the attempt: grants the lease, starts FENCING, or lets the
 * attempt fail. */
belay__lease_state_t belay__attempt_won(belay__lease_t *lease);

/* FENCING: continues after a READ or ACCEPT round was decided. status: result of that round. */
belay__lease_state_t belay__attempt_proposed(belay__lease_t *lease, int status);

/* GRANTED: lets the attempt fail, because the deadline passed before the owner was notified of the
 * grant. */
belay__lease_state_t belay__attempt_expired(belay__lease_t *lease);

/* Ends the acquire, because the owner cancels it. */
belay__lease_state_t belay__attempt_canceled(belay__lease_t *lease);

/* QUEUED, WAITING: sends an attempt, because the lease is next in its queue. yield: pause before
 * the attempt. */
belay__lease_state_t belay__attempt_turn(belay__lease_t *lease, belay__yield_t yield);

/* QUEUED, WAITING: ends the acquire, because the wait is over, and the turn came too late or not at
 * all. */
belay__lease_state_t belay__attempt_overdue(belay__lease_t *lease);

/* Advances the next attempt because of a message, a subscription or a connection. While an attempt
 * is pending, only notes the wake-up. */
belay__lease_state_t belay__attempt_woken(belay__lease_t *lease, belay__lease_state_t state,
                                          belay__woken_t by);

#endif /* BELAY_LEASE_MACHINE_ATTEMPT_H */
