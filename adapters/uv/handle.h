/* A libuv handle that the program may close behind belay's back.
 *
 * A program may walk its loop and close every handle, those of belay too. Then the close
 * callback is the program's, and belay does not learn when libuv has released the memory.
 * belay__uv_handle_close() works in both cases. If the handle is already closing, it closes a
 * spare handle twice in a row. libuv runs close callbacks in batches, one per loop iteration.
 * When the second one runs, libuv has released the first handle. */
#ifndef BELAY_UV_HANDLE_H
#define BELAY_UV_HANDLE_H

#include <stdbool.h>
#include <uv.h>

typedef struct belay__uv_handle belay__uv_handle_t;
struct belay__uv_handle {
  union {
    uv_handle_t any;
    uv_poll_t poll;
    uv_timer_t timer;
    uv_idle_t idle;
    uv_prepare_t prepare;
    uv_check_t check;
  } u;             /* First: callbacks cast the handle to this struct */
  uv_idle_t spare; /* Handle that is closed instead of u if u is already closing */
  int turns;
  void (*closed)(belay__uv_handle_t *handle);
  void *data;
};

/* Close the handle. closed() runs from the loop when the memory may be reused. */
void belay__uv_handle_close(belay__uv_handle_t *handle, void (*closed)(belay__uv_handle_t *handle));

#endif /* BELAY_UV_HANDLE_H */
