/* The caller's loader, and batches of loads that reach it together. */
#ifndef BELAY_CACHE_LOADER_H
#define BELAY_CACHE_LOADER_H

#include "cache/load_state.h"

/* Loads of one belay_cache_get_many() that reach the loader together. */
struct belay__load_group {
  unsigned open; /* loads on their way to READY, and 1 until belay__load_group_seal() */
  belay__list_t ready;
};

/* NULL if memory is out. The creator calls belay__load_group_seal() when all loads have joined. */
belay__load_group_t *belay__load_group_new(belay_cache_t *cache);
void belay__load_group_seal(belay_cache_t *cache, belay__load_group_t *group);

/* batch: NULL: none. */
void belay__loader_join(belay__load_t *load, belay__load_group_t *group);
/* The load is READY: a task, or the last load of its batch, hands it to the loader
 * (BELAY__LOAD_YES). */
void belay__loader_ready(belay__load_t *load);
/* The load does not become READY: its batch does not wait for it. */
void belay__loader_leave(belay__load_t *load);
/* The load does not need the loader's value any more. */
void belay__loader_detach(belay__load_t *load);

/* Hands all loads that are ready to the loader. */
void belay__loader_task(belay__task_t *task);

#endif /* BELAY_CACHE_LOADER_H */
