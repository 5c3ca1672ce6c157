#include "support/server.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/clock.h"
#include "support/unit.h"

#define SERVERS_MAX 64
#define ARGUMENTS_MAX 32
#define START_MS 10000

struct server {
  server_options_t options;
  pid_t pid; /* 0: not running */
  bool paused;
  int port;
  char folder[64], socket[96], log[96], dump[96], url[256];
  resp_client_t client;
  resp_t *reply; /* the last one */
};

/* ---- nothing is left behind ---------------------------------------------------------------------------- */

static server_t *running[SERVERS_MAX];

/* Only what a signal handler may do. */
/* What a server that appends only has written; its names are its own. */
static void remove_appended(const server_t *server) {
  char path[sizeof server->folder + 300];
  snprintf(path, sizeof path, "%s/appendonlydir", server->folder);
  DIR *dir = opendir(path);
  for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
    snprintf(path, sizeof path, "%s/appendonlydir/%s", server->folder, entry->d_name);
    unlink(path);
  }
  if (dir != NULL)
    closedir(dir);
  snprintf(path, sizeof path, "%s/appendonlydir", server->folder);
  rmdir(path);
  snprintf(path, sizeof path, "%s/appendonly.aof", server->folder);
  unlink(path);
}

static void clean_up(const server_t *server) {
  char nodes[sizeof server->folder + 16];
  if (server->pid > 0) {
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0); /* while it lives it writes to its log */
  }
  unlink(server->socket);
  unlink(server->log);
  unlink(server->dump);
  snprintf(nodes, sizeof nodes, "%s/nodes.conf", server->folder);
  unlink(nodes);
  remove_appended(server);
  rmdir(server->folder);
}

static void clean_up_all(void) {
  for (size_t i = 0; i < SERVERS_MAX; i++)
    if (running[i] != NULL)
      clean_up(running[i]);
}

static void on_signal(int number) {
  clean_up_all();
  signal(number, SIG_DFL);
  raise(number);
}

static void remember(server_t *server) {
  static bool first = true;
  if (first) {
    first = false;
    atexit(clean_up_all);
    signal(SIGABRT, on_signal);
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
  }
  for (size_t i = 0; i < SERVERS_MAX; i++)
    if (running[i] == NULL) {
      running[i] = server;
      return;
    }
  fail_msg("more than %d servers at once", SERVERS_MAX);
}

static void forget(const server_t *server) {
  for (size_t i = 0; i < SERVERS_MAX; i++)
    if (running[i] == server)
      running[i] = NULL;
}

/* ---- the process --------------------------------------------------------------------------------------- */

static int free_port(const char *address) {
  struct sockaddr_in v4 = {.sin_family = AF_INET};
  struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
  bool is_v4 = inet_pton(AF_INET, address, &v4.sin_addr) == 1;
  inet_pton(AF_INET6, address, &v6.sin6_addr);
  int fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr *any = is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
  socklen_t len = is_v4 ? sizeof v4 : sizeof v6;
  int error = bind(fd, any, len);
  getsockname(fd, any, &len);
  close(fd);
  return error != 0 ? -1 : ntohs(is_v4 ? v4.sin_port : v6.sin6_port);
}

/* Debian's redis-check-rdb is the server too, when it is called by that name. */
static void become_server(char **argv) {
  static const char *const programs[] = {"redis-server", "valkey-server", "redis-check-rdb"};
  argv[0] = (char *)(uintptr_t) "redis-server";
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
    execvp(programs[i], argv);
  _exit(127);
}

/* Whether each server is to be a cluster of its own: then it takes no command on keys of several slots, and no script
 * that touches another slot's. */
static bool is_cluster(void) {
  return getenv("BELAY_TEST_CLUSTER") != NULL;
}

static size_t put_arguments(const server_t *server, const char **argv, char *port,
                            size_t port_size) {
  const server_options_t *o = &server->options;
  size_t n = 1;
  const char *always[] = {"--save",       "",          "--appendonly", "no", "--dir",
                          server->folder, "--logfile", server->log};
  for (size_t i = 0; i < sizeof always / sizeof *always; i++)
    argv[n++] = always[i];
  snprintf(port, port_size, "%d", server->port);
  argv[n++] = "--port";
  argv[n++] = port;
  argv[n++] = o->address != NULL ? "--bind" : "--unixsocket";
  argv[n++] = o->address != NULL ? o->address : server->socket;
  if (o->password != NULL) {
    argv[n++] = "--requirepass";
    argv[n++] = o->password;
  }
  for (size_t i = 0; i < 8 && o->arguments[i] != NULL; i++)
    argv[n++] = o->arguments[i];
  if (is_cluster()) {
    argv[n++] = "--cluster-enabled";
    argv[n++] = "yes";
  }
  return n;
}

