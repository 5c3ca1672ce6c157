#include "support/deployments/relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/servers/acl.h"
#include "support/base/clock.h"
#include "support/deployments/deployment.h"
#include "support/servers/resp.h"
#include "support/base/unit.h"
#include "support/deployments/watcher.h"

#define CONNECTIONS_MAX 64

/* Bytes on their way; none: the end. */
typedef struct chunk {
  struct chunk *next;
  int64_t due;
  size_t len;
  char data[];
} chunk_t;

typedef struct way {
  chunk_t *first, **last;
  bool ended; /* the sender has closed its side */
} way_t;

typedef struct connection {
  int client, server; /* -1: none */
  way_t to_client, to_server;
  bool silent;
  bool asks;   /* it was asked where the nodes of the cluster are */
  size_t left; /* bytes that still come through to the client; SIZE_MAX: all that come */
  bool mute;   /* true: silence follows; false: a reset */
} connection_t;

struct relay {
  _Atomic(const char *) target; /* a unix socket's path, or a URL */
  pthread_t thread;
  int listener, orders[2];
  atomic_uint connections, obeyed;
  atomic_llong delay; /* nanoseconds, each way */
  int port;
  char url[64];
  connection_t slots[CONNECTIONS_MAX];
  pthread_mutex_t mutex; /* of what follows */
  size_t limit;          /* 0: none */
  bool mute, listening;
  char *received;
  size_t received_len;
};

static void drop(int *fd) {
  if (*fd >= 0)
    close(*fd);
  *fd = -1;
}

/* ---- what is on its way ---- */

static void forget(way_t *way) {
  for (chunk_t *chunk; (chunk = way->first) != NULL;) {
    way->first = chunk->next;
    free(chunk);
  }
  *way = (way_t){.last = &way->first};
}

/* Hangs up on both sides. */
static void end(connection_t *connection) {
  drop(&connection->client);
  drop(&connection->server);
  forget(&connection->to_client);
  forget(&connection->to_server);
}

static void keep_received(relay_t *relay, const char *data, size_t len) {
  pthread_mutex_lock(&relay->mutex);
  if (relay->listening) {
    relay->received = realloc(relay->received, relay->received_len + len);
    memcpy(relay->received + relay->received_len, data, len);
    relay->received_len += len;
  }
  pthread_mutex_unlock(&relay->mutex);
}

#define BUFFER 65536

/* Replaces the node's port with the relay's in a reply to CLUSTER SLOTS. Returns the new length. */
static size_t forge(char *text, size_t len, int port) {
  static const char host[] = "\r\n127.0.0.1\r\n:";
  char *at = memmem(text, len, host, sizeof host - 1), number[12];
  if (at == NULL)
    return len;
  at += sizeof host - 1;
  char *behind = memchr(at, '\r', len - (size_t)(at - text));
  if (behind == NULL)
    return len;
  size_t n = (size_t)snprintf(number, sizeof number, "%d", port);
  memmove(at + n, behind, len - (size_t)(behind - text));
  memcpy(at, number, n);
  return len - (size_t)(behind - at) + n;
}

/* Takes what is there, or the end of it. */
static void take(relay_t *relay, connection_t *connection, way_t *way, int from, int64_t delay) {
  char buffer[BUFFER + sizeof "65535"];
  ssize_t n = recv(from, buffer, BUFFER, 0);
  size_t len = n > 0 ? (size_t)n : 0;
  if (way == &connection->to_server && len > 0) {
    keep_received(relay, buffer, len);
    connection->asks = connection->asks || memmem(buffer, len, "\r\nCLUSTER\r\n", 11) != NULL;
  }
  if (way == &connection->to_client && connection->asks)
    len = forge(buffer, len, relay->port);
  if (way == &connection->to_client && connection->left != SIZE_MAX) {
    len = len < connection->left ? len : connection->left;
    connection->left -= len;
  }
  chunk_t *chunk = malloc(sizeof *chunk + len);
  *chunk = (chunk_t){.due = clock_now() + delay, .len = len};
  memcpy(chunk->data, buffer, len);
  *way->last = chunk;
  way->last = &chunk->next;
  way->ended = len == 0;
}

/* Passes on what is due; false at its end. */
static bool pass(way_t *way, int to) {
  for (chunk_t *chunk; (chunk = way->first) != NULL && chunk->due <= clock_now();) {
    if (chunk->len == 0 || resp_send(to, chunk->data, chunk->len) != 0)
      return false;
    way->first = chunk->next;
    if (way->first == NULL)
      way->last = &way->first;
    free(chunk);
  }
  return true;
}

