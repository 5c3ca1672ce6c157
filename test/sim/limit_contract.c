/* The promises of the model of limits, which the script equals (limit_model.c): no interval
 * admits too much, and computed times are right.
 *
 * BELAY_LIMIT_OPS=N, BELAY_LIMIT_SEED=S. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "limit/policy.h"
#include "support/base/clock.h"
#include "support/models/limit_ops.h"
#include "support/base/test.h"

/* ---- what is computed from replies ---- */

static belay__policy_t policy_of(const limit_policy_t *from) {
  belay__policy_t policy = {.limits_len = from->count, .most = BELAY_INFINITE};
  for (size_t i = 0; i < from->count; i++) {
    const limit_rule_t *rule = &from->rule[i];
    int64_t most = rule->kind == LIMIT_BUCKET ? rule->b / rule->p : rule->b;
    policy.limits[i] = (belay__limit_t){.kind = (belay__limit_kind_t)rule->kind,
                                        .index = (unsigned)i,
                                        .most = most,
                                        .p = rule->p,
                                        .r = rule->r,
                                        .b = rule->b};
    if (most < policy.most)
      policy.most = most;
  }
  return policy;
}

static belay__limit_reply_t used_of(const limit_outcome_t *outcome) {
  const limit_state_t *reply = &outcome->reply;
  belay__limit_reply_t used = {
      .answer = outcome->answer, .at = reply->at, .since = reply->since, .ban = reply->ban};
  for (size_t i = 0; i < reply->count; i++) {
    used.limits[i].a = reply->used[i].a;
    used.limits[i].b = reply->used[i].b;
    used.limits[i].c = reply->used[i].c;
  }
  return used;
}

/* True if the cost is admitted then without earlier requests. */
static bool admits(const limit_case_t *one, int64_t cost, int64_t now) {
  limit_state_t state = one->outcome.reply;
  limit_request_t request = {.op = LIMIT_PEEK, .policy = &one->policy, .cost = cost, .now = now};
  return limit_model(&state, NULL, &request).answer == 0;
}

static bool is_as_new(const limit_case_t *one, int64_t now) {
  limit_state_t state = one->outcome.reply;
  limit_request_t request = {.op = LIMIT_PEEK, .policy = &one->policy, .now = now};
  limit_outcome_t outcome = limit_model(&state, NULL, &request);
  bool nothing = outcome.reply.ban <= now;
  for (size_t i = 0; i < outcome.reply.count; i++) {
    const limit_used_t *used = &outcome.reply.used[i];
    nothing &= used->rule.kind == LIMIT_BUCKET ? used->a == 0 : used->b == 0 && used->c == 0;
  }
  return nothing;
}

static const char *judge(const limit_case_t *one, int64_t cost) {
  belay__policy_t policy = policy_of(&one->policy);
  belay__limit_reply_t used = used_of(&one->outcome);
  belay_limiter_result_t is = {0};
  int64_t now = used.at;
  belay__policy_judge(&policy, &used, cost, &is);
  if (cost > policy.most)
    return is.retry_after_us == -1 ? NULL : "never";
  if (is.retry_after_us < 0 || !admits(one, cost, now + is.retry_after_us))
    return "when it would be admitted";
  if (is.retry_after_us > 0 && admits(one, cost, now + is.retry_after_us - 1))
    return "when it would be admitted, too late";
  if (is.remaining > 0 && !admits(one, is.remaining, now))
    return "the remaining tokens";
  if (is.remaining < policy.most && admits(one, is.remaining + 1, now))
    return "the remaining tokens, too few";
  if (is.banned ? used.ban != now + is.retry_after_us : used.ban > now + is.retry_after_us)
    return "whether it is a ban";
  if (!is_as_new(one, now + is.reset_after_us))
    return "when it is as new";
  return is.reset_after_us > 0 && is_as_new(one, now + is.reset_after_us - 1)
             ? "when it is as new, too late"
             : NULL;
}

