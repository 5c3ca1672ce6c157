/* Takes. The sources of an answer, in this order: the policy alone, a token lease, the denial
 * cache, the server, options.away. */
#include "limit/denial_cache.h"
#include "limit/fallback.h"
#include "limit/group.h"
#include "limit/token_lease.h"

static bool is_leased(const belay_limiter_t *limiter, const belay__limit_op_t *op) {
  return op->cost <= limiter->options.lease_tokens;
}

/* Answer from the policy, the token lease or the denial cache: sets op->source and the fields of
 * that source. Returns false if the server is needed. */
static bool answer_locally(belay_limiter_t *limiter, belay__limit_op_t *op, belay_bytes_t key) {
  belay_t *belay = belay__limiter_belay(limiter);
  int64_t cost = op->cost;
  op->source = BELAY_SOURCE_POLICY;
  if (limiter->policy->limits_len == 0)
    return true;
  op->hash = belay__limiter_hash(limiter, key);
  belay__token_lease_t *lease =
      is_leased(limiter, op) ? belay__token_lease_find(limiter, op->hash, key) : NULL;
  if (lease != NULL) {
    uint64_t now = belay__now(belay);
    op->source = BELAY_SOURCE_LEASE;
    if (belay__token_lease_serve(lease, cost, now)) {
      belay__token_lease_refill(lease, now);
      limiter->stats.from_leases++;
      return true;
    }
    cost = belay__token_lease_need(lease, cost, now);
  }
  op->source = BELAY_SOURCE_DENIAL;
  if (cost > 0 && limiter->denied.table.count > 0 &&
      belay__denied_find(limiter, op->hash, key, cost, belay__now(belay), &op->denial)) {
    limiter->stats.denials++;
    return true;
  }
  op->source = BELAY_SOURCE_SERVER;
  return false;
}

int belay_limiter_try(belay_limiter_t *limiter, belay_bytes_t key, int64_t cost,
                      belay_limiter_result_t *result) {
  int error = belay__handle_check((const belay__handle_t *)limiter);
  if (error != 0)
    return error;
  belay_t *belay = belay__limiter_belay(limiter);
  error = belay__check_bytes(belay, "key", key, 1, BELAY_LIMITER_KEY_MAX);
  if (error == 0)
    error = belay__check_range(belay, "cost", cost, 0, INT64_MAX);
  if (error == 0 && result == NULL)
    error = belay__invalid(belay, "result: NULL");
  if (error != 0)
    return error;
  belay__limit_op_t op = {.policy = limiter->policy,
                          .cost = cost,
                          .verb = BELAY__LIMITER_TAKE,
                          .source = BELAY_SOURCE_POLICY};
  bool local = cost > op.policy->most || op.policy->limits_len == 0;
  if (!local && cost > 0)
    local = answer_locally(limiter, &op, key);
  if (local) {
    belay__limiter_result(limiter, &op, 0, result);
    return 0;
  }
  belay__token_lease_t *lease =
      cost > 0 && is_leased(limiter, &op) ? belay__token_lease_find(limiter, op.hash, key) : NULL;
  if (lease != NULL)
    belay__token_lease_refill(lease, belay__now(belay));
  return BELAY_EAGAIN;
}

/* Answer a PARKED take locally, let it wait for its token lease, or send it. On an error the take
 * is still PARKED. */
static int route(belay_limiter_t *limiter, belay__operation_t *operation, belay_bytes_t key) {
  belay__limit_op_t *op = belay__limit_op_of(operation);
  bool never = op->cost > limiter->policy->most;
  if (!never && answer_locally(limiter, op, key)) {
    belay__request_end(operation, 0);
    return 0;
  }
  operation->fail_fast = belay__fallback_is_on(limiter);
  if (!never && is_leased(limiter, op) && belay__token_lease_park(limiter, operation, key))
    return 0;
  if (!never)
    return belay__limiter_send_take(limiter, operation, key);
  /* the peek replaces a take that can never be admitted; the result of the peek shows the state of
   * the key */
  const belay__limit_command_t peek = {.verb = BELAY__LIMITER_PEEK, .key = key};
  return belay__limiter_send(limiter, operation, &peek);
}

static void leave(belay__operation_t *operation, bool sent) {
  belay__token_lease_left(operation, sent);
  belay__group_leave(operation);
}

static const belay__request_ops_t take_ops = {.read = belay__limiter_read,
                                              .notify = belay__limiter_tell,
                                              .left = leave,
                                              .group = &belay__take_group_ops};

int belay_limiter_take(belay_limiter_t *limiter, belay_request_t *request, belay_bytes_t key,
                       int64_t cost, belay_limiter_cb cb) {
  const belay__limit_command_t command = {.verb = BELAY__LIMITER_TAKE, .cost = cost};
  belay__operation_t *operation;
  if (cost == 0)
    return belay_limiter_peek(limiter, request, key, cb);
  int error = belay__handle_check_key((belay__handle_t *)limiter, request, key, cb != NULL);
  if (error == 0)
    error = belay__check_range(belay__limiter_belay(limiter), "cost", cost, 0, INT64_MAX);
  if (error == 0)
    error = belay__limiter_begin(limiter, request, &take_ops, &command, cb, &operation);
  if (error != 0)
    return error;
  error = route(limiter, operation, key);
  if (error != 0)
    belay__limiter_forget(operation);
  return error;
}
