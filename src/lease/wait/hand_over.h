/* The hand-over from a holder to the next waiter of the same client. hand_over.c has the
 * diagram. */
#ifndef BELAY_LEASE_WAIT_HAND_OVER_H
#define BELAY_LEASE_WAIT_HAND_OVER_H

#include "lease/machine/lease.h"

/* Starts to pass the lock of a lease to the next waiter in the client's queue. The release of the
 * lease ends with the waiter's attempt, or at `deadline`. Returns false, and changes nothing, if
 * there is no such waiter or a hand-over is not permitted. */
bool belay__hand_over_start(belay__lease_t *lease, uint64_t deadline);

/* Ends a hand-over, because the wait or the attempt of the receiving lease ended with this status.
 * No effect without a hand-over. The release ends as follows:
 *
 *   0            the lock was passed on: the release succeeded
 *   BELAY_EHELD  of an attempt: the release ends with BELAY_ENOTOWNER
 *   otherwise    the releasing lease sends a release of its own */
void belay__hand_over_end(belay__lease_t *lease, int status);

/* Ends the hand-over of a releasing lease, which no longer waits for the receiver's attempt. No
 * effect on other leases. */
void belay__hand_over_forget(belay__lease_t *lease);

#endif /* BELAY_LEASE_WAIT_HAND_OVER_H */
