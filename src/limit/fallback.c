#include "limit/fallback.h"

#include "limit/limiter.h"

/* A bucket of this process, for one key or for those that have none of their own. Debts are in units of 1/100 of those of
 * the policy, so that a percentage of its rate is exact. What is 0 again after a while is as if it had never been. */
typedef struct belay__local {
  belay__entry_t entry;
  belay__list_t used;
  uint64_t at, taken; /* microseconds: when the debts were so; when the last was allowed */
  int64_t debts[BELAY_LIMITER_WINDOWS_MAX];
} local_t;

/* A limit, as a bucket with a part of its rate and burst. */
typedef struct terms {
  int64_t token, leak, most, idle; /* units: of a token, per microsecond; tokens; microseconds */
} terms_t;

static terms_t terms_of(const belay__limit_t *limit, unsigned percent) {
  terms_t terms = {.token = limit->p * 100, .most = limit->most * percent / 100, .idle = INT64_MAX};
  if (terms.most == 0)
    terms.most = 1;
  if (limit->kind == BELAY__LIMIT_ALLOTMENT)
    terms.idle = limit->p;
  else
    terms.leak = (limit->kind == BELAY__LIMIT_BUCKET ? limit->r : limit->b) * percent;
  return terms;
}

/* ---- which bucket -------------------------------------------------------------------------------------- */

static bool is_any(const belay__entry_t *entry, const void *key, size_t len) {
  (void)entry;
  (void)key;
  (void)len;
  return true;
}

static int64_t divide_up(int64_t value, int64_t by) {
  return value / by + (value % by != 0);
}

/* What is owed after that time. */
static int64_t leaked(const terms_t *terms, const local_t *local, size_t i, uint64_t now) {
  int64_t debt = local->debts[i];
  if (terms->leak == 0)
    return now - local->taken >= (uint64_t)terms->idle ? 0 : debt;
  uint64_t elapsed = now - local->at;
  return elapsed >= (uint64_t)divide_up(debt, terms->leak) ? 0
                                                           : debt - (int64_t)elapsed * terms->leak;
}

static void leak(const belay_limiter_t *limiter, local_t *local, uint64_t now) {
  for (size_t i = 0; i < limiter->policy->limits_len; i++) {
    terms_t terms = terms_of(&limiter->policy->limits[i], limiter->options.away_percent);
    local->debts[i] = leaked(&terms, local, i, now);
  }
  local->at = now;
}

static bool is_empty(const belay_limiter_t *limiter, local_t *local, uint64_t now) {
  leak(limiter, local, now);
  for (size_t i = 0; i < limiter->policy->limits_len; i++)
    if (local->debts[i] != 0)
      return false;
  return true;
}

static void drop(belay_limiter_t *limiter, local_t *local) {
  belay__table_remove(&limiter->away.table, &local->entry);
  belay__list_remove(&local->used);
  belay__free(limiter->client->belay, local, sizeof *local);
}

/* The one that is shared; NULL if memory is out. */
static local_t *shared(belay_limiter_t *limiter) {
  local_t **out = &limiter->away.shared;
  if (*out == NULL && (*out = belay__alloc(limiter->client->belay, sizeof **out)) != NULL)
    **out = (local_t){0};
  return *out;
}

static local_t *find(belay_limiter_t *limiter, uint64_t hash, uint64_t now) {
  belay__away_t *away = &limiter->away;
  belay_t *belay = limiter->client->belay;
  local_t *local = (local_t *)(void *)belay__table_find(&away->table, hash, is_any, NULL, 0);
  if (local == NULL && away->table.count > 0 && away->table.count >= limiter->options.max_away) {
    local_t *oldest = BELAY__CONTAINER(away->used.next, local_t, used);
    if (is_empty(limiter, oldest, now))
      drop(limiter, oldest);
  }
  if (local == NULL && away->table.count >= limiter->options.max_away)
    return shared(limiter);
  if (local == NULL) {
    local = belay__alloc(belay, sizeof *local);
    if (local == NULL)
      return shared(limiter);
    *local = (local_t){0};
    belay__list_init(&local->used);
    if (belay__table_add(belay, &away->table, &local->entry, hash) != 0) {
      belay__free(belay, local, sizeof *local);
      return shared(limiter);
    }
  }
  belay__list_remove(&local->used);
  belay__list_push(&away->used, &local->used);
  return local;
}

