/* Connect limiter: one limit for the connects of all clients of a loop, after a connection was
 * lost or could not be made. When a server fails, all clients notice in the same moment. The
 * limit keeps them from overloading the server that replaces it.
 *
 * A connection queues for a slot before it connects. If it leaves the queue, its slot goes to
 * the next one. */
#ifndef BELAY_UV_CONNECT_LIMITER_H
#define BELAY_UV_CONNECT_LIMITER_H

#include "core/loop/loop.h"

/* One entry of the queue. */
typedef struct belay__connect_slot {
  belay__list_t node; /* Link in one of the queues; unlinked: not queued */
  void (*come)(struct belay__connect_slot *turn);
} belay__connect_slot_t;

typedef struct belay__connect_limiter {
  belay_t *belay; /* The loop. Its reconnects_per_s is the rate */
  belay__list_t ahead, queue;
  belay__timer_t timer;
  uint64_t until; /* Time up to which slots are given away, in nanoseconds */
} belay__connect_limiter_t;

void belay__connect_limiter_init(belay__connect_limiter_t *connect_limiter, belay_t *belay);

void belay__connect_slot_init(belay__connect_slot_t *turn,
                              void (*come)(belay__connect_slot_t *turn));

static inline bool belay__connect_slot_is_awaited(const belay__connect_slot_t *turn) {
  return !belay__list_empty(&turn->node);
}

/* Queue for a slot; no effect if already queued. The limiter calls come() once, from the loop.
 * Slots are given first come, first served; entries with `ahead` come before all others. */
void belay__connect_limiter_queue(belay__connect_limiter_t *connect_limiter,
                                  belay__connect_slot_t *turn, bool ahead);
/* Leave the queue; no effect if not queued. */
void belay__connect_limiter_leave(belay__connect_limiter_t *connect_limiter,
                                  belay__connect_slot_t *turn);

#endif /* BELAY_UV_CONNECT_LIMITER_H */
