#include "demo/server.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { START_MAX_MS = 10000, NOT_FOUND = 127 }; /* 127: as a shell returns without such a program */

/* ---- the folder ---- */

int server_folder_make(char path[SERVER_FOLDER_MAX]) {
  (void)snprintf(path, SERVER_FOLDER_MAX, "/tmp/belay-demo-XXXXXX");
  return mkdtemp(path) != NULL ? 0 : -1;
}

void server_folder_remove(const char *path) {
  DIR *folder = opendir(path);
  const struct dirent *entry;
  while (folder != NULL && (entry = readdir(folder)) != NULL)
    if (entry->d_name[0] != '.')
      (void)unlinkat(dirfd(folder), entry->d_name, 0);
  if (folder != NULL)
    (void)closedir(folder);
  (void)rmdir(path);
}

/* ---- the child's side ---- */

/* Debian's redis-check-rdb is the server itself, which looks at the name that it was called by. */
int server_become(char **args) {
  static const char *const programs[][2] = {
      {"redis-server", "redis-server"},
      {"valkey-server", "valkey-server"},
      {"redis-check-rdb", "redis-server"},
  };
  if (chdir(args[0]) != 0)
    return 1;
  char socket_name[SERVER_FILE_MAX], log_name[SERVER_FILE_MAX];
  (void)snprintf(socket_name, sizeof socket_name, "%s.sock", args[1]);
  (void)snprintf(log_name, sizeof log_name, "%s.log", args[1]);
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
    (void)execlp(programs[i][0], programs[i][1], "--port", "0", "--unixsocket", socket_name,
                 "--unixsocketperm", "700", "--save", "", "--appendonly", "no", "--daemonize", "no",
                 "--dir", args[0], "--logfile", log_name, (char *)NULL);
  }
  return NOT_FOUND;
}

/* ---- the parent's side ---- */

static bool takes_connections(const server_t *server) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path, server->socket, strlen(server->socket) + 1);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (fd < 0)
    return false;
  bool up = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
  (void)close(fd);
  return up;
}

const char *server_start(server_t *server, demo_t *demo, const char *name) {
  bool up = false;
  *server = (server_t){0};
  (void)snprintf(server->socket, sizeof server->socket, "%s/%s.sock", demo->folder, name);
  (void)snprintf(server->url, sizeof server->url, "unix://%s", server->socket);
  const char *args[] = {demo->folder, name, NULL};
  child_start(demo, &server->child, "server", args);
  uv_unref((uv_handle_t *)&server->child.process);
  uv_unref((uv_handle_t *)&server->child.output);
  DEMO_WAIT(demo, START_MAX_MS, server->child.over || (up = takes_connections(server)));
  if (up)
    return NULL;
  if (server->child.error != 0)
    return uv_strerror(server->child.error);
  if (server->child.exit_status == NOT_FOUND)
    return "there is neither a redis-server nor a valkey-server here";
  return server->child.over ? "the server ended at once" : "the server does not take connections";
}

void server_stop(server_t *server) {
  demo_t *demo = server->child.demo;
  if (demo == NULL || server->child.over)
    return;
  uv_ref((uv_handle_t *)&server->child.process);
  uv_ref((uv_handle_t *)&server->child.output);
  child_kill(&server->child);
  while (!server->child.over)
    (void)uv_run(&demo->loop, UV_RUN_ONCE);
}
