/* Shared lookups. A get shares the lookup of an earlier get of its key, if no byte of that lookup
 * has left this process:
 *
 *    get --there is none to share--> leader: sends a lookup, which later gets may share
 *      |                               ^ |
 *      |  the leader was canceled, or  | +--the lookup ends--> the leader and its followers go on,
 *      |  its time is over             |                       each with its own result
 *      +--there is one--> follower ----+
 *
 * The server executes the lookup after each get that shares it has begun. So a shared lookup is as
 * good as the own lookup of a get, with two conditions:
 *
 *   - No byte of the client has left since the leader sent its lookup: client->stats.writes.
 *   - No cache of the client has begun to change anything on the server since then:
 *     client->cache_writes. Otherwise the own lookup of the get would follow that change on the
 *     connection.
 *
 * BELAY__SHARED_MAX bounds the followers, so that the server answers some of many gets while this
 * process begins the others. With 64 gets in flight, this bound makes the rate of gets a third
 * higher than one lookup for all of them would [m].
 *
 * A follower has no call and no timer. It has at least as much time as the get before it, so the
 * first of the followers takes the place of a leader whose time is over. */
#ifndef BELAY_CACHE_SHARE_H
#define BELAY_CACHE_SHARE_H

#include "cache/state.h"

#define BELAY__SHARED_MAX 31 /* gets that share the lookup of a leader */

struct belay__sharing {
  belay__operation_t *operation; /* the get */
  belay_bytes_t key;
  /* Leader: its followers, linked by operation->queued; their deadlines ascend. */
  belay__list_t followers;
  /* Leader: sum of the two counters when it sent its lookup. */
  uint64_t moment;
  uint32_t room;  /* Leader: number of further gets that may share its lookup. */
  uint32_t place; /* index in cache->shared, by the hash of the key */
};

/* Initializes `sharing` for a get of this key. operation->deadline must be set. */
void belay__share_init(belay__sharing_t *sharing, belay__operation_t *operation, belay_bytes_t key);

/* Makes the get a follower, if there is a lookup that it may share. Otherwise returns false. */
bool belay__share_join(belay_cache_t *cache, belay__sharing_t *sharing);

/* Makes the get a leader. Call it before the lookup is sent. */
void belay__share_lead(belay_cache_t *cache, belay__sharing_t *sharing);

/* Offers the lookup to no more gets: it has ended, or could not be sent. */
void belay__share_end(belay_cache_t *cache, const belay__sharing_t *sharing);

#endif /* BELAY_CACHE_SHARE_H */
