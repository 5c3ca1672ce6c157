/* Whether a server is away, for all connections to it together. outage.c has the diagram. */
#ifndef BELAY_REDIS_CONN_OUTAGE_H
#define BELAY_REDIS_CONN_OUTAGE_H

#include "redis/conn/state.h"

/* For a call with fail_fast: 0; or the server is away, and the error with which the call ends in place
 * of being queued, which the client knows in words. Then the caller makes the link connect. */
int belay__outage_check(belay__link_t *link);

/* For a call that is about to be queued: whether a refusal that may pass ends it. */
bool belay__outage_refuses(const belay__link_t *link, const belay__call_t *call);

/* An attempt to connect failed; a connection was made, which returns true if the server was away; something was read. */
void belay__outage_failed(belay__link_t *link, int error);
bool belay__outage_connected(belay__link_t *link);
void belay__outage_heard(belay__link_t *link);

/* The deadline of a call is over that was sent on the link. The same of a call that was queued; returns
 * the error with which it ends. */
void belay__outage_overdue(belay__link_t *link, const belay__call_t *call);
int belay__outage_unsent(belay__link_t *link);

/* Calls with fail_fast that are queued for a server that is away end; from the loop. */
void belay__outage_refuse_soon(belay__cable_t *cable);
void belay__outage_on_refuse(belay__timer_t *timer);

/* Whether the link is to go on trying although no call waits: calls with fail_fast were refused of
 * late. And it does not try any more: if no other does, it is not known whether the server is away. */
bool belay__outage_probes(const belay__link_t *link);
void belay__outage_rests(belay__link_t *link);

/* Whether the link is to try less often to connect than another one of the cable does. */
bool belay__outage_spares(belay__link_t *link);

#endif /* BELAY_REDIS_CONN_OUTAGE_H */
