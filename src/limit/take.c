/* What is asked about a key, and what is told. */
#include <string.h>

#include "core/key/key.h"
#include "limit/limiter.h"
#include "limit/denial_cache.h"
#include "scripts.gen.h"

#define BAN_MAX_US (INT64_C(10) * 366 * 86400 * 1000000)

/* ---- the call ------------------------------------------------------------------------------------------ */

static const char *const words[] = {
    [BELAY__LIMITER_TAKE] = "take",       [BELAY__LIMITER_SLICE] = "slice",
    [BELAY__LIMITER_PEEK] = "peek",       [BELAY__LIMITER_PENALTY] = "penalty",
    [BELAY__LIMITER_REFUND] = "refund",   [BELAY__LIMITER_BAN] = "ban",
    [BELAY__LIMITER_RESERVE] = "reserve", [BELAY__LIMITER_CANCEL] = "cancel",
    [BELAY__LIMITER_WAIT] = "reserve",
};

/* Adds the key, and the one with that tail if there is one. */
static void put_keys(belay__call_t *call, const belay_limiter_t *limiter,
                     const belay__question_t *question, const char *tail) {
  belay__family_arg(&limiter->family, call, question->key, question->key_len, "}");
  if (tail != NULL)
    belay__family_arg(&limiter->family, call, question->key, question->key_len, tail);
}

/* What stands behind the key: of a reservation, of a log its ban; NULL: nothing. */
static const char *second_tail(const belay__question_t *question, bool log, char out[64]) {
  static const char part[] = "}::r::";
  if (log)
    return "}::ban";
  if (question->reservation == NULL)
    return NULL;
  const belay_reservation_t *reservation = question->reservation;
  memcpy(out, part, sizeof part);
  (void)belay__policy_spell(out + sizeof part - 1, reservation->id, sizeof reservation->id);
  out[sizeof part - 1 + 2 * sizeof reservation->id] = '\0';
  return out;
}

belay__call_t *belay__limiter_call(belay_limiter_t *limiter, const belay__question_t *question) {
  const belay__policy_t *policy = limiter->policy;
  belay__near_before(limiter, question);
  belay__call_t *call = belay__call_new(limiter->client, BELAY__LANE_DATA);
  if (call == NULL)
    return NULL;
  bool log = belay__policy_is_log(policy);
  char space[64];
  const char *tail = second_tail(question, log, space);
  if (question->op == BELAY__LIMITER_RESET) {
    belay__call_command(call, "DEL", log ? 3 : 2);
    put_keys(call, limiter, question, tail);
    return call;
  }
  size_t args = limiter->time != 0 ? 5 : question->more != NULL ? 4 : 3;
  belay__call_script(call, log ? &belay__script_limit_log : &belay__script_limit,
                     tail != NULL ? 2 : 1, args);
  put_keys(call, limiter, question, tail);
  belay__call_arg(call, words[question->op], strlen(words[question->op]));
  belay__call_arg(call, policy->packed, belay__policy_packed_len(policy));
  belay__call_arg_int(call, question->cost);
  if (args > 3)
    belay__call_arg(call, question->more_len > 0 ? question->more : "", question->more_len);
  if (args > 4)
    belay__call_arg_int(call, limiter->time);
  return call;
}

belay__call_t *belay__limiter_refund_call(belay_limiter_t *limiter, const char *key, size_t key_len,
                                          const belay_receipt_t *receipt, int64_t tokens) {
  char more[BELAY__RECEIPT_MAX];
  const belay__question_t question = {
      .op = BELAY__LIMITER_REFUND,
      .key = key,
      .key_len = key_len,
      .cost = tokens,
      .more = more,
      .more_len = belay__policy_put_receipt(limiter->policy, receipt, more)};
  return belay__limiter_call(limiter, &question);
}

bool belay__limiter_key_of(const belay_limiter_t *limiter, const belay__call_t *call,
                           char out[3 * BELAY_LIMITER_KEY_MAX], size_t *len) {
  size_t n, prefix = limiter->family.prefix_len;
  const char *key = belay__call_key(call, &n);
  return n > prefix + 1 && n - prefix - 1 <= 3 * BELAY_LIMITER_KEY_MAX &&
         memcmp(key, limiter->family.prefix, prefix) == 0 &&
         belay__key_unescape(out, len, key + prefix, n - prefix - 1);
}

/* ---- the answer ---------------------------------------------------------------------------------------- */

