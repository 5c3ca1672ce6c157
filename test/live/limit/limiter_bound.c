/* Many processes take as much as they can, also under faults. By the server's own times, no
 * interval admits more than the policy allows, and every admitted token is counted.
 *
 * BELAY_SOAK_SECONDS in the environment: seconds for both cases together; default 3. */
#include <signal.h>
#include <stdio.h>

#include "support/fixtures/limit/asks.h"
#include "support/base/never.h"
#include "support/servers/process.h"
#include "support/deployments/relay.h"

#define S INT64_C(1000000)

enum {
  PROCESSES = 16,
  KINDS = 5,
  COST_MAX = 3,
  PERIOD = 200000,
  COUNT = 60,
  BURST = 50,
  RATE = 400
};

/* Beside the first policy an allotment counts everything. */
static const belay_limit_t policies[KINDS][2] = {
    {{BELAY_LIMIT_BUCKET, RATE, S, BURST, false},
     {BELAY_LIMIT_BUCKET, 0, 3600 * S, 1000000, false}},
    {{BELAY_LIMIT_FIXED, COUNT, PERIOD, 0, false}},
    {{BELAY_LIMIT_FIXED, COUNT, PERIOD, 0, true}},
    {{BELAY_LIMIT_SLIDING, COUNT, PERIOD, 0, false}},
    {{BELAY_LIMIT_LOG, COUNT, PERIOD, 0, false}},
};

static int64_t duration_ms(void) {
  const char *text = getenv("BELAY_SOAK_SECONDS");
  return text != NULL ? strtoll(text, NULL, 10) * 500 : 1500;
}

/* ---- who takes ---- */

static struct {
  belay_limiter_t *limiter[KINDS];
  int64_t until;
  int64_t unknown; /* tokens of the first kind that may have been taken */
} hammer;

static void again(ask_t *ask);

static void strike(ask_t *ask) {
  size_t kind = (size_t)(uintptr_t)ask->arg;
  ask->then = again;
  ask->request.timeout_ms = 0;
  start_take(ask->env, hammer.limiter[kind], ask, "k", ask->begun % COST_MAX + 1);
}

/* Reports what was admitted, when, and by which policy; then takes again. */
static void again(ask_t *ask) {
  size_t kind = (size_t)(uintptr_t)ask->arg;
  const belay_limiter_result_t *result = &ask->result;
  int64_t cost = (ask->begun - 1) % COST_MAX + 1;
  if (result->verdict == BELAY_ALLOWED) {
    printf("%zu %lld %lld\n", kind, (long long)result->receipt.belay_private[2], (long long)cost);
    fflush(stdout);
  } else if (result->verdict == BELAY_INDETERMINATE && kind == 0 &&
             (result->cause == BELAY_EUNKNOWN || result->cause == BELAY_ECANCELED)) {
    hammer.unknown += cost;
  }
  if (clock_now() < hammer.until)
    strike(ask);
}

static int be_hammer(const char *url, const char *ms) {
  belay_client_options_t options = client_options();
  options.timeout_ms = 300 * slow();
  options.reconnect_max_ms = 20;
  env_t *env = env_open_at(url, &options);
  static ask_t asks[2 * KINDS];
  int64_t duration_ms = strtoll(ms, NULL, 10);
  hammer.until = clock_now() + duration_ms * MS;
  for (size_t i = 0; i < KINDS; i++) {
    char name[] = {(char)('0' + i), '\0'};
    belay_limiter_options_t o = limiter_options(policies[i], i == 0 ? 2 : 1);
    o.name = belay_bytes(name, 1);
    hammer.limiter[i] = limiter_with(env, env->client, &o);
  }
  for (size_t i = 0; i < 2 * KINDS; i++) {
    asks[i].env = env;
    asks[i].arg = (void *)(uintptr_t)(i % KINDS);
    strike(&asks[i]);
  }
  env_run_for(env, duration_ms); /* a soak is longer than env_until() waits */
  for (size_t i = 0; i < 2 * KINDS; i++)
    env_until(env, clock_now() >= hammer.until && asks[i].ended == asks[i].begun);
  printf("end %lld 0\n", (long long)hammer.unknown);
  env_close(env);
  return 0;
}

/* ---- what they took ---- */

typedef struct admission {
  int64_t at, cost;
} admission_t;

typedef struct admissions {
  admission_t *all[KINDS];
  size_t n[KINDS], room[KINDS];
  int64_t tokens[KINDS], unknown;
  unsigned ended;
} admissions_t;

