/* Keys of the cache, and the calls that use them. */
#ifndef BELAY_CACHE_KEY_H
#define BELAY_CACHE_KEY_H

#include "cache/state.h"

#define BELAY__CACHE_GENERATION "}::gen"
#define BELAY__CACHE_LEASE "}::lease"
#define BELAY__CACHE_TAG "}::tag"
#define BELAY__CACHE_DROPPED "}::dropped" /* channel of invalidations; its key part is empty */
/* channel of stored values of a key; appended to the key's complete name */
#define BELAY__CACHE_FILLED "::filled"

/* Builds the name of a key or a channel on the server: the prefix of the cache, the escaped key,
 * the tail. *len: length of the name. The caller frees the name with belay__free(). NULL if there
 * is no memory. */
char *belay__cache_key(const belay_cache_t *cache, belay_bytes_t key, const char *tail,
                       size_t *len);

/* belay__cache_command() creates a call of a command of n words, of which the name is one.
 * belay__cache_script() creates a call of a script whose two keys are the record and the registered
 * generation of `key`. Both return NULL if there is no memory. */
belay__call_t *belay__cache_command(const belay_cache_t *cache, const char *name, size_t n);
belay__call_t *belay__cache_script(const belay_cache_t *cache, const belay__script_t *script,
                                   belay_bytes_t key, size_t args);

/* Notes that a call which changes the server is about to be sent. So later gets do not share a
 * lookup that was sent before the call (cache/share.h). belay__cache_script() and
 * belay__cache_capture() note it themselves. */
void belay__cache_note_write(const belay_cache_t *cache);

/* Gets the tags of a key from options.tags, and cuts each to BELAY_CACHE_TAG_MAX bytes. Returns the
 * number of tags, at most BELAY_CACHE_TAGS_MAX. */
size_t belay__cache_tags(const belay_cache_t *cache, belay_bytes_t key,
                         belay_bytes_t tags[BELAY_CACHE_TAGS_MAX]);

/* Creates the call that reads the generation of a tag, or creates a generation if the tag has none.
 * ttl_ms: time that the record to be stored under the tag is fresh; BELAY_DEFAULT: the times of the
 * options. The call must not be sent twice, because it contains the new generation. NULL if there
 * is no memory or no random bytes. */
belay__call_t *belay__cache_capture(const belay_cache_t *cache, belay_bytes_t tag, int64_t ttl_ms);

/* Reads the generation of the tag from the reply to a call of belay__cache_capture(). Returns 0,
 * BELAY_EPROTO, or BELAY_EMISMATCH with a detail. */
int belay__cache_read_tag(const belay__call_t *call, const belay__reply_t *reply,
                          unsigned char out[BELAY__RECORD_ID]);

/* Creates the call that begins a load or a put: it registers a generation if the stored record
 * still has the id seen_id. The seen_id "whatever is there" matches every record, and also a key
 * without a record. Writes the new generation to `generation`. The call must not be sent twice.
 * NULL if there is no memory or no random bytes. */
belay__call_t *belay__cache_begin(const belay_cache_t *cache, belay_bytes_t key,
                                  const void *seen_id, size_t seen_id_len,
                                  unsigned char generation[BELAY__RECORD_ID]);

/* Sets created_ms and fresh_ms of the record. A VALUE is fresh for ttl_ms, or for options.ttl_ms if
 * ttl_ms is BELAY_DEFAULT; the other kinds are fresh for absent_ms or error_ms. A random part of
 * jitter_percent reduces this time. Returns the ttl of the key on the server, in ms; the ttl of a
 * VALUE includes keep_ms. */
int64_t belay__cache_date(belay_cache_t *cache, belay__record_t *record, int64_t ttl_ms);

/* Adds three arguments to a call: a generation, the record as stored, and its ttl on the server. If
 * ttl_ms is 0, the record is "", and the script stores none. *written: size of the record as
 * stored, in bytes. Returns 0 or BELAY_ENOMEM. */
int belay__cache_record_args(const belay_cache_t *cache, belay__call_t *call,
                             const unsigned char generation[BELAY__RECORD_ID],
                             const belay__record_t *record, int64_t ttl_ms, size_t *written);

#endif /* BELAY_CACHE_KEY_H */
