#include "study/bare.h"

#include <hiredis/adapters/libuv.h>

#include "bench.h"

static void on_connected(const redisAsyncContext *connection, int status) {
  if (status != REDIS_OK)
    bench_die("cannot connect: %s", connection->errstr);
}

redisAsyncContext *bare_connect(group_t *group) {
  redisAsyncContext *connection = redisAsyncConnectUnix(group->scene->path);
  if (connection == NULL || connection->err != 0)
    bench_die("cannot connect: %s", connection != NULL ? connection->errstr : "out of memory");
  if (redisLibuvAttach(connection, &group->loop) != REDIS_OK)
    bench_die("cannot attach hiredis to libuv");
  redisAsyncSetConnectCallback(connection, on_connected);
  return connection;
}

void bare_send(redisAsyncContext *connection, redisCallbackFn *function, waiter_t *waiter, int argc,
               const char **argv) {
  if (redisAsyncCommandArgv(connection, function, waiter, argc, argv, NULL) != REDIS_OK)
    bench_die("cannot send: %s", connection->errstr);
}

long long bare_integer(const redisReply *reply) {
  if (reply->type != REDIS_REPLY_INTEGER)
    bench_die("an unexpected reply: %s", reply->str != NULL ? reply->str : "?");
  return reply->integer;
}
