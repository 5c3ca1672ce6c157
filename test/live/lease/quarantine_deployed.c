/* The quarantine where Redis is more than one server: a replica that takes over has no vote at
 * first, and a cluster has none. */
#include "support/deployments/cluster.h"
#include "support/deployments/group.h"
#include "support/servers/quarantine.h"

TEST_ON(promoted_replica_does_not_vote, group, group_start(NULL)) {
  bed_t *bed = bed_open_at(group_url(group), NULL);
  belay_lock_options_t options = quarantine_options();
  contender_t *before = contender_new(bed, "door", &options);
  contender_t *after = contender_new(bed, "window", &options);
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
  bed_close(bed);
}

static void expect_refused(bed_t *bed, int error, const char *detail) {
  assert_error(error, BELAY_EINVAL);
  assert_string_equal(belay_detail(bed->belay), detail);
}

TEST_ON(cluster_refuses_quarantine, cluster,
        cluster_start(&(cluster_options_t){.without_replicas = true})) {
  static const char detail[] = "quarantine: not for a client of a cluster";
  bed_t *bed = bed_open_at(cluster_url(cluster), NULL);
  belay_lock_t *lock;
  belay_multilock_t *multilock;
  const belay_multilock_name_t name = {.client = bed->client, .name = {"door", 4}};
  static const belay_quarantine_t on[] = {BELAY_QUARANTINE_ON, BELAY_QUARANTINE_TRUST};
  for (int i = 0; i < 2; i++) {
    belay_lock_options_t options = lock_options();
    options.quarantine = on[i];
    expect_refused(bed, belay_lock_new(bed->client, belay_string("door"), &options, &lock), detail);
    expect_refused(bed, belay_multilock_new(&name, 1, &options, NULL, &multilock), detail);
  }
  contender_t *c = contender_new(bed, "door", NULL); /* by default there is none */
  assert_error(acquire(c, 5000), 0);
  bed_close(bed);
}

TEST_ON(redlock_refuses_cluster, cluster,
        cluster_start(&(cluster_options_t){.without_replicas = true})) {
  bed_t *bed = bed_open(NULL);
  belay_client_t *whole = bed_connect(bed, cluster_url(cluster), NULL);
  belay_client_t *const clients[] = {bed->client, whole};
  static const belay_quarantine_t all[] = {BELAY_QUARANTINE_AUTO, BELAY_QUARANTINE_OFF};
  belay_lock_t *lock;
  for (int i = 0; i < 2; i++) {
    belay_lock_options_t options = lock_options();
    options.quarantine = all[i];
    options.allow_small = true;
    expect_refused(bed, belay_redlock_new(clients, 2, belay_string("door"), &options, &lock),
                   "clients[1]: of a cluster, which is no node of a quorum");
    expect_refused(bed, belay_redlock_new(&whole, 1, belay_string("door"), &options, &lock),
                   "clients[0]: of a cluster, which is no node of a quorum");
  }
  bed_close(bed);
}
