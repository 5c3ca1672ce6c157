#include "limit/refund.h"

#include "limit/limiter.h"

typedef struct errand {
  belay__list_t node; /* in limiter->errands */
  belay_limiter_t *limiter;
  belay__policy_t *policy; /* a reference: of the call */
  belay__call_t *call;
  int64_t tokens; /* GIVING: that go back. Else: that were asked for */
  int64_t id;
} errand_t;

static void over(errand_t *errand) {
  belay_limiter_t *limiter = errand->limiter;
  belay_t *belay = limiter->client->belay;
  belay__list_remove(&errand->node);
  belay__policy_drop(belay, errand->policy);
  belay__free(belay, errand, sizeof *errand);
  belay__family_free(&limiter->family);
}

static errand_t *start(belay_limiter_t *limiter, int64_t tokens) {
  errand_t *errand = belay__alloc(limiter->client->belay, sizeof *errand);
  if (errand == NULL)
    return NULL;
  *errand = (errand_t){.limiter = limiter, .policy = limiter->policy, .tokens = tokens};
  limiter->policy->refs++;
  belay__list_push(&limiter->errands, &errand->node);
  belay__family_hold(&limiter->family);
  return errand;
}

/* ---- giving back --------------------------------------------------------------------------------------- */

static void on_given(belay__call_t *call, const belay__result_t *result) {
  errand_t *errand = call->owner;
  const belay__reply_t *reply = result->reply;
  belay__owed_t owed;
  double exact; /* only whole tokens are told of */
  int64_t lost = errand->tokens;
  if (lost > 0 && result->outcome == BELAY_OUTCOME_REPLY &&
      belay__policy_read(errand->policy, reply, &exact, &owed) && owed.answer > 0 &&
      owed.answer <= lost)
    lost -= owed.answer;
  errand->limiter->stats.void_tokens += (uint64_t)lost;
  over(errand);
}

static void give(errand_t *errand, belay__call_t *call) {
  belay_limiter_t *limiter = errand->limiter;
  call->urgent = true;
  call->once = errand->tokens > 0; /* another policy may have come */
  if (belay__call_start(&errand->call, call, on_given, errand) == 0)
    return;
  limiter->stats.void_tokens += (uint64_t)errand->tokens;
  over(errand);
}

void belay__errand_send(belay_limiter_t *limiter, belay__call_t *call, int64_t tokens) {
  errand_t *errand = call == NULL ? NULL : start(limiter, tokens);
  if (errand != NULL) {
    give(errand, call);
    return;
  }
  belay__calls_discard(&call, 1);
  limiter->stats.void_tokens += (uint64_t)tokens;
}

/* ---- what somebody else has asked for ------------------------------------------------------------------ */

/* What it granted goes back; under another policy it could not. */
static void on_granted(errand_t *errand, const belay__call_t *fetch, const belay__owed_t *owed) {
  belay_limiter_t *limiter = errand->limiter;
  belay__call_t *call = NULL;
  errand->tokens = owed->answer;
  if (errand->policy == limiter->policy) {
    belay_receipt_t receipt;
    char key[3 * BELAY_LIMITER_KEY_MAX];
    size_t len;
    belay__policy_receipt(errand->policy, owed, owed->answer, errand->id, &receipt);
    if (belay__limiter_key_of(limiter, fetch, key, &len))
      call = belay__limiter_refund_call(limiter, key, len, &receipt, owed->answer);
  }
  if (call != NULL) {
    give(errand, call);
    return;
  }
  limiter->stats.void_tokens += (uint64_t)errand->tokens;
  over(errand);
}

static void on_settled(belay__call_t *call, const belay__result_t *result) {
  errand_t *errand = call->owner;
  belay__owed_t owed;
  if (result->outcome == BELAY_OUTCOME_REPLY &&
      belay__limiter_read_grant(errand->policy, call, result->reply, errand->tokens, &owed) &&
      owed.answer > 0)
    on_granted(errand, call, &owed);
  else
    over(errand);
}

static void on_fetched(belay__call_t *call, const belay__result_t *result) {
  errand_t *errand = call->owner;
  if (call->state == BELAY__CALL_LATE && !errand->limiter->family.closing)
    belay__call_own(&errand->call, call, on_settled, errand);
  else
    on_settled(call, result);
}

void belay__errand_adopt(belay_limiter_t *limiter, belay__call_t *fetch, int64_t asked,
                         int64_t id) {
  bool late = fetch->state == BELAY__CALL_LATE;
  bool comes = late ? !limiter->family.closing : fetch->state == BELAY__CALL_SENT;
  errand_t *errand = comes ? start(limiter, asked) : NULL;
  if (errand != NULL) {
    errand->id = id;
    belay__call_own(&errand->call, fetch, late ? on_settled : on_fetched, errand);
  } else if (fetch->done != NULL) {
    (void)belay__call_abandon(fetch);
  }
}

/* ---- the end ------------------------------------------------------------------------------------------- */

static void end_all(belay_limiter_t *limiter, bool late_only) {
  for (belay__list_t *i = limiter->errands.next, *next; i != &limiter->errands; i = next) {
    errand_t *errand = BELAY__CONTAINER(i, errand_t, node);
    next = i->next;
    if (late_only && errand->call->state != BELAY__CALL_LATE)
      continue;
    bool giving = errand->call->done == on_given;
    (void)belay__call_cancel(&errand->call);
    if (giving)
      limiter->stats.void_tokens += (uint64_t)errand->tokens;
    over(errand);
  }
}

void belay__errands_close(belay_limiter_t *limiter) {
  end_all(limiter, true);
}

void belay__errands_abort(belay_limiter_t *limiter) {
  end_all(limiter, false);
}
