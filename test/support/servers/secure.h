/* Servers that speak TLS, and clients that speak it with them. */
#ifndef TEST_SUPPORT_SERVERS_SECURE_H
#define TEST_SUPPORT_SERVERS_SECURE_H

#include "support/fixtures/env.h"
#include "support/servers/certs.h"

typedef struct secure {
  const char *cert; /* of the server's; NULL: "server" */
  /* If clients must have a certificate: "no", "optional", "yes"; NULL: "no". */
  const char *clients;
  const char *versions; /* such as "TLSv1.2"; NULL: all */
  const char *password; /* NULL: none */
} secure_t;

/* A real server on 127.0.0.1, whose authority for clients is "ca". NULL: the defaults. */
server_t *secure_server(certs_t *certs, const secure_t *options);

/* Returns a URL for a port of this machine: "rediss", "secret", "localhost". secret: a password;
 * NULL: none. Valid during the next three calls. */
const char *url_of(const char *scheme, const char *secret, const char *host, int port);
/* The port in a URL such as a relay's. */
int port_of(const char *url);

/* The authority "ca", and if cert is not NULL, that certificate of our own. */
belay_tls_options_t trust(certs_t *certs, const char *cert);

/* An env with a client that has its own tls. client may be NULL. */
env_t *secure_env(const char *url, const belay_tls_options_t *tls,
                  const belay_client_options_t *client);
/* One more client with a tls of its own. */
belay_client_t *secure_connect(env_t *env, const char *url, const belay_tls_options_t *tls,
                               const belay_client_options_t *client);

/* Pings and waits for the result: the status; *detail is belay_detail(). */
int pong(env_t *env, const char **detail);

#endif /* TEST_SUPPORT_SERVERS_SECURE_H */
