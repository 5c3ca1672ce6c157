/* A TLS connection: TLS on one connected socket.
 *
 *   new --handshake, in several steps--> complete
 *                 |                         |
 *                 +--no TLS, an alert, no proof of identity--> failed
 *
 * Before the handshake is complete only its own messages are written. In TLS 1.3 the server checks
 * the client's certificate after the client has completed the handshake. Its refusal then arrives
 * in place of the first reply (needs_confirmation). */
#ifndef BELAY_REDIS_NET_TLS_CONNECTION_H
#define BELAY_REDIS_NET_TLS_CONNECTION_H

#include "redis/net/tls.h"

typedef struct belay__tls_connection belay__tls_connection_t;

/* Makes a TLS connection on a connected socket. host: the name or numeric address of the server.
 * tls must outlive the connection. NULL if memory is out. */
belay__tls_connection_t *belay__tls_connection_new(belay_tls_t *tls, int fd, const char *host);
void belay__tls_connection_free(belay__tls_connection_t *connection); /* may be NULL */

/* Continues the handshake. 0: complete; UV_READABLE or UV_WRITABLE: the event to wait for; or an
 * error. */
int belay__tls_connection_handshake(belay__tls_connection_t *connection);

/* True if the server may still refuse the client: it asked for a certificate and has sent no data
 * yet. */
bool belay__tls_connection_needs_confirmation(const belay__tls_connection_t *connection);

/* Permits one more read of the socket by belay__tls_connection_read(). So a server that never stops
 * sending cannot hold the loop. */
void belay__tls_connection_allow_read(belay__tls_connection_t *connection);

/* Like recv() and send() of the socket (redis/net/socket.h). EPROTO: a TLS error. Bytes that
 * were not taken must be passed again, followed by any others. */
ssize_t belay__tls_connection_read(belay__tls_connection_t *connection, char *buffer, size_t size);
ssize_t belay__tls_connection_write(belay__tls_connection_t *connection, const char *data,
                                    size_t len);

/* True if the TLS connection may hold data that it has already taken from the socket. */
bool belay__tls_connection_has_more(const belay__tls_connection_t *connection);

/* The number of bytes that belay__tls_connection_write() did not take but may have sent in part. */
size_t belay__tls_connection_partial_bytes(const belay__tls_connection_t *connection);

/* Returns the reason for which the connection failed, as text without secrets, and sets *error:
 * BELAY_ETLS, or BELAY_EUNREACHABLE for an error of the network. NULL: it was in use, or no error
 * occurred. Valid as long as the TLS connection. */
const char *belay__tls_connection_error(const belay__tls_connection_t *connection, int *error);

#endif /* BELAY_REDIS_NET_TLS_CONNECTION_H */
