/* Limiters while the server is away: the result of options.away, marked, with rare requests. */
#include "limit/state.h"
#include "support/fixtures/limit/asks.h"

#define MILLI INT64_C(1000)
#define S INT64_C(1000000)
#define TIMEOUT_MS lag()

static env_t *env_that_times_out(void) {
  belay_client_options_t options = client_options();
  options.timeout_ms = TIMEOUT_MS;
  options.reconnect_max_ms = 20;
  return env_open(&options);
}

static belay_limiter_t *limiter_away(env_t *env, const belay_limit_t *limits, size_t n,
                                     belay_away_t away) {
  belay_limiter_options_t options = limiter_options(limits, n);
  options.away = away;
  return limiter_with(env, env->client, &options);
}

/* Stopped, so that it is asked in vain; or gone, so that it cannot be asked. */
static void leave(env_t *env, int how) {
  if (how == 0)
    server_pause(env->server);
  else
    server_kill(env->server);
}

static void come_back(env_t *env, int how) {
  if (how == 0)
    server_resume(env->server);
  else
    server_restart(env->server);
}

/* The server is back: sooner or later it is asked again, and answers. */
static void until_said(env_t *env, belay_limiter_t *limiter, belay_source_t source) {
  int64_t began = clock_now();
  while (take(env, limiter, "k", 1)->source != source)
    assert_true(clock_since_ms(began) < 10000);
}

static bool is_away(int status) {
  return status == BELAY_EUNKNOWN || status == BELAY_EUNREACHABLE;
}

TEST_IN(results_of_each_policy, env, env_that_times_out()) {
  static const struct {
    belay_away_t away;
    belay_verdict_t verdict;
    belay_source_t source;
  } rows[] = {
      {BELAY_AWAY_UNKNOWN, BELAY_INDETERMINATE, BELAY_SOURCE_SERVER},
      {BELAY_AWAY_OPEN, BELAY_ALLOWED, BELAY_SOURCE_AWAY},
      {BELAY_AWAY_CLOSED, BELAY_DENIED, BELAY_SOURCE_AWAY},
      {BELAY_AWAY_LOCAL, BELAY_ALLOWED, BELAY_SOURCE_AWAY},
  };
  belay_limit_t limit = bucket_limit(100, 3600 * S, 100);
  belay_limiter_t *limiters[4];
  for (int i = 0; i < 4; i++)
    limiters[i] = limiter_away(env, &limit, 1, rows[i].away);
  for (int how = 0; how < 2; how++) {
    assert_said(take(env, limiters[0], "k", 1), BELAY_ALLOWED, BELAY_SOURCE_SERVER);
    leave(env, how);
    static ask_t asks[4], others[4], never[4];
    memset(asks, 0, sizeof asks);
    memset(others, 0, sizeof others);
    memset(never, 0, sizeof never);
    for (int i = 0; i < 4; i++) {
      start_take(env, limiters[i], &asks[i], "k", 1);
      assert_error(
          belay_limiter_peek(limiters[i], asked(env, &others[i]), belay_string("k"), on_answer), 0);
      start_take(env, limiters[i], &never[i], "k", 101);
    }
    for (int i = 0; i < 4; i++) {
      const belay_limiter_result_t *result = answer(&asks[i], 0);
      assert_said(result, rows[i].verdict, rows[i].source);
      assert_true(is_away(result->cause));
      assert_int_equal(result->retry_after_us, rows[i].verdict == BELAY_ALLOWED ? 0 : -1);
      assert_int_equal(answer(&others[i], 0)->verdict, BELAY_INDETERMINATE);
      assert_said(answer(&never[i], 0), BELAY_NEVER, BELAY_SOURCE_POLICY);
      assert_int_equal(limiter_stats(limiters[i]).away, i > 0 ? how + 1 : 0);
    }
    belay_limiter_result_t result;
    assert_int_equal(try_take(env, limiters[1], "k", 1, &result), BELAY_EAGAIN);
    come_back(env, how);
    for (int i = 0; i < 4; i++) /* the next one is asked for again, and answered */
      until_said(env, limiters[i], BELAY_SOURCE_SERVER);
    for (int i = 1; i < 4; i++)
      limiters[i]->stats.away = (uint64_t)how + 1;
  }
}

