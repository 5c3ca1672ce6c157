/* The table of records in this process: bounded by bytes, the least recently used goes first.
 *
 * What is invalidated is found out without being looked for: there are counters, by hash, and whoever invalidates a key
 * or a tag steps its counter. A stamp is where the counters of a key and its tags are, and what their sum was; it
 * is good as long as it still is. (Two keys may share a counter: then one goes for nothing.) A stamp is taken before the
 * server is asked, so that what was invalidated while it answered is not put in.
 *
 * Messages of others may be lost while there is a gap in what is heard: what was put in before is in doubt then, and only
 * served while the server is away. */
#ifndef BELAY_CACHE_LOCAL_H
#define BELAY_CACHE_LOCAL_H

#include "cache/record.h"
#include "core/loop/list.h"
#include "core/key/table.h"

#define BELAY__LOCAL_COUNTERS 4096 /* a power of two */

/* Where to lookup, and what was seen there. */
typedef struct belay__stamp {
  uint64_t sum;  /* of the counters */
  uint64_t gaps; /* gaps until then */
  uint16_t places[1 + BELAY_CACHE_TAGS_MAX];
  uint8_t len;
} belay__stamp_t;

typedef struct belay__local {
  belay_t *belay;
  size_t max_bytes; /* 0: there is no table, and nothing is put in; stamps are good all the same */
  size_t
      bytes; /* of the entries, keys and records included, and of the buckets; not of the counters */
  belay__table_t table;
  belay__list_t recent; /* the most recently used first */
  uint64_t gaps;
  uint32_t *counters; /* BELAY__LOCAL_COUNTERS; NULL as long as max_bytes is 0 */
} belay__local_t;

/* What was found. */
typedef struct belay__local_hit {
  belay__record_t *record; /* the table's reference; NULL: nothing */
  bool fresh;              /* else it is only good while the server is away */
} belay__local_hit_t;

/* Returns 0 or BELAY_ENOMEM. */
int belay__local_init(belay__local_t *local, belay_t *belay, size_t max_bytes);
void belay__local_free(belay__local_t *local);

/* The hash by which the counter of a key, or of a tag, is known in all processes: it is what an invalidation publishes.
 * XXH3 of the bytes, with seed 0 for a key, and 1 for a tag. */
uint64_t belay__local_hash(const void *bytes, size_t len, bool is_tag);

/* A stamp of now; and one that was taken, renewed. tags may be NULL if n is 0. */
void belay__local_stamp(const belay__local_t *local, const void *key, size_t key_len,
                        const belay_bytes_t *tags, size_t n, belay__stamp_t *out);
void belay__local_restamp(const belay__local_t *local, belay__stamp_t *stamp);
/* Whether nothing of it was invalidated since; whether it is in doubt is not asked here. */
bool belay__local_is_good(const belay__local_t *local, const belay__stamp_t *stamp);

/* It makes room for it; what is larger than the table is not put in, nor if memory is out. until, keep_until: times of the host, until when it
 * is fresh, and until when it may be served while the server is away. Not put in if the stamp is not good, or in doubt.
 * What the key had before goes in any case. */
void belay__local_put(belay__local_t *local, const void *key, size_t key_len,
                      belay__record_t *record, const belay__stamp_t *stamp, uint64_t until,
                      uint64_t keep_until);

/* What the key has goes. */
void belay__local_remove(belay__local_t *local, const void *key, size_t key_len);

/* What is there at that time, which is used by that; what is of no use any more goes. Allocates nothing. The record is the
 * table's, and good until something is put in or found again. */
belay__local_hit_t belay__local_find(belay__local_t *local, const void *key, size_t key_len,
                                     uint64_t now);

/* Whatever has this hash is invalidated. */
void belay__local_invalidate(belay__local_t *local, uint64_t hash);
/* What is there is in doubt. */
void belay__local_note_gap(belay__local_t *local);

#endif /* BELAY_CACHE_LOCAL_H */
