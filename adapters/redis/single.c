/* A deployment with one primary: a server, or one of several that a finder finds; and its replicas, if they are to be
 * read from.
 *
 * A finder is asked before each attempt to connect. Where it finds another primary than the one that we are connected
 * to, those connections end: what was sent on them and not answered is UNKNOWN, the rest goes to the new one. */
#include <limits.h>
#include <string.h>

#include "redis/finder.h"
#include "redis/link.h"
#include "redis/listener.h"
#include "redis/node.h"

typedef struct single {
  belay__node_t node; /* first */
  belay__cable_t *primary;
  belay__cable_t *replicas[BELAY__REPLICAS_MAX]; /* NULL where there is none */
  size_t turn;                                   /* who is read from next */
  bool has_finder, closing, gone;
  belay__finder_t finder;
} single_t;

static single_t *single_of(const belay__trunk_t *trunk) {
  return BELAY__CONTAINER(trunk, single_t, node.trunk);
}

/* ---- lines --------------------------------------------------------------------------------------------- */

/* A replica that is connected, or the primary. */
static belay__cable_t *reading_line(single_t *single) {
  bool any = single->node.read_from == BELAY_READ_ANY;
  size_t n = BELAY__REPLICAS_MAX + any;
  for (size_t i = 0; i < n; i++) {
    size_t at = single->turn++ % n;
    if (at == BELAY__REPLICAS_MAX)
      break;
    const belay__cable_t *cable = single->replicas[at];
    if (cable != NULL && belay__link_is_up(belay__cable_link(cable, BELAY__LANE_DATA, 0)))
      return single->replicas[at];
  }
  return single->primary;
}

static const belay__link_t *link_of(const belay_client_t *client, belay__lane_t lane,
                                    uint32_t affinity) {
  return belay__cable_link(((const single_t *)client)->primary, lane, affinity);
}

/* ---- the port ------------------------------------------------------------------------------------------ */

static int submit(belay_client_t *client, belay__call_t *const *calls, size_t n) {
  single_t *single = (single_t *)client;
  bool stale = calls[0]->stale && single->node.read_from != BELAY_READ_PRIMARY;
  belay__cable_t *cable = stale ? reading_line(single) : single->primary;
  return belay__link_submit(
      belay__cable_link(cable, (belay__lane_t)calls[0]->lane, calls[0]->affinity), calls, n);
}

static int withdraw(belay_client_t *client, belay__call_t *call) {
  (void)client;
  return belay__link_withdraw(call->at, call);
}

static void distrust(belay_client_t *client, const belay__call_t *call) {
  (void)client;
  belay__link_distrust(call->at, call->epoch);
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
  return belay__link_is_silent(belay__cable_link(((single_t *)client)->primary, lane, affinity),
                               limit);
}

static bool shard(const belay_client_t *client, size_t i, uint32_t *affinity, uint32_t *version) {
  (void)client;
  *affinity = 0;
  *version = 0; /* another primary is another server, which is noticed anyway */
  return i == 0;
}

static size_t links_up(const belay_client_t *client) {
  const single_t *single = (const single_t *)client;
  size_t n = belay__cable_links_up(single->primary);
  for (size_t i = 0; i < BELAY__REPLICAS_MAX; i++)
    n += single->replicas[i] == NULL ? 0 : belay__cable_links_up(single->replicas[i]);
  return n;
}

static bool can(belay_client_t *client, belay__capability_t what) {
  const single_t *single = (single_t *)client;
  belay__trunk_t *trunk = &((single_t *)client)->node.trunk;
  if (!trunk->can_known) {
    unsigned all = UINT_MAX;
    bool any = belay__cable_can(single->primary, &all);
    for (size_t i = 0; i < BELAY__REPLICAS_MAX; i++)
      any |= single->replicas[i] != NULL && belay__cable_can(single->replicas[i], &all);
    trunk->can = any ? all : 0;
    trunk->can_known = true;
  }
  return (trunk->can >> what & 1) != 0;
}

static void listen_to(belay_client_t *client, belay__channel_t *channel) {
  belay__listener_listen(((single_t *)client)->primary->listener, channel);
}

static void unlisten(belay_client_t *client, belay__channel_t *channel) {
  belay__listener_unlisten(((single_t *)client)->primary->listener, channel);
}

/* ---- finding ------------------------------------------------------------------------------------------- */

static void find(belay__cable_t *cable) {
  single_t *single = single_of(cable->trunk);
  if (cable == single->primary)
    belay__finder_ask(&single->finder);
  else
    belay__cable_found(cable, 0); /* a replica's cable has been made for the place where it is */
}

/* Ends the lines to replicas that are not known any more, and gives back those that are over. */
static void end_replicas(single_t *single) {
  const belay__found_t *found = &single->finder.found;
  for (size_t i = 0; i < BELAY__REPLICAS_MAX; i++) {
    belay__cable_t *cable = single->replicas[i];
    bool known = false;
    if (cable == NULL)
      continue;
    for (size_t k = 0; k < found->replica_count && !known; k++)
      known = belay__place_is(&cable->target.place, &found->replicas[k]);
    if (!known || belay__place_is(&cable->target.place, &found->primary))
      (void)belay__cable_drain(cable);
    if (belay__cable_is_over(cable)) {
      belay__cable_free(cable);
      single->replicas[i] = NULL;
    }
  }
}

