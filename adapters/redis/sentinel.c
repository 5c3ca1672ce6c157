/* The finder that asks sentinels ("Guidelines for Redis clients with support for Redis Sentinel").
 *
 *   ask the next one --says nothing, does not let us in, does not know the master--> ask the next one
 *         |          --knows an older configuration than that which is in use-------> keep it, ask the next one
 *         v
 *   that is the primary
 *
 * If none is left, what was kept is taken by whoever has no connection: sentinels that were set up anew count from 0
 * again. Whatever is found, the link that is made to it verifies that it is a primary (ROLE, in the handshake). That
 * decides, and not how new a sentinel says that its word is: the epoch counts as long as what was found under it is of
 * use. If it is of none for a while, nothing that was heard before counts any more, and another sentinel is asked first.
 *
 * The other sentinels are those that the one who is believed has named last, and those of the URL. Its connection stays
 * open: on it is heard that something has changed, which is only a hint to ask again. Hints can be lost, and a sentinel
 * can die without a word: so it is asked again from time to time in any case. */
#include <stdio.h>
#include <string.h>

#include "redis/finder.h"
#include "redis/link.h"

#define AGAIN_MS 5000

static belay__finder_t *finder_of(belay__scout_t *scout) {
  return BELAY__CONTAINER(scout, belay__finder_t, scout);
}

/* ---- reading ------------------------------------------------------------------------------------------- */

/* An address as a sentinel gives it. */
static bool read_place(const belay__reply_t *host, const belay__reply_t *port,
                       belay__place_t *out) {
  uint64_t number;
  if (host == NULL || port == NULL || host->type != BELAY__REPLY_STRING || host->len < 1 ||
      host->len > BELAY__HOST_MAX || memchr(host->str, '\0', host->len) != NULL ||
      !belay__reply_number(port, 1, UINT16_MAX, &number))
    return false;
  memcpy(out->host, host->str, host->len);
  out->host[host->len] = '\0';
  out->port = (uint16_t)number;
  return true;
}

static bool read_server(const belay__reply_t *server, belay__place_t *out) {
  return read_place(belay__reply_field(server, "ip"), belay__reply_field(server, "port"), out);
}

/* Whether a replica has what its primary has, as far as the sentinel knows. */
static bool is_well(const belay__reply_t *replica) {
  const belay__reply_t *link = belay__reply_field(replica, "master-link-status");
  const belay__reply_t *flags = belay__reply_field(replica, "flags");
  return link != NULL && belay__reply_is(link, "ok", 2) && flags != NULL &&
         belay__reply_is(flags, "slave", 5);
}

static bool read_address(belay__finder_t *finder, const belay__reply_t *reply) {
  char words[64 + BELAY__MASTER_MAX];
  if (reply->type == BELAY__REPLY_ARRAY && reply->count == 2)
    return read_place(reply->items[0], reply->items[1], &finder->found.primary);
  if (reply->type == BELAY__REPLY_NIL || reply->type == BELAY__REPLY_ARRAY) {
    snprintf(words, sizeof words, "it knows no master %s", finder->master);
    belay__scout_blame(&finder->scout, BELAY_ENOMASTER, words);
  }
  return false;
}

/* One who does not tell how old his word is, is believed. */
static bool read_epoch(belay__finder_t *finder, const belay__reply_t *reply) {
  bool told = reply->type == BELAY__REPLY_ARRAY;
  const belay__reply_t *epoch = told ? belay__reply_field(reply, "config-epoch") : NULL;
  if (epoch == NULL || !belay__reply_number(epoch, 0, UINT64_MAX, &finder->found.epoch))
    finder->found.epoch = finder->epoch;
  return true;
}

static bool is_outdated(const belay__finder_t *finder) {
  return finder->found.epoch < finder->epoch;
}

/* It does not name itself. */
static bool read_sentinels(belay__finder_t *finder, const belay__reply_t *reply) {
  belay__place_t places[BELAY__SCOUT_PLACES];
  size_t n = finder->given_count;
  if (reply->type != BELAY__REPLY_ARRAY || is_outdated(finder))
    return true;
  memcpy(places, finder->given, n * sizeof *places);
  places[n++] = *belay__scout_place(&finder->scout);
  for (size_t i = 0; i < reply->count && n < BELAY__SCOUT_PLACES; i++)
    n += read_server(reply->items[i], &places[n]);
  belay__scout_set(&finder->scout, places, n);
  return true;
}

static bool read_replicas(belay__finder_t *finder, const belay__reply_t *reply) {
  belay__found_t *found = &finder->found;
  bool list = reply->type == BELAY__REPLY_ARRAY;
  for (size_t i = 0; list && i < reply->count && found->replica_count < BELAY__REPLICAS_MAX; i++)
    if (is_well(reply->items[i]) &&
        read_server(reply->items[i], &found->replicas[found->replica_count]))
      found->replica_count++;
  return true;
}

/* ---- asking -------------------------------------------------------------------------------------------- */

