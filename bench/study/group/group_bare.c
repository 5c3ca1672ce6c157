/* Nobody waits: the script that hands a lock over, over and over on one connection, each time when
 * the reply to the last has come (and the hold is over). No lock can be handed over faster by
 * asking the server each time. */
#include "study/bare.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

enum { TOKEN_SIZE = 80 };

typedef struct loop {
  redisAsyncContext *connection;
  uint64_t commands, turn;
  char token[2][TOKEN_SIZE]; /* the one that has it, and the next one, by turns */
} loop_t;

static void name_tokens(loop_t *own, int self) {
  for (unsigned i = 0; i < 2; i++)
    (void)snprintf(own->token[i], TOKEN_SIZE, "%040x:bench-of-belay:%d", 0x5eed + i, self);
}

static void on_set(redisAsyncContext *connection, void *reply, void *waiter) {
  (void)waiter;
  if (reply == NULL || ((redisReply *)reply)->type == REDIS_REPLY_ERROR)
    bench_die("no key could be set: %s", connection->errstr);
}

static void open_loop(group_t *group) {
  loop_t *own = group->own = bench_alloc(1, sizeof *own);
  own->connection = bare_connect(group);
  name_tokens(own, group->self);
  const char *set[] = {"SET", "contended", own->token[0], "PX", "10000"};
  bare_send(own->connection, on_set, &group->waiters[0], 5, set);
}

static void on_passed(redisAsyncContext *connection, void *reply, void *waiter) {
  (void)connection;
  if (reply == NULL) /* the end */
    return;
  if (bare_integer(reply) != 0)
    bench_die("the hand-over script did nothing");
  group_granted(waiter);
}

static void pass(waiter_t *waiter) {
  loop_t *own = waiter->group->own;
  const char *from = own->token[own->turn % 2], *to = own->token[(own->turn + 1) % 2];
  const char *argv[] = {"EVALSHA", waiter->group->scene->job.pass_sha, "1", "contended", from, to,
                        "10000"};
  own->turn++;
  own->commands++;
  bare_send(own->connection, on_passed, waiter, 7, argv);
}

static uint64_t count_commands(const group_t *group) {
  return ((const loop_t *)group->own)->commands;
}

static void close_loop(group_t *group) {
  loop_t *own = group->own;
  redisAsyncFree(own->connection);
  free(own);
}

const group_kind_t group_bare = {
    .open = open_loop,
    .acquire = pass,
    .release = group_released,
    .commands = count_commands,
    .close = close_loop,
};
