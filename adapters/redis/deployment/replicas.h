/* The resolver that asks every server of a list of addresses for its role. */
#ifndef BELAY_REDIS_DEPLOYMENT_REPLICAS_H
#define BELAY_REDIS_DEPLOYMENT_REPLICAS_H

#include "redis/deployment/primary_resolver.h"

/* Initializes a resolver whose on_resolved and with_replicas are set. */
void belay__replicas_init(belay__resolver_t *resolver, belay__settings_t *settings,
                          const belay__place_t *places, size_t n);

#endif /* BELAY_REDIS_DEPLOYMENT_REPLICAS_H */
