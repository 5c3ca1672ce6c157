/* Takes. The sources of an answer, in this order: the policy alone, a token lease, the denial
 * cache, options.away, the server. */
#ifndef BELAY_LIMIT_TAKE_H
#define BELAY_LIMIT_TAKE_H

#include "limit/state.h"

/* Answer a PARKED take, or send it. On an error it is still PARKED. */
int belay__take_route(belay_limiter_t *limiter, belay__operation_t *operation, const char *key,
                      size_t len);

#endif /* BELAY_LIMIT_TAKE_H */
