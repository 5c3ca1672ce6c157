/* What a load asks servers. */
#ifndef BELAY_CACHE_LOAD_STEPS_H
#define BELAY_CACHE_LOAD_STEPS_H

#include "cache/load_state.h"

/* Each returns 0, and belay__load_step() follows; or an error, and no step follows. */
int belay__load_start_filter(belay__load_t *load);
int belay__load_start_lease(belay__load_t *load);
int belay__load_start_begin(belay__load_t *load);
int belay__load_start_limiter(belay__load_t *load);
int belay__load_start_lookup(belay__load_t *load);
int belay__load_start_fill(belay__load_t *load);
int belay__load_start_fail(belay__load_t *load);

/* Subscribes to the channel of stored values, unless it is subscribed. */
void belay__load_subscribe(belay__load_t *load);

/* The load is OVER: cancels its request, releases its lease, and frees it when both have ended. */
void belay__load_end_steps(belay__load_t *load);

#endif /* BELAY_CACHE_LOAD_STEPS_H */
