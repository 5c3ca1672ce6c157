/* A token lease: tokens of one key that were fetched ahead.
 *
 *            a take, and there is room
 *   (none) ----------------------------> FETCHING <-----------------------------+
 *     ^                                   |  ^  |                               |
 *     |     granted, and all waiting      |  |  | a waiting take                | less than a
 *     |     takes are answered;           |  +--+ needs more: fetch again       | quarter is left;
 *     |     denied; lost                  v                                     | a take needs more
 *     +---------------------------------- READY --------------------------------+
 *       idle for half of lease_ms: the remaining tokens are given back
 *
 * FETCHING: a call is in flight. Takes that need more than the remaining tokens wait for the call,
 * in order. Its reply decides about all of them: a take is served, or denied as the server would
 * deny it. If the reply does not decide about a take, the lease fetches again. If the reply is
 * lost, all waiting takes end with the error of the call.
 *
 * The tokens of one reply are a grant. A grant becomes void lease_ms after the time just before its
 * call was sent. Older grants are used first. The tokens of all grants and of the call in flight
 * are at most options.lease_tokens. Tokens are removed from their grant before they are given
 * back. */
#include "limit/token_lease.h"

#include <assert.h>

#include "limit/denial_cache.h"
#include "limit/fallback.h"
#include "limit/refund.h"
#include "limit/request.h"

#define GRANTS 3 /* at most two are kept; the last place is for a grant that arrives */
#define REST_MAX_US INT64_C(3600000000)

typedef struct grant {
  int64_t tokens;
  uint64_t use_by;
  belay_receipt_t receipt;
} grant_t;

struct belay__token_lease {
  belay__keyed_t keyed; /* first */
  belay__list_t node;
  belay_limiter_t *limiter;
  belay__timer_t timer;   /* Earliest end of a grant, or the end of the idle time; always set */
  grant_t grants[GRANTS]; /* Grants, the oldest first */
  uint64_t used;          /* Time of the last served take, or of the creation, in nanoseconds */
  uint64_t rest_until;    /* Time before which nothing is fetched ahead, in nanoseconds */
  belay__list_t waiting;
  size_t waiting_len; /* Number of waiting takes; above 0 only in FETCHING */

  belay__call_t *call; /* Call in flight in FETCHING; NULL in READY */
  /* Valid in FETCHING: */
  int64_t asked, fewest, id;
  uint32_t epoch;
  bool stale; /* true if a reset or ban came after the call: its tokens are given back */
};

/* ---- the tokens ---- */

belay__token_lease_t *belay__token_lease_find(const belay_limiter_t *limiter, uint64_t hash,
                                              belay_bytes_t key) {
  const belay__table_t *table = &limiter->leases.table;
  return table->count == 0 ? NULL : belay__keyed_find(table, hash, key.data, key.len);
}

static int64_t left(const belay__token_lease_t *lease, uint64_t now) {
  int64_t tokens = 0;
  for (size_t i = 0; i < GRANTS; i++)
    if (now < lease->grants[i].use_by)
      tokens += lease->grants[i].tokens;
  return tokens;
}

static bool take(belay__token_lease_t *lease, int64_t cost, uint64_t now) {
  if (left(lease, now) < cost)
    return false;
  for (grant_t *grant = lease->grants; cost > 0; grant++) {
    if (now >= grant->use_by)
      continue;
    int64_t tokens = grant->tokens < cost ? grant->tokens : cost;
    grant->tokens -= tokens;
    cost -= tokens;
  }
  lease->used = now;
  return true;
}

bool belay__token_lease_serve(belay__token_lease_t *lease, int64_t cost, uint64_t now) {
  return lease->waiting_len == 0 && take(lease, cost, now);
}

int64_t belay__token_lease_need(const belay__token_lease_t *lease, int64_t cost, uint64_t now) {
  return lease->waiting_len > 0 ? 0 : cost - left(lease, now);
}

static uint64_t idle_ns(const belay__token_lease_t *lease) {
  return lease->limiter->options.lease_ms * BELAY__MS / 2;
}

