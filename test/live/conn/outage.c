/* A server that is away: the first call may wait, later calls with a policy for outages do not.
 * For every primitive and every cause of the absence. */
#include <stdio.h>

#include "support/fixtures/limit/asks.h"
#include "support/fixtures/cache/cache.h"
#include "support/deployments/deployment.h"

#define S INT64_C(1000000)
/* Much longer than what is answered at once takes, on a machine that stands still for a second
 * now and then. */
#define TIMEOUT_MS (5000 * slow())

typedef enum how { REFUSED, STOPPED, HOWS } how_t;

static void leave(server_t *server, how_t how) {
  if (how == STOPPED)
    server_pause(server);
  else
    server_kill(server);
}

static void come_back(server_t *server, how_t how) {
  if (how == STOPPED)
    server_resume(server);
  else
    server_restart(server);
}

static belay_client_options_t patient(void) {
  belay_client_options_t options = client_options();
  options.timeout_ms = TIMEOUT_MS;
  options.stall_timeout_ms = 60000 * slow();
  return options;
}

static env_t *open_patient(void) {
  belay_client_options_t options = patient();
  return env_open(&options);
}

static belay_limiter_t *open_limiter(env_t *env) {
  belay_limit_t limit = bucket_limit(1000, 3600 * S, 1000);
  belay_limiter_options_t options = limiter_options(&limit, 1);
  options.away = BELAY_AWAY_OPEN;
  return limiter_with(env, env->client, &options);
}

static void open_cache(cache_t *cache, env_t *env) {
  belay_cache_options_t options = cache_options(cache);
  options.away = BELAY_CACHE_AWAY_LOAD;
  cache_open(cache, env, &options);
}

static belay_cache_from_t get(cache_t *cache, const char *key) {
  get_t fetch = {0};
  assert_int_equal(begin_cache_get(cache, &fetch, key), 0);
  assert_int_equal(end_of_get(&fetch), 0);
  belay_cache_from_t from = fetch.result.from;
  get_free(&fetch);
  return from;
}

/* A limiter and a cache, one after the other: they wait once together, if at all, and use
 * different connections. */
static void expect_series(how_t how, bool limiter_first) {
  env_t *env = open_patient();
  cache_t cache = {0};
  belay_limiter_t *limiter = open_limiter(env);
  open_cache(&cache, env);
  (void)take(env, limiter, "k", 1);
  (void)get(&cache, "there");
  assert_int_equal(get(&cache, "there"), BELAY_CACHE_FROM_SERVER);
  env_settle(env);
  leave(env->server, how);
  if (how == STOPPED) { /* a short call finds out */
    ask_t first = {0};
    asked(env, &first)->timeout_ms = 200;
    assert_error(belay_limiter_take(limiter, &first.request, belay_string("k"), 1, on_answer), 0);
    assert_error(answer(&first, 0)->cause, BELAY_EUNKNOWN);
  }
  int64_t began = clock_now();
  for (int i = 0; i < 20; i++) {
    if (limiter_first)
      assert_int_equal(take(env, limiter, "k", 1)->source, BELAY_SOURCE_AWAY);
    assert_int_equal(get(&cache, "there"), BELAY_CACHE_FROM_LOAD);
    assert_int_equal(take(env, limiter, "k", 1)->source, BELAY_SOURCE_AWAY);
  }
  assert_true(clock_since_ms(began) < TIMEOUT_MS);
  come_back(env->server, how);
  began = clock_now();
  while (take(env, limiter, "k", 1)->source != BELAY_SOURCE_SERVER)
    assert_true(clock_since_ms(began) < 10000 * slow());
  while (get(&cache, "again") != BELAY_CACHE_FROM_SERVER)
    assert_true(clock_since_ms(began) < 20000 * slow());
  env_close(env);
}

TEST(refused_connections) {
  expect_series(REFUSED, true);
  expect_series(REFUSED, false);
}

TEST(stopped_server) {
  expect_series(STOPPED, true);
  expect_series(STOPPED, false);
}

/* Many begin before the outage is known: all of them end when it is. */
TEST_IN(queued_calls_end_with_the_first_refusal, env, open_patient()) {
  belay_limiter_t *limiter = open_limiter(env);
  static ask_t asks[50];
  memset(asks, 0, sizeof asks);
  server_kill(env->server);
  int64_t began = clock_now();
  for (int i = 0; i < 50; i++)
    assert_error(belay_limiter_take(limiter, asked(env, &asks[i]), belay_string("k"), 1, on_answer),
                 0);
  for (int i = 0; i < 50; i++)
    assert_error(answer(&asks[i], 0)->cause, BELAY_EUNREACHABLE);
  assert_true(clock_since_ms(began) < TIMEOUT_MS);
}

/* A call without a policy waits until the server is back: the short outage is none for it. */
TEST_IN(call_without_policy_waits, env, open_patient()) {
  belay_limiter_t *limiter = open_limiter(env);
  ask_t peek = {0};
  (void)take(env, limiter, "k", 1);
  server_kill(env->server);
  assert_int_equal(take(env, limiter, "k", 1)->source, BELAY_SOURCE_AWAY);
  assert_error(belay_limiter_peek(limiter, asked(env, &peek), belay_string("k"), on_answer), 0);
  env_run_for(env, 100);
  assert_int_equal(peek.ended, 0);
  server_restart(env->server);
  assert_error(answer(&peek, 0)->cause, 0);
}

/* No call is under way when the server comes back: the client finds it by itself. */
TEST(return_is_detected_without_a_call) {
  for (how_t how = 0; how < HOWS; how++) {
    belay_client_options_t options = patient();
    options.timeout_ms = 300 * slow();
    env_t *env = env_open(&options);
    belay_limiter_t *limiter = open_limiter(env);
    (void)take(env, limiter, "k", 1);
    leave(env->server, how);
    assert_int_equal(take(env, limiter, "k", 1)->source, BELAY_SOURCE_AWAY);
    assert_int_equal(take(env, limiter, "k", 1)->source, BELAY_SOURCE_AWAY);
    come_back(env->server, how);
    env_run_for(env, 3000 * slow()); /* at most reconnect_max_ms */
    assert_int_equal(take(env, limiter, "k", 1)->source, BELAY_SOURCE_SERVER);
    env_close(env);
  }
}

/* A server that answers, but cannot do anything at this time, is asked again for a moment, and
 * not until a deadline. */
TEST_IN(temporary_refusals, env, open_patient()) {
  needs_one_server("REPLICAOF, which no node of a cluster takes");
  belay_limiter_t *limiter = open_limiter(env);
  (void)take(env, limiter, "k", 1);
  server_do(env->server, "CONFIG", "SET", "replica-serve-stale-data", "no", NULL);
  server_do(env->server, "REPLICAOF", "127.0.0.1", "1", NULL);
  int64_t began = clock_now();
  for (int i = 0; i < 20; i++) {
    const belay_limiter_result_t *result = take(env, limiter, "k", 1);
    assert_int_equal(result->source, BELAY_SOURCE_AWAY);
    assert_error(result->cause, BELAY_ECLUSTERDOWN);
  }
  assert_true(clock_since_ms(began) < TIMEOUT_MS);
  server_do(env->server, "REPLICAOF", "NO", "ONE", NULL);
  while (take(env, limiter, "k", 1)->source != BELAY_SOURCE_SERVER)
    assert_true(clock_since_ms(began) < 4 * TIMEOUT_MS);
}