/* ---- taking from it ------------------------------------------------------------------------------------ */

/* How long until there is room for the cost: 0: there is; -1: never. */
static int64_t retry_after(const terms_t *terms, const local_t *local, int64_t debt, int64_t cost,
                           uint64_t now) {
  if (cost > terms->most)
    return -1;
  int64_t over = debt + cost * terms->token - terms->most * terms->token;
  if (over <= 0)
    return 0;
  if (terms->leak == 0)
    return terms->idle - (int64_t)(now - local->taken);
  return divide_up(over, terms->leak);
}

static void take(const belay_limiter_t *limiter, local_t *local, int64_t cost, uint64_t now,
                 belay_limiter_result_t *result) {
  const belay__policy_t *policy = limiter->policy;
  result->verdict = BELAY_ALLOWED;
  result->retry_after_us = 0;
  leak(limiter, local, now);
  for (size_t i = 0; i < policy->limits_len; i++) {
    terms_t terms = terms_of(&policy->limits[i], limiter->options.away_percent);
    int64_t retry = retry_after(&terms, local, local->debts[i], cost, now);
    if (retry == 0)
      continue;
    if (result->verdict == BELAY_ALLOWED || retry < 0 || retry > result->retry_after_us) {
      result->retry_after_us = retry;
      result->window = policy->limits[i].index;
    }
    result->verdict = BELAY_DENIED;
    if (retry < 0)
      break;
  }
  for (size_t i = 0; i < policy->limits_len; i++) {
    terms_t terms = terms_of(&policy->limits[i], limiter->options.away_percent);
    if (result->verdict == BELAY_ALLOWED)
      local->debts[i] += cost * terms.token;
    int64_t room = terms.most - divide_up(local->debts[i], terms.token);
    if (result->remaining < 0 || room < result->remaining)
      result->remaining = room;
  }
  if (result->verdict == BELAY_ALLOWED)
    local->taken = now;
}

static void answer_locally(belay_limiter_t *limiter, const belay__wanted_t *wanted,
                           belay_limiter_result_t *result) {
  uint64_t now = belay__now(limiter->client->belay) / 1000;
  local_t *local = limiter->policy->limits_len == 0 ? NULL : find(limiter, wanted->hash, now);
  result->verdict = BELAY_DENIED; /* without memory nothing can be counted */
  if (limiter->policy->limits_len == 0)
    result->verdict = BELAY_ALLOWED;
  else if (local != NULL)
    take(limiter, local, wanted->cost, now, result);
}

/* ---- the policy ---------------------------------------------------------------------------------------- */

void belay__away_init(belay__away_t *away) {
  belay__list_init(&away->used);
}

void belay__away_clear(belay_limiter_t *limiter) {
  belay__away_t *away = &limiter->away;
  belay_t *belay = limiter->client->belay;
  while (!belay__list_empty(&away->used))
    drop(limiter, BELAY__CONTAINER(away->used.next, local_t, used));
  belay__table_free(belay, &away->table);
  belay__free(belay, away->shared, sizeof *away->shared);
  away->shared = NULL;
}

bool belay__away_has_policy(const belay_limiter_t *limiter) {
  return limiter->options.away != BELAY_AWAY_UNKNOWN;
}

void belay__away_told(belay_limiter_t *limiter, const belay__wanted_t *wanted, int status,
                      belay_limiter_result_t *result) {
  if (status == 0 || status == BELAY_ECANCELED)
    return;
  if (result->verdict == BELAY_NEVER) {
    result->source = BELAY_SOURCE_POLICY;
    return;
  }
  if (!belay__away_has_policy(limiter))
    return;
  limiter->stats.away++;
  result->source = BELAY_SOURCE_AWAY;
  if (limiter->options.away == BELAY_AWAY_LOCAL) {
    answer_locally(limiter, wanted, result);
    return;
  }
  result->verdict = limiter->options.away == BELAY_AWAY_OPEN ? BELAY_ALLOWED : BELAY_DENIED;
  if (result->verdict == BELAY_ALLOWED)
    result->retry_after_us = 0;
}