static void spawn(server_t *server) {
  const char *argv[ARGUMENTS_MAX] = {0};
  char port[12];
  put_arguments(server, argv, port, sizeof port);
  pid_t parent = getpid();
  server->pid = fork();
  if (server->pid != 0)
    return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(126);
  int nowhere = open("/dev/null", O_RDWR);
  dup2(nowhere, 0);
  dup2(nowhere, 1);
  dup2(nowhere, 2);
  become_server((char **)(uintptr_t)argv);
}

/* Whether it has ended by itself. */
static bool is_gone(server_t *server) {
  if (server->pid <= 0 || waitpid(server->pid, NULL, WNOHANG) != server->pid)
    return server->pid <= 0;
  server->pid = 0;
  return true;
}

static bool dial(server_t *server) {
  const server_options_t *o = &server->options;
  int error = o->address != NULL ? resp_dial_tcp(&server->client, o->address, server->port)
                                 : resp_dial_unix(&server->client, server->socket);
  if (error != 0)
    return false;
  if (o->password == NULL)
    return true;
  const resp_words_t auth = {2, {"AUTH", o->password}, {4, strlen(o->password)}};
  resp_t *reply = resp_call(&server->client, &auth);
  bool ok = reply != NULL && reply->type == RESP_STATUS;
  resp_free(reply);
  return ok;
}

static bool answers(server_t *server) {
  const resp_words_t ping = {1, {"PING"}, {4}};
  if (!dial(server))
    return false;
  resp_t *reply = resp_call(&server->client, &ping);
  bool ok = reply != NULL && reply->type == RESP_STATUS && strcmp(reply->str, "PONG") == 0;
  resp_free(reply);
  if (!ok)
    resp_hang_up(&server->client);
  return ok;
}

/* False if the process ended: its port was taken, perhaps. */
static bool wait_until_up(server_t *server) {
  int64_t began = clock_now();
  while (!answers(server)) {
    if (is_gone(server))
      return false;
    if (clock_since_ms(began) > START_MS * slow())
      fail_msg("a server that was started does not answer: see %s", server->log);
    stall_ms(2);
  }
  return true;
}

static void name_url(server_t *server) {
  const server_options_t *o = &server->options;
  char secret[128] = "";
  if (o->password != NULL)
    snprintf(secret, sizeof secret, ":%s@", o->password);
  if (o->address == NULL)
    snprintf(server->url, sizeof server->url, "unix://%s%s", secret, server->socket);
  else if (strchr(o->address, ':') != NULL)
    snprintf(server->url, sizeof server->url, "redis://%s[%s]:%d", secret, o->address,
             server->port);
  else
    snprintf(server->url, sizeof server->url, "redis://%s%s:%d", secret, o->address, server->port);
}

static void start(server_t *server) {
  spawn(server);
  if (!wait_until_up(server))
    fail_msg("no server could be started: is redis-server, or redis-check-rdb, in PATH?");
}

/* A port that is free may be taken before the server has it. */
static void start_on_free_port(server_t *server) {
  for (int tries = 0; tries < 20; tries++) {
    server->port = free_port(server->options.address);
    spawn(server);
    if (wait_until_up(server))
      return;
  }
  fail_msg("no server could be started on %s", server->options.address);
}

static void own_all_slots(server_t *server) {
  server_do(server, "CLUSTER", "ADDSLOTSRANGE", "0", "16383", NULL);
  int64_t began = clock_now();
  while (strstr(server_string(server, "CLUSTER", "INFO", NULL), "cluster_state:ok") == NULL) {
    if (clock_since_ms(began) > START_MS * slow())
      fail_msg("a cluster is not ready: see %s", server->log);
    stall_ms(2);
  }
}

server_t *server_start(const server_options_t *options) {
  server_t *server = calloc(1, sizeof *server);
  if (options != NULL)
    server->options = *options;
  server->client.fd = -1;
  snprintf(server->folder, sizeof server->folder, "/tmp/belay-test-XXXXXX");
  if (mkdtemp(server->folder) == NULL)
    fail_msg("no folder for a server: %s", strerror(errno));
  snprintf(server->socket, sizeof server->socket, "%s/socket", server->folder);
  snprintf(server->log, sizeof server->log, "%s/log", server->folder);
  snprintf(server->dump, sizeof server->dump, "%s/dump.rdb", server->folder);
  remember(server);
  if (is_cluster() && server->options.address == NULL)
    server->options.address = "127.0.0.1";
  if (server->options.address != NULL)
    start_on_free_port(server);
  else
    start(server);
  name_url(server);
  if (is_cluster())
    own_all_slots(server);
  return server;
}

static void end_process(server_t *server, int signal_number) {
  resp_hang_up(&server->client);
  if (server->pid <= 0)
    return;
  kill(server->pid, signal_number);
  kill(server->pid, SIGCONT);
  waitpid(server->pid, NULL, 0);
  server->pid = 0;
  server->paused = false;
}

