/* The map of a cluster, as one of its nodes reports it. cluster_map.c has the diagram. */
#ifndef BELAY_REDIS_DEPLOYMENT_CLUSTER_MAP_H
#define BELAY_REDIS_DEPLOYMENT_CLUSTER_MAP_H

#include "redis/deployment/cluster_state.h"

void belay__cluster_map_init(belay__cluster_t *cluster);

/* check_map: asks soon whether the map has changed. map_changed: asks for a new map, because it
 * has. */
void belay__cluster_check_map(belay__cluster_t *cluster);
void belay__cluster_map_changed(belay__cluster_t *cluster);

#endif /* BELAY_REDIS_DEPLOYMENT_CLUSTER_MAP_H */
