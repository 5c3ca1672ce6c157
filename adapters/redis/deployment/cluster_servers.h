/* The servers of a cluster, and the owners of slots. cluster_servers.c has the diagram. */
#ifndef BELAY_REDIS_DEPLOYMENT_CLUSTER_SERVERS_H
#define BELAY_REDIS_DEPLOYMENT_CLUSTER_SERVERS_H

#include "redis/deployment/cluster_state.h"

/* Returns the server at that address, which may be new. BELAY__NO_INSTANCE without memory or room.
 * add_redirected(): for a server that a redirection names. */
uint16_t belay__cluster_add_instance(belay__cluster_t *cluster, const belay__place_t *place);
uint16_t belay__cluster_add_redirected(belay__cluster_t *cluster, const belay__place_t *place);

void belay__cluster_set_owner(belay__cluster_t *cluster, uint16_t slot, uint16_t number);

/* Notes that several servers got calls of the slot. */
void belay__cluster_mark_moved(belay__cluster_t *cluster, uint16_t slot);

/* Retires the servers that the last map does not name. */
void belay__cluster_retire_unknown(belay__cluster_t *cluster);
/* Closes retired servers that owe no reply. Returns true if none is left. Calls that are queued
 * there must be taken away before. */
bool belay__cluster_close_retired(belay__cluster_t *cluster);
void belay__cluster_free_instance(belay__cluster_t *cluster, belay__instance_t *instance);

/* Plan to process changes: tidy_soon() in this turn of the loop, tidy_later() later, and sooner if
 * a server ends. */
void belay__cluster_tidy_soon(belay__cluster_t *cluster);
void belay__cluster_tidy_later(belay__cluster_t *cluster, bool ends);

/* core/port.h */
bool belay__cluster_place(const belay_client_t *client, size_t i, char out[BELAY__PLACE_MAX]);
bool belay__cluster_shard(const belay_client_t *client, size_t i, uint32_t *route,
                          uint32_t *version);

#endif /* BELAY_REDIS_DEPLOYMENT_CLUSTER_SERVERS_H */
