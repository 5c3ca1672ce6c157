/* The connect limiter: how often a loop's clients dial again after a connection was lost or not to be had, all together. When a
 * server goes, everybody notices at once; whoever takes its place must not be run over.
 *
 * Who wants to dial queues for a turn, and leaves when he does not want to any more: that turn is the next one's. */
#ifndef BELAY_UV_CONNECT_LIMITER_H
#define BELAY_UV_CONNECT_LIMITER_H

#include "core/loop/loop.h"

/* Somebody's place in the queue. */
typedef struct belay__connect_slot {
  belay__list_t node; /* in a queue, or alone */
  void (*come)(struct belay__connect_slot *turn);
} belay__connect_slot_t;

typedef struct belay__connect_limiter {
  belay_t *belay; /* the loop, whose reconnects_per_s is the rate */
  belay__list_t ahead, queue;
  belay__timer_t timer;
  uint64_t until; /* up to when turns are given away */
} belay__connect_limiter_t;

void belay__connect_limiter_init(belay__connect_limiter_t *connect_limiter, belay_t *belay);

void belay__connect_slot_init(belay__connect_slot_t *turn,
                              void (*come)(belay__connect_slot_t *turn));

static inline bool belay__connect_slot_is_awaited(const belay__connect_slot_t *turn) {
  return !belay__list_empty(&turn->node);
}

/* Queues for a turn, also one that is queued already: its come() is called from the loop, once. First come, first served;
 * but whoever is ahead comes before those who are not. */
void belay__connect_limiter_queue(belay__connect_limiter_t *connect_limiter,
                                  belay__connect_slot_t *turn, bool ahead);
/* Takes it out again, also one that is not queued. */
void belay__connect_limiter_leave(belay__connect_limiter_t *connect_limiter,
                                  belay__connect_slot_t *turn);

#endif /* BELAY_UV_CONNECT_LIMITER_H */
