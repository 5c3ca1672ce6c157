/* What a cluster's node says of who has which slots: CLUSTER SLOTS, and CLUSTER SHARDS. */
#ifndef BELAY_REDIS_SLOTMAP_H
#define BELAY_REDIS_SLOTMAP_H

#include "core/reply.h"
#include "redis/url.h"

#define BELAY__SHARD_REPLICAS 16 /* more of one shard are not used */

/* Slots from..to, 0 to 16383, and who has them. */
typedef struct belay__range {
  uint16_t from, to;
  belay__place_t primary;
  belay__place_t replicas[BELAY__SHARD_REPLICAS];
  size_t replica_count;
} belay__range_t;

/* Calls visit for each range whose primary's address is told, valid until that returns. here: who was asked; the answer
 * leaves out a host that is the same. tls: of two ports the one for that. Returns how many slots were told, 0 too for
 * what is no such answer. */
size_t belay__slotmap_read(const belay__reply_t *reply, const belay__place_t *here, bool tls,
                           void (*visit)(const belay__range_t *range, void *arg), void *arg);

/* Reads "MOVED slot host:port", or the same with ASK: whether it is that, and tells where. */
bool belay__slotmap_redirect(const belay__reply_t *reply, const belay__place_t *here, bool *ask,
                             uint16_t *slot, belay__place_t *place);

#endif /* BELAY_REDIS_SLOTMAP_H */
