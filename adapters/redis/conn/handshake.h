/* The first commands on a connection. handshake.c has the diagram. */
#ifndef BELAY_REDIS_CONN_HANDSHAKE_H
#define BELAY_REDIS_CONN_HANDSHAKE_H

#include "redis/conn/state.h"

/* Sends what must be agreed on before the first call, or before listening. shaken is called once, unless the connection
 * ends before: 0, or the error that is to end the connection. It may be called inside this. */
void belay__handshake_start(belay__connection_t *connection,
                            void (*handshake_done)(belay__connection_t *connection, int error));

/* The cause in words when a server does not have that role any more. */
const char *belay__role_words(belay__role_t role);

/* Whether that is the answer to ROLE of a server that is this. */
bool belay__role_is(const belay__reply_t *reply, belay__role_t role);

#endif /* BELAY_REDIS_CONN_HANDSHAKE_H */
