/* A slice: tokens that were taken ahead, of one key.
 *
 *            a take, and there is room
 *   (none) ----------------------------> FETCHING <---------------------------------+
 *     ^                                   |  ^  |                                   |
 *     |       granted, and who waits has  |  |  | who waits needs more:             | less than a quarter is left;
 *     |       all that there is for it;   |  +--+ fetched again                     | a take needs more
 *     |       denied; lost                v                                         |
 *     +---------------------------------- READY ------------------------------------+
 *       idle for half of slice_ms: what is left is given back
 *
 * FETCHING: a call is in flight, and takes that need more than what is left wait for it, in order. Its answer judges all
 * of them: they are served, or denied as the server would; or it says nothing of them, and it is asked again.
 *
 * What came with one answer is a part, which is void slice_ms after just before it was asked for. Older parts are used
 * first. Together with what is asked for they are never more than a slice. What is given back is taken out before. */
#include "limit/token_lease.h"

#include <assert.h>
#include <string.h>

#include "limit/refund.h"
#include "limit/limiter.h"
#include "limit/denial_cache.h"

#define PARTS 3 /* two; and what has just come */

typedef struct part {
  int64_t tokens;
  uint64_t use_by;
  belay_receipt_t receipt;
} part_t;

struct belay__slice {
  belay__entry_t entry;
  belay__list_t node;
  belay_limiter_t *limiter;
  belay__timer_t timer; /* something is void, or it is idle; always set */
  part_t parts[PARTS];  /* the oldest first */
  uint64_t used;        /* when it was last taken from */
  uint64_t rest_until;  /* nothing is fetched ahead before */
  belay__list_t waiting;
  size_t waiting_len; /* not 0: FETCHING */

  /* FETCHING: */
  belay__call_t *call; /* NULL: READY */
  int64_t asked, fewest, id;
  uint32_t epoch;
  bool stale; /* what comes is given back */

  size_t key_len;
  char key[];
};

void belay__slices_init(belay__slices_t *slices) {
  belay__list_init(&slices->all);
}

/* ---- what is there ------------------------------------------------------------------------------------- */

static bool is_key(const belay__entry_t *entry, const void *key, size_t len) {
  const belay__slice_t *slice = (const belay__slice_t *)(const void *)entry;
  return slice->key_len == len && memcmp(slice->key, key, len) == 0;
}

belay__slice_t *belay__slice_find(const belay_limiter_t *limiter, uint64_t hash, const char *key,
                                  size_t len) {
  const belay__table_t *table = &limiter->slices.table;
  if (table->count == 0)
    return NULL;
  return (belay__slice_t *)(void *)belay__table_find(table, hash, is_key, key, len);
}

static int64_t left(const belay__slice_t *slice, uint64_t now) {
  int64_t tokens = 0;
  for (size_t i = 0; i < PARTS; i++)
    if (now < slice->parts[i].use_by)
      tokens += slice->parts[i].tokens;
  return tokens;
}

static bool take(belay__slice_t *slice, int64_t cost, uint64_t now) {
  if (left(slice, now) < cost)
    return false;
  for (part_t *part = slice->parts; cost > 0; part++) {
    if (now >= part->use_by)
      continue;
    int64_t tokens = part->tokens < cost ? part->tokens : cost;
    part->tokens -= tokens;
    cost -= tokens;
  }
  slice->used = now;
  return true;
}

bool belay__slice_serve(belay__slice_t *slice, int64_t cost, uint64_t now) {
  return slice->waiting_len == 0 && take(slice, cost, now);
}

int64_t belay__slice_need(const belay__slice_t *slice, int64_t cost, uint64_t now) {
  return slice->waiting_len > 0 ? 0 : cost - left(slice, now);
}

static uint64_t idle_ns(const belay__slice_t *slice) {
  return slice->limiter->options.slice_ms * BELAY__MS / 2;
}

/* ---- giving back --------------------------------------------------------------------------------------- */

