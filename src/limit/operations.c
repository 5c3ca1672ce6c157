/* Operations that ask the server, never a lease or a cache: peek, penalty, refund, reset, ban. If
 * the policy has no finite limits, the policy answers all of these operations except a reset. */
#include "limit/request.h"
#include "limit/token_lease.h"

#define BAN_MAX_US (INT64_C(10) * 366 * 86400 * 1000000)

static const belay__request_ops_t once_ops = {.read = belay__limiter_read,
                                              .notify = belay__limiter_tell};
static const belay__request_ops_t repeated_ops = {
    .read = belay__limiter_read, .notify = belay__limiter_tell, .idempotent = true};

static int check(const belay_limiter_t *limiter, const belay_request_t *request, belay_bytes_t key,
                 belay_limiter_cb cb) {
  return belay__handle_check_key((const belay__handle_t *)limiter, request, key, cb != NULL);
}

static int refuse(const belay_limiter_t *limiter, const char *why) {
  return belay__invalid(belay__limiter_belay(limiter), "%s", why);
}

/* Start an operation whose arguments were checked. */
static int start(belay_limiter_t *limiter, belay_request_t *request,
                 const belay__limit_command_t *command, belay_limiter_cb cb) {
  bool once = command->verb == BELAY__LIMITER_PENALTY || command->verb == BELAY__LIMITER_REFUND;
  belay__operation_t *operation;
  belay__token_lease_before(limiter, command);
  return belay__limiter_start(limiter, request, once ? &once_ops : &repeated_ops, command, cb,
                              &operation);
}

int belay_limiter_peek(belay_limiter_t *limiter, belay_request_t *request, belay_bytes_t key,
                       belay_limiter_cb cb) {
  const belay__limit_command_t command = {.verb = BELAY__LIMITER_PEEK, .key = key};
  int error = check(limiter, request, key, cb);
  return error != 0 ? error : start(limiter, request, &command, cb);
}

int belay_limiter_penalty(belay_limiter_t *limiter, belay_request_t *request, belay_bytes_t key,
                          int64_t cost, belay_limiter_cb cb) {
  const belay__limit_command_t command = {.verb = BELAY__LIMITER_PENALTY, .key = key, .cost = cost};
  int error = check(limiter, request, key, cb);
  if (error != 0)
    return error;
  const belay__policy_t *policy = limiter->policy;
  int64_t max = belay__policy_is_log(policy) ? BELAY_LIMITER_LOG_MAX : BELAY_LIMITER_UNITS_MAX;
  for (size_t i = 0; i < policy->limits_len && !belay__policy_is_log(policy); i++)
    if (BELAY_LIMITER_UNITS_MAX / policy->limits[i].p < max)
      max = BELAY_LIMITER_UNITS_MAX / policy->limits[i].p;
  error = belay__check_range(belay__limiter_belay(limiter), "cost", cost, 1, max);
  return error != 0 ? error : start(limiter, request, &command, cb);
}

int belay_limiter_refund(belay_limiter_t *limiter, belay_request_t *request, belay_bytes_t key,
                         belay_receipt_t *receipt, int64_t tokens, belay_limiter_cb cb) {
  int error = check(limiter, request, key, cb);
  if (error != 0)
    return error;
  if (receipt == NULL)
    return refuse(limiter, "receipt: NULL");
  int64_t taken = receipt->belay_private[0];
  error = taken <= 0
              ? refuse(limiter, "receipt: void: of no take that the server allowed, or used")
              : belay__check_range(belay__limiter_belay(limiter), "tokens", tokens, 1, taken);
  if (error != 0)
    return error;
  const belay__limit_command_t command = belay__limit_command_refund(limiter, key, receipt, tokens);
  error = start(limiter, request, &command, cb);
  if (error == 0)
    receipt->belay_private[0] = 0;
  return error;
}

int belay_limiter_reset(belay_limiter_t *limiter, belay_request_t *request, belay_bytes_t key,
                        belay_limiter_cb cb) {
  const belay__limit_command_t command = {.verb = BELAY__LIMITER_RESET, .key = key};
  int error = check(limiter, request, key, cb);
  return error != 0 ? error : start(limiter, request, &command, cb);
}

int belay_limiter_ban(belay_limiter_t *limiter, belay_request_t *request, belay_bytes_t key,
                      int64_t ban_us, belay_limiter_cb cb) {
  belay__limit_command_t command = {.verb = BELAY__LIMITER_BAN, .key = key};
  int error = check(limiter, request, key, cb);
  if (error == 0)
    error = belay__check_range(belay__limiter_belay(limiter), "ban_us", ban_us, 0, BAN_MAX_US);
  if (error == 0 && ban_us > 0 && limiter->policy->limits_len == 0)
    error = refuse(limiter, "limits: all are infinite, so a ban would have no effect");
  if (error != 0)
    return error;
  belay__limit_command_number(&command, ban_us);
  return start(limiter, request, &command, cb);
}
