#include "cache/serve.h"

#include "cache/key.h"
#include "core/key/bytes.h"

/* ---- the local table ---- */

void belay__cache_store_local(belay_cache_t *cache, belay_bytes_t key, belay__record_t *record,
                              const belay__stamp_t *stamp, uint64_t asked_at) {
  const belay_cache_options_t *o = &cache->options;
  if (o->local_bytes == 0)
    return;
  if (record == NULL) {
    belay__local_remove(&cache->local, key.data, key.len);
    return;
  }
  uint64_t now = belay__entry_time(cache->handle.client->belay);
  uint64_t until = asked_at + (uint64_t)o->local_ttl_ms * BELAY__MS, keep_until = now;
  int64_t left = record->fresh_ms - belay__cache_ms_at(cache, now);
  if (left > BELAY__CACHE_LIFE_MAX_MS)
    left = BELAY__CACHE_LIFE_MAX_MS; /* the checksum does not cover this time */
  uint64_t fresh_until = left > 0 ? now + (uint64_t)left * BELAY__MS : now;
  if (until > fresh_until)
    until = fresh_until;
  if (record->kind == BELAY__RECORD_VALUE && o->away != BELAY_CACHE_AWAY_FAIL &&
      left + o->keep_ms > 0)
    keep_until = now + (uint64_t)(left + o->keep_ms) * BELAY__MS;
  if (until > now || keep_until > now)
    belay__local_put(&cache->local, key.data, key.len, record, stamp, until, keep_until);
  else
    /* the new record is not usable, and the older one is out of date */
    belay__local_remove(&cache->local, key.data, key.len);
}

/* ---- invalidations of other processes ---- */

static void on_message(belay__subscription_t *subscription, belay__channel_event_t what,
                       const char *data, size_t len, int status) {
  belay_cache_t *cache = BELAY__CONTAINER(subscription, belay_cache_t, subscription);
  (void)status;
  if (what != BELAY__CHANNEL_MESSAGE) {
    belay__local_note_gap(&cache->local);
    return;
  }
  if (len == 8)
    belay__local_invalidate(&cache->local, belay__get_le(data, 8));
}

/* If the subscription cannot be started, the next get calls this function again. Until then the
 * table can serve an invalidated record for at most local_ttl_ms. */
void belay__cache_subscribe(belay_cache_t *cache) {
  size_t len;
  if (cache->options.local_bytes == 0 || cache->subscription.channel != NULL)
    return;
  char *name = belay__cache_key(cache, belay_bytes("", 0), BELAY__CACHE_DROPPED, &len);
  if (name == NULL)
    return;
  cache->subscription.on_event = on_message;
  (void)belay__listen(cache->handle.client, name, len, &cache->subscription);
  belay__free(cache->handle.client->belay, name, len);
}

/* ---- results ---- */

belay__served_t belay__cache_serve(belay__record_t *record, belay_cache_from_t from, bool stale,
                                   int reason, int load_error) {
  belay__served_t served = {
      .record = record, .from = (uint8_t)from, .reason = reason, .load_error = load_error};
  switch ((belay__record_kind_t)record->kind) {
  case BELAY__RECORD_VALUE:
    served.stale = stale;
    break;
  case BELAY__RECORD_ABSENT:
    served.status = BELAY_EABSENT;
    break;
  case BELAY__RECORD_ERROR:
    served.status = BELAY_ELOAD;
    served.load_error = record->error;
    break;
  }
  return served;
}

belay__served_t belay__cache_refuse(int status, int load_error) {
  return (belay__served_t){.status = status, .load_error = load_error};
}

bool belay__cache_is_outage(int status) {
  return status != BELAY_ECANCELED && status != BELAY_EWRONGTYPE && status != BELAY_EMISMATCH &&
         status != BELAY_ENOMEM;
}

bool belay__cache_fails_fast(const belay_cache_t *cache) {
  return cache->options.away != BELAY_CACHE_AWAY_FAIL;
}

belay__served_t belay__cache_serve_in_outage(belay_cache_t *cache, belay_bytes_t key, int status) {
  if (cache->options.away == BELAY_CACHE_AWAY_FAIL || cache->options.local_bytes == 0)
    return belay__cache_refuse(status, 0);
  belay__local_hit_t hit =
      belay__local_find(&cache->local, key.data, key.len, belay__now(cache->handle.client->belay));
  if (hit.record == NULL)
    return belay__cache_refuse(status, 0);
  return belay__cache_serve(hit.record, BELAY_CACHE_FROM_LOCAL, !hit.fresh, hit.fresh ? 0 : status,
                            0);
}

void belay__cache_count(belay_cache_t *cache, const belay__served_t *served, bool without_wait) {
  belay_cache_stats_t *stats = &cache->stats;
  if (served->record == NULL)
    return;
  stats->absent_served += served->status == BELAY_EABSENT;
  stats->stale_served += served->stale;
  if (!served->stale && without_wait)
    *(served->from == BELAY_CACHE_FROM_LOCAL ? &stats->local_hits : &stats->hits) += 1;
}

bool belay__cache_serve_local(belay_cache_t *cache, belay_bytes_t key, uint64_t now,
                              belay__served_t *served) {
  if (cache->options.local_bytes == 0)
    return false;
  belay__local_hit_t hit = belay__local_find(&cache->local, key.data, key.len, now);
  if (hit.record == NULL || !hit.fresh)
    return false;
  *served = belay__cache_serve(hit.record, BELAY_CACHE_FROM_LOCAL, false, 0, 0);
  belay__cache_count(cache, served, true);
  return true;
}

void belay__cache_result(const belay_cache_t *cache, const belay__served_t *served, uint64_t now,
                         belay_cache_result_t *result) {
  const belay__record_t *record = served->record;
  *result = (belay_cache_result_t){.status = served->status,
                                   .data = "",
                                   .from = (belay_cache_from_t)served->from,
                                   .stale = served->stale,
                                   .reason = served->reason,
                                   .load_error = served->load_error};
  if (record == NULL)
    return;
  int64_t now_ms = belay__cache_ms_at(cache, now);
  if (now_ms > record->created_ms)
    result->age_ms = now_ms - record->created_ms;
  if (record->fresh_ms > now_ms)
    result->remaining_ms = record->fresh_ms - now_ms;
  if (record->kind != BELAY__RECORD_VALUE)
    return;
  result->data = record->bytes;
  result->len = record->len;
}

int belay_cache_peek(belay_cache_t *cache, belay_bytes_t key, belay_cache_result_t *result) {
  int error = belay__handle_check((const belay__handle_t *)cache);
  if (error != 0)
    return error;
  belay_t *belay = cache->handle.client->belay;
  if (key.data == NULL || key.len < 1 || key.len > BELAY_CACHE_KEY_MAX || result == NULL)
    return belay__invalid(belay, "key: not 1 to %zu bytes, or no result", BELAY_CACHE_KEY_MAX);
  belay__served_t served;
  uint64_t now = belay__now(belay);
  if (!belay__cache_serve_local(cache, key, now, &served))
    return BELAY_EAGAIN;
  cache->stats.gets++;
  belay__cache_result(cache, &served, now, result);
  return served.status;
}