static belay_bytes_t key_of(const belay__token_lease_t *lease) {
  return belay_bytes(lease->keyed.key, lease->keyed.key_len);
}

/* ---- giving back ---- */

static void give_back(belay__token_lease_t *lease, grant_t *grant) {
  int64_t tokens = grant->tokens;
  grant->tokens = 0;
  if (tokens == 0)
    return;
  lease->rest_until = 0;
  belay__refund_grant(lease->limiter, key_of(lease), &grant->receipt, tokens);
}

static void give_all_back(belay__token_lease_t *lease) {
  for (size_t i = 0; i < GRANTS; i++)
    give_back(lease, &lease->grants[i]);
}

/* Move the grants with tokens to the front. If the last place is used too, give back the oldest
 * grant. */
static void tidy(belay__token_lease_t *lease) {
  size_t n = 0;
  for (size_t i = 0; i < GRANTS; i++)
    if (lease->grants[i].tokens > 0) {
      grant_t grant = lease->grants[i];
      lease->grants[i].tokens = 0;
      lease->grants[n++] = grant;
    }
  if (n < GRANTS)
    return;
  give_back(lease, &lease->grants[0]);
  tidy(lease);
}

/* Set the timer to the next end of a grant or of the idle time. Takes only postpone these ends, so
 * a take does not set the timer. */
static void arm(belay__token_lease_t *lease, uint64_t now) {
  uint64_t when = lease->used + idle_ns(lease);
  if (when <= now)
    when = now + idle_ns(lease);
  for (size_t i = 0; i < GRANTS; i++)
    if (lease->grants[i].tokens > 0 && lease->grants[i].use_by < when)
      when = lease->grants[i].use_by;
  belay__timer_set(belay__limiter_belay(lease->limiter), BELAY__RANK_OTHER, &lease->timer, when);
}

static void drop(belay__token_lease_t *lease) {
  belay_limiter_t *limiter = lease->limiter;
  belay_t *belay = belay__limiter_belay(limiter);
  assert(lease->call == NULL && lease->waiting_len == 0);
  belay__timer_stop(belay, BELAY__RANK_OTHER, &lease->timer);
  belay__list_remove(&lease->node);
  belay__table_remove(&limiter->leases.table, &lease->keyed.entry);
  belay__keyed_free(belay, &lease->keyed);
}

static void on_timer(belay__timer_t *timer) {
  belay__token_lease_t *lease = BELAY__CONTAINER(timer, belay__token_lease_t, timer);
  uint64_t now = belay__now(belay__limiter_belay(lease->limiter));
  bool idle = now >= lease->used + idle_ns(lease);
  for (size_t i = 0; i < GRANTS; i++)
    if (idle || now >= lease->grants[i].use_by)
      give_back(lease, &lease->grants[i]);
  if (idle && lease->call == NULL)
    drop(lease);
  else
    arm(lease, now);
}

/* Create a lease without tokens. Returns NULL if max_leases is reached or memory is out. */
static belay__token_lease_t *add(belay_limiter_t *limiter, uint64_t hash, belay_bytes_t key) {
  belay_t *belay = belay__limiter_belay(limiter);
  if (limiter->leases.table.count >= limiter->options.max_leases)
    return NULL;
  belay__token_lease_t *lease =
      belay__keyed_new(belay, &limiter->leases.table, hash, sizeof *lease, key.data, key.len);
  if (lease == NULL)
    return NULL;
  lease->limiter = limiter;
  lease->timer.fire = on_timer;
  lease->used = belay__now(belay);
  belay__list_init(&lease->waiting);
  belay__list_push(&limiter->leases.all, &lease->node);
  arm(lease, lease->used);
  return lease;
}

/* ---- fetching ---- */

static void on_fetched(belay__call_t *call, const belay__result_t *result);

/* Ask for as many tokens as the lease has room for, at most the smallest limit. The server denies
 * the fetch if the limits admit fewer than `fewest` tokens. Returns false if the call could not be
 * sent. */
