/* Values that are not fresh: stale, kept, and resting after a failed load. */
#include <stdio.h>

#include "support/fixtures/cache/cache.h"
#include "support/models/scripts.h"

#define KEY "belay::cache::pages::{home}"
#define TTL INT64_C(40)

/* Two processes, whose loads the test ends. The first has loaded "v1", which is not fresh any more.
 */
typedef struct caches {
  env_t *env;
  cache_t one, two;
} caches_t;

static void expect_loads(cache_t *cache, unsigned n) {
  env_until(cache->env, cache->held == n);
}

/* Values are fresh for TTL, then stale for stale_ms and kept for keep_ms. */
static caches_t *caches_open(int64_t stale_ms, int64_t keep_ms, int64_t error_ms) {
  caches_t *caches = calloc(1, sizeof *caches);
  caches->env = env_open(NULL);
  caches->one.loading = caches->two.loading = LOAD_BY_TEST;
  belay_cache_options_t options = cache_options(&caches->one);
  options.ttl_ms = TTL;
  options.stale_ms = stale_ms;
  options.keep_ms = keep_ms;
  options.error_ms = error_ms;
  cache_open(&caches->one, caches->env, &options);
  options.arg = &caches->two;
  cache_open_on(&caches->two, caches->env,
                env_connect(caches->env, server_url(caches->env->server), NULL), &options);
  expect_loaded(&caches->one, "home", "v1");
  env_until(caches->env,
            cache_stats(&caches->one).fills == 1 && cache_stats(&caches->one).loading == 0);
  env_run_for(caches->env, TTL + 10);
  return caches;
}

static void caches_close(caches_t *caches) {
  env_close(caches->env);
  free(caches);
}

#define CACHES_TEST(name, stale_ms, keep_ms, error_ms)                                             \
  TEST_IN(name, caches, caches_open(stale_ms, keep_ms, error_ms))

/* One refreshes, and is at it until the test says so: so whoever had waited for it would never be
 * served. */
CACHES_TEST(refresh_delays_no_get, 60000, 0, 0) {
  enum { N = 200 };
  get_t *gets = calloc(N, sizeof *gets);
  for (int i = 0; i < N; i++)
    start_get(i % 2 ? &caches->two : &caches->one, &gets[i], "home");
  for (int i = 0; i < N; i++) {
    assert_error(end_of_get(&gets[i]), 0);
    assert_true(gets[i].result.age_ms >= TTL);
    assert_int_equal(gets[i].result.from, BELAY_CACHE_FROM_SERVER);
    assert_int_equal(gets[i].result.load_error, 0);
    expect_got_stale(&gets[i], "v1", 0);
  }
  env_until(caches->env, caches->one.held + caches->two.held == 1);
  for (int i = 0; i < 20; i++)
    expect_stale(i % 2 ? &caches->two : &caches->one, "home", "v1", 0);
  env_settle(caches->env);
  assert_int_equal(caches->one.held + caches->two.held, 1);
  belay_cache_stats_t one = cache_stats(&caches->one), two = cache_stats(&caches->two);
  assert_int_equal(one.stale_served + two.stale_served, N + 20);
  assert_int_equal(one.refreshes + two.refreshes, 1);
  assert_int_equal(one.early + two.early, 0);
  assert_int_equal(one.misses + two.misses, 1); /* the first */
  assert_int_equal(one.waits + two.waits, 0);
  assert_int_equal(one.joined + two.joined, 0);
  assert_int_equal(one.loading + two.loading, 1);
  cache_t *winner = caches->one.held ? &caches->one : &caches->two;
  finish_load(winner, "v2");
  env_until(caches->env, cache_stats(winner).loading == 0);
  assert_int_equal(cache_stats(&caches->one).fills + cache_stats(&caches->two).fills, 2);
  assert_int_equal(caches->one.loaded + caches->two.loaded, 2);
  free(gets);
}

/* It goes on being served; without error_ms the next one tries again. */
CACHES_TEST(a_refresh_that_fails, 60000, 0, 0) {
  expect_stale(&caches->one, "home", "v1", 0);
  expect_loads(&caches->one, 1);
  fail_load(&caches->one, 7);
  env_until(caches->env, cache_stats(&caches->one).loading == 0);
  expect_stale(&caches->one, "home", "v1", 0);
  expect_loads(&caches->one, 1);
  finish_load_absent(&caches->one); /* with absent_ms 0 the old value is deleted */
  env_until(caches->env, cache_stats(&caches->one).loading == 0);
  env_settle(caches->env);
  assert_int_equal(server_keys(caches->env->server), 0);
  expect_stats(&caches->one, "load_failures 1, refreshes 2, fills 1, refused_fills 0");
}

