#include "limit/refund.h"

#include "limit/command.h"

typedef struct refund {
  belay__give_back_t base; /* first */
  belay__policy_t *policy; /* Policy of the call; one reference */
  int64_t tokens;          /* GIVING: tokens to give back. Otherwise: tokens that were asked for */
  int64_t id;
} refund_t;

typedef void (*end_t)(belay__give_back_t *giving, belay__call_t *call,
                      const belay__result_t *result);

static belay_limiter_t *limiter_of(const refund_t *refund) {
  return (belay_limiter_t *)refund->base.handle;
}

/* lost: number of tokens that were not given back. */
static void end(refund_t *refund, int64_t lost) {
  belay_limiter_t *limiter = limiter_of(refund);
  limiter->stats.void_tokens += (uint64_t)lost;
  belay__policy_drop(limiter->client->belay, refund->policy);
  belay__give_back_free(&refund->base);
}

static refund_t *start(belay_limiter_t *limiter, int64_t tokens, end_t on_end) {
  refund_t *refund = (refund_t *)belay__give_back_new(&limiter->handle, sizeof *refund);
  if (refund == NULL)
    return NULL;
  refund->base.end = on_end;
  refund->policy = limiter->policy;
  refund->policy->refs++;
  refund->tokens = tokens;
  return refund;
}

/* ---- giving back ---- */

static void on_given(belay__give_back_t *giving, belay__call_t *call,
                     const belay__result_t *result) {
  refund_t *refund = (refund_t *)giving;
  belay__limit_reply_t numbers;
  double exact; /* void_tokens counts whole tokens only */
  int64_t lost = refund->tokens;
  (void)call;
  if (lost > 0 && result != NULL && result->outcome == BELAY_OUTCOME_REPLY &&
      belay__policy_read(refund->policy, result->reply, &exact, &numbers) && numbers.answer > 0 &&
      numbers.answer <= lost)
    lost -= numbers.answer;
  end(refund, lost);
}

static void give(refund_t *refund, belay__call_t *call) {
  refund->base.end = on_given;
  call->no_retry = refund->tokens > 0; /* the limiter may get another policy */
  belay__give_back_send(&refund->base, call);
}

void belay__refund_send(belay_limiter_t *limiter, belay__call_t *call, int64_t tokens) {
  refund_t *refund = call == NULL ? NULL : start(limiter, tokens, on_given);
  if (refund != NULL) {
    give(refund, call);
    return;
  }
  belay__calls_discard(&call, 1);
  limiter->stats.void_tokens += (uint64_t)tokens;
}

/* Build the call that gives back granted tokens. */
static belay__call_t *new_call(belay_limiter_t *limiter, const char *key, size_t key_len,
                               const belay_receipt_t *receipt, int64_t tokens) {
  uint64_t hash = belay__limiter_hash(limiter, key, key_len);
  belay__limit_command_t command =
      belay__limit_command_refund(limiter, key, key_len, receipt, tokens);
  belay__denied_forget(limiter->client->belay, &limiter->denied, hash);
  return belay__limit_command_call(limiter, &command);
}

void belay__refund_grant(belay_limiter_t *limiter, const char *key, size_t key_len,
                         const belay_receipt_t *receipt, int64_t tokens) {
  belay__refund_send(limiter, new_call(limiter, key, key_len, receipt, tokens), tokens);
}

/* ---- fetches without a taker ---- */

/* Give back the granted tokens. If the policy has changed, they are void. */
static void on_granted(refund_t *refund, const belay__call_t *fetch,
                       const belay__limit_reply_t *numbers) {
  belay_limiter_t *limiter = limiter_of(refund);
  belay__call_t *call = NULL;
  belay_receipt_t receipt;
  char key[3 * BELAY_LIMITER_KEY_MAX];
  size_t len;
  refund->tokens = numbers->answer;
  belay__policy_receipt(refund->policy, numbers, numbers->answer, refund->id, &receipt);
  if (refund->policy == limiter->policy && belay__limit_command_key_of(limiter, fetch, key, &len))
    call = new_call(limiter, key, len, &receipt, numbers->answer);
  if (call != NULL)
    give(refund, call);
  else
    end(refund, refund->tokens);
}

static void on_settled(belay__give_back_t *giving, belay__call_t *call,
                       const belay__result_t *result) {
  refund_t *refund = (refund_t *)giving;
  belay__limit_reply_t numbers;
  if (result != NULL && result->outcome == BELAY_OUTCOME_REPLY &&
      belay__limit_command_read_grant(refund->policy, call, result->reply, refund->tokens,
                                      &numbers) &&
      numbers.answer > 0)
    on_granted(refund, call, &numbers);
  else
    end(refund, 0);
}

static void on_fetched(belay__give_back_t *giving, belay__call_t *call,
                       const belay__result_t *result) {
  giving->end = on_settled;
  if (call != NULL && call->state == BELAY__CALL_LATE && !giving->handle->closing)
    belay__give_back_own(giving, call);
  else
    on_settled(giving, call, result);
}

void belay__refund_adopt(belay_limiter_t *limiter, belay__call_t *fetch, int64_t asked,
                         int64_t id) {
  bool late = fetch->state == BELAY__CALL_LATE;
  bool comes = late ? !limiter->handle.closing : fetch->state == BELAY__CALL_SENT;
  refund_t *refund = comes ? start(limiter, asked, late ? on_settled : on_fetched) : NULL;
  if (refund != NULL) {
    refund->id = id;
    belay__give_back_own(&refund->base, fetch);
  } else if (fetch->done != NULL) {
    (void)belay__call_abandon(fetch);
  }
}
