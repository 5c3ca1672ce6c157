/* Calls on their way to the wire, and their replies. dispatch.c has the diagram. */
#ifndef BELAY_REDIS_CONN_DISPATCH_H
#define BELAY_REDIS_CONN_DISPATCH_H

#include "redis/conn/state.h"

/* Hands a call from the front of its queue to the wire. False if the wire did not take it: the call is in its queue still. */
bool belay__link_hand_over(belay__link_t *link, belay__call_t *call);
/* Calls were handed over, all that were to be or not: ends a wire that memory has run out for. */
void belay__link_handed_over(belay__link_t *link, bool all);

/* In a callback of the wire's: the reply to a call that is not in flight any more; and when all are given that the
 * callback has. */
void belay__link_answer(belay__link_t *link, belay__call_t *call, const belay__reply_t *reply);
void belay__link_answered(belay__link_t *link);

/* The same: it was refused before anything was executed, and is sent again at once. */
void belay__link_resend(belay__link_t *link, belay__call_t *call);

/* What was to go elsewhere does not. */
void belay__link_stay(belay__link_t *link, const belay__reply_t *reply);

#endif /* BELAY_REDIS_CONN_DISPATCH_H */
