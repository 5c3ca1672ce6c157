#include "redis/pace.h"

#define BURST 5 /* of a second's turns, one part in so many may come at once */

/* A bucket as a point in time ("generic cell rate algorithm"): up to when turns are given away, if they had come one
 * after the other. */
uint64_t belay__pace(belay__host_t *host) {
  const uint64_t second = 1000 * BELAY__MS, interval = second / host->base.reconnects_per_s;
  uint64_t now = belay__now(&host->base), most = second / BURST;
  if (host->base.paced_until < now)
    host->base.paced_until = now;
  uint64_t turn = host->base.paced_until > now + most ? host->base.paced_until - most : now;
  host->base.paced_until += interval;
  return turn;
}
