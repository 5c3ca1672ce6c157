/* Loads before a value expires: keep-fresh keys, and random early refreshes. */
#include <math.h>
#include <stdio.h>

#include "support/fixtures/cache/cache.h"
#include "support/models/scripts.h"

#define KEY "belay::cache::pages::{home}"
#define TTL (160 * slow())
#define LEAD (80 * slow())

/* ---- keep-fresh keys ---- */

static belay_cache_options_t fresh_options(cache_t *cache) {
  belay_cache_options_t options = cache_options(cache);
  options.ttl_ms = TTL;
  options.refresh_ms = LEAD;
  return options;
}

static void keep_fresh(cache_t *cache, const char *key) {
  assert_error(belay_cache_keep_fresh(cache->handle, belay_string(key)), 0);
}

static void let_key_expire(cache_t *cache, const char *key) {
  assert_error(belay_cache_let_expire(cache->handle, belay_string(key)), 0);
}

static void second_of(cache_t *cache, env_t *env, const belay_cache_options_t *options) {
  belay_cache_options_t o = *options;
  o.arg = cache;
  cache_open_on(cache, env, env_connect(env, server_url(env->server), NULL), &o);
}

/* Without a get the key stays fresh. One of the two processes loads it each time. */
ENV_TEST(fresh_key_stays_fresh) {
  cache_t one = {0}, two = {0};
  belay_cache_options_t options = fresh_options(&one);
  cache_open(&one, env, &options);
  second_of(&two, env, &options);
  keep_fresh(&one, "home");
  keep_fresh(&two, "home");
  keep_fresh(&two, "home"); /* is kept fresh already */
  env_until(env, one.loaded + two.loaded == 1);
  int64_t began = clock_now();
  env_until(env, one.loaded + two.loaded == 4);
  int64_t took = clock_since_ms(began);
  /* three times, each when no more than the lead is left */
  assert_true(took >= 3 * (TTL - LEAD) - 20);
  env_until(env, cache_stats(&one).loading + cache_stats(&two).loading == 0);
  belay_cache_stats_t a = cache_stats(&one), b = cache_stats(&two);
  assert_int_equal(a.gets + b.gets + a.misses + b.misses + a.hits + b.hits, 0);
  assert_int_equal(a.refreshes + b.refreshes, 4);
  assert_int_equal(a.loads + b.loads, 4);
  assert_int_equal(a.fills + b.fills, 4);
  assert_int_equal(a.refused_fills + b.refused_fills, 0);
  assert_int_equal(a.early + b.early, 0);
  get_t get = {0};
  start_get(&one, &get, "home");
  assert_error(end_of_get(&get), 0);
  assert_int_equal(get.result.from, BELAY_CACHE_FROM_SERVER);
  assert_false(get.result.stale);
  get_free(&get);
}

/* The present value is still fresh and is served during the load. */
CACHE_TEST_OF(fresh_key_loaded_ahead, o.ttl_ms = 2 * prompt_ms(); o.refresh_ms = o.ttl_ms - 40) {
  keep_fresh(cache, "home");
  env_until(env, cache_stats(cache).fills == 1);
  cache->loading = LOAD_BY_TEST;
  env_until(env, cache->held == 1);
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_SERVER);
  assert_int_equal(cache_stats(cache).misses, 0);
  finish_load(cache, "new");
  env_until(env, cache_stats(cache).fills == 2);
  expect_cached(cache, "home", "new", BELAY_CACHE_FROM_SERVER);
}

CACHE_TEST_(let_expire, fresh_options(cache), (void)o) {
  keep_fresh(cache, "home");
  env_until(env, cache_stats(cache).fills == 1);
  let_key_expire(cache, "home");
  assert_error(belay_cache_let_expire(cache->handle, belay_string("home")), BELAY_ESTATE);
  env_run_for(env, 2 * TTL);
  assert_int_equal(cache->loaded, 1);
  assert_int_equal(server_keys(env->server), 0); /* it has expired */
  keep_fresh(cache, "home");
  env_until(env, cache->loaded == 2);
  let_key_expire(cache, "home"); /* while it is being stored */
  env_until(env, cache_stats(cache).loading == 0);
}

