/* Decides the outcome of the calls of a connection that ended. */
#ifndef BELAY_REDIS_CONN_REQUEUE_H
#define BELAY_REDIS_CONN_REQUEUE_H

#include "redis/conn/state.h"

/* Ends each call that the transport gave back when it closed (connection->dropped), or queues it
 * again. A call of which bytes left the process counts as sent: its outcome is unknown. A call
 * that was not sent goes back to the front of its queue, in order. error: the reason for which
 * the connection ended. */
void belay__connection_requeue_dropped(belay__connection_t *connection, int error);

#endif /* BELAY_REDIS_CONN_REQUEUE_H */
