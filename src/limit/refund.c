#include "limit/refund.h"

#include <string.h>

#include "limit/command.h"
#include "limit/denial_cache.h"

typedef struct refund {
  belay__give_back_t base; /* first */
  belay__policy_t *policy; /* Policy of the call; one reference */
  int64_t tokens;
} refund_t;

static void on_end(belay__give_back_t *giving, belay__call_t *call, const belay__result_t *result) {
  refund_t *refund = (refund_t *)giving;
  belay_limiter_t *limiter = (belay_limiter_t *)giving->handle;
  belay__limit_reply_t numbers;
  double exact; /* void_tokens counts whole tokens only */
  (void)call;
  if (result != NULL && result->outcome == BELAY_OUTCOME_REPLY &&
      belay__policy_read(refund->policy, result->reply, &exact, &numbers) && numbers.answer > 0 &&
      numbers.answer <= refund->tokens)
    refund->tokens -= numbers.answer;
  limiter->stats.void_tokens += (uint64_t)refund->tokens;
  belay__policy_release(belay__limiter_belay(limiter), refund->policy);
  belay__give_back_free(giving);
}

void belay__refund_grant(belay_limiter_t *limiter, belay_bytes_t key,
                         const belay_receipt_t *receipt, int64_t tokens) {
  belay__limit_command_t command = belay__limit_command_refund(limiter, key, receipt, tokens);
  belay__denied_forget(limiter, belay__limiter_hash(limiter, key));
  belay__call_t *call = belay__limit_command_call(limiter, &command);
  refund_t *refund =
      call == NULL ? NULL : (refund_t *)belay__give_back_new(&limiter->handle, sizeof *refund);
  if (refund == NULL) {
    belay__calls_discard(&call, 1);
    limiter->stats.void_tokens += (uint64_t)tokens;
    return;
  }
  refund->base.end = on_end;
  refund->policy = belay__policy_retain(limiter->policy);
  refund->tokens = tokens;
  call->no_retry = true; /* a later attempt could follow a change of the policy */
  belay__give_back_send(&refund->base, call);
}

/* ---- fetches without a lease ---- */

typedef struct fetch {
  belay__give_back_t base; /* first */
  belay__policy_t *policy; /* Policy of the call; one reference */
  int64_t asked, id;
  size_t key_len;
  char key[];
} fetch_t;

static void on_fetched(belay__give_back_t *giving, belay__call_t *call,
                       const belay__result_t *result) {
  const fetch_t *fetch = (const fetch_t *)giving;
  belay_limiter_t *limiter = (belay_limiter_t *)giving->handle;
  belay__limit_reply_t numbers;
  belay_receipt_t receipt;
  bool granted =
      result != NULL && result->outcome == BELAY_OUTCOME_REPLY &&
      belay__limit_command_read_grant(fetch->policy, call, result->reply, fetch->asked, &numbers) &&
      numbers.answer > 0;
  if (granted && fetch->policy == limiter->policy) {
    belay__policy_receipt(fetch->policy, &numbers, numbers.answer, fetch->id, &receipt);
    belay__refund_grant(limiter, belay_bytes(fetch->key, fetch->key_len), &receipt, numbers.answer);
  } else if (granted) {
    limiter->stats.void_tokens += (uint64_t)numbers.answer;
  }
  belay__policy_release(belay__limiter_belay(limiter), fetch->policy);
  belay__give_back_free(giving);
}

void belay__refund_fetch(belay_limiter_t *limiter, belay_bytes_t key, belay__call_t *call,
                         int64_t asked, int64_t id) {
  fetch_t *fetch = (fetch_t *)belay__give_back_new(&limiter->handle, sizeof *fetch + key.len);
  if (fetch == NULL)
    return;
  fetch->base.end = on_fetched;
  fetch->policy = belay__policy_retain(limiter->policy);
  fetch->asked = asked;
  fetch->id = id;
  fetch->key_len = key.len;
  memcpy(fetch->key, key.data, key.len);
  belay__give_back_own(&fetch->base, call);
}
