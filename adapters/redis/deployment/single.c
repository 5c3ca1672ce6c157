/* A deployment with one primary: a server, or one of several that a finder finds; and its replicas, if they are to be
 * read from.
 *
 * A finder is asked before each attempt to connect. Where it finds another primary than the one that we are connected
 * to, those connections end: what was sent on them and not answered is UNKNOWN, the rest goes to the new one.
 *
 * A replica:
 *
 *   named by the finder --connected, and it is one (ROLE)--> read from --cut off, silent, lost--> tried again
 *                                                               |
 *                                                               +--not named any more--> retired: closed when what it
 *                                                                                        was asked is answered
 *
 * What was to be asked of one that is lost goes to the others, or to the primary. */
#include "redis/deployment/single.h"

#include <stdio.h>

#include "core/client/lifecycle.h"
#include "redis/conn/connection.h"
#include "redis/conn/liveness.h"
#include "redis/conn/outage.h"
#include "redis/conn/queue.h"
#include "redis/conn/server.h"
#include "redis/conn/subscriber.h"
#include "redis/deployment/replicas.h"
#include "redis/deployment/sentinel.h"

#define TEND_MS 5000

typedef struct single {
  belay__node_t node; /* first */
  belay__cable_t *primary;
  belay__finder_t *finder;                       /* NULL: the server is always in the same place */
  bool telling;                                  /* the finder tells what it has found */
  belay__cable_t *replicas[BELAY__REPLICAS_MAX]; /* NULL: there is none in this place */
  size_t turn;                                   /* who is read from next */
  belay__timer_t sort; /* what is queued at replicas that have failed may be answered by others */
  belay__timer_t tend; /* replicas that are not connected are tried again */
} single_t;

static single_t *single_of(const belay__trunk_t *trunk) {
  return BELAY__CONTAINER(trunk, single_t, node.trunk);
}

static belay_t *belay_of(const single_t *single) {
  return single->node.base.belay;
}

/* ---- the port ------------------------------------------------------------------------------------------ */

/* A replica that can be read from, or the primary. */
static belay__cable_t *reading_cable(single_t *single, const belay__call_t *call) {
  size_t n = BELAY__REPLICAS_MAX + (single->node.base.read_from == BELAY_READ_ANY);
  for (size_t i = 0; i < n; i++) {
    size_t at = single->turn++ % n;
    if (at == BELAY__REPLICAS_MAX)
      break;
    belay__cable_t *replica = single->replicas[at];
    if (replica != NULL && !replica->retired &&
        belay__cable_reads(replica, (belay__lane_t)call->lane, call->affinity))
      return replica;
  }
  return single->primary;
}

static belay__link_t *link_of(const belay_client_t *client, belay__lane_t lane, uint32_t affinity) {
  return belay__cable_link(((const single_t *)client)->primary, lane, affinity);
}

/* Those that are sent together are answered by one server. */
static int submit(belay_client_t *client, belay__call_t *const *calls, size_t n) {
  single_t *single = (single_t *)client;
  bool stale = true;
  for (size_t i = 0; i < n && stale; i++)
    stale = calls[i]->stale;
  belay__cable_t *cable = stale ? reading_cable(single, calls[0]) : single->primary;
  return belay__link_submit(
      belay__cable_link(cable, (belay__lane_t)calls[0]->lane, calls[0]->affinity), calls, n);
}

static int withdraw(belay_client_t *client, belay__call_t *call) {
  (void)client;
  return belay__link_withdraw(belay__trip(call)->at, call);
}

static uint32_t dead_epoch(const belay_client_t *client, belay__lane_t lane, uint32_t affinity) {
  return link_of(client, lane, affinity)->dead_epoch;
}

static const belay__server_t *server(const belay_client_t *client, belay__lane_t lane,
                                     uint32_t affinity) {
  const belay__link_t *link = link_of(client, lane, affinity);
  return belay__link_is_up(link) ? &link->peer.server : NULL;
}

static bool silent(belay_client_t *client, belay__lane_t lane, uint32_t affinity, uint64_t limit) {
  return belay__link_is_silent(link_of(client, lane, affinity), limit);
}

static bool shard(const belay_client_t *client, size_t i, uint32_t *affinity, uint32_t *version) {
  (void)client;
  *affinity = 0;
  *version = 0; /* another primary is another server, which is noticed anyway */
  return i == 0;
}

#if BELAY_HAS_TOPOLOGY
/* Of a finder's those are known that it was given; where these are sentinels, the primary that they have named. */
static bool place(const belay_client_t *client, size_t i, char out[BELAY__PLACE_MAX]) {
  const single_t *single = (const single_t *)client;
  const belay__url_t *url = &single->node.url;
  const belay__target_t *target = &single->primary->target;
  const belay__place_t *at = &target->place;
  if (url->kind == BELAY__URL_REPLICAS)
    at = i < url->place_count ? &url->places[i] : NULL;
  else if (i > 0 || (target->path == NULL && at->host[0] == '\0'))
    at = NULL;
  if (at != NULL && target->path != NULL)
    (void)snprintf(out, BELAY__PLACE_MAX, "%s", target->path);
  else if (at != NULL)
    belay__place_write(at, out, BELAY__PLACE_MAX);
  return at != NULL;
}
#endif

