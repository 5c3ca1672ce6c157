/* Checks before a load: remembered absence, the limiter, the filter. */
#include <stdio.h>

#include "support/fixtures/limit/asks.h"
#include "support/fixtures/data/blooms.h"
#include "support/fixtures/cache/cache.h"
#include "support/models/scripts.h"

#define S INT64_C(1000000)
#define KEY "belay::cache::pages::{home}"

/* ---- absent_ms ---- */

ENV_TEST(absence_stored) {
  cache_t one = {.absent = true}, two = {.absent = true};
  belay_cache_options_t options = cache_options(&one);
  options.absent_ms = 60000;
  options.stale_ms = options.keep_ms = 3600000; /* not of this */
  cache_open(&one, env, &options);
  options.arg = &two;
  cache_open_on(&two, env, env_connect(env, server_url(env->server), NULL), &options);
  get_t get = {0};
  start_get(&one, &get, "home");
  expect_got_nothing(&get, BELAY_EABSENT);
  assert_int_equal(get.result.from, BELAY_CACHE_FROM_LOAD);
  env_until(env, cache_stats(&one).loading == 0);
  assert_between(server_integer(env->server, "PTTL", KEY, NULL), 50000, 60000);
  for (int i = 0; i < 3; i++) {
    start_get(&two, &get, "home");
    expect_got_nothing(&get, BELAY_EABSENT);
    assert_int_equal(get.result.from, BELAY_CACHE_FROM_SERVER);
    assert_between(get.result.remaining_ms, 50000, 60030);
  }
  belay_cache_stats_t stats = cache_stats(&one);
  expect_stats(&one, "fills 1, misses 1, absent_served 1, hits 0");
  stats = cache_stats(&two);
  assert_int_equal(stats.hits, 3);
  assert_int_equal(stats.absent_served, 3);
  assert_int_equal(stats.misses + stats.loads, 0);
  expect_invalidate(&two, "home"); /* now it does */
  two.absent = false;
  expect_cached(&two, "home", "home#1", BELAY_CACHE_FROM_LOAD);
}

CACHE_TEST_OF(ban_durations, o.absent_ms = 50; o.stale_ms = o.keep_ms = 3600000;
              cache->absent = true) {
  expect_no_value(cache, "home", BELAY_EABSENT);
  env_run_for(env, 60);
  cache->absent = false;
  expect_cached(cache, "home", "home#2", BELAY_CACHE_FROM_LOAD);
}

CACHE_TEST_OF(absence_not_stored_by_default, cache->absent = true) {
  expect_no_value(cache, "home", BELAY_EABSENT);
  expect_no_value(cache, "home", BELAY_EABSENT);
  env_until(env, cache_stats(cache).loading == 0);
  env_settle(env);
  expect_stats(cache, "loads 2, fills 0, bytes_out 0, hits 0, refused_fills 0");
  assert_int_equal(server_keys(env->server), 0);
}

/* ---- the limiter ---- */

/* As good as never filled again. */
static belay_limiter_t *few(env_t *env, int64_t tokens) {
  belay_limit_t limit = bucket_limit(1, 100000 * S, tokens);
  return limiter_new(env, &limit, 1);
}

ENV_TEST(a_limit_for_the_cache) {
  cache_t cache = {0};
  belay_cache_options_t options = cache_options(&cache);
  options.limiter = few(env, 2);
  cache_open(&cache, env, &options);
  expect_cached(&cache, "a", "a#1", BELAY_CACHE_FROM_LOAD);
  expect_cached(&cache, "b", "b#2", BELAY_CACHE_FROM_LOAD);
  get_t get = {0};
  start_get(&cache, &get, "c");
  expect_got_nothing(&get, BELAY_ELIMITED);
  assert_int_equal(get.result.from, BELAY_CACHE_FROM_NOWHERE);
  expect_cached(&cache, "a", "a#1", BELAY_CACHE_FROM_SERVER); /* takes none */
  assert_int_equal(server_integer(env->server, "EXISTS", "belay::limit::test::{loads}", NULL), 1);
  env_until(env, cache_stats(&cache).loading == 0);
  expect_stats(&cache, "loads 2, limited 1, misses 3, load_failures 0");
  assert_int_equal(take(env, options.limiter, "loads", 1)->verdict, BELAY_DENIED);
}

CACHE_TEST_OF(a_limit_for_each_key, o.limiter = few(env, 1); o.limit_per_key = true) {
  expect_cached(cache, "a", "a#1", BELAY_CACHE_FROM_LOAD);
  expect_cached(cache, "b", "b#2", BELAY_CACHE_FROM_LOAD);
  expect_invalidate(cache, "a");
  expect_no_value(cache, "a", BELAY_ELIMITED);
  expect_cached(cache, "c", "c#3", BELAY_CACHE_FROM_LOAD);
  assert_int_equal(server_integer(env->server, "EXISTS", "belay::limit::test::{a}", NULL), 1);
  assert_int_equal(server_integer(env->server, "EXISTS", "belay::limit::test::{loads}", NULL), 0);
  env_settle(env);
  expect_ttls(env->server);
}

