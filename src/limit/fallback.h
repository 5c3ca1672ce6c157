/* Fallback: the answers to takes while the server is away (options.away).
 *
 * With a policy other than BELAY_AWAY_UNKNOWN, calls have fail_fast: the node detects that their
 * server is away and ends them at once (core/port.h). */
#ifndef BELAY_LIMIT_FALLBACK_H
#define BELAY_LIMIT_FALLBACK_H

#include "limit/state.h"

/* Free the local buckets. Later ones start without debts: their whole burst is available. */
void belay__fallback_clear(belay_limiter_t *limiter);

/* true if takes do not wait for a server that is away. */
bool belay__fallback_is_on(const belay_limiter_t *limiter);

/* Set the result of a take that the server did not answer to that of options.away. A verdict of
 * BELAY_NEVER stays. */
void belay__fallback_result(belay_limiter_t *limiter, const belay__limit_op_t *op,
                            belay_limiter_result_t *result);

#endif /* BELAY_LIMIT_FALLBACK_H */