static bool fetch(belay__token_lease_t *lease, int64_t fewest, int64_t timeout_ms, uint64_t now) {
  belay_limiter_t *limiter = lease->limiter;
  belay_t *belay = belay__limiter_belay(limiter);
  const belay__policy_t *policy = limiter->policy;
  int64_t asked = limiter->options.lease_tokens - left(lease, now), id;
  belay__limit_command_t command = {.verb = BELAY__LIMITER_LEASE, .key = key_of(lease)};
  command.cost = asked = asked < policy->most ? asked : policy->most;
  belay__limit_command_number(&command, fewest);
  if (belay__limit_command_id(limiter, &command, &id) != 0)
    return false;
  belay__call_t *call = belay__limit_command_call(limiter, &command);
  if (call == NULL)
    return false;
  call->deadline = belay__after_ms(belay, timeout_ms);
  call->fail_fast = belay__fallback_is_on(limiter);
  lease->asked = asked;
  lease->fewest = fewest;
  lease->id = id;
  lease->epoch = belay__denied_epoch(limiter, lease->keyed.entry.hash);
  lease->stale = false;
  if (belay__call_start(&lease->call, call, on_fetched, lease) != 0)
    return false;
  limiter->stats.asked++;
  return true;
}

void belay__token_lease_refill(belay__token_lease_t *lease, uint64_t now) {
  const belay_limiter_t *limiter = lease->limiter;
  if (lease->call != NULL || now < lease->rest_until ||
      left(lease, now) >=
          limiter->options.lease_tokens / 4 + (limiter->options.lease_tokens % 4 != 0))
    return;
  if (!fetch(lease, 1, limiter->handle.client->timeout_ms, now))
    lease->rest_until = now + idle_ns(lease);
}

/* ---- waiting takes ---- */

static belay__operation_t *first_of(const belay__token_lease_t *lease) {
  return BELAY__CONTAINER(lease->waiting.next, belay__operation_t, queued);
}

static void leave(belay__token_lease_t *lease, belay__operation_t *operation) {
  belay__timer_stop(belay__limiter_belay(lease->limiter), BELAY__RANK_OTHER, &operation->timer);
  belay__list_remove(&operation->queued);
  belay__limit_op_of(operation)->lease = NULL;
  lease->waiting_len--;
}

void belay__token_lease_left(belay__operation_t *operation, bool sent) {
  (void)sent;
  belay__token_lease_t *lease = belay__limit_op_of(operation)->lease;
  if (lease != NULL)
    leave(lease, operation);
}

/* End a waiting take that has timed out. The result is unknown: the server may have granted tokens
 * for the take. */
static void on_deadline(belay__timer_t *timer) {
  belay__operation_t *operation = BELAY__CONTAINER(timer, belay__operation_t, timer);
  leave(belay__limit_op_of(operation)->lease, operation);
  belay__request_end(operation, BELAY_EUNKNOWN);
}

static int64_t timeout_of(const belay__operation_t *operation) {
  int64_t own = belay__request_timeout_ms(operation->client,
                                          belay__request_of((belay__operation_t *)operation));
  return own > operation->client->timeout_ms ? own : operation->client->timeout_ms;
}

bool belay__token_lease_park(belay_limiter_t *limiter, belay__operation_t *operation,
                             belay_bytes_t key) {
  belay__limit_op_t *op = belay__limit_op_of(operation);
  belay_t *belay = belay__limiter_belay(limiter);
  uint64_t now = belay__now(belay);
  belay__token_lease_t *lease = belay__token_lease_find(limiter, op->hash, key);
  if (lease == NULL)
    lease = add(limiter, op->hash, key);
  if (lease == NULL || lease->waiting_len >= limiter->options.max_waiting)
    return false;
  if (lease->call == NULL) {
    int64_t need = op->cost - left(lease, now);
    if (!fetch(lease, need > 0 ? need : 1, timeout_of(operation), now))
      return false;
  }
  op->lease = lease;
  belay__list_push(&lease->waiting, &operation->queued);
  lease->waiting_len++;
  if (operation->deadline == 0)
    operation->deadline = belay__after_ms(
        belay, belay__request_timeout_ms(operation->client, belay__request_of(operation)));
  operation->timer.fire = on_deadline;
  belay__timer_set(belay, BELAY__RANK_OTHER, &operation->timer, operation->deadline);
  return true;
}

