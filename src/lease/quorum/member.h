/* A member of a lease: sends a command to one node and reads the reply. A positive reply may count
 * only after a confirmation: enough replicas have the write, or the quarantine lets the server
 * vote. member.c has the diagram. */
#ifndef BELAY_LEASE_QUORUM_MEMBER_H
#define BELAY_LEASE_QUORUM_MEMBER_H

#include "lease/machine/lease.h"

/* Sends the command of the round. If the command is not sent, exchange->status is the cause. same:
 * a member to which the same command was just sent, or NULL. Its call is copied if possible. */
void belay__member_send(belay__member_t *member, uint64_t deadline, const belay__member_t *same);

/* Frees the command of the member's call once it is sent, because the command can be built again. A
 * call of a hand-over keeps its command, because the command names the partner. */
void belay__member_lean(const belay__member_t *member);

/* Builds the command of a member's call again, for belay__extension_t. */
void belay__member_rebuild(belay__call_t *call);

/* Abandons the member's call of the round, and notes the possible effect of the call on the
 * server. */
void belay__member_forget(belay__member_t *member);

/* The first function moves a pending acquire to exchange->late when a fencing round starts: a grant
 * still counts. It does nothing with min_replicas. The second function abandons exchange->late. */
void belay__member_postpone(belay__member_t *member);
void belay__member_forget_late(belay__member_t *member);

/* Lets a restored member count from now on, after a quorum has confirmed an extend without the
 * restored members. Does nothing unless the member ended as BELAY__RESTORED in this round and in an
 * earlier one. */
void belay__member_rejoin(belay__member_t *member);

#endif /* BELAY_LEASE_QUORUM_MEMBER_H */
