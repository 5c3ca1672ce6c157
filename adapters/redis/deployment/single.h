/* A deployment with one primary, and its replicas. single.c has the diagram. */
#ifndef BELAY_REDIS_DEPLOYMENT_SINGLE_H
#define BELAY_REDIS_DEPLOYMENT_SINGLE_H

#include "redis/deployment/node.h"

extern const belay__deployment_t belay__single;

#endif /* BELAY_REDIS_DEPLOYMENT_SINGLE_H */