/* Whether its answer is how many tokens were given back. */
static bool returns(const belay__wanted_t *wanted) {
  return wanted->op == BELAY__LIMITER_REFUND || wanted->op == BELAY__LIMITER_CANCEL;
}

int belay__limiter_read(belay__pending_t *pending, const belay__call_t *call,
                        const belay__reply_t *reply) {
  belay__wanted_t *wanted = belay__wanted_of(pending);
  bool good = wanted->op == BELAY__LIMITER_RESET
                  ? belay__reply_integer(reply, 0, 2, &wanted->owed.answer)
                  : belay__policy_read(wanted->policy, reply,
                                       returns(wanted) ? &wanted->returned : NULL, &wanted->owed);
  if (good)
    belay__near_after(pending->context, wanted, call);
  return good ? 0 : BELAY_EPROTO;
}

bool belay__limiter_read_grant(const belay__policy_t *policy, belay__call_t *call,
                               const belay__reply_t *reply, int64_t asked, belay__owed_t *owed) {
  bool good =
      belay__policy_read(policy, reply, NULL, owed) && owed->answer != 0 && owed->answer <= asked;
  if (!good)
    belay__call_distrust(call, reply);
  return good;
}

/* Whether its cost is held against the limits. */
static bool is_limited(const belay__wanted_t *wanted) {
  return wanted->op == BELAY__LIMITER_TAKE || wanted->op == BELAY__LIMITER_RESERVE ||
         wanted->op == BELAY__LIMITER_WAIT;
}

static void tell_owed(const belay__wanted_t *wanted, belay_limiter_result_t *result) {
  int64_t answer = wanted->owed.answer;
  belay__policy_judge(wanted->policy, &wanted->owed, is_limited(wanted) ? wanted->cost : 0, result);
  if (result->verdict == BELAY_NEVER)
    return;
  if (answer < 0) {
    result->verdict = BELAY_DENIED;
    return;
  }
  result->retry_after_us = 0;
  result->window = 0;
  result->banned = false;
  if (wanted->op == BELAY__LIMITER_TAKE)
    belay__policy_receipt(wanted->policy, &wanted->owed, wanted->cost, wanted->id,
                          &result->receipt);
  if (returns(wanted))
    result->returned = wanted->returned;
  if (wanted->op == BELAY__LIMITER_RESERVE || wanted->op == BELAY__LIMITER_WAIT)
    result->wait_us = answer;
}

void belay__limiter_tell(belay_request_t *request, void (*cb)(void),
                         const belay__answer_t *answer) {
  const belay__wanted_t *wanted = (const belay__wanted_t *)(const void *)answer->values;
  bool never = is_limited(wanted) && wanted->cost > wanted->policy->most;
  belay_limiter_result_t result = {.verdict = never ? BELAY_NEVER : BELAY_ALLOWED,
                                   .source = (belay_source_t)wanted->source,
                                   .cause = answer->status,
                                   .remaining = -1,
                                   .retry_after_us = -1,
                                   .reset_after_us = -1};
  if (answer->status == 0 && result.source == BELAY_SOURCE_SERVER &&
      wanted->op != BELAY__LIMITER_RESET)
    tell_owed(wanted, &result);
  else if (answer->status != 0 && !never)
    result.verdict = BELAY_INDETERMINATE;
  else if (!never)
    result.retry_after_us = 0;
  if (result.verdict == BELAY_ALLOWED &&
      (result.source == BELAY_SOURCE_POLICY || wanted->op == BELAY__LIMITER_RESET)) {
    result.reset_after_us = 0;
    result.remaining = wanted->policy->most;
  }
  belay__near_tell(answer->context, wanted, answer->status, &result);
  if (wanted->op == BELAY__LIMITER_RESERVE)
    result.reservation = wanted->reservation;
  belay__policy_drop(answer->client->belay, wanted->policy);
  int status = result.verdict == BELAY_INDETERMINATE ? result.cause : 0;
  ((belay_limiter_cb)cb)(request, status, &result);
}

static const belay__request_ops_t once = {.read = belay__limiter_read, .tell = belay__limiter_tell};
static const belay__request_ops_t takes = {
    .read = belay__limiter_read, .tell = belay__limiter_tell, .left = belay__slice_left};
static const belay__request_ops_t again = {
    .read = belay__limiter_read, .tell = belay__limiter_tell, .idempotent = true};

/* ---- asking -------------------------------------------------------------------------------------------- */

