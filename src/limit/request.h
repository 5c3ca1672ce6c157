/* One operation as a request: start, reply, callback. A request is one call, or a local answer
 * without a call; core/client/request.h has the states. */
#ifndef BELAY_LIMIT_REQUEST_H
#define BELAY_LIMIT_REQUEST_H

#include "limit/command.h"

/* Functions for request ops. */
int belay__limiter_read(belay__operation_t *operation, const belay__call_t *call,
                        const belay__reply_t *reply);
void belay__limiter_tell(belay_request_t *request, void (*cb)(void), const belay__answer_t *answer);

/* Set the result of an operation whose request has ended with this status. */
void belay__limiter_result(belay_limiter_t *limiter, const belay__limit_op_t *op, int status,
                           belay_limiter_result_t *result);

/* Begin a request and fill its belay__limit_op_t from the command. The request is PARKED then.
 * Returns 0 or an error. */
int belay__limiter_begin(belay_limiter_t *limiter, belay_request_t *request,
                         const belay__request_ops_t *ops, const belay__limit_command_t *command,
                         belay_limiter_cb cb, belay__operation_t **out);

/* Send the command of a PARKED request. On an error the request is still PARKED. */
int belay__limiter_send(belay_limiter_t *limiter, belay__operation_t *operation,
                        const belay__limit_command_t *command);

/* Begin a request, and send its command unless the policy alone answers it. In both cases the
 * callback runs later. Returns 0 and sets *out, or returns an error. */
int belay__limiter_start(belay_limiter_t *limiter, belay_request_t *request,
                         const belay__request_ops_t *ops, const belay__limit_command_t *command,
                         belay_limiter_cb cb, belay__operation_t **out);

/* End a PARKED request without a callback, because its operation could not be started. */
void belay__limiter_forget(belay__operation_t *operation);

/* End a PARKED request with status 0. The callback reports an answer of this source. */
void belay__limiter_answer(belay__operation_t *operation, belay_source_t source);

#endif /* BELAY_LIMIT_REQUEST_H */
