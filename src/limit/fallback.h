/* What a take is answered that the server does not answer: options.away.
 *
 * With a policy (not BELAY_AWAY_UNKNOWN) calls have fail_fast: the node detects that their
 * server is away, and ends them at once (core/port.h). */
#ifndef BELAY_LIMIT_FALLBACK_H
#define BELAY_LIMIT_FALLBACK_H

#include "belay/limiter.h"
#include "core/loop/loop.h"
#include "core/key/table.h"

typedef struct belay__wanted belay__wanted_t;

/* The buckets of BELAY_AWAY_LOCAL. */
typedef struct belay__away {
  belay__table_t table; /* by the keys' hashes */
  belay__list_t used;   /* the one that was not used for longest first */
  struct belay__local *shared;
} belay__away_t;

void belay__away_init(belay__away_t *away);

/* Gives its memory back: the buckets begin anew. */
void belay__away_clear(belay_limiter_t *limiter);

/* true if takes are not to wait for a server that is away. */
bool belay__away_has_policy(const belay_limiter_t *limiter);

/* A take is told, with that status: if there is no answer, result becomes that of options.away,
 * but for a verdict of BELAY_NEVER. */
void belay__away_told(belay_limiter_t *limiter, const belay__wanted_t *wanted, int status,
                      belay_limiter_result_t *result);

#endif /* BELAY_LIMIT_FALLBACK_H */
