/* One question to a server, and its answer: the program ends unless that is as it should be. */
#ifndef BENCH_ASK_H
#define BENCH_ASK_H

#include <hiredis/hiredis.h>
#include <stddef.h>

enum { ASK_SHA_SIZE = 41, ASK_VERSION_SIZE = 32 };

/* Waits for a reply of that type (REDIS_REPLY_...): to be freed. */
redisReply *ask(redisContext *server, int type, int argc, const char **argv);

/* Forgets all keys. */
void ask_to_forget(redisContext *server);

/* Ends all connections to it but this one. */
void ask_to_hang_up(redisContext *server);

/* Teaches it a script. */
void ask_to_learn(redisContext *server, const char *script, char sha[ASK_SHA_SIZE]);

/* Redis or Valkey, and which version of it. */
void ask_version(redisContext *server, char version[ASK_VERSION_SIZE]);

/* A number in an INFO; name ends with its colon. */
double info_number(const char *info, const char *name);

#endif /* BENCH_ASK_H */
