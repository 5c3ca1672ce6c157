/* A primary and two replicas, each a real server on a port of 127.0.0.1, without a Sentinel. */
#ifndef TEST_SUPPORT_DEPLOYMENTS_REPLICAS_H
#define TEST_SUPPORT_DEPLOYMENTS_REPLICAS_H

#include "support/servers/server.h"

enum { REPLICAS_NODES = 3 };

typedef struct replicas replicas_t;

/* Pointers must stay valid as long as the servers. */
typedef struct replicas_options {
  const char *password;         /* theirs, and among them; NULL: none */
  bool tls;                     /* on all ports; the certificates are up to the arguments */
  const char *const *arguments; /* more for each of them, up to a NULL; NULL: none */
} replicas_options_t;

/* Starts the servers. Returns when the replicas have the data of the primary, which is the first
 * one. options NULL: the defaults. Stopping NULL has no effect, here and elsewhere. */
replicas_t *replicas_start(const replicas_options_t *options);
void replicas_stop(replicas_t *replicas);

/* redis+replicas://[:password@]127.0.0.1:port,… or rediss+replicas://…, in the order of nodes. */
const char *replicas_url(const replicas_t *replicas);

server_t *replicas_node(const replicas_t *replicas, unsigned i);

/* Which one listens there; -1: none of them. */
int replicas_find(const replicas_t *replicas, int port);

/* Promotes a node. The others follow it: those that do not run now will do so after their start. */
void replicas_promote(replicas_t *replicas, unsigned i);

/* Starts one that was killed: it follows that primary from the beginning. Does not wait. */
void replicas_revive(replicas_t *replicas, unsigned i, unsigned primary);

/* True if all run, follow that primary and have its data. are_in_line() checks once, wait() waits
 * for it. */
bool replicas_are_in_line(replicas_t *replicas, unsigned primary);
void replicas_wait(replicas_t *replicas, unsigned primary);

/* server_is_primary() returns the server's own answer, false without a reply.
 * server_is_in_step() returns true if the replica has all data of the primary. */
bool server_is_primary(server_t *server);
bool server_is_in_step(server_t *replica, server_t *primary);

#endif /* TEST_SUPPORT_DEPLOYMENTS_REPLICAS_H */
