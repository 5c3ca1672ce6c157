/* How a get, a refresh or a pinned key joins or begins a load. */
#ifndef BELAY_CACHE_JOIN_H
#define BELAY_CACHE_JOIN_H

#include "cache/load_state.h"

/* Ends the lookup of a get. true: the record that it found serves the get (the lookup keeps the
 * reference), and a load in the background follows if one is due. */
bool belay__load_serve_lookup(belay_cache_t *cache, const char *key, size_t key_len,
                              belay__lookup_t *lookup, belay__served_t *served);

/* Waits for the value of the key after a lookup that found nothing fresh. Takes the record of
 * the lookup. batch: of the load, if one begins; or NULL. Returns 0, BELAY_ENOMEM, or
 * BELAY_EABSENT: there is no loader. */
int belay__load_join(belay_cache_t *cache, const char *key, size_t key_len, belay__lookup_t *lookup,
                     belay__load_group_t *group, belay__load_waiter_t *waiter);

/* The same after a lookup at the time asked that the server did not answer: a load that begins
 * is not stored. Returns 0, BELAY_ENOMEM, or BELAY_EBUSY: there is no loader, or max_away_loads
 * is reached. */
int belay__load_join_in_outage(belay_cache_t *cache, const char *key, size_t key_len,
                               uint64_t asked_at, belay__load_waiter_t *waiter);

/* Loads the key in the background if XFetch says so; record: from the table of this process. */
void belay__load_refresh_early(belay_cache_t *cache, const char *key, size_t key_len,
                               const belay__record_t *record);

/* Looks the key up, and loads it if at most lead_ms of it are left. Does nothing while a load of
 * the key is on. Returns 0 or BELAY_ENOMEM. */
int belay__load_check(belay_cache_t *cache, const char *key, size_t key_len, int64_t lead_ms);

#endif /* BELAY_CACHE_JOIN_H */
