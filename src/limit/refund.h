/* Refunds: calls that give tokens back in the background (belay__give_back_t).
 *
 *    send --> GIVING --answered, or not--> over
 *                 ^
 *    adopt --> FETCHING --granted--+       --denied, lost--> over
 *                 |                |
 *                 +--its deadline--> LATE --denied, lost, the limiter closes--> over
 *
 * Tokens that cannot be given back are counted as void. */
#ifndef BELAY_LIMIT_REFUND_H
#define BELAY_LIMIT_REFUND_H

#include "limit/state.h"

/* Send a call (NULL: memory was out) that gives back this number of leased tokens; 0: the call
 * gives back something else. It is not sent again. */
void belay__refund_send(belay_limiter_t *limiter, belay__call_t *call, int64_t tokens);

/* Give back tokens that a token lease of this key was granted. */
void belay__refund_grant(belay_limiter_t *limiter, const char *key, size_t key_len,
                         const belay_receipt_t *receipt, int64_t tokens);

/* Take over the fetch of a token lease that no longer needs it. The granted tokens, at most
 * `asked`, are given back. Inside the fetch's `done`: only if a late reply may still arrive. id:
 * of a log's entries. */
void belay__refund_adopt(belay_limiter_t *limiter, belay__call_t *fetch, int64_t asked, int64_t id);

#endif /* BELAY_LIMIT_REFUND_H */
