/* A private Redis or Valkey server, which is reached through a unix socket in a folder and keeps nothing. */
#ifndef BELAY_CLI_SERVER_H
#define BELAY_CLI_SERVER_H

#include <stdbool.h>
#include <uv.h>

#include "child.h"
#include "scratch.h"

#define SERVER_URL_MAX (3 * (SCRATCH_PATH_MAX + 32))

typedef struct server {
  child_t child;
  uv_timer_t timer;
  uint64_t give_up; /* no answer by then: it will not come any more */
  bool up, over;
  char socket[SCRATCH_PATH_MAX + 16];
  char url[SERVER_URL_MAX];
} server_t;

/* Starts one in the folder and runs the loop until it takes connections. Returns 0, or -1 after telling on
 * standard error what is wrong. From then on it keeps the loop alive no more. */
int server_start(server_t *server, family_t *family, const char *folder);

/* Ends it and runs the loop until it is gone. Legal after a start that failed, too. */
void server_stop(server_t *server);

/* The hidden subcommand that becomes the server: PARENT FOLDER. */
int command_demo_server(int argc, char **argv);

#endif /* BELAY_CLI_SERVER_H */
