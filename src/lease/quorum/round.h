/* A round: the same command to all members at once, and a decision as soon as the replies allow
 * one. Replies that the decision did not need still count until the next round. */
#ifndef BELAY_LEASE_QUORUM_ROUND_H
#define BELAY_LEASE_QUORUM_ROUND_H

#include "lease/machine/lease.h"

/* Ends the former round, and sends the command to all members. A round that cannot be sent is
 * decided at once: then the lease's timer is set to now. */
void belay__round_start(belay__lease_t *lease, belay__round_t round, uint64_t deadline);

/* Abandons all calls of the round. */
void belay__round_forget(belay__lease_t *lease);

/* Returns BELAY__PENDING; 0: a quorum said yes; or the reason why a quorum cannot say yes. */
int belay__round_status(const belay__lease_t *lease);

/* False if two members are known to be the same server, with or without replies. */
bool belay__round_distinct(const belay__lease_t *lease);

/* An extend was won, or got one more reply after that: restored members may count from now on. */
void belay__round_won(belay__lease_t *lease);

/* Ends the round, and undoes the token and the ticket on every member that may have them. */
typedef enum belay__undo_how {
  BELAY__UNDO,
  BELAY__UNDO_KEEP_PLACE, /* the ticket keeps its place */
  BELAY__UNDO_AND_WAIT    /* the lease gets BELAY__EV_UNDONE for each undo that ends */
} belay__undo_how_t;
void belay__round_undo(belay__lease_t *lease, belay__undo_how_t how);

/* True while an undo of BELAY__UNDO_AND_WAIT is pending. The second function ends the wait. */
bool belay__round_undoing(const belay__lease_t *lease);
void belay__round_forget_undo(belay__lease_t *lease);

/* A release succeeded: it is sent again when a server that may still have the lease replaces one
 * that replied. */
void belay__round_keep_release(belay__lease_t *lease);

/* The lease is granted: removes the places that it has, or may have, in the queues of other
 * nodes. */
void belay__round_leave_places(belay__lease_t *lease);

#endif /* BELAY_LEASE_QUORUM_ROUND_H */