void server_kill(server_t *server) {
  end_process(server, SIGKILL);
}

void server_terminate(server_t *server) {
  end_process(server, SIGTERM);
}

void server_stop(server_t *server) {
  if (server == NULL)
    return;
  server_kill(server);
  clean_up(server);
  forget(server);
  resp_free(server->reply);
  free(server);
}

void server_restart(server_t *server) {
  server_kill(server);
  start(server);
}

void server_restart_keeping(server_t *server) {
  server_do(server, "SAVE", NULL);
  server_restart(server);
  unlink(server->dump); /* the next one starts without */
}

/* Until the replica has as many keys as the primary; the link being up says nothing yet. */
static void wait_until_in_step(server_t *replica, server_t *primary) {
  int64_t began = clock_now();
  while (server_keys(replica) != server_keys(primary)) {
    if (clock_since_ms(began) > START_MS * slow())
      fail_msg("a replica gets nothing from its primary: see %s", replica->log);
    stall_ms(2);
  }
}

/* What is replicated goes through no file, and starts at once. */
void server_follow(server_t *replica, server_t *primary) {
  char port[12];
  snprintf(port, sizeof port, "%d", primary->port);
  server_do(primary, "CONFIG", "SET", "repl-diskless-sync", "yes", "repl-diskless-sync-delay", "0",
            NULL);
  server_do(replica, "CONFIG", "SET", "repl-diskless-load", "swapdb", NULL);
  server_do(replica, "REPLICAOF", primary->options.address, port, NULL);
  server_do(primary, "SET", "is it here?", "", NULL);
  wait_until_in_step(replica, primary);
  server_do(primary, "DEL", "is it here?", NULL);
  wait_until_in_step(replica, primary);
}

void server_pause(server_t *server) {
  if (server->paused)
    return;
  kill(server->pid, SIGSTOP);
  waitpid(server->pid, NULL, WUNTRACED);
  server->paused = true;
}

void server_resume(server_t *server) {
  server->paused = false;
  if (server->pid > 0)
    kill(server->pid, SIGCONT);
}

const char *server_url(const server_t *server) {
  return server->url;
}

const char *server_path(const server_t *server) {
  return server->options.address == NULL ? server->socket : NULL;
}

int server_port(const server_t *server) {
  return server->port;
}

/* ---- looking behind the scenes -------------------------------------------------------------------------- */

const resp_t *server_ask_words(server_t *server, const resp_words_t *words) {
  resp_free(server->reply);
  server->reply = resp_call(&server->client, words);
  if (server->reply == NULL) { /* somebody killed all connections */
    resp_hang_up(&server->client);
    if (dial(server))
      server->reply = resp_call(&server->client, words);
  }
  if (server->reply == NULL)
    fail_msg("the server does not answer %s", words->word[0]);
  return server->reply;
}

static const resp_t *ask(server_t *server, va_list strings) {
  resp_words_t words = resp_words(strings);
  return server_ask_words(server, &words);
}

const resp_t *server_ask(server_t *server, ...) {
  va_list strings;
  va_start(strings, server);
  const resp_t *reply = ask(server, strings);
  va_end(strings);
  return reply;
}

void server_do(server_t *server, ...) {
  va_list strings;
  va_start(strings, server);
  const resp_t *reply = ask(server, strings);
  va_end(strings);
  if (reply->type == RESP_ERROR)
    fail_msg("the server says: %s", reply->str);
}

int64_t server_integer(server_t *server, ...) {
  va_list strings;
  va_start(strings, server);
  const resp_t *reply = ask(server, strings);
  va_end(strings);
  assert_int_equal(reply->type, RESP_INTEGER);
  return reply->integer;
}

const char *server_string(server_t *server, ...) {
  va_list strings;
  va_start(strings, server);
  const resp_t *reply = ask(server, strings);
  va_end(strings);
  if (reply->type == RESP_NIL)
    return NULL;
  assert_true(reply->type == RESP_STRING || reply->type == RESP_STATUS);
  return reply->str;
}

int64_t server_info(server_t *server, const char *section, const char *field) {
  char line[64];
  const char *text = server_string(server, "INFO", section, NULL);
  snprintf(line, sizeof line, "\n%s:", field);
  const char *at = strstr(text, line);
  return at == NULL ? -1 : strtoll(at + strlen(line), NULL, 10);
}

int64_t server_calls(server_t *server, const char *command) {
  char line[64];
  const char *text = server_string(server, "INFO", "commandstats", NULL);
  snprintf(line, sizeof line, "\ncmdstat_%s:calls=", command);
  const char *at = strstr(text, line);
  return at == NULL ? 0 : strtoll(at + strlen(line), NULL, 10);
}

int64_t server_keys(server_t *server) {
  return server_integer(server, "DBSIZE", NULL);
}
