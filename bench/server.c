#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "place.h"

#define START_MAX_NS INT64_C(10000000000)

static struct {
  pid_t pid;
  char folder[64], socket[96], log[96], version[32];
  redisContext *connection;
} server;

/* ---- nothing is left behind ---------------------------------------------------------------------------- */

/* Only what a signal handler may do. */
static void clean_up(void) {
  if (server.pid > 0) {
    kill(server.pid, SIGKILL);
    waitpid(server.pid, NULL, 0);
  }
  unlink(server.socket);
  unlink(server.log);
  rmdir(server.folder);
}

static void on_signal(int number) {
  clean_up();
  signal(number, SIG_DFL);
  raise(number);
}

/* ---- the process --------------------------------------------------------------------------------------- */

/* Debian's redis-check-rdb is the server too, when it is called by that name. */
static _Noreturn void become_server(bool pin, pid_t parent) {
  static const char *const programs[] = {"redis-server", "valkey-server", "redis-check-rdb"};
  const char *argv[] = {
      "redis-server", "--port", "0",     "--unixsocket", server.socket, "--save",   "",
      "--appendonly", "no",     "--dir", server.folder,  "--logfile",   server.log, NULL};
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(126);
  if (pin)
    place_as_server();
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
    execvp(programs[i], (char **)(uintptr_t)argv);
  _exit(127);
}

static bool dial(void) {
  server.connection = redisConnectUnix(server.socket);
  if (server.connection != NULL && server.connection->err == 0)
    return true;
  if (server.connection != NULL)
    redisFree(server.connection);
  server.connection = NULL;
  return false;
}

static void wait_until_up(void) {
  int64_t began = bench_now();
  while (!dial()) {
    if (waitpid(server.pid, NULL, WNOHANG) == server.pid) {
      server.pid = 0;
      bench_die("no server could be started: is redis-server, or redis-check-rdb, in PATH?");
    }
    if (bench_now() - began > START_MAX_NS)
      bench_die("the server that was started does not answer");
    usleep(2000);
  }
}

static redisReply *ask(int argc, const char **argv, int type) {
  redisReply *reply = redisCommandArgv(server.connection, argc, argv, NULL);
  if (reply == NULL)
    bench_die("the server does not answer %s", argv[0]);
  if (reply->type != type)
    bench_die("the server answers %s with: %s", argv[0], reply->str != NULL ? reply->str : "?");
  return reply;
}

static void learn_version(void) {
  const char *info[] = {"INFO", "server"};
  redisReply *reply = ask(2, info, REDIS_REPLY_STRING);
  const char *at = strstr(reply->str, "redis_version:");
  if (at != NULL)
    (void)sscanf(at, "redis_version:%31[0-9.]", server.version);
  freeReplyObject(reply);
}

void server_start(bool pin) {
  (void)snprintf(server.folder, sizeof server.folder, "/tmp/belay-bench-XXXXXX");
  if (mkdtemp(server.folder) == NULL)
    bench_die("no folder for a server: %s", strerror(errno));
  (void)snprintf(server.socket, sizeof server.socket, "%s/socket", server.folder);
  (void)snprintf(server.log, sizeof server.log, "%s/log", server.folder);
  atexit(clean_up);
  signal(SIGTERM, on_signal);
  signal(SIGINT, on_signal);
  pid_t parent = getpid();
  server.pid = fork();
  if (server.pid == 0)
    become_server(pin, parent);
  if (server.pid < 0)
    bench_die("no process for a server: %s", strerror(errno));
  wait_until_up();
  learn_version();
}

const char *server_path(void) {
  return server.socket;
}

pid_t server_pid(void) {
  return server.pid;
}

const char *server_version(void) {
  return server.version;
}

void server_flush(void) {
  const char *flush[] = {"FLUSHALL"};
  freeReplyObject(ask(1, flush, REDIS_REPLY_STATUS));
}

void server_load(const char *script, char sha[SERVER_SHA_SIZE]) {
  const char *load[] = {"SCRIPT", "LOAD", script};
  redisReply *reply = ask(3, load, REDIS_REPLY_STRING);
  (void)snprintf(sha, SERVER_SHA_SIZE, "%s", reply->str);
  freeReplyObject(reply);
}

int64_t server_cpu(void) {
  char path[48];
  long long ns = 0;
  (void)snprintf(path, sizeof path, "/proc/%d/schedstat", (int)server.pid);
  FILE *file = fopen(path, "r");
  if (file == NULL)
    return 0;
  if (fscanf(file, "%lld", &ns) != 1)
    ns = 0;
  fclose(file);
  return ns;
}

/* A field of INFO cpu. */
static double cpu_field(const char *info, const char *name) {
  const char *at = strstr(info, name);
  if (at == NULL)
    bench_die("the server does not say %s", name);
  return strtod(at + strlen(name), NULL);
}

double server_used_cpu(void) {
  const char *info[] = {"INFO", "cpu"};
  redisReply *reply = ask(2, info, REDIS_REPLY_STRING);
  double used = cpu_field(reply->str, "used_cpu_user:") + cpu_field(reply->str, "used_cpu_sys:");
  freeReplyObject(reply);
  return used;
}

uint64_t server_keys(void) {
  const char *size[] = {"DBSIZE"};
  redisReply *reply = ask(1, size, REDIS_REPLY_INTEGER);
  uint64_t keys = (uint64_t)reply->integer;
  freeReplyObject(reply);
  return keys;
}
