/* Many keys at once. */
#include <stdio.h>

#include "support/deployments/deployment.h"
#include "support/fixtures/cache/cache.h"
#include "support/models/scripts.h"

/* ---- what is there, and what is not ---- */

/* In their order, the same one twice, one call of load_many for those that are not there, and none
 * if all are. */
CACHE_TEST_(order_and_duplicates, batch_options(cache), (void)o) {
  static const char *const some[] = {"b", "a", "b"};
  static const char *const all[] = {"c", "a", "d", "c", "b", "d", "d"};
  many_t *many = many_new(cache);
  assert_error(begin_cache_get_many(many, some, 3), 0);
  assert_error(end_of_many(many), 0);
  expect_many_value(many, 0, "b#1", BELAY_CACHE_FROM_LOAD);
  expect_many_value(many, 1, "a#2", BELAY_CACHE_FROM_LOAD);
  expect_many_value(many, 2, "b#1", BELAY_CACHE_FROM_LOAD);
  assert_int_equal(cache->batches, 1);
  assert_int_equal(cache->batch, 2);
  env_until(env, cache_stats(cache).fills == 2);
  assert_error(begin_cache_get_many(many, all, 7), 0);
  assert_error(end_of_many(many), 0);
  static const char *const values[] = {"c#3", "a#2", "d#4", "c#3", "b#1", "d#4", "d#4"};
  for (size_t i = 0; i < 7; i++)
    expect_many_value(many, i, values[i],
                      i == 1 || i == 4 ? BELAY_CACHE_FROM_SERVER : BELAY_CACHE_FROM_LOAD);
  assert_int_equal(cache->batches, 2);
  assert_int_equal(cache->batch, 2);
  env_until(env, cache_stats(cache).fills == 4);
  assert_error(begin_cache_get_many(many, all, 7), 0);
  assert_error(end_of_many(many), 0);
  for (size_t i = 0; i < 7; i++)
    expect_many_value(many, i, values[i], BELAY_CACHE_FROM_SERVER);
  assert_int_equal(cache->batches, 2);
  belay_cache_stats_t stats = cache_stats(cache);
  expect_stats(cache, "gets 17");
  assert_int_equal(stats.misses, 3 + 5);
  assert_int_equal(stats.joined, 1 + 3);
  assert_int_equal(stats.hits, 2 + 7);
  assert_int_equal(stats.loads, 4);
  many_free(many);
}

static const char *key_number(size_t i) {
  static char keys[MANY_MAX + 1][16];
  snprintf(keys[i], sizeof keys[i], "key%zu", i);
  return keys[i];
}

static void expect_batch_of(cache_t *cache, size_t n, unsigned batches) {
  const char *keys[MANY_MAX + 1];
  char value[32];
  many_t *many = many_new(cache);
  for (size_t i = 0; i < n; i++)
    keys[i] = key_number(i);
  unsigned loaded = cache->loaded;
  assert_error(begin_cache_get_many(many, keys, n), 0);
  assert_error(end_of_many(many), 0);
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(many->results[i].status, 0);
    snprintf(value, sizeof value, "%s#", keys[i]);
    assert_memory_equal(many->data[i], value, strlen(value));
  }
  assert_int_equal(cache->batches, batches);
  assert_int_equal(cache->loaded - loaded, batches > 0 ? n : 0);
  env_until(cache->env, cache_stats(cache).loading == 0);
  many_free(many);
}

/* All of them in one call, in one round trip when they are there. */
ENV_TEST(as_many_as_can_be) {
  cache_t cache = {0}, other = {0};
  belay_cache_options_t options = batch_options(&cache);
  cache_open(&cache, env, &options);
  options.arg = &other;
  cache_open_on(&other, env, env_connect(env, server_url(env->server), NULL), &options);
  expect_batch_of(&cache, MANY_MAX, 1);
  assert_int_equal(cache.batch, MANY_MAX);
  env_settle(env);
  assert_int_equal(server_keys(env->server), MANY_MAX); /* no leases, no generations */
  int64_t calls = server_commands(env->server);
  expect_batch_of(&other, MANY_MAX, 0);
  env_settle(env);
  calls = server_commands(env->server) - calls;
  assert_in_range(calls, MANY_MAX, MANY_MAX + 40);
  assert_int_equal(cache_stats(&other).hits, MANY_MAX);
  assert_int_equal(cache_stats(&other).misses, 0);
  assert_int_equal(cache_stats(&cache).fills, MANY_MAX);
}

