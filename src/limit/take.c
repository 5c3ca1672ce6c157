#include "limit/take.h"

#include "limit/denial_cache.h"
#include "limit/fallback.h"
#include "limit/request.h"
#include "limit/token_lease.h"

/* ---- without a call ---- */

/* A local answer to a take. */
typedef struct known {
  belay_source_t source; /* 0: no local answer */
  belay__denial_t denial;
  belay__token_lease_t *lease; /* Token lease of the key that could not serve the take; or NULL */
} known_t;

static bool is_leased(const belay_limiter_t *limiter, int64_t cost) {
  return cost <= limiter->options.lease_tokens;
}

/* Answer from the token lease or the denial cache, if possible. cost: 1 to the policy's most. */
static void answer_here(belay_limiter_t *limiter, uint64_t hash, const char *key, size_t len,
                        int64_t cost, known_t *known) {
  bool leased = is_leased(limiter, cost);
  uint64_t now = 0;
  known->lease = leased ? belay__token_lease_find(limiter, hash, key, len) : NULL;
  if (known->lease != NULL) {
    now = belay__now(limiter->client->belay);
    if (belay__token_lease_serve(known->lease, cost, now)) {
      belay__token_lease_refill(known->lease, now);
      known->source = BELAY_SOURCE_LEASE;
      limiter->stats.from_leases++;
      return;
    }
    cost = belay__token_lease_need(known->lease, cost, now);
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

int belay_limiter_try(belay_limiter_t *limiter, belay_bytes_t key, int64_t cost,
                      belay_limiter_result_t *result) {
  int error = belay__handle_check((const belay__handle_t *)limiter);
  if (error != 0)
    return error;
  belay_t *belay = limiter->client->belay;
  error = belay__check_bytes(belay, "key", key, 1, BELAY_LIMITER_KEY_MAX);
  if (error == 0)
    error = belay__check_range(belay, "cost", cost, 0, INT64_MAX);
  if (error == 0 && result == NULL) {
    belay__detail(belay, "result: NULL");
    error = BELAY_EINVAL;
  }
  if (error != 0)
    return error;
  const belay__policy_t *policy = limiter->policy;
  known_t known = {.source = BELAY_SOURCE_POLICY};
  if (policy->limits_len > 0 && cost <= policy->most) {
    known.source = (belay_source_t)0;
    if (cost > 0)
      answer_here(limiter, belay__limiter_hash(limiter, key.data, key.len), key.data, key.len, cost,
                  &known);
  }
  if (known.source == 0) {
    if (known.lease != NULL)
      belay__token_lease_refill(known.lease, belay__now(limiter->client->belay));
    return BELAY_EAGAIN;
  }
  *result = (belay_limiter_result_t){
      .verdict = BELAY_ALLOWED, .source = known.source, .remaining = -1, .reset_after_us = -1};
  if (known.source == BELAY_SOURCE_DENIAL) {
    belay__denials_tell(&known.denial, result);
  } else if (known.source == BELAY_SOURCE_POLICY && policy->limits_len > 0) {
    result->verdict = BELAY_NEVER;
    result->retry_after_us = -1;
  } else if (known.source == BELAY_SOURCE_POLICY) {
    result->reset_after_us = 0;
    result->remaining = BELAY_INFINITE;
  }
  return 0;
}

/* ---- taking ---- */

/* There is no server reply, so its fields carry the denial. */
static void answer(belay__operation_t *operation, const known_t *known) {
  belay__limit_reply_t *numbers = &belay__limit_op_of(operation)->numbers;
  numbers->limits[0].a = known->denial.retry_us;
  numbers->limits[0].b = known->denial.window;
  numbers->limits[0].c = known->denial.banned;
  belay__limiter_answer(operation, known->source, 0);
}

int belay__take_route(belay_limiter_t *limiter, belay__operation_t *operation, const char *key,
                      size_t len) {
  belay__limit_op_t *op = belay__limit_op_of(operation);
  bool never = op->cost > limiter->policy->most;
  known_t known = {.source = (belay_source_t)0};
  op->hash = belay__limiter_hash(limiter, key, len);
  if (limiter->policy->limits_len == 0)
    known.source = BELAY_SOURCE_POLICY;
  else if (!never)
    answer_here(limiter, op->hash, key, len, op->cost, &known);
  if (known.source != 0) {
    answer(operation, &known);
    return 0;
  }
  operation->fail_fast = belay__fallback_is_on(limiter);
  if (!never && is_leased(limiter, op->cost) &&
      belay__token_lease_park(limiter, operation, key, len))
    return 0;
  belay__limit_command_t command = {
      .verb = BELAY__LIMITER_TAKE, .key = key, .key_len = len, .cost = op->cost};
  if (never) { /* the result shows the state of the key */
    command.verb = BELAY__LIMITER_PEEK;
    command.cost = 0;
  }
  return belay__limiter_send(limiter, operation, &command);
}

static const belay__request_ops_t take_ops = {
    .read = belay__limiter_read, .notify = belay__limiter_tell, .left = belay__token_lease_left};

int belay_limiter_take(belay_limiter_t *limiter, belay_request_t *request, belay_bytes_t key,
                       int64_t cost, belay_limiter_cb cb) {
  const belay__limit_command_t command = {.verb = BELAY__LIMITER_TAKE, .cost = cost};
  belay__operation_t *operation;
  if (cost == 0)
    return belay_limiter_peek(limiter, request, key, cb);
  int error = belay__handle_check_key((belay__handle_t *)limiter, request, key, cb != NULL);
  if (error == 0)
    error = belay__check_range(limiter->client->belay, "cost", cost, 0, INT64_MAX);
  if (error == 0)
    error = belay__limiter_begin(limiter, request, &take_ops, &command, cb, &operation);
  if (error != 0)
    return error;
  error = belay__take_route(limiter, operation, key.data, key.len);
  if (error != 0)
    belay__limiter_forget(operation);
  return error;
}
