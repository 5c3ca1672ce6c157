/* Private Redis servers: each in a temporary folder, on a unix socket and maybe a port, until the
 * program ends. Figures of one server are those of the first. */
#ifndef BENCH_SERVER_H
#define BENCH_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "place.h"

enum { SERVERS_MAX = 5, SERVER_SHA_SIZE = 41 };

/* Starts what is missing of so many, and returns when they answer. */
void servers_start(unsigned n, bool tcp);
void servers_place(placement_t placement);
const char *server_url(unsigned i); /* unix:// or redis:// */
void servers_flush(void);           /* all of them forget all keys */

/* Starts one, on a socket. */
void server_start(placement_t placement);

const char *server_path(void); /* of its socket */
const char *server_version(void);

/* It ends the connections of all its clients. */
void server_hang_up(void);

/* Teaches it a script. */
void server_load(const char *script, char sha[SERVER_SHA_SIZE]);

pid_t server_pid(void);

/* The processor time that its main thread has used, in nanoseconds. */
int64_t server_cpu(void);

/* Processor time of all threads of the server (INFO cpu), in seconds. */
double server_used_cpu(void);

uint64_t server_keys(void); /* how many there are */

#endif /* BENCH_SERVER_H */
