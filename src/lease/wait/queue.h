/* The queue of one client: the leases of one key, in the order of service. queue.c has the
 * diagram. */
#ifndef BELAY_LEASE_WAIT_QUEUE_H
#define BELAY_LEASE_WAIT_QUEUE_H

#include "lease/machine/lease.h"

/* Joins the queue for the lease's key, if its kind has client queues. True if the lease must wait
 * for its turn. try: the number of attempts is limited; the lease becomes the first of the queue
 * and never waits for a turn. */
bool belay__queue_join(belay__lease_t *lease, bool try);

/* Leaves the queue, if the lease is in one, and gives the turn to the next lease. granted: the
 * lease leaves because it was granted. */
void belay__queue_leave(belay__lease_t *lease, bool granted);

/* Queues the turn of a lease that is QUEUED or WAITING: its task runs BELAY__EV_TURN, unless the
 * lease has started an attempt or has ended by then. */
void belay__queue_turn(belay__lease_t *lease, belay__yield_t yield);

/* Returns the next lease behind this one that is QUEUED or WAITING, is in no hand-over, and still
 * has time to wait. NULL if there is none. */
belay__lease_t *belay__queue_next(const belay__lease_t *lease);

/* Passes the count of consecutive grants from a lease that leaves to the next one. A lease that
 * leaves without a grant also passes the number of releases that it has seen. */
void belay__queue_inherit(belay__lease_t *next, const belay__lease_t *gone);

/* Returns the reason why a lease got no turn: the last error of the queue's first lease, if that
 * lease contends; otherwise BELAY_EHELD. */
int belay__queue_reason(const belay__lease_t *lease);

#endif /* BELAY_LEASE_WAIT_QUEUE_H */
