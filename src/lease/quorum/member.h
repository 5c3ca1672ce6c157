/* A member of a lease: asks one node, and confirms its answer. member.c has the diagram. */
#ifndef BELAY_LEASE_QUORUM_MEMBER_H
#define BELAY_LEASE_QUORUM_MEMBER_H

#include "lease/machine/lease.h"

/* Sends the round's question. A question that cannot be sent is answered at once: member->status. same: a member that
 * was asked the same just now, or NULL; its call is copied. */
void belay__member_send(belay__member_t *member, uint64_t deadline, const belay__member_t *same);

/* Abandons the question, and notes what it may do on the server. */
void belay__member_forget(belay__member_t *member);

/* An acquire that is not decisive any more stays under way: its yes still counts. The second abandons it. */
void belay__member_postpone(belay__member_t *member);
void belay__member_forget_late(belay__member_t *member);

/* An extend was won without the members that were set again. A member that was known to have the lease when the extend
 * was sent, and confirmed that, counts from now on. */
void belay__member_rejoin(belay__member_t *member);

#endif /* BELAY_LEASE_QUORUM_MEMBER_H */
