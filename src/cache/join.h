/* Joining or beginning a load: for a get, a refresh or a fresh key. */
#ifndef BELAY_CACHE_JOIN_H
#define BELAY_CACHE_JOIN_H

#include "cache/load_state.h"

/* Judges the lookup of a get and updates the local table. Returns true if the record serves the
 * get: *served has the record, and the lookup keeps the reference. If that record is stale, or
 * early by XFetch, a load starts in the background. */
bool belay__load_serve_lookup(belay_cache_t *cache, belay_bytes_t key, belay__lookup_t *lookup,
                              belay__served_t *served);

/* Adds a waiter for the key after a lookup that cannot serve the get. begun_at: host time at which
 * the get began. Begins a load if none of the key is running. Takes the record of the lookup,
 * unless the load has the record of a later lookup. group: the group that a new load joins, or
 * NULL. Returns 0, BELAY_ENOMEM, or BELAY_EABSENT if there is no loader. */
int belay__load_join(belay_cache_t *cache, belay_bytes_t key, belay__lookup_t *lookup,
                     uint64_t begun_at, belay__load_group_t *group, belay__load_waiter_t *waiter);

/* Adds a waiter for the key after a lookup that failed in an outage. begun_at: as in
 * belay__load_join(). Begins a load if none of the key is running. The value of that load is not
 * stored. Returns 0, BELAY_ENOMEM, or BELAY_EBUSY if a new load is needed and there is no loader or
 * max_away_loads is reached. */
int belay__load_join_in_outage(belay_cache_t *cache, belay_bytes_t key, uint64_t begun_at,
                               belay__load_waiter_t *waiter);

/* Starts a load in the background if XFetch says so. record: a fresh record of the local table. */
void belay__load_refresh_early(belay_cache_t *cache, belay_bytes_t key,
                               const belay__record_t *record);

/* Begins a load in the background that looks the key up, and calls the loader only if the value
 * stays fresh for at most lead_ms. Does nothing while a load of the key is running. Returns 0 or
 * BELAY_ENOMEM. */
int belay__load_check(belay_cache_t *cache, belay_bytes_t key, int64_t lead_ms);

#endif /* BELAY_CACHE_JOIN_H */
