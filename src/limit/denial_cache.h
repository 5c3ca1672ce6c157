/* The denial cache: a denied key is denied locally until the server would admit it.
 *
 * A denial of a cost also denies each higher cost. It counts from just before the command was
 * sent, and it is shortened by a thousandth, because clock rates differ. So it ends before the
 * server's denial does. */
#ifndef BELAY_LIMIT_DENIAL_CACHE_H
#define BELAY_LIMIT_DENIAL_CACHE_H

#include "limit/state.h"

/* Returns true and sets *out if this number of tokens is denied at `now`. out->retry_us is the
 * remaining time. */
bool belay__denied_find(const belay_limiter_t *limiter, uint64_t hash, belay_bytes_t key,
                        int64_t cost, uint64_t now, belay__denial_t *out);

/* A number that changes with each belay__denied_forget() of the key. A denial of a command that
 * was sent with an older number must not be cached. */
static inline uint32_t belay__denied_epoch(const belay_limiter_t *limiter, uint64_t hash) {
  return limiter->denied.epochs[hash % BELAY__DENIED_EPOCHS];
}

/* Cache the denial of a call for `cost` tokens, as its reply reports it, unless tokens were
 * given back to the key since this epoch. Returns the microseconds until the server would admit
 * the tokens; 0: not denied, or unknown. */
int64_t belay__denied_learn(belay_limiter_t *limiter, const belay__call_t *call,
                            const belay__policy_t *policy, const belay__limit_reply_t *numbers,
                            int64_t cost, uint64_t hash, uint32_t epoch);

/* Forget the denials of a hash, also those of commands in flight. */
void belay__denied_forget(belay_limiter_t *limiter, uint64_t hash);

/* Forget all denials and free the memory. */
void belay__denied_clear(belay_limiter_t *limiter);

/* The number of denials that are not over. */
size_t belay__denied_count(const belay_limiter_t *limiter);

#endif /* BELAY_LIMIT_DENIAL_CACHE_H */
