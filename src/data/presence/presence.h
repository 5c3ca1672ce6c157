/* Shared by the files of presence: the handle, its keys, and the values of a request. */
#ifndef BELAY_DATA_PRESENCE_PRESENCE_H
#define BELAY_DATA_PRESENCE_PRESENCE_H

#include "belay/presence.h"
#include "core/client/server_time.h"

#define BELAY__PRESENCE_SEGMENT (UINT32_C(1) << 23) /* bits */
#define BELAY__PRESENCE_SEGMENTS 512                /* of 2^32 ids */

struct belay_presence {
  belay__handle_t handle; /* first */
  belay__servertime_t time;
  uint32_t max_id, slices;
  int64_t window_ms, slice_ms, ttl_ms; /* window_ms 0: there are no slices */
};

/* Values of a request: the results so far, the present slice, the next slice. */
enum {
  BELAY__PRESENCE_COUNT, /* first, for belay__request_notify_count() */
  BELAY__PRESENCE_SLICE,
  BELAY__PRESENCE_NEXT
};

/* The last line of an operation: its ops->next sends the calls. */
static inline int belay__presence_go(belay__operation_t *operation) {
  belay_presence_t *presence = operation->context;
  return belay__servertime_begin(&presence->time, &presence->handle, operation,
                                 presence->window_ms != 0);
}

/* Computes the present slice: the first step of every ops->next. */
void belay__presence_settle(belay__operation_t *operation);

static inline uint32_t belay__presence_segments(const belay_presence_t *presence) {
  return presence->max_id / BELAY__PRESENCE_SEGMENT + 1;
}

/* The number of slices that are read: the present one, the earlier ones that count, and the next
 * one, which may be the present one by another clock. Without a window there is one bitmap. */
static inline uint32_t belay__presence_live(const belay_presence_t *presence) {
  return presence->window_ms == 0 ? 1 : presence->slices + 2;
}

/* Adds the key of a segment: of the i-th of those slices. */
void belay__presence_put(const belay_presence_t *presence, belay__call_t *call, int64_t slice,
                         uint32_t i, uint32_t segment);

/* Add the segment in all live slices, and in the slice before them: a process whose clock is late still counts that one.
 * belay__presence_all() is the number of these slices. */
void belay__presence_put_all(const belay_presence_t *presence, belay__call_t *call, int64_t slice,
                             uint32_t segment);
static inline uint32_t belay__presence_all(const belay_presence_t *presence) {
  return belay__presence_live(presence) + (presence->window_ms == 0 ? 0 : 1);
}

#endif /* BELAY_DATA_PRESENCE_PRESENCE_H */
