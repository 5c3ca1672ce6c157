/* The settings of a client's connections (trunk), and what its owner, a deployment, does for them.
 *
 *   client -- trunk --+-- cable (one server) --+-- link (one connection that carries calls)
 *                     |                        +-- link
 *                     +-- cable                +-- listener (the connection that receives messages)
 */
#ifndef BELAY_REDIS_CONN_SETTINGS_H
#define BELAY_REDIS_CONN_SETTINGS_H

#include "core/call/call.h"
#include "core/client/client.h"
#include "redis/conn/auth.h"
#include "redis/deployment/slot_map.h"

typedef struct belay__trunk belay__trunk_t;
typedef struct belay__cable belay__cable_t;
typedef struct belay__link belay__link_t;
typedef struct belay__listener belay__listener_t;

/* What a server must be to be used; it is asked (ROLE) each time that it is connected to, and every few seconds. */
typedef enum belay__role {
  BELAY__ROLE_ANY, /* nobody asks */
  BELAY__ROLE_PRIMARY,
  BELAY__ROLE_REPLICA
} belay__role_t;

/* Each of them but quiet may be NULL. None is called inside a call into the cable or the link from its owner. */
typedef struct belay__trunk_ops {
  /* Find out where the cable's server is now: put it into cable->target, and tell belay__cable_found(), from the loop,
   * in time or not. NULL: it is where it was. */
  void (*find)(belay__cable_t *cable);
  /* A connection is up; one was lost, or was not to be had. */
  void (*up)(belay__link_t *link);
  void (*lost)(belay__link_t *link, int error);
  /* Calls were refused because their key is elsewhere: takes them all, which belong together, to be queued there. Or the
   * same of a channel, and no calls. NULL: nobody can. */
  void (*redirect)(belay__link_t *link, const belay__redirect_t *to, belay__list_t *calls);
  /* Who has what may not be as it was: the server is silent, or it says so, but not who. Not without redirect. */
  void (*doubt)(belay__link_t *link);
  /* A handle or a look-up is over, of this server; NULL: of a discovery. */
  void (*quiet)(belay__trunk_t *trunk, belay__cable_t *cable);
} belay__trunk_ops_t;

struct belay__trunk {
  const belay__trunk_ops_t *ops;
  belay_client_t *client;
  belay__list_t cables; /* of all servers */
  belay__host_t *host;
  belay__identity_t identity;
  belay_tls_t *tls; /* NULL: none is spoken */
  const char *client_name;
  int db;
  int64_t connect_timeout_ms, stall_timeout_ms, idle_timeout_ms, reconnect_min_ms, reconnect_max_ms;
  int64_t keepalive_ms, tcp_user_timeout_ms;
  size_t max_pending, max_reply;
  belay_on_full_t on_full;
  uint32_t epochs; /* connections that became usable so far; numbers them from 1 */
  uint64_t dials;  /* attempts to connect so far; numbers them from 1 */
  bool warned;     /* that the servers are a cluster's, which nobody has said */
  bool can_known;  /* no connection has come or gone since `can` was put together: */
  unsigned can;    /* a bit for each belay__capability_t of all servers that are connected */
};

#endif /* BELAY_REDIS_CONN_SETTINGS_H */
