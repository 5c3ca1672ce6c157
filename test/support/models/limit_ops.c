#include "support/models/limit_ops.h"

#include <string.h>

#define TIME_MOST (INT64_C(1) << 51)
#define DAY_US INT64_C(86400000000)
#define YEAR_US (365 * DAY_US)

/* ---- policies ---- */

static int64_t divisor(int64_t a, int64_t b) {
  while (b != 0) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static void draw_bucket(limit_world_t *world, limit_rule_t *rule) {
  int64_t p = limit_sized(&world->chance, LIMIT_UNITS_MOST),
          r = limit_sized(&world->chance, LIMIT_UNITS_MOST);
  int64_t common = divisor(p, r);
  p /= common;
  *rule = (limit_rule_t){.kind = LIMIT_BUCKET,
                         .p = p,
                         .r = r / common,
                         .b = p * limit_sized(&world->chance, LIMIT_UNITS_MOST / p)};
}

static void draw_rule(limit_world_t *world, limit_rule_t *rule, bool bucket) {
  static const limit_kind_t kinds[] = {LIMIT_BUCKET, LIMIT_SLIDING, LIMIT_FIXED, LIMIT_ALIGNED,
                                       LIMIT_ALLOTMENT};
  limit_kind_t kind = kinds[limit_below(&world->chance, 5)];
  if (bucket || kind == LIMIT_BUCKET) {
    draw_bucket(world, rule);
    return;
  }
  int64_t p = limit_sized(&world->chance, LIMIT_UNITS_MOST);
  *rule =
      (limit_rule_t){.kind = kind, .p = p, .b = limit_sized(&world->chance, LIMIT_UNITS_MOST / p)};
}

static bool is_reservable(const limit_policy_t *policy) {
  for (size_t i = 0; i < policy->count; i++)
    if (policy->rule[i].kind != LIMIT_BUCKET)
      return false;
  return true;
}

/* One that owes so much that sums are tight, and for long. */
static void draw_large(limit_world_t *world, limit_policy_t *policy) {
  int64_t p = limit_sized(&world->chance, 1000);
  policy->count = 1;
  policy->rule[0] = (limit_rule_t){.kind = LIMIT_BUCKET,
                                   .p = p,
                                   .r = limit_sized(&world->chance, 1000),
                                   .b = LIMIT_UNITS_MOST / p * p};
}

static void draw_policy(limit_world_t *world, limit_policy_t *policy) {
  if (limit_once_in(&world->chance, 12)) {
    draw_large(world, policy);
    return;
  }
  bool buckets = limit_once_in(&world->chance, 2);
  policy->count =
      limit_once_in(&world->chance, 2) ? 1 : 1 + (size_t)limit_below(&world->chance, LIMIT_RULES);
  for (size_t i = 0; i < policy->count; i++)
    draw_rule(world, &policy->rule[i], buckets);
}

/* Changes the policy a little. */
static void change_policy(limit_world_t *world, limit_policy_t *policy) {
  limit_rule_t *rule = &policy->rule[limit_below(&world->chance, (int64_t)policy->count)];
  int64_t tokens = rule->kind == LIMIT_BUCKET ? rule->b / rule->p : rule->b;
  switch (limit_below(&world->chance, 6)) {
  case 0:
    draw_policy(world, policy);
    break;
  case 1:
    draw_rule(world, rule, false);
    break;
  case 2:
    if (policy->count < LIMIT_RULES)
      draw_rule(world, &policy->rule[policy->count++], is_reservable(policy));
    break;
  case 3:
    policy->count -= policy->count > 1;
    break;
  case 4:
    tokens = limit_clamped(limit_once_in(&world->chance, 2) ? tokens / 2 : tokens * 2, 1,
                           LIMIT_UNITS_MOST / rule->p);
    rule->b = rule->kind == LIMIT_BUCKET ? tokens * rule->p : tokens;
    break;
  default:
    if (rule->kind == LIMIT_BUCKET) {
      rule->r = limit_sized(&world->chance, LIMIT_UNITS_MOST);
    } else {
      rule->kind = limit_once_in(&world->chance, 2) ? LIMIT_FIXED : LIMIT_SLIDING;
      rule->p = limit_sized(&world->chance, LIMIT_UNITS_MOST / rule->b);
    }
  }
}

/* ---- times ---- */

/* A moment at, or near, a change of the debt. */
static int64_t turning_point(limit_world_t *world, const limit_key_t *key) {
  const limit_state_t *is = &key->state;
  const limit_used_t *used = &is->used[limit_below(&world->chance, (int64_t)is->count)];
  const limit_rule_t *rule = &used->rule;
  int64_t act;
  switch (limit_below(&world->chance, 4)) {
  case 0:
    act = limit_model_retry(
        is, limit_sized(&world->chance, rule->kind == LIMIT_BUCKET ? rule->b / rule->p : rule->b));
    return act < 0 ? key->now : limit_near(&world->chance, act);
  case 1:
    return limit_near(&world->chance, limit_once_in(&world->chance, 3) ? is->ban : key->ends);
  case 2:
    act = key->record[limit_below(&world->chance, LIMIT_RECORDS)].act;
    return act > 0 ? limit_near(&world->chance, act) : key->now;
  default:
    break;
  }
  if (rule->kind == LIMIT_BUCKET)
    return limit_near(&world->chance,
                      is->at + (limit_once_in(&world->chance, 4) ? used->b : used->a) / rule->r +
                          limit_below(&world->chance, 2));
  return limit_near(&world->chance, used->a + (1 + limit_below(&world->chance, 2)) *
                                                  (rule->p < TIME_MOST ? rule->p : TIME_MOST));
}

static int64_t draw_beginning(limit_world_t *world) {
  return limit_once_in(&world->chance, 2)
             ? INT64_C(1700000000000000) + limit_below(&world->chance, YEAR_US)
             : limit_sized(&world->chance, TIME_MOST / 2) - 1;
}

/* A short time, after which most of the debt remains. */
static int64_t moment(limit_world_t *world, const limit_key_t *key) {
  const limit_state_t *is = &key->state;
  if (is->count == 0 || limit_once_in(&world->chance, 3))
    return limit_below(&world->chance, 2);
  const limit_used_t *used = &is->used[limit_below(&world->chance, (int64_t)is->count)];
  int64_t lasts = used->rule.kind == LIMIT_BUCKET ? used->a / used->rule.r : used->rule.p;
  return limit_sized(&world->chance, lasts / 16 + 1) - 1;
}

/* Time goes on: not at all, a little, to where something changes, or by years; and now and then
 * back. */
static void move_clock(limit_world_t *world, limit_key_t *key) {
  int64_t now = key->now;
  if (key->calm && !limit_once_in(&world->chance, 20)) {
    key->now = limit_clamped(now + moment(world, key), 0, TIME_MOST);
    return;
  }
  switch (limit_below(&world->chance, 12)) {
  case 0:
  case 1:
  case 2:
    return;
  case 3:
    now++;
    break;
  case 4:
  case 5:
    now += limit_sized(&world->chance, DAY_US);
    break;
  case 6:
    now += limit_once_in(&world->chance, 3) ? limit_sized(&world->chance, 10 * YEAR_US)
                                            : limit_sized(&world->chance, 1000);
    break;
  case 7:
    if (limit_once_in(&world->chance, 4))
      now -= limit_sized(&world->chance, limit_once_in(&world->chance, 2) ? 1000 : YEAR_US);
    break;
  default:
    if (key->state.count > 0)
      now = turning_point(world, key);
    if (now < key->now && !limit_once_in(&world->chance, 10))
      now = key->now;
  }
  key->now = limit_clamped(now, 0, TIME_MOST);
}

/* ---- what is asked ---- */

static int64_t cost_most(const limit_policy_t *policy, bool within) {
  int64_t most = LIMIT_UNITS_MOST;
  for (size_t i = 0; i < policy->count; i++) {
    const limit_rule_t *rule = &policy->rule[i];
    int64_t one = rule->kind != LIMIT_BUCKET ? within ? rule->b : most
                                             : (within ? rule->b : LIMIT_UNITS_MOST) / rule->p;
    most = one < most ? one : most;
  }
  return most;
}

/* Tokens that just fit, as far as what was written last tells. */
static int64_t room_of(const limit_key_t *key) {
  int64_t room = cost_most(&key->policy, true);
  for (size_t i = 0; i < key->state.count && i < key->policy.count; i++) {
    const limit_used_t *used = &key->state.used[i];
    int64_t left = used->rule.kind == LIMIT_BUCKET ? (used->rule.b - used->a) / used->rule.p
                                                   : used->rule.b - used->b;
    room = left < room ? left : room;
  }
  return room;
}

static int64_t draw_cost(limit_world_t *world, const limit_key_t *key) {
  int64_t most = cost_most(&key->policy, false), burst = cost_most(&key->policy, true), cost;
  switch (limit_below(&world->chance, 8)) {
  case 0:
    cost = 1;
    break;
  case 1:
    cost = limit_near(&world->chance, room_of(key));
    break;
  case 2:
    cost = limit_near(&world->chance, burst);
    break;
  case 3:
    cost = limit_sized(&world->chance, most);
    break;
  case 4:
    cost = burst / (1 + limit_below(&world->chance, 5));
    break;
  case 5:
    cost = limit_once_in(&world->chance, 5) ? 0 : 1 + limit_below(&world->chance, 3);
    break;
  default:
    cost = limit_sized(&world->chance, burst);
  }
  return limit_clamped(cost, cost == 0 ? 0 : 1, most);
}

static void draw_refund(limit_world_t *world, limit_key_t *key, limit_request_t *request) {
  size_t i = (size_t)limit_below(&world->chance, (int64_t)key->receipts);
  limit_receipt_t receipt = key->receipt[i];
  if (limit_once_in(&world->chance, 2)) /* the last */
    receipt = key->receipt[i = key->receipts - 1];
  for (key->receipts--; i < key->receipts; i++)
    key->receipt[i] = key->receipt[i + 1];
  request->cost =
      limit_once_in(&world->chance, 3) ? limit_sized(&world->chance, receipt.cost) : receipt.cost;
  request->taken = receipt.taken;
  request->since = receipt.since;
  memcpy(request->thirds, receipt.thirds, sizeof receipt.thirds);
}

static void draw_reserve(limit_world_t *world, limit_key_t *key, limit_request_t *request) {
  int64_t burst = cost_most(&key->policy, true), act;
  request->cost = limit_clamped(request->cost, 1, burst);
  request->remember = limit_sized(&world->chance, 2 * DAY_US);
  request->longest = limit_once_in(&world->chance, 3) ? 0 : limit_sized(&world->chance, DAY_US);
  act = key->state.count > 0 ? limit_model_retry(&key->state, request->cost) : -1;
  if (act >= key->now && limit_once_in(&world->chance, 3))
    request->longest = limit_clamped(limit_near(&world->chance, act - key->now), 0, DAY_US);
}

/* One for a new reservation is empty, mostly, and one to be canceled is not. */
static void draw_record(limit_world_t *world, const limit_key_t *key, limit_case_t *out) {
  int wanted = out->request.op == LIMIT_RESERVE ? LIMIT_NO_RECORD : LIMIT_RESERVED;
  for (size_t i = 0; i < LIMIT_RECORDS && (int)key->record[out->record].what != wanted; i++)
    if (!limit_once_in(&world->chance, 8))
      out->record = (out->record + 1) % LIMIT_RECORDS;
}

static limit_op_t draw_op(limit_world_t *world, const limit_key_t *key) {
  static const limit_op_t ops[] = {LIMIT_TAKE,    LIMIT_TAKE,    LIMIT_TAKE,   LIMIT_TAKE,
                                   LIMIT_TAKE,    LIMIT_SLICE,   LIMIT_TAKE,   LIMIT_PEEK,
                                   LIMIT_PENALTY, LIMIT_REFUND,  LIMIT_REFUND, LIMIT_REFUND,
                                   LIMIT_RESERVE, LIMIT_RESERVE, LIMIT_CANCEL, LIMIT_BAN};
  limit_op_t op = ops[limit_below(&world->chance, sizeof ops / sizeof *ops)];
  if ((op == LIMIT_REFUND && key->receipts == 0) ||
      (op == LIMIT_BAN && !limit_once_in(&world->chance, 4)) ||
      ((op == LIMIT_RESERVE || op == LIMIT_CANCEL) && !is_reservable(&key->policy)))
    return LIMIT_TAKE;
  return op;
}

static void draw_request(limit_world_t *world, limit_key_t *key, limit_case_t *out) {
  limit_request_t *request = &out->request;
  move_clock(world, key);
  if (limit_once_in(&world->chance, 40))
    change_policy(world, &key->policy);
  out->policy = key->policy;
  *request = (limit_request_t){.op = draw_op(world, key),
                               .policy = &out->policy,
                               .cost = draw_cost(world, key),
                               .now = key->now};
  switch (request->op) {
  case LIMIT_TAKE:
    if (request->cost > 0 && limit_once_in(&world->chance, 4))
      request->takes = 2 + limit_below(&world->chance, 6);
    break;
  case LIMIT_SLICE:
    request->cost += request->cost == 0;
    request->fewest =
        limit_once_in(&world->chance, 2) ? 1 : limit_sized(&world->chance, request->cost);
    break;
  case LIMIT_PEEK:
    request->cost = 0;
    break;
  case LIMIT_PENALTY:
    request->cost += request->cost == 0;
    break;
  case LIMIT_REFUND:
    draw_refund(world, key, request);
    break;
  case LIMIT_BAN:
    request->cost = 0;
    request->ban_us =
        limit_once_in(&world->chance, 4) ? 0 : limit_sized(&world->chance, 10 * YEAR_US);
    break;
  case LIMIT_RESERVE:
    draw_reserve(world, key, request);
    break;
  case LIMIT_CANCEL:
    request->cost = 0;
    request->remember = limit_sized(&world->chance, 2 * DAY_US);
    break;
  }
}

/* ---- all of it ---- */

static void keep_receipt(limit_key_t *key, const limit_case_t *done) {
  const limit_state_t *reply = &done->outcome.reply;
  int64_t cost = done->request.op == LIMIT_SLICE ? done->outcome.answer : done->request.cost;
  limit_receipt_t receipt = {reply->at, reply->since, cost, {0}};
  for (size_t i = 0; i < reply->count; i++)
    receipt.thirds[i] =
        reply->used[i].rule.kind == LIMIT_BUCKET ? reply->used[i].b : reply->used[i].a;
  if (key->receipts == LIMIT_RECEIPTS)
    memmove(key->receipt, key->receipt + 1, --key->receipts * sizeof receipt);
  key->receipt[key->receipts++] = receipt;
}

/* Causes of a lost key: a reset, an ended ttl, another program's value. */
static limit_deed_t draw_deed(limit_world_t *world, limit_key_t *key) {
  bool over = key->state.count > 0 && key->now > key->ends;
  if (key->garbled)
    return limit_once_in(&world->chance, 3) ? LIMIT_FORGET : LIMIT_ASK;
  if (key->now >= TIME_MOST - DAY_US || limit_once_in(&world->chance, 200) ||
      (over && limit_once_in(&world->chance, 2)))
    return LIMIT_FORGET;
  if (limit_once_in(&world->chance, 8) && is_reservable(&key->policy))
    return LIMIT_DROP;
  return limit_once_in(&world->chance, 500) ? LIMIT_GARBLE : LIMIT_ASK;
}

static void forget(limit_world_t *world, limit_key_t *key) {
  bool anew = key->now >= TIME_MOST - DAY_US || limit_once_in(&world->chance, 3);
  key->state = (limit_state_t){0};
  key->garbled = false;
  if (!anew)
    return;
  key->now = draw_beginning(world);
  key->calm = limit_once_in(&world->chance, 2);
  key->receipts = 0;
  draw_policy(world, &key->policy);
}

/* Several takes are as many takes, one after the other. */
static limit_outcome_t ask_model(limit_state_t *state, limit_record_t *record,
                                 const limit_request_t *request) {
  limit_request_t one = *request;
  if (request->takes == 0)
    return limit_model(state, record, request);
  one.takes = 0;
  limit_outcome_t outcome = limit_model(state, record, &one), next;
  int64_t admitted = outcome.answer == 0;
  while (admitted > 0 && admitted < request->takes &&
         (next = limit_model(state, record, &one)).answer == 0) {
    outcome = next;
    admitted++;
  }
  outcome.answer = admitted > 0 ? admitted : -1;
  return outcome;
}

static void ask(limit_world_t *world, limit_key_t *key, limit_case_t *out) {
  draw_request(world, key, out);
  draw_record(world, key, out);
  limit_record_t *record = &key->record[out->record];
  if (!key->garbled)
    out->outcome = ask_model(&key->state, record, &out->request);
  if (out->outcome.key == LIMIT_SET)
    key->ends = key->now + out->outcome.key_ttl_ms * 1000;
  limit_op_t op = out->request.op;
  bool takes =
      op == LIMIT_PENALTY || op == LIMIT_SLICE || (op == LIMIT_TAKE && out->request.cost > 0);
  if (!key->garbled && takes && out->outcome.answer >= 0)
    keep_receipt(key, out);
}

void limit_world_next(limit_world_t *world, limit_case_t *out) {
  *out = (limit_case_t){.key = (size_t)limit_below(&world->chance, LIMIT_KEYS),
                        .record = (size_t)limit_below(&world->chance, LIMIT_RECORDS)};
  limit_key_t *key = &world->key[out->key];
  out->before = key->state;
  out->deed = draw_deed(world, key);
  if (out->deed == LIMIT_FORGET) {
    forget(world, key);
    key->record[out->record] = (limit_record_t){0};
  } else if (out->deed == LIMIT_DROP) {
    key->record[out->record] = (limit_record_t){0};
  } else if (out->deed == LIMIT_GARBLE) {
    key->state = (limit_state_t){0};
    key->garbled = true;
  } else {
    ask(world, key, out);
  }
  out->garbled = key->garbled;
  out->after = key->state;
  out->record_after = key->record[out->record];
}

void limit_world_init(limit_world_t *world, uint64_t seed) {
  *world = (limit_world_t){.chance = {seed}};
  for (size_t i = 0; i < LIMIT_KEYS; i++) {
    world->key[i].now = draw_beginning(world);
    world->key[i].calm = limit_once_in(&world->chance, 2);
    draw_policy(world, &world->key[i].policy);
  }
}
