/* Caches whose server is stopped, refusing, stalled, and back again. An unreachable server never
 * counts as a miss; options.away decides what a get returns. */
#include <stdio.h>

#include "support/fixtures/cache/cache.h"

#define KEY "belay::cache::pages::{home}"
#define LEASE KEY "::lease"
#define TIMEOUT_MS (60 * slow())

typedef struct outage {
  void (*begin)(server_t *server);
  void (*end)(server_t *server);
  bool keeps; /* true if the server keeps its data */
} outage_t;

static void refuse(server_t *server) {
  server_do(server, "ACL", "SETUSER", "default", "-get", "-set", "-evalsha", "-eval", NULL);
}

static void allow(server_t *server) {
  server_do(server, "ACL", "SETUSER", "default", "+get", "+set", "+evalsha", "+eval", NULL);
}

static const outage_t outages[] = {
    {server_kill, server_restart, false},
    {refuse, allow, true},
    {server_pause, server_resume, true},
};

enum { OUTAGES = sizeof outages / sizeof *outages };

static belay_client_options_t short_calls(void) {
  belay_client_options_t client = client_options();
  client.timeout_ms = TIMEOUT_MS;
  client.stall_timeout_ms = TIMEOUT_MS;
  client.connect_timeout_ms = TIMEOUT_MS;
  client.reconnect_max_ms = 20;
  client.close_timeout_ms = 50;
  return client;
}

static env_t *env_of(cache_t *cache, belay_cache_away_t away, int64_t ttl_ms, int64_t keep_ms) {
  belay_client_options_t client = short_calls();
  env_t *env = env_open(&client);
  belay_cache_options_t options = cache_options(cache);
  options.away = away;
  options.ttl_ms = ttl_ms;
  options.keep_ms = keep_ms;
  options.local_bytes = 1 << 20;
  options.local_ttl_ms = 30;
  options.max_away_loads = 2;
  options.retry_max_ms = 20;
  cache_open(cache, env, &options);
  return env;
}

static void begin_outage(const outage_t *outage, env_t *env) {
  env_settle(env);
  outage->begin(env->server);
}

/* And gets work again. */
static void end_outage(const outage_t *outage, env_t *env, cache_t *cache) {
  get_t get = {0};
  outage->end(env->server);
  cache->loading = LOAD_AT_ONCE;
  for (int tries = 0;; tries++) {
    start_get(cache, &get, "again");
    int status = end_of_get(&get);
    bool stored = status == 0 && !get.result.stale && get.result.from != BELAY_CACHE_FROM_LOAD;
    get_free(&get);
    if (stored)
      break;
    assert_true(tries < 100);
    env_run_for(env, 5);
  }
  env_close(env);
}

static bool is_away(int status) {
  return status == BELAY_EUNREACHABLE || status == BELAY_EUNKNOWN || status == BELAY_EPERM ||
         status == BELAY_ETIMEDOUT;
}

/* The error comes within its time, and says why. */
static void expect_away(cache_t *cache, const char *key) {
  get_t get = {0};
  int64_t began = clock_now();
  start_get(cache, &get, key);
  int status = end_of_get(&get);
  if (!is_away(status) || status == BELAY_ETIMEDOUT)
    fail_msg("%s", belay_err_name(status));
  assert_null(get.data);
  assert_int_equal(get.result.from, BELAY_CACHE_FROM_NOWHERE);
  assert_true(clock_since_ms(began) < 4 * TIMEOUT_MS + lag());
}

static void expect_kept(cache_t *cache, const char *key, const char *value) {
  get_t get = {0};
  start_get(cache, &get, key);
  expect_got_data(&get, value);
  assert_int_equal(get.result.from, BELAY_CACHE_FROM_LOCAL);
  assert_true(get.result.stale);
  assert_true(is_away(get.result.reason));
}

/* The table of the process has it. (That it begins to get the messages of others may keep it out
 * of there.) Returns how many loads there were. */
static unsigned fill_table(cache_t *cache) {
  belay_cache_result_t result;
  cache->value = "home#1";
  for (int tries = 0; belay_cache_peek(cache->handle, belay_string("home"), &result) != 0;
       tries++) {
    get_t get = {0};
    assert_true(tries < 100);
    start_get(cache, &get, "home");
    assert_int_equal(end_of_get(&get), 0);
    get_free(&get);
    env_until(cache->env, cache_stats(cache).loading == 0);
  }
  return cache->loaded;
}

/* ---- the policies ---- */