/* Begins n takes, none of which the server is asked for. */
static void expect_policy_at_once(env_t *env, belay_limiter_t *limiter, unsigned n) {
  static ask_t asks[50];
  uint64_t before = limiter_stats(limiter).asked, sent = client_stats(env).commands;
  memset(asks, 0, sizeof asks);
  for (unsigned i = 0; i < n; i++)
    start_take(env, limiter, &asks[i], "k", 1);
  for (unsigned i = 0; i < n; i++) {
    assert_said(answer(&asks[i], 0), BELAY_ALLOWED, BELAY_SOURCE_AWAY);
    assert_error(asks[i].result.cause, BELAY_EUNREACHABLE);
  }
  assert_int_equal(limiter_stats(limiter).asked, before);
  assert_int_equal(client_stats(env).commands, sent);
}

/* The first take waits in vain; then the client knows that the server is away, and no take is sent
 * until it is back. */
TEST(only_first_take_waits_in_outage) {
  for (int how = 0; how < 2; how++) {
    env_t *env = env_that_times_out();
    belay_limit_t limit = bucket_limit(1000, 3600 * S, 1000);
    belay_limiter_t *open = limiter_away(env, &limit, 1, BELAY_AWAY_OPEN);
    belay_limiter_t *other = limiter_away(env, &limit, 1, BELAY_AWAY_OPEN);
    assert_said(take(env, open, "k", 1), BELAY_ALLOWED, BELAY_SOURCE_SERVER);
    leave(env, how);
    assert_said(take(env, open, "k", 1), BELAY_ALLOWED, BELAY_SOURCE_AWAY);
    expect_policy_at_once(env, open, 50);
    expect_policy_at_once(env, other, 50); /* the client knows it, not one limiter */
    env_run_for(env, 2 * TIMEOUT_MS);
    expect_policy_at_once(env, open, 50);
    come_back(env, how);
    until_said(env, open, BELAY_SOURCE_SERVER);
    assert_said(take(env, other, "k", 1), BELAY_ALLOWED, BELAY_SOURCE_SERVER);
    env_close(env);
  }
}

/* Without a policy each take is sent, and has its whole time. */
TEST_IN(without_a_policy_each_take_is_sent, env, env_that_times_out()) {
  belay_limit_t limit = bucket_limit(1000, 3600 * S, 1000);
  belay_limiter_t *unknown = limiter_away(env, &limit, 1, BELAY_AWAY_UNKNOWN);
  static ask_t asks[10];
  memset(asks, 0, sizeof asks);
  assert_said(take(env, unknown, "k", 1), BELAY_ALLOWED, BELAY_SOURCE_SERVER);
  server_pause(env->server);
  assert_int_equal(take(env, unknown, "k", 1)->verdict, BELAY_INDETERMINATE);
  uint64_t before = limiter_stats(unknown).asked;
  for (int i = 0; i < 10; i++)
    start_take(env, unknown, &asks[i], "k", 1 + i); /* takes of equal costs share a command */
  for (int i = 0; i < 10; i++)
    answer(&asks[i], 0);
  assert_int_equal(limiter_stats(unknown).asked, before + 10);
  server_resume(env->server);
}

/* A key of another type does not count as an absent server. */
TEST_IN(refusal_is_no_outage, env, env_that_times_out()) {
  belay_limit_t limit = bucket_limit(1000, 3600 * S, 1000);
  belay_limiter_t *closed = limiter_away(env, &limit, 1, BELAY_AWAY_CLOSED);
  server_do(env->server, "RPUSH", "belay::limit::test::{foreign}", "x", NULL);
  const belay_limiter_result_t *result = take(env, closed, "foreign", 1);
  assert_said(result, BELAY_DENIED, BELAY_SOURCE_AWAY);
  assert_error(result->cause, BELAY_EWRONGTYPE);
  uint64_t before = limiter_stats(closed).asked;
  static ask_t asks[3];
  memset(asks, 0, sizeof asks);
  for (int i = 0; i < 3; i++)
    start_take(env, closed, &asks[i], "k", 1 + i);
  for (int i = 0; i < 3; i++)
    assert_said(answer(&asks[i], 0), BELAY_ALLOWED, BELAY_SOURCE_SERVER);
  assert_int_equal(limiter_stats(closed).asked, before + 3);
}

/* ---- the local bucket ---- */

/* A server that was never there. */
static env_t *env_without_server(void) {
  belay_client_options_t options = client_options();
  options.timeout_ms = 20;
  return env_open_at("unix:///nowhere/at/all", &options);
}

