/* The table of a process: which values it serves, and for how long. */
#include <stdio.h>

#include "support/fixtures/cache/cache.h"

#define DROPPED "belay::cache::pages::{}::dropped"

/* ---- what is served ---- */

ENV_TEST(the_table_comes_first) {
  cache_t here = {0}, there = {0};
  belay_cache_options_t options = local_options(&here), other = cache_options(&there);
  cache_open(&here, env, &options);
  cache_open_elsewhere(&there, env, &other);
  expect_cached(&there, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  assert_int_equal(peek_cache(&there, "home"), BELAY_EAGAIN); /* it has none */
  assert_int_equal(peek_cache(&here, "home"), BELAY_EAGAIN);
  env_settle(env);
  expect_cached(&here, "home", "home#1", BELAY_CACHE_FROM_SERVER);
  int64_t gets = server_calls(env->server, "get");
  env_until(env, belay__subscription_is_up(&here.handle->subscription));
  expect_cached(&here, "home", "home#1",
                server_calls(env->server, "get") == gets && peek_cache(&here, "home") == 0
                    ? BELAY_CACHE_FROM_LOCAL
                    /* values from before the subscription are doubtful */
                    : BELAY_CACHE_FROM_SERVER);
  uint64_t commands = client_stats(env).commands;
  for (int i = 0; i < 10; i++) {
    expect_cached(&here, "home", "home#1", BELAY_CACHE_FROM_LOCAL);
    expect_peek(&here, "home", "home#1");
  }
  assert_int_equal(client_stats(env).commands, commands);
  assert_true(peeked.remaining_ms > 200000 && peeked.remaining_ms <= 300000);
  assert_true(peeked.age_ms < 60000);
  assert_int_equal(here.loaded, 0);
  assert_int_equal(cache_stats(&here).local_entries, 1);
}

LOCAL_CACHE_TEST_OF(loaded_value_in_table, o.absent_ms = o.error_ms = 60000) {
  fill_local_subscribed(cache, "home");
  expect_peek(cache, "home", "home#2");
  cache->value = "";
  fill_local(cache, "empty");
  expect_peek(cache, "empty", "");
  cache->absent = true;
  fill_local(cache, "ghost");
  assert_int_equal(peek_cache(cache, "ghost"), BELAY_EABSENT);
  cache->error = -77;
  get_t get = {0};
  start_get(cache, &get, "broken");
  assert_int_equal(end_of_get(&get), BELAY_ELOAD);
  expect_no_value(cache, "broken", BELAY_ELOAD); /* the status that the server returns */
  assert_int_equal(peek_cache(cache, "broken"), BELAY_ELOAD);
  assert_int_equal(peeked.load_error, -77);
  assert_int_equal(cache->loaded, 5);
  belay_cache_stats_t before = cache_stats(cache);
  expect_no_value(cache, "ghost", BELAY_EABSENT);
  expect_no_value(cache, "broken", BELAY_ELOAD);
  assert_int_equal(peek_cache(cache, "ghost"), BELAY_EABSENT);
  assert_int_equal(peek_cache(cache, "nothing"), BELAY_EAGAIN);
  belay_cache_stats_t after = cache_stats(cache);
  assert_int_equal(after.gets, before.gets + 3); /* a failed peek does not count */
  assert_int_equal(after.local_hits, before.local_hits + 3);
  assert_int_equal(after.absent_served, before.absent_served + 2);
  assert_int_equal(after.loads, before.loads);
}

LOCAL_CACHE_TEST(peek_arguments) {
  static char longest[BELAY_CACHE_KEY_MAX + 1];
  memset(longest, 'k', sizeof longest);
  belay_cache_result_t result;
  assert_int_equal(belay_cache_peek(NULL, belay_string("k"), &result), BELAY_EINVAL);
  assert_int_equal(belay_cache_peek(cache->handle, belay_bytes(NULL, 1), &result), BELAY_EINVAL);
  assert_int_equal(belay_cache_peek(cache->handle, belay_string("k"), NULL), BELAY_EINVAL);
  assert_int_equal(belay_cache_peek(cache->handle, belay_string(""), &result), BELAY_EINVAL);
  assert_int_equal(belay_cache_peek(cache->handle, belay_bytes(longest, sizeof longest), &result),
                   BELAY_EINVAL);
  assert_int_equal(
      belay_cache_peek(cache->handle, belay_bytes(longest, sizeof longest - 1), &result),
      BELAY_EAGAIN);
  assert_int_equal(cache_stats(cache).gets, 0);
  assert_int_equal(begin_close_cache(cache), 0);
  assert_int_equal(belay_cache_peek(cache->handle, belay_string("k"), &result), BELAY_ECLOSING);
  env_until(env, cache->closed == 1);
}

/* ---- how much it holds ---- */

ENV_TEST(least_recently_used_removed) {
  enum { N = 200, BYTES = 20000 };
  cache_t cache = {0};
  belay_cache_options_t options = local_options(&cache);
  options.local_bytes = BYTES;
  cache_open(&cache, env, &options);
  fill_local_subscribed(&cache, "first");
  char key[16];
  for (int i = 0; i < N; i++) {
    snprintf(key, sizeof key, "page %d", i);
    fill_local(&cache, key);
    assert_int_equal(peek_cache(&cache, "first"), 0); /* it is used all the time */
    assert_true(cache_stats(&cache).local_bytes <= BYTES);
  }
  size_t entries = cache_stats(&cache).local_entries;
  assert_true(entries > 20 && entries < N);
  int kept = 0;
  for (int i = 0; i < N; i++) {
    snprintf(key, sizeof key, "page %d", i);
    bool key_exists = peek_cache(&cache, key) == 0;
    assert_int_equal(key_exists, i + (int)entries - 1 >= N); /* the last ones */
    kept += key_exists;
  }
  assert_int_equal(kept + 1, entries);
}

ENV_TEST(record_larger_than_table) {
  static char large[10000];
  memset(large, 'x', sizeof large - 1);
  cache_t cache = {0};
  belay_cache_options_t options = local_options(&cache);
  options.local_bytes = sizeof large - 1;
  cache_open(&cache, env, &options);
  fill_local_subscribed(&cache, "home");
  expect_put(&cache, "large", large, true);
  for (int i = 0; i < 2; i++)
    expect_cached(&cache, "large", large, BELAY_CACHE_FROM_SERVER);
  assert_int_equal(peek_cache(&cache, "home"), 0); /* it has not made room for nothing */
}

/* ---- what is invalidated ---- */

LOCAL_CACHE_TEST_OF(own_invalidation_at_once, o.quiet = true) {
  fill_local_subscribed(cache, "home");
  change_t change = {0};
  assert_int_equal(begin_invalidate(cache, &change, "home"), 0);
  assert_int_equal(peek_cache(cache, "home"), BELAY_EAGAIN);
  assert_int_equal(end_of_change(&change), 0);
  fill_local(cache, "home");
  expect_peek(cache, "home", "home#3");
  assert_int_equal(begin_put(cache, &change, "home", "put"), 0);
  assert_int_equal(peek_cache(cache, "home"), BELAY_EAGAIN);
  assert_int_equal(end_of_change(&change), 0);
  assert_int_equal(peek_cache(cache, "home"), BELAY_EAGAIN);
  fill_local(cache, "home");
  expect_peek(cache, "home", "put");
  expect_touch(cache, "home", 1000, true);
  /* a shorter local_ttl_ms makes it invalid */
  assert_int_equal(peek_cache(cache, "home"), BELAY_EAGAIN);
}

/* The reply of a get from before an invalidation, processed after it, does not enter the table. */
LOCAL_CACHE_TEST(a_get_that_is_under_way) {
  fill_local_subscribed(cache, "other");
  expect_put(cache, "home", "old", true);
  get_t get = {0};
  change_t change = {0};
  start_get(cache, &get, "home");
  assert_int_equal(begin_invalidate(cache, &change, "home"), 0); /* behind it on the connection */
  expect_got_data(&get, "old");
  assert_int_equal(end_of_change(&change), 0);
  assert_int_equal(peek_cache(cache, "home"), BELAY_EAGAIN);
}

ENV_TEST(publication_of_changes) {
  cache_t here = {0}, there[2] = {{.value = "new"}, {.value = "new"}};
  belay_cache_options_t options = local_options(&here);
  cache_open(&here, env, &options);
  for (int i = 0; i < 2; i++) {
    belay_cache_options_t other = local_options(&there[i]);
    cache_open_elsewhere(&there[i], env, &other);
    fill_local_subscribed(&there[i], "home");
  }
  fill_local_subscribed(&here, "home");
  fill_local(&here, "about");
  expect_peek(&here, "home", "new");
  expect_invalidate(&there[0], "home");
  env_until(env, peek_cache(&here, "home") == BELAY_EAGAIN);
  env_until(env, peek_cache(&there[1], "home") == BELAY_EAGAIN);
  expect_peek(&here, "about", "about#1"); /* that one only */
  fill_local(&here, "home");
  fill_local(&there[1], "home");
  expect_put(&there[0], "home", "put", true);
  env_until(env, peek_cache(&here, "home") == BELAY_EAGAIN);
  env_until(env, peek_cache(&there[1], "home") == BELAY_EAGAIN);
  expect_cached(&here, "home", "put", BELAY_CACHE_FROM_SERVER);
}

/* Messages that are none do no harm. */
LOCAL_CACHE_TEST(invalid_messages_ignored) {
  fill_local_subscribed(cache, "home");
  (void)server_publish(env->server, DROPPED, "");
  (void)server_publish(env->server, DROPPED, "home");
  (void)server_publish(env->server, DROPPED, "a longer message");
  env_run_for(env, 10);
  expect_peek(cache, "home", "home#2");
}

/* The reply to a get is so long that the message overtakes it. */
ENV_TEST(a_message_that_is_faster_than_a_reply) {
  enum { LEN = 6000000 };
  cache_t here = {0}, there = {0};
  belay_cache_options_t options = local_options(&here), other = cache_options(&there);
  char *large = calloc(1, LEN + 1);
  memset(large, 'x', LEN);
  options.local_bytes = 20000000;
  cache_open(&here, env, &options);
  cache_open_elsewhere(&there, env, &other);
  fill_local_subscribed(&here, "home");
  for (int overtaken = 0; overtaken < 2; overtaken++) {
    get_t get = {0};
    change_t change = {0};
    belay__stamp_t stamp;
    belay__local_stamp(&here.handle->local, "large", 5, NULL, 0, &stamp);
    expect_put(&there, "large", large, true);
    env_until(env, !belay__local_is_good(&here.handle->local, &stamp)); /* by the message */
    int64_t gets = server_calls(env->server, "get");
    start_get(&here, &get, "large");
    env_until(env, server_calls(env->server, "get") > gets);
    assert_int_equal(get.ended, 0);
    belay__local_restamp(&here.handle->local, &stamp);
    if (overtaken) {
      assert_int_equal(begin_invalidate(&there, &change, "large"), 0);
      env_until(env, !belay__local_is_good(&here.handle->local, &stamp));
      assert_int_equal(get.ended, 0);
      assert_int_equal(end_of_change(&change), 0);
    }
    expect_got_data(&get, large);
    assert_int_equal(peek_cache(&here, "large"), overtaken ? BELAY_EAGAIN : 0);
  }
  free(large);
}

/* ---- many at once ---- */

enum { MANY = 300 };

typedef struct batch {
  belay_request_t request;
  unsigned ended, from[4];
} batch_t;

static void on_batch(belay_request_t *request, int status, const belay_cache_result_t *results,
                     size_t n) {
  batch_t *batch = request->data;
  assert_int_equal(status, 0);
  assert_int_equal(n, MANY);
  batch->ended++;
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(results[i].status, 0);
    assert_int_equal(results[i].len, 1);
    batch->from[results[i].from]++;
  }
}

