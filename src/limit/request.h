/* One operation as a request: how it begins, what its reply means, and what its caller is told. A request is one call, or
 * an answer that is known without a call; core/client/request.h has its states. */
#ifndef BELAY_LIMIT_REQUEST_H
#define BELAY_LIMIT_REQUEST_H

#include "limit/command.h"

/* For the ops of requests. */
int belay__limiter_read(belay__operation_t *operation, const belay__call_t *call,
                        const belay__reply_t *reply);
void belay__limiter_tell(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer);

/* Begins a request: PARKED, with its values set. */
int belay__limiter_begin(belay_limiter_t *limiter, belay_request_t *request,
                         const belay__request_ops_t *ops, const belay__limit_command_t *command,
                         belay_limiter_cb cb, belay__operation_t **out);

/* Sends the command of a request that is PARKED; on an error it is PARKED still. */
int belay__limiter_send(belay_limiter_t *limiter, belay__operation_t *operation,
                        const belay__limit_command_t *command);

/* Begins a request, and sends its command unless the policy alone answers it. out: set if the return value is 0. */
int belay__limiter_start(belay_limiter_t *limiter, belay_request_t *request,
                         const belay__request_ops_t *ops, const belay__limit_command_t *command,
                         belay_limiter_cb cb, belay__operation_t **out);

/* Ends a request that is PARKED: its operation could not be started. */
void belay__limiter_forget(belay__operation_t *operation);

/* Ends a request that is PARKED with an answer that is known without a call. */
void belay__limiter_answer(belay__operation_t *operation, belay_source_t source, int64_t answer);

#endif /* BELAY_LIMIT_REQUEST_H */
