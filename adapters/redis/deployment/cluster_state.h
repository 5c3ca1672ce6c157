/* The state of a client of a cluster: the servers, and the slots of each. */
#ifndef BELAY_REDIS_DEPLOYMENT_CLUSTER_STATE_H
#define BELAY_REDIS_DEPLOYMENT_CLUSTER_STATE_H

#include "core/key/slot.h"
#include "core/key/table.h"
#include "redis/conn/server.h"
#include "redis/deployment/node.h"
#include "redis/deployment/discovery.h"
#include "redis/deployment/slot_map.h"

#define BELAY__CLUSTER_INSTANCES 1024
#define BELAY__NO_INSTANCE UINT16_MAX

/* One server of the cluster. cluster_servers.c has the diagram. */
typedef struct belay__instance {
  belay__entry_t entry; /* in cluster->places, unless the server is retired */
  belay__server_t *server;
  uint16_t number;        /* index in cluster->instances */
  uint16_t primary;       /* of a replica for reads: its primary; else NO_INSTANCE */
  uint16_t replica, next; /* first replica; of a replica, the next one; NO_INSTANCE: none */
  bool known;             /* the last map names it */
  bool redirected;        /* only a redirection has named it */
  bool importing;         /* calls may be queued here for a slot that is being moved here */
  bool changed;           /* queued calls may belong elsewhere; or the server got slots */
} belay__instance_t;

typedef enum belay__map_state {
  BELAY__MAP_KEPT,   /* no query is planned */
  BELAY__MAP_DUE,    /* a query is planned for the time of the timer */
  BELAY__MAP_ASKED,  /* a query is in progress */
  BELAY__MAP_REFUSED /* there is no map, for a lasting reason: calls are refused */
} belay__map_state_t;

typedef struct belay__cluster belay__cluster_t;

struct belay__cluster {
  belay__node_t node; /* first */
  belay__discovery_t discovery;

  /* The servers (cluster_servers.c). */
  belay__instance_t *instances[BELAY__CLUSTER_INSTANCES]; /* NULL: unused */
  size_t instances_len;                                   /* highest used index + 1 */
  bool is_full;                      /* a server was left out for lack of room */
  uint16_t vacant;                   /* no lower index is unused */
  belay__table_t places;             /* the servers that are not retired, by address */
  uint16_t owner[BELAY__SLOTS];      /* NO_INSTANCE: no owner is known */
  uint64_t moved[BELAY__SLOTS / 64]; /* slots for which several servers got calls */
  uint32_t version;                  /* grows with each change of owner */

  /* The router (cluster.c). */
  belay__list_t waiting; /* calls whose slot has no known owner */
  size_t waiting_len;
  unsigned turn;       /* next server for reads */
  belay__timer_t tidy; /* time to process changes */
  uint32_t tidied;     /* the version whose changes were processed */

  /* The map (cluster_map.c). Called when a query ends; error: 0, or why there was no answer. */
  void (*map_over)(belay__cluster_t *cluster, int error);
  belay__map_state_t map;
  belay__timer_t due; /* time of the next query */
  uint64_t asked;     /* time of the last query for a map; 0: none */
  uint64_t answered;  /* time of the last answer; 0: none */
  size_t first;       /* the first server to ask, if it is well */
  bool has_map;
  bool wanted;       /* ASKED: the answer may be out of date already */
  bool map_changed;  /* the map is known to have changed */
  bool without_info; /* true if no server reports changes */
  bool asks_map;     /* ASKED: the query is for a map, not only for changes */
  bool info_read;    /* ASKED: the server has answered CLUSTER INFO */
  uint64_t epoch;    /* epoch of the cluster at the last query for a map */
  uint64_t failing;  /* number of slots that failed at the last query */
  int error;         /* why there is no map; 0: there is one, or no query has ended */
};

static inline belay__cluster_t *belay__cluster_of(const belay__settings_t *settings) {
  return BELAY__CONTAINER(settings, belay__cluster_t, node.settings);
}

static inline belay__cluster_t *belay__cluster_of_client(const belay_client_t *client) {
  return BELAY__CONTAINER(client, belay__cluster_t, node.base);
}

static inline belay_t *belay__cluster_host(const belay__cluster_t *cluster) {
  return cluster->node.base.belay;
}

#endif /* BELAY_REDIS_DEPLOYMENT_CLUSTER_STATE_H */
