/* The BIO through which OpenSSL uses a connected socket. It notes errors of the socket. */
#ifndef BELAY_REDIS_NET_TLS_SOCKET_H
#define BELAY_REDIS_NET_TLS_SOCKET_H

#include <openssl/bio.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct belay__tls_socket {
  int fd;
  unsigned reads;  /* reads of the socket that the BIO may still make */
  int first;       /* first byte that the server sent; -1: none yet */
  bool ended;      /* the server has closed its side */
  int read_error;  /* errno of the last failed read; 0: none has failed */
  int write_error; /* errno of the first failed write; 0: none has failed */
  uint64_t sent;   /* bytes that the socket took */
} belay__tls_socket_t;

/* Makes the type of these BIOs. NULL if memory is out. */
BIO_METHOD *belay__tls_socket_method(void);

/* Makes a BIO of that type on a socket, which must outlive it. NULL if memory is out. */
BIO *belay__tls_socket_bio(const BIO_METHOD *method, belay__tls_socket_t *from);

#endif /* BELAY_REDIS_NET_TLS_SOCKET_H */
