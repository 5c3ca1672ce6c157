/* The quarantine: decides which servers vote, that is, whose replies count in acquires, fencing
 * rounds and upgrades. quarantine.c explains the rule. */
#ifndef BELAY_LEASE_QUORUM_QUARANTINE_H
#define BELAY_LEASE_QUORUM_QUARANTINE_H

#include "lease/machine/lease.h"

/* True if it is known that the node's current server does not vote yet. */
bool belay__quarantine_known(const belay__member_t *member);

/* Returns the earliest time at which the server of a member starts to vote. BELAY__NEVER if no
 * member's server is known to be in quarantine. */
uint64_t belay__quarantine_ends(const belay__lease_t *lease);

/* True if the reply to the command that was sent at exchange->sent on connection member->sent_on is
 * known to count: the server voted already at that time. Always true without a quarantine. */
bool belay__quarantine_allows(const belay__member_t *member);

/* As belay__quarantine_allows(), but asks the server if it is not known whether the reply counts.
 * Returns 0 (the reply counts), an error, or BELAY__PENDING: the query is exchange->confirm, and
 * done will run. */
int belay__quarantine_check(belay__member_t *member, belay__call_cb done);

/* Sends the query behind the call that was just sent, if the vote of the server is not known. */
void belay__quarantine_send_ahead(belay__member_t *member, uint64_t deadline, belay__call_cb done);

/* For `done`: reads the reply to the query, and stores the result for the client. Returns 0 if a
 * result was stored, whether or not the server votes, or an error. */
int belay__quarantine_read(belay__call_t *call, const belay__result_t *result);

/* Detaches a query from its member, which no longer waits for it. The client still reads the
 * reply. */
void belay__quarantine_abandon(belay__call_t **place);

#endif /* BELAY_LEASE_QUORUM_QUARANTINE_H */
