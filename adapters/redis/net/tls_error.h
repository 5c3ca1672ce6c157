/* The reason for which a TLS handshake failed, as text. */
#ifndef BELAY_REDIS_NET_TLS_ERROR_H
#define BELAY_REDIS_NET_TLS_ERROR_H

#include <openssl/ssl.h>
#include <stdbool.h>

#define BELAY__TLS_ERROR_MAX ((size_t)400) /* bytes of a reason, the terminating 0 included */

/* Writes the reason for a failed handshake, from OpenSSL's queue of errors. name: the name or
 * address that the certificate must have. demanded: the server asked for a client certificate. */
void belay__tls_error(const SSL *ssl, const char *name, bool demanded,
                      char out[BELAY__TLS_ERROR_MAX]);

#endif /* BELAY_REDIS_NET_TLS_ERROR_H */
