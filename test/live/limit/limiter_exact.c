/* The numbers in a limiter's results hold to the microsecond, after any history. */
#include <stdio.h>

#include "support/fixtures/limit/asks.h"
#include "support/load/player.h"

#define S INT64_C(1000000)
#define T0 (INT64_C(1700000000) * S)
#define KEY "belay::limit::test::{k}"
#define FRESH "belay::limit::test::{fresh}"

/* ---- policies, and what happens to them ---- */

static unsigned seed = 1;

static int64_t below(int64_t n) {
  return ((int64_t)rand_r(&seed) << 15 ^ rand_r(&seed)) % n;
}

static belay_limit_t random_limit(belay_limit_kind_t kind) {
  /* So long that nothing expires meanwhile by the server's own clock. */
  static const int64_t periods[] = {1000 * S,  1000000007,           3600 * S,
                                    86400 * S, INT64_C(86399999999), INT64_C(999999999989)};
  belay_limit_t limit = {
      .kind = kind, .count = below(30) + 1, .period_us = periods[below(6)] * (below(5) + 1)};
  if (kind == BELAY_LIMIT_BUCKET) {
    limit.burst = below(30) + 1;
    if (below(4) == 0)
      limit.count = 0;
  }
  limit.aligned = kind == BELAY_LIMIT_FIXED && below(2) == 0;
  return limit;
}

typedef struct fixture {
  env_t *env;
  belay_limiter_t *limiter;
  belay_limit_t limits[BELAY_LIMITER_LIMITS_MAX];
  size_t n;
  int64_t now, most; /* the smallest burst */
  bool log;
} fixture_t;

static void to_time(fixture_t *fixture, int64_t now) {
  fixture->now = now;
  limiter_at(fixture->limiter, now);
}

static void pick_limits(fixture_t *fixture) {
  fixture->n = fixture->log ? 1 : (size_t)(below(3) > 0 ? 1 : below(4) + 1);
  fixture->most = INT64_MAX;
  for (size_t i = 0; i < fixture->n; i++) {
    belay_limit_t *limit = &fixture->limits[i];
    *limit = random_limit(fixture->log ? BELAY_LIMIT_LOG : (belay_limit_kind_t)(below(3) + 1));
    int64_t most = limit->burst > 0 ? limit->burst : limit->count;
    fixture->most = most < fixture->most ? most : fixture->most;
  }
}

static void fixture_open(fixture_t *fixture, env_t *env, bool log) {
  *fixture = (fixture_t){.env = env, .log = log};
  pick_limits(fixture);
  fixture->limiter = limiter_new(env, fixture->limits, fixture->n);
  to_time(fixture, T0 + below(10000 * S));
  server_do(env->server, "FLUSHALL", NULL);
}

/* A time like those that matter under the policy. */
static int64_t step(const fixture_t *fixture) {
  const belay_limit_t *limit = &fixture->limits[below((int64_t)fixture->n)];
  int64_t per = limit->period_us / (limit->count > 0 ? limit->count : 1);
  return below(5) == 0 ? below(3 * limit->period_us) : below(3 * per + 2);
}

/* Anything may happen; not backwards. */
static void happen(fixture_t *fixture) {
  env_t *env = fixture->env;
  belay_limiter_t *limiter = fixture->limiter;
  to_time(fixture, fixture->now + (below(3) == 0 ? 0 : step(fixture)));
  int64_t cost = below(fixture->most) + 1;
  switch (below(12)) {
  case 0:
    (void)penalty(env, limiter, "k", cost);
    break;
  case 1: {
    belay_limiter_result_t result = *take(env, limiter, "k", cost);
    to_time(fixture, fixture->now + below(2) * step(fixture));
    if (result.verdict == BELAY_ALLOWED)
      (void)refund(env, limiter, "k", &result.receipt, below(cost) + 1);
    break;
  }
  case 2:
    (void)ban(env, limiter, "k", below(2) * step(fixture));
    break;
  case 3:
    if (below(5) == 0)
      (void)reset(env, limiter, "k");
    break;
  default:
    (void)take(env, limiter, "k", below(3) > 0 ? 1 : cost);
    break;
  }
}

