/* The first commands on a connection. handshake.c has the diagram. */
#ifndef BELAY_REDIS_CONN_HANDSHAKE_H
#define BELAY_REDIS_CONN_HANDSHAKE_H

#include "redis/conn/state.h"

/* Sends the commands of the handshake. handshake_done is called once with 0 or the error that
 * must end the connection, possibly inside this call. It is not called if the connection ends
 * before. */
void belay__handshake_start(belay__connection_t *connection,
                            void (*handshake_done)(belay__connection_t *connection, int error));

/* Returns the cause of a disconnect, as text, for a server that does not have the role. */
const char *belay__role_words(belay__role_t role);

/* True if the reply to ROLE is that of a server with the role. */
bool belay__role_is(const belay__reply_t *reply, belay__role_t role);

#endif /* BELAY_REDIS_CONN_HANDSHAKE_H */
