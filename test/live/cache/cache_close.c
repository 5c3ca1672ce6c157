/* Caches that end: at every moment of a load, from inside of everything; loads that end later than
 * their caches, or not in time, or never. Every request is called back once, and nothing is left.
 */
#include <stdio.h>

#include "support/fixtures/cache/cache.h"

#define LEASE "belay::cache::pages::{home}::lease"

/* ---- at every moment ---- */

typedef enum ending { CACHE, CLIENT, LOOP, ENDINGS } ending_t;

/* Operations under way at the close. */
typedef struct batch {
  belay_request_t request;
  unsigned begun, ended;
} batch_t;

typedef struct moment {
  unsigned at;  /* number of calls sent or answered after which the cache closes */
  unsigned now; /* number of calls sent or answered */
} moment_t;

static moment_t moment;

static void on_trace(void *ctx, const belay_trace_t *trace) {
  (void)ctx;
  moment.now += trace->event == BELAY_TRACE_SENT || trace->event == BELAY_TRACE_DONE;
}

static void on_batch(belay_request_t *request, int status, const belay_cache_result_t *results,
                     size_t n) {
  batch_t *many = request->data;
  assert_true(status == 0 || status == BELAY_ECANCELED);
  assert_int_equal(n, 3);
  for (size_t i = 0; i < n; i++)
    assert_true(status == 0 || results[i].status == status);
  many->ended++;
}

typedef enum way { PLAIN, LOCKED, GUARDED, FAILING, WAITING, REFRESHING, WAYS } way_t;

static belay_limiter_t *new_limiter(belay_client_t *client) {
  belay_limit_t limit = {.kind = BELAY_LIMIT_FIXED, .count = 1000, .period_us = 3600000000};
  belay_limiter_options_t options;
  belay_limiter_t *limiter;
  belay_limiter_options_init(&options);
  options.limits = &limit;
  options.limits_len = 1;
  assert_int_equal(belay_limiter_new(client, &options, &limiter), 0);
  return limiter;
}

static belay_bloom_t *new_filter(belay_client_t *client) {
  belay_bloom_options_t options;
  belay_bloom_t *filter;
  belay_bloom_options_init(&options);
  options.name = belay_string("pages");
  options.capacity = 1000;
  assert_int_equal(belay_bloom_new(client, &options, &filter), 0);
  return filter;
}

static void on_added(belay_request_t *request, int status, bool added) {
  assert_int_equal(status, 0);
  assert_true(added);
  *(bool *)request->data = true;
}

static void add_to_filter(env_t *env, belay_bloom_t *filter, const char *item) {
  bool done = false;
  belay_request_t request = {.data = &done};
  assert_int_equal(belay_bloom_add(filter, &request, belay_string(item), on_added), 0);
  env_until(env, done);
}

static void make(cache_t *cache, env_t *env, way_t way) {
  belay_cache_options_t options = cache_options(cache);
  options.lock = way != PLAIN;
  options.local_bytes = 1 << 16;
  options.retry_min_ms = 1;
  options.retry_max_ms = 5;
  options.error_ms = way == FAILING ? 60000 : 0;
  if (way == GUARDED) {
    options.limiter = new_limiter(env->client);
    options.filter = new_filter(env->client);
    add_to_filter(env, options.filter, "home");
    add_to_filter(env, options.filter, "a");
  }
  if (way == REFRESHING) {
    options.ttl_ms = 1;
    options.stale_ms = 60000;
    options.local_bytes = 0;
  }
  cache->error = way == FAILING ? 7 : 0;
  cache->loading = LOAD_LATER;
  cache_open(cache, env, &options);
}

static void end_it(env_t *env, cache_t *cache, ending_t ending) {
  if (ending == CACHE)
    assert_int_equal(begin_close_cache(cache), 0);
  else
    assert_int_equal(ending == CLIENT ? begin_client_close(env) : begin_belay_close(env), 0);
}

