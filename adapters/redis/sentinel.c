/* The finder that asks sentinels ("Guidelines for Redis clients with support for Redis Sentinel").
 *
 * They are asked one after the other until one knows the primary; the link that is made to it then verifies that it is
 * one (ROLE, in the handshake). The other sentinels are learned from the one that answered. Its connection stays open:
 * on it +switch-master is heard, which is only a hint to ask again. Hints can be lost, and a sentinel can die without a
 * word: so it is asked again from time to time in any case. */
#include <stdlib.h>
#include <string.h>

#include "redis/finder.h"

#define AGAIN_MS 5000
#define QUESTIONS 3 /* at most: the address, the sentinels, the replicas */

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

static bool has_flag(const belay__reply_t *server, const char *flag) {
  const belay__reply_t *flags = belay__reply_field(server, "flags");
  return flags == NULL || flags->type != BELAY__REPLY_STRING || strstr(flags->str, flag) != NULL;
}

/* Whether a replica has what its primary has, as far as the sentinel knows. */
static bool is_well(const belay__reply_t *replica) {
  const belay__reply_t *link = belay__reply_field(replica, "master-link-status");
  return link != NULL && belay__reply_is(link, "ok", 2) && !has_flag(replica, "s_down") &&
         !has_flag(replica, "disconnected");
}

static void read_sentinels(belay__finder_t *finder, const belay__reply_t *reply) {
  belay__place_t place;
  for (size_t i = 0; i < reply->count; i++)
    if (read_place(belay__reply_field(reply->items[i], "ip"),
                   belay__reply_field(reply->items[i], "port"), &place))
      belay__scout_add(&finder->scout, &place);
}

static void read_replicas(belay__found_t *found, const belay__reply_t *reply) {
  for (size_t i = 0; i < reply->count && found->replica_count < BELAY__REPLICAS_MAX; i++)
    if (is_well(reply->items[i]) && read_place(belay__reply_field(reply->items[i], "ip"),
                                               belay__reply_field(reply->items[i], "port"),
                                               &found->replicas[found->replica_count]))
      found->replica_count++;
}

/* ---- asking -------------------------------------------------------------------------------------------- */

static void ask(belay__scout_t *scout) {
  belay__finder_t *finder = finder_of(scout);
  static const char *const words[QUESTIONS] = {"GET-MASTER-ADDR-BY-NAME", "SENTINELS", "REPLICAS"};
  finder->answers = 0;
  finder->found.replica_count = 0;
  for (int i = 0; i < (finder->all ? QUESTIONS : QUESTIONS - 1); i++)
    belay__scout_say(scout, 3, (const char *const[]){"SENTINEL", words[i], finder->master});
}

static belay__scout_verdict_t answer(belay__scout_t *scout, const belay__reply_t *reply) {
  belay__finder_t *finder = finder_of(scout);
  bool list = reply->type == BELAY__REPLY_ARRAY;
  unsigned number = finder->answers++;
  if (number == 0) {
    if (reply->type == BELAY__REPLY_NIL || (list && reply->count == 0))
      finder->error = BELAY_ENOMASTER;
    if (!list || reply->count != 2 ||
        !read_place(reply->items[0], reply->items[1], &finder->found.primary))
      return BELAY__SCOUT_NEXT;
  } else if (number == 1 && list) {
    read_sentinels(finder, reply);
  } else if (list) {
    read_replicas(&finder->found, reply);
  }
  return finder->answers < (finder->all ? QUESTIONS : QUESTIONS - 1) ? BELAY__SCOUT_MORE
                                                                     : BELAY__SCOUT_DONE;
}

/* That some did not let us in says more than that others did not answer. */
static void over(belay__scout_t *scout, int error) {
  belay__finder_t *finder = finder_of(scout);
  belay_t *belay = &scout->trunk->host->base;
  uint64_t wait = AGAIN_MS * BELAY__MS;
  belay__timer_set(belay, BELAY__RANK_OTHER, &finder->again,
                   belay__now(belay) + wait + belay__random_below(belay, wait / 4));
  if (error != 0 && finder->error == BELAY_ENOMASTER)
    error = BELAY_ENOMASTER;
  else if (error != 0 && error != BELAY_EAUTH && error != BELAY_EPERM && error != BELAY_ETLS)
    error = BELAY_ENOSENTINEL;
  finder->told(finder, error);
}

/* "name host port host port": of the primary that was, and of the new one. */
static void heard(belay__scout_t *scout, const char *data, size_t len) {
  belay__finder_t *finder = finder_of(scout);
  size_t n = strlen(finder->master);
  if (len > n && memcmp(data, finder->master, n) == 0 && data[n] == ' ')
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
  finder->scout.channel = "+switch-master";
  finder->again.fire = on_again;
  belay__scout_init(&finder->scout);
  belay__scout_set(&finder->scout, places, n);
}

/* ---- every finder -------------------------------------------------------------------------------------- */

void belay__finder_ask(belay__finder_t *finder) {
  belay__scout_t *scout = &finder->scout;
  if (scout->state != BELAY__SCOUT_IDLE && scout->state != BELAY__SCOUT_READY)
    return;
  finder->answers = finder->primaries = 0;
  finder->error = 0;
  finder->found.replica_count = 0;
  belay__scout_ask(scout);
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
