/* The meaning of a node's reply to a lease's command, and the possible effect of a missing
 * reply. */
#ifndef BELAY_LEASE_QUORUM_REPLY_H
#define BELAY_LEASE_QUORUM_REPLY_H

#include "lease/machine/lease.h"

/* Reads the reply to the round's call, and notes its meaning in the member. Returns 0,
 * BELAY__RESTORED or an error. */
int belay__reply_read(belay__member_t *member, const belay__call_t *call,
                      const belay__result_t *result);

/* Reads the reply to an acquire, which may belong to an earlier round. */
int belay__reply_read_acquired(belay__member_t *member, const belay__call_t *call,
                               const belay__result_t *result);

/* Notes which server confirmed the command, if its connection is still up. */
void belay__reply_note_server(belay__member_t *member);

/* Note the possible effect of a call on connection `epoch` that has no valid reply. The first
 * function is for the round's call. The second one is for an acquire, or for an extend that may set
 * the key again. */
void belay__reply_note_lost(belay__member_t *member, uint32_t epoch);
void belay__reply_note_lost_acquire(belay__member_t *member, uint32_t epoch);

#endif /* BELAY_LEASE_QUORUM_REPLY_H */
