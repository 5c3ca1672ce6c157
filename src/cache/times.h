/* Times of a cache: the server's clock, until when a record is fresh, and when a get is over. */
#ifndef BELAY_CACHE_TIMES_H
#define BELAY_CACHE_TIMES_H

#include "cache/state.h"

#define BELAY__CACHE_LIFE_MAX_MS INT64_C(31536000000) /* a year */

/* The server's clock at a time of the host's; 0 if it is not known. And when the loop woke us, belay__turn(): when what is
 * judged now was here. */
int64_t belay__cache_ms_at(const belay_cache_t *cache, uint64_t now);
int64_t belay__cache_now_ms(const belay_cache_t *cache);

/* Sets when the record is stored and until when it is fresh, ttl_ms (BELAY_DEFAULT: the options', by its kind) less the
 * jitter from now. Returns for how long the server is to keep it. */
int64_t belay__cache_date(belay_cache_t *cache, belay__record_t *record, int64_t ttl_ms);

/* When a get that begins now is over; and when its calls are, which is earlier if there is time to do something else. */
void belay__cache_deadlines(const belay_cache_t *cache, belay__pending_t *pending, uint64_t now,
                            uint64_t *deadline);

#endif /* BELAY_CACHE_TIMES_H */
