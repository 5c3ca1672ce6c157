/* Results of gets, the use of the local table according to the options, and peeks. */
#ifndef BELAY_CACHE_SERVE_H
#define BELAY_CACHE_SERVE_H

#include "cache/state.h"

/* Puts the record of a reply into the local table, if there is a table and the record is usable.
 * stamp: taken at the host time asked_at, before the request to the server. record NULL: the server
 * has no usable record, and the record of the key leaves the local table. */
void belay__cache_store_local(belay_cache_t *cache, belay_bytes_t key, belay__record_t *record,
                              const belay__stamp_t *stamp, uint64_t asked_at);

/* Subscribes to invalidations of other processes, if there is a local table and no subscription
 * yet. */
void belay__cache_subscribe(belay_cache_t *cache);

/* Result of a get before it is copied for the caller. The other fields are as in
 * belay_cache_result_t. */
typedef struct belay__served {
  belay__record_t *record; /* NULL: none; each function states the owner of the reference */
  int32_t status;
  int32_t reason;
  int32_t load_error;
  uint8_t from; /* belay_cache_from_t */
  bool stale;
} belay__served_t;

/* Makes the result for a record. stale: used only for a VALUE. reason: error because of which a
 * stale record is served; or 0. */
belay__served_t belay__cache_serve(belay__record_t *record, belay_cache_from_t from, bool stale,
                                   int reason, int load_error);
/* Makes a result without a record. */
belay__served_t belay__cache_refuse(int status, int load_error);

/* true if options.away applies to this error: any error except a cancel, a lack of memory, and
 * those of one key (EWRONGTYPE, EMISMATCH). A refusal by the server, such as EPERM or EOOM, is an
 * outage too. */
bool belay__cache_is_outage(int status);
/* true if the calls of gets and loads fail at once while the server is away: with any options.away
 * except BELAY_CACHE_AWAY_FAIL. */
bool belay__cache_fails_fast(const belay_cache_t *cache);
/* Makes the result of a get during an outage: the record of the local table, if options.away allows
 * it and there is one; otherwise a result without a record and with this status. The local table
 * owns the reference to the record. */
belay__served_t belay__cache_serve_in_outage(belay_cache_t *cache, belay_bytes_t key, int status);

/* Serves the key from the local table. Returns true if the table has a fresh record: *served has
 * the record, and the hit is counted. The local table owns the reference. */
bool belay__cache_serve_local(belay_cache_t *cache, belay_bytes_t key, uint64_t now,
                              belay__served_t *served);

/* Counts a result with a record in the statistics. without_wait: the get did not wait for a
 * load. */
void belay__cache_count(belay_cache_t *cache, const belay__served_t *served, bool without_wait);

/* Fills in the result for the caller. */
void belay__cache_result(const belay_cache_t *cache, const belay__served_t *served, uint64_t now,
                         belay_cache_result_t *result);

#endif /* BELAY_CACHE_SERVE_H */
