/* What the files of the cache share: the handle.
 *
 *   cache.c                        options, a new cache, its end
 *      |
 *   get.c, get_many.c              is it there? if not, the request waits
 *   write.c                        put, touch, invalidate
 *   keep_fresh.c                   keys that are loaded again ahead of time
 *      |
 *   single_flight.c                one load for each key: the way to a value; with waiters.c, who waits for it,
 *                                  load_steps.c, what it asks, and loader.c, the caller's loader
 *      |
 *   lookup.c                       what the server has of a key
 *      |
 *   serve.c                        what a get is served; the table of this process, as the options want it
 *      |
 *   key.c, times.c                 keys and calls; the server's clock, until when a record is fresh
 *      |
 *   local.c, record.c, xfetch.c    the table of this process; what is kept, and how it is written; how good it is */
#ifndef BELAY_CACHE_STATE_H
#define BELAY_CACHE_STATE_H

#include "cache/local.h"
#include "cache/xfetch.h"
#include "core/client/channel.h"
#include "core/client/handle.h"
#include "core/client/server_time.h"

struct belay_cache {
  belay__handle_t handle;        /* first */
  belay_cache_options_t options; /* resolved; its name is not kept */
  belay__fresh_terms_t terms;
  belay__servertime_t time;
  belay__local_t local;
  belay__ear_t ear; /* hears what is invalidated elsewhere */
  belay__table_t flights;
  belay__table_t pins;
  belay__list_t pinned;
  belay__list_t ready;    /* flights whose loads begin next; loader.c's */
  belay__list_t together; /* the same, by load_many */
  belay__task_t task;     /* begins them */
  size_t away_loads;      /* under way */
  belay_cache_stats_t stats;
};

/* Whether there is a loader. */
static inline bool belay__cache_loads(const belay_cache_t *cache) {
  return cache->options.load != NULL || cache->options.load_many != NULL;
}

#endif /* BELAY_CACHE_STATE_H */
