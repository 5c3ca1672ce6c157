#include "support/servers/server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/servers/acl.h"
#include "support/servers/certs.h"
#include "support/base/clock.h"
#include "support/deployments/deployment.h"
#include "support/servers/place.h"
#include "support/servers/program.h"
#include "support/servers/server_inside.h"
#include "support/base/unit.h"
#include "support/deployments/watcher.h"

#define SERVERS_MAX 64
#define START_MS 10000

/* ---- nothing is left behind ---- */

static server_t *running[SERVERS_MAX];

static void clean_up(const server_t *server) {
  if (server->pid > 0) {
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0); /* while it lives it writes to its log */
  }
  place_remove(server->folder);
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

/* ---- the process ---- */

bool servers_are_secure(void) {
  return getenv("BELAY_TEST_TLS") != NULL;
}

/* Where the server's certificate is, if the test has made none. */
static certs_t *common_certs(void) {
  static certs_t *certs;
  if (certs == NULL) {
    certs = certs_new("ca");
    certs_make(certs, "server", &(cert_options_t){.names = "DNS:localhost,IP:127.0.0.1,IP:::1"});
    setenv("SSL_CERT_FILE", certs_path(certs, "ca.crt"), 1);
  }
  return certs;
}

static void write_word(FILE *out, const char *word) {
  fputs(" \"", out);
  for (; *word != '\0'; word++)
    fprintf(out, *word == '"' || *word == '\\' ? "\\%c" : "%c", *word);
  fputc('"', out);
}

/* The server's own file, in which it may write itself: a Sentinel must. */
static void write_file(const server_t *server) {
  const server_options_t *o = &server->options;
  FILE *out = fopen(server->file, "we");
  if (out == NULL)
    fail_msg("no file for a server: %s", strerror(errno));
  fprintf(out, "save \"\"\nappendonly no\ndir %s\nlogfile %s\nunixsocket %s\n", server->folder,
          server->log, server->socket);
  fprintf(out, o->tls ? "port 0\ntls-port %d\n" : "port %d\n", server->port);
  if (o->address != NULL)
    fprintf(out, "bind %s\n", o->address);
  if (servers_are_secure())
    fprintf(out,
            "tls-cert-file %s\ntls-key-file %s\ntls-ca-cert-file %s\ntls-auth-clients no\n"
            "tls-replication yes\ntls-cluster yes\n",
            certs_path(common_certs(), "server.crt"), certs_path(common_certs(), "server.key"),
            certs_path(common_certs(), "ca.crt"));
  if (o->password != NULL && !acl_applies(o))
    fprintf(out, "requirepass %s\n", o->password);
  if (server->bus != 0)
    fprintf(out, "cluster-enabled yes\ncluster-port %d\n", server->bus);
  for (size_t i = 0; i < SERVER_ARGUMENTS && o->arguments[i] != NULL; i++)
    if (strncmp(o->arguments[i], "--", 2) == 0)
      fprintf(out, "\n%s", o->arguments[i] + 2);
    else
      write_word(out, o->arguments[i]);
  fprintf(out, "\n%s\n", o->lines != NULL ? o->lines : "");
  if (acl_applies(o))
    acl_write(out, o);
  fclose(out);
}

void server_spawn(server_t *server) {
  char *argv[] = {NULL, server->file, server->options.sentinel ? "--sentinel" : NULL, NULL};
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
  program_become(argv);
}

/* Whether it has ended by itself. */
static bool is_gone(server_t *server) {
  if (server->pid <= 0 || waitpid(server->pid, NULL, WNOHANG) != server->pid)
    return server->pid <= 0;
  server->pid = 0;
  return true;
}

bool server_dial(server_t *server) {
  const server_options_t *o = &server->options;
  if (acl_dial(o, &server->client, server->socket) != 0)
    return false;
  if (o->password == NULL || acl_applies(o))
    return true;
  const resp_words_t auth = {2, {"AUTH", o->password}, {4, strlen(o->password)}};
  resp_t *reply = resp_call(&server->client, &auth);
  bool ok = reply != NULL && reply->type == RESP_STATUS;
  resp_free(reply);
  if (!ok)
    resp_hang_up(&server->client);
  return ok;
}

static bool answers(server_t *server) {
  const resp_words_t ping = {1, {"PING"}, {4}};
  if (!server_dial(server))
    return false;
  resp_t *reply = resp_call(&server->client, &ping);
  bool ok = reply != NULL && reply->type == RESP_STATUS && strcmp(reply->str, "PONG") == 0;
  resp_free(reply);
  if (!ok)
    resp_hang_up(&server->client);
  return ok;
}

