/* The queue of one client: the leases of one key, in the order of service. queue.c has the
 * diagram. */
#ifndef BELAY_LEASE_WAIT_QUEUE_H
#define BELAY_LEASE_WAIT_QUEUE_H

#include "lease/machine/lease.h"

/* Joins the queue for the lease's key. True if the lease must wait for its turn. try: it never
 * waits, and becomes the first. */
bool belay__queue_join(belay__lease_t *lease, bool try);

/* Leaves the queue, if the lease is in one, and calls the next one. */
void belay__queue_leave(belay__lease_t *lease, bool granted);

/* Queues the turn of a lease that is QUEUED or WAITING: its task runs BELAY__EV_TURN, unless the
 * lease has started an attempt or has ended by then. */
void belay__queue_turn(belay__lease_t *lease, belay__yield_t yield);

/* Returns the next lease that waits, for the server or for its turn; NULL if there is none. */
belay__lease_t *belay__queue_next(const belay__lease_t *lease);

/* Passes the count of consecutive grants from a lease that leaves to the next one. */
void belay__queue_inherit(belay__lease_t *next, const belay__lease_t *gone);

/* The reason why the first lease of the queue waits: BELAY_EHELD or another error. */
int belay__queue_reason(const belay__lease_t *lease);

#endif /* BELAY_LEASE_WAIT_QUEUE_H */
