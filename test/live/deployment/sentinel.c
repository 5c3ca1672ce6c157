/* Clients that ask Sentinels: true, false and missing answers. The Sentinels are fakes, the
 * servers are real. */
#include <stdio.h>

#include "support/fixtures/scene.h"

static void drop_clients(scene_t *scene, int server) {
  server_do(scene->server[server], "CLIENT", "KILL", "TYPE", "normal", NULL);
}

static void make_replica(server_t *replica, server_t *primary) {
  char port[12];
  snprintf(port, sizeof port, "%d", server_port(primary));
  server_do(replica, "REPLICAOF", "127.0.0.1", port, NULL);
}

/* ---- who is asked ---- */

SCENE_TEST(silent_sentinel_is_skipped, 3) {
  belay_client_options_t options = client_options();
  options.connect_timeout_ms = 2000 * slow();
  options.timeout_ms = 4000 * slow();
  fake_sentinel_mute(scene->sentinel[0], true);
  int64_t began = clock_now();
  env_t *env = scene_open(scene, &options);
  assert_int_equal(scene_answering(scene), 0);
  assert_true(clock_since_ms(began) < 2000 * slow()); /* its deadline is a part of that */
  assert_int_equal(fake_sentinel_connections(scene->sentinel[0]), 1);
  assert_int_equal(fake_sentinel_connections(scene->sentinel[1]), 1);
  assert_int_equal(fake_sentinel_connections(scene->sentinel[2]), 0);
  for (int i = 0; i < 3; i++) { /* the good one is asked first, on the connection that there is */
    unsigned asked = scene_queries(scene);
    drop_clients(scene, 0);
    env_until(env, client_stats(env).connections_up == 0);
    assert_int_equal(scene_answering(scene), 0);
    assert_true(scene_queries(scene) > asked); /* each time that it connects */
  }
  assert_int_equal(fake_sentinel_connections(scene->sentinel[0]), 1);
  assert_int_equal(fake_sentinel_connections(scene->sentinel[1]), 1);
}

SCENE_TEST(dead_sentinels_are_skipped, 3) {
  scene_end_sentinel(scene, 0);
  scene_end_sentinel(scene, 1);
  scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  assert_int_equal(client_stats(scene->env).connect_errors, 2);
}

/* The Sentinels die one after another, the last one too. One that returns is found. */
SCENE_TEST(sentinels_die_one_by_one, 3) {
  env_t *env = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  scene_end_sentinel(scene, 0);
  env_until(env, fake_sentinel_subscribers(scene->sentinel[1]) == 1);
  scene_end_sentinel(scene, 1);
  env_until(env, fake_sentinel_subscribers(scene->sentinel[2]) == 1);
  scene_name(scene, 1, 2);
  scene_hint(scene, 2, FAKE_SENTINEL_MASTER);
  env_until(env, client_stats(env).drops == 1);
  assert_int_equal(scene_answering(scene), 1);
  scene_end_sentinel(scene, 2);
  env_run_for(env, 50);
  assert_int_equal(scene_answering(scene), 1); /* it goes on without them */
}

/* Only the first is in the URL. */
static void name_the_first(scene_t *scene) {
  char *comma = strchr(scene->url, ',');
  snprintf(comma, sizeof scene->url - (size_t)(comma - scene->url), "/" FAKE_SENTINEL_MASTER);
}

SCENE_TEST(sentinels_learned_from_another, 2) {
  name_the_first(scene);
  fake_sentinel_add_sentinel(scene->sentinel[0], "127.0.0.1",
                             fake_sentinel_port(scene->sentinel[1]));
  env_t *env = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  scene_end_sentinel(scene, 0);
  env_until(env, fake_sentinel_subscribers(scene->sentinel[1]) == 1);
  scene_name(scene, 1, 2);
  scene_hint(scene, 1, FAKE_SENTINEL_MASTER);
  env_until(env, client_stats(env).drops == 1);
  assert_int_equal(scene_answering(scene), 1);
}

