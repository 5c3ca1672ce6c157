/* Caches: a stored value is served, and a missing one is loaded once. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "support/fixtures/cache/cache.h"
#include "support/models/scripts.h"

#define KEY "belay::cache::pages::{home}"

CACHE_TEST(missing_value_loaded) {
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_SERVER);
  expect_cached(cache, "about", "about#2", BELAY_CACHE_FROM_LOAD);
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_SERVER);
  assert_int_equal(cache->loaded, 2);
  env_settle(env);
  assert_int_equal(server_keys(env->server), 2);
  expect_ttls(env->server);
  expect_invalidate(cache, "home");
  expect_cached(cache, "home", "home#3", BELAY_CACHE_FROM_LOAD);
}

/* A get keeps short keys elsewhere than long ones. */
CACHE_TEST(keys_of_all_lengths) {
  static const size_t lens[] = {1, 63, 64, 65, BELAY_CACHE_KEY_MAX};
  for (unsigned i = 0; i < sizeof lens / sizeof *lens; i++) {
    char key[BELAY_CACHE_KEY_MAX + 1], text[BELAY_CACHE_KEY_MAX + 16];
    get_t get = {0};
    memset(key, 'a' + (int)i, lens[i]);
    key[lens[i]] = '\0';
    (void)snprintf(text, sizeof text, "%s#%u", key, i + 1);
    start_get(cache, &get, key);
    assert_int_equal(belay_request_cancel(&get.request), 0);
    assert_int_equal(end_of_get(&get), BELAY_ECANCELED);
    expect_cached(cache, key, text, BELAY_CACHE_FROM_LOAD);
    expect_cached(cache, key, text, BELAY_CACHE_FROM_SERVER);
  }
}

ENV_TEST(one_load_for_all_waiting_gets) {
  enum { N = 1000 };
  cache_t caches[2] = {{.loading = LOAD_LATER, .delay_ms = 50},
                       {.loading = LOAD_LATER, .delay_ms = 50}};
  get_t *gets = calloc(N, sizeof *gets);
  belay_client_t *other = env_connect(env, server_url(env->server), NULL);
  cache_open(&caches[0], env, NULL);
  cache_open_on(&caches[1], env, other, NULL);
  for (int i = 0; i < N; i++)
    start_get(&caches[i % 2], &gets[i], "home");
  for (int i = 0; i < N; i++) {
    expect_got_data(&gets[i], "home#1");
  }
  assert_int_equal(caches[0].loaded + caches[1].loaded, 1);
  free(gets);
  env_settle(env);
  env_until(env, caches[0].timers + caches[1].timers == 0);
}

CACHE_TEST_OF(absence_and_failure_with_tags, o.absent_ms = 60000; o.error_ms = 60000;
              cache->absent = true) {
  expect_no_value(cache, "ghost", BELAY_EABSENT);
  expect_no_value(cache, "ghost", BELAY_EABSENT);
  assert_int_equal(cache->loaded, 1);
  cache->absent = false;
  cache->error = 7;
  expect_no_value(cache, "broken", BELAY_ELOAD);
  expect_no_value(cache, "broken", BELAY_ELOAD);
  assert_int_equal(cache->loaded, 2);
}

CACHE_TEST_OF(stale, o.ttl_ms = 50; o.stale_ms = 60000) {
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  env_run_for(env, 60);
  expect_stale(cache, "home", "home#1", 0);
  env_until(env, cache_stats(cache).fills == 2);
  expect_cached(cache, "home", "home#2", BELAY_CACHE_FROM_SERVER);
}

/* Both handles would like to, and one of them does. */
ENV_TEST(refresh_counted_by_loading_process) {
  belay_client_t *other = env_connect(env, server_url(env->server), NULL);
  cache_t caches[2] = {{.loading = LOAD_BY_TEST}, {.loading = LOAD_BY_TEST}};
  for (unsigned i = 0; i < 2; i++) {
    belay_cache_options_t options = cache_options(&caches[i]);
    options.stale_ms = 60000;
    cache_open_on(&caches[i], env, i == 0 ? env->client : other, &options);
  }
  change_t put = {0};
  assert_int_equal(begin_put(&caches[0], &put, "home", "old"), 0);
  assert_int_equal(end_of_change(&put), 0);
  expect_touch(&caches[0], "home", 1, true);
  env_run_for(env, 5);
  expect_stale(&caches[0], "home", "old", 0);
  expect_stale(&caches[1], "home", "old", 0);
  env_until(env, caches[0].held + caches[1].held == 1);
  unsigned loader = caches[0].held == 0;
  env_until(env, cache_stats(&caches[1 - loader]).loading == 0);
  finish_load(&caches[loader], "new");
  env_until(env, cache_stats(&caches[loader]).loading == 0);
  assert_int_equal(cache_stats(&caches[loader]).refreshes, 1);
  assert_int_equal(cache_stats(&caches[1 - loader]).refreshes, 0);
  assert_int_equal(cache_stats(&caches[loader]).early, 0);
  expect_cached(&caches[1 - loader], "home", "new", BELAY_CACHE_FROM_SERVER);
}

