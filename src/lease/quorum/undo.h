/* An undo removes, in the background, the token and the ticket that an attempt may have left on a
 * server. For a lease that still waits, the ticket keeps its place instead. An undo continues after
 * the handle is closed.
 *
 *    start --> SENDING --reply, no later execution possible--> over: undone
 *                |  ^
 *     unknown,   |  | time for the next try
 *     or a ghost |  |
 *                v  |
 *              RESTING --the ttl has expired on the server--> over: undone if the server has
 *                                                             replied, else given up
 *
 *    SENDING, RESTING --the client aborts--> over: given up
 *
 * With repeat_release, an undo of a token is KEPT after its reply, because a server without the
 * undo may replace the server that replied:
 *
 *    reply --> KEPT --the connection of the reply is lost, or the key moves--> SENDING
 *                +--the ttl has expired on the server, or the client closes--> over
 *
 * A ghost is an attempt on a lost connection that the server may still read from its socket, after
 * the undo on the next connection. If the new connection could not kill the old one, the undo is
 * repeated GHOST_REPEATS times. A token that a ghost sets after that lives for its ttl. */
#ifndef BELAY_LEASE_QUORUM_UNDO_H
#define BELAY_LEASE_QUORUM_UNDO_H

#include "lease/machine/lease.h"

/* The objects of an undo. BELAY__UNDO_PLACE: the ticket keeps its place for waiter_ttl, instead of
 * being removed. Only the first command of the undo includes the ticket then: a repeated command
 * could restore a place that the waiter has given up since. */
enum { BELAY__UNDO_TOKEN = 1, BELAY__UNDO_TICKET = 2, BELAY__UNDO_PLACE = 4 };

/* Starts an undo on the member's node. Its call is sent before this returns, behind all earlier
 * calls of its connection class and route.
 *
 * - release: a release of the token that is in flight, which becomes the call of the undo; or NULL.
 * - wait: true if exchange->undo is set until the undo is over. Then the lease gets
 *   BELAY__EV_UNDONE.
 *
 * No undo starts if memory is out, or if `wait` is false and UNDO_MAX undos of the client are
 * pending. Then the token and the ticket stay on the server for their ttl. */
void belay__undo_start(belay__member_t *member, unsigned what, belay__call_t *release, bool wait);

/* Makes a KEPT undo for the token of a release that has its reply. Does nothing if the client
 * closes, KEPT_MAX undos are KEPT, or memory is out. */
void belay__undo_keep(belay__member_t *member);

/* Detaches exchange->undo, if there is one: the lease no longer waits for it. The undo
 * continues. */
void belay__undo_detach(belay__member_t *member);

#endif /* BELAY_LEASE_QUORUM_UNDO_H */