static void explain(const fixture_t *fixture) {
  for (size_t i = 0; i < fixture->n; i++) {
    const belay_limit_t *limit = &fixture->limits[i];
    print_message("# kind %d%s, count %lld, period %lld, burst %lld\n", (int)limit->kind,
                  limit->aligned ? " aligned" : "", (long long)limit->count,
                  (long long)limit->period_us, (long long)limit->burst);
  }
}

#define expect(fixture, condition)                                                                 \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      explain(fixture);                                                                            \
      fail_msg("not so: %s", #condition);                                                          \
    }                                                                                              \
  } while (0)

/* Puts back what was under the keys of a policy, so that many questions can be asked of one state.
 */
typedef struct kept {
  char *bytes[2];
  size_t len[2];
} kept_t;

static const char *const names[] = {KEY, KEY "::ban"};

static void keep(fixture_t *fixture, kept_t *kept) {
  for (int i = 0; i < 2; i++) {
    const resp_t *dump = server_ask(fixture->env->server, "DUMP", names[i], NULL);
    kept->len[i] = dump->type == RESP_STRING ? dump->len : 0;
    kept->bytes[i] = malloc(kept->len[i] + 1);
    if (kept->len[i] > 0)
      memcpy(kept->bytes[i], dump->str, kept->len[i]);
  }
}

static void put_back(fixture_t *fixture, const kept_t *kept) {
  for (int i = 0; i < 2; i++) {
    server_do(fixture->env->server, "DEL", names[i], NULL);
    resp_words_t words = {.count = 4,
                          .word = {"RESTORE", names[i], "100000", kept->bytes[i]},
                          .len = {7, strlen(names[i]), 6, kept->len[i]}};
    if (kept->len[i] > 0)
      assert_int_equal(server_ask_words(fixture->env->server, &words)->type, RESP_STATUS);
  }
}

static void forget(kept_t *kept) {
  free(kept->bytes[0]);
  free(kept->bytes[1]);
}

/* ---- what is promised ---- */

static void expect_retry_to_hold(fixture_t *fixture) {
  int64_t cost = below(fixture->most) + 1, now = fixture->now;
  belay_limiter_result_t result = *take(fixture->env, fixture->limiter, "k", cost);
  if (result.verdict == BELAY_ALLOWED) {
    expect(fixture, result.retry_after_us == 0);
    return;
  }
  expect(fixture, result.verdict == BELAY_DENIED && result.retry_after_us > 0);
  expect(fixture, result.retry_after_us <= result.reset_after_us);
  to_time(fixture, now + result.retry_after_us - 1);
  const belay_limiter_result_t *early = take(fixture->env, fixture->limiter, "k", cost);
  expect(fixture, early->verdict == BELAY_DENIED && early->retry_after_us == 1);
  expect(fixture, early->banned == result.banned);
  expect(fixture, early->banned || early->window == result.window);
  to_time(fixture, now + result.retry_after_us);
  expect(fixture, take(fixture->env, fixture->limiter, "k", cost)->verdict == BELAY_ALLOWED);
  to_time(fixture, now);
}

static void expect_remaining_to_hold(fixture_t *fixture) {
  belay_limiter_result_t result = *peek(fixture->env, fixture->limiter, "k");
  expect(fixture, result.remaining >= 0 && result.remaining <= fixture->most);
  expect(fixture, result.verdict == BELAY_ALLOWED || result.remaining == 0);
  if (result.remaining > 0)
    expect(fixture,
           take(fixture->env, fixture->limiter, "k", result.remaining)->verdict == BELAY_ALLOWED);
  expect(fixture, take(fixture->env, fixture->limiter, "k", 1)->verdict != BELAY_ALLOWED);
}

