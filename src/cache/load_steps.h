/* The steps of a load that call a server. */
#ifndef BELAY_CACHE_LOAD_STEPS_H
#define BELAY_CACHE_LOAD_STEPS_H

#include "cache/load_state.h"

/* Each function starts a step. 0: belay__load_step() will report the end of the step, unless the
 * load is OVER by then. An error: the step has not started, and belay__load_step() is not
 * called. */
int belay__load_start_filter(belay__load_t *load);
int belay__load_start_lease(belay__load_t *load);
int belay__load_start_begin(belay__load_t *load);
int belay__load_start_limiter(belay__load_t *load);
int belay__load_start_lookup(belay__load_t *load);
int belay__load_start_fill(belay__load_t *load);
int belay__load_start_fail(belay__load_t *load);

/* Subscribes to the channel of stored values of the key, if the load is not subscribed yet. */
void belay__load_subscribe(belay__load_t *load);

/* Cleans up after a load that is OVER: ends its subscription, cancels its request, and closes its
 * lock, which releases the lease. The load is freed when the request has ended and the lock is
 * closed. */
void belay__load_end_steps(belay__load_t *load);

#endif /* BELAY_CACHE_LOAD_STEPS_H */
