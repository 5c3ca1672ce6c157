/* Errands: calls that give something back, and that nobody waits for. A close of the limiter waits until they are over.
 *
 *   send --> GIVING --answered, or not--> over
 *                ^
 *   adopt --> FETCHING --granted--+       --denied, lost--> over
 *                |                |
 *                +--its deadline--> LATE --denied, lost, the limiter closes--> over
 *
 * What an errand gives back and cannot is counted as void. */
#ifndef BELAY_LIMIT_REFUND_H
#define BELAY_LIMIT_REFUND_H

#include "belay/limiter.h"
#include "core/call/call.h"

/* Sends a call (NULL: memory was out) that gives back so many tokens of a slice; 0: something else. It is not sent again. */
void belay__errand_send(belay_limiter_t *limiter, belay__call_t *call, int64_t tokens);

/* Takes over the fetch of a slice that nobody wants any more: what it grants, `asked` at most, is given back. From
 * inside its done: only if its answer may still come. id: of a log's entries. */
void belay__errand_adopt(belay_limiter_t *limiter, belay__call_t *fetch, int64_t asked, int64_t id);

/* The limiter closes: what has no deadline is over. */
void belay__errands_close(belay_limiter_t *limiter);

/* All of it is over now. */
void belay__errands_abort(belay_limiter_t *limiter);

#endif /* BELAY_LIMIT_REFUND_H */