/* Two gets, many, a put; and the end. True: it came before all was over. */
static bool play(server_t *server, way_t way, ending_t ending, unsigned at) {
  static const belay_bytes_t keys[] = {{"home", 4}, {"a", 1}, {"b", 1}};
  belay_client_options_t client = client_options();
  client.trace = on_trace;
  client.close_timeout_ms = 500 * slow();
  env_t *env = env_open_at(server_url(server), &client);
  cache_t cache = {0};
  get_t gets[2] = {0};
  change_t change = {0};
  batch_t batch = {.request.data = &batch};
  server_do(server, "FLUSHALL", NULL);
  if (way == WAITING)
    server_do(server, "SET", LEASE, "somebody", "PX", "20", NULL);
  make(&cache, env, way);
  if (way == REFRESHING) {
    expect_put(&cache, "home", "old", true);
    stall_ms(3);
  }
  moment = (moment_t){.at = at};
  for (int i = 0; i < 2; i++)
    start_get(&cache, &gets[i], i == 0 ? "home" : "b");
  batch.begun += belay_cache_get_many(cache.handle, &batch.request, keys, 3, on_batch) == 0;
  assert_int_equal(begin_put(&cache, &change, "put", "value"), 0);
  assert_int_equal(belay_cache_keep_fresh(cache.handle, belay_string("home")), 0);
  env_until(env, moment.now >= at ||
                     (cache.pending == 0 && batch.ended == 1 && cache_stats(&cache).loading == 0));
  bool before = cache.pending > 0 || batch.ended == 0 || cache_stats(&cache).loading > 0;
  end_it(env, &cache, ending);
  assert_int_equal(belay_cache_get(cache.handle, &gets[0].request, belay_string("x"), on_got),
                   BELAY_ECLOSING);
  env_until(env, ending == CACHE    ? cache.closed == 1
                 : ending == CLIENT ? env->client_closed == 1
                                    : env->belay_closed == 1);
  assert_int_equal(cache.pending, 0);
  assert_int_equal(batch.ended, batch.begun);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(gets[i].ended, 1);
    get_free(&gets[i]);
  }
  assert_int_equal(change.ended, 1);
  env_until(env, cache.timers == 0); /* loads end, whose cache is gone; before the allocator is */
  env_close(env);
  if (way != WAITING) /* another process has the lease */
    assert_int_equal(server_integer(server, "EXISTS", LEASE, NULL), 0);
  return before;
}

static void play_all(ending_t ending) {
  server_t *server = server_start(NULL);
  for (way_t way = PLAIN; way < WAYS; way++) {
    unsigned at = 1;
    while (play(server, way, ending, at))
      at += slow() > 1 ? 3 : 1 + at / 8;
    assert_true(at > 8);
  }
  server_stop(server);
}

TEST(the_cache_is_closed_at_every_moment) {
  play_all(CACHE);
}

TEST(the_client_is_closed_at_every_moment) {
  play_all(CLIENT);
}

TEST(all_is_closed_at_every_moment) {
  play_all(LOOP);
}

/* ---- from inside ---- */

typedef struct inside {
  env_t *env;
  cache_t cache;
  ending_t ending;
  belay_cache_load_t *loads[8];
  unsigned n, calls;
  bool before; /* the load is ended in the loader, before that */
} inside_t;

static void load_and_close(belay_cache_load_t *load, const char *key, size_t key_len, void *arg) {
  inside_t *inside = arg;
  (void)key, (void)key_len;
  assert_true(inside->n < 8);
  if (inside->before)
    assert_int_equal(belay_cache_load_done(load, belay_string("v")), 0);
  else
    inside->loads[inside->n++] = load;
  if (inside->calls++ == 0)
    end_it(inside->env, &inside->cache, inside->ending);
  if (!inside->before)
    assert_false(belay_cache_load_is_wanted(load));
}

static void load_many_and_close(belay_cache_load_t *const *loads, const belay_bytes_t *keys,
                                size_t n, void *arg) {
  for (size_t i = 0; i < n; i++)
    load_and_close(loads[i], keys[i].data, keys[i].len, arg);
}

