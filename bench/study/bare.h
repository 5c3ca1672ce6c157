/* hiredis alone, on libuv with its stock adapter: a program without belay. */
#ifndef BENCH_BARE_H
#define BENCH_BARE_H

#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <uv.h>

#include "study/group/group.h"

/* A connection to the scene's server on the group's loop. */
redisAsyncContext *bare_connect(group_t *group);

/* Sends words as they are; the function is called with waiter as its data. */
void bare_send(redisAsyncContext *connection, redisCallbackFn *function, waiter_t *waiter, int argc,
               const char **argv);

/* The reply is an integer, or the program ends. */
long long bare_integer(const redisReply *reply);

#endif /* BENCH_BARE_H */