TEST(fail) {
  for (int i = 0; i < OUTAGES; i++) {
    cache_t cache = {0};
    env_t *env = env_of(&cache, BELAY_CACHE_AWAY_FAIL, 60000, 0);
    expect_cached(&cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
    begin_outage(&outages[i], env);
    env_run_for(env, 40); /* the table's is over */
    expect_away(&cache, "home");
    expect_away(&cache, "never");
    assert_int_equal(cache.loaded, 1);
    expect_stats(&cache, "misses 1, away 2, loading 0");
    end_outage(&outages[i], env, &cache);
  }
}

TEST(stale) {
  for (int i = 0; i < OUTAGES; i++) {
    cache_t cache = {0};
    env_t *env = env_of(&cache, BELAY_CACHE_AWAY_STALE, 60000, 0);
    unsigned loaded = fill_table(&cache);
    begin_outage(&outages[i], env);
    env_run_for(env, 40);
    expect_kept(&cache, "home", "home#1");
    expect_away(&cache, "never");
    assert_int_equal(cache.loaded, loaded);
    end_outage(&outages[i], env, &cache);
  }
}

/* A stale value is served for keep_ms too, and not longer. */
TEST(kept) {
  cache_t cache = {0};
  int64_t keep_ms = 4 * TIMEOUT_MS + lag();
  env_t *env = env_of(&cache, BELAY_CACHE_AWAY_STALE, 20, keep_ms);
  unsigned loaded = fill_table(&cache);
  begin_outage(&outages[1], env); /* which fails at once */
  int64_t began = clock_now();
  env_run_for(env, 30);
  expect_kept(&cache, "home", "home#1");
  env_run_for(env, keep_ms - clock_since_ms(began) + 30);
  expect_away(&cache, "home");
  assert_int_equal(cache.loaded, loaded);
  end_outage(&outages[1], env, &cache);
}

/* A value that this process invalidated is not served, even then. */
TEST(invalidated_value_not_served_in_outage) {
  cache_t cache = {0};
  env_t *env = env_of(&cache, BELAY_CACHE_AWAY_STALE, 60000, 0);
  expect_cached(&cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  expect_invalidate(&cache, "home");
  begin_outage(&outages[0], env);
  expect_away(&cache, "home");
  end_outage(&outages[0], env, &cache);
}

/* One load serves all waiting gets of a key. A get during the load is served by the next one,
 * without another request. */
TEST(load) {
  enum { N = 10 };
  for (int i = 0; i < 2; i++) {
    cache_t cache = {0};
    get_t gets[N] = {0}, late = {0};
    env_t *env = env_of(&cache, BELAY_CACHE_AWAY_LOAD, 60000, 0);
    unsigned loaded = fill_table(&cache);
    begin_outage(&outages[i], env);
    env_run_for(env, 40);
    expect_kept(&cache, "home", "home#1");
    cache.loading = LOAD_BY_TEST;
    for (int j = 0; j < N; j++) {
      start_get(&cache, &gets[j], "new");
      stall_ms(1); /* and so it fails later */
    }
    env_until(env, cache.held == 1 && cache_stats(&cache).joined == N - 1);
    start_get(&cache, &late, "new");
    env_until(env, cache_stats(&cache).joined == N);
    assert_int_equal(cache.loaded, loaded + 1);
    finish_load(&cache, "here");
    for (int j = 0; j < N; j++) {
      expect_got_data(&gets[j], "here");
      assert_int_equal(gets[j].result.from, BELAY_CACHE_FROM_LOAD);
    }
    uint64_t calls = client_stats(env).calls;
    env_until(env, cache.held == 1);
    assert_int_equal(client_stats(env).calls, calls); /* it is known that that is of no use */
    assert_int_equal(late.ended, 0);
    finish_load(&cache, "there");
    expect_got_data(&late, "there");
    assert_int_equal(cache.loaded, loaded + 2);
    expect_stats(&cache, "losers 2, fills 1");
    cache.loading = LOAD_AT_ONCE;
    cache.error = 7;
    expect_no_value(&cache, "bad", BELAY_ELOAD);
    cache.error = 0;
    end_outage(&outages[i], env, &cache);
  }
}

/* The request's time is shorter than the client's: half of it is for the question, and half for the
 * load. */
CACHE_TEST_OF(outage_load_has_half_of_the_time, o.away = BELAY_CACHE_AWAY_LOAD) {
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  env_settle(env);
  server_pause(env->server);
  get_t get = {.request = {.timeout_ms = 600 * slow()}};
  start_get(cache, &get, "new");
  assert_error(end_of_get(&get), 0);
  assert_int_equal(get.result.from, BELAY_CACHE_FROM_LOAD);
  get_free(&get);
  server_resume(env->server);
}

/* The server has a stale value, but no process may load in its name. The stale value is
 * preferred to a load past the server. */
CACHE_TEST_OF(stale_value_preferred_to_outage_load, o.away = BELAY_CACHE_AWAY_LOAD;
              o.keep_ms = 60000) {
  expect_put(cache, "home", "put", true);
  expect_touch(cache, "home", 1, true);
  env_run_for(env, 5);
  server_do(env->server, "ACL", "SETUSER", "default", "-set", "-evalsha", "-eval", NULL);
  expect_stale(cache, "home", "put", BELAY_EPERM);
  assert_int_equal(cache->loaded, 0);
  server_do(env->server, "ACL", "SETUSER", "default", "+set", "+evalsha", "+eval", NULL);
  expect_cached(cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
}

TEST(max_away_loads) {
  enum { N = 5, MOST = 2 };
  static const char *const keys[N] = {"a", "b", "c", "d", "e"};
  cache_t cache = {.loading = LOAD_BY_TEST};
  env_t *env = env_of(&cache, BELAY_CACHE_AWAY_LOAD, 60000, 0);
  expect_put(&cache, "home", "put", true);
  begin_outage(&outages[0], env);
  for (int round = 0; round < 2; round++) { /* they are free again */
    get_t gets[N] = {0};
    unsigned served = 0;
    for (int i = 0; i < N; i++)
      start_get(&cache, &gets[i], keys[i]);
    env_until(env, cache.held == MOST && cache.pending == MOST);
    while (cache.held > 0)
      finish_load(&cache, "here");
    for (int i = 0; i < N; i++) {
      int status = end_of_get(&gets[i]);
      assert_true(status == 0 || is_away(status));
      served += status == 0;
      get_free(&gets[i]);
    }
    assert_int_equal(served, MOST);
    assert_int_equal(cache.loaded, (unsigned)(round + 1) * MOST);
  }
  end_outage(&outages[0], env, &cache);
}

/* After the server is back, a get stores its load. A load from the outage does not count any
 * more. */
TEST(outage_ends_during_load) {
  cache_t cache = {0};
  env_t *env = env_of(&cache, BELAY_CACHE_AWAY_LOAD, 60000, 0);
  expect_cached(&cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  cache.loading = LOAD_BY_TEST;
  for (int i = 0; i < 4; i++) { /* more often than `away_loads` at a time */
    char key[2] = {(char)('a' + i), 0};
    get_t early = {0}, late = {0};
    begin_outage(&outages[1], env);
    start_get(&cache, &early, key);
    env_until(env, cache.held == 1);
    outages[1].end(env->server);
    start_get(&cache, &late, key);
    env_until(env, cache_stats(&cache).joined == (uint64_t)i + 1);
    finish_load(&cache, "not kept");
    env_until(env, cache.held == 1);
    finish_load(&cache, "kept");
    assert_int_equal(end_of_get(&early), 0);
    assert_int_equal(end_of_get(&late), 0);
    assert_string_equal(early.data, "not kept");
    assert_string_equal(late.data, "kept");
    get_free(&early);
    get_free(&late);
    env_until(env, cache_stats(&cache).fills == (uint64_t)i + 2);
  }
  end_outage(&outages[1], env, &cache);
}

/* ---- many ---- */

typedef struct batch {
  belay_request_t request;
  unsigned ended, values, stale, away;
} batch_t;

static void on_batch(belay_request_t *request, int status, const belay_cache_result_t *results,
                     size_t n) {
  batch_t *batch = request->data;
  assert_int_equal(status, 0);
  batch->ended++;
  for (size_t i = 0; i < n; i++) {
    batch->values += results[i].status == 0;
    batch->stale += results[i].stale;
    batch->away += is_away(results[i].status);
  }
}

TEST(many) {
  static const belay_bytes_t keys[] = {{"home", 4}, {"b", 1}, {"c", 1}, {"d", 1}, {"b", 1}};
  static const struct {
    belay_cache_away_t away;
    unsigned values, stale;
  } rows[] = {
      {BELAY_CACHE_AWAY_FAIL, 0, 0}, {BELAY_CACHE_AWAY_STALE, 1, 1}, {BELAY_CACHE_AWAY_LOAD, 4, 1}};
  for (int i = 0; i < 3; i++) {
    cache_t cache = {0};
    batch_t batch = {.request.data = &batch};
    env_t *env = env_of(&cache, rows[i].away, 60000, 0);
    unsigned loaded = fill_table(&cache);
    begin_outage(&outages[0], env);
    env_run_for(env, 40);
    cache.loading = LOAD_LATER;
    assert_int_equal(belay_cache_get_many(cache.handle, &batch.request, keys, 5, on_batch), 0);
    env_until(env, batch.ended == 1);
    assert_int_equal(batch.values, rows[i].values);
    assert_int_equal(batch.stale, rows[i].stale);
    assert_int_equal(batch.away, 5 - rows[i].values);
    assert_int_equal(cache.loaded, loaded + (rows[i].away == BELAY_CACHE_AWAY_LOAD ? 2 : 0));
    env_until(env, cache.timers == 0);
    end_outage(&outages[0], env, &cache);
  }
}

/* ---- it goes away in the middle ---- */

TEST(while_it_is_loaded) {
  for (int i = 0; i < OUTAGES; i++) {
    cache_t cache = {.loading = LOAD_BY_TEST};
    get_t value = {0}, failure = {0};
    env_t *env = env_of(&cache, BELAY_CACHE_AWAY_FAIL, 60000, 0);
    start_get(&cache, &value, "home");
    start_get(&cache, &failure, "bad");
    env_until(env, cache.held == 2);
    begin_outage(&outages[i], env);
    int64_t began = clock_now();
    finish_load(&cache, "here");
    fail_load(&cache, 7);
    assert_int_equal(end_of_get(&value), 0);
    assert_int_equal(end_of_get(&failure), BELAY_ELOAD);
    /* no get waits until the absence is stored */
    assert_true(clock_since_ms(began) < TIMEOUT_MS + lag());
    get_free(&value);
    env_until(env, cache_stats(&cache).loading == 0);
    assert_int_equal(cache_stats(&cache).fills, 0);
    end_outage(&outages[i], env, &cache);
  }
}

TEST(outage_during_foreign_load) {
  for (int i = 0; i < OUTAGES + 1; i++) {
    bool load = i >= OUTAGES;
    cache_t cache = {0};
    get_t get = {0};
    env_t *env = env_of(&cache, load ? BELAY_CACHE_AWAY_LOAD : BELAY_CACHE_AWAY_FAIL, 60000, 0);
    server_do(env->server, "SET", LEASE, "somebody", "PX", "60000", NULL);
    start_get(&cache, &get, "home");
    env_until(env, cache_stats(&cache).waits == 1);
    outages[i % OUTAGES].begin(env->server);
    int status = end_of_get(&get);
    assert_true(load ? status == 0 : is_away(status));
    assert_int_equal(cache.loaded, load);
    assert_int_equal(cache_stats(&cache).losers, load);
    get_free(&get);
    end_outage(&outages[i % OUTAGES], env, &cache);
  }
}

/* A stale value is served while the server answers, and its reload fails without harm. */
TEST(outage_during_refresh) {
  cache_t cache = {0};
  belay_client_options_t client = short_calls();
  env_t *env = env_open(&client);
  belay_cache_options_t options = cache_options(&cache);
  options.ttl_ms = 10;
  options.stale_ms = 60000;
  options.lease_ms = 200; /* nor can it be given back */
  cache_open(&cache, env, &options);
  expect_cached(&cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  env_run_for(env, 15);
  cache.loading = LOAD_BY_TEST;
  expect_stale(&cache, "home", "home#1", 0);
  env_until(env, cache.held == 1);
  begin_outage(&outages[1], env);
  finish_load(&cache, "new");
  env_until(env, cache_stats(&cache).loading == 0);
  outages[1].end(env->server);
  while (cache.held == 0) { /* the lease must be over */
    expect_stale(&cache, "home", "home#1", 0);
    env_run_for(env, 5);
  }
  finish_load(&cache, "new");
  env_until(env, cache_stats(&cache).fills == 2);
  end_outage(&outages[1], env, &cache);
}

/* The table does not keep for such times what the server has not any more. */
TEST(absent_value_not_kept) {
  cache_t cache = {0};
  env_t *env = env_open(NULL);
  belay_cache_options_t options = cache_options(&cache);
  options.away = BELAY_CACHE_AWAY_STALE;
  options.ttl_ms = 20;
  options.stale_ms = 60000;
  options.local_bytes = 1 << 20;
  cache_open(&cache, env, &options);
  expect_cached(&cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  env_run_for(env, 30);
  cache.absent = true;
  expect_stale(&cache, "home", "home#1", 0);
  env_until(env, cache.loaded == 2 && cache_stats(&cache).loading == 0);
  begin_outage(&outages[1], env);
  expect_away(&cache, "home");
  cache.absent = false;
  end_outage(&outages[1], env, &cache);
}
