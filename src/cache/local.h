/* The local table: records in the memory of this process. It is bounded in bytes; the least
 * recently used records leave first.
 *
 * Invalidations do not search the table. The table has BELAY__LOCAL_COUNTERS counters, and the hash
 * of a key or tag selects one of them. An invalidation increments the counter of its key or tag. A
 * stamp holds the indexes of the counters of a key and its tags, and the sum of these counters. The
 * stamp is valid while the sum has not changed. Two keys can share a counter: then an invalidation
 * of one also drops the other.
 *
 * A stamp is taken before the request to the server. So a value that is invalidated before its
 * reply arrives does not enter the table.
 *
 * Messages of other processes can be lost in a gap of the subscription. Records from before a gap
 * are served only in an outage. */
#ifndef BELAY_CACHE_LOCAL_H
#define BELAY_CACHE_LOCAL_H

#include "cache/record.h"
#include "core/loop/list.h"
#include "core/key/table.h"

#define BELAY__LOCAL_COUNTERS 4096 /* a power of two */

/* The counters of a key and its tags, and their sum at one moment. */
typedef struct belay__stamp {
  uint64_t sum; /* sum of the counters */
  /* number of gaps of the subscription when the stamp was taken */
  uint64_t gaps;
  uint16_t places[1 + BELAY_CACHE_TAGS_MAX]; /* indexes of the counters: the key, then its tags */
  uint8_t len;                               /* number of places; 0 without a table */
} belay__stamp_t;

typedef struct belay__local {
  belay_t *belay;
  /* bound of `bytes`; 0: there is no table, nothing enters it, and all stamps are valid */
  size_t max_bytes;
  /* size of the entries, with keys and records, and of the buckets; without the counters */
  size_t bytes;
  belay__table_t table;
  belay__list_t recent; /* the most recently used entry comes first */
  uint64_t gaps;        /* gaps of the subscription until now */
  uint32_t *counters;   /* BELAY__LOCAL_COUNTERS of them; NULL if max_bytes is 0 */
} belay__local_t;

/* Result of a search. */
typedef struct belay__local_hit {
  belay__record_t *record; /* the table owns the reference; NULL: not found */
  bool fresh;              /* false: the record may be served only in an outage */
} belay__local_hit_t;

/* Returns 0 or BELAY_ENOMEM. */
int belay__local_init(belay__local_t *local, belay_t *belay, size_t max_bytes);
void belay__local_free(belay__local_t *local);

/* Hashes a key or a tag for its counter: XXH3 with 64 bits; the seed is 0 for a key and 1 for a
 * tag. All processes must use the same hash, because the message of an invalidation contains it. */
uint64_t belay__local_hash(const void *bytes, size_t len, bool is_tag);

/* Takes a stamp. tags may be NULL if n is 0. belay__local_restamp() updates a stamp to the present
 * values of its counters. */
void belay__local_stamp(const belay__local_t *local, const void *key, size_t key_len,
                        const belay_bytes_t *tags, size_t n, belay__stamp_t *out);
void belay__local_restamp(const belay__local_t *local, belay__stamp_t *stamp);
/* true if neither the key nor a tag was invalidated since the stamp was taken. Does not consider
 * gaps. */
bool belay__local_is_good(const belay__local_t *local, const belay__stamp_t *stamp);

/* Puts a record into the table and makes room for it. The previous record of the key leaves the
 * table in any case. The new record does not enter the table if it is larger than the table, if
 * there is no memory, or if the stamp is invalid or from before a gap. until: host time until which
 * the record is fresh. keep_until: host time until which it may be served in an outage. */
void belay__local_put(belay__local_t *local, const void *key, size_t key_len,
                      belay__record_t *record, const belay__stamp_t *stamp, uint64_t until,
                      uint64_t keep_until);

/* Removes the record of the key, if there is one. */
void belay__local_remove(belay__local_t *local, const void *key, size_t key_len);

/* Searches the table and marks the entry as used. Removes an entry that is not usable any more.
 * Allocates nothing. The table owns the record of the result, which is valid until the next put,
 * find or remove. */
belay__local_hit_t belay__local_find(belay__local_t *local, const void *key, size_t key_len,
                                     uint64_t now);

/* Invalidates all keys and tags with this hash. */
void belay__local_invalidate(belay__local_t *local, uint64_t hash);
/* Notes a gap of the subscription: the records that are in the table now are from now on served
 * only in an outage. */
void belay__local_note_gap(belay__local_t *local);

#endif /* BELAY_CACHE_LOCAL_H */
