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

/* true if the limits can deny the cost; a penalty is charged without limits. */
static bool is_limited(const belay__limit_op_t *op) {
  return op->verb == BELAY__LIMITER_TAKE || is_reservation(op);
}

static bool frees_tokens(const belay__limit_op_t *op) {
  return belay__limit_command_frees((belay__limiter_verb_t)op->verb);
}

/* ---- the result ---- */

int belay__limiter_read(belay__operation_t *operation, const belay__call_t *call,
                        const belay__reply_t *reply) {
  belay_limiter_t *limiter = operation->context;
  belay__limit_op_t *op = belay__limit_op_of(operation);
  if (op->verb == BELAY__LIMITER_RESET
          ? !belay__reply_integer(reply, 0, 2, &op->numbers.answer)
          : !belay__policy_read(op->policy, reply, returns_tokens(op) ? &op->returned : NULL,
                                &op->numbers))
    return BELAY_EPROTO;
  /* a resent command may have run again after a cached denial, which then does not hold any more */
  if (frees_tokens(op))
    belay__denied_forget(limiter, op->hash);
  else if (op->verb == BELAY__LIMITER_TAKE && op->numbers.answer < 0 &&
           op->cost <= op->policy->most)
    (void)belay__denied_learn(limiter, call, op->policy, &op->numbers, op->cost, op->hash,
                              op->epoch);
  return 0;
}

/* Set the result from the server's reply. */
static void set_from_reply(const belay__limit_op_t *op, belay_limiter_result_t *result) {
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

static void set_from_denial(const belay__denial_t *denial, belay_limiter_result_t *result) {
  result->verdict = BELAY_DENIED;
  result->retry_after_us = denial->retry_us;
  result->window = denial->window;
  result->banned = denial->banned;
}

/* Set the result of an operation that the server did not answer. */
static void set_unanswered(belay_limiter_t *limiter, const belay__limit_op_t *op, int status,
                           belay_limiter_result_t *result) {
  if (result->verdict != BELAY_NEVER)
    result->verdict = BELAY_INDETERMINATE;
  if (frees_tokens(op)) /* the server may have executed the command */
    belay__denied_forget(limiter, op->hash);
  if (op->verb == BELAY__LIMITER_TAKE && status != BELAY_ECANCELED)
    belay__fallback_result(limiter, op, result);
}

void belay__limiter_result(belay_limiter_t *limiter, const belay__limit_op_t *op, int status,
                           belay_limiter_result_t *result) {
  bool never = is_limited(op) && op->cost > op->policy->most;
  *result = (belay_limiter_result_t){.verdict = never ? BELAY_NEVER : BELAY_ALLOWED,
                                     .source = (belay_source_t)op->source,
                                     .cause = status,
                                     .remaining = -1,
                                     .retry_after_us = -1,
                                     .reset_after_us = -1};
  bool is_reset = op->verb == BELAY__LIMITER_RESET;
  if (status != 0) {
    set_unanswered(limiter, op, status, result);
  } else if (op->source == BELAY_SOURCE_DENIAL) {
    set_from_denial(&op->denial, result);
  } else if (op->source == BELAY_SOURCE_SERVER && !is_reset) {
    set_from_reply(op, result);
  } else if (!never) {
    result->retry_after_us = 0;
    if (op->source == BELAY_SOURCE_POLICY || is_reset) {
      result->reset_after_us = 0;
      result->remaining = op->policy->most;
    }
  }
  if (op->verb == BELAY__LIMITER_RESERVE)
    result->reservation = op->reservation;
}

void belay__limiter_tell(belay_request_t *request, void (*cb)(void),
                         const belay__answer_t *answer) {
  const belay__limit_op_t *op = (const belay__limit_op_t *)(const void *)answer->values;
  belay_limiter_result_t result;
  belay__limiter_result(answer->context, op, answer->status, &result);
  belay__policy_release(answer->client->belay, op->policy);
  int status = result.verdict == BELAY_INDETERMINATE ? result.cause : 0;
  ((belay_limiter_cb)cb)(request, status, &result);
}

/* ---- the start ---- */

int belay__limiter_begin(belay_limiter_t *limiter, belay_request_t *request,
                         const belay__request_ops_t *ops, const belay__limit_command_t *command,
                         belay_limiter_cb cb, belay__operation_t **out) {
  int error = belay__handle_begin(&limiter->handle, request, ops, BELAY__CB(cb), out);
  if (error != 0)
    return error;
  belay__limit_op_t *op = belay__limit_op_of(*out);
  op->policy = belay__policy_retain(limiter->policy);
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
  op->hash = belay__limiter_hash(limiter, sent.key);
  op->epoch = belay__denied_epoch(limiter, op->hash);
  int error = belay__request_send(operation, call);
  if (error == 0 && operation->calls_len > 0) /* 0: the node refused the call at once */
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
    belay__limiter_answer(*out, BELAY_SOURCE_POLICY);
    return 0;
  }
  error = belay__limiter_send(limiter, *out, command);
  if (error != 0)
    belay__limiter_forget(*out);
  return error;
}

void belay__limiter_forget(belay__operation_t *operation) {
  belay__policy_release(operation->client->belay, belay__limit_op_of(operation)->policy);
  belay__request_forget(operation);
}

void belay__limiter_answer(belay__operation_t *operation, belay_source_t source) {
  belay__limit_op_of(operation)->source = (uint8_t)source;
  belay__request_end(operation, 0);
}