/* A load by another process counts, too. */
ENV_TEST(fresh_key_not_loaded_early) {
  cache_t one = {0}, two = {0};
  belay_cache_options_t options = cache_options(&one);
  options.ttl_ms = 60000;
  cache_open(&one, env, &options);
  second_of(&two, env, &options);
  expect_cached(&one, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  keep_fresh(&two, "home");
  env_until(env, cache_stats(&two).bytes_in > 0);
  env_until(env, cache_stats(&two).loading == 0);
  assert_int_equal(two.loaded, 0);
}

/* Its loads fail: it is tried again, and comes back when they do not. */
CACHE_TEST_(fresh_key_loads_fail, fresh_options(cache), o.refresh_ms = 60; o.ttl_ms = 100) {
  keep_fresh(cache, "home");
  env_until(env, cache_stats(cache).fills == 1);
  cache->error = 5;
  env_until(env, cache_stats(cache).load_failures >= 4);
  env_until(env, server_keys(env->server) == 0 || cache_stats(cache).load_failures >= 20);
  cache->error = 0;
  env_until(env, cache_stats(cache).fills >= 2);
}

/* No load is tried while a failure is remembered. */
static void rest(int64_t keep_ms, bool loaded_before) {
  env_t *env = env_open(NULL);
  cache_t cache = {.error = loaded_before ? 0 : 5};
  belay_cache_options_t options = fresh_options(&cache);
  options.ttl_ms = 100;
  options.refresh_ms = 100;
  options.keep_ms = keep_ms;
  options.error_ms = 60000;
  cache_open(&cache, env, &options);
  keep_fresh(&cache, "home");
  if (loaded_before)
    env_until(env, cache_stats(&cache).fills == 1);
  cache.error = 5;
  env_until(env, cache_stats(&cache).load_failures == 1);
  env_run_for(env, 250);
  assert_int_equal(cache_stats(&cache).load_failures, 1);
  assert_int_equal(cache.loaded, loaded_before ? 2 : 1);
  env_close(env);
}

TEST(fresh_key_after_failed_load) {
  rest(60000, true);
  rest(0, false);
}

/* A remembered absence is not asked again. */
ENV_TEST(fresh_key_absent) {
  cache_t cache = {.absent = true};
  belay_cache_options_t options = fresh_options(&cache);
  options.ttl_ms = 60000;
  options.refresh_ms = 60; /* and so it looks soon */
  options.absent_ms = 200 * slow();
  cache_open(&cache, env, &options);
  keep_fresh(&cache, "home");
  env_until(env, cache_stats(&cache).fills == 1);
  int64_t began = clock_now();
  cache.absent = false;
  env_until(env, cache_stats(&cache).fills == 2);
  assert_true(clock_since_ms(began) >= options.absent_ms - 20);
  assert_int_equal(cache.loaded, 2);
  expect_cached(&cache, "home", "home#2", BELAY_CACHE_FROM_SERVER);
}

/* By the next look at the latest, or with the next get. */
ENV_TEST(fresh_key_invalidated) {
  cache_t one = {0}, two = {0};
  belay_cache_options_t options = fresh_options(&one);
  cache_open(&one, env, &options);
  second_of(&two, env, &options);
  keep_fresh(&one, "home");
  env_until(env, cache_stats(&one).fills == 1);
  expect_invalidate(&two, "home");
  env_until(env, cache_stats(&one).fills == 2);
  expect_cached(&two, "home", "home#2", BELAY_CACHE_FROM_SERVER);
  expect_invalidate(&one, "home");
  expect_cached(&two, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  env_until(env, cache_stats(&one).fills == 3);
}

/* And while it is being loaded. */
CACHE_TEST_(fresh_key_invalidated_during_load, fresh_options(cache),
            cache->loading = LOAD_BY_TEST) {
  keep_fresh(cache, "home");
  env_until(env, cache->held == 1);
  expect_invalidate(cache, "home");
  finish_load(cache, "old");
  env_until(env, cache->held == 1);
  assert_int_equal(cache_stats(cache).refused_fills, 1);
  finish_load(cache, "new");
  env_until(env, cache_stats(cache).fills == 1);
  expect_cached(cache, "home", "new", BELAY_CACHE_FROM_SERVER);
  let_key_expire(cache, "home");
}

/* uv_run() returns. */
CACHE_TEST_(fresh_key_does_not_keep_the_loop, fresh_options(cache),
            o.ttl_ms = o.refresh_ms = 60000) {
  keep_fresh(cache, "home");
  env_until(env, cache_stats(cache).fills == 1);
  uv_run(&env->loop, UV_RUN_DEFAULT);
  assert_int_equal(cache_stats(cache).loading, 0);
}

CACHE_TEST(close_with_many_fresh_keys) {
  enum { N = 300 };
  char key[16];
  for (int i = 0; i < N; i++) {
    snprintf(key, sizeof key, "key%d", i);
    keep_fresh(cache, key);
  }
  env_until(env, cache->loaded > 0);
  let_key_expire(cache, "key7");
  assert_error(begin_close_cache(cache), 0);
  assert_error(belay_cache_keep_fresh(cache->handle, belay_string("x")), BELAY_ECLOSING);
  assert_error(belay_cache_let_expire(cache->handle, belay_string("key8")), BELAY_ECLOSING);
  env_until(env, cache->closed == 1);
}

ENV_TEST(keep_fresh_arguments) {
  static char big[BELAY_CACHE_KEY_MAX + 1];
  cache_t cache = {0}, bare = {0};
  cache_open(&cache, env, NULL);
  belay_cache_options_t options = bare_options(&bare);
  cache_open(&bare, env, &options);
  assert_error(belay_cache_keep_fresh(NULL, belay_string("home")), BELAY_EINVAL);
  assert_error(belay_cache_keep_fresh(cache.handle, belay_bytes(NULL, 4)), BELAY_EINVAL);
  assert_error(belay_cache_keep_fresh(cache.handle, belay_string("")), BELAY_EINVAL);
  assert_error(belay_cache_keep_fresh(cache.handle, belay_bytes(big, sizeof big)), BELAY_EINVAL);
  assert_error(belay_cache_keep_fresh(bare.handle, belay_string("home")),
               BELAY_EINVAL); /* there is no loader */
  assert_non_null(strstr(belay_detail(env->belay), "load"));
  assert_error(belay_cache_let_expire(NULL, belay_string("home")), BELAY_EINVAL);
  assert_error(belay_cache_let_expire(cache.handle, belay_bytes(NULL, 4)), BELAY_EINVAL);
  assert_error(belay_cache_let_expire(cache.handle, belay_string("")), BELAY_EINVAL);
  assert_error(belay_cache_let_expire(cache.handle, belay_string("home")), BELAY_ESTATE);
  assert_int_equal(cache.loaded, 0);
}

/* ---- beta ---- */

/* How long the load took, as it stands in the record: microseconds. */
static double load_us(server_t *server) {
  return (double)server_integer(server, "EVAL",
                                "local s = redis.call('GETRANGE', KEYS[1], 40, 43) "
                                "return s:byte(1) + 256 * (s:byte(2) + 256 * (s:byte(3) + "
                                "256 * s:byte(4)))",
                                "1", KEY, NULL);
}

/* The number of early refreshes in n gets with left_ms until the end of freshness. They fail, so
 * that the value stays. */
static unsigned count_early(cache_t *cache, unsigned n, int64_t left_ms) {
  unsigned before = cache->loaded;
  belay_cache_stats_t was = cache_stats(cache);
  for (unsigned i = 0; i < n; i++) {
    if (i % 20 == 0)
      expect_touch(cache, "home", left_ms, true);
    expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_SERVER);
    env_until(cache->env, cache_stats(cache).loading == 0);
  }
  belay_cache_stats_t is = cache_stats(cache);
  assert_int_equal(is.hits - was.hits, n);
  assert_int_equal(is.early - was.early, cache->loaded - before);
  assert_int_equal(is.refreshes - was.refreshes, cache->loaded - before);
  assert_int_equal(is.misses, was.misses);
  return cache->loaded - before;
}

static void load_slowly(cache_t *cache) {
  cache->loading = LOAD_LATER;
  cache->delay_ms = 30;
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  env_until(cache->env, cache->timers == 0 && cache_stats(cache).loading == 0);
  cache->loading = LOAD_AT_ONCE;
  cache->error = 5;
}

/* With the probability e^(-left / (beta * delta)): it grows as the end draws near. */
ENV_TEST(early_refreshes) {
  enum { N = 200 };
  static const double left[] = {2.5, 1, 0.2}; /* of beta * delta */
  cache_t cache = {0};
  belay_cache_options_t options = cache_options(&cache);
  options.beta = 1000;
  cache_open(&cache, env, &options);
  load_slowly(&cache);
  double delta_ms = load_us(env->server) / 1000;
  assert_true(delta_ms >= 29 && delta_ms < 3000);
  for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
    double p = exp(-left[i]), sigma = sqrt(N * p * (1 - p));
    unsigned n = count_early(&cache, N, (int64_t)(left[i] * options.beta * delta_ms));
    if (fabs(n - N * p) > 5 * sigma + 2) /* the elapsed time is small beside left_ms */
      fail_msg("with %g left: %u of %d, not %g", left[i], n, N, N * p);
  }
  assert_int_equal(cache_stats(&cache).stale_served, 0);
}

