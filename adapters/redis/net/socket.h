/* The socket functions of a transport: all system calls, and libuv's poll handle. The simulator
 * implements this header, dial.h and uv/host.h on its own network. */
#ifndef BELAY_REDIS_NET_SOCKET_H
#define BELAY_REDIS_NET_SOCKET_H

#include <errno.h>
#include <stdbool.h>
#include <sys/types.h>

#include "uv/handle.h"

/* Like recv() and send(), but a write never raises SIGPIPE. */
ssize_t belay__socket_read(int fd, char *buffer, size_t size);
ssize_t belay__socket_write(int fd, const char *data, size_t len);

/* True for an errno of these two after which the socket can be tried again. */
static inline bool belay__socket_error_passes(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

/* Closes the socket with a reset: unsent bytes are dropped, and the peer is notified. */
void belay__socket_reset(int fd);

/* Calls back while one of these events is present. Replaces earlier events. Returns 0 or an
 * error. */
int belay__socket_watch(belay__uv_handle_t *handle, int events, uv_poll_cb cb);
void belay__socket_ignore(belay__uv_handle_t *handle);

/* True if the handle was closed elsewhere. */
bool belay__socket_is_closing(const belay__uv_handle_t *handle);

#endif /* BELAY_REDIS_NET_SOCKET_H */