static void count_line(admissions_t *admissions, const char *line) {
  long long at, cost;
  if (sscanf(line, "end %lld", &at) == 1) {
    admissions->ended++;
    admissions->unknown += at;
    return;
  }
  unsigned kind;
  if (sscanf(line, "%u %lld %lld", &kind, &at, &cost) != 3 || kind >= KINDS || cost > COST_MAX)
    return; /* one that was killed in the middle of a line */
  if (admissions->n[kind] == admissions->room[kind]) {
    admissions->room[kind] = 2 * admissions->room[kind] + 1024;
    admissions->all[kind] =
        realloc(admissions->all[kind], admissions->room[kind] * sizeof *admissions->all[kind]);
    assert_non_null(admissions->all[kind]);
  }
  admissions->all[kind][admissions->n[kind]++] = (admission_t){at, cost};
  admissions->tokens[kind] += cost;
}

static void count_lines(admissions_t *admissions, process_t *process) {
  char line[64];
  while (process_read_line(process, line, sizeof line))
    count_line(admissions, line);
  (void)process_wait(process);
}

static int by_time(const void *a, const void *b) {
  int64_t x = ((const admission_t *)a)->at, y = ((const admission_t *)b)->at;
  return (x > y) - (x < y);
}

static void sort_all(admissions_t *admissions) {
  for (size_t kind = 0; kind < KINDS; kind++)
    qsort(admissions->all[kind], admissions->n[kind], sizeof **admissions->all, by_time);
}

/* No interval [t, t + d] has more than burst + d * rate / second. In other words: the admitted
 * tokens up to a time, minus that time's share, never exceed the same difference at an earlier
 * time by more than the burst. */
static void expect_bucket_bound(const admissions_t *admissions) {
  const admission_t *all = admissions->all[0];
  int64_t sum = 0, least = 0;
  for (size_t i = 0; i < admissions->n[0]; i++) {
    int64_t share = (all[i].at - all[0].at) * RATE;
    if (i == 0 || sum * S - share < least)
      least = sum * S - share;
    sum += all[i].cost;
    if (sum * S - share - least > BURST * S)
      fail_msg("a bucket admits too much up to admission %zu", i);
  }
}

/* No interval shorter than length has more than most. */
static void expect_at_most(const admissions_t *admissions, size_t kind, int64_t length,
                           int64_t most) {
  const admission_t *all = admissions->all[kind];
  int64_t sum = 0;
  for (size_t i = 0, first = 0; i < admissions->n[kind]; i++) {
    sum += all[i].cost;
    while (all[i].at - all[first].at >= length)
      sum -= all[first++].cost;
    if (sum > most)
      fail_msg("kind %zu: %lld in %lld us", kind, (long long)sum,
               (long long)(all[i].at - all[first].at));
  }
}

/* Between multiples of the period. */
static void expect_aligned_bound(const admissions_t *admissions) {
  const admission_t *all = admissions->all[2];
  int64_t sum = 0;
  for (size_t i = 0; i < admissions->n[2]; i++) {
    bool same = i > 0 && all[i].at / PERIOD == all[i - 1].at / PERIOD;
    sum = (same ? sum : 0) + all[i].cost;
    assert_never(sum > COUNT);
  }
}

/* From the first on, and then from the first after that; if none is missing. */
static void expect_fixed_bound(const admissions_t *admissions) {
  const admission_t *all = admissions->all[1];
  int64_t sum = 0, since = INT64_MIN / 2;
  for (size_t i = 0; i < admissions->n[1]; i++) {
    if (all[i].at >= since + PERIOD) {
      since = all[i].at;
      sum = 0;
    }
    sum += all[i].cost;
    assert_never(sum > COUNT);
  }
}

/* In d up to a period, count and d's share of it. */
static void expect_sliding_bound(const admissions_t *admissions) {
  const admission_t *all = admissions->all[3];
  for (size_t first = 0; first < admissions->n[3]; first++) {
    int64_t sum = 0;
    for (size_t i = first; i < admissions->n[3] && all[i].at - all[first].at <= PERIOD; i++) {
      sum += all[i].cost;
      assert_never((sum - COUNT) * PERIOD > (all[i].at - all[first].at) * COUNT);
    }
  }
}

static double number_at(const char *bytes, size_t at) {
  uint64_t bits = 0;
  double number;
  for (size_t i = 0; i < 8; i++)
    bits |= (uint64_t)(unsigned char)bytes[at + i] << 8 * i;
  memcpy(&number, &bits, sizeof number);
  return number;
}