static unsigned admitted_of(env_t *env, belay_limiter_t *limiter, const char *key, unsigned n) {
  unsigned admitted = 0;
  for (unsigned i = 0; i < n; i++) {
    const belay_limiter_result_t *result = take(env, limiter, key, 1);
    assert_int_equal(result->source, BELAY_SOURCE_AWAY);
    admitted += result->verdict == BELAY_ALLOWED;
  }
  return admitted;
}

TEST_IN(the_local_limit_of_each_kind, env, env_without_server()) {
  static const struct {
    belay_limit_t limits[2];
    size_t n;
    unsigned percent, admitted, window;
  } rows[] = {
      {{{.kind = BELAY_LIMIT_BUCKET, .count = 50, .period_us = 3600 * S}}, 1, 10, 5, 0},
      {{{.kind = BELAY_LIMIT_BUCKET, .count = 50, .burst = 3, .period_us = 3600 * S}}, 1, 10, 1, 0},
      {{{.kind = BELAY_LIMIT_FIXED, .count = 50, .period_us = 3600 * S}}, 1, 25, 12, 0},
      {{{.kind = BELAY_LIMIT_SLIDING, .count = 9, .period_us = 3600 * S}}, 1, 100, 9, 0},
      {{{.kind = BELAY_LIMIT_LOG, .count = 10, .period_us = 3600 * S}}, 1, 50, 5, 0},
      {{{.kind = BELAY_LIMIT_BUCKET, .burst = 10, .period_us = 3600 * S}}, 1, 30, 3, 0},
      {{{.kind = BELAY_LIMIT_FIXED, .count = 80, .period_us = 3600 * S},
        {.kind = BELAY_LIMIT_FIXED, .count = 40, .period_us = 7200 * S}},
       2,
       10,
       4,
       1},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    belay_limiter_options_t options = limiter_options(rows[i].limits, rows[i].n);
    options.away = BELAY_AWAY_LOCAL;
    options.away_percent = rows[i].percent;
    belay_limiter_t *limiter = limiter_with(env, env->client, &options);
    ask_t probe = {0};
    answer(&probe,
           belay_limiter_take(limiter, asked(env, &probe), belay_string("other"), 1, on_answer));
    assert_said(&probe.result, BELAY_ALLOWED, BELAY_SOURCE_AWAY);
    assert_int_equal(probe.result.remaining, rows[i].admitted - 1);
    for (unsigned n = 0; n < rows[i].admitted + 3; n++) {
      const belay_limiter_result_t *result = take(env, limiter, "k", 1);
      assert_said(result, n < rows[i].admitted ? BELAY_ALLOWED : BELAY_DENIED, BELAY_SOURCE_AWAY);
      if (result->verdict == BELAY_DENIED) {
        assert_true(result->retry_after_us > 0);
        assert_int_equal(result->window, rows[i].window);
        assert_int_equal(result->remaining, 0);
      } else {
        assert_int_equal(result->remaining, rows[i].admitted - 1 - n);
      }
    }
    const belay_limiter_result_t *result = take(env, limiter, "k", rows[i].admitted + 1);
    assert_true(result->verdict == BELAY_DENIED || result->verdict == BELAY_NEVER);
    assert_int_equal(result->retry_after_us, -1);
    close_limiter(env, limiter);
  }
}

/* retry_after says it to the microsecond; as much as a tenth of the rate is admitted, and no more.
 */
TEST_IN(the_local_rate, env, env_without_server()) {
  belay_limit_t limit = bucket_limit(1000, S, 20);
  belay_limiter_t *limiter = limiter_away(env, &limit, 1, BELAY_AWAY_LOCAL); /* 100/s, 2 at once */
  int64_t began = clock_now(), before = began, used = 0; /* more than 20 ms at once is no use */
  uint64_t admitted = 0;
  static ask_t asks[8];
  memset(asks, 0, sizeof asks);
  while (clock_since_ms(began) < 500) {
    for (int i = 0; i < 8; i++) {
      if (asks[i].begun > asks[i].ended)
        continue;
      if (asks[i].begun > 0)
        admitted += asks[i].result.verdict == BELAY_ALLOWED;
      start_take(env, limiter, &asks[i], "k", 1);
    }
    uv_run(&env->loop, UV_RUN_NOWAIT);
    int64_t turn = clock_now() - before;
    used += turn < 20 * MS ? turn : 20 * MS;
    before += turn;
  }
  for (int i = 0; i < 8; i++)
    admitted += answer(&asks[i], 0)->verdict == BELAY_ALLOWED;
  assert_in_range(admitted, used / MS / 10 / 2, 2 + (clock_since_ms(began) + 9) / 10);
}

