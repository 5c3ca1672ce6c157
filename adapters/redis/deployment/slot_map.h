/* The slot map of a cluster in the reply to CLUSTER SLOTS. */
#ifndef BELAY_REDIS_DEPLOYMENT_SLOT_MAP_H
#define BELAY_REDIS_DEPLOYMENT_SLOT_MAP_H

#include "core/call/reply.h"
#include "redis/net/url.h"

#define BELAY__SHARD_REPLICAS 16 /* replicas of one primary; more are not used */

/* Slots from..to, 0 to 16383, and their servers. */
typedef struct belay__range {
  uint16_t from, to;
  belay__place_t primary;
  belay__place_t replicas[BELAY__SHARD_REPLICAS];
  size_t replica_count;
} belay__range_t;

typedef void (*belay__range_fn)(const belay__range_t *range, void *arg);

/* Calls visit for each range with a known primary address; the range is valid during the call.
 * here: the asked server; the reply leaves out a host that equals it. Malformed parts are
 * skipped. */
void belay__slot_map_read(const belay__reply_t *reply, const belay__place_t *here,
                          belay__range_fn visit, void *arg);

/* The number of slots in the map. 0 if a slot appears twice: no correct node does that, and such
 * a reply may be endless. */
size_t belay__slot_map_count(const belay__reply_t *reply, const belay__place_t *here);

#endif /* BELAY_REDIS_DEPLOYMENT_SLOT_MAP_H */
