/* Checkers: limits, their debts, and requests. */
#include <string.h>

#include "sim/check/limit_state.h"

/* ---- the policy ---- */

static belay_limit_t bucket(sim_random_t *random) {
  static const int64_t uneven[] = {0, 1, 7, 4321};
  return (belay_limit_t){.kind = BELAY_LIMIT_BUCKET,
                         .count = SIM_LIMIT_MOST - uneven[sim_below(random, 4)],
                         .period_us = (int64_t)sim_between(random, 60, 1500) * 1000,
                         .burst = SIM_LIMIT_MOST};
}

static belay_limit_t window(sim_random_t *random, belay_limit_kind_t kind) {
  return (belay_limit_t){.kind = kind,
                         .count = SIM_LIMIT_MOST,
                         .period_us = (int64_t)sim_between(random, 60, 1500) * 1000,
                         .aligned = kind == BELAY_LIMIT_FIXED && sim_chance(random, 500)};
}

static void choose_policy(sim_world_t *world, sim_limits_t *limits) {
  sim_random_t *random = &world->random;
  unsigned which = world->scenario->kind == SIM_LIMITER ? (unsigned)sim_below(random, 8) : 0;
  limits->n = 1;
  limits->limit[0] = bucket(random);
  if (world->scenario->kind == SIM_RESERVE && sim_chance(random, 250)) {
    limits->limit[limits->n] = bucket(random);
    limits->limit[limits->n++].burst /= 4;
  }
  if (world->scenario->kind == SIM_SLICE) {
    limits->slice = SIM_LIMIT_MOST / (int64_t)sim_between(random, 2, 12);
    limits->lease_ms = (uint32_t)sim_between(random, 40, 600);
    which = (unsigned)sim_below(random, 7);
  }
  if (which == 4)
    limits->limit[0] = window(random, BELAY_LIMIT_FIXED);
  if (which == 5)
    limits->limit[0] = window(random, BELAY_LIMIT_SLIDING);
  if (which > 5)
    limits->limit[limits->n++] = window(random, BELAY_LIMIT_SLIDING);
  if (which > 6)
    limits->limit[limits->n++] = window(random, BELAY_LIMIT_FIXED);
}

sim_limits_t *sim_limits_of(sim_world_t *world) {
  sim_limits_t *limits = sim_shared(world, sizeof *limits);
  if (!limits->begun) {
    limits->begun = true;
    choose_policy(world, limits);
    for (size_t i = 0; i < limits->n; i++)
      sim_note(world, "world", "limit %zu: kind %d, %lld in %lld us", i, limits->limit[i].kind,
               (long long)limits->limit[i].count, (long long)limits->limit[i].period_us);
  }
  return limits;
}

int64_t sim_limits_most(const sim_limits_t *limits) {
  int64_t most = SIM_LIMIT_MOST;
  for (size_t i = 0; i < limits->n; i++)
    if (limits->limit[i].kind == BELAY_LIMIT_BUCKET && limits->limit[i].burst < most)
      most = limits->limit[i].burst;
  return most;
}

int64_t sim_limits_slice(const sim_limits_t *limits, uint32_t *lease_ms) {
  *lease_ms = limits->lease_ms;
  return limits->slice;
}

const belay_limit_t *sim_limits_policy(const sim_limits_t *limits, size_t *n) {
  *n = limits->n;
  return limits->limit;
}

/* ---- requests ---- */

unsigned sim_limits_number(sim_world_t *world, sim_limit_kind_t kind, unsigned key,
                           uint64_t times) {
  sim_limits_t *limits = sim_limits_of(world);
  unsigned most = world->phase < SIM_HEALED ? SIM_LIMIT_REQUESTS - SIM_LIMIT_HEALING_REQUESTS
                                            : SIM_LIMIT_REQUESTS;
  if (limits->requests + 1 >= most)
    return 0;
  unsigned number = ++limits->requests;
  limits->request[number] =
      (sim_limit_request_t){.kind = (uint8_t)kind,
                            .key = (uint8_t)key,
                            .cost = (int64_t)(times * SIM_LIMIT_REQUESTS + number)};
  return number;
}

