/* A round: the same question to all members, and the decision. */
#ifndef BELAY_LEASE_QUORUM_ROUND_H
#define BELAY_LEASE_QUORUM_ROUND_H

#include "lease/machine/lease.h"

/* Sends the question to all members; ends the round before it. A round that cannot be sent is decided at once, and the
 * lease's timer is set to now. */
void belay__round_start(belay__lease_t *lease, belay__round_t round, uint64_t deadline);

/* Abandons all questions. */
void belay__round_forget(belay__lease_t *lease);

/* Returns BELAY__PENDING, 0 (a quorum said yes), or why a quorum cannot say yes any more. */
int belay__round_status(const belay__lease_t *lease);

/* False if two members are known to be the same server, whether they answered or not. */
bool belay__round_distinct(const belay__lease_t *lease);

/* An extend was won, perhaps with one more answer just now: members that did not count in it may count from now on. */
void belay__round_won(belay__lease_t *lease);

/* Ends the round and undoes our token on every member that may have it, and our ticket, unless
 * its place is kept. wait: the lease gets BELAY__EV_UNDONE for each finished undo, until
 * belay__round_forget_undo(). */
typedef enum belay__undo_how {
  BELAY__UNDO,
  BELAY__UNDO_KEEP_PLACE,
  BELAY__UNDO_AND_WAIT
} belay__undo_how_t;
void belay__round_undo(belay__lease_t *lease, belay__undo_how_t how);
/* A release was answered: it is sent again to members whose connection is lost while they may still have the lease. */
void belay__round_keep_release(belay__lease_t *lease);

/* It is held: gives up the places that it is known to have, or may have, on other nodes. */
void belay__round_leave_places(belay__lease_t *lease);
bool belay__round_undoing(const belay__lease_t *lease);
void belay__round_forget_undo(belay__lease_t *lease);

#endif /* BELAY_LEASE_QUORUM_ROUND_H */
