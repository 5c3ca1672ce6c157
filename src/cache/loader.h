/* Passing loads to the caller's loader, and groups of loads that are passed together. */
#ifndef BELAY_CACHE_LOADER_H
#define BELAY_CACHE_LOADER_H

#include "cache/load_state.h"

/* The loads of one belay_cache_get_many() that may be needed. Those that are READY are queued
 * together for the loader. */
struct belay__load_group {
  /* number of loads that may still become READY, plus 1 until belay__load_group_seal() */
  unsigned open;
  belay__list_t ready;
};

/* Creates a group. The creator calls belay__load_group_seal() when all loads have joined. NULL if
 * there is no memory. */
belay__load_group_t *belay__load_group_new(belay_cache_t *cache);
void belay__load_group_seal(belay_cache_t *cache, belay__load_group_t *group);

/* Adds the load to a group; NULL: to none. */
void belay__loader_join(belay__load_t *load, belay__load_group_t *group);
/* The load is READY. A task passes it to the loader and reports BELAY__LOAD_YES: at once, or when
 * the last load of its group is READY. */
void belay__loader_ready(belay__load_t *load);
/* The load does not become READY: its group does not wait for it. */
void belay__loader_leave(belay__load_t *load);
/* Drops the loader's reference: the load does not need the value any more. */
void belay__loader_detach(belay__load_t *load);

/* Passes all READY loads to the loader. */
void belay__loader_task(belay__task_t *task);

#endif /* BELAY_CACHE_LOADER_H */
