/* A cluster: three primaries with a replica each, or more, or none. Every node is a real process
 * with ports of its own on 127.0.0.1. The first nodes are the primaries, in the order of their
 * slots, then come their replicas.
 *
 * Functions that do not wait say so; they serve callers whose loop must keep running. */
#ifndef TEST_SUPPORT_DEPLOYMENTS_CLUSTER_H
#define TEST_SUPPORT_DEPLOYMENTS_CLUSTER_H

#include "support/servers/server.h"

enum { CLUSTER_NODES_MAX = 12, CLUSTER_SLOTS = 16384 };

typedef struct cluster cluster_t;

/* Pointers must stay valid as long as the cluster. */
typedef struct cluster_options {
  unsigned primaries;           /* 0: three */
  bool without_replicas;        /* each primary has one otherwise */
  const char *password;         /* NULL: none */
  bool tls;                     /* on all ports; the certificates are up to the arguments */
  const char *hostname;         /* that each node announces; NULL: none */
  const char *endpoints;        /* "hostname" or "unknown-endpoint"; NULL: addresses */
  const char *const *arguments; /* more for each node, up to a NULL; NULL: none */
  const char *lines;            /* and of its file; NULL: none */
} cluster_options_t;

/* How a shard's primary goes. */
typedef enum cluster_way {
  CLUSTER_ASKED,  /* the replica is asked for it, and the two agree on when */
  CLUSTER_FORCED, /* the others are asked, the primary is not */
  CLUSTER_TAKEN,  /* nobody is asked */
  CLUSTER_KILLED, /* the primary's process ends */
  CLUSTER_PAUSED  /* it stands still, and does not know what has happened when it goes on */
} cluster_way_t;

/* Starts a cluster. Returns when all nodes agree, accept commands, and have their primaries' data.
 * options NULL: the defaults. */
cluster_t *cluster_start(const cluster_options_t *options);
void cluster_stop(cluster_t *cluster);

/* Restarts all nodes of an unchanged cluster, without their data, unless it is in their files. */
void cluster_restart(cluster_t *cluster);

/* redis+cluster://[:password@]127.0.0.1:port,… or rediss+cluster://…: the first three nodes. */
const char *cluster_url(const cluster_t *cluster);

unsigned cluster_size(const cluster_t *cluster);
server_t *cluster_node(const cluster_t *cluster, unsigned i);

/* cluster_slot() returns the slot of a key. cluster_owner() returns the node that serves a slot
 * by its own newest view; -1: no running node. */
unsigned cluster_slot(cluster_t *cluster, const char *key);
int cluster_owner(cluster_t *cluster, unsigned slot);

/* ---- failing over ---- */

/* Until cluster_wait() a node counts as failed after one second of silence; otherwise after a
 * minute. */
void cluster_suspect_soon(cluster_t *cluster);

/* The slot's primary goes, and whether its replica serves the slot since. Do not wait. */
void cluster_begin_fail_over(cluster_t *cluster, unsigned slot, cluster_way_t way);
bool cluster_has_failed_over(cluster_t *cluster);

/* Lets everybody go on who was killed or paused. Does not wait. */
void cluster_mend(cluster_t *cluster);

/* True if all nodes run, agree, and replicas have their primaries' data. Only then may the next
 * failover or slot move begin: before, two nodes can each name the other as the owner. Does not
 * wait. */
bool cluster_is_whole(cluster_t *cluster);

/* The same, and waits for it. After a failover, returns the slot's new owner. */
unsigned cluster_fail_over(cluster_t *cluster, unsigned slot, cluster_way_t way);
void cluster_wait(cluster_t *cluster);

/* ---- moving slots ---- */

/* Move a slot to another primary, step by step: begin() notifies both nodes; keys() moves at
 * most `count` keys and returns their number; end() notifies all nodes. In between the owner
 * redirects calls for keys that it does not have (ASK). */
void cluster_move_begin(cluster_t *cluster, unsigned slot, unsigned to);
unsigned cluster_move_keys(cluster_t *cluster, unsigned slot, unsigned to, unsigned count);
void cluster_move_end(cluster_t *cluster, unsigned slot, unsigned to);

/* All of these, once the cluster is whole: waits for that. */
void cluster_move(cluster_t *cluster, unsigned slot, unsigned to);

/* ---- nodes that come and go ---- */

/* Starts one more, without slots, and makes it known to everybody; its number. */
unsigned cluster_add(cluster_t *cluster);

/* Makes it a replica of a primary. It must have no slots. */
void cluster_replicate(cluster_t *cluster, unsigned i, unsigned primary);

/* Everybody forgets it, and it ends; the others keep their numbers. It must have no slots. */
void cluster_forget(cluster_t *cluster, unsigned i);

#endif /* TEST_SUPPORT_DEPLOYMENTS_CLUSTER_H */
