#include "limit/fallback.h"

/* A local bucket, for one key or for all keys without a bucket of their own. Debts are in 1/100 of
 * the policy's units, so that a percentage of the rate is exact. In a limit that is no token
 * bucket, a token is `p` units. A bucket whose debts are all 0 again is equal to a new one. */
typedef struct belay__local_bucket {
  belay__keyed_t keyed; /* First; found by the hash alone, without a key */
  belay__list_t used;
  /* Both in microseconds. at: time for which the debts are computed. taken: time of the last take
   * that was allowed */
  uint64_t at, taken;
  int64_t debts[BELAY_LIMITER_LIMITS_MAX];
} bucket_t;

/* A limit as a bucket with a percentage of its rate and burst. */
typedef struct limit_config {
  /* token: units per token. leak: units that leak per microsecond; 0 for an allotment. most:
   * capacity in tokens. idle: microseconds after the last allowed take until an allotment is full
   * again */
  int64_t token, leak, most, idle;
} limit_config_t;

static limit_config_t config_of(const belay__limit_t *limit, unsigned percent) {
  limit_config_t config = {
      .token = limit->p * 100, .most = limit->most * percent / 100, .idle = INT64_MAX};
  if (config.most == 0)
    config.most = 1;
  if (limit->kind == BELAY__LIMIT_ALLOTMENT)
    config.idle = limit->p;
  else
    config.leak = (limit->kind == BELAY__LIMIT_BUCKET ? limit->r : limit->b) * percent;
  return config;
}

/* ---- which bucket ---- */

static int64_t divide_up(int64_t value, int64_t by) {
  return value / by + (value % by != 0);
}

/* Get the debt of limit i at `now`. */
static int64_t leaked(const limit_config_t *config, const bucket_t *bucket, size_t i,
                      uint64_t now) {
  int64_t debt = bucket->debts[i];
  if (config->leak == 0)
    return now - bucket->taken >= (uint64_t)config->idle ? 0 : debt;
  uint64_t elapsed = now - bucket->at;
  return elapsed >= (uint64_t)divide_up(debt, config->leak)
             ? 0
             : debt - (int64_t)elapsed * config->leak;
}

static void leak(const belay_limiter_t *limiter, bucket_t *bucket, uint64_t now) {
  for (size_t i = 0; i < limiter->policy->limits_len; i++) {
    limit_config_t config = config_of(&limiter->policy->limits[i], limiter->options.away_percent);
    bucket->debts[i] = leaked(&config, bucket, i, now);
  }
  bucket->at = now;
}

static bool has_no_debts(const belay_limiter_t *limiter, bucket_t *bucket, uint64_t now) {
  leak(limiter, bucket, now);
  for (size_t i = 0; i < limiter->policy->limits_len; i++)
    if (bucket->debts[i] != 0)
      return false;
  return true;
}

static void drop(belay_limiter_t *limiter, bucket_t *bucket) {
  belay__table_remove(&limiter->fallback.table, &bucket->keyed.entry);
  belay__list_remove(&bucket->used);
  belay__keyed_free(belay__limiter_belay(limiter), &bucket->keyed);
}

/* Return the bucket of all keys without a bucket of their own; NULL if memory is out. */
static bucket_t *shared(belay_limiter_t *limiter) {
  bucket_t **out = &limiter->fallback.shared;
  if (*out == NULL && (*out = belay__alloc(belay__limiter_belay(limiter), sizeof **out)) != NULL)
    **out = (bucket_t){0};
  return *out;
}

/* Create a bucket for a key. There is room if fewer than max_away keys have a bucket. Otherwise the
 * least recently used bucket makes room if it has no debts. If there is no room or no memory,
 * returns the shared bucket. */
static bucket_t *add(belay_limiter_t *limiter, uint64_t hash, uint64_t now) {
  belay__table_t *table = &limiter->fallback.table;
  bucket_t *oldest = BELAY__CONTAINER(limiter->fallback.used.next, bucket_t, used), *bucket = NULL;
  if (table->count > 0 && table->count >= limiter->options.max_away &&
      has_no_debts(limiter, oldest, now))
    drop(limiter, oldest);
  if (table->count < limiter->options.max_away)
    bucket = belay__keyed_new(belay__limiter_belay(limiter), table, hash, sizeof *bucket, "", 0);
  if (bucket == NULL)
    return shared(limiter);
  belay__list_push(&limiter->fallback.used, &bucket->used);
  return bucket;
}

