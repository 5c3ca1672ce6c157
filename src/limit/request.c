#include "limit/request.h"

#include "limit/denial_cache.h"
#include "limit/fallback.h"

/* true if the answer is a number of tokens that were given back. */
static bool returns_tokens(const belay__limit_op_t *op) {
  return op->verb == BELAY__LIMITER_REFUND || op->verb == BELAY__LIMITER_CANCEL;
}

static bool is_reservation(const belay__limit_op_t *op) {
  return op->verb == BELAY__LIMITER_RESERVE || op->verb == BELAY__LIMITER_WAIT;
}

/* true if the limits apply to the cost. */
static bool is_limited(const belay__limit_op_t *op) {
  return op->verb == BELAY__LIMITER_TAKE || is_reservation(op);
}

/* ---- the answer ---- */

int belay__limiter_read(belay__operation_t *operation, const belay__call_t *call,
                        const belay__reply_t *reply) {
  belay__limit_op_t *op = belay__limit_op_of(operation);
  bool good = op->verb == BELAY__LIMITER_RESET
                  ? belay__reply_integer(reply, 0, 2, &op->numbers.answer)
                  : belay__policy_read(op->policy, reply, returns_tokens(op) ? &op->returned : NULL,
                                       &op->numbers);
  if (good)
    belay__denials_after(operation->context, op, call);
  return good ? 0 : BELAY_EPROTO;
}

/* Set the result from the server's reply. */
static void tell_reply(const belay__limit_op_t *op, belay_limiter_result_t *result) {
  belay__policy_judge(op->policy, &op->numbers, is_limited(op) ? op->cost : 0, result);
  if (result->verdict == BELAY_NEVER)
    return;
  if (op->numbers.answer < 0) {
    result->verdict = BELAY_DENIED;
    return;
  }
  result->retry_after_us = 0;
  result->window = 0;
  result->banned = false;
  if (op->verb == BELAY__LIMITER_TAKE)
    belay__policy_receipt(op->policy, &op->numbers, op->cost, op->id, &result->receipt);
  if (returns_tokens(op))
    result->returned = op->returned;
  if (is_reservation(op))
    result->wait_us = op->numbers.answer;
}

/* Complete a result that does not come from the server. */
static void tell_without_server(belay_limiter_t *limiter, const belay__limit_op_t *op, int status,
                                belay_limiter_result_t *result) {
  if (belay__denials_end((belay__limiter_verb_t)op->verb) &&
      status != 0) /* it may have been executed */
    belay__denied_forget(limiter->client->belay, &limiter->denied, op->hash);
  if (op->verb != BELAY__LIMITER_TAKE)
    return;
  belay__fallback_tell(limiter, op, status, result);
  if (status == 0 && op->source == BELAY_SOURCE_DENIAL) {
    const belay__denial_t denial = {.retry_us = op->numbers.limits[0].a,
                                    .window = (unsigned)op->numbers.limits[0].b,
                                    .banned = op->numbers.limits[0].c != 0};
    belay__denials_tell(&denial, result);
  }
}

void belay__limiter_tell(belay_request_t *request, void (*cb)(void),
                         const belay__answer_t *answer) {
  const belay__limit_op_t *op = (const belay__limit_op_t *)(const void *)answer->values;
  bool never = is_limited(op) && op->cost > op->policy->most;
  belay_limiter_result_t result = {.verdict = never ? BELAY_NEVER : BELAY_ALLOWED,
                                   .source = (belay_source_t)op->source,
                                   .cause = answer->status,
                                   .remaining = -1,
                                   .retry_after_us = -1,
                                   .reset_after_us = -1};
  if (answer->status == 0 && result.source == BELAY_SOURCE_SERVER &&
      op->verb != BELAY__LIMITER_RESET)
    tell_reply(op, &result);
  else if (answer->status != 0 && !never)
    result.verdict = BELAY_INDETERMINATE;
  else if (!never)
    result.retry_after_us = 0;
  if (result.verdict == BELAY_ALLOWED &&
      (result.source == BELAY_SOURCE_POLICY || op->verb == BELAY__LIMITER_RESET)) {
    result.reset_after_us = 0;
    result.remaining = op->policy->most;
  }
  tell_without_server(answer->context, op, answer->status, &result);
  if (op->verb == BELAY__LIMITER_RESERVE)
    result.reservation = op->reservation;
  belay__policy_drop(answer->client->belay, op->policy);
  int status = result.verdict == BELAY_INDETERMINATE ? result.cause : 0;
  ((belay_limiter_cb)cb)(request, status, &result);
}

/* ---- asking ---- */

int belay__limiter_begin(belay_limiter_t *limiter, belay_request_t *request,
                         const belay__request_ops_t *ops, const belay__limit_command_t *command,
                         belay_limiter_cb cb, belay__operation_t **out) {
  int error = belay__handle_begin(&limiter->handle, request, ops, (void (*)(void))cb, out);
  if (error != 0)
    return error;
  belay__limit_op_t *op = belay__limit_op_of(*out);
  op->policy = limiter->policy;
  op->policy->refs++;
  op->verb = (uint8_t)command->verb;
  op->source = BELAY_SOURCE_SERVER;
  op->cost = command->cost;
  if (is_reservation(op))
    op->reservation = *command->reservation;
  return 0;
}

int belay__limiter_send(belay_limiter_t *limiter, belay__operation_t *operation,
                        const belay__limit_command_t *command) {
  belay__limit_op_t *op = belay__limit_op_of(operation);
  belay__limit_command_t sent = *command;
  if (sent.verb == BELAY__LIMITER_TAKE || sent.verb == BELAY__LIMITER_PENALTY) {
    int error = belay__limit_command_id(limiter, &sent, &op->id);
    if (error != 0)
      return error;
  }
  belay__call_t *call = belay__limit_command_call(limiter, &sent);
  op->hash = belay__limiter_hash(limiter, sent.key, sent.key_len);
  op->epoch = belay__denied_epoch(&limiter->denied, op->hash);
  int error = belay__request_send(operation, call);
  if (error == 0 && operation->calls_len > 0) /* otherwise it was refused at once */
    limiter->stats.asked++;
  return error;
}

int belay__limiter_start(belay_limiter_t *limiter, belay_request_t *request,
                         const belay__request_ops_t *ops, const belay__limit_command_t *command,
                         belay_limiter_cb cb, belay__operation_t **out) {
  int error = belay__limiter_begin(limiter, request, ops, command, cb, out);
  if (error != 0)
    return error;
  const belay__limit_op_t *op = belay__limit_op_of(*out);
  bool never = is_reservation(op) && op->cost > limiter->policy->most;
  if (never || (limiter->policy->limits_len == 0 && op->verb != BELAY__LIMITER_RESET)) {
    belay__limiter_answer(*out, BELAY_SOURCE_POLICY, 0);
    return 0;
  }
  error = belay__limiter_send(limiter, *out, command);
  if (error != 0)
    belay__limiter_forget(*out);
  return error;
}

void belay__limiter_forget(belay__operation_t *operation) {
  belay__policy_drop(operation->client->belay, belay__limit_op_of(operation)->policy);
  belay__request_forget(operation);
}

void belay__limiter_answer(belay__operation_t *operation, belay_source_t source, int64_t answer) {
  belay__limit_op_t *op = belay__limit_op_of(operation);
  op->source = (uint8_t)source;
  op->numbers.answer = answer;
  belay__request_end(operation, 0);
}