/* The last one only if all are wanted. */
static const struct question {
  const char *word;
  /* False if one who answers so is of no use. */
  bool (*read)(belay__finder_t *finder, const belay__reply_t *reply);
} questions[] = {
    {"GET-MASTER-ADDR-BY-NAME", read_address},
    {"MASTER", read_epoch},
    {"SENTINELS", read_sentinels},
    {"REPLICAS", read_replicas},
};

static unsigned question_count(const belay__finder_t *finder) {
  return sizeof questions / sizeof *questions - !finder->all;
}

static void ask(belay__scout_t *scout) {
  belay__finder_t *finder = finder_of(scout);
  finder->answers = 0;
  finder->found.replica_count = 0;
  for (unsigned i = 0; i < question_count(finder); i++)
    belay__scout_say(scout, 3,
                     (const char *const[]){"SENTINEL", questions[i].word, finder->master});
}

static belay__scout_verdict_t answer(belay__scout_t *scout, const belay__reply_t *reply) {
  belay__finder_t *finder = finder_of(scout);
  if (!questions[finder->answers++].read(finder, reply))
    return BELAY__SCOUT_NEXT;
  if (finder->answers < question_count(finder))
    return BELAY__SCOUT_MORE;
  if (!is_outdated(finder))
    return BELAY__SCOUT_DONE;
  if (finder->outdated.primary.port == 0 || finder->found.epoch > finder->outdated.epoch)
    finder->outdated = finder->found;
  return BELAY__SCOUT_NEXT;
}

/* That they do not let us in, or do not know the master, says more than that nobody has answered. */
static int reason(belay__finder_t *finder, int error) {
  if (!belay__link_is_lasting(error) && error != BELAY_ENOMASTER)
    error = BELAY_ENOSENTINEL;
  belay__scout_explain(&finder->scout, error);
  return error;
}

static void over(belay__scout_t *scout, int error) {
  belay__finder_t *finder = finder_of(scout);
  belay_t *belay = &scout->trunk->host->base;
  uint64_t wait = AGAIN_MS * BELAY__MS;
  belay__timer_set(belay, BELAY__RANK_OTHER, &finder->again,
                   belay__now(belay) + wait + belay__random_below(belay, wait / 4));
  finder->doubtful = error != 0 && finder->outdated.primary.port != 0;
  if (finder->doubtful) {
    finder->found = finder->outdated;
    error = 0;
  }
  finder->told(finder, error == 0 ? 0 : reason(finder, error));
  if (finder->hinted)
    belay__finder_ask(finder);
}

/* ---- hints --------------------------------------------------------------------------------------------- */

/* Who leads a failover knows of the new primary when that has been promoted, and ends it only when all replicas follow;
 * the others change over when they are told by him. */
static const char *const channels[] = {"+promoted-slave", "+switch-master", NULL};

/* Words, of which one is the master's name. */
static bool is_about(const char *data, size_t len, const char *master) {
  size_t n = strlen(master);
  for (const char *word = data, *end = data + len, *space; word < end; word = space + 1) {
    space = memchr(word, ' ', (size_t)(end - word));
    if (space == NULL)
      space = end;
    if ((size_t)(space - word) == n && memcmp(word, master, n) == 0)
      return true;
  }
  return false;
}

static void heard(belay__scout_t *scout, const char *data, size_t len) {
  belay__finder_t *finder = finder_of(scout);
  if (!is_about(data, len, finder->master))
    return;
  finder->hinted = true;
  belay__finder_ask(finder);
}

/* Without it nothing would be heard of a change. */
static void lost(belay__scout_t *scout) {
  belay__finder_ask(finder_of(scout));
}

static void on_again(belay__timer_t *timer) {
  belay__finder_ask(BELAY__CONTAINER(timer, belay__finder_t, again));
}

static void quiet(belay__scout_t *scout) {
  finder_of(scout)->quiet(finder_of(scout));
}

static const belay__scout_ops_t ops = {
    .ask = ask, .answer = answer, .over = over, .lost = lost, .heard = heard, .quiet = quiet};

void belay__sentinel_init(belay__finder_t *finder, belay__trunk_t *trunk, const char *username,
                          const char *password, const belay__place_t *places, size_t n) {
  finder->scout.trunk = trunk;
  finder->scout.ops = &ops;
  finder->scout.identity = (belay__identity_t){.username = username, .password = password};
  finder->scout.channels = channels;
  finder->again.fire = on_again;
  finder->given = places;
  finder->given_count = n;
  belay__scout_init(&finder->scout);
  belay__scout_set(&finder->scout, places, n);
}

/* ---- every finder -------------------------------------------------------------------------------------- */

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
  if (finder->given_count == 0 || now - finder->missed < AGAIN_MS * BELAY__MS)
    return;
  finder->missed = 0;
  finder->epoch = 0;
  belay__scout_turn(scout);
}

void belay__finder_close(belay__finder_t *finder) {
  belay__timer_stop(&finder->scout.trunk->host->base, BELAY__RANK_OTHER, &finder->again);
  belay__scout_close(&finder->scout);
}

bool belay__finder_is_over(const belay__finder_t *finder) {
  return belay__scout_is_over(&finder->scout);
}

void belay__finder_fini(belay__finder_t *finder) {
  belay__scout_fini(&finder->scout);
}
