/* Waiters of a load, and their results when the load fails. */
#ifndef BELAY_CACHE_WAITERS_H
#define BELAY_CACHE_WAITERS_H

#include "cache/load_state.h"

/* Adds a waiter. begun_at: host time at which the waiter's get began. If that was before LOADING
 * began, the running load serves the waiter. */
void belay__load_add_waiter(belay__load_t *load, belay__load_waiter_t *waiter, uint64_t begun_at);
/* Returns the first waiter, or NULL. */
belay__load_waiter_t *belay__load_first(const belay__load_t *load);

/* Ends the wait without calling waiter->end. */
void belay__load_leave(belay__load_waiter_t *waiter);
/* Ends the wait and calls waiter->end. */
void belay__load_waiter_end(belay__load_waiter_t *waiter, belay__served_t served);

/* Make the result of a waiter that gets no new value. belay__load_waiter_late(): its time is over.
 * belay__load_waiter_fallback(): load->fallback, or `reason` as the status if there is no usable
 * fallback. */
belay__served_t belay__load_waiter_late(const belay__load_waiter_t *waiter);
belay__served_t belay__load_waiter_fallback(const belay__load_waiter_t *waiter, int reason,
                                            int load_error);

/* End the waiters with a sequence number less than seq; UINT64_MAX: all. belay__load_serve() gives
 * them this result, belay__load_fall_back() that of belay__load_waiter_fallback(). */
void belay__load_serve(belay__load_t *load, uint64_t seq, belay__served_t served);
void belay__load_fall_back(belay__load_t *load, uint64_t seq, int reason, int load_error);

/* Moves the record and the id of a lookup to load->fallback and load->seen_id, unless the load
 * has those of a later lookup: a waiter must not get a record that was read before the waiter
 * joined. */
void belay__load_take_lookup(belay__load_t *load, belay__lookup_t *lookup);

#endif /* BELAY_CACHE_WAITERS_H */