/* After reset_after_us, and no earlier: everything is there, and nothing is owed. */
static void expect_reset_to_hold(fixture_t *fixture) {
  int64_t now = fixture->now;
  belay_limiter_result_t result = *peek(fixture->env, fixture->limiter, "k");
  to_time(fixture, now + result.reset_after_us);
  belay_limiter_result_t then = *peek(fixture->env, fixture->limiter, "k");
  belay_limiter_result_t fresh = *peek(fixture->env, fixture->limiter, "fresh");
  expect(fixture, then.verdict == BELAY_ALLOWED && then.remaining == fresh.remaining);
  expect(fixture, then.reset_after_us == 0 && fresh.reset_after_us == 0);
  then = *take(fixture->env, fixture->limiter, "k", fixture->most);
  fresh = *take(fixture->env, fixture->limiter, "fresh", fixture->most);
  expect(fixture, then.verdict == BELAY_ALLOWED && then.reset_after_us == fresh.reset_after_us);
  expect(fixture, then.remaining == fresh.remaining);
  server_do(fixture->env->server, "DEL", FRESH, NULL);
  to_time(fixture, now + result.reset_after_us - 1);
}

static void expect_denials_to_write_nothing(fixture_t *fixture) {
  uint64_t before = print_of(fixture->env->server, KEY);
  (void)peek(fixture->env, fixture->limiter, "k");
  (void)take(fixture->env, fixture->limiter, "k", fixture->most + 1); /* never */
  expect(fixture, print_of(fixture->env->server, KEY) == before);
  for (int i = 0; i < 5; i++) {
    before = print_of(fixture->env->server, KEY);
    if (take(fixture->env, fixture->limiter, "k", below(fixture->most) + 1)->verdict !=
        BELAY_ALLOWED)
      expect(fixture, print_of(fixture->env->server, KEY) == before);
  }
}

/* Of every key, at least for as long as anything is owed; a millisecond was rounded up, and some
 * have passed. */
static void expect_ttls_to_suffice(fixture_t *fixture) {
  if (take(fixture->env, fixture->limiter, "k", 1)->verdict != BELAY_ALLOWED)
    return;
  int64_t reset_after = peek(fixture->env, fixture->limiter, "k")->reset_after_us;
  int64_t pttl = server_integer(fixture->env->server, "PTTL", KEY, NULL);
  expect(fixture, pttl > 0 && pttl >= reset_after / 1000 - 5000 * slow());
  server_do(fixture->env->server, "PERSIST", KEY, NULL);
  const belay_limiter_result_t *again = take(fixture->env, fixture->limiter, "k", 1);
  if (again->verdict == BELAY_ALLOWED)
    expect(fixture, server_integer(fixture->env->server, "PTTL", KEY, NULL) != -1);
}

/* The clock is behind the stored state: a denied take stays denied at first, not longer than
 * before, and not more is admitted than the policy allows. */
static void expect_a_clock_that_stepped_back(fixture_t *fixture) {
  env_t *env = fixture->env;
  belay_limiter_t *limiter = fixture->limiter;
  int64_t back = step(fixture) + 1 + below(2) * 1000 * 86400 * S;
  int64_t before = peek(env, limiter, "k")->remaining;
  to_time(fixture, fixture->now - back);
  const belay_limiter_result_t *result = peek(env, limiter, "k");
  expect(fixture, result->remaining <= before);
  expect(fixture, take(env, limiter, "k", before + 1)->verdict != BELAY_ALLOWED);
  belay_limiter_result_t denied = *take(env, limiter, "k", fixture->most);
  if (denied.verdict == BELAY_ALLOWED)
    return;
  int64_t longest = 0;
  for (size_t i = 0; i < fixture->n; i++) {
    const belay_limit_t *limit = &fixture->limits[i];
    int64_t most = 2 * limit->period_us;
    if (limit->kind == BELAY_LIMIT_BUCKET && limit->count > 0)
      most += 3 * 30 * limit->period_us; /* penalties included */
    longest = most > longest ? most : longest;
  }
  expect(fixture, denied.banned || denied.retry_after_us <= longest);
  to_time(fixture, fixture->now + denied.retry_after_us);
  expect(fixture, take(env, limiter, "k", fixture->most)->verdict == BELAY_ALLOWED);
}

static void (*const promises[])(fixture_t *fixture) = {
    expect_retry_to_hold,   expect_remaining_to_hold,
    expect_reset_to_hold,   expect_denials_to_write_nothing,
    expect_ttls_to_suffice, expect_a_clock_that_stepped_back,
};

