/* Denials that are remembered: what the server's replies say about them, and what a take is told. */
#ifndef BELAY_LIMIT_DENIAL_CACHE_H
#define BELAY_LIMIT_DENIAL_CACHE_H

#include "limit/state.h"

/* true if more may be admitted after an operation than before: then denials of its key do not hold any more. */
bool belay__denials_end(belay__limiter_verb_t verb);

/* Remembers that a call for `cost` tokens was denied them, as its reply says; unless something was given back to the key
 * since that epoch. Returns after how many microseconds the server admits them; 0: not denied, or not known. */
int64_t belay__denials_learn(belay_limiter_t *limiter, const belay__call_t *call,
                             const belay__policy_t *policy, const belay__limit_reply_t *numbers,
                             int64_t cost, uint64_t hash, uint32_t epoch);

/* The reply to an operation was read. */
void belay__denials_after(belay_limiter_t *limiter, const belay__limit_op_t *op,
                          const belay__call_t *call);

/* Makes a result of a denial. */
void belay__denials_tell(const belay__denial_t *denial, belay_limiter_result_t *result);

#endif /* BELAY_LIMIT_DENIAL_CACHE_H */
