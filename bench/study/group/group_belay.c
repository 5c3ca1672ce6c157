/* Waiters that use belay: a lock each, one client for all of a process. */
#include "study/group/group.h"

#include <belay.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

typedef struct belays {
  belay_t *belay;
  belay_client_t *client;
} belays_t;

static void must(int status, const char *what) {
  if (status != 0)
    bench_die("%s: %s", what, belay_strerror(status));
}

static void on_lost(belay_lock_t *lock, belay_lost_t reason) {
  (void)reason;
  group_lost(belay_lock_data(lock));
}

static void on_released(belay_lock_t *lock, int status) {
  waiter_t *waiter = belay_lock_data(lock);
  if (!waiter->group->over)
    must(status, "release");
  group_released(waiter);
}

static void on_acquired(belay_lock_t *lock, int status) {
  waiter_t *waiter = belay_lock_data(lock);
  if (waiter->group->over)
    return;
  must(status, "acquire");
  group_granted(waiter);
}

static void acquire_lock(waiter_t *waiter) {
  must(belay_lock_acquire(waiter->own, BELAY_FOREVER, on_acquired), "acquire");
}

static void release_lock(waiter_t *waiter) {
  must(belay_lock_release(waiter->own, BELAY_DEFAULT, on_released), "release");
}

static void open_locks(group_t *group) {
  char url[160];
  belays_t *own = group->own = bench_alloc(1, sizeof *own);
  (void)snprintf(url, sizeof url, "unix://%s", group->scene->path);
  must(belay_open(&group->loop, NULL, &own->belay), "open");
  must(belay_connect(own->belay, url, NULL, &own->client), "connect");
  for (unsigned i = 0; i < group->scene->job.waiters; i++) {
    belay_lock_t *lock;
    belay_lock_options_t options;
    belay_lock_options_init(&options);
    options.wakeup = group->scene->job.poll ? BELAY_WAKE_POLL : BELAY_WAKE_NOTIFY;
    options.on_lost = on_lost;
    options.data = &group->waiters[i];
    must(belay_lock_new(own->client, belay_string("contended"), &options, &lock), "lock");
    group->waiters[i].own = lock;
  }
}

static uint64_t count_commands(const group_t *group) {
  belay_client_stats_t stats;
  belay_client_stats(((belays_t *)group->own)->client, &stats);
  return stats.commands;
}

static void on_closed(belay_t *belay, void *data) {
  (void)belay;
  free(data);
}

static void close_locks(group_t *group) {
  belays_t *own = group->own;
  belay_set_data(own->belay, own);
  must(belay_close(own->belay, on_closed), "close");
}

const group_kind_t group_belay = {
    .open = open_locks,
    .acquire = acquire_lock,
    .release = release_lock,
    .commands = count_commands,
    .close = close_locks,
};