void server_await(server_t *server) {
  int64_t began = clock_now();
  while (!answers(server)) {
    if (is_gone(server))
      fail_msg("no server could be started: is redis-server, or redis-check-rdb, in PATH?");
    if (clock_since_ms(began) > START_MS * slow())
      fail_msg("a server that was started does not answer: see %s", server->log);
    stall_ms(2);
  }
}

static void name_url(server_t *server) {
  const server_options_t *o = &server->options;
  const char *scheme = o->tls ? "rediss" : "redis", *secret = acl_login(o);
  if (o->address == NULL)
    snprintf(server->url, sizeof server->url, "unix://%s%s", secret, server->socket);
  else
    snprintf(server->url, sizeof server->url,
             strchr(o->address, ':') != NULL ? "%s://%s[%s]:%d" : "%s://%s%s:%d", scheme, secret,
             o->address, server->port);
}

void server_add(server_options_t *options, const char *const *words) {
  size_t n = 0;
  while (n < SERVER_ARGUMENTS && options->arguments[n] != NULL)
    n++;
  for (; words != NULL && *words != NULL; words++) {
    assert_true(n < SERVER_ARGUMENTS);
    options->arguments[n++] = *words;
  }
}

void server_set(server_options_t *options, const char *name, const char *value) {
  if (value != NULL)
    server_add(options, (const char *const[]){name, value, NULL});
}

