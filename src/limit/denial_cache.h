/* The denial cache: remembers denials that the server reported, and answers takes from them. */
#ifndef BELAY_LIMIT_DENIAL_CACHE_H
#define BELAY_LIMIT_DENIAL_CACHE_H

#include "limit/state.h"

/* true if the operation may leave room for more takes than before. Cached denials of its key are
 * then invalid. */
bool belay__denials_end(belay__limiter_verb_t verb);

/* Cache the denial of a call for `cost` tokens, as its reply reports it, unless tokens were
 * given back to the key since this epoch. Returns the microseconds until the server would admit
 * the tokens; 0: not denied, or unknown. */
int64_t belay__denials_learn(belay_limiter_t *limiter, const belay__call_t *call,
                             const belay__policy_t *policy, const belay__limit_reply_t *numbers,
                             int64_t cost, uint64_t hash, uint32_t epoch);

/* Update the cache after the reply to an operation was read. */
void belay__denials_after(belay_limiter_t *limiter, const belay__limit_op_t *op,
                          const belay__call_t *call);

/* Make a result from a denial. */
void belay__denials_tell(const belay__denial_t *denial, belay_limiter_result_t *result);

#endif /* BELAY_LIMIT_DENIAL_CACHE_H */
