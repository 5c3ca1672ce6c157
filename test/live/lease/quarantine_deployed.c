/* The quarantine where Redis is more than one server: a replica that takes over has no vote at
 * first, and a cluster has none. */
#include "support/deployments/cluster.h"
#include "support/deployments/group.h"
#include "support/servers/quarantine.h"

TEST_ON(promoted_replica_does_not_vote, group, group_start(NULL)) {
  env_t *env = env_open_at(group_url(group), NULL);
  belay_lock_options_t options = quarantine_options();
  contender_t *before = contender_new(env, "door", &options);
  contender_t *after = contender_new(env, "window", &options);
  assert_ok(wait_for(before), release(before));
  replicas_wait(group_replicas(group), 0);
  unsigned primary = group_fail_over(group, GROUP_KILLED);
  ask_until(after, BELAY_VOTE_QUARANTINED, 1);
  assert_error(try_lock(after), BELAY_EQUARANTINED);
  assert_error(wait_for(after), 0);
  server_t *server = group_node(group, primary);
  int64_t since = marker_since(server);
  assert_true(since > 0);
  assert_true(server_time_ms(server) - since >= MAX_TTL);
  env_close(env);
}

static void expect_refused(env_t *env, int error, const char *detail) {
  assert_error(error, BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), detail);
}

TEST_ON(cluster_refuses_quarantine, cluster,
        cluster_start(&(cluster_options_t){.without_replicas = true})) {
  static const char detail[] = "quarantine: not for a client of a cluster";
  env_t *env = env_open_at(cluster_url(cluster), NULL);
  belay_lock_t *lock;
  belay_multilock_t *multilock;
  const belay_multilock_name_t name = {.client = env->client, .name = {"door", 4}};
  static const belay_quarantine_t on[] = {BELAY_QUARANTINE_ON, BELAY_QUARANTINE_TRUST};
  for (int i = 0; i < 2; i++) {
    belay_lock_options_t options = lock_options();
    options.quarantine = on[i];
    expect_refused(env, belay_lock_new(env->client, belay_string("door"), &options, &lock), detail);
    expect_refused(env, belay_multilock_new(&name, 1, &options, NULL, &multilock), detail);
  }
  contender_t *c = contender_new(env, "door", NULL); /* by default there is none */
  assert_error(acquire(c, 5000), 0);
  env_close(env);
}

TEST_ON(redlock_refuses_cluster, cluster,
        cluster_start(&(cluster_options_t){.without_replicas = true})) {
  env_t *env = env_open(NULL);
  belay_client_t *whole = env_connect(env, cluster_url(cluster), NULL);
  belay_client_t *const clients[] = {env->client, whole};
  static const belay_quarantine_t all[] = {BELAY_QUARANTINE_AUTO, BELAY_QUARANTINE_OFF};
  belay_lock_t *lock;
  for (int i = 0; i < 2; i++) {
    belay_lock_options_t options = lock_options();
    options.quarantine = all[i];
    options.allow_small = true;
    expect_refused(env, belay_redlock_new(clients, 2, belay_string("door"), &options, &lock),
                   "clients[1]: of a cluster, which is no node of a quorum");
    expect_refused(env, belay_redlock_new(&whole, 1, belay_string("door"), &options, &lock),
                   "clients[0]: of a cluster, which is no node of a quorum");
  }
  env_close(env);
}