static void listen_to(belay_client_t *client, belay__channel_t *channel) {
  belay__listener_listen(((single_t *)client)->primary->listener, channel);
}

static void unlisten(belay_client_t *client, belay__channel_t *channel) {
  belay__listener_unlisten(((single_t *)client)->primary->listener, channel);
}

/* ---- replicas ------------------------------------------------------------------------------------------ */

static void sort_link(single_t *single, belay__link_t *link) {
  belay__list_t calls;
  belay__list_init(&calls);
  belay__link_surrender(link, &calls);
  for (belay__list_t *node; (node = belay__list_pop(&calls)) != NULL;) {
    belay__call_t *call = BELAY__CONTAINER(node, belay__call_t, node);
    belay__link_adopt(link_of(&single->node.base, (belay__lane_t)call->lane, call->affinity), call);
  }
}

/* What is queued where it would have to wait goes to the primary. */
static void on_sort(belay__timer_t *timer) {
  single_t *single = BELAY__CONTAINER(timer, single_t, sort);
  for (size_t i = 0; i < BELAY__REPLICAS_MAX; i++) {
    const belay__cable_t *replica = single->replicas[i];
    for (size_t k = 0; replica != NULL && k < replica->count; k++)
      if (replica->retired || !belay__link_is_up(&replica->links[k]))
        sort_link(single, &replica->links[k]);
  }
}

static void sort_soon(single_t *single) {
  belay__timer_set(belay_of(single), BELAY__RANK_OTHER, &single->sort,
                   belay__now(belay_of(single)));
}

/* Its calls are still being given back. */
static void on_lost(belay__link_t *link, int error) {
  single_t *single = single_of(link->cable->trunk);
  (void)error;
  if (link->cable->role == BELAY__ROLE_REPLICA && !single->node.closing)
    sort_soon(single);
}

static void on_tend(belay__timer_t *timer) {
  single_t *single = BELAY__CONTAINER(timer, single_t, tend);
  on_sort(&single->sort); /* what is queued at one that is closed would be refused */
  belay__timer_set(belay_of(single), BELAY__RANK_OTHER, &single->tend,
                   belay__after_ms(belay_of(single), TEND_MS));
  for (size_t i = 0; i < BELAY__REPLICAS_MAX; i++) {
    belay__cable_t *replica = single->replicas[i];
    if (replica == NULL)
      continue;
    if (!replica->retired) {
      belay__cable_want(replica);
    } else if (belay__cable_drain(replica)) {
      belay__cable_free(replica);
      single->replicas[i] = NULL;
    }
  }
}

static bool is_named(const single_t *single, const belay__place_t *place) {
  const belay__found_t *found = &single->finder->found;
  bool named = false;
  for (size_t i = 0; i < found->replica_count && !named; i++)
    named = belay__place_is(place, &found->replicas[i]);
  return named && !belay__place_is(place, &found->primary);
}

/* A cable for that replica, unless there is one, or no room for it. */
static void add_replica(single_t *single, const belay__place_t *place) {
  belay__cable_t **room = NULL;
  for (size_t i = 0; i < BELAY__REPLICAS_MAX; i++) {
    const belay__cable_t *replica = single->replicas[i];
    if (replica == NULL)
      room = &single->replicas[i];
    else if (!replica->retired && belay__place_is(&replica->target.place, place))
      return;
  }
  if (room == NULL)
    return;
  belay__cable_t *made = *room = belay__cable_new(&single->node.trunk, single->node.lane_links);
  if (made == NULL)
    return;
  made->role = BELAY__ROLE_REPLICA;
  made->target.place = *place;
  belay__cable_want(made);
}

static void use_replicas(single_t *single) {
  const belay__found_t *found = &single->finder->found;
  for (size_t i = 0; i < BELAY__REPLICAS_MAX; i++) {
    belay__cable_t *replica = single->replicas[i];
    if (replica != NULL && !is_named(single, &replica->target.place))
      replica->retired = true;
  }
  for (size_t i = 0; i < found->replica_count; i++)
    if (is_named(single, &found->replicas[i]))
      add_replica(single, &found->replicas[i]);
  sort_soon(single);
  if (!belay__timer_is_set(&single->tend))
    on_tend(&single->tend);
}

/* ---- finding ------------------------------------------------------------------------------------------- */

/* A replica's cable has been made for the place where it is. */
static void find(belay__cable_t *cable) {
  single_t *single = single_of(cable->trunk);
  if (cable != single->primary) {
    belay__cable_found(cable, 0);
  } else if (!single->telling) {
    if (belay__cable_links_up(cable) == 0)
      belay__finder_missed(single->finder);
    belay__finder_ask(single->finder);
  }
}

static void on_up(belay__link_t *link) {
  single_t *single = single_of(link->cable->trunk);
  if (link->cable == single->primary)
    single->finder->missed = 0;
}

