#include "ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

redisReply *ask(redisContext *server, int type, int argc, const char **argv) {
  redisReply *reply = redisCommandArgv(server, argc, argv, NULL);
  if (reply == NULL)
    bench_die("a server does not answer %s: %s", argv[0], server->errstr);
  if (reply->type != type)
    bench_die("a server answers %s with: %s", argv[0], reply->str != NULL ? reply->str : "?");
  return reply;
}

void ask_to_forget(redisContext *server) {
  const char *argv[] = {"FLUSHALL"};
  freeReplyObject(ask(server, REDIS_REPLY_STATUS, 1, argv));
}

void ask_to_hang_up(redisContext *server) {
  const char *argv[] = {"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"};
  freeReplyObject(ask(server, REDIS_REPLY_INTEGER, 6, argv));
}

void ask_to_learn(redisContext *server, const char *script, char sha[ASK_SHA_SIZE]) {
  const char *argv[] = {"SCRIPT", "LOAD", script};
  redisReply *reply = ask(server, REDIS_REPLY_STRING, 3, argv);
  (void)snprintf(sha, ASK_SHA_SIZE, "%s", reply->str);
  freeReplyObject(reply);
}

/* Valkey says both: the Redis that it is like, and its own. */
void ask_version(redisContext *server, char version[ASK_VERSION_SIZE]) {
  static const char *const names[][2] = {{"valkey_version:", "Valkey"},
                                         {"redis_version:", "Redis"}};
  const char *argv[] = {"INFO", "server"}, *at = NULL;
  redisReply *reply = ask(server, REDIS_REPLY_STRING, 2, argv);
  (void)snprintf(version, ASK_VERSION_SIZE, "?");
  for (size_t i = 0; i < sizeof names / sizeof *names && at == NULL; i++) {
    at = strstr(reply->str, names[i][0]);
    if (at != NULL) {
      at += strlen(names[i][0]);
      (void)snprintf(version, ASK_VERSION_SIZE, "%s %.*s", names[i][1], (int)strcspn(at, "\r\n"),
                     at);
    }
  }
  freeReplyObject(reply);
}

double info_number(const char *info, const char *name) {
  const char *at = strstr(info, name);
  if (at == NULL)
    bench_die("a server does not say %s", name);
  return strtod(at + strlen(name), NULL);
}