/* Milliseconds until something is due; -1: nothing is on its way. */
static int rest(const relay_t *relay) {
  int64_t first = INT64_MAX;
  for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
    const chunk_t *ways[] = {relay->slots[i].to_client.first, relay->slots[i].to_server.first};
    for (size_t j = 0; j < 2; j++)
      if (ways[j] != NULL && ways[j]->due < first)
        first = ways[j]->due;
  }
  int64_t left = first - clock_now();
  return first == INT64_MAX ? -1 : left <= 0 ? 0 : (int)(left / MS + 1);
}

/* ---- the thread ---- */

static int dial(resp_client_t *client, const char *target) {
  static const char tcp[] = "127.0.0.1:", local[] = "unix://";
  const char *port = strstr(target, tcp);
  if (watcher_port(target) != 0)
    return resp_dial_tcp(client, "127.0.0.1", watcher_port(target));
  if (port != NULL)
    return resp_dial_tcp(client, "127.0.0.1", atoi(port + sizeof tcp - 1));
  bool url = strncmp(target, local, sizeof local - 1) == 0;
  return resp_dial_unix(client, url ? strchr(target + sizeof local - 1, '/') : target);
}

static void welcome(relay_t *relay) {
  resp_client_t client;
  int fd = accept4(relay->listener, NULL, NULL, SOCK_CLOEXEC);
  if (fd < 0)
    return;
  atomic_fetch_add(&relay->connections, 1);
  for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
    connection_t *connection = &relay->slots[i];
    if (connection->client >= 0 || connection->server >= 0)
      continue;
    if (dial(&client, atomic_load(&relay->target)) != 0)
      break;
    connection->client = fd;
    connection->server = client.fd;
    connection->silent = connection->asks = false;
    pthread_mutex_lock(&relay->mutex);
    connection->left = relay->limit == 0 ? SIZE_MAX : relay->limit;
    connection->mute = relay->mute;
    pthread_mutex_unlock(&relay->mutex);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    return;
  }
  close(fd);
}

static void reset(connection_t *connection) {
  struct linger at_once = {.l_onoff = 1, .l_linger = 0};
  setsockopt(connection->client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  drop(&connection->client);
}

/* A connection that was cut, or is silent, ends unseen when the server closes its side. */
static void obey(relay_t *relay) {
  char order = 0;
  (void)!read(relay->orders[0], &order, 1);
  for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
    connection_t *connection = &relay->slots[i];
    if (connection->client < 0)
      continue;
    connection->silent = true;
    forget(&connection->to_client);
    if (order != 'g')
      forget(&connection->to_server);
    if (order != 's')
      reset(connection);
  }
  atomic_fetch_add(&relay->obeyed, 1);
}

/* Ends a connection that has passed on all bytes of its limit; the server sees the end. */
static void keep_limit(connection_t *connection) {
  if (connection->left > 0 || connection->to_client.first != NULL || connection->silent ||
      connection->client < 0)
    return;
  if (connection->mute) {
    connection->silent = true;
    return;
  }
  reset(connection);
  end(connection);
}

static struct pollfd listen_to(int fd, bool deaf) {
  return (struct pollfd){.fd = deaf ? -1 : fd, .events = POLLIN};
}

static void *run(void *arg) {
  relay_t *relay = arg;
  for (;;) {
    struct pollfd polls[2 + 2 * CONNECTIONS_MAX];
    polls[0] = listen_to(relay->orders[0], false);
    polls[1] = listen_to(relay->listener, false);
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
      const connection_t *connection = &relay->slots[i];
      polls[2 + 2 * i] =
          listen_to(connection->client, connection->silent || connection->to_server.ended);
      if (connection->silent && connection->mute) /* only checks that the peer is present */
        polls[2 + 2 * i] = (struct pollfd){.fd = connection->client};
      polls[3 + 2 * i] =
          listen_to(connection->server, connection->silent || connection->to_client.ended);
    }
    if (poll(polls, 2 + 2 * CONNECTIONS_MAX, rest(relay)) < 0 && errno != EINTR)
      return NULL;
    int64_t delay = atomic_load(&relay->delay);
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
      connection_t *connection = &relay->slots[i];
      if (connection->silent && connection->mute && polls[2 + 2 * i].revents != 0)
        end(connection);
      else if (polls[2 + 2 * i].revents != 0)
        take(relay, connection, &connection->to_server, connection->client, delay);
      if (polls[3 + 2 * i].revents != 0)
        take(relay, connection, &connection->to_client, connection->server, delay);
      bool there = pass(&connection->to_server, connection->server);
      if (!pass(&connection->to_client, connection->client) ||
          !there) /* last words are passed on */
        end(connection);
      keep_limit(connection);
    }
    if (polls[1].revents != 0)
      welcome(relay);
    if (polls[0].revents & POLLIN)
      obey(relay);
    else if (polls[0].revents != 0)
      return NULL;
  }
}

