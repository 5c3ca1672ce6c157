/* What a cluster's node says of who has which slots: CLUSTER SLOTS, CLUSTER SHARDS, MOVED and ASK. */
#ifndef BELAY_REDIS_DEPLOYMENT_SLOT_MAP_H
#define BELAY_REDIS_DEPLOYMENT_SLOT_MAP_H

#include "core/call/reply.h"
#include "redis/net/url.h"

#define BELAY__SHARD_REPLICAS 16 /* more of one shard are not used */

/* Slots from..to, 0 to 16383, and who has them. */
typedef struct belay__range {
  uint16_t from, to;
  belay__place_t primary;
  belay__place_t replicas[BELAY__SHARD_REPLICAS];
  size_t replica_count;
} belay__range_t;

typedef void (*belay__range_fn)(const belay__range_t *range, void *arg);

/* Calls visit for each range whose primary's address is told, valid until that returns. here: who was asked; the answer
 * leaves out a host that is the same. tls: of two ports the one for that. What of it is malformed is left out. */
void belay__slot_map_read(const belay__reply_t *reply, const belay__place_t *here, bool tls,
                          belay__range_fn visit, void *arg);

/* How many slots would be visited; 0 too if one would be twice: a node does not say that, and who does might go on for
 * ever. */
size_t belay__slot_map_count(const belay__reply_t *reply, const belay__place_t *here, bool tls);

#endif /* BELAY_REDIS_DEPLOYMENT_SLOT_MAP_H */
