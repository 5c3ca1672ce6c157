/* A lookup reads a record from the server: one GET for the key, one GET for the generation of each
 * tag, and TIME if the server's clock is not known or is to be read again. All calls are sent at
 * once. */
#ifndef BELAY_CACHE_LOOKUP_H
#define BELAY_CACHE_LOOKUP_H

#include "cache/serve.h"

/* The record id that the scripts compare: bytes 48 to 63 of the stored value, or fewer if the value
 * is shorter. len 0: no value. */
typedef struct belay__seen_id {
  uint8_t len;
  unsigned char id[BELAY__RECORD_ID];
} belay__seen_id_t;

typedef struct belay__lookup {
  belay__record_t *record;  /* a reference; NULL: no usable record */
  uint64_t asked_at;        /* host time at which the lookup began */
  uint64_t tags;            /* hash of the present generations of all tags */
  belay__stamp_t stamp;     /* taken when the lookup began */
  uint8_t tags_len;         /* number of tags of the key */
  belay__seen_id_t seen_id; /* id of the stored value */
  bool untagged;            /* a tag has no generation */
  bool from_replica;        /* a replica may have answered, so the record may be old */
  /* valid after belay__lookup_judge(); BELAY__EXPIRED without a record */
  belay__freshness_t freshness;
} belay__lookup_t;

#define BELAY__LOOKUP_CALLS_MAX (1 + BELAY_CACHE_TAGS_MAX)

/* Servers that may answer a lookup. */
typedef enum belay__lookup_at { BELAY__LOOKUP_AT_PRIMARY, BELAY__LOOKUP_AT_ANY } belay__lookup_at_t;

/* Initializes the lookup and builds its calls, except TIME. now: host time at which the lookup
 * begins. at: the servers that may answer. Returns the number of calls, at most
 * BELAY__LOOKUP_CALLS_MAX. A call is NULL if there is no memory for it. */
size_t belay__lookup_calls(belay_cache_t *cache, belay__lookup_t *lookup, belay__lookup_at_t at,
                           uint64_t now, belay_bytes_t key, belay__call_t **calls);

/* Reads the reply to call number i of belay__lookup_calls(). Returns 0, BELAY_ENOMEM or
 * BELAY_EPROTO. */
int belay__lookup_read(belay_cache_t *cache, belay__lookup_t *lookup, size_t i,
                       const belay__reply_t *reply);

/* Hashes the generation of tag number i. lookup->tags is the exclusive or of the hashes of all
 * tags. */
uint64_t belay__lookup_fold(size_t i, const void *generation);

/* Judges the record after all replies are read: sets lookup->freshness, and releases a record that
 * is expired or was stored under other generations of its tags. */
void belay__lookup_judge(belay_cache_t *cache, belay__lookup_t *lookup);

/* Replaces the record of a finished lookup by another stored value, which a script has returned.
 * Returns 0 or BELAY_ENOMEM. */
int belay__lookup_replace(belay_cache_t *cache, belay__lookup_t *lookup, const char *bytes,
                          size_t len);

/* Returns the result for a lookup with a record. The lookup keeps the reference. */
belay__served_t belay__lookup_serve(const belay__lookup_t *lookup);

/* Releases the record of the lookup. */
void belay__lookup_release(belay_cache_t *cache, belay__lookup_t *lookup);

/* Adds a call of TIME to the n calls if the server's clock is not known or is to be read again. The
 * array must have room for one more call. Returns the new number of calls. */
size_t belay__lookup_add_time(belay_cache_t *cache, uint64_t now, belay__call_t **calls, size_t n);

#endif /* BELAY_CACHE_LOOKUP_H */
