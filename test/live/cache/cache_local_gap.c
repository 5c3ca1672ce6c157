/* The table of a process that misses invalidations: how long it serves a value, and its results
 * while the server is away. */
#include <stdio.h>

#include "support/fixtures/cache/cache.h"

#define KEY(key) "belay::cache::pages::{" key "}"
#define DROPPED "belay::cache::pages::{}::dropped"

/* ---- messages that are lost ---- */

/* The writer sends no message: the old value is served for local_ttl_ms. */
ENV_TEST(ttl_of_stored_values) {
  const int64_t bound = 100;
  cache_t here = {.value = "old"}, there = {.value = "new"};
  belay_cache_options_t options = local_options(&here), other = cache_options(&there);
  options.local_ttl_ms = bound;
  other.quiet = true;
  cache_open(&here, env, &options);
  cache_open_elsewhere(&there, env, &other);
  fill_local_subscribed(&here, "home");
  expect_put(&there, "home", "new", true);
  int64_t done = clock_now();
  unsigned served = 0;
  while (peek_cache(&here, "home") == 0) {
    assert_memory_equal(peeked.data, "old", 3);
    assert_true(clock_since_ms(done) <= bound + lag());
    served++;
    env_turn(env);
  }
  assert_true(served > 0);
  expect_cached(&here, "home", "new", BELAY_CACHE_FROM_SERVER);
}

/* It serves nothing for longer than it is fresh. */
LOCAL_CACHE_TEST_OF(jitter_shortens_ttl, o.ttl_ms = 50; o.stale_ms = 60000) {
  fill_local_subscribed(cache, "home");
  int64_t then = clock_now();
  env_until(env, peek_cache(cache, "home") == BELAY_EAGAIN);
  assert_true(clock_since_ms(then) <= 60 + lag());
  expect_stale(cache, "home", "home#2", 0);
}

/* Invalidates a key as another process would, without running this loop. */
static void invalidate_behind_its_back(env_t *env, const char *key, const char *record) {
  char message[8], generation[64];
  uint64_t hash = belay__local_hash(key, strlen(key), false);
  for (int i = 0; i < 8; i++)
    message[i] = (char)(hash >> 8 * i);
  snprintf(generation, sizeof generation, "%s::gen", record);
  server_do(env->server, "DEL", record, generation, NULL);
  resp_words_t words = {3,
                        {deployment_publish(), DROPPED, message},
                        {strlen(deployment_publish()), strlen(DROPPED), 8}};
  (void)server_ask_words(env->server, &words);
}

/* After a gap in its subscription a process may have missed invalidations. */
LOCAL_CACHE_TEST(a_gap) {
  fill_local_subscribed(cache, "home");
  fill_local(cache, "about");
  invalidate_behind_its_back(env, "about", KEY("about")); /* whose message arrives */
  env_until(env, peek_cache(cache, "about") == BELAY_EAGAIN);
  expect_peek(cache, "home", "home#2");
  server_do(env->server, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
  invalidate_behind_its_back(env, "home", KEY("home"));
  expect_peek(cache, "home", "home#2"); /* the gap is not detected yet */
  env_until(env, peek_cache(cache, "home") == BELAY_EAGAIN);
  expect_cached(cache, "home", "home#4", BELAY_CACHE_FROM_LOAD);
}

/* After a new subscription, messages from the gap may be missing. */
ENV_TEST_OF(after_a_gap, o.reconnect_max_ms = 50) {
  cache_t cache = {0};
  belay_cache_options_t options = local_options(&cache);
  cache_open(&cache, env, &options);
  fill_local_subscribed(&cache, "home");
  server_do(env->server, "ACL", "SETUSER", "default", "resetchannels", NULL); /* and drops it */
  /* until the gap is reported */
  env_until(env, cache.handle->subscription.reported != 0);
  fill_local(&cache, "home");
  invalidate_behind_its_back(env, "home", KEY("home"));
  env_run_for(env, 10);
  expect_peek(&cache, "home", "home#2"); /* for local_ttl_ms, or until messages arrive again */
  server_do(env->server, "ACL", "SETUSER", "default", "allchannels", NULL);
  env_until(env, belay__subscription_is_up(&cache.handle->subscription));
  assert_int_equal(peek_cache(&cache, "home"), BELAY_EAGAIN);
  expect_cached(&cache, "home", "home#3", BELAY_CACHE_FROM_LOAD);
}

/* ---- while the server is away ---- */

ENV_TEST_OF(while_the_server_is_away, o.timeout_ms = 150; o.close_timeout_ms = 50) {
  cache_t here = {0}, there = {0};
  belay_cache_options_t options = local_options(&here), other = cache_options(&there);
  options.away = BELAY_CACHE_AWAY_STALE;
  cache_open(&here, env, &options);
  cache_open_elsewhere(&there, env, &other);
  fill_local_subscribed(&here, "home");
  fill_local(&here, "gone");
  expect_invalidate(&there, "gone");
  env_until(env, peek_cache(&here, "gone") == BELAY_EAGAIN);
  server_kill(env->server);
  env_until(env, peek_cache(&here, "home") == BELAY_EAGAIN); /* in doubt */
  get_t get = {0};
  start_get(&here, &get, "home");
  assert_int_equal(end_of_get(&get), 0);
  assert_string_equal(get.data, "home#2");
  assert_true(get.result.stale);
  assert_int_equal(get.result.from, BELAY_CACHE_FROM_LOCAL);
  assert_true(get.result.reason < 0);
  get_free(&get);
  start_get(&here, &get, "gone");
  assert_int_equal(end_of_get(&get), BELAY_EUNREACHABLE);
}

/* After the server reported that a value is gone, the table does not serve it. */
ENV_TEST_OF(connection_known_lost, o.timeout_ms = 150; o.close_timeout_ms = 50) {
  cache_t cache = {0};
  belay_cache_options_t options = local_options(&cache);
  options.away = BELAY_CACHE_AWAY_STALE;
  options.local_ttl_ms = 1;
  cache_open(&cache, env, &options);
  expect_cached(&cache, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  env_settle(env);
  assert_int_equal(cache_stats(&cache).local_entries, 1);
  env_run_for(env, 2);
  server_do(env->server, "DEL", KEY("home"), NULL); /* and no message comes */
  cache.error = 5;
  expect_no_value(&cache, "home", BELAY_ELOAD);
  server_kill(env->server);
  env_until(env, client_stats(env).connections_up == 0);
  expect_no_value(&cache, "home", BELAY_EUNREACHABLE);
}
