/* A private Redis or Valkey server, which listens on a unix socket in a folder and stores nothing
 * on disk. */
#ifndef BELAY_DEMO_SERVER_H
#define BELAY_DEMO_SERVER_H

#include "demo/child.h"

#define SERVER_FOLDER_MAX 32
#define SERVER_FILE_MAX 16

typedef struct server {
  child_t child;
  char socket[SERVER_FOLDER_MAX + SERVER_FILE_MAX];
  char url[SERVER_FOLDER_MAX + SERVER_FILE_MAX + 8];
} server_t;

/* Make a temporary folder. Returns 0, or -1 with errno. */
int server_folder_make(char path[SERVER_FOLDER_MAX]);

/* Remove the folder and its files. */
void server_folder_remove(const char *path);

/* Start a server and run the loop until it takes connections. Its files lie in demo->folder and
 * begin with the name. Returns NULL, or the text of an error. Afterwards the server does not keep
 * the loop running. */
const char *server_start(server_t *server, demo_t *demo, const char *name);

/* Kill the server and run the loop until it is gone. Legal after a start that failed, and without a
 * start. */
void server_stop(server_t *server);

/* The role that becomes the server. args: a folder and a name. Returns if it cannot. */
int server_become(char **args);

#endif /* BELAY_DEMO_SERVER_H */
