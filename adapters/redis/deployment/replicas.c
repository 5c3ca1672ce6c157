/* The finder for a list of addresses: everybody is asked who it is (ROLE), and exactly one must be the primary. The
 * others, whoever they say they are, are taken for its replicas: that is asked again where one is connected to.
 *
 * Two who say that they are the primary are one that is and one that was replaced and does not know it yet, and which is
 * which cannot be seen from here: so neither is used until one of them has given up. */
#include "redis/deployment/replicas.h"

#include <stdio.h>

#include "redis/conn/handshake.h"

static belay__finder_t *finder_of(belay__scout_t *scout) {
  return BELAY__CONTAINER(scout, belay__finder_t, scout);
}

static void ask(belay__scout_t *scout) {
  belay__scout_say(scout, 1, (const char *const[]){"ROLE"});
}

static bool is_sentinel(const belay__reply_t *reply) {
  return reply->type == BELAY__REPLY_ARRAY && reply->count > 0 &&
         belay__reply_is(reply->items[0], "sentinel", 8);
}

/* All are asked, whatever the first of them say. */
static belay__scout_verdict_t answer(belay__scout_t *scout, const belay__reply_t *reply) {
  belay__finder_t *finder = finder_of(scout);
  belay__place_t *primary = &finder->found.primary;
  char words[64 + BELAY__HOST_MAX];
  bool is_primary = belay__role_is(reply, BELAY__ROLE_PRIMARY);
  if (is_primary && finder->primaries++ > 0) {
    snprintf(words, sizeof words, "it is a primary, and %s:%u is one too", primary->host,
             primary->port);
    belay__scout_blame(scout, BELAY_ESPLIT, words);
  } else if (is_primary) {
    *primary = *belay__scout_place(scout);
  } else if (is_sentinel(reply) && finder->primaries == 0) {
    belay__scout_blame(scout, BELAY_EREFUSED, "it is a sentinel, which has no data");
  } else if (reply->type == BELAY__REPLY_ARRAY && finder->primaries == 0) {
    belay__scout_blame(scout, BELAY_EREADONLY, "it is a replica");
  }
  return BELAY__SCOUT_NEXT;
}

static void name_replicas(belay__finder_t *finder) {
  const belay__scout_t *scout = &finder->scout;
  belay__found_t *found = &finder->found;
  found->replica_count = 0;
  for (size_t i = 0; i < scout->count && found->replica_count < BELAY__REPLICAS_MAX; i++)
    if (!belay__place_is(&scout->places[i], &found->primary))
      found->replicas[found->replica_count++] = scout->places[i];
}

static void over(belay__scout_t *scout, int error) {
  belay__finder_t *finder = finder_of(scout);
  if (finder->primaries > 1)
    error = BELAY_ESPLIT;
  else if (finder->primaries == 1)
    error = 0;
  if (error != 0)
    belay__scout_explain(scout, error);
  name_replicas(finder);
  finder->told(finder, error);
}

static const belay__scout_ops_t ops = {.ask = ask, .answer = answer, .over = over};

void belay__replicas_init(belay__finder_t *finder, belay__trunk_t *trunk,
                          const belay__place_t *places, size_t n) {
  belay__scout_init(&finder->scout, trunk, &ops, trunk->identity, places, n);
}
