/* A load loses what it depends on: scripts, the generation, the lease, memory, the server. */
#include "support/fixtures/cache/cache.h"

#define KEY "belay::cache::pages::{home}"
#define GENERATION KEY "::gen"
#define LEASE KEY "::lease"

/* ---- what a load stands on goes ---- */

static void await_load(cache_t *cache) {
  env_until(cache->env, cache->held == 1);
}

static void begin_load(cache_t *cache, get_t *get) {
  start_get(cache, get, "home");
  await_load(cache);
}

static void expect_data(get_t *get, const char *value) {
  expect_got_data(get, value);
}

CACHE_TEST_OF(scripts_are_forgotten, cache->loading = LOAD_BY_TEST) {
  for (int i = 0; i < 3; i++) {
    get_t get = {0};
    server_do(env->server, "SCRIPT", "FLUSH", NULL);
    begin_load(cache, &get);
    server_do(env->server, "SCRIPT", "FLUSH", NULL);
    if (i == 0)
      finish_load(cache, "a");
    else
      fail_load(cache, 7);
    assert_int_equal(end_of_get(&get), i == 0 ? 0 : BELAY_ELOAD);
    get_free(&get);
    env_settle(env);
    server_do(env->server, "SCRIPT", "FLUSH", NULL);
    if (i == 0)
      expect_cached(cache, "home", "a", BELAY_CACHE_FROM_SERVER);
    expect_put(cache, "home", "b", true);
    server_do(env->server, "SCRIPT", "FLUSH", NULL);
    expect_touch(cache, "home", 60000, true);
    expect_cached(cache, "home", "b", BELAY_CACHE_FROM_SERVER);
    expect_invalidate(cache, "home");
  }
  assert_int_equal(cache_stats(cache).refused_fills, 0);
}

static size_t tag_home(const char *key, size_t key_len, belay_bytes_t tags[BELAY_CACHE_TAGS_MAX],
                       void *arg) {
  (void)key, (void)key_len, (void)arg;
  tags[0] = (belay_bytes_t){"site", 4};
  return 1;
}

typedef enum blow { FLUSHED, EVICTED, EXPIRED, INVALIDATED, UNTAGGED, BLOWS } blow_t;

static void strike(cache_t *cache, blow_t blow) {
  server_t *server = cache->env->server;
  switch (blow) {
  case FLUSHED:
    server_do(server, "FLUSHALL", NULL);
    break;
  case EVICTED:
    assert_int_equal(server_integer(server, "DEL", GENERATION, NULL), 1);
    break;
  case EXPIRED:
    assert_int_equal(server_integer(server, "PEXPIRE", GENERATION, "1", NULL), 1);
    stall_ms(5);
    break;
  case INVALIDATED:
    expect_invalidate(cache, "home");
    break;
  default:
    expect_invalidate_tag(cache, "site");
    break;
  }
}

/* Gets from before the loss are served by the first load, later gets by the next one. */
TEST(load_prerequisites_lost) {
  for (blow_t blow = FLUSHED; blow < BLOWS; blow++) {
    env_t *env = env_open(NULL);
    cache_t cache = {.loading = LOAD_BY_TEST};
    get_t early = {0}, late = {0};
    belay_cache_result_t result;
    belay_cache_options_t options = cache_options(&cache);
    options.local_bytes = 1 << 20;
    options.local_ttl_ms = 60000;
    options.tags = blow == UNTAGGED ? tag_home : NULL;
    cache_open(&cache, env, &options);
    begin_load(&cache, &early);
    strike(&cache, blow);
    start_get(&cache, &late, "home");
    env_until(env, cache_stats(&cache).joined == 1);
    finish_load(&cache, "old");
    expect_data(&early, "old");
    await_load(&cache);
    assert_int_equal(late.ended, 0);
    assert_int_equal(cache.loaded, 2);
    assert_int_equal(cache_stats(&cache).refused_fills, blow != UNTAGGED);
    if (blow != UNTAGGED)
      assert_int_equal(server_integer(env->server, "EXISTS", KEY, NULL), 0);
    assert_int_equal(belay_cache_peek(cache.handle, belay_string("home"), &result), BELAY_EAGAIN);
    finish_load(&cache, "new");
    expect_data(&late, "new");
    env_until(env, cache_stats(&cache).loading == 0);
    assert_int_equal(belay_cache_peek(cache.handle, belay_string("home"), &result), 0);
    assert_memory_equal(result.data, "new", 3);
    env_close(env);
  }
}

/* Without such gets the value is not stored either. */
TEST(invalid_entry_removed) {
  for (blow_t blow = FLUSHED; blow < BLOWS; blow++) {
    env_t *env = env_open(NULL);
    cache_t cache = {.loading = LOAD_BY_TEST};
    get_t early = {0}, late = {0};
    belay_cache_options_t options = cache_options(&cache);
    options.local_bytes = 1 << 20;
    options.tags = blow == UNTAGGED ? tag_home : NULL;
    cache_open(&cache, env, &options);
    begin_load(&cache, &early);
    strike(&cache, blow);
    finish_load(&cache, "old");
    expect_data(&early, "old");
    env_until(env, cache_stats(&cache).loading == 0);
    begin_load(&cache, &late);
    finish_load(&cache, "new");
    expect_data(&late, "new");
    env_settle(env);
    expect_cached(&cache, "home", "new", BELAY_CACHE_FROM_LOCAL);
    env_close(env);
  }
}

