#include "limit/denial_cache.h"

#include "limit/token_lease.h"

/* Whether more may be admitted after it than before. */
static bool gives_back(belay__limiter_op_t op) {
  return op == BELAY__LIMITER_REFUND || op == BELAY__LIMITER_RESET || op == BELAY__LIMITER_BAN ||
         op == BELAY__LIMITER_CANCEL;
}

/* Whether tokens that were taken before it are not to be used after it. */
static bool takes_back(const belay__question_t *question) {
  return question->op == BELAY__LIMITER_RESET || question->op == BELAY__LIMITER_BAN;
}

void belay__near_before(belay_limiter_t *limiter, const belay__question_t *question) {
  if (!gives_back(question->op))
    return;
  uint64_t hash = belay__limiter_hash(limiter, question->key, question->key_len);
  belay__denied_forget(limiter->client->belay, &limiter->denied, hash);
  belay__slice_forget(limiter, hash, question->key, question->key_len, takes_back(question));
}

/* ---- what the server says ------------------------------------------------------------------------------ */

static void learn(belay_limiter_t *limiter, const belay__wanted_t *wanted,
                  const belay__call_t *call) {
  if (wanted->owed.answer >= 0 || wanted->cost > wanted->policy->most ||
      wanted->epoch != belay__denied_epoch(&limiter->denied, wanted->hash))
    return;
  char key[3 * BELAY_LIMITER_KEY_MAX];
  size_t len;
  if (limiter->options.max_denied == 0 || !belay__limiter_key_of(limiter, call, key, &len))
    return;
  belay_limiter_result_t result = {0};
  belay__policy_judge(wanted->policy, &wanted->owed, wanted->cost, &result);
  const belay__denial_t denial = {.cost = wanted->cost,
                                  .retry_us = result.retry_after_us,
                                  .window = result.window,
                                  .banned = result.banned};
  belay__denied_learn(limiter->client->belay, &limiter->denied, limiter->options.max_denied,
                      wanted->hash, key, len, &denial, call->started);
}

void belay__near_after(belay_limiter_t *limiter, const belay__wanted_t *wanted,
                       const belay__call_t *call) {
  if (wanted->op == BELAY__LIMITER_TAKE)
    learn(limiter, wanted, call);
  else if (gives_back(wanted->op)) /* it may have been sent more than once */
    belay__denied_forget(limiter->client->belay, &limiter->denied, wanted->hash);
}

/* ---- what is known ------------------------------------------------------------------------------------- */

/* What is told of a take without asking; and what is known of the slice of its key. */
typedef struct known {
  belay_source_t source; /* 0: it is not known */
  belay__denial_t denial;
  belay__slice_t *slice; /* that did not serve it; NULL: none */
} known_t;

static bool has_slices(const belay_limiter_t *limiter, int64_t cost) {
  return cost <= limiter->options.slice;
}

/* Takes from a slice, if there is one. cost: 1 to the policy's most. */
static void look(belay_limiter_t *limiter, uint64_t hash, const char *key, size_t len, int64_t cost,
                 known_t *known) {
  bool leased = has_slices(limiter, cost);
  uint64_t now = 0;
  known->slice = leased ? belay__slice_find(limiter, hash, key, len) : NULL;
  if (known->slice != NULL) {
    now = belay__now(limiter->client->belay);
    if (belay__slice_serve(known->slice, cost, now)) {
      belay__slice_refill(known->slice, now);
      known->source = BELAY_SOURCE_SLICE;
      limiter->stats.from_slices++;
      return;
    }
    cost = belay__slice_need(known->slice, cost, now);
  }
  if (cost == 0 || limiter->denied.table.count == 0)
    return;
  if (now == 0)
    now = belay__now(limiter->client->belay);
  if (belay__denied_find(&limiter->denied, hash, key, len, cost, now, &known->denial)) {
    known->source = BELAY_SOURCE_DENIAL;
    limiter->stats.denials++;
  }
}

static void deny(const belay__denial_t *denial, belay_limiter_result_t *result) {
  result->verdict = BELAY_DENIED;
  result->retry_after_us = denial->retry_us;
  result->window = denial->window;
  result->banned = denial->banned;
}

