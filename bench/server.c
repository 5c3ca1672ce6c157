#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "query.h"
#include "bench.h"
#include "place.h"

#define START_MAX_NS INT64_C(10000000000)

typedef struct server {
  pid_t pid;
  int port; /* 0: a socket only */
  char folder[64], socket[96], log[96], version[QUERY_VERSION_SIZE], url[128];
  redisContext *connection;
} server_t;

static server_t servers[SERVERS_MAX];
static unsigned count;

/* Only what a signal handler may do. */
static void clean_up(void) {
  for (unsigned i = 0; i < count; i++) {
    server_t *server = &servers[i];
    if (server->pid > 0) {
      kill(server->pid, SIGKILL);
      waitpid(server->pid, NULL, 0);
    }
    unlink(server->socket);
    unlink(server->log);
    rmdir(server->folder);
  }
}

/* Not of those that are only copies of this process. */
static pid_t owner;

static void at_end(void) {
  if (getpid() == owner)
    clean_up();
}

static void on_signal(int number) {
  at_end();
  signal(number, SIG_DFL);
  raise(number);
}

/* Debian's redis-check-rdb is the server too, when it is called by that name. */
static _Noreturn void become_server(const server_t *server) {
  static const char *const programs[] = {"redis-server", "valkey-server", "redis-check-rdb"};
  char port[12];
  (void)snprintf(port, sizeof port, "%d", server->port);
  const char *argv[] = {"redis-server",
                        "--port",
                        port,
                        "--bind",
                        "127.0.0.1",
                        "--unixsocket",
                        server->socket,
                        "--save",
                        "",
                        "--appendonly",
                        "no",
                        "--dir",
                        server->folder,
                        "--logfile",
                        server->log,
                        NULL};
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != owner)
    _exit(126);
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
    execvp(programs[i], (char **)(uintptr_t)argv);
  _exit(127);
}

static bool dial(server_t *server) {
  server->connection = redisConnectUnix(server->socket);
  if (server->connection != NULL && server->connection->err == 0)
    return true;
  if (server->connection != NULL)
    redisFree(server->connection);
  server->connection = NULL;
  return false;
}

static void wait_until_up(server_t *server) {
  int64_t began = bench_now();
  while (!dial(server)) {
    if (waitpid(server->pid, NULL, WNOHANG) == server->pid) {
      server->pid = 0;
      bench_die("no server could be started: is redis-server, or redis-check-rdb, in PATH?");
    }
    if (bench_now() - began > START_MAX_NS)
      bench_die("the server that was started does not answer");
    usleep(2000);
  }
}

/* Return a port that is free now. */
static int free_port(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t len = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
      getsockname(fd, (struct sockaddr *)&address, &len) != 0)
    bench_die("no port for a server: %s", strerror(errno));
  close(fd);
  return ntohs(address.sin_port);
}

static void start(server_t *server, bool tcp) {
  char folder[] = "/tmp/belay-bench-XXXXXX";
  if (mkdtemp(folder) == NULL)
    bench_die("no folder for a server: %s", strerror(errno));
  (void)snprintf(server->folder, sizeof server->folder, "%s", folder);
  (void)snprintf(server->socket, sizeof server->socket, "%s/socket", folder);
  (void)snprintf(server->log, sizeof server->log, "%s/log", folder);
  server->port = tcp ? free_port() : 0;
  if (tcp)
    (void)snprintf(server->url, sizeof server->url, "redis://127.0.0.1:%d", server->port);
  else
    (void)snprintf(server->url, sizeof server->url, "unix://%s/socket", folder);
  server->pid = fork();
  if (server->pid == 0)
    become_server(server);
  if (server->pid < 0)
    bench_die("no process for a server: %s", strerror(errno));
  wait_until_up(server);
  query_version(server->connection, server->version);
}

void servers_start(unsigned n, bool tcp) {
  if (count == 0) {
    owner = getpid();
    atexit(at_end);
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
  }
  for (; count < n; count++)
    start(&servers[count], tcp);
}

void servers_place(placement_t placement) {
  for (unsigned i = 0; i < count; i++)
    place_server(servers[i].pid, placement);
}

void server_start(placement_t placement) {
  servers_start(1, false);
  servers_place(placement);
}

const char *server_url(unsigned i) {
  return servers[i].url;
}

const char *server_path(void) {
  return servers[0].socket;
}

pid_t server_pid(void) {
  return servers[0].pid;
}

const char *server_version(void) {
  return servers[0].version;
}

void servers_flush(void) {
  for (unsigned i = 0; i < count; i++)
    query_flush(servers[i].connection);
}

void server_hang_up(void) {
  query_kill_others(servers[0].connection);
}

void server_load(const char *script, char sha[SERVER_SHA_SIZE]) {
  query_load_script(servers[0].connection, script, sha);
}

int64_t server_cpu(void) {
  char path[48];
  long long ns = 0;
  (void)snprintf(path, sizeof path, "/proc/%d/schedstat", (int)servers[0].pid);
  FILE *file = fopen(path, "r");
  if (file == NULL)
    return 0;
  if (fscanf(file, "%lld", &ns) != 1)
    ns = 0;
  fclose(file);
  return ns;
}

double server_used_cpu(void) {
  const char *info[] = {"INFO", "cpu"};
  redisReply *reply = query(servers[0].connection, REDIS_REPLY_STRING, 2, info);
  double used =
      info_number(reply->str, "used_cpu_user:") + info_number(reply->str, "used_cpu_sys:");
  freeReplyObject(reply);
  return used;
}

uint64_t server_keys(void) {
  const char *size[] = {"DBSIZE"};
  redisReply *reply = query(servers[0].connection, REDIS_REPLY_INTEGER, 1, size);
  uint64_t keys = (uint64_t)reply->integer;
  freeReplyObject(reply);
  return keys;
}
