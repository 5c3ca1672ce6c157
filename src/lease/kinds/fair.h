/* Arguments and replies of the queue on the server. The fair lock and both kinds of semaphores use
 * them. */
#ifndef BELAY_LEASE_KINDS_FAIR_H
#define BELAY_LEASE_KINDS_FAIR_H

#include "lease/quorum/command.h"

/* Adds the arguments about a waiter's place: its ticket, the time for which the ticket keeps the
 * place, and the publish command. Without a ticket the attempt does not queue: an acquire with a
 * wait of 0 has none, nor has a plain semaphore. */
void belay__fair_put_place(const belay__lease_t *lease, belay__call_t *call);

/* The `acquired` of a kind, like belay__lock_acquired(), with two more statuses: BELAY_EBUSY, the
 * queue is full; BELAY_EMISMATCH, a semaphore's limit is smaller than the wanted permits. */
int belay__fair_acquired(belay__lease_t *lease, const belay__call_t *call,
                         const belay__reply_t *reply, int64_t *holder_ms);

#endif /* BELAY_LEASE_KINDS_FAIR_H */
