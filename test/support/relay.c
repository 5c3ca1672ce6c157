#include "support/relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/resp.h"
#include "support/unit.h"

#define WIRES_MAX 64

typedef struct wire {
  int client, server; /* -1: none */
  bool silent;
} wire_t;

struct relay {
  const char *path;
  pthread_t thread;
  int listener, orders[2];
  atomic_uint connections, obeyed;
  char url[64];
  wire_t wires[WIRES_MAX];
};

static void drop(int *fd) {
  if (*fd >= 0)
    close(*fd);
  *fd = -1;
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
    if (resp_dial_unix(&client, relay->path) != 0)
      break;
    *wire = (wire_t){.client = fd, .server = client.fd};
    return;
  }
  close(fd);
}

/* Passes on what is there; at its end hangs up on both sides. */
static void pass(wire_t *wire, int from, int to) {
  char buffer[65536];
  ssize_t n = recv(from, buffer, sizeof buffer, 0);
  if (n > 0 && resp_send(to, buffer, (size_t)n) == 0)
    return;
  drop(&wire->client);
  drop(&wire->server);
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
    if (order != 'c')
      continue;
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    setsockopt(wire->client, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    drop(&wire->client);
  }
  atomic_fetch_add(&relay->obeyed, 1);
}

static void *run(void *arg) {
  relay_t *relay = arg;
  for (;;) {
    struct pollfd polls[2 + 2 * WIRES_MAX];
    polls[0] = (struct pollfd){.fd = relay->orders[0], .events = POLLIN};
    polls[1] = (struct pollfd){.fd = relay->listener, .events = POLLIN};
    for (size_t i = 0; i < WIRES_MAX; i++) {
      const wire_t *wire = &relay->wires[i];
      polls[2 + 2 * i] = (struct pollfd){.fd = wire->silent ? -1 : wire->client, .events = POLLIN};
      polls[3 + 2 * i] = (struct pollfd){.fd = wire->silent ? -1 : wire->server, .events = POLLIN};
    }
    if (poll(polls, 2 + 2 * WIRES_MAX, -1) < 0 && errno != EINTR)
      return NULL;
    for (size_t i = 0; i < WIRES_MAX; i++) {
      wire_t *wire = &relay->wires[i];
      if (polls[2 + 2 * i].revents != 0)
        pass(wire, wire->client, wire->server);
      if (polls[3 + 2 * i].revents != 0 && wire->server >= 0)
        pass(wire, wire->server, wire->client);
    }
    if (polls[1].revents != 0)
      welcome(relay);
    if (polls[0].revents & POLLIN)
      obey(relay);
    else if (polls[0].revents != 0)
      return NULL;
  }
}

relay_t *relay_start(const char *server_path) {
  relay_t *relay = calloc(1, sizeof *relay);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t len = sizeof address;
  relay->path = server_path;
  for (size_t i = 0; i < WIRES_MAX; i++)
    relay->wires[i].client = relay->wires[i].server = -1;
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
  for (size_t i = 0; i < WIRES_MAX; i++) {
    drop(&relay->wires[i].client);
    drop(&relay->wires[i].server);
  }
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

const char *relay_url(const relay_t *relay) {
  return relay->url;
}

unsigned relay_connections(relay_t *relay) {
  return atomic_load(&relay->connections);
}