sim_limit_request_t *sim_limits_request(sim_world_t *world, unsigned number) {
  return &sim_limits_of(world)->request[number];
}

/* ---- rules: bound, due ---- */

/* The debt, in units, after it has leaked since a time. */
static int64_t leaked(const belay_limit_t *limit, int64_t debt, uint64_t since, uint64_t now) {
  uint64_t us = now > since ? now - since : 0;
  return us <= (uint64_t)(debt / limit->count) ? debt - (int64_t)us * limit->count : 0;
}

typedef struct debt {
  int64_t used, charged; /* units of a bucket */
  uint64_t at_us;
} debt_t;

static void add(const belay_limit_t *limit, debt_t *debt, const sim_entry_t *entry) {
  uint64_t at = entry->at_us;
  debt->used = leaked(limit, debt->used, debt->at_us, at) + entry->used * limit->period_us;
  debt->charged = leaked(limit, debt->charged, debt->at_us, at) + entry->charged * limit->period_us;
  debt->at_us = at;
}

static debt_t begin(const sim_account_t *account, size_t i) {
  return (debt_t){
      .used = account->used[i], .charged = account->charged[i], .at_us = account->before_us};
}

int64_t sim_account_over(const sim_account_t *account, const belay_limit_t *limit, size_t i,
                         size_t from) {
  debt_t debt = begin(account, i);
  int64_t over = INT64_MIN;
  for (size_t j = 0; j < account->len; j++) {
    add(limit, &debt, &account->entry[j]);
    int64_t more = debt.used - limit->burst * limit->period_us;
    if (j >= from && account->entry[j].used > 0 && more > over)
      over = more;
  }
  return over;
}

/* Any interval that ends with the last entry, up to P, has no more than count + d * count / P. */
static int64_t sliding_over(const sim_account_t *account, const belay_limit_t *limit) {
  const sim_entry_t *last = &account->entry[account->len - 1];
  int64_t sum = 0, over = INT64_MIN;
  for (size_t j = account->len; j-- > 0;) {
    int64_t d = (int64_t)(last->at_us - account->entry[j].at_us);
    if (d > limit->period_us)
      break;
    sum += account->entry[j].used;
    int64_t more = (sum - limit->count) * limit->period_us - d * limit->count;
    if (more > over)
      over = more;
  }
  return over;
}

static int64_t sum_since(const sim_account_t *account, uint64_t since_us, bool used) {
  int64_t sum = 0;
  for (size_t j = account->len; j-- > 0 && account->entry[j].at_us >= since_us;)
    sum += used ? account->entry[j].used : account->entry[j].charged;
  return sum;
}

/* The windows of a limit that is alone are known, because its refunds are. Otherwise no
 * interval has more than two windows. */
static int64_t fixed_over(const sim_limits_t *limits, const sim_account_t *account,
                          const belay_limit_t *limit) {
  uint64_t now = account->entry[account->len - 1].at_us, period = (uint64_t)limit->period_us;
  if (limit->aligned)
    return sum_since(account, now - now % period, true) - limit->count;
  if (limits->n > 1)
    return sum_since(account, now - period + 1, true) - 2 * limit->count;
  return account->in_window - limit->count;
}

void sim_check_bound(sim_server_t *server, const sim_limits_t *limits, unsigned key, size_t from) {
  const sim_account_t *account = &limits->account[key];
  for (size_t i = 0; i < limits->n && !account->blurred; i++) {
    const belay_limit_t *limit = &limits->limit[i];
    int64_t over = limit->kind == BELAY_LIMIT_BUCKET    ? sim_account_over(account, limit, i, from)
                   : limit->kind == BELAY_LIMIT_SLIDING ? sliding_over(account, limit)
                                                        : fixed_over(limits, account, limit);
    if (over > 0)
      sim_violation(
          server->world, "bound: %s has admitted %lld of k%u, which limit %zu has no room for",
          server->name, (long long)limits->request[account->entry[from].request].cost, key, i);
  }
}

