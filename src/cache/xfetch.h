/* Freshness of a record. This file depends neither on keys nor on connections. */
#ifndef BELAY_CACHE_XFETCH_H
#define BELAY_CACHE_XFETCH_H

#include "cache/record.h"

/* From best to worst. */
typedef enum belay__freshness {
  BELAY__FRESH,         /* served */
  BELAY__EARLY,         /* served; a load starts because XFetch says so */
  BELAY__STALE,         /* served; a load starts */
  BELAY__STALE_BACKOFF, /* stale or kept; served, no load starts: the last load has failed */
  BELAY__KEPT,          /* served only if the load fails */
  BELAY__EXPIRED        /* not usable */
} belay__freshness_t;

/* Judges a record: stale from fresh_ms on, kept from fresh_ms + stale_ms on, expired from fresh_ms
 * + keep_ms on. random: in (0, 1], drawn once for each result; ignored if beta is 0. options:
 * resolved, so that keep_ms is at least stale_ms. A record that is not a VALUE is either fresh or
 * expired. No time may be negative. */
belay__freshness_t belay__fresh_judge(const belay__record_t *record,
                                      const belay_cache_options_t *options, int64_t now_ms,
                                      double random);

/* Draws a random number in (0, 1] of 53 bits. Returns 1 if there are no random bytes; with 1 no
 * record is early. */
double belay__fresh_random(belay_t *belay);

static inline bool belay__fresh_serves(belay__freshness_t freshness) {
  return freshness <= BELAY__STALE_BACKOFF;
}

#endif /* BELAY_CACHE_XFETCH_H */