/* It owes an answer, and is silent: perhaps it has been replaced without our being told. */
static void on_doubt(belay__link_t *link) {
  single_t *single = single_of(link->cable->trunk);
  if (link->cable == single->primary)
    belay__finder_ask(single->finder);
}

static void on_found(belay__finder_t *finder, int error) {
  single_t *single = (single_t *)finder->scout.trunk->client;
  belay__cable_t *cable = single->primary;
  belay__place_t *place = &cable->target.place;
  bool elsewhere = error == 0 && !belay__place_is(place, &finder->found.primary);
  bool kept = elsewhere && finder->doubtful && belay__cable_links_up(cable) > 0;
  bool moved = elsewhere && !kept;
  if (single->node.closing)
    return;
  if (error == 0 && !kept)
    finder->epoch = finder->found.epoch;
  single->telling = true;
  if (moved) {
    char words[BELAY__TARGET_WORDS], cause[BELAY__CAUSE_MAX];
    *place = finder->found.primary;
    (void)snprintf(cause, sizeof cause, "the primary is at %s now",
                   belay__place_words(place, words));
    belay__cable_leave(cable, BELAY_EUNREACHABLE, cause);
  }
  if (moved || (error == 0 && finder->news))
    belay__cable_hurry(cable);
  single->telling = false;
  belay__cable_found(cable, error);
  if (error == 0 && finder->all && !kept)
    use_replicas(single);
}

/* ---- the end ------------------------------------------------------------------------------------------- */

static void on_quiet(belay__trunk_t *trunk, belay__cable_t *cable) {
  (void)cable;
  belay__node_quiet(&single_of(trunk)->node);
}

static void close_all(belay_client_t *client) {
  single_t *single = (single_t *)client;
  belay__timer_stop(belay_of(single), BELAY__RANK_OTHER, &single->sort);
  belay__timer_stop(belay_of(single), BELAY__RANK_OTHER, &single->tend);
  if (single->finder != NULL)
    belay__timer_stop(belay_of(single), BELAY__RANK_OTHER, &single->finder->again);
  belay__node_close(&single->node);
}

static void free_single(belay_client_t *client) {
  single_t *single = (single_t *)client;
  belay_t *belay = belay_of(single);
  belay__finder_t *finder = single->finder;
  belay__node_free(&single->node);
  belay__free(belay, finder, sizeof *finder);
}

/* ---- making -------------------------------------------------------------------------------------------- */

static const belay__trunk_ops_t fixed_ops = {.quiet = on_quiet};
static const belay__trunk_ops_t found_ops = {
    .find = find, .up = on_up, .lost = on_lost, .doubt = on_doubt, .quiet = on_quiet};

static const char *or_none(const char *text) {
  return text[0] == '\0' ? NULL : text;
}

static bool make_finder(single_t *single) {
  belay__node_t *node = &single->node;
  const belay__url_t *url = &node->url;
  belay__finder_t *finder = single->finder = belay__alloc(belay_of(single), sizeof *finder);
  if (finder == NULL)
    return false;
  *finder = (belay__finder_t){
      .told = on_found, .all = node->base.read_from != BELAY_READ_PRIMARY, .master = url->master};
  if (url->kind == BELAY__URL_SENTINEL)
    belay__sentinel_init(finder, &node->trunk, or_none(node->sentinel_username),
                         or_none(node->sentinel_password), url->places, url->place_count);
  else
    belay__replicas_init(finder, &node->trunk, url->places, url->place_count);
  node->scout = &finder->scout;
  return true;
}

static int init(belay__node_t *node) {
  single_t *single = (single_t *)node;
  const belay__url_t *url = &node->url;
  belay__cable_t *cable = single->primary = belay__cable_new(&node->trunk, node->lane_links);
  if (cable == NULL)
    return BELAY_ENOMEM;
  single->sort.fire = on_sort;
  single->tend.fire = on_tend;
  if (url->kind == BELAY__URL_SINGLE) {
    cable->target.path = url->is_unix ? url->path : NULL;
    cable->target.place = url->places[0];
    return 0;
  }
  node->trunk.ops = &found_ops;
  cable->role = BELAY__ROLE_PRIMARY;
  return make_finder(single) ? 0 : BELAY_ENOMEM;
}

static const belay__node_ops_t node_ops = {
    .call_room = sizeof(belay__trip_t),
    .submit = submit,
    .withdraw = withdraw,
    .overdue = belay__node_overdue,
    .distrust = belay__node_distrust,
    .dead_epoch = dead_epoch,
    .server = server,
    .silent = silent,
    .shard = shard,
#if BELAY_HAS_TOPOLOGY
    .place = place,
    .visit = belay__node_visit,
#endif
    .connections_up = belay__node_links_up,
    .can = belay__node_can,
    .listen = listen_to,
    .unlisten = unlisten,
    .close = close_all,
    .free = free_single,
};

const belay__deployment_t belay__single = {
    .size = sizeof(single_t), .ops = &node_ops, .trunk_ops = &fixed_ops, .init = init};
