/* The resolver that asks Sentinels. sentinel.c has the diagrams. */
#ifndef BELAY_REDIS_DEPLOYMENT_SENTINEL_H
#define BELAY_REDIS_DEPLOYMENT_SENTINEL_H

#include "redis/deployment/primary_resolver.h"

/* Initializes a resolver whose on_resolved, with_replicas and master are set. places: the
 * Sentinels; they must outlive the resolver. */
void belay__sentinel_init(belay__resolver_t *resolver, belay__settings_t *settings,
                          const char *username, const char *password, const belay__place_t *places,
                          size_t n);

#endif /* BELAY_REDIS_DEPLOYMENT_SENTINEL_H */
