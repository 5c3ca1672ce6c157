/* belay's memory for each lock: while an acquire is under way, and while the lock is held. The loop
 * does not run while the acquires start, so that the calls of all of them are pending at once. */
#include <stdio.h>

#include "lease/machine/client_leases.h"
#include "support/deployments/nodes.h"

/* Memory that is needed once, such as that of a connection, is a small part of so many locks. */
enum { LOCKS = 1000 };

/* Upper bounds in bytes for each lock, whose key has 24 bytes: on one node, and on five. A lock
 * under way has its handle, its active part, and a call for each node; a held lock has its handle
 * and its share of the client's table of queues. */
enum { UNDER_WAY_1 = 640, HELD_1 = 256, UNDER_WAY_5 = 1700, HELD_5 = 420 };

typedef struct crowd {
  nodes_t *nodes;
  size_t ended;
  belay_lock_t *locks[LOCKS];
} crowd_t;

/* Bytes in the pools of the clients, which serve all later operations. */
static size_t pooled(const crowd_t *crowd) {
  size_t bytes = 0;
  for (unsigned i = 0; i < crowd->nodes->n; i++) {
    const belay_client_t *client = crowd->nodes->client[i];
    const belay__client_leases_t *leases = belay__client_leases(client);
    bytes += client->pool_len * (sizeof(belay__call_t) + client->node_ops->call_room);
    for (size_t j = 0; j < BELAY__BUFFER_SIZES; j++)
      bytes += client->buffers[j].len * client->buffers[j].size;
    for (size_t j = 0; j < BELAY_NODES_MAX; j++)
      bytes += leases->active[j].len * leases->active[j].size;
  }
  return bytes;
}

static void on_ended(belay_lock_t *lock, int status) {
  crowd_t *crowd = belay_lock_data(lock);
  assert_error(status, 0);
  crowd->ended++;
}

static unsigned grants(const contender_t *c) {
  belay_lock_tally_t tally;
  belay_lock_tally(c->lock, &tally);
  return tally.votes[BELAY_VOTE_GRANTED];
}

/* Takes a first lock on all nodes. After it each client is connected, and has the memory that it
 * needs once. */
static void prepare(nodes_t *nodes) {
  belay_lock_options_t options = unhurried_options(600000);
  contender_t *c = nodes_contender(nodes, "first", &options);
  assert_error(try_lock(c), 0);
  env_until(nodes->env, grants(c) == nodes->n);
  assert_ok(release(c), close_lock(c));
  env_settle(nodes->env);
}

static void make_locks(crowd_t *crowd) {
  belay_lock_options_t options = unhurried_options(600000);
  options.data = crowd;
  for (size_t i = 0; i < LOCKS; i++) {
    char name[16];
    int len = snprintf(name, sizeof name, "lock-%04zu", i);
    assert_error(belay_redlock_new(crowd->nodes->client, crowd->nodes->n,
                                   belay_bytes(name, (size_t)len), &options, &crowd->locks[i]),
                 0);
  }
}

static uint64_t commands(const nodes_t *nodes) {
  uint64_t sum = 0;
  for (unsigned i = 0; i < nodes->n; i++) {
    belay_client_stats_t stats;
    belay_client_stats(nodes->client[i], &stats);
    sum += stats.commands;
  }
  return sum;
}

static void check_memory(unsigned n, size_t under_way_max, size_t held_max) {
  crowd_t crowd = {.nodes = nodes_open(n, NULL)};
  env_t *env = crowd.nodes->env;
  prepare(crowd.nodes);
  size_t empty = env->bytes;
  make_locks(&crowd);
  uint64_t before = commands(crowd.nodes);
  for (size_t i = 0; i < LOCKS; i++)
    assert_error(belay_lock_try(crowd.locks[i], on_ended), 0);
  assert_int_equal(commands(crowd.nodes), before + n * LOCKS);
  size_t under_way = (env->bytes - empty) / LOCKS;
  env_until(env, crowd.ended == LOCKS);
  env_settle(env);
  size_t held = (env->bytes - pooled(&crowd) - empty) / LOCKS;
  print_message("%u nodes: %zu bytes for each acquire under way, %zu for each held lock\n", n,
                under_way, held);
  assert_true(under_way <= under_way_max);
  assert_true(held <= held_max);
  nodes_close(crowd.nodes);
}

TEST(lock_on_one_node) {
  check_memory(1, UNDER_WAY_1, HELD_1);
}

TEST(lock_on_five_nodes) {
  check_memory(5, UNDER_WAY_5, HELD_5);
}
