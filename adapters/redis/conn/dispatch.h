/* Hands calls to the transport and replies to the calls. dispatch.c has the diagram. */
#ifndef BELAY_REDIS_CONN_DISPATCH_H
#define BELAY_REDIS_CONN_DISPATCH_H

#include "redis/conn/state.h"

/* Appends a call from the front of its queue to the transport. False if the transport did not
 * take it; the call is then in its queue again. */
bool belay__connection_dispatch(belay__connection_t *connection, belay__call_t *call);
/* Ends a dispatch of one call or several. all: all of them were appended. If not, memory ran out
 * and the transport is broken. */
void belay__connection_dispatched(belay__connection_t *connection, bool all);

/* For callbacks of the transport. finish_call() processes the reply to one call, which in_flight
 * does not count any more. replies_done() follows after the last reply of the callback. */
void belay__connection_finish_call(belay__connection_t *connection, belay__call_t *call,
                                   const belay__reply_t *reply);
void belay__connection_replies_done(belay__connection_t *connection);

/* For callbacks of the transport: sends a call again at once. The server refused it before it
 * executed anything. */
void belay__connection_resend(belay__connection_t *connection, belay__call_t *call);

/* Ends the calls that were to be redirected and cannot be. reply: the error of the server, or
 * NULL. */
void belay__connection_cancel_redirect(belay__connection_t *connection,
                                       const belay__reply_t *reply);

#endif /* BELAY_REDIS_CONN_DISPATCH_H */