TEST(retry_remaining_and_reset_are_exact) {
  static limit_world_t world;
  size_t ops = limit_suite_ops(slow() > 1 ? 50000 : 300000);
  uint64_t seed = limit_suite_seed();
  limit_world_init(&world, seed);
  for (size_t i = 0; i < ops; i++) {
    limit_case_t one;
    limit_world_next(&world, &one);
    if (one.deed != LIMIT_ASK || one.garbled)
      continue;
    int64_t burst = policy_of(&one.policy).most;
    int64_t cost = limit_clamped(limit_sized(&world.chance, burst) + limit_below(&world.chance, 2),
                                 1, burst + (burst < 1000));
    const char *wrong = judge(&one, cost);
    if (wrong != NULL)
      fail_msg("BELAY_LIMIT_SEED=%" PRIu64 ", operation %zu, cost %" PRId64 ": %s", seed, i, cost,
               wrong);
  }
}

/* ---- how much is admitted in an interval ---- */

enum { STEPS = 60 };

/* Tokens executed at a time; fewer after a refund. */
typedef struct act {
  int64_t at, tokens;
  limit_request_t refund; /* the request of its refund */
  bool over;              /* it was given back, or a part of it */
} act_t;

typedef struct run {
  limit_chance_t chance;
  limit_policy_t policy;
  limit_state_t state;
  limit_record_t record[STEPS];
  act_t act[STEPS];
  size_t acts;
  int64_t now;
} run_t;

static void begin_run(run_t *run, bool reservable) {
  static const limit_kind_t kinds[] = {LIMIT_BUCKET, LIMIT_BUCKET, LIMIT_SLIDING, LIMIT_FIXED,
                                       LIMIT_ALIGNED};
  limit_chance_t *chance = &run->chance;
  run->state = (limit_state_t){0};
  run->acts = 0;
  run->now = 1000 + limit_below(chance, 50);
  run->policy.count = 1 + (size_t)limit_below(chance, 3);
  for (size_t i = 0; i < run->policy.count; i++) {
    limit_rule_t rule = {.kind = reservable ? LIMIT_BUCKET : kinds[limit_below(chance, 5)],
                         .p = 1 + limit_below(chance, 20),
                         .b = 1 + limit_below(chance, 8)};
    if (rule.kind == LIMIT_BUCKET) {
      rule.r = 1 + limit_below(chance, 5);
      rule.b *= rule.p;
    }
    run->policy.rule[i] = rule;
  }
}

static void give_back(run_t *run, act_t *act) {
  limit_request_t request = act->refund;
  size_t i = (size_t)(act - run->act);
  request.now = run->now;
  if (request.op == LIMIT_REFUND)
    request.cost = 1 + limit_below(&run->chance, request.cost);
  limit_outcome_t outcome = limit_model(&run->state, &run->record[i], &request);
  assert_true(outcome.answer <= act->tokens);
  act->tokens -= request.op == LIMIT_REFUND ? request.cost : act->tokens;
  act->over = true;
}

static void keep_act(run_t *run, const limit_request_t *request, const limit_outcome_t *outcome) {
  act_t *act = &run->act[run->acts++];
  *act = (act_t){.at = run->now + outcome->answer, .tokens = request->cost};
  act->refund = (limit_request_t){.op = LIMIT_CANCEL, .policy = &run->policy, .remember = 1};
  if (request->op == LIMIT_RESERVE)
    return;
  act->refund.op = LIMIT_REFUND;
  act->refund.cost = request->cost;
  act->refund.taken = outcome->reply.at;
  act->refund.since = outcome->reply.since;
  for (size_t i = 0; i < outcome->reply.count; i++)
    act->refund.thirds[i] = outcome->reply.used[i].rule.kind == LIMIT_BUCKET
                                ? outcome->reply.used[i].b
                                : outcome->reply.used[i].a;
}

/* An immediate refund restores the former state. */
static void expect_identity(const run_t *run, const limit_state_t *before) {
  limit_state_t state = run->state;
  limit_request_t peek = {.op = LIMIT_PEEK, .policy = &run->policy, .now = run->now};
  limit_request_t request = run->act[run->acts - 1].refund;
  limit_state_t was = *before;
  limit_outcome_t expected = limit_model(&was, NULL, &peek);
  request.now = run->now;
  assert_int_equal(limit_model(&state, NULL, &request).answer, request.cost);
  limit_outcome_t is = limit_model(&state, NULL, &peek);
  for (size_t i = 0; i < run->policy.count; i++) {
    const limit_used_t *a = &is.reply.used[i], *b = &expected.reply.used[i];
    bool nothing = a->rule.kind != LIMIT_BUCKET && a->b == 0 && a->c == 0;
    assert_true(a->a == b->a || nothing);
    if (state.count > 0 ||
        a->rule.kind != LIMIT_BUCKET) /* where nothing is owed, nothing is kept */
      assert_true(a->b == b->b && a->c == b->c);
  }
}

