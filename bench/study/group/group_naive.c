/* Waiters as most programs have them: SET NX PX, and again after a fixed time; released by
 * compare-and-delete. All of a process share one connection. */
#include "study/bare.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

typedef struct asker {
  uv_timer_t timer;
  uint64_t turn;
  char token[64];
} asker_t;

typedef struct askers {
  redisAsyncContext *connection;
  uint64_t commands;
  unsigned timers; /* that are open */
  asker_t *asker;
} askers_t;

static void query(waiter_t *waiter);

static void on_time(uv_timer_t *timer) {
  query(timer->data);
}

static void on_asked(redisAsyncContext *connection, void *data, void *waiter_data) {
  const redisReply *reply = data;
  waiter_t *waiter = waiter_data;
  (void)connection;
  if (reply == NULL || waiter->group->over)
    return;
  if (reply->type == REDIS_REPLY_ERROR)
    bench_die("SET: %s", reply->str);
  if (reply->type != REDIS_REPLY_NIL)
    group_granted(waiter);
  else
    uv_timer_start(waiter->own, on_time, waiter->group->scene->job.interval_ms, 0);
}

static void query(waiter_t *waiter) {
  askers_t *own = waiter->group->own;
  asker_t *asker = &own->asker[waiter->number];
  const char *argv[] = {"SET", "contended", asker->token, "NX", "PX", "10000"};
  own->commands++;
  bare_send(own->connection, on_asked, waiter, 6, argv);
}

static void begin(waiter_t *waiter) {
  askers_t *own = waiter->group->own;
  asker_t *asker = &own->asker[waiter->number];
  (void)snprintf(asker->token, sizeof asker->token, "%d:%u:%llu", waiter->group->self,
                 waiter->number, (unsigned long long)asker->turn++);
  query(waiter);
}

static void on_deleted(redisAsyncContext *connection, void *reply, void *waiter) {
  (void)connection;
  if (reply == NULL)
    return;
  if (bare_integer(reply) != 1)
    bench_die("the lock was gone when it was released");
  group_released(waiter);
}

static void delete_key(waiter_t *waiter) {
  askers_t *own = waiter->group->own;
  const char *argv[] = {"EVALSHA", waiter->group->scene->job.delete_sha, "1", "contended",
                        own->asker[waiter->number].token};
  own->commands++;
  bare_send(own->connection, on_deleted, waiter, 5, argv);
}

static void open_askers(group_t *group) {
  unsigned n = group->scene->job.waiters;
  askers_t *own = group->own = bench_alloc(1, sizeof *own);
  own->connection = bare_connect(group);
  own->asker = bench_alloc(n, sizeof *own->asker);
  own->timers = n;
  for (unsigned i = 0; i < n; i++) {
    uv_timer_init(&group->loop, &own->asker[i].timer);
    own->asker[i].timer.data = &group->waiters[i];
    group->waiters[i].own = &own->asker[i].timer;
  }
}

static uint64_t count_commands(const group_t *group) {
  return ((const askers_t *)group->own)->commands;
}

static void on_timer_closed(uv_handle_t *handle) {
  const waiter_t *waiter = handle->data;
  askers_t *own = waiter->group->own;
  if (--own->timers > 0)
    return;
  free(own->asker);
  free(own);
}

static void close_askers(group_t *group) {
  askers_t *own = group->own;
  redisAsyncFree(own->connection);
  for (unsigned i = 0; i < group->scene->job.waiters; i++)
    uv_close((uv_handle_t *)&own->asker[i].timer, on_timer_closed);
}

const group_kind_t group_naive = {
    .open = open_askers,
    .acquire = begin,
    .release = delete_key,
    .commands = count_commands,
    .close = close_askers,
};
