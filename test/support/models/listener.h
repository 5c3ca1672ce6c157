/* What scripts publish; and scripts whose keys and arguments come as lists. */
#ifndef TEST_SUPPORT_MODELS_LISTENER_H
#define TEST_SUPPORT_MODELS_LISTENER_H

#include "support/models/scripts.h"

typedef struct listener {
  resp_client_t client;
  unsigned asked; /* number of the last question on this connection */
} listener_t;

/* script_run() and script_integer() with the keys and the arguments, each a list up to a NULL. */
const resp_t *script_call(server_t *server, const belay__script_t *script, const char *const *keys,
                          const char *const *args);
int64_t script_call_integer(server_t *server, const belay__script_t *script,
                            const char *const *keys, const char *const *args);

/* Listens to a channel of a server on a unix socket. */
void listener_open(listener_t *listener, server_t *server, const char *channel);
void listener_close(listener_t *listener);

/* Reads all that was published before this call; how many messages that was. The last of them is
 * written at out, "" if there was none. */
unsigned listener_drain(listener_t *listener, char *out, size_t size);

#endif /* TEST_SUPPORT_MODELS_LISTENER_H */
