/* A waiter's life, over and over: acquire, hold, release, and at once acquire again. */
#include "study/crowd/crowd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bench.h"

/* Where everything stood at one time. */
typedef struct mark {
  int64_t time, cpu, held;
  uint64_t grants, passed, commands, changes;
} mark_t;

/* Counters and clocks. The hold is timed by the kernel's fine clock, because the milliseconds of
 * libuv's timers would make a hold of 1 ms last 1 to 2 ms. */
typedef struct crowd_clock {
  int fd;
  uv_poll_t hold;
  uv_timer_t phase;
  waiter_t *holder;
  mark_t now, began;
} crowd_clock_t;

static void note(durations_t *durations, int64_t ns) {
  if (durations->count < SCENE_SAMPLES_MAX)
    durations->ns[durations->count++] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

static void note_wait(waiter_t *waiter, int64_t until) {
  crowd_t *crowd = waiter->crowd;
  int64_t wait = until - waiter->asked;
  if (crowd->measuring && waiter->asked != 0 && wait > crowd->result->longest_wait)
    crowd->result->longest_wait = wait;
}

static void note_grant(waiter_t *waiter) {
  crowd_t *crowd = waiter->crowd;
  scene_t *scene = crowd->scene;
  mark_t *now = &crowd->clock->now;
  waiter->granted = bench_now();
  crowd->result->overlaps += atomic_fetch_add(&scene->inside, 1) != 0;
  now->grants++;
  int releaser = atomic_load(&scene->releaser);
  bool across = releaser != crowd->self;
  now->changes += releaser >= 0 && across;
  now->passed += releaser >= 0 && (across || atomic_load(&scene->last) != waiter->number);
  note_wait(waiter, waiter->granted);
  waiter->asked = 0;
  if (crowd->measuring && releaser >= 0)
    note(across ? &crowd->result->across : &crowd->result->within,
         waiter->granted - atomic_load(&scene->released));
}

static void note_release(waiter_t *waiter) {
  scene_t *scene = waiter->crowd->scene;
  int64_t now = bench_now();
  waiter->crowd->clock->now.held += now - waiter->granted;
  atomic_fetch_sub(&scene->inside, 1);
  atomic_store(&scene->releaser, waiter->crowd->self);
  atomic_store(&scene->last, waiter->number);
  atomic_store(&scene->released, now);
}

static int64_t cpu_time(void) {
  struct rusage r;
  getrusage(RUSAGE_SELF, &r);
  return ((int64_t)r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000000 +
         ((int64_t)r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1000;
}

static mark_t take_mark(const crowd_t *crowd) {
  mark_t mark = crowd->clock->now;
  mark.time = bench_now();
  mark.cpu = cpu_time();
  mark.commands = crowd->kind->commands(crowd);
  return mark;
}

static void query(waiter_t *waiter) {
  waiter->asked = bench_now();
  waiter->crowd->kind->acquire(waiter);
}

static void let_go(waiter_t *waiter) {
  note_release(waiter);
  waiter->crowd->kind->release(waiter);
}

static void on_held(uv_poll_t *poll, int status, int events) {
  crowd_clock_t *clock = ((crowd_t *)poll->data)->clock;
  waiter_t *holder = clock->holder;
  uint64_t fired;
  (void)status, (void)events;
  if (read(clock->fd, &fired, sizeof fired) != sizeof fired || holder == NULL)
    return;
  clock->holder = NULL;
  let_go(holder);
}

void crowd_granted(waiter_t *waiter) {
  crowd_t *crowd = waiter->crowd;
  if (crowd->over)
    return;
  note_grant(waiter);
  int64_t hold = crowd->scene->job.hold;
  if (hold == 0) {
    let_go(waiter);
    return;
  }
  struct itimerspec in = {.it_value = {hold / 1000000000, hold % 1000000000}};
  crowd->clock->holder = waiter;
  if (timerfd_settime(crowd->clock->fd, 0, &in, NULL) != 0)
    bench_die("a timer cannot be set: %s", strerror(errno));
}

void crowd_released(waiter_t *waiter) {
  if (!waiter->crowd->over)
    query(waiter);
}

void crowd_lost(waiter_t *waiter) {
  waiter->crowd->result->losses++;
}

static void finish(crowd_t *crowd) {
  mark_t end = take_mark(crowd), began = crowd->clock->began;
  result_t *r = crowd->result;
  r->grants = end.grants - began.grants;
  r->commands = end.commands - began.commands;
  r->passed = end.passed - began.passed;
  r->changes = end.changes - began.changes;
  r->elapsed = end.time - began.time;
  r->held = end.held - began.held;
  r->cpu = end.cpu - began.cpu;
  for (unsigned i = 0; i < crowd->scene->job.waiters; i++)
    note_wait(&crowd->waiters[i], end.time);
  crowd->over = true;
  crowd->measuring = false;
  uv_close((uv_handle_t *)&crowd->clock->phase, NULL);
  if (crowd->clock->fd >= 0)
    uv_close((uv_handle_t *)&crowd->clock->hold, NULL);
  crowd->kind->close(crowd);
}

static void wake_at(crowd_t *crowd, int64_t when);

static void on_phase(uv_timer_t *timer) {
  crowd_t *crowd = timer->data;
  if (crowd->measuring) {
    finish(crowd);
    return;
  }
  crowd->measuring = true;
  crowd->clock->began = take_mark(crowd);
  wake_at(crowd, crowd->scene->end);
}

static void wake_at(crowd_t *crowd, int64_t when) {
  int64_t left = when - bench_now();
  uv_timer_start(&crowd->clock->phase, on_phase, left > 0 ? (uint64_t)left / 1000000 : 0, 0);
}

static void open_clock(crowd_t *crowd, crowd_clock_t *clock) {
  crowd->clock = clock;
  *clock = (crowd_clock_t){.fd = -1};
  uv_timer_init(&crowd->loop, &clock->phase);
  clock->phase.data = crowd;
  if (crowd->scene->job.hold == 0)
    return;
  clock->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (clock->fd < 0 || uv_poll_init(&crowd->loop, &clock->hold, clock->fd) != 0)
    bench_die("no timer: %s", strerror(errno));
  clock->hold.data = crowd;
  uv_poll_start(&clock->hold, UV_READABLE, on_held);
}

static const crowd_kind_t *kind_of(const job_t *job) {
  switch (job->crowd) {
  case CROWD_BARE:
    return &crowd_bare;
  case CROWD_BELAY:
    return &crowd_belay;
  case CROWD_NAIVE:
    return &crowd_naive;
  }
  bench_die("no such crowd");
}

void crowd_run(scene_t *scene, int self) {
  crowd_clock_t clock;
  crowd_t crowd = {
      .kind = kind_of(&scene->job), .scene = scene, .result = &scene->results[self], .self = self};
  unsigned n = scene->job.waiters;
  if (uv_loop_init(&crowd.loop) != 0)
    bench_die("no loop");
  open_clock(&crowd, &clock);
  crowd.waiters = bench_alloc(n, sizeof *crowd.waiters);
  for (unsigned i = 0; i < n; i++)
    crowd.waiters[i] = (waiter_t){.crowd = &crowd, .number = i};
  crowd.kind->open(&crowd);
  for (unsigned i = 0; i < n; i++)
    query(&crowd.waiters[i]);
  uv_update_time(&crowd.loop);
  wake_at(&crowd, scene->begin);
  uv_run(&crowd.loop, UV_RUN_DEFAULT);
  if (uv_loop_close(&crowd.loop) != 0)
    bench_die("something is left in the loop");
  if (clock.fd >= 0)
    close(clock.fd);
  free(crowd.waiters);
}
