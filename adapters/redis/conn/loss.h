/* A connection that ended, or could not be made: its log line, and the time until the next attempt. */
#ifndef BELAY_REDIS_CONN_LOSS_H
#define BELAY_REDIS_CONN_LOSS_H

#include "redis/conn/state.h"

/* An attempt to connect failed; the connection is lost, and its calls are still to be settled. */
void belay__link_fail(belay__link_t *link, int error);
void belay__link_lose(belay__link_t *link, int error);

#endif /* BELAY_REDIS_CONN_LOSS_H */
