/* The resolver that asks every server of a list of addresses for its role. */
#ifndef BELAY_REDIS_DEPLOYMENT_REPLICAS_H
#define BELAY_REDIS_DEPLOYMENT_REPLICAS_H

#include "redis/deployment/primary_resolver.h"

/* Fills in a resolver that is zeros but for told, quiet and all. */
void belay__replicas_init(belay__resolver_t *resolver, belay__settings_t *settings,
                          const belay__place_t *places, size_t n);

#endif /* BELAY_REDIS_DEPLOYMENT_REPLICAS_H */
