/* Reads from replicas of a cluster: the chosen replicas, and replicas that cannot answer. Writes
 * always go to primaries. */
#include <stdio.h>

#include "core/key/slot.h"
#include "support/servers/acl.h"
#include "support/deployments/cluster.h"
#include "support/fixtures/data/counters.h"
#include "support/deployments/replicas.h"

#define KEYS 30
#define WAIT_MS 30000

/* Reads until that holds. */
#define until(condition)                                                                           \
  for (int64_t began_ = clock_now(); !(condition);)                                                \
    if (clock_since_ms(began_) > WAIT_MS * slow())                                                 \
  fail_msg("waited in vain for: %s", #condition)

typedef struct setup {
  cluster_t *cluster;
  env_t *env;
  counters_t counters;
  int64_t value[KEYS];
} setup_t;

static void name_key(char out[16], int i) {
  snprintf(out, 16, "key-%d", i);
}

static unsigned slot_of(int i) {
  char name[16];
  name_key(name, i);
  return belay__slot(name, strlen(name));
}

static void add_all(setup_t *setup) {
  char name[16];
  for (int i = 0; i < KEYS; i++) {
    name_key(name, i);
    setup->value[i]++;
    expect_added(&setup->counters, name, 1, setup->value[i]);
  }
}

static int64_t read_one(setup_t *setup, int i) {
  char name[16];
  count_t count = {0};
  name_key(name, i);
  assert_error(BEGIN(&setup->counters, &count, get, KEY(name), on_result), 0);
  assert_error(end_of_count(&count), 0);
  return count.result.value;
}

/* A read may be stale, but was true once. */
static void read_all(setup_t *setup) {
  for (int i = 0; i < KEYS; i++)
    assert_between(read_one(setup, i), 0, setup->value[i]);
}

static bool all_read_new(setup_t *setup) {
  for (int i = 0; i < KEYS; i++)
    if (read_one(setup, i) != setup->value[i])
      return false;
  return true;
}

static int64_t reads_of(cluster_t *cluster, bool primaries) {
  int64_t n = 0;
  for (unsigned i = 0; i < cluster_size(cluster); i++) {
    server_t *server = cluster_node(cluster, i);
    if (server_is_running(server) && !server_is_paused(server) &&
        server_is_primary(server) == primaries)
      n += server_calls(server, "get");
  }
  return n;
}

static void expect_reads(setup_t *setup, bool at_primaries, bool at_replicas) {
  int64_t primaries = reads_of(setup->cluster, true), replicas = reads_of(setup->cluster, false);
  for (int n = 0; n < 4; n++)
    read_all(setup);
  primaries = reads_of(setup->cluster, true) - primaries;
  replicas = reads_of(setup->cluster, false) - replicas;
  assert_int_equal(primaries > 0, at_primaries);
  assert_int_equal(replicas > 0, at_replicas);
  assert_int_equal(primaries + replicas, 4 * KEYS);
}

static bool reads_only_replicas(setup_t *setup) {
  int64_t primaries = reads_of(setup->cluster, true);
  read_all(setup);
  return reads_of(setup->cluster, true) == primaries;
}

/* True if the node lists a replica for each shard: a node lists only replicas that have data. */
static bool tells_replicas(server_t *server) {
  const resp_t *slots = server_ask(server, "CLUSTER", "SLOTS", NULL);
  for (size_t i = 0; i < slots->count; i++)
    if (slots->items[i]->count < 4)
      return false;
  return slots->count == 3;
}

static void give_something(cluster_t *cluster) {
  char name[16];
  for (int i = 0; i < KEYS; i++) {
    name_key(name, i);
    int owner = cluster_owner(cluster, slot_of(i));
    server_do(cluster_node(cluster, (unsigned)owner), "SET", name, "", NULL);
  }
  cluster_suspect_soon(
      cluster); /* nodes tell each other their offsets as often as they look for silence */
  for (unsigned i = 0; i < 6; i++)
    for (int64_t began = clock_now(); !tells_replicas(cluster_node(cluster, i)); stall_ms(2))
      assert_true(clock_since_ms(began) < WAIT_MS * slow());
}

static setup_t *setup_open(belay_read_from_t from, const char *password) {
  setup_t *setup = calloc(1, sizeof *setup);
  belay_client_options_t options = client_options();
  options.read_from = from;
  setup->cluster = cluster_start(&(cluster_options_t){.password = password});
  give_something(setup->cluster);
  setup->env = env_open_at(cluster_url(setup->cluster), &options);
  counters_new(&setup->counters, setup->env, NULL);
  add_all(setup);
  int64_t links = from == BELAY_READ_PRIMARY ? 3 : 6;
  env_until(setup->env, client_stats(setup->env).connections_up >= (size_t)links);
  cluster_wait(setup->cluster);
  return setup;
}

static void setup_close(setup_t *setup) {
  env_close(setup->env);
  cluster_stop(setup->cluster);
  free(setup);
}

TEST_IN(read_from_primaries, setup, setup_open(BELAY_READ_PRIMARY, NULL)) {
  expect_reads(setup, true, false);
  assert_true(all_read_new(setup));
}

TEST_IN(read_from_replicas, setup, setup_open(BELAY_READ_REPLICA, NULL)) {
  expect_reads(setup, false, true);
  add_all(setup);
  until(all_read_new(setup));
}

TEST_IN(read_from_any, setup, setup_open(BELAY_READ_ANY, NULL)) {
  expect_reads(setup, true, true);
}

/* No read fails or waits for the dead replica. */
TEST(replica_dies) {
  setup_t *setup = setup_open(BELAY_READ_REPLICA, NULL);
  char name[16];
  count_t count = {0};
  name_key(name, 0);
  unsigned owner = (unsigned)cluster_owner(setup->cluster, slot_of(0));
  assert_error(BEGIN(&setup->counters, &count, get, KEY(name), on_result), 0);
  server_kill(cluster_node(setup->cluster, owner + 3));
  assert_error(end_of_count(&count), 0);
  expect_reads(setup, true, true);
  add_all(setup);
  cluster_mend(setup->cluster);
  cluster_wait(setup->cluster);
  until(reads_only_replicas(setup));
  setup_close(setup);
}

TEST_IN(all_replicas_die, setup, setup_open(BELAY_READ_REPLICA, NULL)) {
  for (unsigned i = 3; i < 6; i++)
    server_kill(cluster_node(setup->cluster, i));
  env_run_for(setup->env, 50);
  expect_reads(setup, true, false);
  assert_true(all_read_new(setup));
}

/* It is not waited for once it is known that it owes an answer. */
TEST_IN(replica_stopped, setup, setup_open(BELAY_READ_REPLICA, NULL)) {
  static count_t count[2 * KEYS];
  char name[16];
  memset(count, 0, sizeof count);
  server_pause(cluster_node(setup->cluster, 3));
  for (int i = 0; i < 2 * KEYS; i++) {
    name_key(name, i % KEYS);
    assert_error(BEGIN(&setup->counters, &count[i], get, KEY(name), on_result), 0);
    if (i == KEYS - 1) /* then there is something to notice for the others */
      env_run_for(setup->env, 400);
  }
  env_run_for(setup->env, 20);
  int64_t began = clock_now();
  expect_reads(setup, true, true);
  assert_true(clock_since_ms(began) < 1500 * slow());
  server_resume(cluster_node(setup->cluster, 3));
  for (int i = 0; i < 2 * KEYS; i++)
    (void)end_of_count(&count[i]);
}

/* The replica still answers with data that grows old. Periodic checks detect it. */
TEST_IN(replica_cut_off, setup, setup_open(BELAY_READ_REPLICA, "secret")) {
  server_t *replica = cluster_node(setup->cluster, 3);
  bool others = acl_applies(&(server_options_t){.password = "secret"}); /* servers have a user */
  server_do(replica, "CONFIG", "SET", "masterauth", "wrong", NULL);
  server_do(cluster_node(setup->cluster, 0), "CLIENT", "KILL", "TYPE", "replica", NULL);
  add_all(setup);
  until(all_read_new(setup));
  int64_t reads = server_calls(replica, "get");
  read_all(setup);
  assert_int_equal(server_calls(replica, "get"), reads);
  server_do(replica, "CONFIG", "SET", "masterauth", others ? ACL_ADMIN_PASSWORD : "secret", NULL);
  until((read_all(setup), server_calls(replica, "get") > reads));
  until(all_read_new(setup));
}

/* The replica becomes a primary and gets writes; the former primary gets reads. */
TEST_IN(replica_promoted, setup, setup_open(BELAY_READ_REPLICA, NULL)) {
  static const cluster_way_t ways[] = {CLUSTER_ASKED, CLUSTER_TAKEN, CLUSTER_KILLED};
  for (unsigned shard = 0; shard < 3; shard++) {
    cluster_begin_fail_over(setup->cluster, shard * 5461, ways[shard]);
    while (!cluster_has_failed_over(setup->cluster))
      read_all(setup);
    cluster_mend(setup->cluster);
    while (!cluster_is_whole(setup->cluster))
      read_all(setup);
    add_all(setup);
    until(all_read_new(setup));
  }
  until(reads_only_replicas(setup));
}