static bucket_t *find(belay_limiter_t *limiter, uint64_t hash, uint64_t now) {
  bucket_t *bucket = belay__keyed_find(&limiter->fallback.table, hash, "", 0);
  if (bucket == NULL)
    return add(limiter, hash, now);
  belay__list_remove(&bucket->used);
  belay__list_push(&limiter->fallback.used, &bucket->used);
  return bucket;
}

/* ---- taking from it ---- */

/* Microseconds until there is room for the cost. 0: there is room now; -1: never. */
static int64_t retry_after(const limit_config_t *config, const bucket_t *bucket, int64_t debt,
                           int64_t cost, uint64_t now) {
  if (cost > config->most)
    return -1;
  int64_t over = debt + cost * config->token - config->most * config->token;
  if (over <= 0)
    return 0;
  if (config->leak == 0)
    return config->idle - (int64_t)(now - bucket->taken);
  return divide_up(over, config->leak);
}

static void take(const belay_limiter_t *limiter, bucket_t *bucket, int64_t cost, uint64_t now,
                 belay_limiter_result_t *result) {
  const belay__policy_t *policy = limiter->policy;
  result->verdict = BELAY_ALLOWED;
  result->retry_after_us = 0;
  leak(limiter, bucket, now);
  for (size_t i = 0; i < policy->limits_len; i++) {
    limit_config_t config = config_of(&policy->limits[i], limiter->options.away_percent);
    int64_t retry = retry_after(&config, bucket, bucket->debts[i], cost, now);
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
    limit_config_t config = config_of(&policy->limits[i], limiter->options.away_percent);
    if (result->verdict == BELAY_ALLOWED)
      bucket->debts[i] += cost * config.token;
    int64_t room = config.most - divide_up(bucket->debts[i], config.token);
    if (result->remaining < 0 || room < result->remaining)
      result->remaining = room;
  }
  if (result->verdict == BELAY_ALLOWED)
    bucket->taken = now;
}

static void answer_locally(belay_limiter_t *limiter, const belay__limit_op_t *op,
                           belay_limiter_result_t *result) {
  uint64_t now = belay__now(belay__limiter_belay(limiter)) / 1000;
  bucket_t *bucket = limiter->policy->limits_len == 0 ? NULL : find(limiter, op->hash, now);
  result->verdict = BELAY_DENIED; /* if memory is out, the take cannot be counted */
  if (limiter->policy->limits_len == 0)
    result->verdict = BELAY_ALLOWED;
  else if (bucket != NULL)
    take(limiter, bucket, op->cost, now, result);
}

/* ---- the policy ---- */

void belay__fallback_clear(belay_limiter_t *limiter) {
  belay_t *belay = belay__limiter_belay(limiter);
  while (!belay__list_empty(&limiter->fallback.used))
    drop(limiter, BELAY__CONTAINER(limiter->fallback.used.next, bucket_t, used));
  belay__table_free(belay, &limiter->fallback.table);
  belay__free(belay, limiter->fallback.shared, sizeof *limiter->fallback.shared);
  limiter->fallback.shared = NULL;
}

bool belay__fallback_is_on(const belay_limiter_t *limiter) {
  return limiter->options.away != BELAY_AWAY_UNKNOWN;
}

void belay__fallback_result(belay_limiter_t *limiter, const belay__limit_op_t *op,
                            belay_limiter_result_t *result) {
  if (result->verdict == BELAY_NEVER) {
    result->source = BELAY_SOURCE_POLICY;
    return;
  }
  if (!belay__fallback_is_on(limiter))
    return;
  limiter->stats.away++;
  result->source = BELAY_SOURCE_AWAY;
  if (limiter->options.away == BELAY_AWAY_LOCAL) {
    answer_locally(limiter, op, result);
    return;
  }
  result->verdict = limiter->options.away == BELAY_AWAY_OPEN ? BELAY_ALLOWED : BELAY_DENIED;
  if (result->verdict == BELAY_ALLOWED)
    result->retry_after_us = 0;
}
