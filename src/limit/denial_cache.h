/* Close to the request: who answers a take. In this order: the policy alone, a slice, a denial that is remembered,
 * options.away, the server. */
#ifndef BELAY_LIMIT_DENIAL_CACHE_H
#define BELAY_LIMIT_DENIAL_CACHE_H

#include "limit/limiter.h"

/* A take that is PARKED is answered, or asks. On an error it is PARKED still. */
int belay__near_take(belay_limiter_t *limiter, belay__pending_t *pending, const char *key,
                     size_t len);

/* Before an operation on a key is sent: what is known of it does not hold any more, if it gives something back. */
void belay__near_before(belay_limiter_t *limiter, const belay__question_t *question);

/* Its reply was read. */
void belay__near_after(belay_limiter_t *limiter, const belay__wanted_t *wanted,
                       const belay__call_t *call);

/* It is told: completes a result in which the server has no part. */
void belay__near_tell(belay_limiter_t *limiter, const belay__wanted_t *wanted, int status,
                      belay_limiter_result_t *result);

#endif /* BELAY_LIMIT_DENIAL_CACHE_H */