static void expect_all(env_t *env, bool log, unsigned stages) {
  for (unsigned i = 0; i < stages; i++) {
    fixture_t fixture;
    fixture_open(&fixture, env, log);
    for (int turn = 0; turn < 4; turn++) {
      for (int64_t n = below(8); n >= 0; n--)
        happen(&fixture);
      kept_t kept;
      keep(&fixture, &kept);
      int64_t now = fixture.now;
      for (size_t p = 0; p < sizeof promises / sizeof *promises; p++) {
        to_time(&fixture, now);
        put_back(&fixture, &kept);
        promises[p](&fixture);
      }
      to_time(&fixture, now);
      put_back(&fixture, &kept);
      forget(&kept);
    }
    assert_error(belay_limiter_close(fixture.limiter, NULL), 0);
  }
  assert_int_equal(client_stats(env).drops, 0);
}

ENV_TEST(promises) {
  expect_all(env, false, 60);
}

ENV_TEST(promises_of_logs) {
  expect_all(env, true, 20);
}

/* ---- keys that are somebody else's ---- */

typedef int (*operation_fn)(belay_limiter_t *limiter, belay_request_t *request);

static int do_take(belay_limiter_t *limiter, belay_request_t *request) {
  return belay_limiter_take(limiter, request, belay_string("k"), 1, on_answer);
}

static int do_peek(belay_limiter_t *limiter, belay_request_t *request) {
  return belay_limiter_peek(limiter, request, belay_string("k"), on_answer);
}

static int do_penalty(belay_limiter_t *limiter, belay_request_t *request) {
  return belay_limiter_penalty(limiter, request, belay_string("k"), 1, on_answer);
}

static int do_ban(belay_limiter_t *limiter, belay_request_t *request) {
  return belay_limiter_ban(limiter, request, belay_string("k"), S, on_answer);
}

static int do_refund(belay_limiter_t *limiter, belay_request_t *request) {
  belay_receipt_t receipt = {{1, 2, 3, 4}};
  return belay_limiter_refund(limiter, request, belay_string("k"), &receipt, 1, on_answer);
}

static int do_reserve(belay_limiter_t *limiter, belay_request_t *request) {
  return belay_limiter_reserve(limiter, request, belay_string("k"), 1, S, on_answer);
}

static const operation_fn operations[] = {do_take, do_peek,   do_penalty,
                                          do_ban,  do_refund, do_reserve};

static void expect_refusals(env_t *env, belay_limiter_t *limiter, size_t n, const char *what) {
  uint64_t print = print_of(env->server, KEY), second = print_of(env->server, KEY "::ban");
  int64_t keys = server_keys(env->server);
  for (size_t i = 0; i < n; i++) {
    ask_t ask = {0};
    const belay_limiter_result_t *result = answer(&ask, operations[i](limiter, asked(env, &ask)));
    if (result->cause != BELAY_EWRONGTYPE || result->verdict != BELAY_INDETERMINATE)
      fail_msg("%s, operation %zu: %s", what, i, belay_err_name(result->cause));
    assert_int_equal(result->remaining, -1);
    assert_int_equal(result->retry_after_us, -1);
    assert_int_equal(result->reset_after_us, -1);
  }
  assert_true(print_of(env->server, KEY) == print);
  assert_true(print_of(env->server, KEY "::ban") == second);
  assert_int_equal(server_keys(env->server), keys);
  server_do(env->server, "FLUSHALL", NULL);
}

static void set_bytes(env_t *env, const char *key, char byte, size_t len) {
  char bytes[256];
  memset(bytes, byte, sizeof bytes);
  resp_words_t words = {.count = 3, .word = {"SET", key, bytes}, .len = {3, strlen(key), len}};
  assert_int_equal(server_ask_words(env->server, &words)->type, RESP_STATUS);
}

