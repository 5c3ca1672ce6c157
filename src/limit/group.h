/* Takes of equal cost on one key that begin in the same turn of the loop share one call
 * (core/client/group.h). */
#ifndef BELAY_LIMIT_GROUP_H
#define BELAY_LIMIT_GROUP_H

#include "core/client/group.h"
#include "limit/request.h"

/* For the ops of a take. */
extern const belay__group_ops_t belay__take_group_ops;

/* Send a PARKED take of this key, in one call with equal takes that begin in the same turn of the
 * loop. On an error the take is still PARKED. op->hash must be set. */
int belay__limiter_send_take(belay_limiter_t *limiter, belay__operation_t *operation,
                             belay_bytes_t key);

#endif /* BELAY_LIMIT_GROUP_H */
