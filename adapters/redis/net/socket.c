#include "redis/net/socket.h"

#include <sys/socket.h>
#include <unistd.h>

ssize_t belay__socket_read(int fd, char *buffer, size_t size) {
  return recv(fd, buffer, size, 0);
}

ssize_t belay__socket_write(int fd, const char *data, size_t len) {
  int flags = 0;
#ifdef MSG_NOSIGNAL
  flags = MSG_NOSIGNAL; /* the program may not ignore SIGPIPE */
#endif
  return send(fd, data, len, flags);
}

void belay__socket_reset(int fd) {
  struct linger reset = {.l_onoff = 1, .l_linger = 0};
  (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  close(fd);
}

int belay__socket_watch(belay__uv_handle_t *handle, int events, uv_poll_cb cb) {
  return uv_poll_start(&handle->u.poll, events, cb);
}

void belay__socket_ignore(belay__uv_handle_t *handle) {
  uv_poll_stop(&handle->u.poll);
}

bool belay__socket_is_closing(const belay__uv_handle_t *handle) {
  return uv_is_closing(&handle->u.any);
}