int belay__limiter_begin(belay_limiter_t *limiter, belay_request_t *request,
                         const belay__request_ops_t *ops, belay__limiter_op_t op, int64_t cost,
                         belay_limiter_cb cb, belay__pending_t **out) {
  int error = belay__family_begin(&limiter->family, request, ops, (void (*)(void))cb, out);
  if (error != 0)
    return error;
  belay__wanted_t *wanted = belay__wanted_of(*out);
  wanted->policy = limiter->policy;
  wanted->policy->refs++;
  wanted->op = (uint8_t)op;
  wanted->source = BELAY_SOURCE_SERVER;
  wanted->cost = cost;
  return 0;
}

int belay__limiter_send(belay_limiter_t *limiter, belay__pending_t *pending,
                        const belay__question_t *question) {
  belay__wanted_t *wanted = belay__wanted_of(pending);
  belay__question_t asked = *question;
  char text[2 * sizeof wanted->id];
  if (belay__policy_is_log(limiter->policy) &&
      (asked.op == BELAY__LIMITER_TAKE || asked.op == BELAY__LIMITER_PENALTY)) {
    belay_t *belay = limiter->client->belay;
    int error = belay->host->random(belay, &wanted->id, sizeof wanted->id);
    if (error != 0)
      return error;
    (void)belay__policy_spell(text, &wanted->id, sizeof wanted->id);
    asked.more = text;
    asked.more_len = sizeof text;
  }
  belay__call_t *call = belay__limiter_call(limiter, &asked);
  wanted->hash = belay__limiter_hash(limiter, asked.key, asked.key_len);
  wanted->epoch = belay__denied_epoch(&limiter->denied, wanted->hash);
  int error = belay__request_send(pending, call);
  if (error == 0 && pending->calls_len > 0) /* else it was refused at once */
    limiter->stats.asked++;
  return error;
}

int belay__limiter_ask(belay_limiter_t *limiter, belay__pending_t *pending,
                       const belay__question_t *question) {
  int error = belay__limiter_send(limiter, pending, question);
  if (error != 0)
    belay__limiter_forget(pending);
  return error;
}

void belay__limiter_forget(belay__pending_t *pending) {
  belay__policy_drop(pending->client->belay, belay__wanted_of(pending)->policy);
  belay__request_forget(pending);
}

void belay__limiter_answer(belay__pending_t *pending, belay_source_t source, int64_t answer) {
  belay__wanted_t *wanted = belay__wanted_of(pending);
  wanted->source = (uint8_t)source;
  wanted->owed.answer = answer;
  belay__request_end(pending, 0);
}

int belay__limiter_range(belay_limiter_t *limiter, const char *what, int64_t value, int64_t min,
                         int64_t max) {
  if (value >= min && value <= max)
    return 0;
  belay__detail(limiter->client->belay, "%s: not %lld to %lld", what, (long long)min,
                (long long)max);
  return BELAY_EINVAL;
}

/* ---- the operations ------------------------------------------------------------------------------------ */

/* All but take, when their arguments were checked. */
static int operate(belay_limiter_t *limiter, belay_request_t *request,
                   const belay__question_t *question, belay_limiter_cb cb) {
  bool same = question->op == BELAY__LIMITER_PEEK || question->op == BELAY__LIMITER_RESET ||
              question->op == BELAY__LIMITER_BAN;
  belay__pending_t *pending;
  int error = belay__limiter_begin(limiter, request, same ? &again : &once, question->op,
                                   question->cost, cb, &pending);
  if (error != 0)
    return error;
  if (limiter->policy->limits_len > 0 || question->op == BELAY__LIMITER_RESET)
    return belay__limiter_ask(limiter, pending, question);
  belay__limiter_answer(pending, BELAY_SOURCE_POLICY, 0);
  return 0;
}

int belay_limiter_take(belay_limiter_t *limiter, belay_request_t *request, const char *key,
                       size_t key_len, int64_t cost, belay_limiter_cb cb) {
  key_len = belay__text_len(key, key_len);
  int error = belay__limiter_check_request(limiter, request, key, key_len, cb);
  if (error == 0)
    error = belay__limiter_range(limiter, "cost", cost, 0, INT64_MAX);
  if (error != 0)
    return error;
  if (cost == 0) {
    const belay__question_t question = {.op = BELAY__LIMITER_PEEK, .key = key, .key_len = key_len};
    return operate(limiter, request, &question, cb);
  }
  belay__pending_t *pending;
  error = belay__limiter_begin(limiter, request, &takes, BELAY__LIMITER_TAKE, cost, cb, &pending);
  if (error != 0)
    return error;
  error = belay__near_take(limiter, pending, key, key_len);
  if (error != 0)
    belay__limiter_forget(pending);
  return error;
}