CACHE_TEST_OF(a_put_beats_a_load, cache->loading = LOAD_BY_TEST) {
  get_t early = {0};
  begin_load(cache, &early);
  expect_put(cache, "home", "put", true);
  expect_cached(cache, "home", "put", BELAY_CACHE_FROM_SERVER); /* does not wait */
  finish_load(cache, "old");
  expect_data(&early, "old");
  env_settle(env);
  assert_int_equal(cache_stats(cache).refused_fills, 1);
  expect_cached(cache, "home", "put", BELAY_CACHE_FROM_SERVER);
}

/* A failed load ends no other load. */
CACHE_TEST_OF(failure_after_invalidation_not_stored, o.error_ms = 60000;
              cache->loading = LOAD_BY_TEST) {
  get_t early = {0}, late = {0};
  begin_load(cache, &early);
  expect_invalidate(cache, "home");
  fail_load(cache, 7);
  assert_int_equal(end_of_get(&early), BELAY_ELOAD);
  env_until(env, cache_stats(cache).loading == 0);
  begin_load(cache, &late);
  finish_load(cache, "new");
  expect_data(&late, "new");
}

/* ---- the lease goes ---- */

ENV_TEST(the_lease_is_lost_in_the_middle) {
  cache_t one = {.loading = LOAD_BY_TEST}, two = {.loading = LOAD_BY_TEST};
  get_t first = {0}, second = {0};
  cache_open(&one, env, NULL);
  cache_open_on(&two, env, env_connect(env, server_url(env->server), NULL), NULL);
  begin_load(&one, &first);
  start_get(&two, &second, "home");
  env_until(env, cache_stats(&two).waits == 1);
  assert_int_equal(two.loaded, 0);
  assert_int_equal(server_integer(env->server, "DEL", LEASE, NULL), 1);
  await_load(&two);
  finish_load(&one, "one");
  expect_data(&first, "one");
  env_until(env, cache_stats(&one).loading == 0);
  assert_int_equal(cache_stats(&one).refused_fills, 1);
  finish_load(&two, "two");
  expect_data(&second, "two");
  env_settle(env);
  expect_cached(&one, "home", "two", BELAY_CACHE_FROM_SERVER);
  assert_int_equal(one.loaded + two.loaded, 2);
}

/* ---- no memory ---- */

static void set_maxmemory(env_t *env, const char *bytes) {
  server_do(env->server, "CONFIG", "SET", "maxmemory", bytes, NULL);
}

TEST(the_server_has_no_memory) {
  for (int lock = 0; lock < 2; lock++) {
    env_t *env = env_open(NULL);
    cache_t cache = {0};
    belay_cache_options_t options = cache_options(&cache);
    options.lock = lock == 1;
    cache_open(&cache, env, &options);
    set_maxmemory(env, "1");
    expect_no_value(&cache, "home", BELAY_EOOM); /* it is no miss */
    assert_int_equal(cache.loaded, 0);
    set_maxmemory(env, "0");
    cache.loading = LOAD_BY_TEST;
    get_t get = {0};
    begin_load(&cache, &get);
    set_maxmemory(env, "1");
    finish_load(&cache, "full");
    expect_data(&get, "full"); /* it was loaded */
    env_until(env, cache_stats(&cache).loading == 0);
    assert_int_equal(cache_stats(&cache).fills, 0);
    assert_int_equal(server_integer(env->server, "EXISTS", KEY, NULL), 0);
    set_maxmemory(env, "0");
    cache.loading = LOAD_AT_ONCE;
    expect_cached(&cache, "home", "home#2", BELAY_CACHE_FROM_LOAD);
    env_settle(env);
    expect_cached(&cache, "home", "home#2", BELAY_CACHE_FROM_SERVER);
    env_close(env);
  }
}

/* ---- a restart ---- */

TEST(the_server_is_restarted_in_the_middle) {
  belay_client_options_t client = client_options();
  client.reconnect_max_ms = 20;
  client.timeout_ms = 5000 * slow();
  env_t *env = env_open(&client);
  cache_t one = {.loading = LOAD_BY_TEST}, two = {.loading = LOAD_BY_TEST};
  get_t first = {0}, second = {0}, third = {0};
  cache_open(&one, env, NULL);
  cache_open_on(&two, env, env_connect(env, server_url(env->server), &client), NULL);
  begin_load(&one, &first);
  start_get(&two, &second, "home");
  env_until(env, cache_stats(&two).waits == 1);
  server_kill(env->server);
  server_restart(env->server); /* the value is lost */
  await_load(&two);
  start_get(&one, &third, "home"); /* not by the earlier load */
  env_until(env, cache_stats(&one).joined == 1);
  finish_load(&one, "one");
  expect_data(&first, "one");
  finish_load(&two, "two");
  expect_data(&second, "two");
  expect_data(&third, "two");
  assert_int_equal(one.loaded + two.loaded, 2);
  expect_cached(&one, "home", "two", BELAY_CACHE_FROM_SERVER);
  env_close(env);
}
