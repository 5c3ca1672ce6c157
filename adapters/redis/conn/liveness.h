/* Liveness of a connection that is up. liveness.c has the diagram. */
#ifndef BELAY_REDIS_CONN_LIVENESS_H
#define BELAY_REDIS_CONN_LIVENESS_H

#include "redis/conn/state.h"

/* True if replies are due and nothing was read for limit ns. */
bool belay__connection_owes_reply(const belay__connection_t *connection, uint64_t limit);

/* Does the same, but a loop that was busy has read nothing either. So the result is true only if
 * the loop has turned since the first call for this silence. */
bool belay__connection_is_silent(belay__connection_t *connection, uint64_t limit);

/* Sets the timer again after a change of the due replies or the queue. */
void belay__connection_watch(belay__connection_t *connection);
/* Sends a PING to test the connection, unless a reply is due anyway. */
void belay__connection_ping(belay__connection_t *connection);
/* Sends a PING if the connection was idle for idle_timeout_ms. A dead connection would otherwise
 * be noticed only after a timeout. */
void belay__connection_check_if_idle(belay__connection_t *connection);

/* Notes that a reply has become due. */
void belay__connection_reply_expected(belay__connection_t *connection);
/* Notes that the reply to the last command was received. */
void belay__connection_reply_received(belay__connection_t *connection);

#endif /* BELAY_REDIS_CONN_LIVENESS_H */
