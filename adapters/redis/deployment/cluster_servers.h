/* The servers of a cluster, and which of them has which slot. cluster_servers.c has the diagram. */
#ifndef BELAY_REDIS_DEPLOYMENT_CLUSTER_SERVERS_H
#define BELAY_REDIS_DEPLOYMENT_CLUSTER_SERVERS_H

#include "redis/deployment/cluster_state.h"

/* The server at that place, which may be new; BELAY__NO_INSTANCE if there is no memory or room for it. */
uint16_t belay__cluster_add_instance(belay__cluster_t *cluster, const belay__place_t *place);
/* The same of one that a redirection names: of those that no map has named there are few at a time. */
uint16_t belay__cluster_add_redirected(belay__cluster_t *cluster, const belay__place_t *place);

void belay__cluster_set_owner(belay__cluster_t *cluster, uint16_t slot, uint16_t number);

/* Several servers have been asked for the slot. */
void belay__cluster_mark_moved(belay__cluster_t *cluster, uint16_t slot);

/* Retires the servers that the last map does not name. */
void belay__cluster_retire_unknown(belay__cluster_t *cluster);
/* Closes retired servers that owe no reply. Returns true if none is left. Not while calls may be queued
 * there. */
bool belay__cluster_close_retired(belay__cluster_t *cluster);
void belay__cluster_free_instance(belay__cluster_t *cluster, belay__instance_t *instance);

/* Process changes from the loop: at once; or later, and sooner than usual if a server ends. */
void belay__cluster_tidy_soon(belay__cluster_t *cluster);
void belay__cluster_tidy_later(belay__cluster_t *cluster, bool ends);

/* core/port.h */
bool belay__cluster_place(const belay_client_t *client, size_t i, char out[BELAY__PLACE_MAX]);
bool belay__cluster_shard(const belay_client_t *client, size_t i, uint32_t *route,
                          uint32_t *version);

#endif /* BELAY_REDIS_DEPLOYMENT_CLUSTER_SERVERS_H */
