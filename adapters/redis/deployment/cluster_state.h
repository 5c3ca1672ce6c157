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

/* A server. It is made when a map or a redirection names it, retired by the first map that does not, and gone when its
 * last answer is in and its handles are closed. */
typedef struct belay__instance {
  belay__entry_t entry; /* by its place, unless it is retired */
  belay__server_t *server;
  uint16_t number;        /* among the servers */
  uint16_t primary;       /* of a replica for reads: its primary; else NO_INSTANCE */
  uint16_t replica, next; /* first replica; of a replica, the next; NO_INSTANCE: none */
  bool known;             /* the last map names it */
  bool hearsay;           /* only a redirection has named it */
  bool guests;            /* calls may be queued here whose slot is on its way here */
  bool changed;           /* queued calls may belong elsewhere; or the server got slots */
} belay__instance_t;

typedef enum belay__map_state {
  BELAY__MAP_KEPT,   /* present, or no refresh is wanted */
  BELAY__MAP_DUE,    /* it is wanted, and will be asked for when that may be */
  BELAY__MAP_ASKED,  /* the discovery asks */
  BELAY__MAP_REFUSED /* there is none, for a lasting reason: calls are refused */
} belay__map_state_t;

typedef struct belay__cluster belay__cluster_t;

struct belay__cluster {
  belay__node_t node; /* first */
  belay__discovery_t discovery;

  belay__instance_t *instances[BELAY__CLUSTER_INSTANCES]; /* NULL where there is none */
  size_t instances_len;                                   /* used so far */
  bool is_full;                      /* there were more than there is room for */
  uint16_t vacant;                   /* no number below this one is */
  belay__table_t places;             /* of those that are not retired */
  uint16_t owner[BELAY__SLOTS];      /* NO_INSTANCE: no owner is known */
  uint64_t moved[BELAY__SLOTS / 64]; /* slots for which several servers have been asked */
  uint32_t version;                  /* of owner */

  belay__list_t waiting; /* calls whose slot has no known owner */
  size_t waiting_len;
  unsigned turn;       /* the next server for reads */
  belay__timer_t tidy; /* processes changes */
  uint32_t tidied;     /* the version for which that was done */

  /* The question for the map is over: map and has_map say how. error: 0, or why there was no answer. */
  void (*map_over)(belay__cluster_t *cluster, int error);
  belay__map_state_t map;
  belay__timer_t due; /* of the map */
  uint64_t asked;     /* when it last was; 0: never */
  uint64_t answered;  /* when anything last was; 0: never */
  size_t first;       /* the first server to ask, if it is well */
  bool has_map;
  bool wanted;      /* ASKED: the answer may be too old already */
  bool news;        /* the map is known to be another one */
  bool blind;       /* true if no server reports changes */
  bool whole;       /* ASKED: the map is asked for, not only whether anything has changed */
  bool by_shards;   /* CLUSTER SHARDS is asked first, because it was answered last */
  unsigned answers; /* ASKED: so far, by the one that is asked now */
  uint64_t epoch;   /* the cluster's when the map was asked for, */
  uint64_t failing; /* and the slots that had failed when anything last was */
  int error;        /* why there is none */
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