TEST_ON(a_loader_ends_everything, server, server_start(NULL)) {
  static const belay_bytes_t keys[] = {{"a", 1}, {"b", 1}, {"c", 1}};
  for (unsigned i = 0; i < ENDINGS * 4; i++) {
    inside_t inside = {.ending = (ending_t)(i / 4), .before = i % 2 == 1};
    bool many = i / 2 % 2 == 1;
    get_t gets[3] = {0};
    batch_t batch = {.request.data = &batch};
    server_do(server, "FLUSHALL", NULL);
    inside.env = env_open_at(server_url(server), NULL);
    belay_cache_options_t options = cache_options(&inside.cache);
    options.lock = false;
    options.load = load_and_close;
    options.load_many = many ? load_many_and_close : NULL;
    options.arg = &inside;
    cache_open(&inside.cache, inside.env, &options);
    for (int j = 0; j < 3; j++)
      start_get(&inside.cache, &gets[j], keys[j].data);
    static const belay_bytes_t others[] = {{"d", 1}, {"e", 1}, {"a", 1}};
    assert_int_equal(belay_cache_get_many(inside.cache.handle, &batch.request, others, 3, on_batch),
                     0);
    env_until(inside.env, inside.ending == CACHE    ? inside.cache.closed == 1
                          : inside.ending == CLIENT ? inside.env->client_closed == 1
                                                    : inside.env->belay_closed == 1);
    assert_int_equal(inside.cache.pending, 0);
    assert_int_equal(batch.ended, 1);
    for (unsigned j = 0; j < inside.n; j++)
      assert_int_equal(belay_cache_load_done(inside.loads[j], belay_string("v")), 0);
    for (int j = 0; j < 3; j++)
      get_free(&gets[j]);
    env_close(inside.env);
  }
}

static ending_t ending_in_callback;

static void end_in_callback(get_t *get) {
  if (get->cache->closing == 0 && get->cache->env->client_closed == 0)
    end_it(get->cache->env, get->cache, ending_in_callback);
  get->cache->closing++;
}

/* The callback of a get that is served at once, of one that waits, and of one that fails. */
TEST_ON(a_callback_ends_everything, server, server_start(NULL)) {
  for (unsigned i = 0; i < ENDINGS * 3; i++) {
    env_t *env = env_open_at(server_url(server), NULL);
    cache_t cache = {.error = i % 3 == 2 ? 7 : 0};
    get_t gets[20] = {0};
    server_do(server, "FLUSHALL", NULL);
    ending_in_callback = (ending_t)(i / 3);
    cache_open(&cache, env, NULL);
    if (i % 3 == 0)
      expect_put(&cache, "home", "put", true);
    for (int j = 0; j < 20; j++) {
      gets[j].then = end_in_callback;
      start_get(&cache, &gets[j], j % 2 == 0 ? "home" : "other");
    }
    env_until(env, ending_in_callback == CACHE    ? cache.closed == 1
                   : ending_in_callback == CLIENT ? env->client_closed == 1
                                                  : env->belay_closed == 1);
    for (int j = 0; j < 20; j++) {
      assert_int_equal(gets[j].ended, 1);
      get_free(&gets[j]);
    }
    env_close(env);
  }
}

/* ---- loads that end late, or never ---- */