static void give_back(belay__slice_t *slice, part_t *part) {
  belay_limiter_t *limiter = slice->limiter;
  int64_t tokens = part->tokens;
  part->tokens = 0;
  if (tokens > 0)
    belay__errand_send(
        limiter,
        belay__limiter_refund_call(limiter, slice->key, slice->key_len, &part->receipt, tokens),
        tokens);
}

static void give_all_back(belay__slice_t *slice) {
  for (size_t i = 0; i < PARTS; i++)
    give_back(slice, &slice->parts[i]);
}

/* Parts that have something, from the first on; what is one too many goes back. */
static void tidy(belay__slice_t *slice) {
  size_t n = 0;
  for (size_t i = 0; i < PARTS; i++)
    if (slice->parts[i].tokens > 0) {
      part_t part = slice->parts[i];
      slice->parts[i].tokens = 0;
      slice->parts[n++] = part;
    }
  if (n < PARTS)
    return;
  give_back(slice, &slice->parts[0]);
  tidy(slice);
}

/* The timer is set to when something will be to be done; takes only put that off. */
static void arm(belay__slice_t *slice, uint64_t now) {
  uint64_t when = slice->used + idle_ns(slice);
  if (when <= now)
    when = now + idle_ns(slice);
  for (size_t i = 0; i < PARTS; i++)
    if (slice->parts[i].tokens > 0 && slice->parts[i].use_by < when)
      when = slice->parts[i].use_by;
  belay__timer_set(slice->limiter->client->belay, BELAY__RANK_OTHER, &slice->timer, when);
}

static void drop(belay__slice_t *slice) {
  belay_limiter_t *limiter = slice->limiter;
  belay_t *belay = limiter->client->belay;
  assert(slice->call == NULL && slice->waiting_len == 0);
  belay__timer_stop(belay, BELAY__RANK_OTHER, &slice->timer);
  belay__list_remove(&slice->node);
  belay__table_remove(&limiter->slices.table, &slice->entry);
  belay__free(belay, slice, sizeof *slice + slice->key_len);
}

static void on_timer(belay__timer_t *timer) {
  belay__slice_t *slice = BELAY__CONTAINER(timer, belay__slice_t, timer);
  uint64_t now = belay__now(slice->limiter->client->belay);
  bool idle = now >= slice->used + idle_ns(slice);
  for (size_t i = 0; i < PARTS; i++)
    if (idle || now >= slice->parts[i].use_by)
      give_back(slice, &slice->parts[i]);
  if (idle && slice->call == NULL)
    drop(slice);
  else
    arm(slice, now);
}

static belay__slice_t *make(belay_limiter_t *limiter, uint64_t hash, const char *key, size_t len) {
  belay_t *belay = limiter->client->belay;
  belay__slices_t *slices = &limiter->slices;
  if (slices->table.count >= limiter->options.max_slices)
    return NULL;
  belay__slice_t *slice = belay__alloc(belay, sizeof *slice + len);
  if (slice == NULL)
    return NULL;
  *slice = (belay__slice_t){
      .limiter = limiter, .timer = {.fire = on_timer}, .used = belay__now(belay), .key_len = len};
  memcpy(slice->key, key, len);
  belay__list_init(&slice->waiting);
  if (belay__table_add(belay, &slices->table, &slice->entry, hash) != 0) {
    belay__free(belay, slice, sizeof *slice + len);
    return NULL;
  }
  belay__list_push(&slices->all, &slice->node);
  arm(slice, slice->used);
  return slice;
}

/* ---- fetching ------------------------------------------------------------------------------------------ */

static void on_fetched(belay__call_t *call, const belay__result_t *result);

