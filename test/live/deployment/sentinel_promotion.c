/* Clients that ask the Sentinel which leads a failover: the promoted replica is used as soon as
 * it is a primary, and not before. The Sentinels are fakes, the servers are real. */
#include <stdio.h>

#include "support/fixtures/scene.h"

#define LEADS "s_down,o_down,master,failover_in_progress"
#define PROMOTED "slave,promoted"
#define WAITS "+failover-state-wait-promotion"
#define ELECTED "+vote-for-leader"

static void make_replica(server_t *replica, server_t *primary) {
  char port[12];
  snprintf(port, sizeof port, "%d", server_port(primary));
  server_do(replica, "REPLICAOF", "127.0.0.1", port, NULL);
}

/* That sentinel leads a failover, and promotes the second server. */
static void lead(scene_t *scene, int sentinel, const char *flags) {
  fake_sentinel_set_flags(scene->sentinel[sentinel], flags);
  fake_sentinel_add_replica(scene->sentinel[sentinel], "127.0.0.1", scene_port(scene, 1), PROMOTED);
}

static void say_that_it_waits(scene_t *scene, int sentinel) {
  char text[128];
  int port = scene_port(scene, 1);
  snprintf(text, sizeof text,
           "slave 127.0.0.1:%d 127.0.0.1 %d @ " FAKE_SENTINEL_MASTER " 127.0.0.1 %d", port, port,
           scene_port(scene, 0));
  fake_sentinel_publish_on(scene->sentinel[sentinel], WAITS, text);
}

/* The first server is dead, and the client has seen that. */
static void end_primary(scene_t *scene) {
  env_t *env = scene->env;
  server_kill(scene->server[0]);
  env_until(env, client_stats(env).connections_up == 0);
}

/* The first server is dead: so it is the second one that answers. */
static void expect_second(scene_t *scene) {
  assert_error(pong(scene->env, NULL), 0);
  server_restart(scene->server[0]);
  assert_int_equal(scene_answering(scene), 1);
}

static void say_who_is_elected(scene_t *scene, int sentinel, const char *run_id) {
  char text[128];
  snprintf(text, sizeof text, "%s 7", run_id);
  fake_sentinel_publish_on(scene->sentinel[sentinel], ELECTED, text);
}

/* ---- the replica ---- */

/* The sentinel goes on naming the old primary all the time. */
SCENE_TEST(promoted_replica_before_its_announcement, 1) {
  env_t *env = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  env_until(env, fake_sentinel_subscribers(scene->sentinel[0]) == 1);
  end_primary(scene);
  lead(scene, 0, LEADS);
  say_that_it_waits(scene, 0);
  assert_error(pong(env, NULL), 0);
  uint64_t drops = client_stats(env).drops;
  unsigned asked = scene_queries(scene);
  scene_hint(scene, 0,
             FAKE_SENTINEL_MASTER); /* the named server is still the old one: the client stays */
  env_until(env, scene_queries(scene) > asked);
  env_run_for(env, 50);
  assert_int_equal(client_stats(env).drops, drops);
  expect_second(scene);
}

/* A primary that stands still has connections. */
SCENE_TEST(stopped_primary_is_left, 1) {
  belay_client_options_t options = client_options();
  options.stall_timeout_ms = 60000;
  env_t *env = scene_open(scene, &options);
  assert_int_equal(scene_answering(scene), 0);
  env_until(env, fake_sentinel_subscribers(scene->sentinel[0]) == 1);
  server_pause(scene->server[0]);
  lead(scene, 0, LEADS);
  say_that_it_waits(scene, 0);
  env_until(env, client_stats(env).drops == 1);
  assert_error(pong(env, NULL), 0);
  server_resume(scene->server[0]);
  assert_int_equal(scene_answering(scene), 1);
}

/* Its own word decides. */
SCENE_TEST(flagged_replica_without_primary_role, 1) {
  belay_client_options_t options = client_options();
  options.timeout_ms = prompt_ms();
  env_t *env = scene_open(scene, &options);
  assert_int_equal(scene_answering(scene), 0);
  env_until(env, fake_sentinel_subscribers(scene->sentinel[0]) == 1);
  make_replica(scene->server[1], scene->server[0]);
  int64_t pings = server_calls(scene->server[1], "ping");
  end_primary(scene);
  lead(scene, 0, LEADS);
  say_that_it_waits(scene, 0);
  assert_error(pong(env, NULL), BELAY_EREADONLY);
  assert_int_equal(server_calls(scene->server[1], "ping"), pings);
  server_do(scene->server[1], "REPLICAOF", "NO", "ONE", NULL);
  int64_t began = clock_now();
  while (pong(env, NULL) != 0)
    assert_true(clock_since_ms(began) < 15000 * slow());
  expect_second(scene);
}

