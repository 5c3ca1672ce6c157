/* A Sentinel group: a primary, two replicas and three Sentinels, each a real process on a port
 * of 127.0.0.1. The Sentinels poll often and decide fast: a failover takes well under a second,
 * and the next one may follow at once.
 *
 * Functions that do not wait say so; they serve callers whose loop must keep running. */
#ifndef TEST_SUPPORT_DEPLOYMENTS_GROUP_H
#define TEST_SUPPORT_DEPLOYMENTS_GROUP_H

#include "support/deployments/replicas.h"

enum { GROUP_SENTINELS = 3 };
#define GROUP_NAME "mymaster"

typedef struct group group_t;

/* Pointers must stay valid as long as the group. */
typedef struct group_options {
  replicas_options_t nodes;
  const char *sentinel_password;         /* NULL: none */
  const char *const *sentinel_arguments; /* more for each of them, up to a NULL; NULL: none */
} group_options_t;

/* How the primary goes. */
typedef enum group_way {
  GROUP_ASKED,  /* a Sentinel is asked for a failover; the primary becomes a replica */
  GROUP_KILLED, /* the process ends */
  GROUP_PAUSED  /* it stands still, and does not know what has happened when it goes on */
} group_way_t;

/* Starts it, and returns when all know of each other. The primary is the first node. */
group_t *group_start(const group_options_t *options);
void group_stop(group_t *group);

/* redis+sentinel://[:password@]127.0.0.1:port,…/mymaster or rediss+sentinel://…, with the
 * password of the servers and the ports of the Sentinels. */
const char *group_url(const group_t *group);

/* Any of its processes: to ask, kill, pause and resume. */
replicas_t *group_replicas(const group_t *group);
server_t *group_node(const group_t *group, unsigned i);
server_t *group_sentinel(const group_t *group, unsigned i);

/* Starts a Sentinel that was killed: it knows what it knew. */
void group_revive_sentinel(group_t *group, unsigned i);

/* The node that a Sentinel names and that agrees; -1: none, at this moment. */
int group_primary(group_t *group);

/* group_begin_fail_over() begins a failover. group_has_failed_over() returns true if a Sentinel
 * names another primary since. Neither waits. */
void group_begin_fail_over(group_t *group, group_way_t way);
bool group_has_failed_over(group_t *group);

/* Restarts or resumes all processes. Waits only for the start of a Sentinel. A node that was
 * killed returns as a replica; a node that was paused does not know yet that it is one. */
void group_mend(group_t *group);

/* True if all processes run, agree, and have the primary's data, so that the next failover may
 * begin. Does not wait. */
bool group_is_whole(group_t *group);

/* The same, and wait for it. A failover: which node is the primary then. */
unsigned group_fail_over(group_t *group, group_way_t way);
void group_wait(group_t *group);

#endif /* TEST_SUPPORT_DEPLOYMENTS_GROUP_H */
