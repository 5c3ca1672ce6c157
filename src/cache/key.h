/* Keys of the cache, and the calls that use them. */
#ifndef BELAY_CACHE_KEY_H
#define BELAY_CACHE_KEY_H

#include "cache/state.h"

#define BELAY__CACHE_GENERATION "}::gen"
#define BELAY__CACHE_LEASE "}::lease"
#define BELAY__CACHE_TAG "}::tag"
#define BELAY__CACHE_DROPPED "}::dropped" /* channel of invalidations; its key part is empty */
/* channel of stored values of a key; appended to its complete name */
#define BELAY__CACHE_FILLED "::filled"

/* Builds a key as the server has it. *len: its length. The caller frees it with belay__free(). NULL
 * if there is no memory. */
char *belay__cache_key(const belay_cache_t *cache, belay_bytes_t key, const char *tail,
                       size_t *len);

/* Creates a call: of a command of n words; of a script with two keys, the record and the
 * generation, which are added. NULL if there is no memory. */
belay__call_t *belay__cache_command(const belay_cache_t *cache, const char *name, size_t n);
belay__call_t *belay__cache_script(const belay_cache_t *cache, const belay__script_t *script,
                                   belay_bytes_t key, size_t args);

/* Gets the tags of a key from options.tags: at most BELAY_CACHE_TAGS_MAX. Longer tags are cut to
 * BELAY_CACHE_TAG_MAX. */
size_t belay__cache_tags(const belay_cache_t *cache, belay_bytes_t key,
                         belay_bytes_t tags[BELAY_CACHE_TAGS_MAX]);

/* Creates the call that reads the generation of a tag, or creates one if the tag has none. ttl_ms:
 * freshness of the value that is going to use it, or BELAY_DEFAULT. The call must not be sent
 * twice, because it contains the new generation. NULL if there is no memory or no random bytes. */
belay__call_t *belay__cache_capture(const belay_cache_t *cache, belay_bytes_t tag, int64_t ttl_ms);

/* Reads the reply to that call. Returns 0, BELAY_EPROTO, or BELAY_EMISMATCH with a detail. */
int belay__cache_read_tag(const belay__call_t *call, const belay__reply_t *reply,
                          unsigned char out[BELAY__RECORD_ID]);

/* Creates the call that begins a load or a put, if the stored record is still the one with seen_id.
 * Draws the generation. The call must not be sent twice. NULL if there is no memory or no random
 * bytes. */
belay__call_t *belay__cache_begin(const belay_cache_t *cache, belay_bytes_t key,
                                  const void *seen_id, size_t seen_id_len,
                                  unsigned char generation[BELAY__RECORD_ID]);

/* Sets created_ms and fresh_ms of the record. The freshness is ttl_ms less a random jitter;
 * BELAY_DEFAULT: the option for this kind of record. Returns the ttl of the key on the server, in
 * ms. */
int64_t belay__cache_date(belay_cache_t *cache, belay__record_t *record, int64_t ttl_ms);

/* Adds to a call: a generation, the record, and its ttl. If ttl_ms is 0, the record is "" and is
 * not kept. *written: bytes of the record. Returns 0 or BELAY_ENOMEM. */
int belay__cache_record_args(const belay_cache_t *cache, belay__call_t *call,
                             const unsigned char generation[BELAY__RECORD_ID],
                             const belay__record_t *record, int64_t ttl_ms, size_t *written);

#endif /* BELAY_CACHE_KEY_H */
