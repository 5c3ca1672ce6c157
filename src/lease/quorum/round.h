/* A round: the same command to all members at once, and a decision as soon as the replies allow
 * one. Replies after the decision still count until the next round. */
#ifndef BELAY_LEASE_QUORUM_ROUND_H
#define BELAY_LEASE_QUORUM_ROUND_H

#include "lease/machine/lease.h"

/* Ends the former round, and sends the command of this round to all members. If the round is
 * decided at once, because too few commands could be sent, the lease's timer is set to now. */
void belay__round_start(belay__lease_t *lease, belay__round_t round, uint64_t deadline);

/* Abandons all calls of the round, and late acquires. */
void belay__round_forget(belay__lease_t *lease);

/* Returns BELAY__PENDING; 0: a quorum said yes; or the reason why a quorum cannot say yes. */
int belay__round_status(const belay__lease_t *lease);

/* False if the current connections of two members lead to the same server, whether or not it
 * replied. */
bool belay__round_distinct(const belay__lease_t *lease);

/* Lets restored members count from now on where that is possible (belay__member_rejoin()): a quorum
 * has confirmed an extend, or one more reply came after that. */
void belay__round_won(belay__lease_t *lease);

typedef enum belay__undo_how {
  BELAY__UNDO,
  BELAY__UNDO_KEEP_PLACE, /* the ticket of a waiter keeps its place in the server's queue */
  BELAY__UNDO_AND_WAIT    /* the lease gets BELAY__EV_UNDONE for each undo that ends */
} belay__undo_how_t;

/* Ends the round, and undoes the token and the ticket on every member that may have them. */
void belay__round_undo(belay__lease_t *lease, belay__undo_how_t how);

/* True while an undo of BELAY__UNDO_AND_WAIT is pending. After the second function the lease no
 * longer waits for these undos, which continue. */
bool belay__round_undoing(const belay__lease_t *lease);
void belay__round_forget_undo(belay__lease_t *lease);

/* Keeps a release that succeeded, so that it is sent again if a server that may still have the
 * lease replaces a server that replied. */
void belay__round_keep_release(belay__lease_t *lease);

/* Removes, after a grant, the places that the ticket may have in the queues of nodes that did not
 * grant the lease. */
void belay__round_leave_places(belay__lease_t *lease);

#endif /* BELAY_LEASE_QUORUM_ROUND_H */
