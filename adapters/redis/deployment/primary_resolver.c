#include "redis/deployment/primary_resolver.h"

#define USELESS_MS 5000 /* after that time without a connection another sentinel is asked first */

void belay__finder_ask(belay__finder_t *finder) {
  belay__scout_t *scout = &finder->scout;
  if (scout->state != BELAY__SCOUT_IDLE && scout->state != BELAY__SCOUT_READY)
    return;
  finder->news = finder->hinted;
  finder->hinted = false;
  finder->primaries = 0;
  finder->outdated.primary.port = 0;
  belay__scout_ask(scout);
}

void belay__finder_missed(belay__finder_t *finder) {
  belay__scout_t *scout = &finder->scout;
  uint64_t now = belay__now(&scout->trunk->host->base);
  if (finder->missed == 0)
    finder->missed = now;
  if (finder->given_count == 0 || now - finder->missed < USELESS_MS * BELAY__MS)
    return;
  finder->missed = 0;
  finder->epoch = 0;
  belay__scout_turn(scout);
}
