#include "cache/lookup.h"

#include <string.h>

#include "cache/key.h"
#include "cache/times.h"
#include "xxhash.h"

void belay__seen_set(belay__seen_t *seen, const char *bytes, size_t len) {
  size_t n = len > BELAY__RECORD_AT_ID ? len - BELAY__RECORD_AT_ID : 0;
  seen->len = (uint8_t)(n < BELAY__RECORD_ID ? n : BELAY__RECORD_ID);
  if (seen->len > 0)
    memcpy(seen->id, bytes + BELAY__RECORD_AT_ID, seen->len);
}

void belay__look_drop(belay_cache_t *cache, belay__look_t *look) {
  belay__record_drop(cache->handle.client->belay, look->record);
  look->record = NULL;
  look->freshness = BELAY__GONE;
}

/* ---- asking -------------------------------------------------------------------------------------------- */

static belay__call_t *new_get(const belay_cache_t *cache, const char *key, size_t key_len,
                              const char *tail) {
  belay__call_t *call = belay__cache_command(cache, "GET", 2);
  if (call != NULL)
    belay__handle_arg(&cache->handle, call, key, key_len, tail);
  return call;
}

size_t belay__look_calls(belay_cache_t *cache, belay__look_t *look, belay__look_at_t at,
                         uint64_t now, const char *key, size_t key_len, belay__call_t **calls) {
  belay_bytes_t tags[BELAY_CACHE_TAGS_MAX];
  size_t tags_len = belay__cache_tags(cache, key, key_len, tags), n = 0;
  *look = (belay__look_t){.asked = now, .tags_len = (uint8_t)tags_len, .freshness = BELAY__GONE};
  belay__local_stamp(&cache->local, key, key_len, tags, tags_len, &look->stamp);
  while (n < 1 + tags_len) {
    calls[n] = n == 0 ? new_get(cache, key, key_len, "}")
                      : new_get(cache, tags[n - 1].data, tags[n - 1].len, BELAY__CACHE_TAG);
    if (calls[n] == NULL) {
      belay__calls_discard(calls, n);
      return 0;
    }
    if (at == BELAY__LOOK_AT_ANY && cache->options.replicas)
      look->behind = belay__call_stale(calls[n])->stale;
    n++;
  }
  return n;
}

int belay__look_send(belay_cache_t *cache, belay__pending_t *pending, belay__look_t *look,
                     belay__look_at_t at, uint64_t now, const char *key, size_t key_len) {
  belay__call_t *calls[BELAY__LOOK_CALLS_MAX + 1];
  size_t n = belay__look_calls(cache, look, at, now, key, key_len, calls);
  if (n == 0)
    return BELAY_ENOMEM;
  if (!belay__servertime_known_at(&cache->time, &cache->handle, now)) {
    calls[n] = belay__servertime_call(&cache->time, &cache->handle);
    if (calls[n] == NULL) {
      belay__calls_discard(calls, n);
      return BELAY_ENOMEM;
    }
    n++;
  }
  pending->fail_fast = belay__cache_fails_fast(cache);
  return belay__request_send_all(pending, calls, n);
}

/* ---- what is there ------------------------------------------------------------------------------------- */

static int read_record(belay_cache_t *cache, belay__look_t *look, const char *bytes, size_t len) {
  belay_t *belay = cache->handle.client->belay;
  belay__record_drop(belay, look->record);
  look->record = NULL;
  belay__seen_set(&look->seen, bytes, len);
  if (len == 0)
    return 0;
  cache->stats.bytes_in += len;
  int error = belay__record_read(belay, bytes, len, cache->options.max_value_bytes, &look->record);
  if (error == BELAY_EMISMATCH) {
    cache->stats.undecodable++;
    return 0;
  }
  return error;
}

uint64_t belay__look_fold(size_t i, const void *generation) {
  return XXH3_64bits_withSeed(generation, BELAY__RECORD_ID, i + 1);
}

/* An empty string is no record either. */
static int read_get(belay_cache_t *cache, belay__look_t *look, const belay__reply_t *reply) {
  if (reply->type == BELAY__REPLY_NIL)
    return read_record(cache, look, "", 0);
  if (reply->type != BELAY__REPLY_STRING)
    return BELAY_EPROTO;
  cache->stats.undecodable += reply->len == 0;
  return read_record(cache, look, reply->str, reply->len);
}

int belay__look_read(belay_cache_t *cache, belay__look_t *look, size_t i,
                     const belay__reply_t *reply) {
  if (i == 0)
    return read_get(cache, look, reply);
  if (reply->type != BELAY__REPLY_NIL && reply->type != BELAY__REPLY_STRING)
    return BELAY_EPROTO;
  if (reply->type == BELAY__REPLY_STRING && reply->len == BELAY__RECORD_ID)
    look->tags ^= belay__look_fold(i - 1, reply->str);
  else
    look->untagged = true;
  return 0;
}

int belay__look_step_read(belay_cache_t *cache, belay__look_t *look,
                          const belay__pending_t *pending, const belay__call_t *call,
                          const belay__reply_t *reply) {
  if (pending->index <= look->tags_len)
    return belay__look_read(cache, look, pending->index, reply);
  return belay__servertime_read(&cache->time, call, reply);
}

int belay__look_again(belay_cache_t *cache, belay__look_t *look, const char *bytes, size_t len) {
  return read_record(cache, look, bytes, len);
}

/* Whether it was stored under the generations that its tags have now. */
static bool is_tagged(const belay__look_t *look) {
  uint64_t tags = 0;
  if (look->untagged || look->record->tags_len != look->tags_len)
    return false;
  for (size_t i = 0; i < look->record->tags_len; i++)
    tags ^= belay__look_fold(i, belay__record_tag(look->record, i));
  return tags == look->tags;
}

void belay__look_over(belay_cache_t *cache, belay__look_t *look) {
  look->freshness = BELAY__GONE;
  if (look->record == NULL)
    return;
  if (is_tagged(look))
    look->freshness = belay__fresh_judge(
        look->record, &cache->terms, belay__cache_now_ms(cache),
        cache->terms.beta > 0 ? belay__fresh_random(cache->handle.client->belay) : 1.0);
  if (look->freshness == BELAY__KEPT && !belay__cache_loads(cache))
    look->freshness = BELAY__STALE; /* there will be nothing better */
  if (look->freshness == BELAY__GONE)
    belay__look_drop(cache, look);
}

belay__served_t belay__look_serve(const belay__look_t *look) {
  bool stale = look->freshness != BELAY__FRESH && look->freshness != BELAY__EARLY;
  int reason = look->freshness == BELAY__RESTING ? BELAY_ELOAD : 0;
  return belay__cache_serve(look->record, BELAY_CACHE_FROM_SERVER, stale, reason, 0);
}
