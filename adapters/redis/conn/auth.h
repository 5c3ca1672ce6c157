/* The credentials for a server, and the server's reply to AUTH. */
#ifndef BELAY_REDIS_CONN_AUTH_H
#define BELAY_REDIS_CONN_AUTH_H

#include "core/call/call.h"
#include "core/client/client.h"
#include "redis/net/transport.h"

typedef struct belay__login {
  const char *username, *password; /* NULL: none */
  /* Called for each connection in place of the two strings; NULL: use the strings. */
  belay_credentials_fn credentials;
  void *credentials_ctx;
} belay__login_t;

/* Sends AUTH if there is a password; fn receives the reply. Returns 0, or BELAY_EAUTH if the
 * credentials callback failed. Then nothing was sent, and the client has the reason
 * (belay__client_refused()). */
int belay__auth_send(const belay__login_t *login, belay_client_t *client,
                     belay__transport_t *transport, redisCallbackFn *fn);

/* Stores the text of an error reply as the client's last refusal, without the password. */
void belay__auth_report(const belay__login_t *login, belay_client_t *client,
                        const belay__reply_t *reply, int error);

/* Reads the reply to AUTH. Returns 0 or an error; the text of the error becomes the client's
 * last refusal. */
int belay__auth_read(const belay__login_t *login, belay_client_t *client,
                     const belay__reply_t *reply);

#endif /* BELAY_REDIS_CONN_AUTH_H */
