/* The quarantine: which servers have a vote. quarantine.c explains the rule. */
#ifndef BELAY_LEASE_QUORUM_QUARANTINE_H
#define BELAY_LEASE_QUORUM_QUARANTINE_H

#include "lease/machine/lease.h"

/* True if the node is known to have no vote now. */
bool belay__quarantine_known(const belay__member_t *member);

/* The earliest time at which a node without a vote gets it; BELAY__NEVER if all known nodes
 * vote. */
uint64_t belay__quarantine_ends(const belay__lease_t *lease);

/* True if a reply to the command sent at member->sent on connection member->sent_on is known to
 * count. */
bool belay__quarantine_allows(const belay__member_t *member);

/* As belay__quarantine_allows(), but asks the server if it is not known whether the reply counts.
 * Returns 0 (the reply counts), an error, or BELAY__PENDING: the query is member->confirm, and done
 * will run. */
int belay__quarantine_check(belay__member_t *member, belay__call_cb done);

/* Sends the query behind the call that was just sent, if the reply of that call will need it. */
void belay__quarantine_send_ahead(belay__member_t *member, uint64_t deadline, belay__call_cb done);

/* For done: reads the reply, and stores it for the client. Returns 0 or an error. */
int belay__quarantine_read(belay__call_t *call, const belay__result_t *result);

/* The member no longer waits for the query. The client still reads the reply. */
void belay__quarantine_abandon(belay__call_t **place);

#endif /* BELAY_LEASE_QUORUM_QUARANTINE_H */