CACHE_TEST(none_without_beta) {
  load_slowly(cache);
  assert_int_equal(count_early(cache, 100, 1000), 0);
}

/* A successful refresh is stored; gets during it are served the old value. */
CACHE_TEST_OF(an_early_refresh_is_stored, o.beta = 1000; cache->loading = LOAD_LATER;
              cache->delay_ms = 30) {
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  env_until(env, cache_stats(cache).loading == 0);
  expect_touch(cache, "home", 1000, true); /* with e^(-1/30) */
  cache->loading = LOAD_BY_TEST;
  while (cache->held == 0) {
    expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_SERVER);
    env_until(env, cache->held > 0 || cache_stats(cache).loading == 0);
  }
  for (int i = 0; i < 20; i++)
    expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_SERVER);
  assert_int_equal(cache_stats(cache).early, 1);
  assert_int_equal(cache->loaded, 2);
  finish_load(cache, "new");
  env_until(env, cache_stats(cache).fills == 2);
  cache->loading = LOAD_AT_ONCE;
  expect_cached(cache, "home", "new", BELAY_CACHE_FROM_SERVER);
  env_until(env, cache->timers == 0);
}

/* From the table of this process, too, where nothing is asked. */
CACHE_TEST_OF(early_from_the_table, o.beta = 1000; o.local_bytes = 100000;
              o.ttl_ms = o.local_ttl_ms = 30000; cache->loading = LOAD_LATER;
              cache->delay_ms = 30) {
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  env_until(env, cache_stats(cache).loading == 0);
  cache->loading = LOAD_BY_TEST;
  for (int i = 0; i < 1000 && cache_stats(cache).loading == 0; i++) /* each with about 1/e */
    expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_LOCAL);
  env_until(env, cache->held == 1);
  assert_int_equal(cache_stats(cache).early, 1);
  finish_load(cache, "new");
  env_until(env, cache_stats(cache).fills == 2);
  cache->loading = LOAD_AT_ONCE;
  expect_cached(cache, "home", "new", BELAY_CACHE_FROM_LOCAL);
  env_until(env, cache->timers == 0);
}
