/* The host on a libuv loop. */
#ifndef BELAY_UV_HOST_H
#define BELAY_UV_HOST_H

#include <uv.h>

#include "core/loop/loop.h"
#include "uv/work_budget.h"
#include "uv/handle.h"
#include "uv/connect_limiter.h"

struct belay_tls;

#define BELAY__HOST_ENTROPY 4096

typedef struct belay__host {
  belay_t base; /* First */
  uv_loop_t *loop;
  belay__uv_handle_t alarm; /* A timerfd on CLOCK_BOOTTIME, or a uv_timer where there is none */
  belay__uv_handle_t idle;  /* For wake_soon: makes the loop iterate without sleeping */
  belay__uv_handle_t prepare, check;
  belay__uv_handle_t rescue; /* For wake_soon, after the program has closed the other handles */
  bool rescued, closing;
  bool prepared; /* true between the prepare callback and the check callback of belay */
  int alarm_fd;  /* The timerfd; -1: the alarm is a uv_timer */
  unsigned open_handles;
  belay__list_t flushes;
  belay__work_budget_t work_budget;
  belay__connect_limiter_t connect_limiter;
  /* TLS settings of clients that were created without any; NULL: no such client */
  struct belay_tls *system_tls;
  uint64_t turns;      /* Number of loop iterations, counted at the check callback */
  uint64_t turn_began; /* Time at which the loop last woke; 0: it has slept since */
  unsigned fork_count; /* Number of forks before the host was opened */
  size_t entropy_left;
  unsigned char entropy[BELAY__HOST_ENTROPY];
} belay__host_t;

/* Queue a flush; no effect if already queued. */
void belay__host_flush_soon(belay__host_t *host, belay__flush_t *flush);
void belay__host_flush_cancel(belay__flush_t *flush);

#endif /* BELAY_UV_HOST_H */
