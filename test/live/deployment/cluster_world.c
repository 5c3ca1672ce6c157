/* The clusters that other tests stand on: they start, fail over, move slots and heal. */
#include <stdio.h>
#include <string.h>

#include "support/base/clock.h"
#include "support/deployments/cluster.h"
#include "support/deployments/replicas.h"
#include "support/base/test.h"

/* A slot of the first shard, with this key. */
static const char key[] = "{b}";

static void fail_over_and_heal(cluster_t *cluster, unsigned slot, cluster_way_t way) {
  int old = cluster_owner(cluster, slot);
  unsigned owner = cluster_fail_over(cluster, slot, way);
  assert_int_not_equal(owner, old);
  cluster_mend(cluster);
  cluster_wait(cluster);
  assert_int_equal(cluster_owner(cluster, slot), owner);
  assert_false(server_is_primary(cluster_node(cluster, (unsigned)old)));
  assert_int_equal(server_keys(cluster_node(cluster, (unsigned)old)), 1);
}

/* Each fault in a shard of its own, because a shard waits after an election. */
TEST_ON(fails_over_and_heals, cluster, cluster_start(NULL)) {
  char name[16];
  unsigned slot[3] = {CLUSTER_SLOTS, CLUSTER_SLOTS, CLUSTER_SLOTS};
  for (unsigned n = 0, found = 0; found < 3; n++) {
    snprintf(name, sizeof name, "%u", n);
    unsigned owner = (unsigned)cluster_owner(cluster, cluster_slot(cluster, name));
    if (slot[owner] < CLUSTER_SLOTS)
      continue;
    slot[owner] = cluster_slot(cluster, name);
    server_do(cluster_node(cluster, owner), "SET", name, "", NULL);
    found++;
  }
  cluster_wait(cluster);
  fail_over_and_heal(cluster, slot[0], CLUSTER_ASKED);
  fail_over_and_heal(cluster, slot[1], CLUSTER_FORCED);
  fail_over_and_heal(cluster, slot[2], CLUSTER_PAUSED);
  fail_over_and_heal(cluster, slot[0], CLUSTER_TAKEN);
  fail_over_and_heal(cluster, slot[1], CLUSTER_KILLED);
}

static void expect_refusal(server_t *server, const char *refusal) {
  const resp_t *reply = server_ask(server, "GET", key, NULL);
  assert_int_equal(reply->type, RESP_ERROR);
  assert_memory_equal(reply->str, refusal, strlen(refusal));
}

TEST(moves_slots) {
  const cluster_options_t options = {.without_replicas = true, .password = "secret"};
  cluster_t *cluster = cluster_start(&options);
  unsigned slot = cluster_slot(cluster, key), from = (unsigned)cluster_owner(cluster, slot),
           to = (from + 1) % 3;
  char name[16];
  for (unsigned n = 0; n < 50; n++) {
    snprintf(name, sizeof name, "%s%u", key, n);
    server_do(cluster_node(cluster, from), "SET", name, "", NULL);
  }
  cluster_move_begin(cluster, slot, to);
  assert_int_equal(cluster_move_keys(cluster, slot, to, 40), 40);
  expect_refusal(cluster_node(cluster, from), "ASK ");
  expect_refusal(cluster_node(cluster, to), "MOVED ");
  assert_int_equal(cluster_owner(cluster, slot), from);
  assert_int_equal(cluster_move_keys(cluster, slot, to, 40), 10);
  cluster_move_end(cluster, slot, to);
  cluster_wait(cluster);
  assert_int_equal(cluster_owner(cluster, slot), to);
  expect_refusal(cluster_node(cluster, from), "MOVED ");
  assert_int_equal(server_keys(cluster_node(cluster, from)), 0);
  assert_int_equal(server_keys(cluster_node(cluster, to)), 50);
  cluster_move(cluster, slot, from);
  cluster_wait(cluster);
  assert_int_equal(server_keys(cluster_node(cluster, from)), 50);
  cluster_stop(cluster);
}

TEST_ON(nodes_come_and_go, cluster, cluster_start(&(cluster_options_t){.without_replicas = true})) {
  unsigned added = cluster_add(cluster);
  assert_int_equal(added, 3);
  cluster_move(cluster, 0, added);
  assert_int_equal(cluster_owner(cluster, 0), added);
  cluster_move(cluster, 0, 0);
  cluster_replicate(cluster, added, 0);
  assert_int_equal(cluster_fail_over(cluster, 0, CLUSTER_ASKED), added);
  cluster_wait(cluster);
  cluster_forget(cluster, 0);
  assert_int_equal(cluster_owner(cluster, 0), added);
}

static const char *endpoint(cluster_t *cluster) {
  const resp_t *slots = server_ask(cluster_node(cluster, 0), "CLUSTER", "SLOTS", NULL);
  const resp_t *name = slots->items[1]->items[2]->items[0];
  return name->type == RESP_NIL ? NULL : name->str;
}

TEST(endpoints) {
  cluster_options_t options = {.without_replicas = true, .hostname = "localhost"};
  cluster_t *cluster = cluster_start(&options);
  assert_string_equal(endpoint(cluster), "127.0.0.1");
  cluster_stop(cluster);
  options.endpoints = "hostname";
  cluster = cluster_start(&options);
  assert_string_equal(endpoint(cluster), "localhost");
  cluster_stop(cluster);
  options.endpoints = "unknown-endpoint";
  cluster = cluster_start(&options);
  assert_null(endpoint(cluster));
  cluster_stop(cluster);
}
