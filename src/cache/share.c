#include "cache/share.h"

#include <string.h>

_Static_assert((BELAY__CACHE_SHARED & (BELAY__CACHE_SHARED - 1)) == 0, "a mask");

/* Returns the sum of the two counters that share.h names. Both only grow, so an equal sum shows
 * that neither has changed. */
static uint64_t present_moment(const belay_cache_t *cache) {
  const belay_client_t *client = cache->handle.client;
  return client->stats.writes + client->cache_writes;
}

void belay__share_init(belay__sharing_t *sharing, belay__operation_t *operation,
                       belay_bytes_t key) {
  sharing->operation = operation;
  sharing->key = key;
  sharing->place =
      (uint32_t)(belay__local_hash(key.data, key.len, false) & (BELAY__CACHE_SHARED - 1));
  belay__list_init(&sharing->followers);
}

/* Returns the deadline of the leader's last follower, or of the leader if it has no follower. */
static uint64_t last_deadline(const belay__sharing_t *leader) {
  const belay__list_t *followers = &leader->followers;
  return belay__list_empty(followers)
             ? leader->operation->deadline
             : BELAY__CONTAINER(followers->prev, belay__operation_t, queued)->deadline;
}

bool belay__share_join(belay_cache_t *cache, belay__sharing_t *sharing) {
  belay__sharing_t *leader = cache->shared[sharing->place];
  if (leader == NULL || leader->moment != present_moment(cache) ||
      leader->key.len != sharing->key.len ||
      memcmp(leader->key.data, sharing->key.data, sharing->key.len) != 0 ||
      last_deadline(leader) > sharing->operation->deadline || leader->room == 0)
    return false;
  leader->room--;
  belay__list_push(&leader->followers, &sharing->operation->queued);
  return true;
}

void belay__share_lead(belay_cache_t *cache, belay__sharing_t *sharing) {
  sharing->moment = present_moment(cache);
  sharing->room = BELAY__SHARED_MAX;
  cache->shared[sharing->place] = sharing;
}

void belay__share_end(belay_cache_t *cache, const belay__sharing_t *sharing) {
  if (cache->shared[sharing->place] == sharing)
    cache->shared[sharing->place] = NULL;
}
