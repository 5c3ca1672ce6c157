/* All stages of a cache at once; and how who waits for another process looks whether it is over. */
#include "support/fixtures/limit/asks.h"
#include "support/fixtures/data/blooms.h"
#include "support/fixtures/cache/cache.h"
#include "support/models/scripts.h"

/* ---- all of them at once ---- */

enum { TOKENS = 6, VALUE = 2000 };

/* The data source. "gone" is in the filter, but was deleted. */
static void load(belay_cache_load_t *load, const char *key, size_t key_len, void *arg) {
  static char value[VALUE];
  cache_t *cache = arg;
  cache->loaded++;
  memset(value, 'v', sizeof value);
  if (key_len == 4 && memcmp(key, "gone", 4) == 0)
    assert_error(belay_cache_load_absent(load), 0);
  else if (key_len == 6 && memcmp(key, "broken", 6) == 0)
    assert_error(belay_cache_load_failed(load, 7), 0);
  else
    assert_error(belay_cache_load_done(load, belay_bytes(value, sizeof value)), 0);
}

static size_t tag(const char *key, size_t key_len, belay_bytes_t tags[BELAY_CACHE_TAGS_MAX],
                  void *arg) {
  (void)key, (void)key_len, (void)arg;
  tags[0] = (belay_bytes_t){"site", 4};
  return 1;
}

static void all_stages(belay_cache_options_t *options, belay_limiter_t *limiter,
                       belay_bloom_t *filter) {
  options->load = load;
  options->tags = tag;
  options->jitter_percent = 10;
  options->stale_ms = 60000;
  options->keep_ms = 120000;
  options->absent_ms = options->error_ms = 60000;
  options->beta = 1;
  options->limiter = limiter;
  options->filter = filter;
  options->away = BELAY_CACHE_AWAY_LOAD;
  options->late = BELAY_CACHE_LATE_LOAD;
  options->local_bytes = 1 << 20;
  options->local_ttl_ms = 60000;
  options->compress_bytes = 1000;
}

/* It is what the source has, from there. */
static void expect(cache_t *cache, const char *key, int status, unsigned loaded) {
  get_t get = {0};
  start_get(cache, &get, key);
  assert_error(end_of_get(&get), status);
  assert_int_equal(get.result.len, status == 0 ? VALUE : 0);
  assert_false(get.result.stale);
  get_free(&get);
  env_until(cache->env, cache_stats(cache).loading == 0);
  assert_int_equal(cache->loaded, loaded);
}

ENV_TEST(all_stages_at_once) {
  cache_t cache = {0};
  filter_t filter;
  belay_limit_t limit = bucket_limit(1, INT64_C(100000000000), TOKENS);
  belay_cache_options_t options = cache_options(&cache);
  filter_new(&filter, env, 1000, 0.0001);
  assert_true(filter_add(&filter, "home"));
  assert_true(filter_add(&filter, "gone"));
  assert_true(filter_add(&filter, "broken"));
  all_stages(&options, limiter_new(env, &limit, 1), filter.bloom);
  cache_open(&cache, env, &options);
  assert_error(belay_cache_keep_fresh(cache.handle, belay_string("home")), 0); /* that loads it */
  env_until(env, cache_stats(&cache).fills == 1 && cache_stats(&cache).loading == 0);
  for (int i = 0; i < 5; i++) {
    expect(&cache, "home", 0, 1);
    expect(&cache, "ghost", BELAY_EABSENT, 1); /* the filter says so */
  }
  for (int i = 0; i < 5; i++)
    expect(&cache, "gone", BELAY_EABSENT, 2); /* the loader has said so */
  for (int i = 0; i < 5; i++)
    expect(&cache, "broken", BELAY_ELOAD, 3);
  expect_invalidate_tag(&cache, "site");
  expect(&cache, "home", 0, 4);
  expect(&cache, "gone", BELAY_EABSENT, 5);
  expect(&cache, "broken", BELAY_ELOAD, 6);
  expect_invalidate(&cache, "home");
  expect(&cache, "home", BELAY_ELIMITED, 6); /* each load has taken a token */
  expect_put(&cache, "home", "known", true);
  expect_cached(&cache, "home", "known", BELAY_CACHE_FROM_SERVER);
  belay_cache_stats_t stats = cache_stats(&cache);
  assert_int_equal(stats.loads, TOKENS);
  assert_int_equal(stats.load_failures, 2);
  assert_true(stats.filtered >= 5);
  assert_int_equal(stats.limited, 1);
  assert_true(stats.local_hits > 0 && stats.absent_served > 0);
  assert_int_equal(stats.losers + stats.stale_served + stats.refused_fills, 0);
  assert_true(stats.bytes_out < VALUE);
  env_settle(env);
  expect_ttls(env->server);
}

/* ---- polls ---- */

enum { LOOKS = 24, RETRY_MIN_MS = 10, RETRY_MAX_MS = 40 };

static struct {
  unsigned n;
  int64_t at[LOOKS];
} looks;

static void on_trace(void *ctx, const belay_trace_t *trace) {
  (void)ctx;
  if (trace->event == BELAY_TRACE_SENT && strcmp(trace->command, "GET") == 0 && looks.n < LOOKS)
    looks.at[looks.n++] = clock_now();
}

/* After a random time from retry_min_ms to retry_max_ms each. */
ENV_TEST(polls_come_at_random_times) {
  const int64_t middle = (RETRY_MIN_MS + RETRY_MAX_MS) / 2 * INT64_C(1000000);
  cache_t one = {.loading = LOAD_BY_TEST}, two = {.loading = LOAD_BY_TEST};
  get_t get = {0}, other = {0};
  belay_client_options_t client = client_options();
  belay_cache_options_t options = cache_options(&one);
  cache_open(&one, env, &options);
  options.arg = &two;
  options.retry_min_ms = RETRY_MIN_MS;
  options.retry_max_ms = RETRY_MAX_MS;
  client.trace = on_trace;
  cache_open_on(&two, env, env_connect(env, server_url(env->server), &client), &options);
  start_get(&one, &get, "home");
  env_until(env, one.held == 1);
  looks.n = 0;
  start_get(&two, &other, "home");
  env_until(env, looks.n == LOOKS);
  assert_int_equal(two.loaded, 0);
  finish_load(&one, "v1");
  expect_got_value(&get, "v1", BELAY_CACHE_FROM_LOAD);
  expect_got_value(&other, "v1", BELAY_CACHE_FROM_SERVER);
  unsigned soon = 0, late = 0, far = 0;
  for (unsigned i = 4; i < LOOKS; i++) { /* by then it listens, and is not woken any more */
    int64_t pause = looks.at[i] - looks.at[i - 1];
    assert_true(pause >= RETRY_MIN_MS * INT64_C(1000000));
    soon += pause < middle;
    late += pause >= middle;
    far += pause > (RETRY_MAX_MS + 25) * INT64_C(1000000);
  }
  assert_true(late > 0);
  if (slow() == 1 && far < 5) /* else the machine is too slow to tell */
    assert_true(soon > 0);
}
