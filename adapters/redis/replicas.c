/* The finder for a list of addresses: everybody is asked who it is (ROLE), and exactly one must be the primary.
 *
 * Two who say so are a primary and one that was replaced and does not know it yet, and which is which cannot be seen from
 * here: so neither is used until one of them has given up. */
#include <string.h>

#include "redis/finder.h"
#include "redis/link.h"

static belay__finder_t *finder_of(belay__scout_t *scout) {
  return BELAY__CONTAINER(scout, belay__finder_t, scout);
}

static void ask(belay__scout_t *scout) {
  belay__scout_say(scout, 1, (const char *const[]){"ROLE"});
}

/* All are asked, whatever the first of them say. */
static belay__scout_verdict_t answer(belay__scout_t *scout, const belay__reply_t *reply) {
  belay__finder_t *finder = finder_of(scout);
  belay__found_t *found = &finder->found;
  if (reply->type == BELAY__REPLY_ARRAY)
    finder->answers++;
  if (belay__role_is(reply, BELAY__ROLE_PRIMARY)) {
    found->primary = *belay__scout_place(scout);
    finder->primaries++;
  } else if (belay__role_is(reply, BELAY__ROLE_REPLICA) &&
             found->replica_count < BELAY__REPLICAS_MAX) {
    found->replicas[found->replica_count++] = *belay__scout_place(scout);
  }
  return BELAY__SCOUT_NEXT;
}

static void over(belay__scout_t *scout, int error) {
  belay__finder_t *finder = finder_of(scout);
  if (finder->primaries > 1)
    error = BELAY_ESPLIT;
  else if (finder->primaries == 1)
    error = 0;
  else if (finder->answers > 0)
    error = BELAY_EREADONLY;
  finder->told(finder, error);
}

static void quiet(belay__scout_t *scout) {
  finder_of(scout)->quiet(finder_of(scout));
}

static const belay__scout_ops_t ops = {.ask = ask, .answer = answer, .over = over, .quiet = quiet};

void belay__replicas_init(belay__finder_t *finder, belay__trunk_t *trunk,
                          const belay__place_t *places, size_t n) {
  finder->scout.trunk = trunk;
  finder->scout.ops = &ops;
  finder->scout.identity = trunk->identity;
  belay__scout_init(&finder->scout);
  belay__scout_set(&finder->scout, places, n);
}
