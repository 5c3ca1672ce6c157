/* Who we are to a server, and what it says to that. */
#ifndef BELAY_REDIS_CONN_AUTH_H
#define BELAY_REDIS_CONN_AUTH_H

#include "core/call/call.h"
#include "core/client/client.h"
#include "redis/net/transport.h"

typedef struct belay__login {
  const char *username, *password;  /* NULL: none */
  belay_credentials_fn credentials; /* asked instead of them; NULL: there is none */
  void *credentials_ctx;
} belay__login_t;

/* Sends AUTH, if there is anything to say; fn gets the answer. Returns 0, or BELAY_EAUTH if it cannot be found out what to
 * say; then the client knows the reason, and nothing was sent. */
int belay__auth_send(const belay__login_t *login, belay_client_t *client,
                     belay__transport_t *transport, redisCallbackFn *fn);

/* Keeps what a server refuses with, without the password. */
void belay__auth_report(const belay__login_t *login, belay_client_t *client,
                        const belay__reply_t *reply, int error);

/* What the answer means: 0, or an error, whose words the client then knows. */
int belay__auth_read(const belay__login_t *login, belay_client_t *client,
                     const belay__reply_t *reply);

#endif /* BELAY_REDIS_CONN_AUTH_H */
