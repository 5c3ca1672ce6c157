/* What a load asks servers. */
#ifndef BELAY_CACHE_LOAD_STEPS_H
#define BELAY_CACHE_LOAD_STEPS_H

#include "cache/load_state.h"

/* Each returns 0, and belay__load_step() follows; or an error, and no step follows. */
int belay__load_ask_filter(belay__load_t *load);
int belay__load_ask_lease(belay__load_t *load);
int belay__load_ask_begin(belay__load_t *load);
int belay__load_ask_limiter(belay__load_t *load);
int belay__load_ask_lookup(belay__load_t *load);
int belay__load_ask_fill(belay__load_t *load);
int belay__load_ask_fail(belay__load_t *load);

/* Subscribes to the channel of stored values, unless it is subscribed. */
void belay__load_listen(belay__load_t *load);

/* The load is OVER: cancels its request, releases its lease, and frees it when both have ended. */
void belay__load_end_steps(belay__load_t *load);

#endif /* BELAY_CACHE_LOAD_STEPS_H */
