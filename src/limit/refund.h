/* Refunds: calls that give tokens back in the background (belay__give_back_t).
 *
 *   send --> GIVING --answered, or not--> over
 *                ^
 *   adopt --> FETCHING --granted--+       --denied, lost--> over
 *                |                |
 *                +--its deadline--> LATE --denied, lost, the limiter closes--> over
 *
 * Tokens that cannot be given back are counted as void. */
#ifndef BELAY_LIMIT_REFUND_H
#define BELAY_LIMIT_REFUND_H

#include "limit/state.h"

/* Sends a call (NULL: memory was out) that gives back so many leased tokens; 0: something else.
 * It is not sent again. */
void belay__refund_send(belay_limiter_t *limiter, belay__call_t *call, int64_t tokens);

/* Gives back some tokens that a lease of this key has got. */
void belay__refund_grant(belay_limiter_t *limiter, const char *key, size_t key_len,
                         const belay_receipt_t *receipt, int64_t tokens);

/* Takes over the fetch of a token lease that is not wanted any more: the tokens that it grants,
 * `asked` at most, are given back. From inside its done: only if its answer may still come. id:
 * of a log's entries. */
void belay__refund_adopt(belay_limiter_t *limiter, belay__call_t *fetch, int64_t asked, int64_t id);

#endif /* BELAY_LIMIT_REFUND_H */