int belay_limiter_peek(belay_limiter_t *limiter, belay_request_t *request, const char *key,
                       size_t key_len, belay_limiter_cb cb) {
  key_len = belay__text_len(key, key_len);
  return belay_limiter_take(limiter, request, key, key_len, 0, cb);
}

int belay_limiter_penalty(belay_limiter_t *limiter, belay_request_t *request, const char *key,
                          size_t key_len, int64_t cost, belay_limiter_cb cb) {
  key_len = belay__text_len(key, key_len);
  int error = belay__limiter_check_request(limiter, request, key, key_len, cb);
  if (error != 0)
    return error;
  const belay__policy_t *policy = limiter->policy;
  int64_t max = BELAY_LIMITER_UNITS_MAX;
  for (size_t i = 0; i < policy->limits_len; i++)
    if (BELAY_LIMITER_UNITS_MAX / policy->limits[i].p < max)
      max = BELAY_LIMITER_UNITS_MAX / policy->limits[i].p;
  if (belay__policy_is_log(policy))
    max = BELAY_LIMITER_LOG_MAX;
  error = belay__limiter_range(limiter, "cost", cost, 1, max);
  if (error != 0)
    return error;
  belay__question_t question = {
      .op = BELAY__LIMITER_PENALTY, .key = key, .key_len = key_len, .cost = cost};
  return operate(limiter, request, &question, cb);
}

int belay_limiter_refund(belay_limiter_t *limiter, belay_request_t *request, const char *key,
                         size_t key_len, belay_receipt_t *receipt, int64_t tokens,
                         belay_limiter_cb cb) {
  key_len = belay__text_len(key, key_len);
  int error = belay__limiter_check_request(limiter, request, key, key_len, cb);
  if (error == 0 && receipt == NULL) {
    belay__detail(limiter->client->belay, "receipt: NULL");
    error = BELAY_EINVAL;
  }
  if (error == 0 && receipt->belay_private[0] <= 0) {
    belay__detail(limiter->client->belay,
                  "receipt: void: of no take that the server allowed, or used");
    error = BELAY_EINVAL;
  }
  if (error == 0)
    error = belay__limiter_range(limiter, "tokens", tokens, 1, receipt->belay_private[0]);
  if (error != 0)
    return error;
  char more[BELAY__RECEIPT_MAX];
  belay__question_t question = {.op = BELAY__LIMITER_REFUND,
                                .key = key,
                                .key_len = key_len,
                                .cost = tokens,
                                .more = more,
                                .more_len =
                                    belay__policy_put_receipt(limiter->policy, receipt, more)};
  error = operate(limiter, request, &question, cb);
  if (error == 0)
    receipt->belay_private[0] = 0;
  return error;
}

int belay_limiter_reset(belay_limiter_t *limiter, belay_request_t *request, const char *key,
                        size_t key_len, belay_limiter_cb cb) {
  key_len = belay__text_len(key, key_len);
  int error = belay__limiter_check_request(limiter, request, key, key_len, cb);
  if (error != 0)
    return error;
  belay__question_t question = {.op = BELAY__LIMITER_RESET, .key = key, .key_len = key_len};
  return operate(limiter, request, &question, cb);
}

int belay_limiter_ban(belay_limiter_t *limiter, belay_request_t *request, const char *key,
                      size_t key_len, int64_t ban_us, belay_limiter_cb cb) {
  key_len = belay__text_len(key, key_len);
  int error = belay__limiter_check_request(limiter, request, key, key_len, cb);
  if (error == 0)
    error = belay__limiter_range(limiter, "ban_us", ban_us, 0, BAN_MAX_US);
  if (error == 0 && ban_us > 0 && limiter->policy->limits_len == 0) {
    belay__detail(limiter->client->belay,
                  "limits: they are infinite, and nobody would ask for a ban");
    error = BELAY_EINVAL;
  }
  if (error != 0)
    return error;
  char more[8];
  (void)belay__policy_put(more, ban_us);
  belay__question_t question = {.op = BELAY__LIMITER_BAN,
                                .key = key,
                                .key_len = key_len,
                                .more = more,
                                .more_len = sizeof more};
  return operate(limiter, request, &question, cb);
}
