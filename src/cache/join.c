#include "cache/join.h"

#include <string.h>

#include "cache/loader.h"
#include "cache/waiters.h"

static belay__load_t *find_load(belay_cache_t *cache, belay_bytes_t key, uint64_t *hash) {
  *hash = belay__table_hash(cache->handle.client->belay, &cache->loads, key.data, key.len);
  return belay__keyed_find(&cache->loads, *hash, key.data, key.len);
}

/* Creates a load without beginning it. */
static belay__load_t *new_load(belay_cache_t *cache, belay_bytes_t key, uint64_t hash) {
  belay__load_t *load = belay__keyed_new(cache->handle.client->belay, &cache->loads, hash,
                                         sizeof *load, key.data, key.len);
  if (load == NULL)
    return NULL;
  load->cache = cache;
  load->left_ms = -1;
  load->timer.fire = belay__load_on_timer;
  load->child.close = belay__load_on_close;
  belay__list_init(&load->waiters);
  belay__list_init(&load->ready);
  belay__handle_attach(&cache->handle, &load->child);
  return load;
}

int belay__load_join(belay_cache_t *cache, belay_bytes_t key, belay__lookup_t *lookup,
                     uint64_t begun_at, belay__load_group_t *group, belay__load_waiter_t *waiter) {
  uint64_t hash;
  if (!belay__cache_loads(cache))
    return BELAY_EABSENT;
  belay__load_t *load = find_load(cache, key, &hash);
  bool is_new = load == NULL;
  if (is_new)
    load = new_load(cache, key, hash);
  if (load == NULL)
    return BELAY_ENOMEM;
  belay__load_take_lookup(load, lookup);
  belay__load_add_waiter(load, waiter, begun_at);
  load->server_reached = true;
  cache->stats.joined += !is_new;
  if (is_new) {
    belay__loader_join(load, group);
    belay__load_begin(load);
  }
  return 0;
}

int belay__load_join_in_outage(belay_cache_t *cache, belay_bytes_t key, uint64_t begun_at,
                               belay__load_waiter_t *waiter) {
  uint64_t hash;
  belay__load_t *load = find_load(cache, key, &hash);
  bool is_new = load == NULL;
  if (is_new &&
      (!belay__cache_loads(cache) || cache->outage_loads >= cache->options.max_away_loads))
    return BELAY_EBUSY;
  if (is_new)
    load = new_load(cache, key, hash);
  if (load == NULL)
    return BELAY_ENOMEM;
  belay__load_add_waiter(load, waiter, begun_at);
  cache->stats.joined += !is_new;
  if (is_new)
    belay__load_begin_in_outage(load);
  return 0;
}

/* ---- background loads ---- */

/* Begins a load without a waiter. Does nothing if there is no loader, or while a load of the key is
 * running. The end of that load sets the timer of a fresh key again. Returns 0 or BELAY_ENOMEM. */
static int load_in_background(belay_cache_t *cache, belay_bytes_t key,
                              const belay__lookup_t *lookup, int64_t lead_ms) {
  uint64_t hash;
  if (!belay__cache_loads(cache) || find_load(cache, key, &hash) != NULL)
    return 0;
  belay__load_t *load = new_load(cache, key, hash);
  if (load == NULL)
    return BELAY_ENOMEM;
  load->early = lookup->freshness == BELAY__EARLY;
  load->seen_id = lookup->seen_id;
  load->lead_ms = lead_ms;
  load->refresh = true;
  belay__load_begin(load);
  return 0;
}

int belay__load_check(belay_cache_t *cache, belay_bytes_t key, int64_t lead_ms) {
  const belay__lookup_t none = {.freshness = BELAY__EXPIRED};
  return load_in_background(cache, key, &none, lead_ms);
}

bool belay__load_serve_lookup(belay_cache_t *cache, belay_bytes_t key, belay__lookup_t *lookup,
                              belay__served_t *served) {
  belay__lookup_judge(cache, lookup);
  /* a replica may lag: the local table must not keep its old value for local_ttl_ms more */
  if (!lookup->from_replica)
    belay__cache_store_local(cache, key, lookup->record, &lookup->stamp, lookup->asked_at);
  if (!belay__fresh_serves(lookup->freshness))
    return false;
  *served = belay__lookup_serve(lookup);
  belay__cache_count(cache, served, true);
  if (lookup->freshness == BELAY__EARLY || lookup->freshness == BELAY__STALE)
    (void)load_in_background(cache, key, lookup, 0);
  return true;
}

void belay__load_refresh_early(belay_cache_t *cache, belay_bytes_t key,
                               const belay__record_t *record) {
  belay__lookup_t lookup = {.seen_id.len = BELAY__RECORD_ID};
  if (cache->options.beta <= 0)
    return;
  lookup.freshness = belay__fresh_judge(record, &cache->options, belay__cache_now_ms(cache),
                                        belay__fresh_random(cache->handle.client->belay));
  if (lookup.freshness != BELAY__EARLY)
    return;
  memcpy(lookup.seen_id.id, record->id, BELAY__RECORD_ID);
  (void)load_in_background(cache, key, &lookup, 0);
}
