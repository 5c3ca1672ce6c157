/* A node: the common part of the clients of all deployments. */
#ifndef BELAY_REDIS_DEPLOYMENT_NODE_H
#define BELAY_REDIS_DEPLOYMENT_NODE_H

#include "redis/conn/settings.h"
#include "redis/deployment/discovery.h"
#include "redis/net/url.h"

#define BELAY__SECRET_MAX 512 /* bytes of a user's name or a password */

typedef struct belay__node belay__node_t;

/* A kind of deployment. A node is the first member of its client. */
typedef struct belay__deployment {
  size_t size; /* bytes of the client */
  const belay__node_ops_t *ops;
  const belay__deployment_ops_t *deployment_ops;
  /* Initializes the rest of the client, which is zeros. Returns 0 or an error of
   * belay_connect(). */
  int (*init)(belay__node_t *node);
} belay__deployment_t;

extern const belay__deployment_t belay__single;  /* one primary, with replicas (single.c) */
extern const belay__deployment_t belay__cluster; /* slots on several servers (cluster.c) */

struct belay__node {
  belay_client_t base; /* first */
  belay__settings_t settings;
  const belay__deployment_t *deployment;
  belay__url_t url; /* memory of the strings in `settings` */
  char client_name[65];
  char sentinel_username[BELAY__SECRET_MAX + 1], sentinel_password[BELAY__SECRET_MAX + 1];
  /* Finds the servers. NULL: there is one server, at a fixed address. */
  belay__discovery_t *discovery;
  bool closing, gone;
};

/* Copies a string of the options. False, with a detail, if it does not fit. from NULL: leaves out
 * unchanged. */
bool belay__node_copy_text(belay_t *belay, const char *name, const char *from, char *out,
                           size_t size);

/* Makes a client of this deployment. Returns 0, BELAY_ENOMEM, BELAY_EINVAL or an error of the
 * deployment's init(). */
int belay__node_make(belay_t *belay, const belay__deployment_t *deployment, const belay__url_t *url,
                     const belay_client_options_t *o, belay_client_t **out);

/* The functions of belay__node_ops_t (core/port.h) that are the same in all deployments. */
void belay__node_overdue(belay_client_t *client, belay__call_t *call);
void belay__node_distrust(belay_client_t *client, belay__call_t *call);
size_t belay__node_connections_up(const belay_client_t *client);
bool belay__node_can(belay_client_t *client, belay__capability_t what);
int belay__node_visit(belay_client_t *client, const char *place, belay_client_t **out);

#define BELAY__NODE_OPS                                                                            \
  .call_room = sizeof(belay__dispatch_t), .overdue = belay__node_overdue,                          \
  .distrust = belay__node_distrust, .connections_up = belay__node_connections_up,                  \
  .can = belay__node_can

/* Closes all servers and the discovery. The client is gone when these have ended. */
void belay__node_close(belay__node_t *node);
/* Called when a handle or a name lookup ends: a closing client may wait for it. */
void belay__node_check_closed(belay__node_t *node);

/* Frees the client and its servers. The last call of node_ops->free. */
void belay__node_free(belay__node_t *node);

#endif /* BELAY_REDIS_DEPLOYMENT_NODE_H */
