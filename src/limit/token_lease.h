/* Token leasing: tokens of a key that were taken ahead, and are served from memory. token_lease.c has the states. */
#ifndef BELAY_LIMIT_TOKEN_LEASE_H
#define BELAY_LIMIT_TOKEN_LEASE_H

#include "belay/limiter.h"
#include "core/client/request.h"
#include "core/key/table.h"

typedef struct belay__slice belay__slice_t;

typedef struct belay__slices {
  belay__table_t table; /* by the keys' hashes, which are belay__limiter_hash()'s */
  belay__list_t all;
} belay__slices_t;

void belay__slices_init(belay__slices_t *slices);

/* That of a key; NULL if there is none. */
belay__slice_t *belay__slice_find(const belay_limiter_t *limiter, uint64_t hash, const char *key,
                                  size_t len);

/* Takes cost tokens from it, if they are there and nobody waits for them. Allocates nothing. */
bool belay__slice_serve(belay__slice_t *slice, int64_t cost, uint64_t now);

/* How many the server would have to grant for a take of that cost: 1 and more; 0: takes wait for it already. Of one that
 * did not serve it. */
int64_t belay__slice_need(const belay__slice_t *slice, int64_t cost, uint64_t now);

/* Fetches more in the background if it is running out. */
void belay__slice_refill(belay__slice_t *slice, uint64_t now);

/* Lets a take that is PARKED wait for the slice of its key, which is fetched. False: there is no room, and it has to ask
 * for itself. */
bool belay__slice_park(belay_limiter_t *limiter, belay__pending_t *pending, const char *key,
                       size_t len);

/* A take that waits for a slice, if it does, is canceled. */
void belay__slice_left(belay__pending_t *pending, bool sent);

/* What was said of a key's limit does not hold any more. give_back: nor do the tokens. */
void belay__slice_forget(belay_limiter_t *limiter, uint64_t hash, const char *key, size_t len,
                         bool give_back);

/* Before another policy comes: everything is given back. And when it is there: who waits is answered under it. */
void belay__slices_suspend(belay_limiter_t *limiter);
void belay__slices_resume(belay_limiter_t *limiter);

/* The limiter closes, and nobody waits any more: everything is given back. */
void belay__slices_close(belay_limiter_t *limiter);

#endif /* BELAY_LIMIT_TOKEN_LEASE_H */
