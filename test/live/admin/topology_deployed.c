/* The servers of deployments that have several: each is found, and asked itself. */
#include <stdio.h>

#include "support/deployments/cluster.h"
#include "support/deployments/group.h"
#include "support/fixtures/admin/surveys.h"

static survey_t report;

static void expect_three(replicas_t *replicas) {
  assert_int_equal(report.n, 3);
  for (unsigned i = 0; i < 3; i++) {
    const belay_topology_server_t *server =
        surveyed_server(&report, server_port(replicas_node(replicas, i)));
    assert_reached(server, i == 0 ? BELAY_ROLE_PRIMARY : BELAY_ROLE_REPLICA, 4);
    assert_int_equal(server->replicas, i == 0 ? 2 : 0);
    assert_int_equal(server->in_sync, i > 0);
    if (i > 0)
      assert_ptr_equal(
          surveyed_server(&report, server_port(replicas_node(replicas, 0))),
          surveyed_server(&report, (int)strtol(strrchr(server->primary, ':') + 1, NULL, 10)));
  }
}

TEST_ON(a_primary_and_its_replicas, replicas,
        replicas_start(&(replicas_options_t){.password = "sesame"})) {
  env_t *env = env_open_at(replicas_url(replicas), NULL);
  assert_error(survey(env, &report, 4, 0), 0);
  expect_three(replicas);
  server_kill(replicas_node(replicas, 1));
  assert_error(survey(env, &report, 4, 500), 0);
  assert_int_equal(report.n, 3);
  assert_error(surveyed_server(&report, server_port(replicas_node(replicas, 1)))->status,
               BELAY_EUNREACHABLE);
  assert_reached(surveyed_server(&report, server_port(replicas_node(replicas, 2))),
                 BELAY_ROLE_REPLICA, 4);
  server_kill(replicas_node(replicas, 0)); /* without a primary, all servers have the same result */
  assert_error(survey(env, &report, 4, 500), 0);
  assert_int_equal(report.n, 3);
  const belay_topology_server_t *left =
      surveyed_server(&report, server_port(replicas_node(replicas, 2)));
  assert_error(left->status, 0);
  assert_false(left->in_sync);
  env_close(env);
}

/* A server with two names appears once. Servers that only other servers name appear, too. */
TEST_ON(names, replicas, replicas_start(NULL)) {
  char url[128];
  server_t *primary = replicas_node(replicas, 0);
  (void)snprintf(url, sizeof url, "%s://%slocalhost:%d",
                 servers_are_secure() ? "rediss+replicas" : "redis+replicas", server_login(primary),
                 server_port(primary));
  env_t *env = env_open_at(url, NULL);
  assert_error(survey(env, &report, 4, 0), 0);
  expect_three(replicas);
  assert_true(strncmp(report.server[0].address, "localhost:", 10) == 0);
  env_close(env);
}

TEST_ON(behind_sentinels, group, group_start(&(group_options_t){.nodes = {.password = "sesame"}})) {
  env_t *env = env_open_at(group_url(group), NULL);
  assert_error(survey(env, &report, 4, 0), 0);
  expect_three(group_replicas(group));
  env_close(env);
  for (unsigned i = 0; i < GROUP_SENTINELS; i++)
    server_kill(group_sentinel(group, i));
  env = env_open_at(group_url(group), NULL); /* it knows nobody */
  assert_error(survey(env, &report, 4, 300), BELAY_ENOSENTINEL);
  env_close(env);
}

TEST_ON(a_cluster, cluster, cluster_start(NULL)) {
  env_t *env = env_open_at(cluster_url(cluster), NULL);
  for (int i = 0; i < 2; i++) {
    assert_error(survey(env, &report, 4, 0), 0);
    assert_int_equal(report.n, 6);
    for (unsigned k = 0; k < 6; k++)
      assert_reached(surveyed_server(&report, server_port(cluster_node(cluster, k))),
                     k < 3 ? BELAY_ROLE_PRIMARY : BELAY_ROLE_REPLICA, 4);
  }
  assert_int_equal(env->warnings, 0);
  server_kill(cluster_node(cluster, 4));
  assert_error(survey(env, &report, 4, 500), 0);
  env_close(env);
}

/* A client without a map asks for the owner of the first slot, which is dead. It waits for a
 * part of the time only. */
TEST_ON(first_node_down, cluster, cluster_start(&(cluster_options_t){.without_replicas = true})) {
  server_kill(cluster_node(cluster, 0));
  env_t *env = env_open_at(cluster_url(cluster), NULL);
  assert_error(survey(env, &report, 4, 1500 * slow()), 0);
  assert_int_equal(report.n, 3);
  for (unsigned i = 0; i < 3; i++) {
    const belay_topology_server_t *server =
        surveyed_server(&report, server_port(cluster_node(cluster, i)));
    if (i > 0)
      assert_reached(server, BELAY_ROLE_PRIMARY, 4);
    else
      assert_error(server->status, BELAY_EUNREACHABLE);
  }
  env_close(env);
}

/* A Sentinel that is found late is asked, too. */
TEST_ON(late_sentinels, group, group_start(NULL)) {
  env_t *env = env_open_at(group_url(group), NULL);
  for (unsigned i = 0; i < GROUP_SENTINELS; i++)
    server_pause(group_sentinel(group, i));
  int64_t timeout_ms = 4500 * slow();
  assert_error(begin_survey(env, &report, 4, timeout_ms), 0);
  env_run_for(env, timeout_ms / 2);
  assert_int_equal(report.calls, 0);
  for (unsigned i = 0; i < GROUP_SENTINELS; i++)
    server_resume(group_sentinel(group, i));
  env_until(env, report.calls == 1);
  assert_error(report.status, 0);
  expect_three(group_replicas(group));
  env_close(env);
}