/* Further keys share one bucket; and one that is full again makes room. */
TEST_IN(the_bound_of_local_buckets, env, env_without_server()) {
  belay_limit_t limit = bucket_limit(20, 400 * MILLI, 20);
  belay_limiter_options_t options = limiter_options(&limit, 1);
  options.away = BELAY_AWAY_LOCAL; /* 2 in 400 ms */
  options.max_away = 2;
  belay_limiter_t *limiter = limiter_with(env, env->client, &options);
  limit.period_us = 3600 * S;
  options.max_away = 0;
  belay_limiter_t *shared = limiter_with(env, env->client, &options);
  assert_int_equal(admitted_of(env, shared, "a", 2), 2);
  assert_int_equal(admitted_of(env, shared, "b", 2), 0);
  options.max_away = 2;
  belay_limiter_t *two = limiter_with(env, env->client, &options);
  assert_int_equal(admitted_of(env, two, "a", 3), 2);
  assert_int_equal(admitted_of(env, two, "b", 3), 2);
  assert_int_equal(admitted_of(env, two, "c", 1), 1);
  assert_int_equal(admitted_of(env, two, "d", 2), 1);
  assert_int_equal(two->fallback.table.count, 2);

  assert_int_equal(admitted_of(env, limiter, "a", 1), 1);
  env_run_for(env, 450);
  for (char c = 'b'; c < 'h'; c++) {
    char key[2] = {c, 0};
    assert_int_equal(admitted_of(env, limiter, key, 1), 1);
    env_run_for(env, 100); /* half of one take has leaked, and all of an older pair */
  }
  assert_int_equal(limiter->fallback.table.count, 2);
}

/* ---- with what is known ---- */

/* Remembered denials and leased tokens also answer while the server is away. */
TEST_IN(leases_and_denials_in_outage, env, env_that_times_out()) {
  belay_limit_t limit = bucket_limit(20, 3600 * S, 20);
  belay_limiter_options_t options = limiter_options(&limit, 1);
  options.max_denied = 10;
  options.lease_tokens = 8;
  options.lease_ms = 60000;
  options.away = BELAY_AWAY_OPEN;
  belay_limiter_t *limiter = limiter_with(env, env->client, &options);
  assert_said(take(env, limiter, "full", 20), BELAY_ALLOWED, BELAY_SOURCE_SERVER);
  assert_said(take(env, limiter, "full", 1), BELAY_DENIED, BELAY_SOURCE_SERVER);
  assert_said(take(env, limiter, "k", 1), BELAY_ALLOWED, BELAY_SOURCE_LEASE);
  server_pause(env->server);
  static ask_t asks[12];
  memset(asks, 0, sizeof asks);
  for (int i = 0; i < 12; i++)
    start_take(env, limiter, &asks[i], "k", 1);
  for (int i = 0; i < 12; i++)
    assert_said(answer(&asks[i], 0), BELAY_ALLOWED, i < 7 ? BELAY_SOURCE_LEASE : BELAY_SOURCE_AWAY);
  assert_said(take(env, limiter, "full", 1), BELAY_DENIED, BELAY_SOURCE_DENIAL);
  uint64_t before = limiter_stats(limiter).asked;
  belay_limiter_result_t result;
  for (int i = 0; i < 10; i++) /* nothing is fetched ahead from one who does not answer */
    assert_int_equal(try_take(env, limiter, "k", 1, &result), BELAY_EAGAIN);
  assert_int_equal(limiter_stats(limiter).asked, before);
  server_resume(env->server);
  until_said(env, limiter, BELAY_SOURCE_LEASE);
}

static belay_limiter_t *to_close;

static void close_it(ask_t *ask) {
  (void)ask;
  if (to_close != NULL)
    assert_error(belay_limiter_close(to_close, NULL), 0);
  to_close = NULL;
}

/* The first callback that reports the absence closes the limiter; all other callbacks run, too. */
TEST_IN(close_during_outage, env, env_without_server()) {
  belay_limit_t limit = bucket_limit(20, 3600 * S, 20);
  belay_limiter_t *limiter = limiter_away(env, &limit, 1, BELAY_AWAY_LOCAL);
  static ask_t asks[4];
  memset(asks, 0, sizeof asks);
  to_close = limiter;
  for (int i = 0; i < 4; i++) {
    asks[i].then = close_it;
    start_take(env, limiter, &asks[i], "k", 1);
  }
  for (int i = 0; i < 4; i++)
    answer(&asks[i], 0);
}