/* ---- what is refused ---- */

typedef struct option_row {
  size_t offset;
  const char *name;
  int64_t min, max; /* and one less, and one more, is refused */
} option_row_t;

#define ROW(field, min, max) offsetof(belay_cache_options_t, field), #field, min, max

static int try_options(env_t *env, const belay_cache_options_t *options) {
  belay_cache_t *cache;
  int error = belay_cache_new(env->client, options, &cache);
  assert_true((error == 0) == (cache != NULL));
  if (error == 0)
    assert_error(belay_cache_close(cache, NULL), 0);
  return error;
}

static int try_time(env_t *env, cache_t *cache, const option_row_t *row, int64_t value) {
  belay_cache_options_t options = cache_options(cache);
  options.ttl_ms = 31536000000; /* so that refresh_ms and keep_ms may be as large as they can */
  memcpy((char *)&options + row->offset, &value, sizeof value);
  if (row->offset == offsetof(belay_cache_options_t, retry_min_ms))
    options.retry_max_ms = 60000;
  if (row->offset == offsetof(belay_cache_options_t, retry_max_ms))
    options.retry_min_ms = 1;
  int error = try_options(env, &options);
  if (error != 0)
    assert_non_null(strstr(belay_detail(env->belay), row->name));
  return error;
}

TEST(ranges_of_times) {
  static const option_row_t rows[] = {
      {ROW(ttl_ms, 1, 31536000000)},    {ROW(stale_ms, 0, 31536000000)},
      {ROW(absent_ms, 0, 31536000000)}, {ROW(error_ms, 0, 31536000000)},
      {ROW(lease_ms, 100, 86400000)},   {ROW(load_timeout_ms, 1, 3600000)},
      {ROW(timeout_ms, 1, 600000)},     {ROW(retry_min_ms, 1, 60000)},
      {ROW(retry_max_ms, 1, 60000)},    {ROW(wait_ms, 0, 600000)},
      {ROW(local_ttl_ms, 1, 86400000)}, {ROW(refresh_ms, 1, 31536000000)},
      {ROW(keep_ms, 0, 31536000000)},
  };
  env_t *env = env_open(NULL);
  cache_t cache = {0};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_error(try_time(env, &cache, &rows[i], rows[i].min), 0);
    assert_error(try_time(env, &cache, &rows[i], rows[i].max), 0);
    assert_error(try_time(env, &cache, &rows[i], rows[i].max + 1), BELAY_EINVAL);
    assert_error(try_time(env, &cache, &rows[i], INT64_MIN), BELAY_EINVAL);
    if (rows[i].offset == offsetof(belay_cache_options_t, refresh_ms))
      assert_error(try_time(env, &cache, &rows[i], 0), BELAY_EINVAL); /* -1: BELAY_DEFAULT */
    else
      assert_error(try_time(env, &cache, &rows[i], rows[i].min - 1), BELAY_EINVAL);
  }
  env_close(env);
}

/* Sets a field of the defaults, and tries. */
#define TRY(field, value)                                                                          \
  (options = cache_options(&cache), options.field = (value), try_options(env, &options))

