/* The calls that a connection has queued: sent while it is up, judged when it is lost. */
#ifndef BELAY_REDIS_CONN_QUEUE_H
#define BELAY_REDIS_CONN_QUEUE_H

#include "redis/conn/state.h"

/* Hands queued calls to the wire, as many as it may carry. */
void belay__link_pump(belay__link_t *link);

/* Takes back all that is queued, in order. */
void belay__link_surrender(belay__link_t *link, belay__list_t *out);

/* What is queued is refused. */
void belay__link_refuse(belay__link_t *link, int error);

/* Judges the calls that a connection that is gone has dropped. */
void belay__link_settle(belay__link_t *link, int error);

#endif /* BELAY_REDIS_CONN_QUEUE_H */