static void expect_many(cache_t *cache, unsigned local, unsigned server, unsigned loaded) {
  static char names[MANY][8];
  belay_bytes_t keys[MANY];
  batch_t batch = {0};
  batch.request.data = &batch;
  for (int i = 0; i < MANY; i++)
    keys[i] = (belay_bytes_t){names[i], (size_t)sprintf(names[i], "k%d", i)};
  assert_int_equal(belay_cache_get_many(cache->handle, &batch.request, keys, MANY, on_batch), 0);
  env_until(cache->env, batch.ended == 1);
  env_settle(cache->env);
  assert_int_equal(batch.from[BELAY_CACHE_FROM_LOCAL], local);
  assert_int_equal(batch.from[BELAY_CACHE_FROM_SERVER], server);
  assert_int_equal(batch.from[BELAY_CACHE_FROM_LOAD], loaded);
}

ENV_TEST(many_at_once) {
  cache_t here = {.value = "v"}, there = {.value = "v"};
  belay_cache_options_t options = local_options(&here), other = local_options(&there);
  cache_open(&here, env, &options);
  cache_open_elsewhere(&there, env, &other);
  fill_local_subscribed(&here, "home");
  fill_local_subscribed(&there, "home");
  expect_many(&here, 0, 0, MANY);
  expect_many(&there, 0, MANY, 0);
  expect_many(&there, MANY, 0, 0);
  int64_t gets = server_calls(env->server, "get");
  expect_many(&here, MANY, 0, 0);
  assert_int_equal(server_calls(env->server, "get"), gets);
  for (int i = 0; i < 3; i++) {
    char key[8];
    snprintf(key, sizeof key, "k%d", 100 * i);
    expect_invalidate(&there, key);
    env_until(env, peek_cache(&here, key) == BELAY_EAGAIN);
  }
  expect_many(&here, MANY - 3, 0, 3);
  expect_many(&there, MANY - 3, 3, 0);
  expect_many(&there, MANY, 0, 0);
}
