/* Token leases: tokens of a key that are fetched ahead and served from memory. token_lease.c has
 * the states. */
#ifndef BELAY_LIMIT_TOKEN_LEASE_H
#define BELAY_LIMIT_TOKEN_LEASE_H

#include "limit/command.h"

/* The lease of a key; NULL if there is none. */
belay__token_lease_t *belay__token_lease_find(const belay_limiter_t *limiter, uint64_t hash,
                                              belay_bytes_t key);

/* Take cost tokens from the lease. Returns false, and takes nothing, if the lease has too few
 * tokens or another take waits for it. Allocates nothing. */
bool belay__token_lease_serve(belay__token_lease_t *lease, int64_t cost, uint64_t now);

/* For a take that the lease did not serve: the number of further tokens, at least 1, that the lease
 * needs from the server to serve the take. 0: other takes wait already. */
int64_t belay__token_lease_need(const belay__token_lease_t *lease, int64_t cost, uint64_t now);

/* Fetch more tokens in the background if less than a quarter of options.lease_tokens is left, no
 * fetch is in flight, and fetches are not paused. */
void belay__token_lease_refill(belay__token_lease_t *lease, uint64_t now);

/* Let a PARKED take wait for a fetch of the lease of its key. Create the lease and start the fetch
 * if necessary. Returns false if max_leases or max_waiting is reached, or the fetch cannot be sent:
 * then the caller must send the take separately. */
bool belay__token_lease_park(belay_limiter_t *limiter, belay__operation_t *operation,
                             belay_bytes_t key);

/* ops->left of a take. Removes a canceled take from the waiting takes of its lease, if any. */
void belay__token_lease_left(belay__operation_t *operation, bool sent);

/* Call this before an operation on a key is sent. A refund, cancel, reset or ban ends the cached
 * denials and the fetch pause of the key. A reset or ban also gives back the leased tokens of the
 * key, and those of a fetch in flight when they arrive. */
void belay__token_lease_before(belay_limiter_t *limiter, const belay__limit_command_t *command);

/* Call this before the policy changes: give back the tokens of all leases, and cancel their
 * fetches. The leases and the takes that wait for them stay. */
void belay__token_leases_suspend(belay_limiter_t *limiter);
/* Call this after the policy has changed: send each take that waits for a lease as a separate take
 * under the new policy. If the new policy has no finite limits, it answers the take. */
void belay__token_leases_resume(belay_limiter_t *limiter);

/* Give back the tokens of all leases, and free the leases, when the limiter closes. The close has
 * canceled all waiting takes before. */
void belay__token_leases_close(belay_limiter_t *limiter);

#endif /* BELAY_LIMIT_TOKEN_LEASE_H */
