/* The servers of a test that names no deployment: BELAY_TEST_DEPLOYMENT in the environment
 * selects it. Such a test runs on any deployment: its server_t has a URL of the whole, and is
 * queried, paused, killed and restarted as one. */
#ifndef TEST_SUPPORT_DEPLOYMENTS_DEPLOYMENT_H
#define TEST_SUPPORT_DEPLOYMENTS_DEPLOYMENT_H

#include <stdbool.h>

typedef enum deployment {
  DEPLOYMENT_SINGLE, /* nothing: one server */
  /* "cluster": a cluster of one node, where keys of different slots do not share a command */
  DEPLOYMENT_CLUSTER,
  /* "cluster3": a cluster of three nodes with a third of the slots each */
  DEPLOYMENT_CLUSTER3,
  DEPLOYMENT_SENTINEL, /* "sentinel": one server, which is found by asking a Sentinel */
  DEPLOYMENT_REPLICAS  /* "replicas": a primary and a replica, distinguished by their ROLE */
} deployment_t;

/* Fails the test if it is none of these. */
deployment_t deployment(void);
bool deployment_is_cluster(void);

/* The connections by which a client asks who is where: to a node of a cluster, or to a Sentinel. */
unsigned deployment_scouts(void);

/* The commands that publish and subscribe there. In a cluster channels belong to slots. */
const char *deployment_publish(void);
const char *deployment_subscribe(void);

/* End the test as skipped, with that reason, unless there is one server; unless there is one
 * process; unless servers can be nodes of a quorum. */
void needs_one_server(const char *reason);
void needs_one_process(const char *reason);
void needs_quorum(void);

#endif /* TEST_SUPPORT_DEPLOYMENTS_DEPLOYMENT_H */
