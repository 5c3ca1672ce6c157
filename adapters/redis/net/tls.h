/* TLS settings from which TLS connections (redis/net/tls_connection.h) are made, shared by
 * clients. */
#ifndef BELAY_REDIS_NET_TLS_H
#define BELAY_REDIS_NET_TLS_H

#include <openssl/ssl.h>

#include "belay/tls.h"
#include "uv/host.h"

#define BELAY__TLS_NAME_MAX ((size_t)255)

struct belay_tls {
  belay__list_t node;  /* in survivors of the belay_t; unlinked: the belay_t is gone */
  belay__host_t *host; /* invalid if the belay_t is gone */
  belay_allocator_t allocator;
  unsigned refs;                             /* one for the program, one for each client */
  SSL_CTX *context;                          /* of the last reload */
  BIO_METHOD *socket_method;                 /* socket functions of TLS connections */
  char server_name[BELAY__TLS_NAME_MAX + 1]; /* "": the name of the server that is connected to */
};

/* Returns the default settings: the system's authorities, one instance for all clients. */
int belay__tls_of_system(belay__host_t *host, belay_tls_t **out);

belay_tls_t *belay__tls_retain(belay_tls_t *tls);
void belay__tls_release(belay_tls_t *tls); /* tls may be NULL */

#endif /* BELAY_REDIS_NET_TLS_H */
