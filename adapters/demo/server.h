/* A private Redis or Valkey server, which is reached through a unix socket in a folder and keeps nothing. */
#ifndef BELAY_DEMO_SERVER_H
#define BELAY_DEMO_SERVER_H

#include <stdbool.h>
#include <uv.h>

#include "demo/child.h"
#include "demo/scratch.h"

#define SERVER_FILE_MAX 16 /* a file's name: the path of a socket can bear no more */
#define SERVER_URL_MAX (3 * (SCRATCH_PATH_MAX + SERVER_FILE_MAX + 8))

typedef struct server {
  child_t child;
  uv_timer_t timer;
  uint64_t give_up; /* no answer by then: it will not come any more */
  bool looking;     /* whether it takes connections, for as long as the timer is open */
  bool up, over;
  char socket[SCRATCH_PATH_MAX + SERVER_FILE_MAX];
  char url[SERVER_URL_MAX];
} server_t;

/* Starts one and runs the loop until it takes connections. Its files lie in the folder and begin with the name,
 * which is short. Returns 0 or -1. From then on it keeps the loop alive no more. The struct may be one whose
 * server is over. */
int server_start(server_t *server, family_t *family, const char *folder, const char *name);

/* After a start that failed: whether there is no such program here; and telling on standard error what is wrong. */
bool server_missing(const server_t *server);
void server_complain(const server_t *server);

/* Ends it with kill -9 and runs the loop until it is gone. Legal after a start that failed, too. */
void server_stop(server_t *server);

/* The hidden subcommand that becomes the server: PARENT FOLDER NAME. */
int run_server(int argc, char **argv);

#endif /* BELAY_DEMO_SERVER_H */
