#include "cache/local.h"

#include <assert.h>
#include <string.h>
#include <xxhash.h>

_Static_assert((BELAY__LOCAL_COUNTERS & (BELAY__LOCAL_COUNTERS - 1)) == 0, "a mask");
_Static_assert(BELAY__LOCAL_COUNTERS - 1 <= UINT16_MAX, "places");

#define COUNTERS_SIZE (BELAY__LOCAL_COUNTERS * sizeof(uint32_t))

/* An entry. The fields that a hit reads are next to each other. */
typedef struct cached {
  belay__entry_t entry;
  belay__list_t recent;
  belay__record_t *record;
  uint64_t until, keep_until;
  belay__stamp_t stamp;
  uint16_t key_len;
  unsigned char key[];
} cached_t;

_Static_assert(BELAY_CACHE_KEY_MAX <= UINT16_MAX, "the length of a key");

static size_t size_of(const belay__record_t *record, size_t key_len) {
  return sizeof(cached_t) + key_len + belay__record_size(record);
}

static size_t buckets_size(const belay__local_t *local) {
  return local->table.size * sizeof(belay__entry_t *);
}

static bool is_key(const belay__entry_t *entry, const void *key, size_t len) {
  const cached_t *cached = BELAY__CONTAINER(entry, cached_t, entry);
  return cached->key_len == len && memcmp(cached->key, key, len) == 0;
}

/* ---- counters ---- */

uint64_t belay__local_hash(const void *bytes, size_t len, bool is_tag) {
  return XXH3_64bits_withSeed(bytes, len, is_tag ? 1 : 0);
}

static uint16_t place_of(uint64_t hash) {
  return (uint16_t)(hash & (BELAY__LOCAL_COUNTERS - 1));
}

static uint64_t sum_of(const belay__local_t *local, const belay__stamp_t *stamp) {
  uint64_t sum = 0;
  for (size_t i = 0; i < stamp->len; i++)
    sum += local->counters[stamp->places[i]];
  return sum;
}

void belay__local_stamp(const belay__local_t *local, const void *key, size_t key_len,
                        const belay_bytes_t *tags, size_t n, belay__stamp_t *out) {
  assert(n <= BELAY_CACHE_TAGS_MAX);
  *out = (belay__stamp_t){.len = 0};
  if (local->counters == NULL)
    return;
  out->places[out->len++] = place_of(belay__local_hash(key, key_len, false));
  for (size_t i = 0; i < n; i++)
    out->places[out->len++] = place_of(belay__local_hash(tags[i].data, tags[i].len, true));
  belay__local_restamp(local, out);
}

void belay__local_restamp(const belay__local_t *local, belay__stamp_t *stamp) {
  stamp->sum = sum_of(local, stamp);
  stamp->gaps = local->gaps;
}

bool belay__local_is_good(const belay__local_t *local, const belay__stamp_t *stamp) {
  return sum_of(local, stamp) == stamp->sum;
}

void belay__local_invalidate(belay__local_t *local, uint64_t hash) {
  if (local->counters != NULL)
    local->counters[place_of(hash)]++;
}

void belay__local_note_gap(belay__local_t *local) {
  local->gaps++;
}

/* ---- the table ---- */

int belay__local_init(belay__local_t *local, belay_t *belay, size_t max_bytes) {
  *local = (belay__local_t){.belay = belay, .max_bytes = max_bytes};
  belay__list_init(&local->recent);
  if (max_bytes == 0)
    return 0;
  local->counters = belay__alloc(belay, COUNTERS_SIZE);
  if (local->counters == NULL)
    return BELAY_ENOMEM;
  memset(local->counters, 0, COUNTERS_SIZE);
  return 0;
}

static void remove_cached(belay__local_t *local, cached_t *cached) {
  size_t size = size_of(cached->record, cached->key_len);
  belay__table_remove(&local->table, &cached->entry);
  belay__list_remove(&cached->recent);
  belay__record_release(local->belay, cached->record);
  belay__free(local->belay, cached, sizeof *cached + cached->key_len);
  local->bytes -= size;
}

