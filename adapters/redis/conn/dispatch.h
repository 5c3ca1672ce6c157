/* Calls on their way to the transport, and their replies. dispatch.c has the diagram. */
#ifndef BELAY_REDIS_CONN_DISPATCH_H
#define BELAY_REDIS_CONN_DISPATCH_H

#include "redis/conn/state.h"

/* Hands a call from the front of its queue to the transport. False if the transport did not take it: the call is in its queue still. */
bool belay__connection_dispatch(belay__connection_t *connection, belay__call_t *call);
/* Calls were handed over, all that were to be or not: ends a transport that memory has run out for. */
void belay__connection_dispatched(belay__connection_t *connection, bool all);

/* In a callback of the transport's: the reply to a call that is not in flight any more; and when all are given that the
 * callback has. */
void belay__connection_finish_call(belay__connection_t *connection, belay__call_t *call,
                                   const belay__reply_t *reply);
void belay__connection_replies_done(belay__connection_t *connection);

/* The same: it was refused before anything was executed, and is sent again at once. */
void belay__connection_resend(belay__connection_t *connection, belay__call_t *call);

/* What was to go elsewhere does not. */
void belay__connection_cancel_redirect(belay__connection_t *connection,
                                       const belay__reply_t *reply);

#endif /* BELAY_REDIS_CONN_DISPATCH_H */