/* Asks for as much as there is room for. False: it could not be sent. */
static bool fetch(belay__slice_t *slice, int64_t fewest, int64_t timeout_ms, uint64_t now) {
  belay_limiter_t *limiter = slice->limiter;
  belay_t *belay = limiter->client->belay;
  const belay__policy_t *policy = limiter->policy;
  int64_t asked = limiter->options.slice - left(slice, now), id = 0;
  if (asked > policy->most)
    asked = policy->most;
  char more[8 + 2 * sizeof id], *end = belay__policy_put(more, fewest);
  if (belay__policy_is_log(policy)) {
    if (belay->host->random(belay, &id, sizeof id) != 0)
      return false;
    end = belay__policy_spell(end, &id, sizeof id);
  }
  const belay__question_t question = {.op = BELAY__LIMITER_SLICE,
                                      .key = slice->key,
                                      .key_len = slice->key_len,
                                      .cost = asked,
                                      .more = more,
                                      .more_len = (size_t)(end - more)};
  belay__call_t *call = belay__limiter_call(limiter, &question);
  if (call == NULL)
    return false;
  call->deadline = belay__after_ms(belay, timeout_ms);
  call->fail_fast = belay__away_has_policy(limiter);
  slice->asked = asked;
  slice->fewest = fewest;
  slice->id = id;
  slice->epoch = belay__denied_epoch(&limiter->denied, slice->entry.hash);
  slice->stale = false;
  if (belay__call_start(&slice->call, call, on_fetched, slice) != 0)
    return false;
  limiter->stats.asked++;
  return true;
}

void belay__slice_refill(belay__slice_t *slice, uint64_t now) {
  const belay_limiter_t *limiter = slice->limiter;
  if (slice->call != NULL || now < slice->rest_until ||
      left(slice, now) >= limiter->options.slice / 4 + (limiter->options.slice % 4 != 0))
    return;
  if (!fetch(slice, 1, limiter->client->timeout_ms, now))
    slice->rest_until = now + idle_ns(slice);
}

/* ---- who waits ----------------------------------------------------------------------------------------- */

static belay__pending_t *first_of(const belay__slice_t *slice) {
  return BELAY__CONTAINER(slice->waiting.next, belay__pending_t, queued);
}

static void leave(belay__slice_t *slice, belay__pending_t *pending) {
  belay__timer_stop(slice->limiter->client->belay, BELAY__RANK_OTHER, &pending->timer);
  belay__list_remove(&pending->queued);
  belay__wanted_of(pending)->slice = NULL;
  slice->waiting_len--;
}

void belay__slice_left(belay__pending_t *pending, bool sent) {
  (void)sent;
  belay__slice_t *slice = belay__wanted_of(pending)->slice;
  if (slice != NULL)
    leave(slice, pending);
}

/* What it waited for may have been taken. */
static void on_deadline(belay__timer_t *timer) {
  belay__pending_t *pending = BELAY__CONTAINER(timer, belay__pending_t, timer);
  leave(belay__wanted_of(pending)->slice, pending);
  belay__request_end(pending, BELAY_EUNKNOWN);
}

static int64_t timeout_of(const belay__pending_t *pending) {
  int64_t own =
      belay__request_timeout_ms(pending->client, belay__request_of((belay__pending_t *)pending));
  return own > pending->client->timeout_ms ? own : pending->client->timeout_ms;
}

bool belay__slice_park(belay_limiter_t *limiter, belay__pending_t *pending, const char *key,
                       size_t len) {
  belay__wanted_t *wanted = belay__wanted_of(pending);
  belay_t *belay = limiter->client->belay;
  uint64_t now = belay__now(belay);
  belay__slice_t *slice = belay__slice_find(limiter, wanted->hash, key, len);
  if (slice == NULL)
    slice = make(limiter, wanted->hash, key, len);
  if (slice == NULL || slice->waiting_len >= limiter->options.max_waiting)
    return false;
  if (slice->call == NULL) {
    int64_t need = wanted->cost - left(slice, now);
    if (!fetch(slice, need > 0 ? need : 1, timeout_of(pending), now))
      return false;
  }
  wanted->slice = slice;
  belay__list_push(&slice->waiting, &pending->queued);
  slice->waiting_len++;
  if (pending->deadline == 0)
    pending->deadline = belay__after_ms(
        belay, belay__request_timeout_ms(pending->client, belay__request_of(pending)));
  pending->timer.fire = on_deadline;
  belay__timer_set(belay, BELAY__RANK_OTHER, &pending->timer, pending->deadline);
  return true;
}