/* The failover ends without a promotion: the named primary counts again. */
SCENE_TEST(failover_aborted, 1) {
  belay_client_options_t options = client_options();
  options.timeout_ms = prompt_ms();
  env_t *env = scene_open(scene, &options);
  assert_int_equal(scene_answering(scene), 0);
  env_until(env, fake_sentinel_subscribers(scene->sentinel[0]) == 1);
  make_replica(scene->server[1], scene->server[0]);
  end_primary(scene);
  lead(scene, 0, LEADS);
  say_that_it_waits(scene, 0);
  assert_error(pong(env, NULL), BELAY_EREADONLY);
  fake_sentinel_set_flags(scene->sentinel[0], "master");
  server_restart(scene->server[0]);
  scene_await(scene, 0);
}

/* An operator has ordered it: the old primary answers until the other one is named. */
SCENE_TEST(failover_of_a_healthy_primary, 1) {
  env_t *env = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  env_until(env, fake_sentinel_subscribers(scene->sentinel[0]) == 1);
  lead(scene, 0, "master,failover_in_progress");
  unsigned asked = scene_queries(scene);
  say_that_it_waits(scene, 0);
  env_until(env, scene_queries(scene) > asked);
  env_run_for(env, 50);
  assert_int_equal(client_stats(env).drops, 0);
  assert_int_equal(scene_answering(scene), 0);
  scene_name(scene, 1, 2);
  scene_hint(scene, 0, FAKE_SENTINEL_MASTER);
  scene_await(scene, 1);
}

/* ---- the leader ---- */

/* Only the leader reports the promotion. The first Sentinel, whose events the client gets, only
 * reports that the primary is down, and its vote. */
SCENE_TEST(leader_is_asked, 3) {
  char run_id[41];
  for (int i = 1; i < 3; i++)
    fake_sentinel_add_sentinel(scene->sentinel[0], "127.0.0.1",
                               fake_sentinel_port(scene->sentinel[i]));
  fake_sentinel_run_id(fake_sentinel_port(scene->sentinel[2]), run_id);
  env_t *env = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  env_until(env, fake_sentinel_subscribers(scene->sentinel[0]) == 1);
  end_primary(scene);
  fake_sentinel_set_flags(scene->sentinel[0], "s_down,o_down,master");
  lead(scene, 2, LEADS);
  say_who_is_elected(scene, 0, run_id);
  env_until(env, fake_sentinel_subscribers(scene->sentinel[2]) == 1);
  assert_error(pong(env, NULL), 0);
  assert_int_equal(fake_sentinel_connections(scene->sentinel[1]), 0);
  expect_second(scene);
}

/* A vote may concern any master of the Sentinel. The client stays if its own primary is well or
 * the elected Sentinel is unknown. */
SCENE_TEST(vote_is_only_a_hint, 2) {
  char run_id[41], longer[100];
  fake_sentinel_add_sentinel(scene->sentinel[0], "127.0.0.1",
                             fake_sentinel_port(scene->sentinel[1]));
  fake_sentinel_run_id(fake_sentinel_port(scene->sentinel[1]), run_id);
  env_t *env = scene_open(scene, NULL);
  assert_int_equal(scene_answering(scene), 0);
  env_until(env, fake_sentinel_subscribers(scene->sentinel[0]) == 1);
  lead(scene, 1, LEADS);
  fake_sentinel_set_flags(scene->sentinel[0], "s_down,master");
  memset(longer, 'x', sizeof longer);
  longer[sizeof longer - 1] = '\0';
  const char *const unknown_ids[] = {"", " ", longer, "0123456789012345678901234567890123456789"};
  for (size_t i = 0; i < sizeof unknown_ids / sizeof *unknown_ids; i++) {
    unsigned asked = scene_queries(scene);
    say_who_is_elected(scene, 0, unknown_ids[i]);
    env_until(env, scene_queries(scene) > asked);
  }
  fake_sentinel_set_flags(scene->sentinel[0], "master");
  unsigned asked = scene_queries(scene);
  say_who_is_elected(scene, 0, run_id);
  env_until(env, scene_queries(scene) > asked);
  env_run_for(env, 50);
  assert_int_equal(fake_sentinel_connections(scene->sentinel[1]), 0);
  assert_int_equal(fake_sentinel_subscribers(scene->sentinel[0]), 1);
  assert_int_equal(scene_answering(scene), 0);
}
