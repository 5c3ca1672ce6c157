/* Nodes of a cluster die, come back, come and go, while a client uses it; and how often it asks who has what. */
#include <stdio.h>

#include "core/key/slot.h"
#include "support/fixtures/bed.h"
#include "support/deployments/cluster.h"

#define NAMES 40
#define WAIT_MS 20000

typedef struct stage {
  cluster_t *cluster;
  bed_t *bed;
  contender_t *all[NAMES]; /* in slots of all nodes */
} stage_t;

static void name_all(stage_t *stage) {
  char name[16];
  for (int i = 0; i < NAMES; i++) {
    snprintf(name, sizeof name, "lock-%d", i);
    stage->all[i] = contender_new(stage->bed, name, NULL);
  }
}

static stage_t stage_open(const cluster_options_t *options) {
  belay_client_options_t o = client_options();
  o.reconnect_max_ms = 200;
  stage_t stage = {.cluster = cluster_start(options)};
  stage.bed = bed_open_at(cluster_url(stage.cluster), &o);
  name_all(&stage);
  return stage;
}

static void stage_close(stage_t *stage) {
  bed_close(stage->bed);
  cluster_stop(stage->cluster);
}

/* Takes and gives back all of them. A failover may take some before all are there. */
static void take_all(stage_t *stage) {
  for (int i = 0; i < NAMES; i++)
    assert_error(begin_acquire(stage->all[i], WAIT_MS), 0);
  for (int i = 0; i < NAMES; i++)
    assert_error(outcome(stage->all[i]), 0);
  for (int i = 0; i < NAMES; i++) {
    int error = begin_release(stage->all[i]);
    if (error != BELAY_ENOTOWNER)
      assert_error(error, 0);
  }
  for (int i = 0; i < NAMES; i++)
    (void)outcome(stage->all[i]);
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

/* ---- dying --------------------------------------------------------------------------------------------- */

/* Each shard in one of the ways, while all of them are used. */
static void fail_over(stage_t *stage, unsigned slot, cluster_way_t way) {
  cluster_begin_fail_over(stage->cluster, slot, way);
  int64_t began = clock_now();
  while (!fails_over(stage->cluster) && clock_since_ms(began) < 20000 * slow())
    take_all(stage);
  take_all(stage);
  cluster_mend(stage->cluster);
  began = clock_now();
  while (!cluster_is_whole(stage->cluster) && clock_since_ms(began) < 20000 * slow())
    take_all(stage);
}

TEST(primaries_fail_over) {
  stage_t stage = stage_open(NULL);
  take_all(&stage);
  fail_over(&stage, 0, CLUSTER_KILLED);
  fail_over(&stage, 8000, CLUSTER_PAUSED);
  fail_over(&stage, 16000, CLUSTER_ASKED);
  fail_over(&stage, 0, CLUSTER_TAKEN);
  fail_over(&stage, 8000, CLUSTER_FORCED);
  stage_close(&stage);
}

static void kill_all(cluster_t *cluster) {
  for (unsigned i = 0; i < cluster_size(cluster); i++)
    server_kill(cluster_node(cluster, i));
}

/* Calls end at their deadline as unreachable, and succeed again when a node is back. */
TEST(all_nodes_die) {
  stage_t stage = stage_open(&(cluster_options_t){.without_replicas = true});
  take_all(&stage);
  kill_all(stage.cluster);
  bed_run_for(stage.bed, 100);
  for (int i = 0; i < NAMES; i++)
    assert_error(begin_acquire(stage.all[i], 0), 0);
  for (int i = 0; i < NAMES; i++)
    assert_error(outcome(stage.all[i]), BELAY_EUNREACHABLE);
  for (int i = 0; i < NAMES; i++)
    assert_error(begin_acquire(stage.all[i], 60000), 0);
  cluster_mend(stage.cluster);
  for (int i = 0; i < NAMES; i++)
    assert_error(outcome(stage.all[i]), 0);
  stage_close(&stage);
}

TEST_ON(no_node_is_there_at_first, cluster,
        cluster_start(&(cluster_options_t){.without_replicas = true})) {
  kill_all(cluster);
  belay_client_options_t options = client_options();
  options.timeout_ms = 300;
  bed_t *bed = bed_open_at(cluster_url(cluster), &options);
  contender_t *c = contender_new(bed, "door", NULL);
  assert_error(try_lock(c), BELAY_EUNREACHABLE);
  assert_error(begin_acquire(c, 60000), 0);
  bed_run_for(bed, 300);
  cluster_mend(cluster);
  assert_error(outcome(c), 0);
  bed_close(bed);
}

/* ---- coming and going ---------------------------------------------------------------------------------- */

static size_t connections_up(const stage_t *stage) {
  return client_stats(stage->bed).connections_up;
}

TEST(a_node_comes_and_goes) {
  stage_t stage = stage_open(&(cluster_options_t){.without_replicas = true});
  take_all(&stage);
  bed_settle(stage.bed);
  unsigned slot = cluster_slot(stage.cluster, key_of(stage.all[0]));
  unsigned owner = (unsigned)cluster_owner(stage.cluster, slot);
  size_t links = connections_up(&stage), bytes = stage.bed->bytes;
  for (int turn = 0; turn < 3; turn++) {
    unsigned added = cluster_add(stage.cluster);
    assert_error(try_lock(stage.all[0]), 0);
    cluster_move(stage.cluster, slot, added);
    assert_error(extend(stage.all[0], 60000), 0);
    assert_int_equal(connections_up(&stage), links + 1);
    cluster_move(stage.cluster, slot, owner);
    cluster_forget(stage.cluster, added);
    bed_run_for(stage.bed, 50); /* connections that end meanwhile are noticed */
    assert_error(extend(stage.all[0], 60000), 0);
    assert_error(release(stage.all[0]), 0);
    bed_settle(stage.bed);
    bed_until(stage.bed, connections_up(&stage) == links);
    bed_until(stage.bed, stage.bed->bytes <= bytes + 16384); /* nothing is left of it */
  }
  stage_close(&stage);
}

/* ---- asking -------------------------------------------------------------------------------------------- */

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
TEST(redirections_do_not_make_a_storm) {
  enum { LASTS_MS = 4000, LOCKS = 20 };
  stage_t stage = stage_open(&(cluster_options_t){.without_replicas = true});
  char name[32];
  contender_t *all[LOCKS];
  take_all(&stage);
  unsigned slot = cluster_slot(stage.cluster, "door"), to;
  for (unsigned i = 0, n = 0; i < LOCKS; n++) {
    snprintf(name, sizeof name, "%u", n);
    if (belay__slot(name, strlen(name)) == slot)
      all[i++] = contender_new(stage.bed, name, NULL);
  }
  int64_t asked = calls_of_all(stage.cluster, "cluster|slots"), began = clock_now();
  int64_t moved = errors_of_all(stage.cluster, "MOVED");
  to = (unsigned)cluster_owner(stage.cluster, slot);
  while (clock_since_ms(began) < LASTS_MS) {
    to = (to + 1) % 3;
    for (int i = 0; i < LOCKS; i++)
      assert_error(begin_acquire(all[i], 5000), 0);
    cluster_move(stage.cluster, slot, to);
    for (int i = 0; i < LOCKS; i++)
      assert_error(outcome(all[i]), 0);
    for (int i = 0; i < LOCKS; i++)
      assert_error(release(all[i]), 0);
    while (!cluster_is_whole(stage.cluster))
      bed_run_for(stage.bed, 5);
  }
  int64_t took = clock_since_ms(began);
  asked = calls_of_all(stage.cluster, "cluster|slots") - asked;
  moved = errors_of_all(stage.cluster, "MOVED") - moved;
  print_message("# %d redirections and %d questions in %d ms\n", (int)moved, (int)asked, (int)took);
  assert_true(moved > 10 * asked);
  assert_between(asked, 1, took / 1000 + 2);
  stage_close(&stage);
}

/* The same while a slot has no owner: all nodes are asked for changes, but rarely for the map,
 * unless the map is the only permitted question. */
static void let_a_primary_die(bool blind) {
  enum { LASTS_MS = 4000 };
  stage_t stage = stage_open(&(cluster_options_t){.without_replicas = true});
  for (unsigned i = 0; i < 3 && blind; i++)
    server_do(cluster_node(stage.cluster, i), "ACL", "SETUSER", "default", "-cluster|info", NULL);
  take_all(&stage);
  server_kill(cluster_node(stage.cluster, 0));
  cluster_suspect_soon(stage.cluster);
  int64_t looks = calls_of_all(stage.cluster, "cluster|info"), maps[3], sum = 0;
  for (unsigned i = 1; i < 3; i++)
    maps[i] = server_calls(cluster_node(stage.cluster, i), "cluster|slots");
  int64_t began = clock_now();
  for (int i = 0; i < NAMES; i++)
    assert_error(begin_acquire(stage.all[i], LASTS_MS), 0);
  while (clock_since_ms(began) < LASTS_MS)
    bed_run_for(stage.bed, 100);
  int64_t took = clock_since_ms(began);
  looks = calls_of_all(stage.cluster, "cluster|info") - looks;
  for (unsigned i = 1; i < 3; i++) {
    maps[i] = server_calls(cluster_node(stage.cluster, i), "cluster|slots") - maps[i];
    assert_true(maps[i] > 0 || !blind);
    sum += maps[i];
  }
  print_message("# %d maps, %d looks in %d ms\n", (int)sum, (int)looks, (int)took);
  assert_between(sum, blind ? 2 : 0, took / 1000 + 2);
  assert_between(looks, blind ? 0 : sum + 2, took / 50 + 2);
  for (int i = 0; i < NAMES; i++)
    (void)outcome(stage.all[i]);
  stage_close(&stage);
}

TEST(a_dead_primary_does_not_make_a_storm) {
  let_a_primary_die(false);
}

TEST(nor_where_it_is_not_told_whether_anything_has_changed) {
  let_a_primary_die(true);
}