TEST_ON(loads_end_after_all_is_gone, server, server_start(NULL)) {
  for (ending_t ending = CACHE; ending < ENDINGS; ending++) {
    env_t *env = env_open_at(server_url(server), NULL);
    cache_t cache = {.loading = LOAD_BY_TEST};
    get_t gets[3] = {0};
    server_do(server, "FLUSHALL", NULL);
    cache_open(&cache, env, NULL);
    for (int i = 0; i < 3; i++) {
      char key[2] = {(char)('a' + i), 0};
      start_get(&cache, &gets[i], key);
    }
    env_until(env, cache.held == 3);
    for (int i = 0; i < 3; i++)
      assert_true(belay_cache_load_is_wanted(cache.loads[i]));
    end_it(env, &cache, ending);
    for (int i = 0; i < 3; i++)
      assert_false(belay_cache_load_is_wanted(cache.loads[i]));
    env_until(env, ending == CACHE    ? cache.closed == 1
                   : ending == CLIENT ? env->client_closed == 1
                                      : env->belay_closed == 1);
    for (int i = 0; i < 3; i++)
      assert_int_equal(gets[i].result.status, BELAY_ECANCELED);
    assert_int_equal(server_keys(server), 3); /* generations; leases are given back */
    assert_true(env->bytes > 0);
    finish_load(&cache, "value");
    finish_load_absent(&cache);
    fail_load(&cache, 7);
    if (ending == LOOP)
      assert_int_equal(env->bytes, 0);
    env_close(env);
  }
}

CACHE_TEST_OF(a_load_takes_too_long, o.load_timeout_ms = 40; cache->loading = LOAD_BY_TEST) {
  for (int i = 0; i < 2; i++) { /* the load never ends for its waiters */
    get_t get = {0};
    int64_t began = clock_now();
    start_get(cache, &get, "home");
    assert_int_equal(end_of_get(&get), BELAY_ELOAD);
    assert_int_equal(get.result.load_error, BELAY_ETIMEDOUT);
    assert_in_range(clock_since_ms(began), 38, 3000 * slow());
    assert_int_equal(cache->held, i + 1);
    assert_false(belay_cache_load_is_wanted(cache->loads[i]));
    env_until(env, cache_stats(cache).loading == 0);
  }
  assert_int_equal(cache_stats(cache).load_failures, 2);
  cache->loading = LOAD_AT_ONCE;
  expect_cached(cache, "home", "home#3", BELAY_CACHE_FROM_LOAD);
  finish_load(cache, "late"); /* nobody wants them */
  fail_load(cache, 7);
  env_settle(env);
  expect_cached(cache, "home", "home#3", BELAY_CACHE_FROM_SERVER);
}

/* ---- one of those who wait goes ---- */

/* The loaded value is served, but without a lease no further load begins. */
CACHE_TEST_OF(a_load_loses_its_lease, o.lease_ms = 100; cache->loading = LOAD_BY_TEST) {
  get_t first = {0}, second = {0};
  start_get(cache, &first, "home");
  env_until(env, cache->held == 1);
  server_do(env->server, "SET", LEASE, "another", NULL);
  env_run_for(env, 150); /* it is known */
  start_get(cache, &second, "home");
  env_until(env, cache_stats(cache).joined == 1);
  expect_invalidate(cache, "home");
  finish_load(cache, "one");
  expect_got_value(&first, "one", BELAY_CACHE_FROM_LOAD);
  env_until(env, cache_stats(cache).waits == 1);
  assert_int_equal(cache->loaded, 1);
  server_do(env->server, "DEL", LEASE, NULL);
  env_until(env, cache->held == 1);
  finish_load(cache, "two");
  expect_got_value(&second, "two", BELAY_CACHE_FROM_LOAD);
}

static void close_it(belay_cache_load_t *load, const char *key, size_t key_len, void *arg) {
  cache_t *cache = arg;
  (void)key, (void)key_len;
  cache->loaded++;
  assert_int_equal(begin_close_cache(cache), 0);
  assert_false(belay_cache_load_is_wanted(load));
  assert_int_equal(belay_cache_load_done(load, belay_string("")), 0);
}

/* Gets whose loads were to begin with this one need no callback any more. */
CACHE_TEST_OF(no_load_starts_after_close, o.load = close_it; o.lock = false) {
  get_t gets[8] = {0};
  char key[] = "a";
  for (int i = 0; i < 8; i++, key[0]++)
    start_get(cache, &gets[i], key);
  for (int i = 0; i < 8; i++)
    expect_got_nothing(&gets[i], BELAY_ECANCELED);
  env_until(env, cache->closed == 1);
  assert_int_equal(cache->loaded, 1);
}