/* Stale if there is any. */
ENV_TEST(stale_value_when_load_limited) {
  cache_t stale = {0}, kept = {0};
  belay_cache_options_t options = cache_options(&stale);
  options.limiter = few(env, 2);
  options.ttl_ms = 30;
  options.stale_ms = 60000;
  cache_open(&stale, env, &options);
  options.name = belay_string("kept");
  options.stale_ms = 0;
  options.keep_ms = 60000;
  options.arg = &kept;
  cache_open(&kept, env, &options);
  expect_cached(&stale, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  expect_cached(&kept, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  env_run_for(env, 40);
  expect_stale(&stale, "home", "home#1", 0);
  expect_stale(&kept, "home", "home#1", BELAY_ELIMITED);
  env_until(env, cache_stats(&stale).limited == 1 && cache_stats(&stale).loading == 0);
  assert_int_equal(stale.loaded, 1);
  assert_int_equal(kept.loaded, 1);
  assert_int_equal(cache_stats(&stale).refreshes, 0); /* nothing was loaded */
  expect_stats(&kept, "limited 1, stale_served 1");
}

/* A load after too long a wait takes a token, too. A get that keeps waiting may still be served. */
ENV_TEST(a_late_load_takes_a_token) {
  cache_t one = {.loading = LOAD_BY_TEST}, two = {.loading = LOAD_BY_TEST};
  belay_cache_options_t options = cache_options(&one);
  options.limiter = few(env, 2);
  options.wait_ms = prompt_ms();
  options.late = BELAY_CACHE_LATE_LOAD;
  cache_open(&one, env, &options);
  options.arg = &two;
  cache_open_on(&two, env, env_connect(env, server_url(env->server), NULL), &options);
  get_t get = {0}, late = {0}, later = {0}, patient = {0};
  start_get(&one, &get, "home");
  env_until(env, one.held == 1);
  start_get(&two, &late, "home");
  env_until(env, two.held == 1);
  assert_int_equal(cache_stats(&two).losers, 1);
  finish_load(&two, "loser");
  expect_got_value(&late, "loser", BELAY_CACHE_FROM_LOAD);
  start_get(&two, &later, "home"); /* there are none left */
  env_run_for(env, lag());         /* so it has that much time left when the other one is late */
  start_get(&two, &patient, "home");
  expect_got_nothing(&later, BELAY_ELIMITED);
  assert_true(cache_stats(&two).limited >= 1);
  assert_int_equal(two.loaded, 1);
  finish_load(&one, "winner");
  expect_got_value(&get, "winner", BELAY_CACHE_FROM_LOAD);
  assert_error(end_of_get(&patient), 0);
  get_free(&patient);
}

/* A URL without a server. */
static belay_client_t *nowhere(env_t *env) {
  belay_client_options_t options = client_options();
  options.timeout_ms = options.connect_timeout_ms = 40;
  return env_connect(env, "unix:///nonexistent/belay.sock", &options);
}

ENV_TEST(a_limiter_that_cannot_answer) {
  cache_t cache = {0};
  belay_limit_t limit = bucket_limit(1, S, 1);
  belay_limiter_options_t limits = limiter_options(&limit, 1);
  belay_client_t *away = nowhere(env);
  belay_cache_options_t options = cache_options(&cache);
  options.limiter = limiter_with(env, away, &limits);
  cache_open(&cache, env, &options);
  expect_no_value(&cache, "home", BELAY_ELIMITED);
  assert_int_equal(cache.loaded, 0);
  assert_int_equal(cache_stats(&cache).limited, 1);

  cache_t open = {0};
  limits.away = BELAY_AWAY_OPEN;
  options = cache_options(&open);
  options.limiter = limiter_with(env, away, &limits);
  cache_open(&open, env, &options);
  expect_cached(&open, "home", "home#1", BELAY_CACHE_FROM_LOAD);
}

/* ---- the filter ---- */

ENV_TEST(key_not_in_filter) {
  cache_t cache = {0};
  filter_t filter;
  filter_new(&filter, env, 1000, 0.0001);
  assert_true(filter_add(&filter, "home"));
  belay_cache_options_t options = cache_options(&cache);
  options.filter = filter.bloom;
  options.absent_ms = 60000;
  cache_open(&cache, env, &options);
  expect_cached(&cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  env_until(env, cache_stats(&cache).loading == 0);
  env_settle(env);
  int64_t keys = server_keys(env->server);
  get_t get = {0}, other = {0};
  start_get(&cache, &get, "ghost");
  start_get(&cache, &other, "ghost");
  expect_got_nothing(&get, BELAY_EABSENT);
  expect_got_nothing(&other, BELAY_EABSENT);
  assert_int_equal(get.result.from, BELAY_CACHE_FROM_NOWHERE);
  env_settle(env);
  assert_int_equal(server_keys(env->server), keys); /* nothing is kept of it */
  belay_cache_stats_t stats = cache_stats(&cache);
  expect_stats(&cache, "loads 1");
  assert_in_range(stats.filtered, 1, 2);
  assert_int_equal(stats.misses, 3);
  assert_int_equal(stats.loading, 0);
  assert_true(filter_add(&filter, "ghost"));
  expect_cached(&cache, "ghost", "ghost#2", BELAY_CACHE_FROM_LOAD);
}

ENV_TEST(gets_of_fresh_key) {
  cache_t cache = {0};
  filter_t filter;
  filter_new(&filter, env, 1000, 0.0001);
  assert_true(filter_add(&filter, "home"));
  belay_cache_options_t options = cache_options(&cache);
  options.filter = filter.bloom;
  options.ttl_ms = 100; /* and so it looks again soon */
  cache_open(&cache, env, &options);
  assert_error(belay_cache_keep_fresh(cache.handle, belay_string("ghost")), 0);
  assert_error(belay_cache_keep_fresh(cache.handle, belay_string("home")), 0);
  env_until(env, cache.loaded == 2);
  assert_true(cache_stats(&cache).filtered >= 1);
  assert_int_equal(server_integer(env->server, "EXISTS", "belay::cache::pages::{ghost}", NULL), 0);
}

ENV_TEST(a_filter_that_cannot_answer) {
  cache_t broken = {0}, away = {0};
  filter_t filter, far;
  filter_new(&filter, env, 1000, 0.0001);
  assert_true(filter_add(&filter, "home"));
  server_do(env->server, "EVAL",
            "for _, key in ipairs(redis.call('KEYS', '*')) do redis.call('DEL', key) "
            "redis.call('RPUSH', key, 'x') end",
            "0", NULL);
  belay_cache_options_t options = cache_options(&broken);
  options.filter = filter.bloom;
  cache_open(&broken, env, &options);
  expect_cached(&broken, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  belay_bloom_options_t blooms = bloom_options(1000, 0.0001);
  filter_of(&far, env, nowhere(env), &blooms);
  options.filter = far.bloom;
  options.arg = &away;
  cache_open(&away, env, &options);
  expect_cached(&away, "other", "other#1", BELAY_CACHE_FROM_LOAD);
  assert_int_equal(cache_stats(&broken).filtered + cache_stats(&away).filtered, 0);
}

TEST(of_another_belay) {
  env_t *env = env_open(NULL), *other = env_open(NULL);
  filter_t filter;
  belay_cache_t *handle;
  cache_t cache = {0};
  belay_cache_options_t options = cache_options(&cache);
  options.limiter = few(other, 1);
  assert_error(belay_cache_new(env->client, &options, &handle), BELAY_EINVAL);
  assert_non_null(strstr(belay_detail(env->belay), "limiter"));
  filter_new(&filter, other, 1000, 0.01);
  options.limiter = NULL;
  options.filter = filter.bloom;
  assert_error(belay_cache_new(env->client, &options, &handle), BELAY_EINVAL);
  assert_null(handle);
  env_close(other);
  env_close(env);
}

/* All end while the limiter, or the filter, is asked. */
ENV_TEST(closing_while_they_are_asked) {
  cache_t limited = {0}, filtered = {0};
  belay_client_t *slow_one = env_connect(env, "unix:///nonexistent/belay.sock", NULL);
  belay_limit_t limit = bucket_limit(1, S, 1);
  belay_limiter_options_t limits = limiter_options(&limit, 1);
  belay_bloom_options_t blooms = bloom_options(1000, 0.0001);
  filter_t filter;
  filter_of(&filter, env, slow_one, &blooms);
  belay_cache_options_t options = cache_options(&limited);
  options.limiter = limiter_with(env, slow_one, &limits);
  cache_open(&limited, env, &options);
  options = cache_options(&filtered);
  options.filter = filter.bloom;
  cache_open(&filtered, env, &options);
  get_t gets[2] = {0};
  start_get(&limited, &gets[0], "home");
  start_get(&filtered, &gets[1], "other");
  env_run_for(env, 30);
  assert_int_equal(gets[0].ended + gets[1].ended, 0);
  assert_error(begin_close_cache(&limited), 0);
  assert_error(begin_close_cache(&filtered), 0);
  env_until(env, limited.closed + filtered.closed == 2);
  for (int i = 0; i < 2; i++)
    expect_got_nothing(&gets[i], BELAY_ECANCELED);
}
