/* The settings of a client's connections (settings), and what its owner, a deployment, does for them.
 *
 *   client -- settings --+-- server (one server) --+-- connection (one connection that carries calls)
 *                     |                        +-- connection
 *                     +-- server                +-- subscriber (the connection that receives messages)
 */
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

/* What a server must be to be used; it is asked (ROLE) each time that it is connected to, and every few seconds. */
typedef enum belay__role {
  BELAY__ROLE_ANY, /* nobody asks */
  BELAY__ROLE_PRIMARY,
  BELAY__ROLE_REPLICA
} belay__role_t;

/* Each of them but quiet may be NULL. None is called inside a call into the server or the connection from its owner. */
typedef struct belay__deployment_ops {
  /* Find out where the server's server is now: put it into server->target, and tell belay__server_on_resolved(), from the loop,
   * in time or not. NULL: it is where it was. */
  void (*resolve)(belay__server_t *server);
  /* A connection is up; one was lost, or was not to be had. */
  void (*up)(belay__connection_t *connection);
  void (*lost)(belay__connection_t *connection, int error);
  /* Calls were refused because their key is elsewhere: takes them all, which belong together, to be queued there. Or the
   * same of a channel, and no calls. NULL: nobody can. */
  void (*redirect)(belay__connection_t *connection, const belay__redirect_t *to,
                   belay__list_t *calls);
  /* Who has what may not be as it was: the server is silent, or it says so, but not who. Not without redirect. */
  void (*suspect)(belay__connection_t *connection);
  /* A handle or a look-up is over, of this server; NULL: of a discovery. */
  void (*handle_closed)(belay__settings_t *settings, belay__server_t *server);
} belay__deployment_ops_t;

struct belay__settings {
  const belay__deployment_ops_t *ops;
  belay_client_t *client;
  belay__list_t servers; /* of all servers */
  belay__host_t *host;
  belay__login_t login;
  belay_tls_t *tls; /* NULL: none is spoken */
  const char *client_name;
  int db;
  int64_t connect_timeout_ms, stall_timeout_ms, idle_timeout_ms, reconnect_min_ms, reconnect_max_ms;
  int64_t keepalive_ms, tcp_user_timeout_ms;
  size_t max_pending, max_reply;
  belay_on_full_t on_full;
  uint32_t epochs;         /* connections that became usable so far; numbers them from 1 */
  uint64_t attempts;       /* attempts to connect so far; numbers them from 1 */
  bool cluster_warned;     /* that the servers are a cluster's, which nobody has said */
  bool capabilities_known; /* no connection has come or gone since `can` was put together: */
  unsigned capabilities; /* a bit for each belay__capability_t of all servers that are connected */
};

#endif /* BELAY_REDIS_CONN_SETTINGS_H */
