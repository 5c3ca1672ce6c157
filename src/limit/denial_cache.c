#include "limit/denial_cache.h"

#include "limit/command.h"

bool belay__denials_end(belay__limiter_verb_t verb) {
  return verb == BELAY__LIMITER_REFUND || verb == BELAY__LIMITER_RESET ||
         verb == BELAY__LIMITER_BAN || verb == BELAY__LIMITER_CANCEL;
}

int64_t belay__denials_learn(belay_limiter_t *limiter, const belay__call_t *call,
                             const belay__policy_t *policy, const belay__limit_reply_t *numbers,
                             int64_t cost, uint64_t hash, uint32_t epoch) {
  belay_limiter_result_t result = {0};
  char key[3 * BELAY_LIMITER_KEY_MAX];
  size_t len;
  if (epoch != belay__denied_epoch(&limiter->denied, hash))
    return 0;
  belay__policy_judge(policy, numbers, cost, &result);
  if (result.retry_after_us <= 0)
    return 0;
  const belay__denial_t denial = {.cost = cost,
                                  .retry_us = result.retry_after_us,
                                  .window = result.window,
                                  .banned = result.banned};
  if (limiter->options.max_denied > 0 && belay__limit_command_key_of(limiter, call, key, &len))
    belay__denied_learn(limiter->client->belay, &limiter->denied, limiter->options.max_denied, hash,
                        key, len, &denial, call->started);
  return result.retry_after_us;
}

void belay__denials_after(belay_limiter_t *limiter, const belay__limit_op_t *op,
                          const belay__call_t *call) {
  bool denied = op->verb == BELAY__LIMITER_TAKE && op->numbers.answer < 0;
  if (denied && op->cost <= op->policy->most)
    (void)belay__denials_learn(limiter, call, op->policy, &op->numbers, op->cost, op->hash,
                               op->epoch);
  /* the operation may have been sent twice */
  else if (belay__denials_end((belay__limiter_verb_t)op->verb))
    belay__denied_forget(limiter->client->belay, &limiter->denied, op->hash);
}

void belay__denials_tell(const belay__denial_t *denial, belay_limiter_result_t *result) {
  result->verdict = BELAY_DENIED;
  result->retry_after_us = denial->retry_us;
  result->window = denial->window;
  result->banned = denial->banned;
}
