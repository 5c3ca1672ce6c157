/* A socket on the simulated network: redis/net/socket.h. */
#include "redis/net/socket.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "sim/world/net.h"
#include "sim/scenarios/scenario.h"

#define PARTLY 5 /* of a thousand writes are not taken whole */

static sim_conn_t *conn_of(int fd) {
  sim_conn_t *conn = sim_net_conn(sim_current->world->net, fd);
  assert(conn->process == sim_current);
  return conn;
}

static size_t unread(const sim_conn_t *conn) {
  return conn->in.len - conn->in_read;
}

ssize_t belay__socket_read(int fd, char *buffer, size_t size) {
  sim_conn_t *conn = conn_of(fd);
  size_t n = unread(conn);
  if (n == 0 && conn->in_end) {
    errno = ECONNRESET;
    return conn->number % 2 == 0 ? 0 : -1;
  }
  if (n == 0) {
    errno = EAGAIN;
    return -1;
  }
  if (n > size)
    n = size;
  if (n > 1 && sim_chance(&conn->world->random, PARTLY))
    n = sim_between(&conn->world->random, 1, n);
  memcpy(buffer, conn->in.at + conn->in_read, n);
  conn->in_read += n;
  if (conn->in_read == conn->in.len)
    conn->in_read = conn->in.len = 0;
  return (ssize_t)n;
}

ssize_t belay__socket_write(int fd, const char *data, size_t len) {
  sim_conn_t *conn = conn_of(fd);
  sim_random_t *random = &conn->world->random;
  if (conn->in_end) {
    errno = EPIPE;
    return -1;
  }
  if (sim_chance(random, PARTLY)) {
    len = sim_below(random, len);
    if (len == 0) {
      errno = EAGAIN;
      return -1;
    }
  }
  sim_conn_send(conn, SIM_TO_SERVER, data, len);
  return (ssize_t)len;
}

void belay__socket_reset(int fd) {
  sim_conn_t *conn = conn_of(fd);
  sim_conn_close_process(conn, sim_chance(&conn->world->random, conn->world->scenario->ghosts));
}

/* ---- polling ---- */

static int events_of(const sim_conn_t *conn) {
  int events = 0;
  if (conn->process == NULL || conn->handle == NULL)
    return 0;
  if ((conn->events & UV_READABLE) && (unread(conn) > 0 || conn->in_end))
    events |= UV_READABLE;
  return events | (conn->events & UV_WRITABLE);
}

static void on_ready(sim_ready_t *ready) {
  sim_conn_t *conn = SIM_CONTAINER(ready, sim_conn_t, ready);
  int events = events_of(conn);
  if (events != 0)
    conn->cb(&conn->handle->u.poll, 0, events);
  if (events_of(conn) != 0)
    sim_process_ready(conn->process, ready);
}

int belay__socket_watch(belay__uv_handle_t *handle, int events, uv_poll_cb cb) {
  sim_conn_t *conn = ((sim_handle_t *)handle)->conn;
  conn->events = events;
  conn->cb = cb;
  conn->ready.run = on_ready;
  if (events_of(conn) != 0)
    sim_process_ready(conn->process, &conn->ready);
  return 0;
}

void belay__socket_ignore(belay__uv_handle_t *handle) {
  ((sim_handle_t *)handle)->conn->events = 0;
}

bool belay__socket_is_closing(const belay__uv_handle_t *handle) {
  return ((const sim_handle_t *)handle)->is_closing;
}
