/* An undo removes, in the background, the token and the ticket that an attempt may have left on a
 * server. The ticket may keep its place instead. An undo continues after the handle is closed.
 *
 *    start --> SENDING --reply, no later execution possible--> over: undone
 *                |  ^
 *     unknown,   |  | time for the next try
 *     or a ghost |  |
 *                v  |
 *              RESTING --the ttl has expired on the server, or abort--> over: given up
 *
 * With repeat_release, a token whose undo has a reply stays KEPT, because a server without the undo
 * may take the place of this one:
 *
 *    reply --> KEPT --its connection is lost--> SENDING
 *                +--the ttl has expired on the server, or the client closes--> over
 *
 * A ghost is an attempt on a lost connection which the server may still read from its socket,
 * after the undo on the next connection. If the new connection could not kill the old one, the
 * undo is repeated a few times. A remaining token lives for its ttl. */
#ifndef BELAY_LEASE_QUORUM_UNDO_H
#define BELAY_LEASE_QUORUM_UNDO_H

#include "lease/machine/lease.h"

/* The objects of an undo. BELAY__UNDO_PLACE: the ticket keeps its place for waiter_ttl, instead of
 * being removed. That is said once: behind a later call it could restore a place that was given
 * up. */
enum { BELAY__UNDO_TOKEN = 1, BELAY__UNDO_TICKET = 2, BELAY__UNDO_PLACE = 4 };

/* Starts an undo on the member's node. Its call is sent before this returns, behind all earlier
 * calls of its connection class and route. If a release of the token is in flight, that is its
 * call: release, else NULL. wait: member->undo is set until the undo is over; then the lease gets
 * BELAY__EV_UNDONE. If memory is out, or if too many undos are pending that no lease waits for, the
 * rest lives for its ttl. */
void belay__undo_start(belay__member_t *member, unsigned what, belay__call_t *release, bool wait);

/* Keeps the token of a release that has its reply: the undo is KEPT, if there is room for it. */
void belay__undo_keep(belay__member_t *member);

/* The lease no longer waits for member->undo, if there is one. The undo continues. */
void belay__undo_detach(belay__member_t *member);

#endif /* BELAY_LEASE_QUORUM_UNDO_H */
