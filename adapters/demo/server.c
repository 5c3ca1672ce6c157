#include "demo/server.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LOOK_EVERY_MS 10
#define START_MAX_NS UINT64_C(10000000000)
#define NOT_FOUND 127 /* what a shell returns when there is no such program */

/* ---- the child's side ---------------------------------------------------------------------------------- */

/* Debian's redis-check-rdb is the server itself, which looks at the name that it was called by. */
int run_server(int argc, char **argv) {
  static const char *const programs[][2] = {
      {"redis-server", "redis-server"},
      {"valkey-server", "valkey-server"},
      {"redis-check-rdb", "redis-server"},
  };
  if (argc != 5)
    return 2;
  child_die_with(argv[2]);
  if (chdir(argv[3]) != 0)
    return 1;
  char socket_name[SERVER_FILE_MAX], log_name[SERVER_FILE_MAX];
  (void)snprintf(socket_name, sizeof socket_name, "%s.sock", argv[4]);
  (void)snprintf(log_name, sizeof log_name, "%s.log", argv[4]);
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
    (void)execlp(programs[i][0], programs[i][1], "--port", "0", "--unixsocket", socket_name,
                 "--unixsocketperm", "700", "--save", "", "--appendonly", "no", "--daemonize", "no",
                 "--dir", argv[3], "--logfile", log_name, (char *)NULL);
  }
  return NOT_FOUND;
}

/* ---- the parent's side --------------------------------------------------------------------------------- */

/* unix:// and the path, with everything escaped that might mean something in a URL. */
static void write_url(server_t *server) {
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/-._~";
  size_t n = (size_t)snprintf(server->url, sizeof server->url, "unix://");
  for (const char *c = server->socket; *c != '\0'; c++)
    n += (size_t)snprintf(server->url + n, sizeof server->url - n,
                          strchr(plain, *c) != NULL ? "%c" : "%%%02X", (unsigned char)*c);
}

static bool takes_connections(const server_t *server) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(server->socket) >= sizeof address.sun_path)
    return false;
  memcpy(address.sun_path, server->socket, strlen(server->socket) + 1);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (fd < 0)
    return false;
  bool up = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
  (void)close(fd);
  return up;
}

static void on_looked(uv_handle_t *timer) {
  server_t *server = timer->data;
  server->looking = false;
}

static void stop_looking(server_t *server) {
  if (server->looking && !uv_is_closing((uv_handle_t *)&server->timer))
    uv_close((uv_handle_t *)&server->timer, on_looked);
}

/* A new socket is nothing that a loop could wait for, so it is looked for. */
static void on_look(uv_timer_t *timer) {
  server_t *server = timer->data;
  server->up = takes_connections(server);
  if (server->up || uv_hrtime() > server->give_up)
    stop_looking(server);
}

static void on_end(child_t *child) {
  server_t *server = child->data;
  server->over = true;
  stop_looking(server);
}

int server_start(server_t *server, family_t *family, const char *folder, const char *name) {
  *server = (server_t){.child = {.on_end = on_end, .data = server}, .looking = true};
  (void)snprintf(server->socket, sizeof server->socket, "%s/%s.sock", folder, name);
  write_url(server);
  server->give_up = uv_hrtime() + START_MAX_NS;
  (void)uv_timer_init(family->loop, &server->timer); /* never fails */
  server->timer.data = server;
  const char *args[] = {"server", folder, name, NULL};
  child_start(family, &server->child, args);
  uv_unref((uv_handle_t *)&server->child.process);
  int error = uv_timer_start(&server->timer, on_look, LOOK_EVERY_MS, LOOK_EVERY_MS);
  if (error != 0)
    stop_looking(server);
  while (server->looking)
    (void)uv_run(family->loop, UV_RUN_ONCE);
  return server->up ? 0 : -1;
}

bool server_missing(const server_t *server) {
  return server->over && server->child.error == 0 && server->child.exit_status == NOT_FOUND;
}

void server_complain(const server_t *server) {
  const child_t *child = &server->child;
  if (child->error != 0)
    (void)fprintf(stderr, "belay-demo: cannot start the server: %s\n", uv_strerror(child->error));
  else if (!server->over)
    (void)fputs("belay-demo: the server does not take connections\n", stderr);
  else if (server_missing(server))
    (void)fputs("belay-demo: there is neither a redis-server nor a valkey-server here;"
                " install one, or name one that runs already with --url\n",
                stderr);
  else
    (void)fprintf(stderr, "belay-demo: the server ended at once (status %d, signal %d)\n",
                  (int)child->exit_status, child->exit_signal);
}

void server_stop(server_t *server) {
  if (server->child.family == NULL || server->over)
    return;
  uv_ref((uv_handle_t *)&server->child.process);
  child_kill(&server->child, SIGKILL);
  while (!server->over)
    (void)uv_run(server->child.family->loop, UV_RUN_ONCE);
}