/* With load only, each by one call of it; with both, load_many is for many, and load for the
 * others. */
ENV_TEST(with_load) {
  static const char *const keys[] = {"a", "b", "a", "c"};
  cache_t cache = {0}, both = {0};
  cache_open(&cache, env, NULL);
  many_t *many = many_new(&cache);
  assert_error(begin_cache_get_many(many, keys, 4), 0);
  assert_error(end_of_many(many), 0);
  for (size_t i = 0; i < 4; i++)
    assert_memory_equal(many->data[i], keys[i], 1);
  assert_int_equal(cache.loaded, 3);
  assert_int_equal(cache.batches, 0);
  many_free(many);

  belay_cache_options_t options = batch_options(&both);
  options.load = cache_options(&both).load;
  options.name = belay_string("both");
  cache_open(&both, env, &options);
  expect_cached(&both, "a", "a#1", BELAY_CACHE_FROM_LOAD);
  assert_int_equal(both.batches, 0);
  many = many_new(&both);
  assert_error(begin_cache_get_many(many, keys, 4), 0);
  assert_error(end_of_many(many), 0);
  assert_int_equal(both.batches, 1);
  assert_int_equal(both.batch, 2);
  many_free(many);
}

/* A get of one key, where there is only load_many; many that wait for one turn go together. */
CACHE_TEST_(a_get_with_load_many, batch_options(cache), (void)o) {
  expect_cached(cache, "a", "a#1", BELAY_CACHE_FROM_LOAD);
  assert_int_equal(cache->batches, 1);
  assert_int_equal(cache->batch, 1);
}

CACHE_TEST_(absent_without_loader, bare_options(cache), (void)o) {
  static const char *const keys[] = {"a", "b"};
  expect_put(cache, "b", "put", true);
  many_t *many = many_new(cache);
  assert_error(begin_cache_get_many(many, keys, 2), 0);
  assert_error(end_of_many(many), 0);
  expect_many_status(many, 0, BELAY_EABSENT);
  expect_many_value(many, 1, "put", BELAY_CACHE_FROM_SERVER);
  assert_int_equal(cache_stats(cache).loading, 0);
  many_free(many);
}

/* ---- others ---- */

/* Some are being loaded by another process, one by a get of ours: the rest does not wait for them.
 */
ENV_TEST(some_are_loaded_elsewhere) {
  static const char *const keys[] = {"a", "b", "c", "d"};
  cache_t one = {.loading = LOAD_BY_TEST}, two = {.loading = LOAD_BY_TEST};
  belay_cache_options_t options = batch_options(&one);
  cache_open(&one, env, &options);
  options.arg = &two;
  cache_open_on(&two, env, env_connect(env, server_url(env->server), NULL), &options);
  get_t far = {0}, near = {0};
  start_get(&one, &far, "b");
  start_get(&two, &near, "c");
  env_until(env, one.held == 1 && two.held == 1);
  many_t *many = many_new(&two);
  assert_error(begin_cache_get_many(many, keys, 4), 0);
  env_until(env, two.held == 3);
  assert_int_equal(two.batches, 2);
  assert_int_equal(two.batch, 2);
  finish_load(&two, "c near");
  finish_load(&two, "a");
  finish_load(&two, "d");
  expect_got_value(&near, "c near", BELAY_CACHE_FROM_LOAD);
  env_run_for(env, 20);
  assert_int_equal(many->ended, 0);
  finish_load(&one, "b far");
  assert_error(end_of_many(many), 0);
  expect_many_value(many, 0, "a", BELAY_CACHE_FROM_LOAD);
  expect_many_value(many, 1, "b far", BELAY_CACHE_FROM_SERVER);
  expect_many_value(many, 2, "c near", BELAY_CACHE_FROM_LOAD);
  expect_many_value(many, 3, "d", BELAY_CACHE_FROM_LOAD);
  expect_got_value(&far, "b far", BELAY_CACHE_FROM_LOAD);
  expect_stats(&two, "waits 1, joined 1, misses 5");
  many_free(many);
}

