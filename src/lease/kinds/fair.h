/* The queue on the server, of the kinds that serve waiters in the order of arrival. */
#ifndef BELAY_LEASE_KINDS_FAIR_H
#define BELAY_LEASE_KINDS_FAIR_H

#include "lease/quorum/command.h"

/* Adds the arguments about a waiter's place: its ticket, the time for which the ticket keeps the
 * place, and the publish command. A single attempt does not queue. */
void belay__fair_put_place(const belay__lease_t *lease, belay__call_t *call);

/* The `acquired` of a kind, like belay__lock_acquired(). Two more replies: the queue is full,
 * BELAY_EBUSY; the request can never be granted, BELAY_EMISMATCH. */
int belay__fair_acquired(belay__lease_t *lease, const belay__call_t *call,
                         const belay__reply_t *reply, int64_t *holder_ms);

#endif /* BELAY_LEASE_KINDS_FAIR_H */