/* True if a limit has no room for this many tokens now, or within a number of microseconds. */
static bool is_full(const sim_account_t *account, const belay_limit_t *limit, size_t i,
                    uint64_t now, int64_t cost, int64_t within_us) {
  if (limit->kind == BELAY_LIMIT_BUCKET) {
    debt_t debt = begin(account, i);
    for (size_t j = 0; j < account->len && account->entry[j].at_us <= now; j++)
      add(limit, &debt, &account->entry[j]);
    debt.charged = leaked(limit, debt.charged, debt.at_us, now);
    for (size_t j = account->len; j-- > 0 && account->entry[j].at_us > now;) /* on credit */
      debt.charged += account->entry[j].charged * limit->period_us;
    return debt.charged + (cost - limit->burst) * limit->period_us > within_us * limit->count;
  }
  uint64_t span = (uint64_t)limit->period_us * (limit->kind == BELAY_LIMIT_SLIDING ? 2 : 1);
  return sum_since(account, now - span, false) + cost > limit->count;
}

void sim_check_due(sim_server_t *server, const sim_limits_t *limits, unsigned key, int64_t cost,
                   uint64_t now, int64_t within_us) {
  const sim_account_t *account = &limits->account[key];
  if (account->murky || account->blurred)
    return;
  for (size_t i = 0; i < limits->n; i++)
    if (is_full(account, &limits->limit[i], i, now, cost, within_us))
      return;
  sim_violation(server->world, "due: %s denies %lld of k%u, and there is room", server->name,
                (long long)cost, key);
}

/* ---- accounts ---- */

static void sum_up(const sim_limits_t *limits, sim_account_t *account) {
  for (size_t i = 0; i < limits->n; i++) {
    debt_t debt = begin(account, i);
    for (size_t j = 0; j < SIM_ENTRIES / 2 && limits->limit[i].kind == BELAY_LIMIT_BUCKET; j++)
      add(&limits->limit[i], &debt, &account->entry[j]);
    account->used[i] = debt.used;
    account->charged[i] = debt.charged;
  }
  account->before_us = account->entry[SIM_ENTRIES / 2 - 1].at_us;
  account->len -= SIM_ENTRIES / 2;
  memmove(account->entry, account->entry + SIM_ENTRIES / 2, account->len * sizeof *account->entry);
}

static void count_in_window(const sim_limits_t *limits, sim_account_t *account, uint64_t now,
                            int64_t tokens) {
  const belay_limit_t *limit = &limits->limit[0];
  if (limit->kind != BELAY_LIMIT_FIXED)
    return;
  if (account->in_window == 0 || now >= account->window_us + (uint64_t)limit->period_us) {
    account->window_us = now;
    account->in_window = 0;
  }
  account->in_window += tokens;
}

size_t sim_account_charge(const sim_limits_t *limits, sim_account_t *account, unsigned number,
                          uint64_t at_us, bool used) {
  const sim_limit_request_t *request = &limits->request[number];
  if (account->len == SIM_ENTRIES)
    sum_up(limits, account);
  size_t at = account->len++;
  for (; at > 0 && account->entry[at - 1].at_us > at_us; at--)
    account->entry[at] = account->entry[at - 1];
  account->entry[at] = (sim_entry_t){.at_us = at_us,
                                     .request = number,
                                     .used = used ? request->cost : 0,
                                     .charged = request->cost};
  count_in_window(limits, account, at_us, request->cost);
  return at;
}

void sim_account_give_back(const sim_limits_t *limits, sim_account_t *account, unsigned number,
                           int64_t unused, int64_t returned) {
  account->blurred |= returned > 0 && limits->request[number].at_us == account->reset_us;
  bool done = false;
  for (size_t j = account->len; j-- > 0;) {
    sim_entry_t *entry = &account->entry[j];
    if (entry->request != number)
      continue;
    entry->used = entry->used > unused ? entry->used - unused : 0;
    if (done || entry->charged == 0)
      continue;
    entry->charged -= returned < entry->charged ? returned : entry->charged;
    if (entry->at_us >= account->window_us)
      account->in_window -= returned;
    done = true;
  }
}