CACHES_TEST(kept_value_after_failed_load, 0, 60000, 0) {
  get_t get = {0}, other = {0};
  int64_t pttl = server_integer(caches->env->server, "PTTL", KEY, NULL);
  assert_between(pttl, 30000, 60000 + TTL);
  start_get(&caches->one, &get, "home");
  start_get(&caches->one, &other, "home");
  expect_loads(&caches->one, 1);
  assert_int_equal(get.ended + other.ended, 0);
  fail_load(&caches->one, -77);
  assert_error(end_of_get(&get), 0);
  assert_int_equal(get.result.load_error, -77);
  assert_int_equal(get.result.from, BELAY_CACHE_FROM_SERVER);
  expect_got_stale(&get, "v1", BELAY_ELOAD);
  expect_got_stale(&other, "v1", BELAY_ELOAD);
  expect_stats(&caches->one, "stale_served 2, misses 3, joined 1, load_failures 1, refreshes 0");
  start_get(&caches->two, &get, "home"); /* and it is tried again */
  expect_loads(&caches->two, 1);
  finish_load(&caches->two, "v2");
  expect_got_value(&get, "v2", BELAY_CACHE_FROM_LOAD);
}

/* It was still there when the load began. */
CACHES_TEST(kept_value_expires_during_load, 0, 150, 0) {
  get_t get = {0};
  start_get(&caches->one, &get, "home");
  expect_loads(&caches->one, 1);
  env_run_for(caches->env, 200);
  fail_load(&caches->one, 5);
  expect_got_nothing(&get, BELAY_ELOAD);
  assert_int_equal(get.result.load_error, 5);
  assert_int_equal(get.result.from, BELAY_CACHE_FROM_NOWHERE);
}

CACHES_TEST(kept_value_after_timeout, 0, 60000, 0) {
  static const belay_cache_late_t policies[] = {BELAY_CACHE_LATE_STALE, BELAY_CACHE_LATE_LOAD,
                                                BELAY_CACHE_LATE_FAIL};
  get_t gets[3] = {0};
  for (int i = 0; i < 3; i++) {
    gets[i].request.timeout_ms = 500 * slow(); /* the first answer comes long before */
    assert_error(begin_get_late(&caches->one, &gets[i], "home", policies[i]), 0);
  }
  expect_got_stale(&gets[0], "v1", BELAY_ETIMEDOUT);
  expect_got_stale(&gets[1], "v1", BELAY_ETIMEDOUT);
  expect_got_nothing(&gets[2], BELAY_ETIMEDOUT);
  expect_loads(&caches->one, 1);
  finish_load(&caches->one, "v2"); /* it was not in vain */
  env_until(caches->env, cache_stats(&caches->one).fills == 2);
  expect_stats(&caches->one, "stale_served 2, loads 2");
}

/* ---- error_ms, by the server's clock, as belay knows it ---- */

#define MARGIN_MS 30

/* Repeats the get until it was loaded. */
static void get_until_it_loads(caches_t *caches, cache_t *cache, get_t *get, const char *key) {
  while (caches->one.held + caches->two.held == 0) {
    if (get->ended == get->begun)
      start_get(cache, get, key);
    env_until(caches->env, get->ended == get->begun || caches->one.held + caches->two.held > 0);
  }
}

TEST(failure_stored_for_others) {
  int64_t rest = 300 * slow();
  get_t get = {0};
  caches_t *caches = caches_open(0, 0, rest);
  start_get(&caches->one, &get, "broken");
  expect_loads(&caches->one, 1);
  int64_t since = server_now_ms(caches->env->server);
  fail_load(&caches->one, 1234567);
  expect_got_nothing(&get, BELAY_ELOAD);
  assert_int_equal(get.result.load_error, 1234567);
  belay_cache_stats_t before = cache_stats(&caches->two);
  start_get(&caches->two, &get, "broken"); /* another process */
  env_until(caches->env, get.ended == get.begun || caches->two.held > 0);
  if (server_now_ms(caches->env->server) < since + rest - MARGIN_MS) {
    expect_got_nothing(&get, BELAY_ELOAD);
    assert_int_equal(get.result.load_error, 1234567);
    assert_int_equal(get.result.from, BELAY_CACHE_FROM_SERVER);
    assert_between(get.result.remaining_ms, 0, rest + MARGIN_MS);
    assert_int_equal(cache_stats(&caches->two).hits, before.hits + 1);
    assert_int_equal(cache_stats(&caches->two).absent_served, 0);
  }
  get_until_it_loads(caches, &caches->two, &get, "broken");
  assert_true(server_now_ms(caches->env->server) >= since + rest - MARGIN_MS);
  finish_load(&caches->two, "mended");
  expect_got_value(&get, "mended", BELAY_CACHE_FROM_LOAD);
  assert_int_equal(caches->two.loaded, 1);
  caches_close(caches);
}

