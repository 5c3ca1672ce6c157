/* What answers a take. In this order: the policy alone, a token lease, a denial that is remembered, options.away, the
 * server. */
#ifndef BELAY_LIMIT_TAKE_H
#define BELAY_LIMIT_TAKE_H

#include "limit/state.h"

/* Answers a take that is PARKED, or sends it. On an error it is PARKED still. */
int belay__take_route(belay_limiter_t *limiter, belay__operation_t *operation, const char *key,
                      size_t len);

#endif /* BELAY_LIMIT_TAKE_H */
