/* The settings of a client's connections, and the interface to its deployment, which owns them.
 *
 *    client -- settings --+-- server --+-- connection (carries calls)
 *                         |            +-- connection
 *                         |            +-- subscriber (receives messages)
 *                         +-- server ... */
#ifndef BELAY_REDIS_CONN_SETTINGS_H
#define BELAY_REDIS_CONN_SETTINGS_H

#include "core/call/call.h"
#include "core/client/client.h"
#include "redis/conn/auth.h"
#include "redis/deployment/redirect.h"

typedef struct belay__settings belay__settings_t;
typedef struct belay__server belay__server_t;
typedef struct belay__connection belay__connection_t;
typedef struct belay__subscriber belay__subscriber_t;

/* The role that a server must have. ROLE is sent on each new connection and every few seconds. */
typedef enum belay__role {
  BELAY__ROLE_ANY, /* any role; ROLE is not sent */
  BELAY__ROLE_PRIMARY,
  BELAY__ROLE_REPLICA
} belay__role_t;

/* Functions of the deployment. All but handle_closed may be NULL. None is called inside a call
 * of the deployment into a server or a connection. */
typedef struct belay__deployment_ops {
  /* Finds the address of a server: sets server->target and then calls
   * belay__server_on_resolved(). May take any time, and may finish inside the call. NULL: the
   * address is fixed. */
  void (*resolve)(belay__server_t *server);
  /* up: a connection is usable. lost: a connection was lost, or an attempt failed. */
  void (*up)(belay__connection_t *connection);
  void (*lost)(belay__connection_t *connection);
  /* Queues calls elsewhere that the server redirected. The calls belong together, and the
   * function takes all of them. The list is empty for a redirected channel. NULL: the deployment
   * does not follow redirections. */
  void (*redirect)(belay__connection_t *connection, const belay__redirect_t *to,
                   belay__list_t *calls);
  /* The deployment may have changed: the server is silent, or says so without naming the new
   * server. Not NULL if redirect is set. */
  void (*suspect)(belay__connection_t *connection);
  /* A handle or a name lookup has ended: of this server, or of a discovery (NULL). */
  void (*handle_closed)(belay__settings_t *settings, belay__server_t *server);
} belay__deployment_ops_t;

struct belay__settings {
  const belay__deployment_ops_t *ops;
  belay_client_t *client;
  belay__list_t servers; /* all servers of the client */
  belay__host_t *host;
  belay__login_t login;
  belay_tls_t *tls; /* NULL: no TLS */
  /* The options of the client. Credentials are in `login`; `db` is that of the URL if the program
   * gave none. */
  belay_client_options_t options;
  uint32_t epochs;   /* Number of the newest usable connection; the first is 1. */
  uint64_t attempts; /* Number of the newest attempt to connect; the first is 1. */
  /* True after the warning that the server of a plain URL is a cluster node. */
  bool cluster_warned;
  /* True if `capabilities` is up to date: no connection was made or lost since it was computed. */
  bool capabilities_known;
  unsigned capabilities; /* One bit for each belay__capability_t that all connected servers have. */
};

#endif /* BELAY_REDIS_CONN_SETTINGS_H */
