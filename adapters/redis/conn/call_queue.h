/* The calls that a connection has queued: sent while it is up, judged when it is lost. */
#ifndef BELAY_REDIS_CONN_CALL_QUEUE_H
#define BELAY_REDIS_CONN_CALL_QUEUE_H

#include "redis/conn/state.h"

/* Hands queued calls to the transport, as many as it may carry. */
void belay__connection_send_queued(belay__connection_t *connection);

/* Takes back all that is queued, in order. */
void belay__connection_take_queued(belay__connection_t *connection, belay__list_t *out);

/* What is queued is refused. */
void belay__connection_refuse_queued(belay__connection_t *connection, int error);

#endif /* BELAY_REDIS_CONN_CALL_QUEUE_H */