/* A cable for a replica, unless there is one or no room for it; it is connected before it is asked. */
static void add_replica(single_t *single, const belay__place_t *place) {
  size_t room = BELAY__REPLICAS_MAX;
  for (size_t i = 0; i < BELAY__REPLICAS_MAX; i++) {
    if (single->replicas[i] == NULL)
      room = i;
    else if (belay__place_is(&single->replicas[i]->target.place, place))
      room = BELAY__REPLICAS_MAX + 1;
    if (room > BELAY__REPLICAS_MAX)
      return;
  }
  belay__cable_t *cable = room == BELAY__REPLICAS_MAX
                              ? NULL
                              : belay__cable_new(&single->node.trunk, single->node.lane_links);
  if (cable == NULL)
    return;
  cable->role = BELAY__ROLE_REPLICA;
  cable->target.place = *place;
  single->replicas[room] = cable;
  belay__link_want(belay__cable_link(cable, BELAY__LANE_DATA, 0));
}

static void on_found(belay__finder_t *finder, int error) {
  single_t *single = BELAY__CONTAINER(finder, single_t, finder);
  belay__cable_t *cable = single->primary;
  const belay__found_t *found = &finder->found;
  bool moved = error == 0 && !belay__place_is(&cable->target.place, &found->primary);
  if (single->closing)
    return;
  if (moved) {
    cable->target.place = found->primary;
    belay__cable_leave(cable, BELAY_EREADONLY);
    belay__cable_hurry(cable);
  }
  belay__cable_found(cable, error);
  if (error != 0 || !finder->all)
    return;
  end_replicas(single);
  for (size_t i = 0; i < found->replica_count; i++)
    add_replica(single, &found->replicas[i]);
}

/* ---- the end ------------------------------------------------------------------------------------------- */

/* Something has ended; perhaps it was the last thing that the client waits for. */
static void end_if_over(single_t *single) {
  if (!single->closing || single->gone || !belay__cable_is_over(single->primary) ||
      (single->has_finder && !belay__finder_is_over(&single->finder)))
    return;
  for (size_t i = 0; i < BELAY__REPLICAS_MAX; i++)
    if (single->replicas[i] != NULL && !belay__cable_is_over(single->replicas[i]))
      return;
  single->gone = true;
  belay__client_gone(&single->node.base);
}

static void on_quiet(belay__cable_t *cable) {
  end_if_over(single_of(cable->trunk));
}

static void on_finder_quiet(belay__finder_t *finder) {
  end_if_over(BELAY__CONTAINER(finder, single_t, finder));
}

static void close_all(belay_client_t *client) {
  single_t *single = (single_t *)client;
  belay__cable_close(single->primary);
  for (size_t i = 0; i < BELAY__REPLICAS_MAX; i++)
    if (single->replicas[i] != NULL)
      belay__cable_close(single->replicas[i]);
  if (single->has_finder)
    belay__finder_close(&single->finder);
  single->closing = true;
  end_if_over(single);
}

static void free_single(belay_client_t *client) {
  single_t *single = (single_t *)client;
  belay__cable_free(single->primary);
  for (size_t i = 0; i < BELAY__REPLICAS_MAX; i++)
    if (single->replicas[i] != NULL)
      belay__cable_free(single->replicas[i]);
  if (single->has_finder)
    belay__finder_fini(&single->finder);
  belay__node_free(&single->node);
}

/* ---- making -------------------------------------------------------------------------------------------- */

static const belay__trunk_ops_t fixed_ops = {.quiet = on_quiet};
static const belay__trunk_ops_t found_ops = {.find = find, .quiet = on_quiet};

static const char *or_none(const char *text) {
  return text[0] == '\0' ? NULL : text;
}

static int init(belay__node_t *node) {
  single_t *single = (single_t *)node;
  const belay__url_t *url = &node->url;
  belay__finder_t *finder = &single->finder;
  belay__cable_t *cable = single->primary = belay__cable_new(&node->trunk, node->lane_links);
  if (cable == NULL)
    return BELAY_ENOMEM;
  if (url->kind == BELAY__URL_SINGLE) {
    cable->target.path = url->is_unix ? url->path : NULL;
    cable->target.place = url->places[0];
    return 0;
  }
  node->trunk.ops = &found_ops;
  cable->role = BELAY__ROLE_PRIMARY;
  single->has_finder = true;
  finder->told = on_found;
  finder->quiet = on_finder_quiet;
  finder->all = node->read_from != BELAY_READ_PRIMARY;
  finder->master = url->master;
  if (url->kind == BELAY__URL_SENTINEL)
    belay__sentinel_init(finder, &node->trunk, or_none(node->sentinel_username),
                         or_none(node->sentinel_password), url->places, url->place_count);
  else
    belay__replicas_init(finder, &node->trunk, url->places, url->place_count);
  return 0;
}

static const belay__node_ops_t node_ops = {
    .submit = submit,
    .withdraw = withdraw,
    .distrust = distrust,
    .dead_epoch = dead_epoch,
    .server = server,
    .silent = silent,
    .shard = shard,
    .links_up = links_up,
    .can = can,
    .listen = listen_to,
    .unlisten = unlisten,
    .close = close_all,
    .free = free_single,
};

const belay__deployment_t belay__single = {
    .size = sizeof(single_t), .ops = &node_ops, .trunk_ops = &fixed_ops, .init = init};
