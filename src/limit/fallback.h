/* Fallback: the answers of options.away to takes that got no answer from the server.
 *
 * If options.away is not BELAY_AWAY_UNKNOWN, the calls of takes and of token lease fetches have
 * fail_fast: while their server is away, the node ends these calls at once (core/port.h). */
#ifndef BELAY_LIMIT_FALLBACK_H
#define BELAY_LIMIT_FALLBACK_H

#include "limit/state.h"

/* Free the local buckets. New buckets start without debts: their whole burst is available. */
void belay__fallback_clear(belay_limiter_t *limiter);

/* true if options.away is not BELAY_AWAY_UNKNOWN: takes do not wait for a server that is away. */
bool belay__fallback_is_on(const belay_limiter_t *limiter);

/* Set the result of a take that got no answer from the server, as options.away demands. If the
 * verdict is BELAY_NEVER already, only result->source changes, to BELAY_SOURCE_POLICY. With
 * BELAY_AWAY_UNKNOWN other results are unchanged. */
void belay__fallback_result(belay_limiter_t *limiter, const belay__limit_op_t *op,
                            belay_limiter_result_t *result);

#endif /* BELAY_LIMIT_FALLBACK_H */
