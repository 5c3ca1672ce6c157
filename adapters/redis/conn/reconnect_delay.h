/* A connection that ended, or could not be made: its log line, and the time until the next attempt. */
#ifndef BELAY_REDIS_CONN_RECONNECT_DELAY_H
#define BELAY_REDIS_CONN_RECONNECT_DELAY_H

#include "redis/conn/state.h"

/* An attempt to connect failed; the connection is lost, and its calls are still to be settled. */
void belay__connection_attempt_failed(belay__connection_t *connection, int error);
void belay__connection_was_lost(belay__connection_t *connection, int error);

#endif /* BELAY_REDIS_CONN_RECONNECT_DELAY_H */
