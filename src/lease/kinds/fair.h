/* The queue on the server, of the kinds that are served in the order of arrival. */
#ifndef BELAY_LEASE_KINDS_FAIR_H
#define BELAY_LEASE_KINDS_FAIR_H

#include "lease/quorum/command.h"

/* The fair lock; on one node. */
extern const belay__kind_t belay__fair_kind;

/* Returns 0, or an error with a detail if an option contradicts `fair`. */
int belay__fair_check(belay_t *belay, size_t n, const belay_lock_options_t *options);

/* Adds what a script needs to know of a waiter: its ticket, for how long that keeps its place, and how to publish.
 * One attempt alone does not queue. */
void belay__fair_put_place(const belay__lease_t *lease, belay__call_t *call);

/* A kind's `acquired`: as belay__lock_acquired(), with the replies of a queue: BELAY_EBUSY, it is full; BELAY_EMISMATCH,
 * this can never be granted. */
int belay__fair_acquired(belay__lease_t *lease, const belay__call_t *call,
                         const belay__reply_t *reply, int64_t *holder_ms);

#endif /* BELAY_LEASE_KINDS_FAIR_H */
