/* The denial cache: a denied key is denied locally until the server would admit it.
 *
 * A cached denial of a cost also denies each higher cost. The time of a cached denial starts just
 * before the command was sent, and is shortened by a thousandth, because clock rates differ. So a
 * cached denial ends before the server's denial ends. A key has at most one cached denial, the
 * newest. */
#ifndef BELAY_LIMIT_DENIAL_CACHE_H
#define BELAY_LIMIT_DENIAL_CACHE_H

#include "limit/state.h"

/* Return true and set *out if the cache denies a take of `cost` tokens at `now`. out->retry_us is
 * the time from `now` until the server would admit the take. */
bool belay__denied_find(const belay_limiter_t *limiter, uint64_t hash, belay_bytes_t key,
                        int64_t cost, uint64_t now, belay__denial_t *out);

/* Return the epoch of a key: a number that changes with each belay__denied_forget() of the key. A
 * denial is not cached if the epoch has changed since its command was sent. */
static inline uint32_t belay__denied_epoch(const belay_limiter_t *limiter, uint64_t hash) {
  return limiter->denied.epochs[hash % BELAY__DENIED_EPOCHS];
}

/* Cache the denial of `cost` tokens that the reply to `call` implies. epoch: the epoch of the key
 * when the call was sent; if it has changed, nothing is cached. Returns the microseconds from the
 * time of the reply until the server would admit the tokens. Returns 0 if the tokens are not
 * denied, would never be admitted, or the epoch has changed. */
int64_t belay__denied_learn(belay_limiter_t *limiter, const belay__call_t *call,
                            const belay__policy_t *policy, const belay__limit_reply_t *numbers,
                            int64_t cost, uint64_t hash, uint32_t epoch);

/* Forget the cached denials of all keys with this hash. Denials of commands in flight are not
 * cached when their replies arrive. */
void belay__denied_forget(belay_limiter_t *limiter, uint64_t hash);

/* Forget all denials and free the memory. */
void belay__denied_clear(belay_limiter_t *limiter);

/* Return the number of cached denials whose shortened time is not over. */
size_t belay__denied_count(const belay_limiter_t *limiter);

#endif /* BELAY_LIMIT_DENIAL_CACHE_H */
