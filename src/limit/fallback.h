/* What a take is answered that the server does not answer: options.away.
 *
 * With a policy (not BELAY_AWAY_UNKNOWN) calls have fail_fast: the node detects that their
 * server is away, and ends them at once (core/port.h). */
#ifndef BELAY_LIMIT_FALLBACK_H
#define BELAY_LIMIT_FALLBACK_H

#include "limit/state.h"

/* Gives the memory of local buckets back: they begin anew. */
void belay__fallback_clear(belay_limiter_t *limiter);

/* true if takes are not to wait for a server that is away. */
bool belay__fallback_is_on(const belay_limiter_t *limiter);

/* A take ends with that status. If the server gave no answer, the result becomes that of options.away; but a verdict of
 * BELAY_NEVER stays. */
void belay__fallback_tell(belay_limiter_t *limiter, const belay__limit_op_t *op, int status,
                          belay_limiter_result_t *result);

#endif /* BELAY_LIMIT_FALLBACK_H */