/* ---- the answer ---------------------------------------------------------------------------------------- */

/* Whether the answer says that so many more are not to be had. Of a log it says so only of what was asked. */
static bool denies(const belay__slice_t *slice, const belay__owed_t *owed, int64_t need) {
  if (belay__policy_is_log(slice->limiter->policy))
    return owed->answer < 0 && need == slice->fewest;
  belay_limiter_result_t result = {0};
  belay__policy_judge(slice->limiter->policy, owed, need, &result);
  return (owed->answer < 0 && need >= slice->fewest) || result.retry_after_us > 0;
}

/* It asks for itself, in the time that it still has. */
static void ask_alone(belay__slice_t *slice, belay__pending_t *pending) {
  leave(slice, pending);
  const belay__question_t question = {.op = BELAY__LIMITER_TAKE,
                                      .key = slice->key,
                                      .key_len = slice->key_len,
                                      .cost = belay__wanted_of(pending)->cost};
  int error = belay__limiter_send(slice->limiter, pending, &question);
  if (error != 0)
    belay__request_end(pending, error);
}

/* Answers those who wait, in order, until one has to wait for another fetch. */
static void answer_all(belay__slice_t *slice, const belay__owed_t *owed, uint64_t now) {
  while (slice->waiting_len > 0) {
    belay__pending_t *pending = first_of(slice);
    belay__wanted_t *wanted = belay__wanted_of(pending);
    int64_t need = wanted->cost - left(slice, now);
    if (take(slice, wanted->cost, now)) {
      leave(slice, pending);
      slice->limiter->stats.from_slices++;
      belay__limiter_answer(pending, BELAY_SOURCE_SLICE, 0);
    } else if (owed != NULL && denies(slice, owed, need)) {
      leave(slice, pending);
      wanted->owed = *owed;
      belay__limiter_answer(pending, BELAY_SOURCE_SERVER, -1);
    } else if (fetch(slice, need, timeout_of(pending), now)) {
      return;
    } else {
      ask_alone(slice, pending);
    }
  }
}

static void on_lost(belay__slice_t *slice, int status, uint64_t now) {
  slice->rest_until = now + idle_ns(slice);
  while (slice->waiting_len > 0) {
    belay__pending_t *pending = first_of(slice);
    leave(slice, pending);
    belay__request_end(pending, status);
  }
}

/* The server has no more: nothing is fetched ahead for a while, and it is remembered. */
static void learn(belay__slice_t *slice, const belay__call_t *call, const belay__owed_t *owed) {
  belay_limiter_t *limiter = slice->limiter;
  int64_t cost = owed->answer < 0 ? slice->fewest : 1;
  if (owed->answer >= slice->asked || limiter->family.closing ||
      slice->epoch != belay__denied_epoch(&limiter->denied, slice->entry.hash))
    return;
  belay_limiter_result_t result = {0};
  belay__policy_judge(limiter->policy, owed, cost, &result);
  if (result.retry_after_us <= 0)
    return;
  slice->rest_until =
      belay__now(limiter->client->belay) +
      (uint64_t)(result.retry_after_us < 3600000000 ? result.retry_after_us : 3600000000) * 1000;
  const belay__denial_t denial = {.cost = cost,
                                  .retry_us = result.retry_after_us,
                                  .window = result.window,
                                  .banned = result.banned};
  belay__denied_learn(limiter->client->belay, &limiter->denied, limiter->options.max_denied,
                      slice->entry.hash, slice->key, slice->key_len, &denial, call->started);
}