/* A Sentinel names thousands of others: some are remembered, and the configured ones are still
 * asked. */
SCENE_TEST(too_many_sentinels_learned, 2) {
  for (int i = 1; i < 500; i++)
    fake_sentinel_add_sentinel(scene->sentinel[0], "127.0.0.1", i);
  env_t *env = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  scene_end_sentinel(scene, 0);
  env_until(env, fake_sentinel_subscribers(scene->sentinel[1]) == 1);
}

/* The next Sentinel names others. The former names are dropped, which makes room. */
SCENE_TEST(learned_sentinels_are_replaced, 3) {
  name_the_first(scene);
  fake_sentinel_add_sentinel(scene->sentinel[0], "127.0.0.1",
                             fake_sentinel_port(scene->sentinel[1]));
  for (int i = 1; i < 500; i++)
    fake_sentinel_add_sentinel(scene->sentinel[0], "127.0.0.1", i);
  env_t *env = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  fake_sentinel_clear_sentinels(scene->sentinel[0]);
  fake_sentinel_add_sentinel(scene->sentinel[0], "127.0.0.1",
                             fake_sentinel_port(scene->sentinel[2]));
  for (int i = 0; i < 2; i++) { /* it asks again when it has read all answers */
    unsigned asked = scene_queries(scene);
    scene_hint(scene, 0, FAKE_SENTINEL_MASTER);
    env_until(env, scene_queries(scene) > asked);
  }
  scene_end_sentinel(scene, 0);
  env_until(env, fake_sentinel_subscribers(scene->sentinel[2]) == 1);
  assert_int_equal(fake_sentinel_connections(scene->sentinel[1]), 0);
}

/* ---- how old a word is ---- */

SCENE_TEST(older_epoch_is_ignored, 3) {
  fake_sentinel_set_primary(scene->sentinel[0], "127.0.0.1", scene_port(scene, 1), 7);
  env_t *env = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 1);
  fake_sentinel_set_primary(scene->sentinel[2], "127.0.0.1", scene_port(scene, 1), 8);
  scene_end_sentinel(scene, 0); /* the second one is behind */
  env_until(env, fake_sentinel_subscribers(scene->sentinel[2]) == 1);
  env_run_for(env, 50);
  assert_int_equal(client_stats(env).drops, 0);
  assert_int_equal(scene_answering(scene), 1);
  fake_sentinel_set_primary(scene->sentinel[2], "127.0.0.1", scene_port(scene, 0), 9);
  scene_hint(scene, 2, FAKE_SENTINEL_MASTER);
  env_until(env, client_stats(env).drops == 1);
  assert_int_equal(scene_answering(scene), 0);
}

/* Without newer information a client without a connection follows the old answer, and a
 * connected one stays. */
SCENE_TEST(older_epoch_without_a_connection, 2) {
  fake_sentinel_set_primary(scene->sentinel[0], "127.0.0.1", scene_port(scene, 1), 7);
  env_t *env = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 1);
  scene_end_sentinel(scene, 0);
  env_until(env, fake_sentinel_queries(scene->sentinel[1]) > 0);
  env_run_for(env, 50);
  assert_int_equal(client_stats(env).drops, 0);
  assert_int_equal(scene_answering(scene), 1);
  server_kill(scene->server[1]);
  env_until(env, client_stats(env).connections_up == 0);
  assert_error(pong(env, NULL), 0); /* at the first one */
  server_restart(scene->server[1]);
  assert_int_equal(scene_answering(scene), 0);
}

/* An answer with this epoch is useless: the client asks other Sentinels, with any epoch. */
SCENE_TEST(huge_epoch_with_a_useless_answer, 3) {
  belay_client_options_t options = client_options();
  options.timeout_ms = 60000;
  make_replica(scene->server[1], scene->server[0]);
  fake_sentinel_set_primary(scene->sentinel[0], "127.0.0.1", scene_port(scene, 1), UINT64_MAX);
  scene_open(scene, &options);
  assert_int_equal(scene_answering(scene), 0);
  assert_true(fake_sentinel_queries(scene->sentinel[0]) > 1);
}

