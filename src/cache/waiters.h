/* The waiters of a load, and what they get when the load fails. */
#ifndef BELAY_CACHE_WAITERS_H
#define BELAY_CACHE_WAITERS_H

#include "cache/load_state.h"

/* asked: time of the lookup that found nothing. A waiter that asked before LOADING began joins
 * the waiters from before it. */
void belay__load_add_waiter(belay__load_t *load, belay__load_waiter_t *waiter, uint64_t asked_at);
/* NULL: no waiters. */
belay__load_waiter_t *belay__load_first(const belay__load_t *load);

/* Ends the wait without calling waiter->end. */
void belay__load_leave(belay__load_waiter_t *waiter);
/* Ends the wait and calls waiter->end. */
void belay__load_waiter_end(belay__load_waiter_t *waiter, belay__served_t served);

/* What a waiter gets when its time is over; and when nothing better than load->kept will come. */
belay__served_t belay__load_waiter_late(const belay__load_waiter_t *waiter);
belay__served_t belay__load_waiter_fallback(const belay__load_waiter_t *waiter, int reason,
                                            int load_error);

/* Ends the waiters that joined before that turn. */
void belay__load_serve(belay__load_t *load, uint64_t seq, belay__served_t served);
void belay__load_fall_back(belay__load_t *load, uint64_t seq, int reason, int load_error);

/* Takes the result of a lookup, unless the load has the result of a later one: a waiter must not
 * get what was seen before it joined. */
void belay__load_take_lookup(belay__load_t *load, belay__lookup_t *lookup);

#endif /* BELAY_CACHE_WAITERS_H */