/* The allotment counts all allowed takes and at most the unknown ones in addition. */
static void expect_all_to_be_counted(const admissions_t *admissions, server_t *server,
                                     int64_t killed) {
  const resp_t *value = server_ask(server, "GET", "belay::limit::0::{k}", NULL);
  assert_int_equal(value->type, RESP_STRING);
  assert_int_equal(value->len, 32 + 2 * 56);
  int64_t counted = (int64_t)number_at(value->str, 32 + 56 + 8);
  assert_between(counted, admissions->tokens[0],
                 admissions->tokens[0] + admissions->unknown + killed);
  if (admissions->unknown + killed == 0)
    assert_int_equal(counted, admissions->tokens[0]);
}

static void expect_bounds(admissions_t *admissions) {
  sort_all(admissions);
  expect_bucket_bound(admissions);
  expect_at_most(admissions, 1, PERIOD, 2 * COUNT);
  expect_aligned_bound(admissions);
  expect_sliding_bound(admissions);
  expect_at_most(admissions, 4, PERIOD, COUNT);
}

static void forget(admissions_t *admissions) {
  for (size_t kind = 0; kind < KINDS; kind++)
    free(admissions->all[kind]);
}

static process_t start_hammer(const char *url, int64_t ms) {
  char text[24];
  snprintf(text, sizeof text, "%lld", (long long)ms);
  const char *argv[] = {process_self(), "--hammer", url, text, NULL};
  return process_start(argv);
}

/* ---- the tests ---- */

TEST_ON(many_take_what_they_can, server, server_start(NULL)) {
  process_t process[PROCESSES];
  admissions_t admissions = {0};
  for (int i = 0; i < PROCESSES; i++)
    process[i] = start_hammer(server_url(server), duration_ms());
  for (int i = 0; i < PROCESSES; i++)
    count_lines(&admissions, &process[i]);
  assert_int_equal(admissions.ended, PROCESSES);
  expect_bounds(&admissions);
  if (admissions.unknown == 0) /* nothing took so long that it was given up */
    expect_fixed_bound(&admissions);
  expect_all_to_be_counted(&admissions, server, 0);
  /* And it is not the processes that were slow: the limits were reached. */
  for (size_t kind = 0; kind < KINDS; kind++)
    assert_true(admissions.tokens[kind] >=
                (kind == 0 ? RATE : COUNT * S / PERIOD) * duration_ms() / 1000 / (2 * slow()));
  forget(&admissions);
}

/* Clients are killed, connections cut, scripts flushed, and the server restarts with its data. */
TEST_ON(many_take_while_everything_fails, server,
        server_start(&(server_options_t){
            .arguments = {"--appendonly", "yes", "--appendfsync", "always"}})) {
  relay_t *relay = relay_start(server_path(server));
  enum { WORKERS = 8, VICTIMS = 4 };
  process_t process[WORKERS], victim[VICTIMS];
  admissions_t admissions = {0};
  int64_t ms = duration_ms(), began = clock_now();
  for (int i = 0; i < WORKERS; i++)
    process[i] = start_hammer(i % 2 == 0 ? server_url(server) : relay_url(relay), ms);
  for (int i = 0; i < VICTIMS; i++)
    victim[i] = start_hammer(i % 2 == 0 ? server_url(server) : relay_url(relay), 600000);
  bool again_begun = false;
  for (int turn = 0, killed = 0; clock_since_ms(began) < ms; turn++) {
    stall_ms(ms / 30);
    if (turn % 3 == 0)
      relay_cut(relay);
    if (turn % 2 == 0)
      server_do(server, "SCRIPT", "FLUSH", NULL);
    if (turn % 5 == 4 && killed < VICTIMS)
      process_kill(&victim[killed++], SIGKILL);
    if (!again_begun && clock_since_ms(began) > ms / 2) {
      again_begun = true;
      server_restart(server);
    }
  }
  for (int i = 0; i < VICTIMS; i++) {
    process_kill(&victim[i], SIGKILL);
    count_lines(&admissions, &victim[i]);
  }
  for (int i = 0; i < WORKERS; i++)
    count_lines(&admissions, &process[i]);
  assert_true(again_begun);
  assert_int_equal(admissions.ended, WORKERS);
  assert_true(admissions.unknown > 0);
  expect_bounds(&admissions);
  expect_all_to_be_counted(&admissions, server, VICTIMS * 2 * COST_MAX);
  for (size_t kind = 0; kind < KINDS; kind++)
    assert_true(admissions.tokens[kind] >= COUNT);
  forget(&admissions);
  relay_stop(relay);
}

TEST_ROLE(hammer, "--hammer") {
  return be_hammer(argv[2], argv[3]);
}
