#include "cache/lookup.h"

#include <string.h>

#include "cache/key.h"
#include "xxhash.h"

static void set_seen_id(belay__seen_id_t *seen_id, const char *bytes, size_t len) {
  size_t n = len > BELAY__RECORD_AT_ID ? len - BELAY__RECORD_AT_ID : 0;
  seen_id->len = (uint8_t)(n < BELAY__RECORD_ID ? n : BELAY__RECORD_ID);
  if (seen_id->len > 0)
    memcpy(seen_id->id, bytes + BELAY__RECORD_AT_ID, seen_id->len);
}

void belay__lookup_release(belay_cache_t *cache, belay__lookup_t *lookup) {
  belay__record_release(cache->handle.client->belay, lookup->record);
  lookup->record = NULL;
  lookup->freshness = BELAY__EXPIRED;
}

/* ---- calls ---- */

static belay__call_t *new_get(const belay_cache_t *cache, belay_bytes_t key, const char *tail) {
  belay__call_t *call = belay__cache_command(cache, "GET", 2);
  belay__handle_arg(&cache->handle, call, key.data, key.len, tail);
  return call;
}

size_t belay__lookup_calls(belay_cache_t *cache, belay__lookup_t *lookup, belay__lookup_at_t at,
                           uint64_t now, belay_bytes_t key, belay__call_t **calls) {
  belay_bytes_t tags[BELAY_CACHE_TAGS_MAX];
  size_t tags_len = belay__cache_tags(cache, key, tags), n = 1 + tags_len;
  *lookup = (belay__lookup_t){
      .asked_at = now, .tags_len = (uint8_t)tags_len, .freshness = BELAY__EXPIRED};
  belay__local_stamp(&cache->local, key.data, key.len, tags, tags_len, &lookup->stamp);
  calls[0] = new_get(cache, key, "}");
  for (size_t i = 0; i < tags_len; i++)
    calls[1 + i] = new_get(cache, tags[i], BELAY__CACHE_TAG);
  if (at == BELAY__LOOKUP_AT_ANY && cache->options.replicas)
    for (size_t i = 0; i < n; i++)
      lookup->from_replica = belay__call_stale(calls[i]) != NULL && calls[i]->stale;
  return n;
}

size_t belay__lookup_add_time(belay_cache_t *cache, uint64_t now, belay__call_t **calls, size_t n) {
  if (!belay__servertime_known(&cache->time, &cache->handle, now))
    calls[n++] = belay__servertime_call(&cache->time, &cache->handle);
  return n;
}

/* ---- replies ---- */

static int read_record(belay_cache_t *cache, belay__lookup_t *lookup, const char *bytes,
                       size_t len) {
  belay_t *belay = cache->handle.client->belay;
  belay__record_release(belay, lookup->record);
  lookup->record = NULL;
  set_seen_id(&lookup->seen_id, bytes, len);
  if (len == 0)
    return 0;
  cache->stats.bytes_in += len;
  int error =
      belay__record_read(belay, bytes, len, cache->options.max_value_bytes, &lookup->record);
  if (error == BELAY_EMISMATCH) {
    cache->stats.undecodable++;
    return 0;
  }
  return error;
}

uint64_t belay__lookup_fold(size_t i, const void *generation) {
  return XXH3_64bits_withSeed(generation, BELAY__RECORD_ID, i + 1);
}

/* Reads the reply to the GET of a key. An empty string is counted as undecodable. */
static int read_get(belay_cache_t *cache, belay__lookup_t *lookup, const belay__reply_t *reply) {
  if (reply->type == BELAY__REPLY_NIL)
    return read_record(cache, lookup, "", 0);
  if (reply->type != BELAY__REPLY_STRING)
    return BELAY_EPROTO;
  cache->stats.undecodable += reply->len == 0;
  return read_record(cache, lookup, reply->str, reply->len);
}

int belay__lookup_read(belay_cache_t *cache, belay__lookup_t *lookup, size_t i,
                       const belay__reply_t *reply) {
  if (i == 0)
    return read_get(cache, lookup, reply);
  if (reply->type != BELAY__REPLY_NIL && reply->type != BELAY__REPLY_STRING)
    return BELAY_EPROTO;
  if (reply->type == BELAY__REPLY_STRING && reply->len == BELAY__RECORD_ID)
    lookup->tags ^= belay__lookup_fold(i - 1, reply->str);
  else
    lookup->untagged = true;
  return 0;
}

int belay__lookup_replace(belay_cache_t *cache, belay__lookup_t *lookup, const char *bytes,
                          size_t len) {
  return read_record(cache, lookup, bytes, len);
}

/* true if the record was stored under the present generations of its tags. */
static bool is_tagged(const belay__lookup_t *lookup) {
  uint64_t tags = 0;
  if (lookup->untagged || lookup->record->tags_len != lookup->tags_len)
    return false;
  for (size_t i = 0; i < lookup->record->tags_len; i++)
    tags ^= belay__lookup_fold(i, belay__record_tag(lookup->record, i));
  return tags == lookup->tags;
}

void belay__lookup_judge(belay_cache_t *cache, belay__lookup_t *lookup) {
  lookup->freshness = BELAY__EXPIRED;
  if (lookup->record == NULL)
    return;
  if (is_tagged(lookup))
    lookup->freshness = belay__fresh_judge(
        lookup->record, &cache->options, belay__cache_now_ms(cache),
        cache->options.beta > 0 ? belay__fresh_random(cache->handle.client->belay) : 1.0);
  if (lookup->freshness == BELAY__KEPT && !belay__cache_loads(cache))
    /* without a loader no load can replace the record, so it is served */
    lookup->freshness = BELAY__STALE;
  if (lookup->freshness == BELAY__EXPIRED)
    belay__lookup_release(cache, lookup);
}

belay__served_t belay__lookup_serve(const belay__lookup_t *lookup) {
  bool stale = lookup->freshness != BELAY__FRESH && lookup->freshness != BELAY__EARLY;
  int reason = lookup->freshness == BELAY__STALE_BACKOFF ? BELAY_ELOAD : 0;
  return belay__cache_serve(lookup->record, BELAY_CACHE_FROM_SERVER, stale, reason, 0);
}