server_t *server_make(const server_options_t *options) {
  server_t *server = calloc(1, sizeof *server);
  if (options != NULL)
    server->options = *options;
  server_options_t *o = &server->options;
  o->tls = o->tls || servers_are_secure();
  bool tcp = o->cluster || servers_are_secure() || deployment() == DEPLOYMENT_SENTINEL ||
             deployment() == DEPLOYMENT_REPLICAS;
  if (tcp && o->address == NULL)
    o->address = "127.0.0.1";
  server->client.fd = server->held[0] = server->held[1] = -1;
  /* A Sentinel waits for its disk at every step. */
  snprintf(server->folder, sizeof server->folder, "%s/belay-test-XXXXXX",
           o->sentinel && access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
  if (mkdtemp(server->folder) == NULL)
    fail_msg("no folder for a server: %s", strerror(errno));
  snprintf(server->file, sizeof server->file, "%s/conf", server->folder);
  snprintf(server->socket, sizeof server->socket, "%s/socket", server->folder);
  snprintf(server->log, sizeof server->log, "%s/log", server->folder);
  snprintf(server->dump, sizeof server->dump, "%s/dump.rdb", server->folder);
  remember(server);
  if (o->address != NULL)
    server->port = place_hold_port(o->address, &server->held[0]);
  if (o->cluster)
    server->bus = place_hold_port(o->address, &server->held[1]);
  name_url(server);
  write_file(server);
  return server;
}

server_t *server_process(server_t *server, unsigned i) {
  if (server->cluster == NULL)
    return i == 0 ? server : NULL;
  return i < cluster_size(server->cluster) ? cluster_node(server->cluster, i) : NULL;
}

static server_t *start_cluster(const server_options_t *options) {
  server_t *server = calloc(1, sizeof *server);
  if (options != NULL)
    server->options = *options;
  server->client.fd = -1;
  server->cluster =
      cluster_start(&(cluster_options_t){.primaries = deployment() == DEPLOYMENT_CLUSTER3 ? 3 : 1,
                                         .without_replicas = true,
                                         .password = server->options.password,
                                         .tls = server->options.tls,
                                         .arguments = server->options.arguments,
                                         .lines = server->options.lines});
  return server;
}

/* A replica of it, which only follows: all that is said of the server is said of the primary. */
static void add_replica(server_t *server) {
  char port[12];
  server_options_t o = {.address = server->options.address, .password = server->options.password};
  snprintf(port, sizeof port, "%d", server->port);
  server_add(&o, (const char *const[]){"--replicaof", o.address, port, NULL});
  server_set(&o, "--masterauth", o.password);
  server->replica = server_make(&o);
  server_spawn(server->replica);
  server_await(server->replica);
  snprintf(server->led, sizeof server->led, "redis+replicas://%s%s:%d,%s:%d", server_login(server),
           o.address, server->port, o.address, server->replica->port);
}

/* Its URL becomes the deployment's. Tests of TLS have URLs of their own. */
static void lead(server_t *server) {
  const server_options_t *o = &server->options;
  if (o->sentinel || o->cluster || o->tls)
    return;
  if (deployment() == DEPLOYMENT_SENTINEL)
    watcher_add(server, server->led, sizeof server->led);
  else if (deployment() == DEPLOYMENT_REPLICAS)
    add_replica(server);
}

server_t *server_start(const server_options_t *options) {
  if (deployment_is_cluster() && (options == NULL || !options->cluster))
    return start_cluster(options);
  server_t *server = server_make(options);
  server_spawn(server);
  server_await(server);
  lead(server);
  return server;
}

static bool is_led(const server_t *server) {
  return server->led[0] != '\0';
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

static const server_t *first_process(const server_t *server) {
  return server->cluster == NULL ? server : cluster_node(server->cluster, 0);
}

bool server_is_running(const server_t *server) {
  return first_process(server)->pid > 0;
}

bool server_is_paused(const server_t *server) {
  return first_process(server)->paused;
}

void server_configure(server_t *server, const char *line) {
  server_t *each;
  for (unsigned i = 0; (each = server_process(server, i)) != NULL; i++) {
    FILE *out = fopen(each->file, "ae");
    assert_non_null(out);
    fprintf(out, "%s\n", line);
    fclose(out);
  }
}

/* A server of the test may be several processes: a replica ends, pauses and starts with its
 * primary. */
static server_t *part(server_t *server, unsigned i) {
  return i == 1 && server->replica != NULL ? server->replica : server_process(server, i);
}

static void end_all(server_t *server, int signal_number) {
  server_t *each;
  for (unsigned i = 0; (each = part(server, i)) != NULL; i++)
    end_process(each, signal_number);
}

void server_kill(server_t *server) {
  end_all(server, SIGKILL);
}

void server_terminate(server_t *server) {
  end_all(server, SIGTERM);
}

void server_stop(server_t *server) {
  if (server == NULL)
    return;
  if (server->cluster != NULL) {
    cluster_stop(server->cluster);
    resp_free(server->reply);
    free(server);
    return;
  }
  if (is_led(server) && server->replica == NULL)
    watcher_remove(server);
  server_stop(server->replica);
  server->replica = NULL;
  server_kill(server);
  clean_up(server);
  forget(server);
  for (size_t i = 0; i < 2; i++)
    if (server->held[i] >= 0)
      close(server->held[i]);
  resp_free(server->reply);
  free(server);
}

void server_restart(server_t *server) {
  if (server->cluster != NULL) {
    cluster_restart(server->cluster);
    return;
  }
  server_t *each;
  server_kill(server);
  for (unsigned i = 0; (each = part(server, i)) != NULL; i++) {
    server_spawn(each);
    server_await(each);
  }
}

void server_restart_keeping(server_t *server) {
  server_t *each;
  server_do(server, "SAVE", NULL);
  server_restart(server);
  for (unsigned i = 0; (each = server_process(server, i)) != NULL; i++)
    unlink(each->dump); /* the next one starts without */
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

/* Diskless replication, which starts at once. */
void server_follow(server_t *replica, server_t *primary) {
  char port[12];
  needs_one_server("REPLICAOF, which no node of a cluster takes");
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
  server_t *each;
  for (unsigned i = 0; (each = part(server, i)) != NULL; i++) {
    if (each->paused)
      continue;
    kill(each->pid, SIGSTOP);
    waitpid(each->pid, NULL, WUNTRACED);
    each->paused = true;
  }
}

void server_resume(server_t *server) {
  server_t *each;
  for (unsigned i = 0; (each = part(server, i)) != NULL; i++) {
    each->paused = false;
    if (each->pid > 0)
      kill(each->pid, SIGCONT);
  }
}

const char *server_url(const server_t *server) {
  return is_led(server) ? server->led : server_own_url(server);
}

const char *server_own_url(const server_t *server) {
  return server->cluster == NULL ? server->url : cluster_url(server->cluster);
}

const char *server_login(const server_t *server) {
  return acl_login(&server->options);
}

const char *server_path(const server_t *server) {
  bool reached = server->options.address == NULL || servers_are_secure() || is_led(server);
  return reached ? first_process(server)->socket : NULL;
}

int server_port(const server_t *server) {
  return first_process(server)->port;
}

void server_name_several(char *url, size_t size, const char *kind, const server_t *login,
                         server_t *const *servers, unsigned n) {
  size_t len = (size_t)snprintf(url, size, "redis%s+%s://%s", login->options.tls ? "s" : "", kind,
                                acl_login(&login->options));
  for (unsigned i = 0; i < n; i++)
    len += (size_t)snprintf(url + len, size - len, "%s%s:%d", i > 0 ? "," : "",
                            servers[i]->options.address, servers[i]->port);
}

int server_bus(const server_t *server) {
  return first_process(server)->bus;
}

const char *server_folder(const server_t *server) {
  return first_process(server)->folder;
}
