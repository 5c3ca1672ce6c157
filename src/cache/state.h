/* The cache handle, which all files of the cache share.
 *
 *     cache.c                        options, creation, close
 *        |
 *     get.c                          gets: a lookup, then perhaps a wait
 *     write.c                        put, touch, invalidate
 *     keep_fresh.c                   keys that the cache loads again ahead of time
 *        |
 *     join.c                         joins or begins a load
 *     single_flight.c                the machine: one load for each key in this process
 *     waiters.c                      waiters of a load
 *     load_steps.c                   steps of a load: filter, lease, limiter, server
 *     loader.c                       the caller's loader, groups of loads
 *        |
 *     lookup.c                       reads the record of a key from the server
 *     share.c                        lookups that several gets share
 *     serve.c                        results of gets; writes to the local table; peeks
 *     key.c                          keys, calls, times of records
 *        |
 *     local.c, record.c, xfetch.c    the local table; records and their bytes; freshness
 *
 * The local table is the table of records in this process. */
#ifndef BELAY_CACHE_STATE_H
#define BELAY_CACHE_STATE_H

#include "cache/local.h"
#include "cache/xfetch.h"
#include "core/client/channel.h"
#include "core/client/handle.h"
#include "core/client/server_time.h"

#define BELAY__CACHE_LIFE_MAX_MS INT64_C(31536000000) /* a year */
#define BELAY__CACHE_SHARED 64 /* lookups that gets may share at a time; a power of two */

typedef struct belay__sharing belay__sharing_t;

struct belay_cache {
  belay__handle_t handle;        /* must be the first member */
  belay_cache_options_t options; /* with all defaults resolved; options.name is not kept */
  belay__servertime_t time;
  belay__local_t local;
  belay__subscription_t subscription; /* messages about invalidations by other processes */
  belay__table_t loads;
  belay__table_t fresh_keys;
  /* Called when a load of the key ends. left_ms: as in load_state.h. NULL until the first call of
   * belay_cache_keep_fresh(). */
  void (*on_load_over)(belay_cache_t *cache, belay_bytes_t key, int64_t left_ms);
  belay__list_t ready;      /* loads that the next task passes to options.load */
  belay__list_t ready_many; /* loads that the next task passes to options.load_many */
  belay__task_t task;
  /* Leaders of shared lookups (cache/share.h), by the hashes of their keys; NULL: none. A new
   * leader replaces the leader at its place. */
  belay__sharing_t *shared[BELAY__CACHE_SHARED];
  size_t outage_loads; /* unstored loads because of an outage; at most max_away_loads */
  belay_cache_stats_t stats;
};

/* Returns the server's clock, in ms since 1970, at the host time now. 0 if the clock is not known
 * yet. */
static inline int64_t belay__cache_ms_at(const belay_cache_t *cache, uint64_t now) {
  return cache->time.learnt == 0 ? 0 : belay__servertime_ms_at(&cache->time, now);
}

/* Returns the server's clock, in ms since 1970, at the host time of the last wake-up of the loop. 0
 * if the clock is not known yet. A step that judges replies uses this time, because those replies
 * had arrived by then. */
static inline int64_t belay__cache_now_ms(const belay_cache_t *cache) {
  return belay__cache_ms_at(cache, belay__entry_time(cache->handle.client->belay));
}

/* true if the options have a loader. */
static inline bool belay__cache_loads(const belay_cache_t *cache) {
  return cache->options.load != NULL || cache->options.load_many != NULL;
}

#endif /* BELAY_CACHE_STATE_H */
