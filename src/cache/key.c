/* Keys of the cache, and the calls that use them. */
#include "cache/key.h"

#include <string.h>

#include "core/key/key.h"
#include "scripts.gen.h"

/* lifetime of a registered generation beyond load_timeout_ms, in ms */
#define GENERATION_SLACK_MS 60000
#define KEEP_TAG_MS INT64_C(86400000)

char *belay__cache_key(const belay_cache_t *cache, belay_bytes_t key, const char *tail,
                       size_t *len) {
  const belay__handle_t *handle = &cache->handle;
  size_t key_room = belay__key_escape(NULL, key.data, key.len), tail_len = strlen(tail);
  char *out = belay__alloc(handle->client->belay, handle->prefix_len + key_room + tail_len);
  if (out == NULL)
    return NULL;
  memcpy(out, handle->prefix, handle->prefix_len);
  belay__key_escape(out + handle->prefix_len, key.data, key.len);
  memcpy(out + handle->prefix_len + key_room, tail, tail_len);
  *len = handle->prefix_len + key_room + tail_len;
  return out;
}

belay__call_t *belay__cache_command(const belay_cache_t *cache, const char *name, size_t n) {
  belay__call_t *call = belay__call_new(cache->handle.client, BELAY__CLASS_BULK);
  belay__call_command(call, name, n);
  return call;
}

void belay__cache_note_write(const belay_cache_t *cache) {
  cache->handle.client->cache_writes++;
}

belay__call_t *belay__cache_script(const belay_cache_t *cache, const belay__script_t *script,
                                   belay_bytes_t key, size_t args) {
  belay__cache_note_write(cache);
  belay__call_t *call = belay__call_new(cache->handle.client, BELAY__CLASS_BULK);
  belay__call_script(call, script, 2, args);
  belay__handle_arg(&cache->handle, call, key.data, key.len, "}");
  belay__handle_arg(&cache->handle, call, key.data, key.len, BELAY__CACHE_GENERATION);
  return call;
}

/* ---- tags ---- */

size_t belay__cache_tags(const belay_cache_t *cache, belay_bytes_t key,
                         belay_bytes_t tags[BELAY_CACHE_TAGS_MAX]) {
  const belay_cache_options_t *o = &cache->options;
  if (o->tags == NULL)
    return 0;
  size_t n = o->tags(key.data, key.len, tags, o->arg);
  if (n > BELAY_CACHE_TAGS_MAX)
    n = BELAY_CACHE_TAGS_MAX;
  for (size_t i = 0; i < n; i++)
    if (tags[i].len > BELAY_CACHE_TAG_MAX)
      tags[i].len = BELAY_CACHE_TAG_MAX;
  return n;
}

/* Draws a new generation. Returns 0 or BELAY_ESYSTEM. */
static int draw_generation(const belay_cache_t *cache, unsigned char out[BELAY__RECORD_ID]) {
  belay_t *belay = cache->handle.client->belay;
  return belay->host->random(belay, out, BELAY__RECORD_ID);
}

/* Returns the lifetime of a generation, in ms. */
static int64_t generation_ms(const belay_cache_t *cache) {
  return cache->options.load_timeout_ms + GENERATION_SLACK_MS;
}

/* Returns the lifetime of a tag's generation, in ms. The generation must outlive every record that
 * was stored under it. */
static int64_t tag_ms(const belay_cache_t *cache, int64_t ttl_ms) {
  const belay_cache_options_t *o = &cache->options;
  int64_t life = o->ttl_ms > ttl_ms ? o->ttl_ms : ttl_ms;
  if (life < o->absent_ms)
    life = o->absent_ms;
  if (life < o->error_ms)
    life = o->error_ms;
  return life + o->keep_ms + generation_ms(cache) + KEEP_TAG_MS;
}

belay__call_t *belay__cache_capture(const belay_cache_t *cache, belay_bytes_t tag, int64_t ttl_ms) {
  unsigned char fresh[BELAY__RECORD_ID];
  if (draw_generation(cache, fresh) != 0)
    return NULL;
  belay__cache_note_write(cache);
  belay__call_t *call = belay__call_new(cache->handle.client, BELAY__CLASS_BULK);
  belay__call_script(call, &belay__script_cache_tag, 1, 2);
  belay__handle_arg(&cache->handle, call, tag.data, tag.len, BELAY__CACHE_TAG);
  belay__call_arg(call, (const char *)fresh, sizeof fresh);
  belay__call_arg_int(call, tag_ms(cache, ttl_ms));
  return call;
}

int belay__cache_read_tag(const belay__call_t *call, const belay__reply_t *reply,
                          unsigned char out[BELAY__RECORD_ID]) {
  if (reply->type != BELAY__REPLY_STRING)
    return BELAY_EPROTO;
  if (reply->len != BELAY__RECORD_ID)
    return belay__handle_mismatch(call, "it holds no generation of a tag");
  memcpy(out, reply->str, BELAY__RECORD_ID);
  return 0;
}

/* ---- generations ---- */

belay__call_t *belay__cache_begin(const belay_cache_t *cache, belay_bytes_t key,
                                  const void *seen_id, size_t seen_id_len,
                                  unsigned char generation[BELAY__RECORD_ID]) {
  if (draw_generation(cache, generation) != 0)
    return NULL;
  belay__call_t *call = belay__cache_script(cache, &belay__script_cache_begin, key, 3);
  belay__call_arg(call, seen_id, seen_id_len);
  belay__call_arg(call, (const char *)generation, BELAY__RECORD_ID);
  belay__call_arg_int(call, generation_ms(cache));
  return call;
}

/* ---- records ---- */

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

int belay__cache_record_args(const belay_cache_t *cache, belay__call_t *call,
                             const unsigned char generation[BELAY__RECORD_ID],
                             const belay__record_t *record, int64_t ttl_ms, size_t *written) {
  belay_t *belay = cache->handle.client->belay;
  char *bytes = NULL;
  size_t size = 0;
  *written = 0;
  if (ttl_ms > 0 && belay__record_write(belay, record, cache->options.compress_bytes, &bytes,
                                        written, &size) != 0)
    return BELAY_ENOMEM;
  belay__call_arg(call, (const char *)generation, BELAY__RECORD_ID);
  belay__call_arg(call, bytes != NULL ? bytes : "", *written);
  belay__call_arg_int(call, ttl_ms > 0 ? ttl_ms : 1);
  belay__free(belay, bytes, size);
  return 0;
}
