/* How good what was found is. Nothing here knows of keys or connections. */
#ifndef BELAY_CACHE_XFETCH_H
#define BELAY_CACHE_XFETCH_H

#include "cache/record.h"

/* From the best to the worst. */
typedef enum belay__freshness {
  BELAY__FRESH,         /* served */
  BELAY__EARLY,         /* served, and loaded again: XFetch says so */
  BELAY__STALE,         /* served, and loaded again */
  BELAY__STALE_BACKOFF, /* stale or kept; served, and not loaded again: the last load has failed */
  BELAY__KEPT,          /* loaded, and served if that fails */
  BELAY__EXPIRED        /* of no use any more */
} belay__freshness_t;

typedef struct belay__fresh_terms {
  int64_t stale_ms, keep_ms; /* since it was fresh; keep_ms is at least stale_ms */
  double beta;
} belay__fresh_config_t;

/* Stale from fresh_ms on, kept from fresh_ms + stale_ms, gone from fresh_ms + keep_ms. random: in (0, 1]; drawn once for
 * each that is served; of no matter if beta is 0. What is no value is fresh or gone, and never early. No time is
 * negative. */
belay__freshness_t belay__fresh_judge(const belay__record_t *record,
                                      const belay__fresh_config_t *fresh_config, int64_t now_ms,
                                      double random);

/* A random number in (0, 1], of 53 bits; 1, with which nothing is early, if there are no random bytes. */
double belay__fresh_random(belay_t *belay);

static inline bool belay__fresh_serves(belay__freshness_t freshness) {
  return freshness <= BELAY__STALE_BACKOFF;
}

#endif /* BELAY_CACHE_XFETCH_H */
