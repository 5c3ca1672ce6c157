/* The reason for which a TLS handshake failed, in words. */
#ifndef BELAY_REDIS_NET_TLS_ERROR_H
#define BELAY_REDIS_NET_TLS_ERROR_H

#include <openssl/ssl.h>
#include <stdbool.h>

#define BELAY__TLS_ERROR_MAX ((size_t)400) /* bytes of a reason, a 0 included */

/* Writes the reason for a failed handshake, from OpenSSL's queue of errors. name: the name or the address that the
 * certificate must be for. demanded: the server has asked for a certificate of the client. */
void belay__tls_error(const SSL *ssl, const char *name, bool demanded,
                      char out[BELAY__TLS_ERROR_MAX]);

#endif /* BELAY_REDIS_NET_TLS_ERROR_H */
