/* A replica takes over that has the lease of a load, but not its release: the process that has
 * loaded releases it there again, and others need not wait for lease_ms. The sentinel only
 * pretends; the servers are real. */
#include <stdio.h>

#include "support/deployments/cluster.h"
#include "support/fixtures/cache/cache.h"
#include "support/fixtures/scene.h"

enum { LEASE_MS = 20000, SOON_MS = 10000 };

static bool has_lease(server_t *server) {
  return server_integer(server, "EVAL", "return #redis.call('KEYS', '*lease*')", "0", NULL) > 0;
}

static belay_cache_options_t options_of(cache_t *cache) {
  belay_cache_options_t options = cache_options(cache);
  options.lease_ms = LEASE_MS;
  return options;
}

/* The loader is idle by then, or goes on with something else. */
static void lose_a_release(bool goes_on) {
  scene_t scene;
  cache_t loader = {.loading = LOAD_BY_TEST}, other = {.value = "w"};
  get_t get = {0};
  scene_set_up(&scene, 1, NULL);
  server_follow(scene.server[1], scene.server[0]);
  env_t *env = scene_open(&scene, NULL);
  belay_cache_options_t options = options_of(&loader), others = options_of(&other);
  cache_open(&loader, env, &options);
  start_get(&loader, &get, "k");
  env_until(env, loader.held == 1);
  env_until(env, has_lease(scene.server[1]));
  server_do(scene.server[1], "REPLICAOF", "NO", "ONE", NULL); /* it gets no writes any more */
  finish_load(&loader, "v");
  expect_got_value(&get, "v", BELAY_CACHE_FROM_LOAD);
  env_until(env, !has_lease(scene.server[0]));
  env_settle(env);
  assert_true(has_lease(scene.server[1]));
  scene_name(&scene, 1, 2);
  scene_hint(&scene, 0, FAKE_SENTINEL_MASTER);
  env_until(env, client_stats(env).drops > 0);
  if (goes_on)
    assert_error(pong(env, NULL), 0);
  int64_t began = clock_now();
  cache_open_on(&other, env, env_connect(env, scene.url, NULL), &others);
  expect_cached(&other, "k", "w", BELAY_CACHE_FROM_LOAD);
  assert_true(clock_since_ms(began) < SOON_MS);
  env_settle(env);
  assert_false(has_lease(scene.server[1]));
  get_free(&get);
  scene_tear_down(&scene);
}

TEST(a_release_that_was_lost_is_repeated) {
  lose_a_release(true);
}

TEST(release_repeated_by_idle_client) {
  lose_a_release(false);
}

/* The same of a lock with that option, that is released and kept; without it the lock stays held.
 */
static void lose_a_lock(bool repeat) {
  scene_t scene;
  scene_set_up(&scene, 1, NULL);
  server_follow(scene.server[1], scene.server[0]);
  env_t *env = scene_open(&scene, NULL);
  belay_lock_options_t options = with_ttl(LEASE_MS);
  options.repeat_release = repeat;
  contender_t *mine = contender_new(env, "door", &options);
  assert_error(try_lock(mine), 0);
  env_until(env, server_keys(scene.server[1]) == 1);
  server_do(scene.server[1], "REPLICAOF", "NO", "ONE", NULL);
  assert_error(release(mine), 0);
  scene_name(&scene, 1, 2);
  scene_hint(&scene, 0, FAKE_SENTINEL_MASTER);
  env_until(env, client_stats(env).drops > 0);
  if (repeat)
    env_until(env, server_keys(scene.server[1]) == 0);
  else
    env_run_for(env, 200);
  assert_int_equal(server_keys(scene.server[1]), repeat ? 0 : 1);
  assert_error(close_lock(mine), 0);
  scene_tear_down(&scene);
}

TEST(a_lock_may_be_released_so) {
  lose_a_lock(true);
  lose_a_lock(false);
}

static const char *lease_of(cluster_t *cluster, unsigned *node) {
  for (*node = 0; *node < cluster_size(cluster); ++*node) {
    const resp_t *keys = server_ask(cluster_node(cluster, *node), "KEYS", "*lease*", NULL);
    if (keys->count > 0)
      return keys->items[0]->str;
  }
  fail_msg("no node has the lease");
  return NULL;
}

/* In a cluster the slot moves to a node that has the lease, but not its release. */
TEST_ON(a_release_is_repeated_where_the_slot_has_moved_to, cluster,
        cluster_start(&(cluster_options_t){.without_replicas = true})) {
  cache_t loader = {.loading = LOAD_BY_TEST};
  get_t get = {0}, again = {0};
  unsigned from;
  env_t *env = env_open_at(cluster_url(cluster), NULL);
  belay_cache_options_t options = options_of(&loader);
  options.lease_ms = 60000;
  cache_open(&loader, env, &options);
  start_get(&loader, &get, "k");
  env_until(env, loader.held == 1);
  char key[256], token[256];
  snprintf(key, sizeof key, "%s", lease_of(cluster, &from));
  snprintf(token, sizeof token, "%s",
           server_ask(cluster_node(cluster, from), "GET", key, NULL)->str);
  finish_load(&loader, "v");
  expect_got_value(&get, "v", BELAY_CACHE_FROM_LOAD);
  env_until(env, !has_lease(cluster_node(cluster, from)));
  env_settle(env);
  unsigned to = (from + 1) % 3;
  cluster_move(cluster, cluster_slot(cluster, key), to);
  server_do(cluster_node(cluster, to), "SET", key, token, "PX", "60000", NULL);
  start_get(&loader, &again, "k"); /* the client learns of the move */
  expect_got_value(&again, "v", BELAY_CACHE_FROM_SERVER);
  env_until(env, !has_lease(cluster_node(cluster, to)));
  get_free(&get);
  get_free(&again);
  env_close(env);
}