ENV_TEST(ranges_of_numbers) {
  cache_t cache = {0};
  belay_cache_options_t options;
  assert_error(TRY(jitter_percent, 90), 0);
  assert_error(TRY(jitter_percent, 91), BELAY_EINVAL);
  assert_error(TRY(max_away_loads, 0), BELAY_EINVAL);
  assert_error(TRY(max_away_loads, 65536), 0);
  assert_error(TRY(max_away_loads, 65537), BELAY_EINVAL);
  assert_error(TRY(late, (belay_cache_late_t)0), BELAY_EINVAL);
  assert_error(TRY(late, BELAY_CACHE_LATE_LOAD), 0);
  assert_error(TRY(late, (belay_cache_late_t)4), BELAY_EINVAL);
  assert_error(TRY(away, BELAY_CACHE_AWAY_LOAD), 0);
  assert_error(TRY(away, (belay_cache_away_t)3), BELAY_EINVAL);
  assert_error(TRY(beta, 1000), 0);
  assert_error(TRY(beta, 1000.1), BELAY_EINVAL);
  assert_error(TRY(beta, -0.1), BELAY_EINVAL);
  assert_error(TRY(beta, NAN), BELAY_EINVAL);
  assert_error(TRY(wait_ms, BELAY_FOREVER), 0);
  assert_error(TRY(refresh_ms, 300001), BELAY_EINVAL); /* more than ttl_ms */
  assert_error(TRY(ttl_ms, 1), 0);                     /* a fifth of that */
  assert_error(TRY(retry_max_ms, 19), BELAY_EINVAL);   /* less than retry_min_ms */
  assert_error(TRY(max_value_bytes, 0), BELAY_EINVAL);
  assert_error(TRY(max_value_bytes, 1), 0);
  assert_error(TRY(max_value_bytes, BELAY_CACHE_VALUE_MAX), BELAY_EINVAL); /* for this client */
  assert_non_null(strstr(belay_detail(env->belay), "max_reply"));
  assert_error(TRY(max_value_bytes, SIZE_MAX), BELAY_EINVAL);
  assert_error(TRY(name.len, 129), BELAY_EINVAL);
  assert_error(TRY(compress_bytes, SIZE_MAX), 0);
  options = cache_options(&cache);
  options.stale_ms = 1000;
  options.keep_ms = 999;
  assert_error(try_options(env, &options), BELAY_EINVAL);
  options.keep_ms = 1000;
  assert_error(try_options(env, &options), 0);
}

ENV_TEST(null_arguments) {
  cache_t cache = {.env = env};
  belay_cache_stats_t stats;
  belay_cache_stats(NULL, NULL);
  memset(&stats, 1, sizeof stats);
  belay_cache_stats(NULL, &stats);
  assert_int_equal(stats.gets, 0);
  assert_error(belay_cache_load_done(NULL, belay_string("x")), BELAY_EINVAL);
  assert_error(belay_cache_load_absent(NULL), BELAY_EINVAL);
  assert_error(belay_cache_load_failed(NULL, 1), BELAY_EINVAL);
  assert_false(belay_cache_load_is_wanted(NULL));
  assert_error(belay_cache_new(env->client, NULL, &cache.handle), 0); /* all as it comes */
  assert_null(belay_cache_data(cache.handle));
  expect_no_value(&cache, "home", BELAY_EABSENT);
  expect_put(&cache, "home", "put", true);
  expect_cached(&cache, "home", "put", BELAY_CACHE_FROM_SERVER);
  assert_int_equal(server_integer(env->server, "EXISTS", "belay::cache::{home}", NULL), 1);
}

CACHE_TEST(get_arguments) {
  static char big[BELAY_CACHE_KEY_MAX + 1];
  get_t get = {.cache = cache, .request.data = &get};
  belay_request_t *request = &get.request;
  memset(big, 'k', sizeof big);
  belay_cache_t *handle = cache->handle;
  assert_error(belay_cache_get(handle, NULL, belay_string("k"), on_got), BELAY_EINVAL);
  assert_error(belay_cache_get(handle, request, belay_string("k"), NULL), BELAY_EINVAL);
  assert_error(belay_cache_get(handle, request, belay_bytes(NULL, 1), on_got), BELAY_EINVAL);
  assert_error(belay_cache_get(handle, request, belay_string(""), on_got), BELAY_EINVAL);
  assert_error(belay_cache_get(handle, request, belay_bytes(big, sizeof big), on_got),
               BELAY_EINVAL);
  assert_error(begin_get_late(cache, &get, "k", (belay_cache_late_t)0), BELAY_EINVAL);
  assert_error(begin_get_late(cache, &get, "k", (belay_cache_late_t)4), BELAY_EINVAL);
  assert_int_equal(cache_stats(cache).gets, 0);
  start_get(cache, &get, "k");
  assert_error(belay_cache_get(handle, request, belay_string("k"), on_got), BELAY_ESTATE);
  expect_got_value(&get, "k#1", BELAY_CACHE_FROM_LOAD);
  big[BELAY_CACHE_KEY_MAX] = '\0'; /* the longest, with a lease whose key is a hash */
  start_get(cache, &get, big);
  assert_error(end_of_get(&get), 0);
  get_free(&get);
  env_settle(env);
  assert_int_equal(server_keys(env->server), 2);
}

/* ---- loads ---- */

CACHE_TEST_OF(how_a_load_is_not_ended, cache->loading = LOAD_BY_TEST) {
  get_t get = {0};
  start_get(cache, &get, "home");
  env_until(env, cache->held == 1);
  assert_error(belay_cache_load_done(cache->loads[0], belay_bytes(NULL, 1)), BELAY_EINVAL);
  assert_error(belay_cache_load_failed(cache->loads[0], 0), BELAY_EINVAL);
  assert_true(belay_cache_load_is_wanted(cache->loads[0]));
  finish_load(cache, "v1");
  expect_got_value(&get, "v1", BELAY_CACHE_FROM_LOAD);
}

