/* Passing loads to the caller's loader, and groups of loads that are passed together. */
#ifndef BELAY_CACHE_LOADER_H
#define BELAY_CACHE_LOADER_H

#include "cache/load_state.h"

/* The new loads of one belay_cache_get_many(). Those that become READY are queued together for
 * load_many. */
struct belay__load_group {
  /* number of loads that may still become READY, plus 1 until belay__load_group_seal() runs */
  unsigned open;
  belay__list_t ready;
};

/* Creates a group. NULL if there is no memory. The creator calls belay__load_group_seal() when all
 * loads have joined; the group frees itself when no load can become READY any more. */
belay__load_group_t *belay__load_group_new(belay_cache_t *cache);
void belay__load_group_seal(belay_cache_t *cache, belay__load_group_t *group);

/* Adds the load to a group; NULL: to none. */
void belay__loader_join(belay__load_t *load, belay__load_group_t *group);
/* Queues a READY load for a task: at once if it has no group, otherwise when all other loads of the
 * group are READY or have left the group. The task reports BELAY__LOAD_YES and then passes the load
 * to the loader. If there is no memory, the task only reports BELAY__LOAD_ERROR. */
void belay__loader_ready(belay__load_t *load);
/* Removes the load from its group, so that the others do not wait for it, or from its queue. */
void belay__loader_leave(belay__load_t *load);
/* Separates the load from the reference that the loader has: the result of the loader is
 * ignored. */
void belay__loader_detach(belay__load_t *load);

/* Passes the queued loads to the loader. One run of the task passes at most BELAY_CACHE_MANY_MAX
 * loads of each queue; the task runs again for the rest. */
void belay__loader_task(belay__task_t *task);

#endif /* BELAY_CACHE_LOADER_H */
