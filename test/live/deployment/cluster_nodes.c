/* Nodes die, return, are added and removed while a client uses the cluster; and the number of map
 * queries. */
#include <stdio.h>

#include "core/key/slot.h"
#include "support/fixtures/env.h"
#include "support/deployments/cluster.h"

#define NAMES 40
#define WAIT_MS 20000

typedef struct setup {
  cluster_t *cluster;
  env_t *env;
  contender_t *all[NAMES]; /* in slots of all nodes */
} setup_t;

static void name_all(setup_t *setup) {
  char name[16];
  for (int i = 0; i < NAMES; i++) {
    snprintf(name, sizeof name, "lock-%d", i);
    setup->all[i] = contender_new(setup->env, name, NULL);
  }
}

static setup_t *setup_open(const cluster_options_t *options) {
  belay_client_options_t o = client_options();
  setup_t *setup = calloc(1, sizeof *setup);
  o.reconnect_max_ms = 200;
  setup->cluster = cluster_start(options);
  setup->env = env_open_at(cluster_url(setup->cluster), &o);
  name_all(setup);
  return setup;
}

static void setup_close(setup_t *setup) {
  env_close(setup->env);
  cluster_stop(setup->cluster);
  free(setup);
}

/* Takes and gives back all of them. A failover may take some before all are there. */
static void take_all(setup_t *setup) {
  for (int i = 0; i < NAMES; i++)
    assert_error(begin_acquire(setup->all[i], WAIT_MS), 0);
  for (int i = 0; i < NAMES; i++)
    assert_error(outcome(setup->all[i]), 0);
  for (int i = 0; i < NAMES; i++) {
    int error = begin_release(setup->all[i]);
    if (error != BELAY_ENOTOWNER)
      assert_error(error, 0);
  }
  for (int i = 0; i < NAMES; i++)
    (void)outcome(setup->all[i]);
}

static int64_t calls_of_all(cluster_t *cluster, const char *command) {
  int64_t n = 0;
  for (unsigned i = 0; i < cluster_size(cluster); i++)
    if (cluster_node(cluster, i) != NULL && server_is_running(cluster_node(cluster, i)))
      n += server_calls(cluster_node(cluster, i), command);
  return n;
}

static bool fails_over(cluster_t *cluster) {
  return cluster_has_failed_over(cluster);
}

/* ---- dying ---- */

/* Each shard in one of the ways, while all of them are used. */
static void fail_over(setup_t *setup, unsigned slot, cluster_way_t way) {
  cluster_begin_fail_over(setup->cluster, slot, way);
  int64_t began = clock_now();
  while (!fails_over(setup->cluster) && clock_since_ms(began) < 20000 * slow())
    take_all(setup);
  take_all(setup);
  cluster_mend(setup->cluster);
  began = clock_now();
  while (!cluster_is_whole(setup->cluster) && clock_since_ms(began) < 20000 * slow())
    take_all(setup);
}

TEST_IN(primaries_fail_over, setup, setup_open(NULL)) {
  take_all(setup);
  fail_over(setup, 0, CLUSTER_KILLED);
  fail_over(setup, 8000, CLUSTER_PAUSED);
  fail_over(setup, 16000, CLUSTER_ASKED);
  fail_over(setup, 0, CLUSTER_TAKEN);
  fail_over(setup, 8000, CLUSTER_FORCED);
}

static void kill_all(cluster_t *cluster) {
  for (unsigned i = 0; i < cluster_size(cluster); i++)
    server_kill(cluster_node(cluster, i));
}

/* Calls end at their deadline as unreachable, and succeed again when a node is back. */
TEST_IN(all_nodes_die, setup, setup_open(&(cluster_options_t){.without_replicas = true})) {
  take_all(setup);
  kill_all(setup->cluster);
  env_run_for(setup->env, 100);
  for (int i = 0; i < NAMES; i++)
    assert_error(begin_acquire(setup->all[i], 0), 0);
  for (int i = 0; i < NAMES; i++)
    assert_error(outcome(setup->all[i]), BELAY_EUNREACHABLE);
  for (int i = 0; i < NAMES; i++)
    assert_error(begin_acquire(setup->all[i], 60000), 0);
  cluster_mend(setup->cluster);
  for (int i = 0; i < NAMES; i++)
    assert_error(outcome(setup->all[i]), 0);
}

TEST_ON(nodes_start_later, cluster, cluster_start(&(cluster_options_t){.without_replicas = true})) {
  kill_all(cluster);
  belay_client_options_t options = client_options();
  options.timeout_ms = 300;
  env_t *env = env_open_at(cluster_url(cluster), &options);
  contender_t *c = contender_new(env, "door", NULL);
  assert_error(try_lock(c), BELAY_EUNREACHABLE);
  assert_error(begin_acquire(c, 60000), 0);
  env_run_for(env, 300);
  cluster_mend(cluster);
  assert_error(outcome(c), 0);
  env_close(env);
}

/* ---- coming and going ---- */

static size_t connections_up(const setup_t *setup) {
  return client_stats(setup->env).connections_up;
}

