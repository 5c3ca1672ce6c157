#include "redis/deployment/primary_resolver.h"

/* ms without a connection to a primary after which another Sentinel is asked first */
#define USELESS_MS 5000

void belay__resolver_ask(belay__resolver_t *resolver) {
  belay__discovery_t *discovery = &resolver->discovery;
  if (discovery->state != BELAY__DISCOVERY_IDLE && discovery->state != BELAY__DISCOVERY_READY)
    return;
  resolver->has_news = resolver->hinted;
  resolver->hinted = false;
  resolver->primaries = 0;
  resolver->outdated.primary.port = 0;
  belay__discovery_ask(discovery);
}

void belay__resolver_primary_failed(belay__resolver_t *resolver) {
  belay__discovery_t *discovery = &resolver->discovery;
  uint64_t now = belay__now(&discovery->settings->host->base);
  if (resolver->failed_since == 0)
    resolver->failed_since = now;
  if (resolver->configured_count == 0 || now - resolver->failed_since < USELESS_MS * BELAY__MS)
    return;
  resolver->failed_since = 0;
  resolver->epoch = 0;
  belay__discovery_pick_other(discovery);
}