/* Two at once of the same keys, here and there: each key is loaded once. */
ENV_TEST(two_at_once) {
  enum { N = 100 };
  const char *keys[N];
  cache_t caches[2] = {{.loading = LOAD_LATER, .delay_ms = 20},
                       {.loading = LOAD_LATER, .delay_ms = 20}};
  many_t *manys[4];
  for (size_t i = 0; i < N; i++)
    keys[i] = key_number(i);
  for (int i = 0; i < 2; i++) {
    belay_cache_options_t options = batch_options(&caches[i]);
    cache_open_on(&caches[i], env, env_connect(env, server_url(env->server), NULL), &options);
  }
  for (int i = 0; i < 4; i++) {
    manys[i] = many_new(&caches[i % 2]);
    assert_error(begin_cache_get_many(manys[i], keys, N), 0);
  }
  for (int i = 0; i < 4; i++)
    assert_error(end_of_many(manys[i]), 0);
  for (size_t k = 0; k < N; k++)
    for (int i = 1; i < 4; i++)
      assert_string_equal(manys[i]->data[k], manys[0]->data[k]);
  assert_int_equal(caches[0].loaded + caches[1].loaded, N);
  for (int i = 0; i < 4; i++)
    many_free(manys[i]);
  env_until(env, caches[0].timers + caches[1].timers == 0);
}

CACHE_TEST_(with_a_table, batch_options(cache), o.local_bytes = 100000; o.local_ttl_ms = 60000) {
  static const char *const keys[] = {"a", "b", "c"};
  many_t *many = many_new(cache);
  assert_error(begin_cache_get_many(many, keys, 2), 0);
  assert_error(end_of_many(many), 0);
  env_until(env, cache_stats(cache).local_entries == 2);
  env_settle(env);
  int64_t gets = server_calls(env->server, "get");
  assert_error(begin_cache_get_many(many, keys, 2), 0); /* all of them */
  assert_error(end_of_many(many), 0);
  expect_many_value(many, 0, "a#1", BELAY_CACHE_FROM_LOCAL);
  expect_many_value(many, 1, "b#2", BELAY_CACHE_FROM_LOCAL);
  assert_int_equal(server_calls(env->server, "get"), gets);
  assert_error(begin_cache_get_many(many, keys, 3), 0); /* some */
  assert_error(end_of_many(many), 0);
  expect_many_value(many, 0, "a#1", BELAY_CACHE_FROM_LOCAL);
  expect_many_value(many, 2, "c#3", BELAY_CACHE_FROM_LOAD);
  env_until(env, cache_stats(cache).loading == 0);
  expect_invalidate(cache, "b");
  assert_error(begin_cache_get_many(many, keys, 3), 0); /* in the middle */
  assert_error(end_of_many(many), 0);
  expect_many_value(many, 0, "a#1", BELAY_CACHE_FROM_LOCAL);
  expect_many_value(many, 1, "b#4", BELAY_CACHE_FROM_LOAD);
  expect_many_value(many, 2, "c#3", BELAY_CACHE_FROM_LOCAL);
  assert_int_equal(cache_stats(cache).local_hits, 2 + 2 + 2);
  many_free(many);
}

/* "TAG.KEY" */
static size_t tags_of(const char *key, size_t key_len, belay_bytes_t tags[BELAY_CACHE_TAGS_MAX],
                      void *arg) {
  (void)arg;
  const char *dot = memchr(key, '.', key_len);
  if (dot == NULL)
    return 0;
  tags[0] = (belay_bytes_t){key, (size_t)(dot - key)};
  tags[1] = (belay_bytes_t){"all", 3};
  return 2;
}

