/* A TLS connection: TLS on one connected socket.
 *
 *   new --shake, several times--> through --what comes is no TLS, or an alert--> failed
 *                 |                                                                ^
 *                 +--the server has not proved who it is, or turns us away---------+
 *
 * A TLS connection that is not through writes nothing but the handshake. And even then it may be doubted: in TLS 1.3 a server
 * looks at our certificate, or at there being none, when the handshake is through for us, and says what it thinks of it
 * in the place of its first answer. */
#ifndef BELAY_REDIS_NET_TLS_CONNECTION_H
#define BELAY_REDIS_NET_TLS_CONNECTION_H

#include "redis/net/tls.h"

typedef struct belay__tls_connection belay__tls_connection_t;

/* A TLS connection on a connected socket; host: the name or the numeric address that was connected to. The tls must outlive it.
 * NULL if memory is out. */
belay__tls_connection_t *belay__tls_connection_new(belay_tls_t *tls, int fd, const char *host);
void belay__tls_connection_free(belay__tls_connection_t *connection); /* also NULL */

/* Continues the handshake. 0: complete; UV_READABLE or UV_WRITABLE: the event to wait for; or an
 * error. */
int belay__tls_connection_handshake(belay__tls_connection_t *connection);

/* Whether the server may still turn us away: it has asked for our certificate, and not answered anything yet. */
bool belay__tls_connection_needs_confirmation(const belay__tls_connection_t *connection);

/* The socket may be read from once more. A server that never stops talking would hold the loop: so
 * belay__tls_connection_read() reads from it at most once after each of these. */
void belay__tls_connection_allow_read(belay__tls_connection_t *connection);

/* Like recv() and send() of the socket (redis/net/socket.h). EPROTO: a TLS error. Bytes that
 * were not taken must be passed again, followed by any others. */
ssize_t belay__tls_connection_read(belay__tls_connection_t *connection, char *buffer, size_t size);
ssize_t belay__tls_connection_write(belay__tls_connection_t *connection, const char *data,
                                    size_t len);

/* Whether something may lie in the TLS connection that the socket, which has given it away, does not tell of any more. */
bool belay__tls_connection_has_more(const belay__tls_connection_t *connection);

/* The number of bytes that belay__tls_connection_write() did not take but may have sent in part. */
size_t belay__tls_connection_partial_bytes(const belay__tls_connection_t *connection);

/* Why it did not come to be, without a secret; and BELAY_ETLS, or BELAY_EUNREACHABLE where it is the network that failed.
 * NULL: it is in use, or was given up before anything went wrong. Valid as long as the TLS connection. */
const char *belay__tls_connection_error(const belay__tls_connection_t *connection, int *error);

#endif /* BELAY_REDIS_NET_TLS_CONNECTION_H */
