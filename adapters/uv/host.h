/* The host on a libuv loop. */
#ifndef BELAY_UV_HOST_H
#define BELAY_UV_HOST_H

#include <uv.h>

#include "core/loop/loop.h"
#include "uv/work_budget.h"
#include "uv/handle.h"
#include "uv/connect_limiter.h"

/* Something that wants to be run before the loop sleeps and right after it has woken: a batch of writes. */
typedef struct belay__flush {
  belay__list_t node;
  void (*run)(struct belay__flush *flush);
} belay__flush_t;

struct belay_tls;

#define BELAY__HOST_ENTROPY 4096

typedef struct belay__host {
  belay_t base; /* first */
  uv_loop_t *loop;
  belay__uv_handle_t alarm; /* a timerfd on CLOCK_BOOTTIME, or a uv_timer where there is none */
  belay__uv_handle_t idle;  /* wake_soon: makes the loop turn without sleeping */
  belay__uv_handle_t prepare, check;
  belay__uv_handle_t rescue; /* wake_soon, once somebody has closed the others */
  bool rescued, closing;
  bool prepared; /* our prepare has run, and our check has not yet */
  int alarm_fd;  /* -1: a uv_timer */
  unsigned open_handles;
  belay__list_t flushes;
  belay__work_budget_t work_budget;
  belay__connect_limiter_t connect_limiter;
  struct belay_tls *system_tls; /* of the clients that were given none; NULL: there are none */
  uint64_t turns;               /* how often the loop has looked at its sockets */
  uint64_t turn_began;          /* when the loop last woke; 0: not since it last slept */
  unsigned fork_count;          /* of the process that opened it */
  size_t entropy_left;
  unsigned char entropy[BELAY__HOST_ENTROPY];
} belay__host_t;

/* Queues a flush, also one that is queued already. */
void belay__host_flush_soon(belay__host_t *host, belay__flush_t *flush);
void belay__host_flush_cancel(belay__flush_t *flush);

#endif /* BELAY_UV_HOST_H */
