#include "cache/xfetch.h"

#include <math.h>

/* XFetch: a record is early if a random multiple of its load time is at least the time left.
 * (Vattani, Chierichetti, Lowenstein: Optimal Probabilistic Cache Stampede Prevention.) */
static bool is_early(const belay__record_t *record, double beta, int64_t left, double random) {
  double delta = (double)record->load_us / 1000;
  return beta > 0 && -beta * delta * log(random) >= (double)left;
}

belay__freshness_t belay__fresh_judge(const belay__record_t *record,
                                      const belay_cache_options_t *options, int64_t now_ms,
                                      double random) {
  int64_t left = record->fresh_ms - now_ms; /* both are at least 0, so this does not overflow */
  if (record->kind != BELAY__RECORD_VALUE)
    return left > 0 ? BELAY__FRESH : BELAY__EXPIRED;
  bool rests = record->retry_ms > now_ms;
  if (left > 0)
    return !rests && is_early(record, options->beta, left, random) ? BELAY__EARLY : BELAY__FRESH;
  if (-left >= options->keep_ms)
    return BELAY__EXPIRED;
  if (rests)
    return BELAY__STALE_BACKOFF;
  return -left < options->stale_ms ? BELAY__STALE : BELAY__KEPT;
}

double belay__fresh_random(belay_t *belay) {
  uint64_t bits;
  if (belay->host->random(belay, &bits, sizeof bits) != 0)
    return 1; /* 1 is never early */
  return (double)((bits >> 11) + 1) * 0x1p-53;
}
