/* Refunds of leased tokens, in the background. Tokens that the server did not take back are counted
 * in stats.void_tokens. */
#ifndef BELAY_LIMIT_REFUND_H
#define BELAY_LIMIT_REFUND_H

#include "limit/state.h"

/* Give back tokens that a token lease of this key was granted. The call is not sent again. */
void belay__refund_grant(belay_limiter_t *limiter, belay_bytes_t key,
                         const belay_receipt_t *receipt, int64_t tokens);

/* Take over a fetch of this key that was sent, or is LATE, from its token lease. The tokens that it
 * was granted, at most `asked`, are given back, unless the policy has changed meanwhile. If memory
 * is out, the lease keeps the call. id: of a log's entries. */
void belay__refund_fetch(belay_limiter_t *limiter, belay_bytes_t key, belay__call_t *call,
                         int64_t asked, int64_t id);

#endif /* BELAY_LIMIT_REFUND_H */
