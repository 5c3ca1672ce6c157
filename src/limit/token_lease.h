/* Token leasing: tokens of a key that were taken ahead, and are served from memory. token_lease.c has the states. */
#ifndef BELAY_LIMIT_TOKEN_LEASE_H
#define BELAY_LIMIT_TOKEN_LEASE_H

#include "limit/command.h"

/* The lease of a key; NULL if there is none. */
belay__token_lease_t *belay__token_lease_find(const belay_limiter_t *limiter, uint64_t hash,
                                              const char *key, size_t len);

/* Takes cost tokens from it, if they are there and no take waits for them. Allocates nothing. */
bool belay__token_lease_serve(belay__token_lease_t *lease, int64_t cost, uint64_t now);

/* How many tokens the server would have to grant for a take of that cost, which the lease did not serve: 1 and more; 0:
 * takes wait for it already. */
int64_t belay__token_lease_need(const belay__token_lease_t *lease, int64_t cost, uint64_t now);

/* Fetches more in the background if it is running out. */
void belay__token_lease_refill(belay__token_lease_t *lease, uint64_t now);

/* Lets a take that is PARKED wait for the lease of its key, which is fetched. False: there is no room, and the take has
 * to be sent by itself. */
bool belay__token_lease_park(belay_limiter_t *limiter, belay__operation_t *operation,
                             const char *key, size_t len);

/* A take is canceled: it does not wait for a lease any more. */
void belay__token_lease_left(belay__operation_t *operation, bool sent);

/* Before an operation on a key is sent: denials and rests of the key do not hold any more, if the
 * operation gives something back; nor leased tokens, if it takes them back. */
void belay__token_lease_before(belay_limiter_t *limiter, const belay__limit_command_t *command);

/* Before another policy comes: all leases are given back. */
void belay__token_leases_suspend(belay_limiter_t *limiter);
/* The other policy is there: takes that wait for a lease are made anew, by `route`. */
void belay__token_leases_resume(belay_limiter_t *limiter,
                                int (*route)(belay_limiter_t *limiter,
                                             belay__operation_t *operation, const char *key,
                                             size_t len));

/* The limiter closes, and no take waits any more: all leases are given back. */
void belay__token_leases_close(belay_limiter_t *limiter);

#endif /* BELAY_LIMIT_TOKEN_LEASE_H */