TEST_IN(node_added_and_removed, setup, setup_open(&(cluster_options_t){.without_replicas = true})) {
  take_all(setup);
  env_settle(setup->env);
  unsigned slot = cluster_slot(setup->cluster, key_of(setup->all[0]));
  unsigned owner = (unsigned)cluster_owner(setup->cluster, slot);
  size_t links = connections_up(setup), bytes = setup->env->bytes;
  for (int turn = 0; turn < 3; turn++) {
    unsigned added = cluster_add(setup->cluster);
    assert_error(try_lock(setup->all[0]), 0);
    cluster_move(setup->cluster, slot, added);
    assert_error(extend(setup->all[0], 60000), 0);
    assert_int_equal(connections_up(setup), links + 1);
    cluster_move(setup->cluster, slot, owner);
    cluster_forget(setup->cluster, added);
    env_run_for(setup->env, 50); /* connections that end meanwhile are noticed */
    assert_error(extend(setup->all[0], 60000), 0);
    assert_error(release(setup->all[0]), 0);
    env_settle(setup->env);
    env_until(setup->env, connections_up(setup) == links);
    env_until(setup->env, setup->env->bytes <= bytes + 16384); /* nothing is left of it */
  }
}

/* ---- asking ---- */

static int64_t errors_of_all(cluster_t *cluster, const char *prefix) {
  char line[64];
  int64_t n = 0;
  snprintf(line, sizeof line, "errorstat_%s:count=", prefix);
  for (unsigned i = 0; i < cluster_size(cluster); i++) {
    const char *text = server_string(cluster_node(cluster, i), "INFO", "errorstats", NULL);
    const char *at = text == NULL ? NULL : strstr(text, line);
    n += at == NULL ? 0 : strtoll(at + strlen(line), NULL, 10);
  }
  return n;
}

/* One question in a second, however many calls are sent elsewhere. */
TEST_IN(redirects_cause_few_map_queries, setup,
        setup_open(&(cluster_options_t){.without_replicas = true})) {
  enum { LASTS_MS = 4000, LOCKS = 20 };
  char name[32];
  contender_t *all[LOCKS];
  take_all(setup);
  unsigned slot = cluster_slot(setup->cluster, "door"), to;
  for (unsigned i = 0, n = 0; i < LOCKS; n++) {
    snprintf(name, sizeof name, "%u", n);
    if (belay__slot(name, strlen(name)) == slot)
      all[i++] = contender_new(setup->env, name, NULL);
  }
  int64_t asked = calls_of_all(setup->cluster, "cluster|slots"), began = clock_now();
  int64_t moved = errors_of_all(setup->cluster, "MOVED");
  to = (unsigned)cluster_owner(setup->cluster, slot);
  while (clock_since_ms(began) < LASTS_MS) {
    to = (to + 1) % 3;
    for (int i = 0; i < LOCKS; i++)
      assert_error(begin_acquire(all[i], 5000), 0);
    cluster_move(setup->cluster, slot, to);
    for (int i = 0; i < LOCKS; i++)
      assert_error(outcome(all[i]), 0);
    for (int i = 0; i < LOCKS; i++)
      assert_error(release(all[i]), 0);
    while (!cluster_is_whole(setup->cluster))
      env_run_for(setup->env, 5);
  }
  int64_t took = clock_since_ms(began);
  asked = calls_of_all(setup->cluster, "cluster|slots") - asked;
  moved = errors_of_all(setup->cluster, "MOVED") - moved;
  print_message("# %d redirections and %d questions in %d ms\n", (int)moved, (int)asked, (int)took);
  assert_true(moved > 10 * asked);
  assert_between(asked, 1, took / 1000 + 2);
}

/* The same while a slot has no owner: all nodes are asked for changes, but rarely for the map,
 * unless the map is the only permitted question. */
static void let_a_primary_die(bool blind) {
  enum { LASTS_MS = 4000 };
  setup_t *setup = setup_open(&(cluster_options_t){.without_replicas = true});
  for (unsigned i = 0; i < 3 && blind; i++)
    server_do(cluster_node(setup->cluster, i), "ACL", "SETUSER", "default", "-cluster|info", NULL);
  take_all(setup);
  server_kill(cluster_node(setup->cluster, 0));
  cluster_suspect_soon(setup->cluster);
  int64_t looks = calls_of_all(setup->cluster, "cluster|info"), maps[3], sum = 0;
  for (unsigned i = 1; i < 3; i++)
    maps[i] = server_calls(cluster_node(setup->cluster, i), "cluster|slots");
  int64_t began = clock_now();
  for (int i = 0; i < NAMES; i++)
    assert_error(begin_acquire(setup->all[i], LASTS_MS), 0);
  while (clock_since_ms(began) < LASTS_MS)
    env_run_for(setup->env, 100);
  int64_t took = clock_since_ms(began);
  looks = calls_of_all(setup->cluster, "cluster|info") - looks;
  for (unsigned i = 1; i < 3; i++) {
    maps[i] = server_calls(cluster_node(setup->cluster, i), "cluster|slots") - maps[i];
    assert_true(maps[i] > 0 || !blind);
    sum += maps[i];
  }
  print_message("# %d maps, %d looks in %d ms\n", (int)sum, (int)looks, (int)took);
  assert_between(sum, blind ? 2 : 0, took / 1000 + 2);
  assert_between(looks, blind ? 0 : sum + 2, took / 50 + 2);
  for (int i = 0; i < NAMES; i++)
    (void)outcome(setup->all[i]);
  setup_close(setup);
}

TEST(dead_primary_causes_few_map_queries) {
  let_a_primary_die(false);
}

TEST(dead_primary_without_cluster_info) {
  let_a_primary_die(true);
}
