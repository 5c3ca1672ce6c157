/* A deployment that is a cluster. cluster.c has the diagram. */
#ifndef BELAY_REDIS_DEPLOYMENT_CLUSTER_H
#define BELAY_REDIS_DEPLOYMENT_CLUSTER_H

#include "redis/deployment/node.h"

extern const belay__deployment_t belay__cluster;

#endif /* BELAY_REDIS_DEPLOYMENT_CLUSTER_H */
