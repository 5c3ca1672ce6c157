/* A waiter's life, over and over: acquire, hold, release, and at once acquire again. */
#include "study/group/group.h"

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
typedef struct group_clock {
  int fd;
  uv_poll_t hold;
  uv_timer_t phase;
  waiter_t *holder;
  mark_t now, began;
} group_clock_t;

static void note(durations_t *durations, int64_t ns) {
  if (durations->count < SCENE_SAMPLES_MAX)
    durations->ns[durations->count++] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

static void note_wait(waiter_t *waiter, int64_t until) {
  group_t *group = waiter->group;
  int64_t wait = until - waiter->asked;
  if (group->measuring && waiter->asked != 0 && wait > group->result->longest_wait)
    group->result->longest_wait = wait;
}

static void note_grant(waiter_t *waiter) {
  group_t *group = waiter->group;
  scene_t *scene = group->scene;
  mark_t *now = &group->clock->now;
  waiter->granted = bench_now();
  group->result->overlaps += atomic_fetch_add(&scene->inside, 1) != 0;
  now->grants++;
  int releaser = atomic_load(&scene->releaser);
  bool across = releaser != group->self;
  now->changes += releaser >= 0 && across;
  now->passed += releaser >= 0 && (across || atomic_load(&scene->last) != waiter->number);
  note_wait(waiter, waiter->granted);
  waiter->asked = 0;
  if (group->measuring && releaser >= 0)
    note(across ? &group->result->across : &group->result->within,
         waiter->granted - atomic_load(&scene->released));
}

static void note_release(waiter_t *waiter) {
  scene_t *scene = waiter->group->scene;
  int64_t now = bench_now();
  waiter->group->clock->now.held += now - waiter->granted;
  atomic_fetch_sub(&scene->inside, 1);
  atomic_store(&scene->releaser, waiter->group->self);
  atomic_store(&scene->last, waiter->number);
  atomic_store(&scene->released, now);
}

static int64_t cpu_time(void) {
  struct rusage r;
  getrusage(RUSAGE_SELF, &r);
  return ((int64_t)r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000000 +
         ((int64_t)r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1000;
}

static mark_t take_mark(const group_t *group) {
  mark_t mark = group->clock->now;
  mark.time = bench_now();
  mark.cpu = cpu_time();
  mark.commands = group->kind->commands(group);
  return mark;
}

static void query(waiter_t *waiter) {
  waiter->asked = bench_now();
  waiter->group->kind->acquire(waiter);
}

static void let_go(waiter_t *waiter) {
  note_release(waiter);
  waiter->group->kind->release(waiter);
}

static void on_held(uv_poll_t *poll, int status, int events) {
  group_clock_t *clock = ((group_t *)poll->data)->clock;
  waiter_t *holder = clock->holder;
  uint64_t fired;
  (void)status, (void)events;
  if (read(clock->fd, &fired, sizeof fired) != sizeof fired || holder == NULL)
    return;
  clock->holder = NULL;
  let_go(holder);
}

void group_granted(waiter_t *waiter) {
  group_t *group = waiter->group;
  if (group->over)
    return;
  note_grant(waiter);
  int64_t hold = group->scene->job.hold;
  if (hold == 0) {
    let_go(waiter);
    return;
  }
  struct itimerspec in = {.it_value = {hold / 1000000000, hold % 1000000000}};
  group->clock->holder = waiter;
  if (timerfd_settime(group->clock->fd, 0, &in, NULL) != 0)
    bench_die("a timer cannot be set: %s", strerror(errno));
}

void group_released(waiter_t *waiter) {
  if (!waiter->group->over)
    query(waiter);
}

void group_lost(waiter_t *waiter) {
  waiter->group->result->losses++;
}

static void finish(group_t *group) {
  mark_t end = take_mark(group), began = group->clock->began;
  result_t *r = group->result;
  r->grants = end.grants - began.grants;
  r->commands = end.commands - began.commands;
  r->passed = end.passed - began.passed;
  r->changes = end.changes - began.changes;
  r->elapsed = end.time - began.time;
  r->held = end.held - began.held;
  r->cpu = end.cpu - began.cpu;
  for (unsigned i = 0; i < group->scene->job.waiters; i++)
    note_wait(&group->waiters[i], end.time);
  group->over = true;
  group->measuring = false;
  uv_close((uv_handle_t *)&group->clock->phase, NULL);
  if (group->clock->fd >= 0)
    uv_close((uv_handle_t *)&group->clock->hold, NULL);
  group->kind->close(group);
}

static void wake_at(group_t *group, int64_t when);

static void on_phase(uv_timer_t *timer) {
  group_t *group = timer->data;
  if (group->measuring) {
    finish(group);
    return;
  }
  group->measuring = true;
  group->clock->began = take_mark(group);
  wake_at(group, group->scene->end);
}

static void wake_at(group_t *group, int64_t when) {
  int64_t left = when - bench_now();
  uv_timer_start(&group->clock->phase, on_phase, left > 0 ? (uint64_t)left / 1000000 : 0, 0);
}

static void open_clock(group_t *group, group_clock_t *clock) {
  group->clock = clock;
  *clock = (group_clock_t){.fd = -1};
  uv_timer_init(&group->loop, &clock->phase);
  clock->phase.data = group;
  if (group->scene->job.hold == 0)
    return;
  clock->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (clock->fd < 0 || uv_poll_init(&group->loop, &clock->hold, clock->fd) != 0)
    bench_die("no timer: %s", strerror(errno));
  clock->hold.data = group;
  uv_poll_start(&clock->hold, UV_READABLE, on_held);
}

static const group_kind_t *kind_of(const job_t *job) {
  switch (job->group) {
  case GROUP_BARE:
    return &group_bare;
  case GROUP_BELAY:
    return &group_belay;
  case GROUP_NAIVE:
    return &group_naive;
  }
  bench_die("no such group");
}

void group_run(scene_t *scene, int self) {
  group_clock_t clock;
  group_t group = {
      .kind = kind_of(&scene->job), .scene = scene, .result = &scene->results[self], .self = self};
  unsigned n = scene->job.waiters;
  if (uv_loop_init(&group.loop) != 0)
    bench_die("no loop");
  open_clock(&group, &clock);
  group.waiters = bench_alloc(n, sizeof *group.waiters);
  for (unsigned i = 0; i < n; i++)
    group.waiters[i] = (waiter_t){.group = &group, .number = i};
  group.kind->open(&group);
  for (unsigned i = 0; i < n; i++)
    query(&group.waiters[i]);
  uv_update_time(&group.loop);
  wake_at(&group, scene->begin);
  uv_run(&group.loop, UV_RUN_DEFAULT);
  if (uv_loop_close(&group.loop) != 0)
    bench_die("something is left in the loop");
  if (clock.fd >= 0)
    close(clock.fd);
  free(group.waiters);
}
