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
  void (*on_slot)(struct belay__connect_slot *slot); /* The connection may connect now */
} belay__connect_slot_t;

typedef struct belay__connect_limiter {
  belay_t *belay; /* The loop. Its reconnects_per_s is the rate */
  belay__list_t ahead, queue;
  belay__timer_t timer;
  uint64_t until; /* Time up to which slots are given away, in nanoseconds */
} belay__connect_limiter_t;

void belay__connect_limiter_init(belay__connect_limiter_t *limiter, belay_t *belay);

void belay__connect_slot_init(belay__connect_slot_t *slot,
                              void (*on_slot)(belay__connect_slot_t *slot));

static inline bool belay__connect_slot_is_awaited(const belay__connect_slot_t *slot) {
  return !belay__list_empty(&slot->node);
}

/* Queue for a slot; no effect if already queued. The limiter calls on_slot() once, from the loop.
 * Slots are given in the order of the queue; entries with `ahead` precede all others. */
void belay__connect_limiter_queue(belay__connect_limiter_t *limiter, belay__connect_slot_t *slot,
                                  bool ahead);
/* Leave the queue; no effect if not queued. */
void belay__connect_limiter_leave(belay__connect_limiter_t *limiter, belay__connect_slot_t *slot);

#endif /* BELAY_UV_CONNECT_LIMITER_H */