/* Removes the least recently used entries until `size` more bytes fit. */
static void make_room(belay__local_t *local, size_t size) {
  while (local->bytes + size > local->max_bytes && !belay__list_empty(&local->recent))
    remove_cached(local, BELAY__CONTAINER(local->recent.prev, cached_t, recent));
}

void belay__local_free(belay__local_t *local) {
  while (!belay__list_empty(&local->recent))
    remove_cached(local, BELAY__CONTAINER(local->recent.next, cached_t, recent));
  belay__table_free(local->belay, &local->table);
  belay__free(local->belay, local->counters, COUNTERS_SIZE);
  local->counters = NULL;
  local->bytes = 0;
}

/* Creates an entry. NULL if there is no memory. */
static cached_t *new_cached(belay__local_t *local, const void *key, size_t key_len) {
  cached_t *cached = belay__alloc(local->belay, sizeof *cached + key_len);
  if (cached == NULL)
    return NULL;
  cached->key_len = (uint16_t)key_len;
  memcpy(cached->key, key, key_len);
  return cached;
}

static cached_t *find_cached(belay__local_t *local, const void *key, size_t key_len) {
  if (local->table.count == 0)
    return NULL;
  uint64_t hash = belay__table_hash(local->belay, &local->table, key, key_len);
  belay__entry_t *entry = belay__table_find(&local->table, hash, is_key, key, key_len);
  return entry == NULL ? NULL : BELAY__CONTAINER(entry, cached_t, entry);
}

void belay__local_remove(belay__local_t *local, const void *key, size_t key_len) {
  cached_t *cached = find_cached(local, key, key_len);
  if (cached != NULL)
    remove_cached(local, cached);
}

/* Adds an entry, or frees it if there is no memory. The table may grow by buckets, which count in
 * local->bytes. */
static void add_cached(belay__local_t *local, cached_t *cached, uint64_t hash) {
  size_t size = size_of(cached->record, cached->key_len), before = buckets_size(local);
  if (belay__table_add(local->belay, &local->table, &cached->entry, hash) != 0) {
    belay__record_release(local->belay, cached->record);
    belay__free(local->belay, cached, sizeof *cached + cached->key_len);
    return;
  }
  belay__list_push_front(&local->recent, &cached->recent);
  local->bytes += size + buckets_size(local) - before;
  make_room(local, 0);
}

void belay__local_put(belay__local_t *local, const void *key, size_t key_len,
                      belay__record_t *record, const belay__stamp_t *stamp, uint64_t until,
                      uint64_t keep_until) {
  if (local->max_bytes == 0)
    return;
  /* the entry that is removed next may own the last reference to the same record */
  belay__record_retain(record);
  belay__local_remove(local, key, key_len);
  size_t size = size_of(record, key_len);
  cached_t *cached = NULL;
  if (belay__local_is_good(local, stamp) && stamp->gaps == local->gaps &&
      buckets_size(local) + size <= local->max_bytes) {
    make_room(local, size);
    cached = new_cached(local, key, key_len);
  }
  if (cached == NULL) {
    belay__record_release(local->belay, record);
    return;
  }
  cached->record = record;
  cached->until = until;
  cached->keep_until = keep_until;
  cached->stamp = *stamp;
  add_cached(local, cached, belay__table_hash(local->belay, &local->table, key, key_len));
}

belay__local_hit_t belay__local_find(belay__local_t *local, const void *key, size_t key_len,
                                     uint64_t now) {
  belay__local_hit_t hit = {0};
  cached_t *cached = find_cached(local, key, key_len);
  if (cached == NULL)
    return hit;
  hit.fresh = now < cached->until && cached->stamp.gaps == local->gaps;
  if (!belay__local_is_good(local, &cached->stamp) || (!hit.fresh && now >= cached->keep_until)) {
    remove_cached(local, cached);
    return (belay__local_hit_t){0};
  }
  hit.record = cached->record;
  if (local->recent.next != &cached->recent) {
    belay__list_remove(&cached->recent);
    belay__list_push_front(&local->recent, &cached->recent);
  }
  return hit;
}
