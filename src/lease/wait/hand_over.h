/* The hand-over from a holder to the next waiter of the same client. hand_over.c has the diagram. */
#ifndef BELAY_LEASE_WAIT_HAND_OVER_H
#define BELAY_LEASE_WAIT_HAND_OVER_H

#include "lease/machine/lease.h"

/* Passes the lease to the next in the queue, which has until answer_by to answer. False if there is none. */
bool belay__hand_over_start(belay__lease_t *lease, uint64_t deadline);

/* The attempt of a lease ended with that status; ends the hand-over, if the attempt was part of one. If the lease was
 * not passed on, or that is not known, the giver releases it by itself. */
void belay__hand_over_end(belay__lease_t *lease, int status);

/* The giver does not wait for the answer any more. */
void belay__hand_over_forget(belay__lease_t *lease);

#endif /* BELAY_LEASE_WAIT_HAND_OVER_H */
