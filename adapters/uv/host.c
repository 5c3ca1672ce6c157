#include "uv/host.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/random.h>
#include <sys/timerfd.h>
#define ALARM_CLOCK CLOCK_BOOTTIME
#else
#define ALARM_CLOCK CLOCK_MONOTONIC
#endif

/* A uv_timer does not run during a suspend. Where it is the alarm, the clock is read at least
 * this often. */
#define TIMER_MAX_MS UINT64_C(1000)

/* ---- forks ---- */

static atomic_uint fork_count;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void on_fork(void) {
  atomic_fetch_add(&fork_count, 1);
}

static void watch_forks(void) {
  pthread_atfork(NULL, NULL, on_fork);
}

static bool host_forked(const belay_t *belay) {
  return ((const belay__host_t *)belay)->fork_count != atomic_load(&fork_count);
}

/* ---- time ---- */

static uint64_t host_now(belay_t *belay) {
  (void)belay;
  struct timespec ts;
  clock_gettime(ALARM_CLOCK, &ts);
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int64_t host_wall_us(belay_t *belay) {
  (void)belay;
  struct timespec ts;
  clock_gettime(CLOCK_REALTIME, &ts);
  return ts.tv_sec < 0 ? 0 : (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void on_timer(uv_timer_t *timer);

static void host_wake_at(belay_t *belay, uint64_t when) {
  belay__host_t *host = (belay__host_t *)belay;
  if (uv_is_closing(&host->alarm.u.any))
    return;
#ifdef __linux__
  if (host->alarm_fd >= 0) {
    struct itimerspec spec = {.it_value = {0, 0}};
    if (when != BELAY__NEVER) {
      spec.it_value.tv_sec = (time_t)(when / 1000000000u);
      spec.it_value.tv_nsec = (long)(when % 1000000000u);
    }
    timerfd_settime(host->alarm_fd, TFD_TIMER_ABSTIME, &spec, NULL);
    return;
  }
#endif
  uint64_t now = host_now(belay);
  uint64_t ms = when > now ? (when - now + BELAY__MS - 1) / BELAY__MS : 0;
  if (when == BELAY__NEVER)
    uv_timer_stop(&host->alarm.u.timer);
  else
    uv_timer_start(&host->alarm.u.timer, on_timer, ms < TIMER_MAX_MS ? ms : TIMER_MAX_MS, 0);
}

static void on_timer(uv_timer_t *timer) {
  belay__host_t *host = timer->data;
  if (!belay__enter(&host->base))
    return;
  host->base.armed = BELAY__NEVER; /* the timer may have fired early: set it again */
  belay__leave(&host->base);
}

#ifdef __linux__
static void on_alarm(uv_poll_t *poll, int status, int events) {
  (void)status;
  (void)events;
  belay__host_t *host = poll->data;
  uint64_t expirations;
  if (host_forked(&host->base)) { /* the alarm belongs to the parent process */
    uv_poll_stop(poll);
    return;
  }
  while (read(host->alarm_fd, &expirations, sizeof expirations) < 0 && errno == EINTR) {
  }
  if (!belay__enter(&host->base))
    return;
  belay__leave(&host->base);
}
#endif

/* ---- turns of the loop ---- */

static void on_idle(uv_idle_t *idle) {
  belay__host_t *host = idle->data;
  uv_idle_stop(idle);
  if (belay__enter(&host->base))
    belay__leave(&host->base);
}

/* After the program has closed the handles of belay, only a new handle can wake the loop for
 * belay. */
static void host_wake_soon(belay_t *belay) {
  belay__host_t *host = (belay__host_t *)belay;
  assert(!host->closing);
  if (!uv_is_closing(&host->idle.u.any)) {
    uv_idle_start(&host->idle.u.idle, on_idle);
    return;
  }
  if (!host->rescued) {
    host->rescued = true;
    host->open_handles++;
    uv_idle_init(host->loop, &host->rescue.u.idle);
    host->rescue.u.idle.data = host;
  }
  if (!uv_is_closing(&host->rescue.u.any))
    uv_idle_start(&host->rescue.u.idle, on_idle);
}

static void host_keep_alive(belay_t *belay, bool on) {
  belay__host_t *host = (belay__host_t *)belay;
  if (uv_is_closing(&host->prepare.u.any))
    return;
  if (on)
    uv_ref(&host->prepare.u.any);
  else
    uv_unref(&host->prepare.u.any);
}

static bool host_dead(const belay_t *belay) {
  const belay__host_t *host = (const belay__host_t *)belay;
  return !host->closing &&
         (uv_is_closing(&host->alarm.u.any) || uv_is_closing(&host->idle.u.any) ||
          uv_is_closing(&host->prepare.u.any) || uv_is_closing(&host->check.u.any));
}

static void run_flushes(belay__host_t *host) {
  if (belay__list_empty(&host->flushes) || !belay__enter(&host->base))
    return;
  for (belay__list_t *node; (node = belay__list_pop(&host->flushes)) != NULL;) {
    belay__flush_t *flush = BELAY__CONTAINER(node, belay__flush_t, node);
    flush->run(flush);
  }
  belay__leave(&host->base);
}

/* The time since the loop woke is a time in which it did not poll. */
static void on_prepare(uv_prepare_t *prepare) {
  belay__host_t *host = prepare->data;
  if (host_forked(&host->base)) { /* the buffered writes belong to the parent process */
    uv_prepare_stop(prepare);
    return;
  }
  run_flushes(host);
  if (!belay__list_empty(&host->flushes) && !host->closing)
    host_wake_soon(&host->base); /* a callback at the end of the flush had more to send */
  host->prepared = true;
  if (host->turn_began != 0) {
    uint64_t gap = host_now(&host->base) - host->turn_began;
    if (gap > host->base.stats.max_gap_ns)
      host->base.stats.max_gap_ns = gap;
    host->turn_began = 0;
  }
}

static void on_check(uv_check_t *check) {
  belay__host_t *host = check->data;
  host->turn_began = host_now(&host->base);
  host->prepared = false;
  host->turns++;
  run_flushes(host);
  if (host->base.tasks_len == 0 && !uv_is_closing(&host->idle.u.any))
    uv_idle_stop(&host->idle.u.idle); /* it only served the flush */
}

/* If a prepare callback of the program runs after ours, the loop would sleep before the flush. */
static void wake_for_flush(belay__host_t *host) {
  if (host->prepared && !host->base.entered)
    host_wake_soon(&host->base);
}

void belay__host_flush_soon(belay__host_t *host, belay__flush_t *flush) {
  if (!belay__list_empty(&flush->node))
    return;
  belay__list_push(&host->flushes, &flush->node);
  wake_for_flush(host);
}

static void host_before_sleep(belay_t *belay, belay__flush_t *flush) {
  belay__host_t *host = (belay__host_t *)belay;
  if (!belay__list_empty(&flush->node))
    return;
  belay__list_push_front(&host->flushes, &flush->node);
  wake_for_flush(host);
}

void belay__host_flush_cancel(belay__flush_t *flush) {
  belay__list_remove(&flush->node);
}

/* ---- random bytes ---- */

/* libuv needs a system call for each 256 bytes. */
static int draw(void *buffer, size_t len) {
#ifdef __linux__
  if (getrandom(buffer, len, 0) == (ssize_t)len)
    return 0;
#endif
  return uv_random(NULL, NULL, buffer, len, 0, NULL) == 0 ? 0 : BELAY_ESYSTEM;
}

static int host_random(belay_t *belay, void *buffer, size_t len) {
  belay__host_t *host = (belay__host_t *)belay;
  if (len > sizeof host->entropy)
    return draw(buffer, len);
  if (host_forked(belay))
    return BELAY_EFORK; /* the buffered bytes belong to the parent process */
  if (host->entropy_left < len) {
    if (draw(host->entropy, sizeof host->entropy) != 0)
      return BELAY_ESYSTEM;
    host->entropy_left = sizeof host->entropy;
  }
  unsigned char *from = host->entropy + sizeof host->entropy - host->entropy_left;
  memcpy(buffer, from, len);
  memset(from, 0, len);
  host->entropy_left -= len;
  return 0;
}

/* ---- opening and closing ---- */

static void on_handle_closed(belay__uv_handle_t *handle) {
  belay__host_t *host = handle->data;
  if (--host->open_handles > 0)
    return;
  if (host->alarm_fd >= 0)
    close(host->alarm_fd);
  belay_allocator_t allocator = host->base.allocator;
  belay__host_closed(&host->base);
  allocator.free(allocator.ctx, host);
}

static void host_close(belay_t *belay) {
  belay__host_t *host = (belay__host_t *)belay;
  belay__uv_handle_t *handles[] = {&host->alarm, &host->idle, &host->prepare, &host->check,
                                   &host->rescue};
  size_t n = host->rescued ? 5 : 4;
  host->closing = true;
  for (size_t i = 0; i < n; i++) {
    handles[i]->data = host;
    belay__uv_handle_close(handles[i], on_handle_closed);
  }
}

static const belay__host_ops_t host_ops = {
    .now = host_now,
    .wall_us = host_wall_us,
    .wake_at = host_wake_at,
    .wake_soon = host_wake_soon,
    .before_sleep = host_before_sleep,
    .keep_alive = host_keep_alive,
    .random = host_random,
    .forked = host_forked,
    .dead = host_dead,
    .close = host_close,
};

/* A timerfd has a precision below 1 ms and fires after a suspend; a uv_timer has neither
 * property. */
static int open_alarm(belay__host_t *host) {
  host->alarm_fd = -1;
#ifdef __linux__
  host->alarm_fd = timerfd_create(ALARM_CLOCK, TFD_CLOEXEC | TFD_NONBLOCK);
  if (host->alarm_fd >= 0) {
    host->alarm.u.poll.data = host;
    if (uv_poll_init(host->loop, &host->alarm.u.poll, host->alarm_fd) == 0) {
      host->alarm.u.poll.data = host;
      return uv_poll_start(&host->alarm.u.poll, UV_READABLE, on_alarm);
    }
    close(host->alarm_fd);
    host->alarm_fd = -1;
  }
#endif
  int error = uv_timer_init(host->loop, &host->alarm.u.timer);
  host->alarm.u.timer.data = host;
  return error;
}

int belay_open(struct uv_loop_s *loop, const belay_options_t *options, belay_t **out) {
  if (out == NULL)
    return BELAY_EINVAL;
  *out = NULL;
  belay_options_t defaults;
  belay_options_init(&defaults);
  const belay_options_t *o = options == NULL ? &defaults : options;
  if (loop == NULL || o->allocator.alloc == NULL || o->allocator.free == NULL ||
      o->reconnects_per_s < 1 || o->reconnects_per_s > 1000000)
    return BELAY_EINVAL;
  pthread_once(&fork_once, watch_forks);
  belay__host_t *host = o->allocator.alloc(o->allocator.ctx, sizeof *host);
  if (host == NULL)
    return BELAY_ENOMEM;
  memset(host, 0, sizeof *host);
  belay__init(&host->base, &host_ops, o);
  host->loop = loop;
  host->fork_count = atomic_load(&fork_count);
  belay__list_init(&host->flushes);
  belay__work_budget_init(&host->work_budget, &host->base, &host->turns);
  belay__connect_limiter_init(&host->connect_limiter, &host->base);
  if (open_alarm(host) != 0) {
    o->allocator.free(o->allocator.ctx, host);
    return BELAY_ESYSTEM;
  }
  uv_idle_init(loop, &host->idle.u.idle);
  uv_prepare_init(loop, &host->prepare.u.prepare);
  uv_check_init(loop, &host->check.u.check);
  host->idle.u.idle.data = host->prepare.u.prepare.data = host->check.u.check.data = host;
  host->open_handles = 4;
  uv_prepare_start(&host->prepare.u.prepare, on_prepare);
  uv_check_start(&host->check.u.check, on_check);
  uv_unref(&host->alarm.u.any);
  uv_unref(&host->prepare.u.any);
  uv_unref(&host->check.u.any);
  *out = &host->base;
  return 0;
}
