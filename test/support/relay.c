#include "support/relay.h"

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

#include "support/clock.h"
#include "support/resp.h"
#include "support/unit.h"

#define WIRES_MAX 64

/* Bytes on their way; none: the end. */
typedef struct chunk {
  struct chunk *next;
  int64_t due;
  size_t len;
  char data[];
} chunk_t;

typedef struct way {
  chunk_t *first, **last;
  bool ended; /* whoever spoke here has hung up */
} way_t;

typedef struct wire {
  int client, server; /* -1: none */
  way_t to_client, to_server;
  bool silent;
} wire_t;

struct relay {
  _Atomic(const char *) target; /* a unix socket's path, or a URL */
  pthread_t thread;
  int listener, orders[2];
  atomic_uint connections, obeyed;
  atomic_llong delay; /* nanoseconds, each way */
  char url[64];
  wire_t wires[WIRES_MAX];
};

static void drop(int *fd) {
  if (*fd >= 0)
    close(*fd);
  *fd = -1;
}

/* ---- what is on its way ---------------------------------------------------------------------------------- */

static void forget(way_t *way) {
  for (chunk_t *chunk; (chunk = way->first) != NULL;) {
    way->first = chunk->next;
    free(chunk);
  }
  *way = (way_t){.last = &way->first};
}

/* Hangs up on both sides. */
static void end(wire_t *wire) {
  drop(&wire->client);
  drop(&wire->server);
  forget(&wire->to_client);
  forget(&wire->to_server);
}

/* Takes what is there, or the end of it. */
static void take(way_t *way, int from, int64_t delay) {
  char buffer[65536];
  ssize_t n = recv(from, buffer, sizeof buffer, 0);
  size_t len = n > 0 ? (size_t)n : 0;
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
  for (size_t i = 0; i < WIRES_MAX; i++) {
    const chunk_t *ways[] = {relay->wires[i].to_client.first, relay->wires[i].to_server.first};
    for (size_t j = 0; j < 2; j++)
      if (ways[j] != NULL && ways[j]->due < first)
        first = ways[j]->due;
  }
  int64_t left = first - clock_now();
  return first == INT64_MAX ? -1 : left <= 0 ? 0 : (int)(left / MS + 1);
}

/* ---- the thread ------------------------------------------------------------------------------------------ */

static int dial(resp_client_t *client, const char *target) {
  static const char tcp[] = "redis://127.0.0.1:", local[] = "unix://";
  if (strncmp(target, tcp, sizeof tcp - 1) == 0)
    return resp_dial_tcp(client, "127.0.0.1", atoi(target + sizeof tcp - 1));
  bool url = strncmp(target, local, sizeof local - 1) == 0;
  return resp_dial_unix(client, url ? target + sizeof local - 1 : target);
}

static void welcome(relay_t *relay) {
  resp_client_t client;
  int fd = accept4(relay->listener, NULL, NULL, SOCK_CLOEXEC);
  if (fd < 0)
    return;
  atomic_fetch_add(&relay->connections, 1);
  for (size_t i = 0; i < WIRES_MAX; i++) {
    wire_t *wire = &relay->wires[i];
    if (wire->client >= 0 || wire->server >= 0)
      continue;
    if (dial(&client, atomic_load(&relay->target)) != 0)
      break;
    wire->client = fd;
    wire->server = client.fd;
    wire->silent = false;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    return;
  }
  close(fd);
}

/* A wire that was cut, or is silent, ends unseen when its server's side does. */
static void obey(relay_t *relay) {
  char order = 0;
  (void)!read(relay->orders[0], &order, 1);
  for (size_t i = 0; i < WIRES_MAX; i++) {
    wire_t *wire = &relay->wires[i];
    if (wire->client < 0)
      continue;
    wire->silent = true;
    forget(&wire->to_client);
    if (order != 'g')
      forget(&wire->to_server);
    if (order == 's')
      continue;
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    setsockopt(wire->client, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    drop(&wire->client);
  }
  atomic_fetch_add(&relay->obeyed, 1);
}

static struct pollfd listen_to(int fd, bool deaf) {
  return (struct pollfd){.fd = deaf ? -1 : fd, .events = POLLIN};
}

static void *run(void *arg) {
  relay_t *relay = arg;
  for (;;) {
    struct pollfd polls[2 + 2 * WIRES_MAX];
    polls[0] = listen_to(relay->orders[0], false);
    polls[1] = listen_to(relay->listener, false);
    for (size_t i = 0; i < WIRES_MAX; i++) {
      const wire_t *wire = &relay->wires[i];
      polls[2 + 2 * i] = listen_to(wire->client, wire->silent || wire->to_server.ended);
      polls[3 + 2 * i] = listen_to(wire->server, wire->silent || wire->to_client.ended);
    }
    if (poll(polls, 2 + 2 * WIRES_MAX, rest(relay)) < 0 && errno != EINTR)
      return NULL;
    int64_t delay = atomic_load(&relay->delay);
    for (size_t i = 0; i < WIRES_MAX; i++) {
      wire_t *wire = &relay->wires[i];
      if (polls[2 + 2 * i].revents != 0)
        take(&wire->to_server, wire->client, delay);
      if (polls[3 + 2 * i].revents != 0)
        take(&wire->to_client, wire->server, delay);
      if (!pass(&wire->to_server, wire->server) || !pass(&wire->to_client, wire->client))
        end(wire);
    }
    if (polls[1].revents != 0)
      welcome(relay);
    if (polls[0].revents & POLLIN)
      obey(relay);
    else if (polls[0].revents != 0)
      return NULL;
  }
}

/* ---- for the test ---------------------------------------------------------------------------------------- */

relay_t *relay_start(const char *target) {
  relay_t *relay = calloc(1, sizeof *relay);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t len = sizeof address;
  atomic_init(&relay->target, target);
  for (size_t i = 0; i < WIRES_MAX; i++) {
    wire_t *wire = &relay->wires[i];
    wire->client = wire->server = -1;
    forget(&wire->to_client);
    forget(&wire->to_server);
  }
  relay->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(relay->listener, (struct sockaddr *)&address, len), 0);
  assert_int_equal(listen(relay->listener, 64), 0);
  assert_int_equal(getsockname(relay->listener, (struct sockaddr *)&address, &len), 0);
  assert_int_equal(pipe2(relay->orders, O_CLOEXEC), 0);
  snprintf(relay->url, sizeof relay->url, "redis://127.0.0.1:%d", ntohs(address.sin_port));
  assert_int_equal(pthread_create(&relay->thread, NULL, run, relay), 0);
  return relay;
}

void relay_stop(relay_t *relay) {
  close(relay->orders[1]);
  pthread_join(relay->thread, NULL);
  close(relay->orders[0]);
  close(relay->listener);
  for (size_t i = 0; i < WIRES_MAX; i++)
    end(&relay->wires[i]);
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

void relay_delay(relay_t *relay, int64_t ms) {
  atomic_store(&relay->delay, ms * MS);
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
