/* The hand-over from a holder to the next waiter of the same client. hand_over.c has the
 * diagram. */
#ifndef BELAY_LEASE_WAIT_HAND_OVER_H
#define BELAY_LEASE_WAIT_HAND_OVER_H

#include "lease/machine/lease.h"

/* Passes the lease to the next in the queue, which has until `deadline` to answer. Returns false
 * if there is none. */
bool belay__hand_over_start(belay__lease_t *lease, uint64_t deadline);

/* The attempt of a lease ended with that status. Ends its hand-over, if there is one. If the
 * lease was not passed on, or that is not known, the releasing lease releases it itself. */
void belay__hand_over_end(belay__lease_t *lease, int status);

/* The releasing lease no longer waits for the reply. */
void belay__hand_over_forget(belay__lease_t *lease);

#endif /* BELAY_LEASE_WAIT_HAND_OVER_H */
