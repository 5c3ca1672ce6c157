/* Failed attempts and lost connections: the log line, and the time until the next attempt. */
#ifndef BELAY_REDIS_CONN_RECONNECT_DELAY_H
#define BELAY_REDIS_CONN_RECONNECT_DELAY_H

#include "redis/conn/state.h"

/* Reports a failed attempt to connect, or a lost connection, and starts the back-off. After a
 * loss the caller must still requeue the dropped calls. */
void belay__connection_attempt_failed(belay__connection_t *connection, int error);
void belay__connection_was_lost(belay__connection_t *connection, int error);

#endif /* BELAY_REDIS_CONN_RECONNECT_DELAY_H */
