/* The queued calls of a connection. */
#ifndef BELAY_REDIS_CONN_CALL_QUEUE_H
#define BELAY_REDIS_CONN_CALL_QUEUE_H

#include "redis/conn/state.h"

/* Sends queued calls as far as the transport and max_pending permit. */
void belay__connection_send_queued(belay__connection_t *connection);

/* Moves all queued calls to out, in order. */
void belay__connection_take_queued(belay__connection_t *connection, belay__list_t *out);

/* Ends all queued calls as refused with that error. */
void belay__connection_refuse_queued(belay__connection_t *connection, int error);

/* Ends each call that the transport gave back when it closed (connection->dropped), or queues it
 * again. A call of which bytes left the process counts as sent: its outcome is unknown. A call
 * that was not sent goes back to the front of its queue, in order. error: the reason for which
 * the connection ended. */
void belay__connection_requeue_dropped(belay__connection_t *connection, int error);

#endif /* BELAY_REDIS_CONN_CALL_QUEUE_H */
