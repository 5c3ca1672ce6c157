/* The keys of a cache, and the calls that have them. */
#ifndef BELAY_CACHE_KEY_H
#define BELAY_CACHE_KEY_H

#include "cache/state.h"

#define BELAY__CACHE_GENERATION "}::gen"
#define BELAY__CACHE_LEASE "}::lease"
#define BELAY__CACHE_TAG "}::tag"
#define BELAY__CACHE_DROPPED "}::dropped" /* the channel; its key is '' */
#define BELAY__CACHE_FILLED "::filled"    /* the channel of a key, behind its whole name */

/* A key of the cache's as it is on the server: bytes of belay__alloc(), *len of them; NULL if
 * memory is out. */
char *belay__cache_key(const belay_cache_t *cache, const char *key, size_t key_len,
                       const char *tail, size_t *len);

/* A call of n words; or a script, with its two keys, record and generation, added. NULL: memory
 * is out. */
belay__call_t *belay__cache_command(const belay_cache_t *cache, const char *name, size_t n);
belay__call_t *belay__cache_script(const belay_cache_t *cache, const belay__script_t *script,
                                   const char *key, size_t key_len, size_t args);

/* Its tags, as options.tags says; at most BELAY_CACHE_TAGS_MAX, too long ones cut. */
size_t belay__cache_tags(const belay_cache_t *cache, const char *key, size_t key_len,
                         belay_bytes_t tags[BELAY_CACHE_TAGS_MAX]);

/* The call that asks for a tag's generation, and makes it if there is none; for what is fresh
 * for ttl_ms, or BELAY_DEFAULT. Its generation is drawn here: it is not sent twice. */
belay__call_t *belay__cache_capture(const belay_cache_t *cache, const belay_bytes_t *tag,
                                    int64_t ttl_ms);

/* Reads the reply to that call. Returns 0, BELAY_EPROTO or BELAY_EMISMATCH (with a detail). */
int belay__cache_read_tag(const belay__call_t *call, const belay__reply_t *reply,
                          unsigned char out[BELAY__RECORD_ID]);

/* The call that begins a load or a put, if the record is the one that was seen; draws its
 * generation. NULL: memory is out, or there are no random bytes. It is not sent twice. */
belay__call_t *belay__cache_begin(const belay_cache_t *cache, const char *key, size_t key_len,
                                  const void *seen_id, size_t seen_id_len,
                                  unsigned char generation[BELAY__RECORD_ID]);

/* Sets when the record is stored and until when it is fresh: ttl_ms (BELAY_DEFAULT: of the
 * options, by its kind) less the jitter from now. Returns the ttl on the server in ms. */
int64_t belay__cache_date(belay_cache_t *cache, belay__record_t *record, int64_t ttl_ms);

/* Adds a generation, the record ('' if ttl_ms is 0: it is not kept) and its ttl to a call.
 * *written: bytes of the record. Returns 0 or BELAY_ENOMEM. */
int belay__cache_record_args(const belay_cache_t *cache, belay__call_t *call,
                             const unsigned char generation[BELAY__RECORD_ID],
                             const belay__record_t *record, int64_t ttl_ms, size_t *written);

#endif /* BELAY_CACHE_KEY_H */
