/* The keys of a cache, and the calls that have them. */
#ifndef BELAY_CACHE_KEY_H
#define BELAY_CACHE_KEY_H

#include "cache/state.h"

#define BELAY__CACHE_GENERATION "}::gen"
#define BELAY__CACHE_LEASE "}::lease"
#define BELAY__CACHE_TAG "}::tag"
#define BELAY__CACHE_DROPPED "}::dropped" /* the channel; its key is '' */
#define BELAY__CACHE_FILLED "::filled"    /* the channel of a key, behind its whole name */

/* A key of the cache's as it is on the server: bytes of belay__alloc(), *len of them; NULL if memory is out. */
char *belay__cache_key(const belay_cache_t *cache, const char *key, size_t key_len,
                       const char *tail, size_t *len);

/* A call of n words; or a script, with its two keys, record and generation, added. NULL: memory is out. */
belay__call_t *belay__cache_command(const belay_cache_t *cache, const char *name, size_t n);
belay__call_t *belay__cache_script(const belay_cache_t *cache, const belay__script_t *script,
                                   const char *key, size_t key_len, size_t args);

/* Its tags, as options.tags says; at most BELAY_CACHE_TAGS_MAX, too long ones cut. */
size_t belay__cache_tags(const belay_cache_t *cache, const char *key, size_t key_len,
                         belay_bytes_t tags[BELAY_CACHE_TAGS_MAX]);

/* The call that asks for a tag's generation, and makes it if there is none; for what is fresh for ttl_ms, or BELAY_DEFAULT.
 * Its generation is drawn here: it is not sent twice. */
belay__call_t *belay__cache_capture(const belay_cache_t *cache, const belay_bytes_t *tag,
                                    int64_t ttl_ms);

/* A fresh generation; or 0s of what is nowhere: 0 or BELAY_ESYSTEM. */
int belay__cache_generation(const belay_cache_t *cache, unsigned char out[BELAY__RECORD_ID]);

/* For how long a generation is good. */
int64_t belay__cache_generation_ms(const belay_cache_t *cache);

#endif /* BELAY_CACHE_KEY_H */