/* ---- for the test ---- */

relay_t *relay_start(const char *target) {
  needs_one_process("one process: a relay leads to one");
  relay_t *relay = calloc(1, sizeof *relay);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t len = sizeof address;
  atomic_init(&relay->target, target);
  pthread_mutex_init(&relay->mutex, NULL);
  for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
    connection_t *connection = &relay->slots[i];
    connection->client = connection->server = -1;
    connection->left = SIZE_MAX;
    forget(&connection->to_client);
    forget(&connection->to_server);
  }
  relay->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(relay->listener, (struct sockaddr *)&address, len), 0);
  assert_int_equal(listen(relay->listener, 64), 0);
  assert_int_equal(getsockname(relay->listener, (struct sockaddr *)&address, &len), 0);
  assert_int_equal(pipe2(relay->orders, O_CLOEXEC), 0);
  relay->port = ntohs(address.sin_port);
  snprintf(relay->url, sizeof relay->url, "%s%s://%s127.0.0.1:%d",
           strncmp(target, "rediss", 6) == 0 ? "rediss" : "redis",
           deployment_is_cluster() ? "+cluster" : "", acl_login(&(server_options_t){0}),
           relay->port);
  assert_int_equal(pthread_create(&relay->thread, NULL, run, relay), 0);
  return relay;
}

void relay_stop(relay_t *relay) {
  close(relay->orders[1]);
  pthread_join(relay->thread, NULL);
  close(relay->orders[0]);
  close(relay->listener);
  for (size_t i = 0; i < CONNECTIONS_MAX; i++)
    end(&relay->slots[i]);
  pthread_mutex_destroy(&relay->mutex);
  free(relay->received);
  free(relay);
}

static void give_order(relay_t *relay, char order) {
  unsigned before = atomic_load(&relay->obeyed);
  assert_int_equal(write(relay->orders[1], &order, 1), 1);
  while (atomic_load(&relay->obeyed) == before)
    sched_yield();
}

void relay_silence(relay_t *relay) {
  give_order(relay, 's');
}

void relay_cut(relay_t *relay) {
  give_order(relay, 'c');
}

void relay_haunt(relay_t *relay) {
  give_order(relay, 'g');
}

belay_client_options_t relay_client_options(void) {
  belay_client_options_t options;
  belay_client_options_init(&options);
  options.timeout_ms = options.connect_timeout_ms = 10000 * slow();
  options.stall_timeout_ms = 1000 * slow();
  return options;
}

void relay_delay(relay_t *relay, int64_t ms) {
  atomic_store(&relay->delay, ms * MS);
}

static void set_limit(relay_t *relay, size_t bytes, bool mute) {
  pthread_mutex_lock(&relay->mutex);
  relay->limit = bytes;
  relay->mute = mute;
  pthread_mutex_unlock(&relay->mutex);
}

void relay_cut_after(relay_t *relay, size_t bytes) {
  set_limit(relay, bytes, false);
}

void relay_silence_after(relay_t *relay, size_t bytes) {
  set_limit(relay, bytes, true);
}

void relay_listen(relay_t *relay) {
  pthread_mutex_lock(&relay->mutex);
  relay->listening = true;
  pthread_mutex_unlock(&relay->mutex);
}

bool relay_received(relay_t *relay, const char *words) {
  pthread_mutex_lock(&relay->mutex);
  bool received = relay->received_len > 0 &&
                  memmem(relay->received, relay->received_len, words, strlen(words)) != NULL;
  pthread_mutex_unlock(&relay->mutex);
  return received;
}

char *relay_capture(relay_t *relay, size_t *len) {
  pthread_mutex_lock(&relay->mutex);
  *len = relay->received_len;
  char *copy = malloc(*len + 1);
  memcpy(copy, relay->received_len > 0 ? relay->received : "", *len);
  pthread_mutex_unlock(&relay->mutex);
  return copy;
}

void relay_lead(relay_t *relay, const char *target) {
  atomic_store(&relay->target, target);
}

const char *relay_url(const relay_t *relay) {
  return relay->url;
}

unsigned relay_connections(relay_t *relay) {
  return atomic_load(&relay->connections);
}