int belay_limiter_try(belay_limiter_t *limiter, const char *key, size_t key_len, int64_t cost,
                      belay_limiter_result_t *result) {
  key_len = belay__text_len(key, key_len);
  int error = belay__limiter_check(limiter, key, key_len);
  if (error == 0)
    error = belay__limiter_range(limiter, "cost", cost, 0, INT64_MAX);
  if (error == 0 && result == NULL) {
    belay__detail(limiter->client->belay, "result: NULL");
    error = BELAY_EINVAL;
  }
  if (error != 0)
    return error;
  const belay__policy_t *policy = limiter->policy;
  known_t known = {.source = BELAY_SOURCE_POLICY};
  if (policy->limits_len > 0 && cost <= policy->most) {
    known.source = (belay_source_t)0;
    if (cost > 0)
      look(limiter, belay__limiter_hash(limiter, key, key_len), key, key_len, cost, &known);
  }
  if (known.source == 0) {
    if (known.slice != NULL)
      belay__slice_refill(known.slice, belay__now(limiter->client->belay));
    return BELAY_EAGAIN;
  }
  *result = (belay_limiter_result_t){
      .verdict = BELAY_ALLOWED, .source = known.source, .remaining = -1, .reset_after_us = -1};
  if (known.source == BELAY_SOURCE_DENIAL) {
    deny(&known.denial, result);
  } else if (known.source == BELAY_SOURCE_POLICY && policy->limits_len > 0) {
    result->verdict = BELAY_NEVER;
    result->retry_after_us = -1;
  } else if (known.source == BELAY_SOURCE_POLICY) {
    result->reset_after_us = 0;
    result->remaining = BELAY_INFINITE;
  }
  return 0;
}

/* ---- taking -------------------------------------------------------------------------------------------- */

/* What is known of it travels in the numbers of a reply that there is not. */
static void answer(belay__pending_t *pending, const known_t *known) {
  belay__owed_t *owed = &belay__wanted_of(pending)->owed;
  owed->limits[0].a = known->denial.retry_us;
  owed->limits[0].b = known->denial.window;
  owed->limits[0].c = known->denial.banned;
  belay__limiter_answer(pending, known->source, 0);
}

int belay__near_take(belay_limiter_t *limiter, belay__pending_t *pending, const char *key,
                     size_t len) {
  belay__wanted_t *wanted = belay__wanted_of(pending);
  bool never = wanted->cost > limiter->policy->most;
  known_t known = {.source = (belay_source_t)0};
  wanted->hash = belay__limiter_hash(limiter, key, len);
  if (limiter->policy->limits_len == 0)
    known.source = BELAY_SOURCE_POLICY;
  else if (!never)
    look(limiter, wanted->hash, key, len, wanted->cost, &known);
  if (known.source != 0) {
    answer(pending, &known);
    return 0;
  }
  pending->fail_fast = belay__away_has_policy(limiter);
  if (!never && has_slices(limiter, wanted->cost) && belay__slice_park(limiter, pending, key, len))
    return 0;
  belay__question_t question = {
      .op = BELAY__LIMITER_TAKE, .key = key, .key_len = len, .cost = wanted->cost};
  if (never) { /* but how it stands is told */
    question.op = BELAY__LIMITER_PEEK;
    question.cost = 0;
  }
  return belay__limiter_send(limiter, pending, &question);
}

void belay__near_tell(belay_limiter_t *limiter, const belay__wanted_t *wanted, int status,
                      belay_limiter_result_t *result) {
  if (gives_back(wanted->op) && status != 0) /* it may have been done */
    belay__denied_forget(limiter->client->belay, &limiter->denied, wanted->hash);
  if (wanted->op != BELAY__LIMITER_TAKE)
    return;
  belay__away_told(limiter, wanted, status, result);
  if (status == 0 && wanted->source == BELAY_SOURCE_DENIAL) {
    const belay__denial_t denial = {.retry_us = wanted->owed.limits[0].a,
                                    .window = (unsigned)wanted->owed.limits[0].b,
                                    .banned = wanted->owed.limits[0].c != 0};
    deny(&denial, result);
  }
}