static void step(run_t *run, bool reservable) {
  limit_chance_t *chance = &run->chance;
  limit_request_t request = {.op = LIMIT_TAKE, .policy = &run->policy, .remember = 1};
  if (limit_once_in(chance, 2))
    run->now += limit_below(chance, limit_once_in(chance, 4) ? 30 : 4);
  if (run->acts > 0 && limit_once_in(chance, 4)) {
    size_t i = (size_t)limit_below(chance, (int64_t)run->acts);
    if (limit_once_in(chance, 2))
      i = run->acts - 1;
    if (!run->act[i].over)
      give_back(run, &run->act[i]);
    return;
  }
  if (reservable && limit_once_in(chance, 2))
    request.op = LIMIT_RESERVE;
  else if (limit_once_in(chance, 15))
    request.op = LIMIT_PENALTY;
  int64_t burst = policy_of(&run->policy).most;
  request.cost = 1 + limit_below(chance, limit_once_in(chance, 2) ? 1 : burst);
  request.longest = limit_below(chance, 60);
  request.now = run->now;
  limit_record_t *record = &run->record[run->acts];
  *record = (limit_record_t){0};
  limit_state_t before = run->state;
  limit_outcome_t outcome = limit_model(&run->state, record, &request);
  if (outcome.answer < 0 || request.op == LIMIT_PENALTY)
    return;
  keep_act(run, &request, &outcome);
  if (request.op == LIMIT_TAKE)
    expect_identity(run, &before);
}

static int by_time(const void *one, const void *other) {
  const act_t *a = one, *b = other;
  return (a->at > b->at) - (a->at < b->at);
}

/* The tokens between two acts fit the rule for their distance. */
static bool is_within(const limit_rule_t *rule, int64_t tokens, const act_t *from,
                      const act_t *to) {
  int64_t d = to->at - from->at;
  switch (rule->kind) {
  case LIMIT_BUCKET:
    return tokens * rule->p <= rule->b + d * rule->r;
  case LIMIT_SLIDING:
    return d > rule->p || tokens * rule->p <= rule->b * (rule->p + d);
  case LIMIT_ALIGNED:
    return from->at / rule->p != to->at / rule->p || tokens <= rule->b;
  case LIMIT_FIXED:
    return d >= rule->p || tokens <= 2 * rule->b;
  case LIMIT_ALLOTMENT:
    break;
  }
  return true;
}

static bool holds(run_t *run) {
  qsort(run->act, run->acts, sizeof *run->act, by_time);
  for (size_t r = 0; r < run->policy.count; r++)
    for (size_t i = 0; i < run->acts; i++) {
      int64_t tokens = 0;
      for (size_t j = i; j < run->acts; j++) {
        tokens += run->act[j].tokens;
        if (!is_within(&run->policy.rule[r], tokens, &run->act[i], &run->act[j]))
          return false;
      }
    }
  return true;
}

TEST(no_interval_admits_more_than_the_policy) {
  static run_t run;
  size_t stories = limit_suite_ops(slow() > 1 ? 5000 : 50000);
  uint64_t seed = limit_suite_seed();
  int64_t acts = 0, given = 0;
  for (size_t n = 0; n < stories; n++) {
    run.chance = (limit_chance_t){seed + n};
    bool reservable = n % 2 == 0;
    begin_run(&run, reservable);
    for (int i = 0; i < STEPS; i++)
      step(&run, reservable);
    acts += (int64_t)run.acts;
    for (size_t i = 0; i < run.acts; i++)
      given += run.act[i].over;
    if (!holds(&run))
      fail_msg("BELAY_LIMIT_SEED=%" PRIu64 ": more than may be", seed + n);
  }
  assert_true(acts > 10 * (int64_t)stories && given > 2 * (int64_t)stories);
}
