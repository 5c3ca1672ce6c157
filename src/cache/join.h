/* Joining or beginning a load: for a get, a refresh or a fresh key. */
#ifndef BELAY_CACHE_JOIN_H
#define BELAY_CACHE_JOIN_H

#include "cache/load_state.h"

/* Judges the lookup of a get. true if the record serves the get; the lookup keeps the reference.
 * Starts a load in the background if one is due. */
bool belay__load_serve_lookup(belay_cache_t *cache, belay_bytes_t key, belay__lookup_t *lookup,
                              belay__served_t *served);

/* Adds a waiter for the key after a lookup without a fresh record, and begins a load if there is
 * none. Takes the record of the lookup. group: group of a new load, or NULL. Returns 0,
 * BELAY_ENOMEM, or BELAY_EABSENT if there is no loader. */
int belay__load_join(belay_cache_t *cache, belay_bytes_t key, belay__lookup_t *lookup,
                     belay__load_group_t *group, belay__load_waiter_t *waiter);

/* The same after a lookup that the server did not answer. asked_at: time of the lookup. The value
 * of a new load is not stored. Returns 0, BELAY_ENOMEM, or BELAY_EBUSY if there is no loader or
 * max_away_loads is reached. */
int belay__load_join_in_outage(belay_cache_t *cache, belay_bytes_t key, uint64_t asked_at,
                               belay__load_waiter_t *waiter);

/* Starts a load in the background if XFetch says so. record: from the local table. */
void belay__load_refresh_early(belay_cache_t *cache, belay_bytes_t key,
                               const belay__record_t *record);

/* Looks the key up, and loads it if its value has at most lead_ms left. Does nothing while a load
 * of the key is running. Returns 0 or BELAY_ENOMEM. */
int belay__load_check(belay_cache_t *cache, belay_bytes_t key, int64_t lead_ms);

#endif /* BELAY_CACHE_JOIN_H */
