#include "cache/times.h"

int64_t belay__cache_ms_at(const belay_cache_t *cache, uint64_t now) {
  return cache->time.learnt == 0 ? 0 : belay__servertime_ms_at(&cache->time, now);
}

int64_t belay__cache_now_ms(const belay_cache_t *cache) {
  return belay__cache_ms_at(cache, belay__turn(cache->handle.client->belay));
}

int64_t belay__cache_date(belay_cache_t *cache, belay__record_t *record, int64_t ttl_ms) {
  const belay_cache_options_t *o = &cache->options;
  belay_t *belay = cache->handle.client->belay;
  int64_t keep = 0;
  switch ((belay__record_kind_t)record->kind) {
  case BELAY__RECORD_VALUE:
    ttl_ms = ttl_ms == BELAY_DEFAULT ? o->ttl_ms : ttl_ms;
    keep = o->keep_ms;
    break;
  case BELAY__RECORD_ABSENT:
    ttl_ms = o->absent_ms;
    break;
  case BELAY__RECORD_ERROR:
    ttl_ms = o->error_ms;
    break;
  }
  int64_t off = ttl_ms / 100 * o->jitter_percent + ttl_ms % 100 * o->jitter_percent / 100;
  ttl_ms -= (int64_t)belay__random_below(belay, (uint64_t)off + 1);
  record->created_ms = belay__cache_now_ms(cache);
  record->fresh_ms = record->created_ms + ttl_ms;
  return ttl_ms + keep;
}

void belay__cache_deadlines(const belay_cache_t *cache, belay__pending_t *pending, uint64_t now,
                            uint64_t *deadline) {
  const belay_client_t *client = cache->handle.client;
  const belay_request_t *request = belay__request_of(pending);
  int64_t ms = request->timeout_ms;
  if (ms == 0 || ms == BELAY_DEFAULT)
    ms = cache->options.timeout_ms;
  int64_t call_ms = cache->options.away == BELAY_CACHE_AWAY_LOAD ? (ms + 1) / 2 : ms;
  if (call_ms > client->timeout_ms)
    call_ms = client->timeout_ms;
  *deadline = now + (uint64_t)ms * BELAY__MS;
  pending->deadline = now + (uint64_t)call_ms * BELAY__MS;
}
