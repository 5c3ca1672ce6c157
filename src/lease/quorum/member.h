/* A member of a lease: sends a command to one node, and confirms the reply. member.c has the
 * diagram. */
#ifndef BELAY_LEASE_QUORUM_MEMBER_H
#define BELAY_LEASE_QUORUM_MEMBER_H

#include "lease/machine/lease.h"

/* Sends the command of the round. If it cannot be sent, member->status is the cause. same: a member
 * that sent the same command just now, or NULL; its call is copied. */
void belay__member_send(belay__member_t *member, uint64_t deadline, const belay__member_t *same);

/* Abandons the call, and notes its possible effect on the server. */
void belay__member_forget(belay__member_t *member);

/* The first function keeps an acquire that the decision did not wait for: its yes still counts. The
 * second one abandons it. */
void belay__member_postpone(belay__member_t *member);
void belay__member_forget_late(belay__member_t *member);

/* An extend was won without the restored members. A member that was known to have the lease before
 * the extend was sent, and that confirmed it, counts from now on. */
void belay__member_rejoin(belay__member_t *member);

#endif /* BELAY_LEASE_QUORUM_MEMBER_H */
