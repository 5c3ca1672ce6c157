/* Whether a connection that is up is of use still. liveness.c has the diagram. */
#ifndef BELAY_REDIS_CONN_LIVENESS_H
#define BELAY_REDIS_CONN_LIVENESS_H

#include "redis/conn/state.h"

/* Whether answers are owed, and nothing has been heard for so many nanoseconds. */
bool belay__connection_owes_reply(const belay__connection_t *connection, uint64_t limit);

/* The same. A loop that was away has heard nothing either: so the answer is yes only if the loop has turned since it was
 * first asked about. */
bool belay__connection_is_silent(belay__connection_t *connection, uint64_t limit);

/* What is watched for may have changed. */
void belay__connection_watch(belay__connection_t *connection);
/* Asks for a sign of life, unless an answer is owed anyway. */
void belay__connection_ping(belay__connection_t *connection);
/* A connection that nothing was heard of for long may be dead, and would tell so only after a time-out: it is asked. */
void belay__connection_check_if_idle(belay__connection_t *connection);

/* The server owes something. */
void belay__connection_reply_expected(belay__connection_t *connection);
/* The server has answered all that it was asked up to here. */
void belay__connection_reply_received(belay__connection_t *connection);

#endif /* BELAY_REDIS_CONN_LIVENESS_H */
