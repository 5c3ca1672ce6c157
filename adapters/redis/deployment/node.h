/* A node: the common part of the clients of all deployments. */
#ifndef BELAY_REDIS_DEPLOYMENT_NODE_H
#define BELAY_REDIS_DEPLOYMENT_NODE_H

#include "redis/conn/settings.h"
#include "redis/deployment/discovery.h"
#include "redis/net/url.h"

#define BELAY__SECRET_MAX 512 /* bytes of a user's name or a password */

typedef struct belay__node belay__node_t;

/* A deployment of one kind: a node is its first member. */
typedef struct belay__deployment {
  size_t size;
  const belay__node_ops_t *ops;
  const belay__deployment_ops_t *deployment_ops;
  /* Initializes the rest of the node, which is zeros. Returns 0 or an error of belay_connect(). */
  int (*init)(belay__node_t *node);
} belay__deployment_t;

struct belay__node {
  belay_client_t base; /* first */
  belay__settings_t settings;
  const belay__deployment_t *deployment;
  const belay__deployment_t *single; /* a client of one server, which visit makes */
  belay__url_t url;                  /* memory of the strings in `settings` */
  char client_name[65];
  char sentinel_username[BELAY__SECRET_MAX + 1], sentinel_password[BELAY__SECRET_MAX + 1];
  size_t connections_per_class;
  belay__discovery_t
      *discovery; /* finds the servers; NULL: there is one server, in a fixed place */
  bool closing, gone;
};

/* Copies a text of the options; false if it does not fit, which the detail then says. A from of NULL leaves what is there. */
bool belay__node_take_text(belay_t *belay, const char *name, const char *from, char *to,
                           size_t size);

/* Makes a client of this deployment. Returns 0, BELAY_ENOMEM, BELAY_EINVAL or an error of the
 * deployment's init(). */
int belay__node_make(belay_t *belay, const belay__deployment_t *deployment,
                     const belay__deployment_t *single, const belay__url_t *url,
                     const belay_client_options_t *o, belay_client_t **out);

/* node_ops->overdue and node_ops->distrust. */
void belay__node_overdue(belay_client_t *client, belay__call_t *call);
void belay__node_distrust(belay_client_t *client, belay__call_t *call);

/* node_ops->connections_up and node_ops->can. */
size_t belay__node_links_up(const belay_client_t *client);
bool belay__node_can(belay_client_t *client, belay__capability_t what);

/* node_ops->visit (visit.c). */
int belay__node_visit(belay_client_t *client, const char *place, belay_client_t **out);

/* Closes all servers and the discovery. When these are over, the client is gone. */
void belay__node_close(belay__node_t *node);
/* A handle or a look-up is over: perhaps the last one that a closing client waits for. */
void belay__node_check_closed(belay__node_t *node);

/* Takes back the node with its servers; the last thing that node_ops->free does. */
void belay__node_free(belay__node_t *node);

#endif /* BELAY_REDIS_DEPLOYMENT_NODE_H */
