/* Whether a server is away, for all connections to it together. outage.c has the diagram. */
#ifndef BELAY_REDIS_CONN_OUTAGE_H
#define BELAY_REDIS_CONN_OUTAGE_H

#include "redis/conn/state.h"

/* For a call with fail_fast: returns 0, or the error of the outage with which the call must end.
 * The error's text becomes the client's last refusal. The caller must then make the connection
 * connect. */
int belay__outage_check(belay__connection_t *connection);

/* True if a call that is about to be queued must not wait out a temporary refusal of the server. */
bool belay__outage_refuses_call(const belay__connection_t *connection, const belay__call_t *call);

/* Events of a connection: an attempt failed, a connection was made, bytes were read.
 * belay__outage_connected() returns true if the server was away. */
void belay__outage_failed(belay__connection_t *connection, int error);
bool belay__outage_connected(belay__connection_t *connection);
void belay__outage_bytes_read(belay__connection_t *connection);

/* Deadlines: belay__outage_call_overdue() for a call that was sent on the connection,
 * belay__outage_unsent_error() for a queued call. The latter returns the error with which the
 * call ends. */
void belay__outage_call_overdue(belay__connection_t *connection, const belay__call_t *call);
int belay__outage_unsent_error(belay__connection_t *connection);

/* Ends queued calls with fail_fast for a server that is away, from the loop. */
void belay__outage_refuse_soon(belay__server_t *server);
void belay__outage_on_refuse(belay__timer_t *timer);

/* belay__outage_should_probe(): true if the connection must go on trying without a call, because
 * calls with fail_fast were refused in the last hour. belay__outage_stopped_trying(): the
 * connection stops trying. If no other connection tries, the outage is over as far as is known. */
bool belay__outage_should_probe(const belay__connection_t *connection);
void belay__outage_stopped_trying(belay__connection_t *connection);

/* True if the connection may try rarely, because another connection to the server tries often. */
bool belay__outage_may_retry_rarely(belay__connection_t *connection);

#endif /* BELAY_REDIS_CONN_OUTAGE_H */