/* ---- replies ---- */

/* true if the reply shows that `need` more tokens are not available. The reply of a log shows this
 * only for lease->fewest. */
static bool denies(const belay__token_lease_t *lease, const belay__limit_reply_t *numbers,
                   int64_t need) {
  if (belay__policy_is_log(lease->limiter->policy))
    return numbers->answer < 0 && need == lease->fewest;
  belay_limiter_result_t result = {0};
  belay__policy_judge(lease->limiter->policy, numbers, need, &result);
  return (numbers->answer < 0 && need >= lease->fewest) || result.retry_after_us > 0;
}

/* Send a waiting take as a separate take, with the remaining time of its request. */
static void send_take(belay__token_lease_t *lease, belay__operation_t *operation) {
  leave(lease, operation);
  const belay__limit_command_t command = {.verb = BELAY__LIMITER_TAKE,
                                          .key = key_of(lease),
                                          .cost = belay__limit_op_of(operation)->cost};
  int error = belay__limiter_send(lease->limiter, operation, &command);
  if (error != 0)
    belay__request_end(operation, error);
}

/* Answer the waiting takes in order, until one has to wait for another fetch. */
static void answer_all(belay__token_lease_t *lease, const belay__limit_reply_t *numbers,
                       uint64_t now) {
  while (lease->waiting_len > 0) {
    belay__operation_t *operation = first_of(lease);
    belay__limit_op_t *op = belay__limit_op_of(operation);
    int64_t need = op->cost - left(lease, now);
    if (take(lease, op->cost, now)) {
      leave(lease, operation);
      lease->limiter->stats.from_leases++;
      belay__limiter_answer(operation, BELAY_SOURCE_LEASE);
    } else if (numbers != NULL && denies(lease, numbers, need)) {
      leave(lease, operation);
      op->numbers = *numbers;
      op->numbers.answer = -1;
      belay__limiter_answer(operation, BELAY_SOURCE_SERVER);
    } else if (fetch(lease, need, timeout_of(operation), now)) {
      return;
    } else {
      send_take(lease, operation);
    }
  }
}

static void on_lost(belay__token_lease_t *lease, int status, uint64_t now) {
  lease->rest_until = now + idle_ns(lease);
  while (lease->waiting_len > 0) {
    belay__operation_t *operation = first_of(lease);
    leave(lease, operation);
    belay__request_end(operation, status);
  }
}

/* Learn from a grant of fewer than `asked` tokens that the limits admit no more. Then cache the
 * denial, and fetch nothing ahead until the server would admit more, at most for REST_MAX_US. */
static void learn(belay__token_lease_t *lease, const belay__call_t *call,
                  const belay__limit_reply_t *numbers) {
  belay_limiter_t *limiter = lease->limiter;
  int64_t cost = numbers->answer < 0 ? lease->fewest : 1;
  if (numbers->answer >= lease->asked || limiter->handle.closing)
    return;
  int64_t retry_us = belay__denied_learn(limiter, call, limiter->policy, numbers, cost,
                                         lease->keyed.entry.hash, lease->epoch);
  if (retry_us > 0)
    lease->rest_until = belay__now(belay__limiter_belay(limiter)) +
                        (uint64_t)(retry_us < REST_MAX_US ? retry_us : REST_MAX_US) * 1000;
}

/* Store the grant. If the grant is void on arrival or the fetch is stale, give back the tokens and
 * return false. */
static bool keep(belay__token_lease_t *lease, const belay__call_t *call,
                 const belay__limit_reply_t *numbers, uint64_t now) {
  grant_t *grant = &lease->grants[GRANTS - 1];
  assert(grant->tokens == 0);
  grant->tokens = numbers->answer;
  grant->use_by = call->started + lease->limiter->options.lease_ms * BELAY__MS;
  belay__policy_receipt(lease->limiter->policy, numbers, numbers->answer, lease->id,
                        &grant->receipt);
  if (now < grant->use_by && !lease->stale)
    return true;
  give_back(lease, grant);
  return false;
}