/* Others know the same: from then on it is their epoch that counts. */
SCENE_TEST(huge_epoch_of_a_dead_sentinel, 2) {
  fake_sentinel_set_primary(scene->sentinel[0], "127.0.0.1", scene_port(scene, 0), UINT64_MAX);
  env_t *env = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  scene_end_sentinel(scene, 0);
  /* the client asks it and then believes it */
  env_until(env, fake_sentinel_subscribers(scene->sentinel[1]) == 2);
  assert_int_equal(client_stats(env).drops, 0);
  fake_sentinel_set_primary(scene->sentinel[1], "127.0.0.1", scene_port(scene, 1), 2);
  scene_hint(scene, 1, FAKE_SENTINEL_MASTER);
  env_until(env, client_stats(env).drops == 1);
  assert_int_equal(scene_answering(scene), 1);
}

/* ---- who the primary is ---- */

/* A sentinel names a replica: nothing is asked of it before it is a primary. */
SCENE_TEST(sentinel_names_a_replica, 1) {
  belay_client_options_t options = client_options();
  options.timeout_ms = prompt_ms();
  make_replica(scene->server[1], scene->server[0]);
  scene_name(scene, 1, 1);
  env_t *env = scene_open(scene, &options);
  assert_error(pong(env, NULL), BELAY_EREADONLY);
  assert_int_equal(server_calls(scene->server[1], "ping"), 1); /* the test's own */
  assert_int_equal(client_stats(env).not_sent, 1);
  server_do(scene->server[1], "REPLICAOF", "NO", "ONE", NULL);
  scene_await(scene, 1);
}

/* The primary becomes a replica without an event of the Sentinel. The periodic ROLE detects it. */
SCENE_TEST(primary_demoted_silently, 1) {
  env_t *env = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  make_replica(scene->server[0], scene->server[1]);
  env_until(env, client_stats(env).drops == 1); /* nothing was asked of it */
  fake_sentinel_set_primary(scene->sentinel[0], "127.0.0.1", scene_port(scene, 1), 2);
  scene_await(scene, 1);
}

/* ---- hints ---- */

SCENE_TEST(event_causes_a_query, 1) {
  env_t *env = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  scene_name(scene, 1, 2);
  int64_t began = clock_now();
  scene_hint(scene, 0, FAKE_SENTINEL_MASTER);
  env_until(env, client_stats(env).drops == 1);
  assert_int_equal(scene_answering(scene), 1);
  assert_true(clock_since_ms(began) < 2000 * slow());
}

TEST_ON(lost_event, scene, scene_start(1, &(fake_sentinel_options_t){.secretive = true})) {
  env_t *env = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  assert_int_equal(fake_sentinel_subscribers(scene->sentinel[0]), 0);
  scene_name(scene, 1, 2);
  env_until(env, client_stats(env).drops == 1);
  assert_int_equal(scene_answering(scene), 1);
}

SCENE_TEST(event_is_only_a_hint, 1) {
  env_t *env = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  env_until(env, fake_sentinel_subscribers(scene->sentinel[0]) == 1);
  unsigned asked = scene_queries(scene);
  scene_hint(scene, 0, "other");
  scene_hint(scene, 0, FAKE_SENTINEL_MASTER "2");
  fake_sentinel_publish(scene->sentinel[0], "my" FAKE_SENTINEL_MASTER " " FAKE_SENTINEL_MASTER ":");
  fake_sentinel_publish(scene->sentinel[0], "");
  env_run_for(env, 100);
  assert_int_equal(scene_queries(scene), asked); /* these are not about us */
  scene_hint(scene, 0, FAKE_SENTINEL_MASTER);
  env_until(env, scene_queries(scene) > asked);
  env_run_for(env, 100);
  assert_int_equal(client_stats(env).drops, 0); /* the sentinel itself says something else */
  assert_int_equal(scene_answering(scene), 0);
}

/* ---- what becomes of calls ---- */

