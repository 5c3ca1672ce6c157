#include "redis/net/tls_socket.h"

#include <errno.h>

#include "redis/net/socket.h"

static int read_socket(BIO *bio, char *buffer, int size) {
  belay__tls_socket_t *from = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  if (from->reads == 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  from->reads--;
  ssize_t n = belay__socket_read(from->fd, buffer, (size_t)size);
  if (n < 0 && belay__socket_error_passes(errno))
    BIO_set_retry_read(bio);
  else if (n < 0)
    from->read_error = errno;
  else if (n == 0)
    from->ended = true;
  else if (from->first < 0)
    from->first = (unsigned char)buffer[0];
  return (int)n;
}

/* A failed write looks like a full socket to OpenSSL. The TLS connection gets write_error, so
 * that bytes which the server sent before it closed can still be read. */
static int write_socket(BIO *bio, const char *data, int len) {
  belay__tls_socket_t *from = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  ssize_t n = from->write_error != 0 ? -1 : belay__socket_write(from->fd, data, (size_t)len);
  if (n >= 0) {
    from->sent += (uint64_t)n;
    return (int)n;
  }
  if (from->write_error == 0 && !belay__socket_error_passes(errno))
    from->write_error = errno;
  BIO_set_retry_write(bio);
  return -1;
}

static long control(BIO *bio, int command, long number, void *pointer) {
  (void)number;
  (void)pointer;
  const belay__tls_socket_t *from = BIO_get_data(bio);
  if (command == BIO_CTRL_EOF)
    return from->ended;
  return command == BIO_CTRL_FLUSH; /* nothing is buffered here */
}

BIO_METHOD *belay__tls_socket_method(void) {
  BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "belay's socket");
  if (method == NULL)
    return NULL;
  (void)BIO_meth_set_read(method, read_socket);
  (void)BIO_meth_set_write(method, write_socket);
  (void)BIO_meth_set_ctrl(method, control);
  return method;
}

BIO *belay__tls_socket_bio(const BIO_METHOD *method, belay__tls_socket_t *from) {
  BIO *bio = BIO_new(method);
  if (bio == NULL)
    return NULL;
  BIO_set_data(bio, from);
  BIO_set_init(bio, 1);
  return bio;
}
