/* A lookup of what the server has of a key: a GET, and one for the generation of each of its tags,
 * and TIME now and then, all at once. */
#ifndef BELAY_CACHE_LOOKUP_H
#define BELAY_CACHE_LOOKUP_H

#include "cache/serve.h"

/* What is seen of a record by scripts: bytes 48 to 63, or as many as there are. */
typedef struct belay__seen_id {
  uint8_t len;
  unsigned char id[BELAY__RECORD_ID];
} belay__seen_id_t;

typedef struct belay__lookup {
  belay__record_t *record; /* a reference; NULL: nothing that is good */
  uint64_t asked_at;       /* when; by the host */
  uint64_t tags;           /* the generations that the tags have now, folded */
  belay__stamp_t stamp;
  uint8_t tags_len; /* that the key has */
  belay__seen_id_t seen_id;
  bool untagged;                /* one of them has none */
  bool from_replica;            /* a replica may have answered */
  belay__freshness_t freshness; /* once it is over; GONE without a record */
} belay__lookup_t;

#define BELAY__LOOKUP_CALLS_MAX (1 + BELAY_CACHE_TAGS_MAX)

/* Who may answer. */
typedef enum belay__lookup_at { BELAY__LOOKUP_AT_PRIMARY, BELAY__LOOKUP_AT_ANY } belay__lookup_at_t;

/* Builds the calls of a lookup, which begins now: at most BELAY__LOOKUP_CALLS_MAX; returns how
 * many. A call is NULL if memory is out. */
size_t belay__lookup_calls(belay_cache_t *cache, belay__lookup_t *lookup, belay__lookup_at_t at,
                           uint64_t now, const char *key, size_t key_len, belay__call_t **calls);

/* Reads the reply to the call number i of them. Returns 0, BELAY_ENOMEM or BELAY_EPROTO. */
int belay__lookup_read(belay_cache_t *cache, belay__lookup_t *lookup, size_t i,
                       const belay__reply_t *reply);

/* The generation of the tag number i, as a part of lookup->tags, which is the exclusive or of
 * them all. */
uint64_t belay__lookup_fold(size_t i, const void *generation);

/* All are answered: what it comes to. */
void belay__lookup_judge(belay_cache_t *cache, belay__lookup_t *lookup);

/* The same for a record that came from elsewhere, on the server since the lookup: replaces what
 * was found. */
int belay__lookup_replace(belay_cache_t *cache, belay__lookup_t *lookup, const char *bytes,
                          size_t len);

/* What is served of one that found something; it keeps the reference. */
belay__served_t belay__lookup_serve(const belay__lookup_t *lookup);

/* Gives its record back. */
void belay__lookup_release(belay_cache_t *cache, belay__lookup_t *lookup);

/* Sends the n calls of lookups, and TIME if it is due; calls has room for one more. A step of a
 * request that is PARKED. Returns 0, BELAY_ENOMEM or BELAY_EBUSY. Takes the calls in any case. */
int belay__lookup_send(belay_cache_t *cache, belay__operation_t *operation, uint64_t now,
                       belay__call_t **calls, size_t n);
/* Reads a reply to the step of one lookup. */
int belay__lookup_step_read(belay_cache_t *cache, belay__lookup_t *lookup,
                            const belay__operation_t *operation, const belay__call_t *call,
                            const belay__reply_t *reply);

#endif /* BELAY_CACHE_LOOKUP_H */
