/* The resolver that asks sentinels. sentinel.c has the diagrams. */
#ifndef BELAY_REDIS_DEPLOYMENT_SENTINEL_H
#define BELAY_REDIS_DEPLOYMENT_SENTINEL_H

#include "redis/deployment/primary_resolver.h"

/* Fills in a resolver that is zeros but for told, quiet, all and master. The sentinels' places must outlive it. */
void belay__sentinel_init(belay__resolver_t *resolver, belay__settings_t *settings,
                          const char *username, const char *password, const belay__place_t *places,
                          size_t n);

#endif /* BELAY_REDIS_DEPLOYMENT_SENTINEL_H */
