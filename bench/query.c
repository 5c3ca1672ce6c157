#include "query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

redisReply *query(redisContext *server, int type, int argc, const char **argv) {
  redisReply *reply = redisCommandArgv(server, argc, argv, NULL);
  if (reply == NULL)
    bench_die("no reply to %s: %s", argv[0], server->errstr);
  if (reply->type != type)
    bench_die("unexpected reply to %s: %s", argv[0], reply->str != NULL ? reply->str : "?");
  return reply;
}

void query_flush(redisContext *server) {
  const char *argv[] = {"FLUSHALL"};
  freeReplyObject(query(server, REDIS_REPLY_STATUS, 1, argv));
}

void query_kill_others(redisContext *server) {
  const char *argv[] = {"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"};
  freeReplyObject(query(server, REDIS_REPLY_INTEGER, 6, argv));
}

void query_load_script(redisContext *server, const char *script, char sha[QUERY_SHA_SIZE]) {
  const char *argv[] = {"SCRIPT", "LOAD", script};
  redisReply *reply = query(server, REDIS_REPLY_STRING, 3, argv);
  (void)snprintf(sha, QUERY_SHA_SIZE, "%s", reply->str);
  freeReplyObject(reply);
}

/* Valkey reports both: the compatible version of Redis, and its own. */
void query_version(redisContext *server, char version[QUERY_VERSION_SIZE]) {
  static const char *const names[][2] = {{"valkey_version:", "Valkey"},
                                         {"redis_version:", "Redis"}};
  const char *argv[] = {"INFO", "server"}, *at = NULL;
  redisReply *reply = query(server, REDIS_REPLY_STRING, 2, argv);
  (void)snprintf(version, QUERY_VERSION_SIZE, "?");
  for (size_t i = 0; i < sizeof names / sizeof *names && at == NULL; i++) {
    at = strstr(reply->str, names[i][0]);
    if (at != NULL) {
      at += strlen(names[i][0]);
      (void)snprintf(version, QUERY_VERSION_SIZE, "%s %.*s", names[i][1], (int)strcspn(at, "\r\n"),
                     at);
    }
  }
  freeReplyObject(reply);
}

double info_number(const char *info, const char *name) {
  const char *at = strstr(info, name);
  if (at == NULL)
    bench_die("a server's INFO has no %s", name);
  return strtod(at + strlen(name), NULL);
}
