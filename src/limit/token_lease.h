/* Token leases: tokens of a key that are fetched ahead and served from memory. token_lease.c has
 * the states. */
#ifndef BELAY_LIMIT_TOKEN_LEASE_H
#define BELAY_LIMIT_TOKEN_LEASE_H

#include "limit/command.h"

/* The lease of a key; NULL if there is none. */
belay__token_lease_t *belay__token_lease_find(const belay_limiter_t *limiter, uint64_t hash,
                                              belay_bytes_t key);

/* Take cost tokens, if the lease has them and no other take waits. Allocates nothing. */
bool belay__token_lease_serve(belay__token_lease_t *lease, int64_t cost, uint64_t now);

/* For a take that the lease did not serve: the number of tokens that the server would have to
 * grant, at least 1. 0: other takes wait already. */
int64_t belay__token_lease_need(const belay__token_lease_t *lease, int64_t cost, uint64_t now);

/* Fetch more tokens in the background if the lease runs low. */
void belay__token_lease_refill(belay__token_lease_t *lease, uint64_t now);

/* Let a PARKED take wait for the lease of its key, which is fetched. Returns false if there is
 * no room: then the take must be sent separately. */
bool belay__token_lease_park(belay_limiter_t *limiter, belay__operation_t *operation,
                             belay_bytes_t key);

/* Called when a take is canceled: it no longer waits for its lease. */
void belay__token_lease_left(belay__operation_t *operation, bool sent);

/* Call this before an operation on a key is sent. If the operation gives tokens back, cached
 * denials and fetch pauses of the key end. If it is a reset or a ban, leased tokens are given
 * back. */
void belay__token_lease_before(belay_limiter_t *limiter, const belay__limit_command_t *command);

/* Give back all leases, before the policy changes. */
void belay__token_leases_suspend(belay_limiter_t *limiter);
/* After the policy has changed: send the takes that wait for a lease under the new policy. */
void belay__token_leases_resume(belay_limiter_t *limiter);

/* Give back all leases when the limiter closes. No take waits any more. */
void belay__token_leases_close(belay_limiter_t *limiter);

#endif /* BELAY_LIMIT_TOKEN_LEASE_H */