/* True: it has the tokens; false: they came too late to be of use, or nobody wants them any more. */
static bool add(belay__slice_t *slice, const belay__call_t *call, const belay__owed_t *owed,
                uint64_t now) {
  part_t *part = &slice->parts[PARTS - 1];
  assert(part->tokens == 0);
  part->tokens = owed->answer;
  part->use_by = call->started + slice->limiter->options.slice_ms * BELAY__MS;
  belay__policy_receipt(slice->limiter->policy, owed, owed->answer, slice->id, &part->receipt);
  if (now < part->use_by && !slice->stale)
    return true;
  give_back(slice, part);
  return false;
}

static void on_granted(belay__slice_t *slice, const belay__call_t *call, const belay__owed_t *owed,
                       uint64_t now) {
  bool stale = slice->stale, useful = owed->answer < 0 || add(slice, call, owed, now);
  learn(slice, call, owed);
  if (useful || stale)
    answer_all(slice, stale ? NULL : owed, now);
  while (!useful && !stale && slice->waiting_len > 0) /* a slice is void before it is here */
    ask_alone(slice, first_of(slice));
  tidy(slice);
  arm(slice, now);
}

static void on_fetched(belay__call_t *call, const belay__result_t *result) {
  belay__slice_t *slice = call->owner;
  belay_limiter_t *limiter = slice->limiter;
  uint64_t now = belay__now(limiter->client->belay);
  belay__owed_t owed;
  if (result->outcome != BELAY_OUTCOME_REPLY) {
    if (call->state == BELAY__CALL_LATE)
      belay__errand_adopt(limiter, call, slice->asked, slice->id);
    on_lost(slice, result->error, now);
  } else if (belay__limiter_read_grant(limiter->policy, call, result->reply, slice->asked, &owed)) {
    on_granted(slice, call, &owed, now);
  } else {
    on_lost(slice, BELAY_EPROTO, now);
  }
}

/* ---- the ends ------------------------------------------------------------------------------------------ */

void belay__slice_forget(belay_limiter_t *limiter, uint64_t hash, const char *key, size_t len,
                         bool give) {
  belay__slice_t *slice = belay__slice_find(limiter, hash, key, len);
  if (slice == NULL)
    return;
  slice->rest_until = 0;
  if (!give)
    return;
  slice->stale = slice->call != NULL;
  give_all_back(slice);
}

static belay__slice_t *next_of(const belay_limiter_t *limiter, const belay__list_t *node) {
  return node->next == &limiter->slices.all ? NULL
                                            : BELAY__CONTAINER(node->next, belay__slice_t, node);
}

void belay__slices_suspend(belay_limiter_t *limiter) {
  for (belay__slice_t *slice = next_of(limiter, &limiter->slices.all); slice != NULL;
       slice = next_of(limiter, &slice->node)) {
    give_all_back(slice);
    slice->rest_until = 0;
    (void)belay__call_cancel(&slice->call); /* of no use, and could not be given back */
  }
}

/* Under the policy that is there now. */
static void take_again(belay__slice_t *slice, belay__pending_t *pending) {
  belay_limiter_t *limiter = slice->limiter;
  belay__wanted_t *wanted = belay__wanted_of(pending);
  leave(slice, pending);
  belay__policy_drop(limiter->client->belay, wanted->policy);
  wanted->policy = limiter->policy;
  limiter->policy->refs++;
  int error = belay__near_take(limiter, pending, slice->key, slice->key_len);
  if (error != 0)
    belay__request_end(pending, error);
}

void belay__slices_resume(belay_limiter_t *limiter) {
  for (belay__slice_t *slice = next_of(limiter, &limiter->slices.all); slice != NULL;
       slice = next_of(limiter, &slice->node))
    for (size_t n = slice->waiting_len; n > 0; n--)
      take_again(slice, first_of(slice));
}

void belay__slices_close(belay_limiter_t *limiter) {
  for (belay__slice_t *slice; (slice = next_of(limiter, &limiter->slices.all)) != NULL;) {
    give_all_back(slice);
    if (slice->call != NULL)
      belay__errand_adopt(limiter, slice->call, slice->asked, slice->id);
    slice->call = NULL;
    drop(slice);
  }
  belay__table_free(limiter->client->belay, &limiter->slices.table);
}