ENV_TEST(foreign_values_untouched) {
  server_t *server = env->server;
  belay_limit_t limit = bucket_limit(1, S, 5), exact = {BELAY_LIMIT_LOG, 5, S, 0, false};
  belay_limiter_t *limiter = limiter_new(env, &limit, 1), *log = limiter_new(env, &exact, 1);
  static const size_t lengths[] = {0, 1, 7, 8, 32, 40, 56, 87, 88, 89, 144, 256};
  static const char fills[] = {'\0', 'x', '\xff', '\x7f'};
  for (size_t i = 0; i < 12; i++)
    for (size_t j = 0; j < 4; j++) {
      char what[32];
      snprintf(what, sizeof what, "%zu bytes of %d", lengths[i], fills[j]);
      set_bytes(env, KEY, fills[j], lengths[i]);
      expect_refusals(env, limiter, 6, what);
      set_bytes(env, KEY, fills[j], lengths[i]);
      expect_refusals(env, log, 5, what);
      set_bytes(env, KEY "::ban", fills[j], lengths[i]);
      expect_refusals(env, log, 5, what);
    }
  for (int second = 0; second < 2; second++) {
    const char *key = second ? KEY "::ban" : KEY;
    belay_limiter_t *whose = second ? log : limiter;
    size_t n = second ? 5 : 6;
    server_do(server, "RPUSH", key, "a", NULL);
    expect_refusals(env, whose, n, "a list");
    server_do(server, "HSET", key, "a", "b", NULL);
    expect_refusals(env, whose, n, "a hash");
    server_do(server, "XADD", key, "*", "a", "b", NULL);
    expect_refusals(env, whose, n, "a stream");
    server_do(server, "ZADD", key, "1", "b", NULL);
    expect_refusals(env, whose, n, "a sorted set");
  }
  server_do(server, "HSET", KEY, "a", "b", NULL);
  expect_refusals(env, log, 5, "a hash");
  server_do(server, "SET", KEY, "text", NULL);
  ask_t ask = {0}; /* but it may be reset */
  answer(&ask, belay_limiter_reset(limiter, asked(env, &ask), belay_string("k"), on_answer));
  assert_int_equal(server_keys(server), 0);
}

/* By the server's own clock. */
ENV_TEST(every_key_has_a_ttl) {
  belay_limit_t limits[3] = {bucket_limit(1, 3600 * S, 5), bucket_limit(1, 60 * S, 20)};
  limits[2] = (belay_limit_t){.kind = BELAY_LIMIT_LOG, .count = 5, .period_us = 3600 * S};
  for (size_t i = 0; i < 6; i++) {
    belay_limiter_options_t options =
        limiter_options(i % 3 == 2 ? limits + 2 : limits, i % 3 == 1 ? 2 : 1);
    char name[] = {(char)('a' + i), '\0'};
    options.name = belay_bytes(name, 1);
    belay_limiter_t *limiter = limiter_with(env, env->client, &options);
    belay_receipt_t receipt = taken(env, limiter, "refunded", 3);
    (void)refund(env, limiter, "refunded", &receipt, 2);
    (void)taken(env, limiter, "taken", 3);
    (void)take(env, limiter, "taken", 3);
    (void)penalty(env, limiter, "fined", 9);
    (void)ban(env, limiter, "banned", 7200 * S);
    (void)ban(env, limiter, "taken", 10 * S);
    if (i % 3 == 2)
      continue;
    for (int n = 0; n < 3; n++)
      (void)reserve(env, limiter, "reserved", 3, 86400 * S);
    belay_reservation_t reservation = reserve(env, limiter, "reserved", 1, 86400 * S)->reservation;
    (void)unreserve(env, limiter, "reserved", &reservation);
    char key[64];
    snprintf(key, sizeof key, "belay::limit::%s::{reserved}", name);
    int64_t owed_ms = peek(env, limiter, "reserved")->reset_after_us / 1000;
    assert_between(server_integer(env->server, "PTTL", key, NULL), owed_ms - 2000 * slow(),
                   owed_ms + 2000 * slow());
  }
  expect_ttl_on_every_key(env->server);
}

TEST_BEGIN {
  const char *from = getenv("BELAY_TEST_SEED");
  if (from != NULL)
    seed = (unsigned)strtoul(from, NULL, 10);
}