static void on_granted(belay__token_lease_t *lease, const belay__call_t *call,
                       const belay__limit_reply_t *numbers, uint64_t now) {
  bool stale = lease->stale, useful = numbers->answer < 0 || keep(lease, call, numbers, now);
  learn(lease, call, numbers);
  if (useful || stale)
    answer_all(lease, stale ? NULL : numbers, now);
  while (!useful && !stale && lease->waiting_len > 0) /* the next grant would be void too */
    send_take(lease, first_of(lease));
  tidy(lease);
  arm(lease, now);
}

static void on_fetched(belay__call_t *call, const belay__result_t *result) {
  belay__token_lease_t *lease = call->owner;
  belay_limiter_t *limiter = lease->limiter;
  uint64_t now = belay__now(belay__limiter_belay(limiter));
  belay__limit_reply_t numbers;
  if (call->state == BELAY__CALL_LATE)
    belay__refund_fetch(limiter, key_of(lease), call, lease->asked, lease->id);
  if (result->outcome != BELAY_OUTCOME_REPLY)
    on_lost(lease, result->error, now);
  else if (belay__limit_command_read_grant(limiter->policy, call, result->reply, lease->asked,
                                           &numbers))
    on_granted(lease, call, &numbers, now);
  else
    on_lost(lease, BELAY_EPROTO, now);
}

/* ---- changes and close ---- */

void belay__token_lease_before(belay_limiter_t *limiter, const belay__limit_command_t *command) {
  if (!belay__limit_command_frees(command->verb))
    return;
  uint64_t hash = belay__limiter_hash(limiter, command->key);
  belay__denied_forget(limiter, hash);
  belay__token_lease_t *lease = belay__token_lease_find(limiter, hash, command->key);
  if (lease == NULL)
    return;
  lease->rest_until = 0;
  if (command->verb != BELAY__LIMITER_RESET && command->verb != BELAY__LIMITER_BAN)
    return;
  lease->stale = lease->call != NULL;
  give_all_back(lease);
}

static belay__token_lease_t *next_of(const belay_limiter_t *limiter, const belay__list_t *node) {
  return node->next == &limiter->leases.all
             ? NULL
             : BELAY__CONTAINER(node->next, belay__token_lease_t, node);
}

void belay__token_leases_suspend(belay_limiter_t *limiter) {
  for (belay__token_lease_t *lease = next_of(limiter, &limiter->leases.all); lease != NULL;
       lease = next_of(limiter, &lease->node)) {
    give_all_back(lease);
    lease->rest_until = 0;
    /* tokens that the reply grants could not be given back under another policy */
    (void)belay__call_cancel(&lease->call);
  }
}

void belay__token_leases_resume(belay_limiter_t *limiter) {
  for (belay__token_lease_t *lease = next_of(limiter, &limiter->leases.all); lease != NULL;
       lease = next_of(limiter, &lease->node))
    while (lease->waiting_len > 0) {
      belay__operation_t *operation = first_of(lease);
      belay__limit_op_t *op = belay__limit_op_of(operation);
      belay__policy_release(belay__limiter_belay(limiter), op->policy);
      op->policy = belay__policy_retain(limiter->policy);
      if (limiter->policy->limits_len > 0) {
        send_take(lease, operation);
      } else {
        leave(lease, operation);
        belay__limiter_answer(operation, BELAY_SOURCE_POLICY);
      }
    }
}

void belay__token_leases_close(belay_limiter_t *limiter) {
  for (belay__token_lease_t *lease; (lease = next_of(limiter, &limiter->leases.all)) != NULL;) {
    give_all_back(lease);
    if (lease->call != NULL && lease->call->state == BELAY__CALL_SENT)
      belay__refund_fetch(limiter, key_of(lease), lease->call, lease->asked, lease->id);
    (void)belay__call_cancel(&lease->call);
    drop(lease);
  }
  belay__table_free(belay__limiter_belay(limiter), &limiter->leases.table);
}