/* A get after a failure is not served the failure: without error_ms it loads again. The script
 * is sent twice, so that the failure is stored behind the get's lookup. */
CACHES_TEST(get_during_store_of_failure, 0, 0, 0) {
  get_t get = {0}, during = {0}, after = {0};
  start_get(&caches->one, &get, "broken");
  expect_loads(&caches->one, 1);
  start_get(&caches->one, &during, "broken");
  env_until(caches->env, cache_stats(&caches->one).joined == 1);
  server_do(caches->env->server, "SCRIPT", "FLUSH", NULL);
  fail_load(&caches->one, 7);
  start_get(&caches->one, &after, "broken");
  expect_got_nothing(&get, BELAY_ELOAD);
  expect_got_nothing(&during, BELAY_ELOAD);
  assert_int_equal(during.result.load_error, 7);
  env_until(caches->env, after.ended == 1 || caches->one.held == 1);
  assert_int_equal(after.ended, 0);
  finish_load(&caches->one, "mended");
  expect_got_value(&after, "mended", BELAY_CACHE_FROM_LOAD);
  assert_int_equal(cache_stats(&caches->one).load_failures, 1);
}

/* No load begins during the rest after a failure; then the next one does. */
static void rest_and_load_again(int64_t stale_ms, int64_t keep_ms) {
  int64_t rest = 300 * slow();
  get_t get = {0};
  caches_t *caches = caches_open(stale_ms, keep_ms, rest);
  start_get(&caches->one, &get, "home");
  expect_loads(&caches->one, 1);
  int64_t since = server_now_ms(caches->env->server);
  fail_load(&caches->one, 7);
  expect_got_stale(&get, "v1", stale_ms > 0 ? 0 : BELAY_ELOAD);
  env_until(caches->env, cache_stats(&caches->one).loading == 0);
  for (int i = 0; i < 20; i++) {
    cache_t *cache = i % 2 ? &caches->one : &caches->two;
    start_get(cache, &get, "home");
    env_until(caches->env, get.ended == get.begun || cache->held > 0);
    if (server_now_ms(caches->env->server) >= since + rest - MARGIN_MS)
      break; /* the machine is too slow to tell */
    assert_int_equal(caches->one.held + caches->two.held, 0);
    expect_got_stale(&get, "v1", BELAY_ELOAD);
  }
  get_until_it_loads(caches, &caches->one, &get, "home");
  assert_true(server_now_ms(caches->env->server) >= since + rest - MARGIN_MS);
  finish_load(caches->one.held ? &caches->one : &caches->two, "v2");
  expect_got_data(&get, stale_ms > 0 ? "v1" : "v2");
  env_settle(caches->env);
  expect_ttls(caches->env->server);
  caches_close(caches);
}

TEST(stale_value_during_pause) {
  rest_and_load_again(60000, 0);
}

TEST(kept_value_during_pause) {
  rest_and_load_again(0, 60000);
}

/* ---- nobody loads ---- */

CACHE_TEST_(kept_value_without_loader, bare_options(cache), o.ttl_ms = TTL; o.keep_ms = 60000) {
  expect_no_value(cache, "home", BELAY_EABSENT);
  expect_put(cache, "home", "put", true);
  env_run_for(env, TTL + 10);
  expect_stale(cache, "home", "put", 0);
  expect_stats(cache, "gets 2, misses 1, stale_served 1, loads 0, refreshes 0, loading 0, fills 1");
}

/* A value is fresh for ttl_ms less up to the jitter; the server keeps it for as long as it is of
 * use. */
CACHE_TEST_OF(jitter, o.ttl_ms = 1000000; o.stale_ms = 5000; o.keep_ms = 2000000;
              o.jitter_percent = 50) {
  enum { N = 60 };
  int64_t least = 1000000, most = 0;
  for (int i = 0; i < N; i++) {
    get_t get = {0};
    char key[16], name[64], value[32];
    snprintf(key, sizeof key, "key%d", i);
    snprintf(value, sizeof value, "%s#%d", key, i + 1);
    expect_cached(cache, key, value, BELAY_CACHE_FROM_LOAD);
    env_settle(env);
    start_get(cache, &get, key);
    assert_error(end_of_get(&get), 0);
    int64_t ttl = get.result.remaining_ms;
    assert_between(ttl, 490000, 1000000);
    snprintf(name, sizeof name, "belay::cache::pages::{%s}", key);
    assert_between(server_integer(env->server, "PTTL", name, NULL), ttl + 2000000 - 5000,
                   ttl + 2000000 + 5000);
    least = ttl < least ? ttl : least;
    most = ttl > most ? ttl : most;
    get_free(&get);
  }
  assert_true(least < 625000 && most > 875000); /* each of them fails once in 3e7 */
}
