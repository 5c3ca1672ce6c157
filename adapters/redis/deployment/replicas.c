/* The resolver for a list of addresses: all servers are asked for their role (ROLE), and exactly
 * one must be the primary. The others count as its replicas; their role is checked again at each
 * connection.
 *
 * If two servers report to be the primary, one of them was replaced and does not know it yet.
 * The client cannot see which, so it uses neither until one of them is demoted. */
#include "redis/deployment/replicas.h"

#include <stdio.h>

#include "redis/conn/handshake.h"

static belay__resolver_t *resolver_of(belay__discovery_t *discovery) {
  return BELAY__CONTAINER(discovery, belay__resolver_t, discovery);
}

static void ask(belay__discovery_t *discovery) {
  belay__discovery_send(discovery, 1, (const char *const[]){"ROLE"});
}

static bool is_sentinel(const belay__reply_t *reply) {
  return reply->type == BELAY__REPLY_ARRAY && reply->count > 0 &&
         belay__reply_is(reply->items[0], "sentinel", 8);
}

/* All servers are asked in any case. */
static belay__discovery_verdict_t answer(belay__discovery_t *discovery,
                                         const belay__reply_t *reply) {
  belay__resolver_t *resolver = resolver_of(discovery);
  belay__place_t *primary = &resolver->found.primary;
  char words[64 + BELAY__HOST_MAX];
  bool is_primary = belay__role_is(reply, BELAY__ROLE_PRIMARY);
  if (is_primary && resolver->primaries++ > 0) {
    snprintf(words, sizeof words, "it is a primary, and %s:%u is one too", primary->host,
             primary->port);
    belay__discovery_set_cause(discovery, BELAY_ESPLIT, words);
  } else if (is_primary) {
    *primary = *belay__discovery_place(discovery);
  } else if (is_sentinel(reply) && resolver->primaries == 0) {
    belay__discovery_set_cause(discovery, BELAY_EREFUSED, "it is a sentinel, which has no data");
  } else if (reply->type == BELAY__REPLY_ARRAY && resolver->primaries == 0) {
    belay__discovery_set_cause(discovery, BELAY_EREADONLY, "it is a replica");
  }
  return BELAY__DISCOVERY_NEXT;
}

static void name_replicas(belay__resolver_t *resolver) {
  const belay__discovery_t *discovery = &resolver->discovery;
  belay__found_t *found = &resolver->found;
  found->replica_count = 0;
  for (size_t i = 0; i < discovery->count && found->replica_count < BELAY__REPLICAS_MAX; i++)
    if (!belay__place_is(&discovery->places[i], &found->primary))
      found->replicas[found->replica_count++] = discovery->places[i];
}

static void on_over(belay__discovery_t *discovery, int error) {
  belay__resolver_t *resolver = resolver_of(discovery);
  if (resolver->primaries > 1)
    error = BELAY_ESPLIT;
  else if (resolver->primaries == 1)
    error = 0;
  if (error != 0)
    belay__discovery_report(discovery, error);
  name_replicas(resolver);
  resolver->on_resolved(resolver, error);
}

static const belay__discovery_ops_t ops = {.ask = ask, .answer = answer, .on_over = on_over};

void belay__replicas_init(belay__resolver_t *resolver, belay__settings_t *settings,
                          const belay__place_t *places, size_t n) {
  belay__discovery_init(&resolver->discovery, settings, &ops, settings->login, places, n);
}
