#include "support/models/limit_model.h"

#include <string.h>

typedef __uint128_t wide_t;

/* None is negative. */
static wide_t wide(int64_t a) {
  return (uint64_t)a;
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int64_t largest(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static wide_t times(int64_t a, int64_t b) {
  return wide(a) * wide(b);
}

static wide_t divided_up(wide_t a, int64_t b) {
  return (a + wide(b) - 1) / wide(b);
}

/* A number that does not fit is larger than any that it is compared with. */
static int64_t narrow(wide_t a) {
  return a > INT64_MAX ? INT64_MAX : (int64_t)a;
}

/* a - b, but not less than 0. */
static int64_t less_by(int64_t a, wide_t b) {
  return b < wide(a) ? a - (int64_t)b : 0;
}

/* When a window begins that begins now. */
static int64_t beginning(const limit_rule_t *rule, int64_t now) {
  return rule->kind == LIMIT_ALIGNED ? now - now % rule->p : now;
}

static bool is_empty(const limit_used_t *used) {
  return used->b == 0 && (used->rule.kind == LIMIT_BUCKET ? used->a : used->c) == 0;
}

static bool is_counted(limit_kind_t kind) {
  return kind == LIMIT_FIXED || kind == LIMIT_ALIGNED || kind == LIMIT_ALLOTMENT;
}

/* ---- time ---- */

/* Advances to the present window. Returns true if old receipts become void without other signs. */
static bool pass_window(limit_used_t *used, int64_t now) {
  const limit_rule_t *rule = &used->rule;
  if (is_empty(used))
    return false;
  if (used->a > now)
    used->a = beginning(rule, now);
  int64_t age = now - used->a;
  if (age < rule->p)
    return false;
  if (rule->kind == LIMIT_SLIDING && age - rule->p < rule->p) {
    used->a += rule->p;
    used->c = used->b;
    used->b = 0;
    return false;
  }
  used->a = used->b = used->c = 0;
  return rule->kind == LIMIT_ALLOTMENT;
}

static bool pass(limit_used_t *used, int64_t elapsed, int64_t now) {
  if (used->rule.kind != LIMIT_BUCKET)
    return pass_window(used, now);
  wide_t leaked = times(elapsed, used->rule.r);
  if (leaked > wide(used->a)) /* a forgiven debt leaks after everything else */
    used->c = less_by(used->c, leaked - wide(used->a));
  used->a = less_by(used->a, leaked);
  used->b = less_by(used->b, times(elapsed, used->rule.r));
  return false;
}

/* The weight of the previous window, in 1/p of a token. */
static wide_t weight(const limit_used_t *used, int64_t now) {
  return used->c == 0 ? 0 : times(used->c, used->rule.p - (now - used->a));
}

/* ---- another policy ---- */

/* Tokens of a debt, in units of the new rule. */
static int64_t in_units(int64_t debt, const limit_rule_t *from, const limit_rule_t *to) {
  return narrow(divided_up(times(debt, to->p), from->p));
}

/* The owed tokens up to the former limit, and those above. */
static void count_tokens(const limit_used_t *used, int64_t now, int64_t *within, int64_t *over) {
  const limit_rule_t *rule = &used->rule;
  if (rule->kind == LIMIT_BUCKET) {
    *within = narrow(divided_up(wide(least(used->a, rule->b)), rule->p));
    *over = narrow(divided_up(wide(used->a - least(used->a, rule->b)), rule->p));
    return;
  }
  int64_t tokens = used->b + narrow(divided_up(weight(used, now), rule->p));
  *within = least(tokens, rule->b);
  *over = tokens - *within;
}

static limit_used_t converted(const limit_used_t *from, const limit_rule_t *rule, int64_t now) {
  limit_used_t to = {.rule = *rule};
  int64_t within, over;
  if (from->rule.kind == LIMIT_BUCKET && rule->kind == LIMIT_BUCKET) {
    wide_t old_burst = times(from->rule.b / from->rule.p, rule->p);
    int64_t more = less_by(rule->b, old_burst); /* than could be owed before */
    int64_t debt = in_units(least(from->a, from->rule.b), &from->rule, rule);
    int64_t forgiven = in_units(from->c, &from->rule, rule);
    int64_t again = least(least(forgiven, more), rule->b - least(debt, rule->b));
    over = in_units(less_by(from->a, wide(from->rule.b)), &from->rule, rule);
    within = least(debt, rule->b) + again;
    to.a = to.b = over > LIMIT_DEBT_MOST - within ? LIMIT_DEBT_MOST : within + over;
    to.c = least(narrow(wide(debt) + wide(forgiven) - wide(within)), LIMIT_DEBT_MOST - to.a);
    return to;
  }
  if (from->rule.kind == LIMIT_SLIDING && rule->kind == LIMIT_SLIDING && from->rule.p == rule->p) {
    to.a = from->a;
    to.b = from->b;
    to.c = from->c;
    return to;
  }
  if (is_counted(from->rule.kind) && is_counted(rule->kind)) {
    bool goes_on = !is_empty(from) && now - from->a < rule->p;
    to.b = goes_on ? least(from->b, LIMIT_UNITS_MOST / rule->p) : 0;
    to.a = !goes_on ? 0 : rule->kind == LIMIT_ALIGNED ? beginning(rule, now) : from->a;
    return to;
  }
  count_tokens(from, now, &within, &over);
  if (rule->kind == LIMIT_BUCKET) {
    wide_t debt = times(least(within, rule->b / rule->p) + over, rule->p);
    to.a = to.b = least(narrow(debt), LIMIT_DEBT_MOST);
  } else {
    to.b = least(least(within, rule->b) + over, LIMIT_UNITS_MOST / rule->p);
    to.a = beginning(rule, now);
  }
  return to;
}

static bool is_same(const limit_rule_t *a, const limit_rule_t *b) {
  return a->kind == b->kind && a->p == b->p && a->r == b->r && a->b == b->b;
}

/* ---- how it stands ---- */

typedef struct view {
  limit_state_t now;
  bool was_there;
  bool changed; /* other than by time that passes */
  bool lapsed;  /* by time, and receipts do not tell */
  bool admitted;
} view_t;

static bool has_room(const limit_used_t *used, int64_t cost, int64_t now) {
  const limit_rule_t *rule = &used->rule;
  if (rule->kind == LIMIT_BUCKET)
    return wide(used->a) + times(cost, rule->p) <= wide(rule->b);
  if (used->b > rule->b || cost > rule->b - used->b)
    return false;
  return weight(used, now) <= times(rule->b - used->b - cost, rule->p);
}

/* Tokens that are free; less than none if more than all are taken. */
static int64_t free_tokens(const limit_state_t *is) {
  int64_t least_free = INT64_MAX;
  for (size_t i = 0; i < is->count; i++) {
    const limit_used_t *used = &is->used[i];
    const limit_rule_t *rule = &used->rule;
    int64_t free;
    if (rule->kind == LIMIT_BUCKET)
      free = used->a > rule->b ? -1 : (rule->b - used->a) / rule->p;
    else
      free = rule->b - used->b - narrow(divided_up(weight(used, is->at), rule->p));
    least_free = least(least_free, free);
  }
  return least_free;
}

static view_t view_of(const limit_state_t *state, const limit_request_t *request) {
  const limit_policy_t *policy = request->policy;
  int64_t now = request->now, elapsed = 0;
  view_t view = {.was_there = state->count > 0};
  view.now = view.was_there ? *state : (limit_state_t){.at = now, .since = now};
  limit_state_t *is = &view.now;
  if (now >= is->at) {
    elapsed = now - is->at;
  } else {
    view.changed = true;
    is->ban -= is->at - now;
  }
  view.changed |= view.was_there && is->count != policy->count;
  view.admitted = is->ban <= now;
  for (size_t i = 0; i < policy->count; i++) {
    limit_used_t *used = &is->used[i];
    if (i >= is->count)
      *used = (limit_used_t){.rule = policy->rule[i]};
    view.lapsed |= pass(used, elapsed, now);
    if (!is_same(&used->rule, &policy->rule[i])) {
      *used = converted(used, &policy->rule[i], now);
      view.changed = true;
    }
    view.admitted &= has_room(used, request->cost, now);
  }
  is->at = now;
  is->count = policy->count;
  is->since += view.changed || view.lapsed;
  if (view.changed || view.lapsed || is->last <= now)
    is->last = 0;
  return view;
}

/* ---- taking and giving back ---- */

/* The part of the possible leak in this time that has no debt to leak. */
static wide_t idle(const limit_used_t *used, int64_t wait) {
  wide_t leaks = times(wait, used->rule.r), debt = wide(used->a);
  return leaks > debt ? leaks - debt : 0;
}

/* Charges after a wait: tokens that would be empty before that time are charged as of then. */
static void charge(limit_state_t *is, int64_t cost, int64_t wait) {
  for (size_t i = 0; i < is->count; i++) {
    limit_used_t *used = &is->used[i];
    const limit_rule_t *rule = &used->rule;
    if (rule->kind != LIMIT_BUCKET) {
      if (is_empty(used) || rule->kind == LIMIT_ALLOTMENT)
        used->a = beginning(rule, is->at);
      used->b = least(used->b + cost, LIMIT_UNITS_MOST / rule->p);
      continue;
    }
    int64_t units = narrow(times(cost, rule->p) + idle(used, wait));
    /* clipped debts cannot be distinguished later */
    is->since += used->b > LIMIT_DEBT_MOST - units;
    used->a = least(used->a + units, LIMIT_DEBT_MOST);
    used->b = least(used->b + units, LIMIT_DEBT_MOST);
    used->c = least(used->c, LIMIT_DEBT_MOST - used->a);
  }
}

typedef struct receipt {
  int64_t taken, since, cost;
  const int64_t *thirds;
} receipt_t;

/* Debts are stacked and leak from the bottom. The part of this debt that has not leaked is below
 * all later ones. Later reservations must still find their tokens owed when they act, and the
 * part that they were built upon is not returned. Returns the number of tokens. */
static double give_units(limit_used_t *used, const receipt_t *receipt, int64_t third, int64_t now,
                         int64_t wait) {
  const limit_rule_t *rule = &used->rule;
  wide_t leaked = times(now - receipt->taken, rule->r);
  wide_t before = wide(third); /* all that lay there when it was taken, itself included */
  wide_t later = wide(used->b) + leaked < before ? 0 : wide(used->b) + leaked - before;
  wide_t needed = later == 0 ? 0 : later + times(wait, rule->r);
  int64_t most = less_by(narrow(times(receipt->cost, rule->p)), wait > 0 ? later : 0);
  int64_t given = least(less_by(used->a, needed), most);
  used->a -= given;
  if (later == 0)
    used->b -= given;
  return (double)given / (double)rule->p;
}

static int64_t give_tokens(limit_used_t *used, const receipt_t *receipt, int64_t third) {
  bool is_now = used->rule.kind == LIMIT_ALLOTMENT || third == used->a;
  bool is_before = used->rule.kind == LIMIT_SLIDING && third + used->rule.p == used->a;
  int64_t *from = is_now ? &used->b : is_before ? &used->c : NULL;
  if (from == NULL || is_empty(used))
    return 0;
  int64_t given = least(receipt->cost, *from);
  *from -= given;
  return given;
}

static double give_back(limit_state_t *is, const receipt_t *receipt) {
  double least_given = (double)receipt->cost;
  int64_t wait = largest(is->last - is->at, 0);
  for (size_t i = 0; i < is->count; i++) {
    limit_used_t *used = &is->used[i];
    int64_t third = receipt->thirds[i];
    double given = used->rule.kind == LIMIT_BUCKET ? give_units(used, receipt, third, is->at, wait)
                                                   : (double)give_tokens(used, receipt, third);
    least_given = given < least_given ? given : least_given;
  }
  return least_given;
}

/* ---- reservations ---- */

/* The time at which the cost would be admitted without other requests; -1: never, or too large. */
static int64_t turn_of(const limit_state_t *is, int64_t cost) {
  int64_t turn = is->at;
  for (size_t i = 0; i < is->count; i++) {
    const limit_used_t *used = &is->used[i];
    wide_t debt = wide(used->a) + times(cost, used->rule.p);
    if (debt > LIMIT_DEBT_MOST)
      return -1;
    if (debt > wide(used->rule.b))
      turn = largest(turn, is->at + narrow(divided_up(debt - wide(used->rule.b), used->rule.r)));
  }
  for (size_t i = 0; i < is->count; i++) {
    const limit_used_t *used = &is->used[i];
    wide_t debt = wide(used->a) + idle(used, turn - is->at) + times(cost, used->rule.p);
    if (debt > LIMIT_DEBT_MOST)
      return -1;
  }
  return turn;
}

static void remember(limit_record_t *record, const limit_state_t *is, int64_t act, int64_t cost) {
  *record = (limit_record_t){.what = LIMIT_RESERVED,
                             .act = act,
                             .taken = is->at,
                             .since = is->since,
                             .cost = cost,
                             .count = is->count};
  for (size_t i = 0; i < is->count; i++)
    record->thirds[i] = is->used[i].b;
}

/* ---- all of it ---- */

/* How long something is owed, or banned, from now on. */
static int64_t lasts(const limit_state_t *is) {
  int64_t left = largest(is->ban - is->at, 0);
  for (size_t i = 0; i < is->count; i++) {
    const limit_used_t *used = &is->used[i];
    const limit_rule_t *rule = &used->rule;
    if (rule->kind == LIMIT_BUCKET)
      left = largest(left, narrow(divided_up(wide(used->a + used->c), rule->r)));
    else if (!is_empty(used))
      left = largest(left, used->a - is->at + rule->p +
                               (rule->kind == LIMIT_SLIDING && used->b > 0 ? rule->p : 0));
  }
  return left;
}

static int64_t in_ms(int64_t us) {
  return us / 1000 + (us % 1000 != 0);
}

static void write_state(limit_state_t *state, limit_outcome_t *outcome) {
  int64_t left = lasts(&outcome->reply);
  if (left > 0) {
    *state = outcome->reply;
    outcome->key = LIMIT_SET;
    outcome->key_ttl_ms = in_ms(left);
  } else if (state->count > 0) {
    *state = (limit_state_t){0};
    outcome->key = LIMIT_GONE;
  }
}

/* True if the reservation was made; then the result shows the state after it. */
static bool try_reserve(limit_record_t *record, const limit_request_t *request, const view_t *view,
                        limit_outcome_t *outcome) {
  limit_state_t *is = &outcome->reply;
  if (record->what != LIMIT_NO_RECORD) {
    outcome->answer = record->what == LIMIT_CANCELED ? -1 : largest(record->act - request->now, 0);
    return false;
  }
  int64_t act = turn_of(&view->now, request->cost);
  outcome->answer = -1;
  if (act < 0 || act - request->now > request->longest || is->ban > request->now)
    return false;
  outcome->answer = act - request->now;
  charge(is, request->cost, outcome->answer);
  if (act > request->now)
    is->last = largest(is->last, act);
  remember(record, is, act, request->cost);
  outcome->record = LIMIT_SET;
  outcome->record_ttl_ms = in_ms(largest(lasts(is), request->remember));
  return true;
}

static bool cancel(limit_record_t *record, const limit_request_t *request,
                   limit_outcome_t *outcome) {
  limit_state_t *is = &outcome->reply;
  bool gives = record->what == LIMIT_RESERVED && record->since == is->since &&
               record->count == is->count && record->taken <= request->now;
  double returned = record->what == LIMIT_CANCELED ? record->returned : 0;
  if (gives) {
    receipt_t receipt = {record->taken, record->since, record->cost, record->thirds};
    returned = give_back(is, &receipt);
  }
  returned = -1 - (-1 - returned); /* rounded as it is stored: a repeated answer is equal */
  *record = (limit_record_t){.what = LIMIT_CANCELED, .returned = returned};
  outcome->returned = returned;
  outcome->answer = (int64_t)returned;
  outcome->record = LIMIT_SET;
  outcome->record_ttl_ms = in_ms(request->remember);
  return gives;
}

static bool refund(const limit_request_t *request, limit_outcome_t *outcome) {
  receipt_t receipt = {request->taken, request->since, request->cost, request->thirds};
  if (receipt.since != outcome->reply.since || receipt.taken > request->now)
    return false;
  outcome->returned = give_back(&outcome->reply, &receipt);
  outcome->answer = (int64_t)outcome->returned;
  return true;
}

static bool take_slice(const limit_request_t *request, limit_outcome_t *outcome) {
  int64_t tokens = least(request->cost, free_tokens(&outcome->reply));
  bool is_of_use = tokens >= request->fewest && outcome->reply.ban <= request->now;
  outcome->answer = is_of_use ? tokens : -1;
  if (is_of_use)
    charge(&outcome->reply, tokens, 0);
  return is_of_use;
}

limit_outcome_t limit_model(limit_state_t *state, limit_record_t *record,
                            const limit_request_t *request) {
  view_t view = view_of(state, request);
  limit_outcome_t outcome = {.reply = view.now};
  bool done = false;
  switch (request->op) {
  case LIMIT_TAKE:
    done = view.admitted && request->cost > 0;
    outcome.answer = view.admitted ? 0 : -1;
    break;
  case LIMIT_SLICE:
    done = take_slice(request, &outcome);
    break;
  case LIMIT_PEEK:
    outcome.answer = view.admitted ? 0 : -1;
    return outcome;
  case LIMIT_PENALTY:
    done = true;
    break;
  case LIMIT_REFUND:
    done = refund(request, &outcome);
    break;
  case LIMIT_BAN:
    outcome.reply.ban = request->now + request->ban_us;
    done = true;
    break;
  case LIMIT_RESERVE:
    done = try_reserve(record, request, &view, &outcome);
    break;
  case LIMIT_CANCEL:
    done = cancel(record, request, &outcome);
    break;
  }
  if (done && (request->op == LIMIT_TAKE || request->op == LIMIT_PENALTY))
    charge(&outcome.reply, request->cost, 0);
  if (request->op == LIMIT_TAKE && request->cost == 0) /* a peek */
    return outcome;
  if (done || (view.changed && view.was_there))
    write_state(state, &outcome);
  return outcome;
}

/* ---- when ---- */

/* Of one window, by its own; -1: never. */
static int64_t window_turn(const limit_used_t *used, int64_t cost, int64_t now) {
  limit_used_t is = *used;
  const limit_rule_t *rule = &is.rule;
  for (int64_t from = now;;) {
    if (has_room(&is, cost, from))
      return from;
    if (is_empty(&is))
      return -1;
    if (rule->kind == LIMIT_SLIDING && is.b <= rule->b && cost <= rule->b - is.b) {
      int64_t room = rule->b - is.b - cost; /* c * (p - age) <= room * p */
      return is.a + rule->p - (int64_t)(times(room, rule->p) / wide(is.c));
    }
    from = is.a + rule->p;
    pass_window(&is, from);
  }
}

int64_t limit_model_retry(const limit_state_t *reply, int64_t cost) {
  int64_t when = largest(reply->at, reply->ban);
  for (size_t i = 0; i < reply->count; i++) {
    const limit_used_t *used = &reply->used[i];
    const limit_rule_t *rule = &used->rule;
    int64_t turn;
    if (rule->kind == LIMIT_BUCKET) {
      wide_t debt = wide(used->a) + times(cost, rule->p), room = wide(rule->b);
      turn = times(cost, rule->p) > room ? -1
             : debt <= room              ? reply->at
                                         : reply->at + narrow(divided_up(debt - room, rule->r));
    } else {
      turn = window_turn(used, cost, reply->at);
    }
    if (turn < 0)
      return -1;
    when = largest(when, turn);
  }
  return when;
}
