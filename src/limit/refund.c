#include "limit/refund.h"

#include "limit/command.h"

typedef struct refund {
  belay__list_t node; /* in limiter->refunds */
  belay_limiter_t *limiter;
  belay__policy_t *policy; /* a reference: of the call */
  belay__call_t *call;
  int64_t tokens; /* GIVING: that go back. Else: that were asked for */
  int64_t id;
} refund_t;

/* It is over, and so many of its tokens were not given back. */
static void end(refund_t *refund, int64_t lost) {
  belay_limiter_t *limiter = refund->limiter;
  belay_t *belay = limiter->client->belay;
  limiter->stats.void_tokens += (uint64_t)lost;
  belay__list_remove(&refund->node);
  belay__policy_drop(belay, refund->policy);
  belay__free(belay, refund, sizeof *refund);
  belay__handle_release(&limiter->handle);
}

static refund_t *start(belay_limiter_t *limiter, int64_t tokens) {
  refund_t *refund = belay__alloc(limiter->client->belay, sizeof *refund);
  if (refund == NULL)
    return NULL;
  *refund = (refund_t){.limiter = limiter, .policy = limiter->policy, .tokens = tokens};
  limiter->policy->refs++;
  belay__list_push(&limiter->refunds, &refund->node);
  belay__handle_retain(&limiter->handle);
  return refund;
}

/* ---- giving back --------------------------------------------------------------------------------------- */

static void on_given(belay__call_t *call, const belay__result_t *result) {
  refund_t *refund = call->owner;
  belay__owed_t owed;
  double exact; /* void_tokens counts only whole tokens */
  int64_t lost = refund->tokens;
  if (lost > 0 && result->outcome == BELAY_OUTCOME_REPLY &&
      belay__policy_read(refund->policy, result->reply, &exact, &owed) && owed.answer > 0 &&
      owed.answer <= lost)
    lost -= owed.answer;
  end(refund, lost);
}

static void give(refund_t *refund, belay__call_t *call) {
  call->urgent = true;
  call->once = refund->tokens > 0; /* another policy may have come */
  if (belay__call_start(&refund->call, call, on_given, refund) != 0)
    end(refund, refund->tokens);
}

void belay__refund_send(belay_limiter_t *limiter, belay__call_t *call, int64_t tokens) {
  refund_t *refund = call == NULL ? NULL : start(limiter, tokens);
  if (refund != NULL) {
    give(refund, call);
    return;
  }
  belay__calls_discard(&call, 1);
  limiter->stats.void_tokens += (uint64_t)tokens;
}

/* The call that gives back what a fetch has granted. */
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

/* ---- fetches that are not wanted any more ---------------------------------------------------------------- */

/* The granted tokens go back; under another policy they could not. */
static void on_granted(refund_t *refund, const belay__call_t *fetch, const belay__owed_t *owed) {
  belay_limiter_t *limiter = refund->limiter;
  belay__call_t *call = NULL;
  belay_receipt_t receipt;
  char key[3 * BELAY_LIMITER_KEY_MAX];
  size_t len;
  refund->tokens = owed->answer;
  belay__policy_receipt(refund->policy, owed, owed->answer, refund->id, &receipt);
  if (refund->policy == limiter->policy && belay__limit_command_key_of(limiter, fetch, key, &len))
    call = new_call(limiter, key, len, &receipt, owed->answer);
  if (call != NULL)
    give(refund, call);
  else
    end(refund, refund->tokens);
}

static void on_settled(belay__call_t *call, const belay__result_t *result) {
  refund_t *refund = call->owner;
  belay__owed_t owed;
  if (result->outcome == BELAY_OUTCOME_REPLY &&
      belay__limit_command_read_grant(refund->policy, call, result->reply, refund->tokens, &owed) &&
      owed.answer > 0)
    on_granted(refund, call, &owed);
  else
    end(refund, 0);
}

static void on_fetched(belay__call_t *call, const belay__result_t *result) {
  refund_t *refund = call->owner;
  if (call->state == BELAY__CALL_LATE && !refund->limiter->handle.closing)
    belay__call_own(&refund->call, call, on_settled, refund);
  else
    on_settled(call, result);
}

void belay__refund_adopt(belay_limiter_t *limiter, belay__call_t *fetch, int64_t asked,
                         int64_t id) {
  bool late = fetch->state == BELAY__CALL_LATE;
  bool comes = late ? !limiter->handle.closing : fetch->state == BELAY__CALL_SENT;
  refund_t *refund = comes ? start(limiter, asked) : NULL;
  if (refund != NULL) {
    refund->id = id;
    belay__call_own(&refund->call, fetch, late ? on_settled : on_fetched, refund);
  } else if (fetch->done != NULL) {
    (void)belay__call_abandon(fetch);
  }
}

/* ---- the end ------------------------------------------------------------------------------------------- */

static void end_all(belay_limiter_t *limiter, bool late_only) {
  for (belay__list_t *i = limiter->refunds.next, *next; i != &limiter->refunds; i = next) {
    refund_t *refund = BELAY__CONTAINER(i, refund_t, node);
    next = i->next;
    if (late_only && refund->call->state != BELAY__CALL_LATE)
      continue;
    bool giving = refund->call->done == on_given;
    (void)belay__call_cancel(&refund->call);
    end(refund, giving ? refund->tokens : 0);
  }
}

void belay__refunds_close(belay_limiter_t *limiter) {
  end_all(limiter, true);
}

void belay__refunds_abort(belay_limiter_t *limiter) {
  end_all(limiter, false);
}
