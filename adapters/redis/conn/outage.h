/* Whether a server is away, for all connections to it together. outage.c has the diagram. */
#ifndef BELAY_REDIS_CONN_OUTAGE_H
#define BELAY_REDIS_CONN_OUTAGE_H

#include "redis/conn/state.h"

/* For a call with fail_fast: 0; or the server is away, and the error with which the call ends in place
 * of being queued, which the client knows in words. Then the caller makes the connection connect. */
int belay__outage_check(belay__connection_t *connection);

/* For a call that is about to be queued: whether a refusal that may pass ends it. */
bool belay__outage_refuses_call(const belay__connection_t *connection, const belay__call_t *call);

/* An attempt to connect failed; a connection was made, which returns true if the server was away; something was read. */
void belay__outage_failed(belay__connection_t *connection, int error);
bool belay__outage_connected(belay__connection_t *connection);
void belay__outage_bytes_read(belay__connection_t *connection);

/* The deadline of a call is over that was sent on the connection. The same of a call that was queued; returns
 * the error with which it ends. */
void belay__outage_call_overdue(belay__connection_t *connection, const belay__call_t *call);
int belay__outage_unsent_error(belay__connection_t *connection);

/* Calls with fail_fast that are queued for a server that is away end; from the loop. */
void belay__outage_refuse_soon(belay__server_t *server);
void belay__outage_on_refuse(belay__timer_t *timer);

/* Whether the connection is to go on trying although no call waits: calls with fail_fast were refused of
 * late. And it does not try any more: if no other does, it is not known whether the server is away. */
bool belay__outage_should_probe(const belay__connection_t *connection);
void belay__outage_stopped_trying(belay__connection_t *connection);

/* Whether the connection is to try less often to connect than another one of the server does. */
bool belay__outage_may_retry_rarely(belay__connection_t *connection);

#endif /* BELAY_REDIS_CONN_OUTAGE_H */
