/* Timers, ordered by a pairing heap inside the timers: setting a timer cannot fail.
 *
 * Nearly all timers are deadlines that are set a constant time ahead and stopped before they are
 * due. In a pairing heap, setting and stopping such a timer take constant time: a later deadline
 * becomes a child of the root, and a childless node is just unlinked. (Fredman, Sedgewick, Sleator,
 * Tarjan: "The pairing heap", 1986.) */
#ifndef BELAY_CORE_LOOP_HEAP_H
#define BELAY_CORE_LOOP_HEAP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct belay__timer belay__timer_t;

struct belay__timer {
  uint64_t when;         /* Time in nanoseconds of the host's clock; 0: not set */
  belay__timer_t *child; /* First timer below this one */
  belay__timer_t *next;  /* Next sibling */
  belay__timer_t *prev;  /* Previous sibling; of a first child: the parent; of the root: NULL */
  void (*fire)(belay__timer_t *timer);
};

typedef struct belay__heap {
  belay__timer_t *root; /* Earliest timer; NULL: none */
} belay__heap_t;

static inline bool belay__timer_is_set(const belay__timer_t *timer) {
  return timer->when != 0;
}

/* Insert a timer that is not set. `when` must not be 0. */
void belay__heap_insert(belay__heap_t *heap, belay__timer_t *timer, uint64_t when);

/* Remove a timer that is set. */
void belay__heap_remove(belay__heap_t *heap, belay__timer_t *timer);

#endif /* BELAY_CORE_LOOP_HEAP_H */
