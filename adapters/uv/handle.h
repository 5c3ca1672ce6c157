/* A libuv handle that may be closed behind our back.
 *
 * A host may walk its loop and close every handle that it finds, ours too; then the close callback is not
 * ours, and nothing tells when libuv has let go of the memory. belay__uv_handle_close() works either way: if the
 * handle is being closed by somebody else already, it closes one of its own twice in a row. libuv runs
 * close callbacks in batches, one for each turn, so when the second is run the first handle is long gone. */
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
  } u;             /* first: a callback's handle is cast to this struct */
  uv_idle_t spare; /* what is closed when u is closing already */
  int turns;
  void (*closed)(belay__uv_handle_t *handle);
  void *data;
};

/* Closes it; closed is called, from the loop, when its memory may be reused. */
void belay__uv_handle_close(belay__uv_handle_t *handle, void (*closed)(belay__uv_handle_t *handle));

#endif /* BELAY_UV_HANDLE_H */
