/* The pace: how often a loop's clients dial again after a connection was lost or not to be had, all together. When a
 * server goes, everybody notices at once; whoever takes its place must not be run over. */
#ifndef BELAY_REDIS_PACE_H
#define BELAY_REDIS_PACE_H

#include "uv/host.h"

/* Reserves the next turn, and tells when it is: now, or later. First come, first served. */
uint64_t belay__pace(belay__host_t *host);

#endif /* BELAY_REDIS_PACE_H */
