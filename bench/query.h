/* One command to a server, and its reply. The program ends if the reply has another type. */
#ifndef BENCH_QUERY_H
#define BENCH_QUERY_H

#include <hiredis/hiredis.h>
#include <stddef.h>

enum { QUERY_SHA_SIZE = 41, QUERY_VERSION_SIZE = 32 };

/* Return the reply, which the caller frees. type: REDIS_REPLY_... */
redisReply *query(redisContext *server, int type, int argc, const char **argv);

/* Delete all keys. */
void query_flush(redisContext *server);

/* End all other connections of clients. */
void query_kill_others(redisContext *server);

/* Load a script. */
void query_load_script(redisContext *server, const char *script, char sha[QUERY_SHA_SIZE]);

/* Write the name and the version of the server: Redis or Valkey. */
void query_version(redisContext *server, char version[QUERY_VERSION_SIZE]);

/* Return a number of an INFO; name ends with its colon. */
double info_number(const char *info, const char *name);

#endif /* BENCH_QUERY_H */
