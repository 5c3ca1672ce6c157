/* Several independent servers, a client for each, and contenders for locks over all of them. */
#ifndef TEST_SUPPORT_DEPLOYMENTS_NODES_H
#define TEST_SUPPORT_DEPLOYMENTS_NODES_H

#include "support/fixtures/env.h"

typedef struct nodes {
  env_t *env; /* env->client and env->server are the first node's */
  unsigned n;
  server_t *server[BELAY_NODES_MAX];
  belay_client_t *client[BELAY_NODES_MAX];
} nodes_t;

/* Starts n servers, each on its own unix socket. options (may be NULL) are those of all clients. */
nodes_t *nodes_open(unsigned n, const belay_client_options_t *options);

/* Closes the env, whatever is held, and stops the servers, paused or not. */
void nodes_close(nodes_t *nodes);

/* Defines a test for each of these numbers of nodes: NODES_TEST(name, 3, 5) { ... } is name_3 and
 * name_5. The body has `nodes_t *nodes`. */
#define NODES_TEST(name, ...)                                                                      \
  static void over_##name(nodes_t *nodes);                                                         \
  static void run_##name(void **state) {                                                           \
    nodes_t *nodes = nodes_open(*(const unsigned *)*state, NULL);                                  \
    over_##name(nodes);                                                                            \
    nodes_close(nodes);                                                                            \
  }                                                                                                \
  TEST_ROWS(name) {                                                                                \
    static const unsigned counts[] = {__VA_ARGS__};                                                \
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)                                    \
      test_add(__LINE__, run_##name, &counts[i], "%s_%u", #name, counts[i]);                       \
  }                                                                                                \
  static void over_##name(nodes_t *nodes)

/* Options for a lock over them: that ttl, no watchdog, no quarantine, because new servers do not
 * vote yet. */
belay_lock_options_t redlock_options(int64_t ttl_ms);
/* And each node may take as long to answer as it is ever allowed to: a tenth of the ttl. */
belay_lock_options_t unhurried_options(int64_t ttl_ms);

/* A handle over all nodes, or over the given clients. options NULL: the defaults without
 * quarantine. */
contender_t *nodes_contender(nodes_t *nodes, const char *name, const belay_lock_options_t *options);
contender_t *contender_over(env_t *env, belay_client_t *const *clients, size_t n, const char *name,
                            const belay_lock_options_t *options);

/* The value of the contender's key on this node; NULL: none. Valid until the node's next query. */
const char *nodes_value(nodes_t *nodes, unsigned node, contender_t *contender);

/* How many of the nodes that answer have the contender's token under its key. */
unsigned nodes_holding(nodes_t *nodes, contender_t *contender);

/* Somebody else takes the key on that node, behind everybody's back. */
void nodes_occupy(nodes_t *nodes, unsigned node, contender_t *contender, int64_t ttl_ms);

/* Pauses or kills the first `count` nodes. */
void nodes_pause(nodes_t *nodes, unsigned count);
void nodes_kill(nodes_t *nodes, unsigned count);

/* Resumes all paused nodes, or restarts the first `count` without data. */
void nodes_resume(nodes_t *nodes);
void nodes_restart(nodes_t *nodes, unsigned count);

/* Until every node has answered a ping on the connection that locks use. */
void nodes_warm(nodes_t *nodes);

/* Until nothing is under way any more on any node's client, undos included. */
void nodes_settle(nodes_t *nodes);

/* The number of lock keys of any name on all nodes that reply: "*::lock::*", without fencing
 * counters. */
int64_t nodes_keys(nodes_t *nodes);

/* When nothing is under way any more, no node that answers has a lock's key left. */
void nodes_expect_no_key(nodes_t *nodes);

#endif /* TEST_SUPPORT_DEPLOYMENTS_NODES_H */
