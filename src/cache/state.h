/* What the files of the cache share: the handle.
 *
 *   cache.c                        options, a new cache, its end
 *      |
 *   get.c, get_many.c              gets: lookup, then perhaps wait
 *   write.c                        put, touch, invalidate
 *   keep_fresh.c                   pinned keys: loaded again ahead of time
 *      |
 *   join.c                         joins or begins a load
 *   single_flight.c                the machine: one load for each key in this process
 *   waiters.c                      waiters of a load
 *   load_steps.c                   what a load asks: filter, lease, limiter, server
 *   loader.c                       the caller's loader, batches
 *      |
 *   lookup.c                       what the server has of a key
 *   serve.c                        results of gets; the table of this process, as the options want it
 *   key.c                          keys, calls, dates of records
 *      |
 *   local.c, record.c, xfetch.c    the table of this process; records and their bytes; how good a record is */
#ifndef BELAY_CACHE_STATE_H
#define BELAY_CACHE_STATE_H

#include "cache/local.h"
#include "cache/xfetch.h"
#include "core/client/channel.h"
#include "core/client/handle.h"
#include "core/client/server_time.h"

#define BELAY__CACHE_LIFE_MAX_MS INT64_C(31536000000) /* a year */

struct belay_cache {
  belay__handle_t handle;        /* first */
  belay_cache_options_t options; /* resolved; its name is not kept */
  belay__fresh_config_t fresh_config;
  belay__servertime_t time;
  belay__local_t local;
  belay__subscription_t subscription; /* hears what is invalidated elsewhere */
  belay__table_t loads;
  belay__table_t fresh_keys;
  /* A load of the key is over; left_ms as in load_state.h. NULL: no key was pinned yet. */
  void (*on_load_over)(belay_cache_t *cache, const char *key, size_t key_len, int64_t left_ms);
  belay__list_t ready;      /* loads that the next task hands to options.load */
  belay__list_t ready_many; /* loads that the next task hands to options.load_many */
  belay__task_t task;
  size_t outage_loads; /* under way */
  belay_cache_stats_t stats;
};

/* The server's clock in ms at a time of the host; 0 if it is not known. */
static inline int64_t belay__cache_ms_at(const belay_cache_t *cache, uint64_t now) {
  return cache->time.learnt == 0 ? 0 : belay__servertime_ms_at(&cache->time, now);
}

/* The same at the time at which the loop woke: what a step judges had arrived by then. */
static inline int64_t belay__cache_now_ms(const belay_cache_t *cache) {
  return belay__cache_ms_at(cache, belay__entry_time(cache->handle.client->belay));
}

/* Whether there is a loader. */
static inline bool belay__cache_loads(const belay_cache_t *cache) {
  return cache->options.load != NULL || cache->options.load_many != NULL;
}

#endif /* BELAY_CACHE_STATE_H */