/* A loader of its own: it remembers what it was given, and may do more. */
typedef struct kept_load {
  cache_t cache;
  belay_cache_load_t *load;
  const char *key;
  size_t key_len;
  bool closes;
} kept_load_t;

static void keep_load(belay_cache_load_t *load, const char *key, size_t key_len, void *arg) {
  kept_load_t *kept = arg;
  kept->load = load;
  kept->key = key;
  kept->key_len = key_len;
  if (kept->closes)
    assert_error(begin_close_cache(&kept->cache), 0);
}

static void kept_load_open(kept_load_t *kept, env_t *env) {
  belay_cache_options_t options = cache_options(&kept->cache);
  options.load = keep_load;
  options.arg = kept;
  cache_open(&kept->cache, env, &options);
}

/* Its key is there until it is ended, and so is its memory, whatever ends before: the get, the
 * cache, belay. */
ENV_TEST(a_load_outlives_everything) {
  kept_load_t kept = {0};
  get_t get = {0};
  kept_load_open(&kept, env);
  start_get(&kept.cache, &get, "home");
  env_until(env, kept.load != NULL);
  assert_error(belay_request_cancel(&get.request), 0);
  expect_got_nothing(&get, BELAY_ECANCELED);
  assert_true(belay_cache_load_is_wanted(kept.load));
  assert_memory_equal(kept.key, "home", 4);
  assert_int_equal(kept.key_len, 4);
  assert_error(begin_belay_close(env), 0);
  env_until(env, env->belay_closed == 1);
  assert_false(belay_cache_load_is_wanted(kept.load));
  assert_memory_equal(kept.key, "home", 4);
  assert_error(belay_cache_load_done(kept.load, belay_string("late")), 0);
}

ENV_TEST(a_loader_that_closes) {
  kept_load_t kept = {.closes = true};
  get_t get = {0};
  kept_load_open(&kept, env);
  start_get(&kept.cache, &get, "home");
  expect_got_nothing(&get, BELAY_ECANCELED);
  env_until(env, kept.cache.closed == 1);
  assert_false(belay_cache_load_is_wanted(kept.load));
  assert_error(belay_cache_load_failed(kept.load, 1), 0);
  env_settle(env);
  assert_int_equal(server_integer(env->server, "EXISTS", KEY "::lease", NULL), 0);
}

/* ---- canceling ---- */

/* After that number of turns of the loop. */
CACHE_TEST(canceling_at_any_moment) {
  for (int turns = 0; turns < 24; turns++) {
    get_t get = {0}, other = {0};
    start_get(cache, &get, "home");
    start_get(cache, &other, "home");
    for (int i = 0; i < turns; i++)
      uv_run(&env->loop, UV_RUN_NOWAIT);
    int error = belay_request_cancel(&get.request);
    assert_true(error == 0 || error == BELAY_ESTATE);
    env_until(env, get.ended == 1);
    assert_true(get.result.status == 0 || get.result.status == BELAY_ECANCELED);
    assert_error(end_of_get(&other), 0);
    get_free(&get);
    get_free(&other);
    expect_invalidate(cache, "home");
  }
}

/* ---- statistics ---- */

CACHE_TEST_OF(statistics, cache->loading = LOAD_BY_TEST) {
  get_t a = {0}, b = {0};
  start_get(cache, &a, "home");
  start_get(cache, &b, "home");
  env_until(env, cache->held == 1 && cache_stats(cache).joined == 1);
  belay_cache_stats_t stats = cache_stats(cache);
  expect_stats(cache, "gets 2, misses 2, loads 1, loading 1, fills 0");
  finish_load(cache, "0123456789");
  expect_got_value(&a, "0123456789", BELAY_CACHE_FROM_LOAD);
  expect_got_value(&b, "0123456789", BELAY_CACHE_FROM_LOAD);
  env_until(env, cache_stats(cache).loading == 0);
  expect_cached(cache, "home", "0123456789", BELAY_CACHE_FROM_SERVER);
  expect_cached(cache, "home", "0123456789", BELAY_CACHE_FROM_SERVER);
  stats = cache_stats(cache);
  belay_cache_stats_t expected = {.gets = 4,
                                  .hits = 2,
                                  .misses = 2,
                                  .loads = 1,
                                  .joined = 1,
                                  .shared = 1,
                                  .fills = 1,
                                  .bytes_in = 2 * 82,
                                  .bytes_out = 82};
  assert_memory_equal(&stats, &expected, sizeof stats);
}