/* Calls sent to the stalled old primary end as unknown. Unsent calls go to the new one. No
 * effect of the old primary's late execution stays. */
SCENE_TEST(calls_during_failover, 1) {
  belay_client_options_t options = client_options();
  options.timeout_ms = 10000;
  options.stall_timeout_ms = 60000;
  env_t *env = scene_open(scene, &options);
  assert_int_equal(scene_answering(scene), 0);
  server_pause(scene->server[0]);
  contender_t *sent = contender_new(env, "sent", NULL), *after = contender_new(env, "after", NULL);
  assert_error(begin_acquire(sent, 0), 0);
  env_run_for(env, 50);
  assert_int_equal(sent->ended, 0);
  scene_name(scene, 1, 2);
  scene_hint(scene, 0, FAKE_SENTINEL_MASTER);
  assert_error(outcome(sent), BELAY_EUNKNOWN);
  assert_error(try_lock(after), 0);
  env_settle(env); /* the undo too */
  assert_int_equal(server_keys(scene->server[1]), 1);
  server_resume(scene->server[0]);
  make_replica(scene->server[0], scene->server[1]);
  assert_error(release(after), 0);
  env_until(env, server_keys(scene->server[0]) == 0);
}

/* Another run id does not prove that the former process is dead. The undo is repeated, because
 * the former server may become the primary again. */
SCENE_TEST(stopped_primary_is_not_dead, 1) {
  belay_client_options_t options = client_options();
  belay_lock_options_t lasting = with_ttl(60000);
  options.timeout_ms = 10000;
  options.stall_timeout_ms = 60000;
  env_t *env = scene_open(scene, &options);
  contender_t *c = contender_new(env, "door", &lasting);
  assert_int_equal(scene_answering(scene), 0);
  server_pause(scene->server[0]);
  assert_error(begin_acquire(c, 0), 0);
  env_run_for(env, 50);
  scene_name(scene, 1, 2);
  scene_hint(scene, 0, FAKE_SENTINEL_MASTER);
  assert_error(outcome(c), BELAY_EUNKNOWN);
  server_resume(
      scene->server[0]); /* the server executes the rest of its socket, of a closed connection */
  env_until(env, client_stats(env).undone == 1);
  assert_true(server_calls(scene->server[1], "evalsha") + server_calls(scene->server[1], "eval") >
              1);
}

/* A lease goes on at the new primary, which has its key. */
SCENE_TEST(lease_is_renewed_at_the_new_primary, 1) {
  belay_lock_options_t lasting = watched(lag() + 600 * slow());
  server_follow(scene->server[1], scene->server[0]);
  env_t *env = scene_open(scene, NULL);
  contender_t *c = contender_new(env, "door", &lasting);
  assert_error(try_lock(c), 0);
  env_until(env, server_keys(scene->server[1]) == 1);
  server_kill(scene->server[0]);
  server_do(scene->server[1], "REPLICAOF", "NO", "ONE", NULL);
  scene_name(scene, 1, 2);
  scene_hint(scene, 0, FAKE_SENTINEL_MASTER);
  env_run_for(env, 2 * lasting.ttl_ms);
  assert_int_equal(c->lost, 0);
  assert_true(remaining_ms(c) > 0);
  assert_error(release(c), 0);
  assert_int_equal(server_keys(scene->server[1]), 0);
}

/* No new primary is reachable: the lease is lost at its local deadline, and not before. */
SCENE_TEST(lease_is_lost_at_its_deadline, 1) {
  belay_lock_options_t lasting = watched(kept_ttl());
  env_t *env = scene_open(scene, NULL);
  contender_t *c = contender_new(env, "door", &lasting);
  assert_error(try_lock(c), 0);
  server_kill(scene->server[0]);
  env_until(env, client_stats(env).connections_up == 0);
  assert_int_equal(c->lost, 0);
  int64_t left = remaining_ms(c), began = clock_now();
  env_until(env, c->lost == 1);
  assert_int_equal(c->reason, BELAY_LOST_EXPIRED);
  assert_true(clock_since_ms(began) >= left);
}
