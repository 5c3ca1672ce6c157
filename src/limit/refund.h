/* Refunds of leased tokens, in the background. Tokens whose refund the server did not confirm are
 * counted in stats.void_tokens. */
#ifndef BELAY_LIMIT_REFUND_H
#define BELAY_LIMIT_REFUND_H

#include "limit/state.h"

/* Give back tokens of a grant that a token lease of this key received. receipt: that of the
 * grant. The call is sent only once. */
void belay__refund_grant(belay_limiter_t *limiter, belay_bytes_t key,
                         const belay_receipt_t *receipt, int64_t tokens);

/* Take over a fetch of this key from its token lease. The call must be SENT or LATE. The tokens
 * that its reply grants, at most `asked`, are given back. If the policy has changed meanwhile, they
 * are counted in stats.void_tokens instead. If memory is out, the call is not taken over. id: the
 * id of the entries that the fetch adds to a log. */
void belay__refund_fetch(belay_limiter_t *limiter, belay_bytes_t key, belay__call_t *call,
                         int64_t asked, int64_t id);

#endif /* BELAY_LIMIT_REFUND_H */