CACHE_TEST_(with_tags, batch_options(cache), o.tags = tags_of) {
  static const char *const keys[] = {"red.1", "none", "blue.1", "red.2", "blue.2"};
  many_t *many = many_new(cache);
  for (int i = 0; i < 2; i++) {
    assert_error(begin_cache_get_many(many, keys, 5), 0);
    assert_error(end_of_many(many), 0);
    expect_many_value(many, 0, "red.1#1", i ? BELAY_CACHE_FROM_SERVER : BELAY_CACHE_FROM_LOAD);
    env_until(env, cache_stats(cache).loading == 0);
  }
  expect_invalidate_tag(cache, "red");
  assert_error(begin_cache_get_many(many, keys, 5), 0);
  assert_error(end_of_many(many), 0);
  expect_many_value(many, 0, "red.1#6", BELAY_CACHE_FROM_LOAD);
  expect_many_value(many, 1, "none#2", BELAY_CACHE_FROM_SERVER);
  expect_many_value(many, 2, "blue.1#3", BELAY_CACHE_FROM_SERVER);
  expect_many_value(many, 3, "red.2#7", BELAY_CACHE_FROM_LOAD);
  expect_many_value(many, 4, "blue.2#5", BELAY_CACHE_FROM_SERVER);
  env_until(env, cache_stats(cache).loading == 0);
  expect_invalidate_tag(cache, "all");
  assert_error(begin_cache_get_many(many, keys, 5), 0);
  assert_error(end_of_many(many), 0);
  assert_int_equal(cache->batch, 4);
  expect_many_value(many, 1, "none#2", BELAY_CACHE_FROM_SERVER);
  expect_many_value(many, 4, "blue.2#11", BELAY_CACHE_FROM_LOAD);
  env_until(env, cache_stats(cache).loading == 0);
  env_settle(env);
  expect_ttls(env->server);
  many_free(many);
}

/* ---- each for itself ---- */

CACHE_TEST_(each_has_its_own_status, batch_options(cache), o.max_value_bytes = 10;
            cache->loading = LOAD_BY_TEST) {
  needs_one_process("loads in the order of the keys");
  static const char *const keys[] = {"value", "absent", "broken", "list", "big"};
  server_do(env->server, "RPUSH", "belay::cache::pages::{list}", "x", NULL);
  many_t *many = many_new(cache);
  assert_error(begin_cache_get_many(many, keys, 5), 0);
  env_until(env, cache->held == 4);
  assert_int_equal(cache->batches, 1);
  finish_load(cache, "value");
  finish_load_absent(cache);
  fail_load(cache, 99);
  assert_error(finish_load_bytes(cache, "12345678901", 11), BELAY_EOVERFLOW);
  assert_error(end_of_many(many), 0);
  expect_many_value(many, 0, "value", BELAY_CACHE_FROM_LOAD);
  expect_many_status(many, 1, BELAY_EABSENT);
  assert_int_equal(many->results[1].from, BELAY_CACHE_FROM_LOAD);
  expect_many_status(many, 2, BELAY_ELOAD);
  assert_int_equal(many->results[2].load_error, 99);
  expect_many_status(many, 3, BELAY_EWRONGTYPE);
  expect_many_status(many, 4, BELAY_ELOAD);
  assert_int_equal(many->results[4].load_error, BELAY_EOVERFLOW);
  many_free(many);
}

/* Nobody waits for that. */
CACHE_TEST_(stale_value_refreshed, batch_options(cache), o.ttl_ms = 30; o.stale_ms = 60000;
            cache->loading = LOAD_BY_TEST) {
  static const char *const keys[] = {"a", "b", "a"};
  expect_put(cache, "a", "old", true);
  expect_put(cache, "b", "old", true);
  env_run_for(env, 40);
  many_t *many = many_new(cache);
  assert_error(begin_cache_get_many(many, keys, 3), 0);
  assert_error(end_of_many(many), 0);
  for (size_t i = 0; i < 3; i++) {
    assert_error(many->results[i].status, 0);
    assert_true(many->results[i].stale);
    assert_int_equal(many->results[i].reason, 0);
    assert_string_equal(many->data[i], "old");
  }
  env_until(env, cache->held == 2);
  expect_stats(cache, "refreshes 2, stale_served 3, misses 0");
  finish_load(cache, "new");
  finish_load(cache, "new");
  env_until(env, cache_stats(cache).fills == 4);
  many_free(many);
}
