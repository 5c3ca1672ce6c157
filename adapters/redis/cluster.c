/* A deployment that is a cluster: a router from slots to the cables of those who serve them.
 *
 *   a call --its slot has a server--> that server's link --MOVED, ASK--> another server's link
 *     |                                     |
 *     +--nobody is known--> WAITING <-------+-- the connection was lost before it was sent
 *                             |
 *                             +--a map comes--> the link of whoever has it now
 *
 * The map: who serves which slot, as one of the nodes tells.
 *
 *   UNKNOWN --wanted--> TIMED --at most once a second--> ASKED --answered--> KNOWN
 *                         ^                                |                   |
 *                         |                                +-- nobody answers -+--wanted: a connection was lost, MOVED,
 *                         +------------------------------------------------------  a slot without a server, a minute
 *
 * A MOVED is believed at once for its slot, and the map is asked for. Nodes that are in no map any more get no more
 * calls; they are closed when the last answer of theirs is in. */
#include "redis/node.h"

#include <assert.h>
#include <string.h>

#include "core/channel.h"
#include "core/slot.h"
#include "redis/link.h"
#include "redis/listener.h"
#include "redis/scout.h"
#include "redis/slotmap.h"

#define NODES_MAX 1024 /* servers */
#define NOBODY UINT16_MAX
#define REFRESH_MS UINT64_C(1000) /* between two questions for the map, at least */
#define JITTER_MS UINT64_C(100)
#define REFRESH_ANYWAY_MS UINT64_C(60000)

typedef struct server server_t;

struct server {
  belay__cable_t *cable;
  uint16_t primary; /* of a replica; NOBODY of a primary */
  bool known;       /* the last map names it */
  bool retired;     /* it is being closed */
};

typedef struct cluster {
  belay__node_t node; /* first */
  belay__scout_t scout;
  server_t servers[NODES_MAX]; /* cable NULL where there is none */
  size_t servers_len;          /* used so far */
  uint16_t owner[BELAY__SLOTS];
  uint64_t moved[BELAY__SLOTS / 64]; /* slots that have had several owners */
  uint32_t version;                  /* of owner */
  unsigned turn;                     /* who is read from next */
  belay__list_t waiting;             /* calls whose slot nobody serves, as far as is known */
  size_t waiting_len;
  bool has_map, asks_shards, closing, gone;
  int error;           /* why there is no map */
  uint64_t asked;      /* when the map was last asked for; 0: never */
  belay__timer_t wake; /* it is time to ask */
  belay__timer_t sort; /* what is queued at servers that have failed may be answered by others */
} cluster_t;

static cluster_t *cluster_of(const belay__trunk_t *trunk) {
  return BELAY__CONTAINER(trunk, cluster_t, node.trunk);
}

static belay_t *belay_of(const cluster_t *cluster) {
  return cluster->node.base.belay;
}

/* ---- servers ------------------------------------------------------------------------------------------- */

static bool is_live(const server_t *server) {
  return server->cable != NULL && !server->retired;
}

static uint16_t find(const cluster_t *cluster, const belay__place_t *place) {
  for (size_t i = 0; i < cluster->servers_len; i++)
    if (is_live(&cluster->servers[i]) &&
        belay__place_is(&cluster->servers[i].cable->target.place, place))
      return (uint16_t)i;
  return NOBODY;
}

/* The one at that place, which may be new; NOBODY if there is no room for it. */
static uint16_t take(cluster_t *cluster, const belay__place_t *place) {
  uint16_t at = find(cluster, place);
  if (at != NOBODY)
    return at;
  for (at = 0; at < cluster->servers_len && cluster->servers[at].cable != NULL; at++)
    ;
  belay__cable_t *cable =
      at == NODES_MAX ? NULL : belay__cable_new(&cluster->node.trunk, cluster->node.lane_links);
  if (cable == NULL)
    return NOBODY;
  cable->target.place = *place;
  cluster->servers[at] = (server_t){.cable = cable, .primary = NOBODY};
  if (at == cluster->servers_len)
    cluster->servers_len++;
  return at;
}

static void set_owner(cluster_t *cluster, uint16_t slot, uint16_t at) {
  uint16_t *owner = &cluster->owner[slot];
  if (*owner == at)
    return;
  if (*owner != NOBODY)
    cluster->moved[slot / 64] |= UINT64_C(1) << slot % 64;
  *owner = at;
  cluster->version++;
}

/* The first replica of a primary that is connected, from where the turn is; NOBODY if none is. */
static uint16_t reading_server(const cluster_t *cluster, uint16_t primary, unsigned turn) {
  bool any = cluster->node.base.read_from == BELAY_READ_ANY;
  uint16_t ready[BELAY__SHARD_REPLICAS + 1];
  unsigned n = 0;
  for (size_t i = 0; i < cluster->servers_len && n < BELAY__SHARD_REPLICAS; i++) {
    const server_t *server = &cluster->servers[i];
    if (is_live(server) && server->primary == primary &&
        belay__link_is_up(belay__cable_link(server->cable, BELAY__LANE_DATA, 0)))
      ready[n++] = (uint16_t)i;
  }
  if (any || n == 0)
    ready[n++] = primary;
  return ready[turn % n];
}

static belay__link_t *link_at(const cluster_t *cluster, uint16_t at, belay__lane_t lane,
                              uint32_t affinity) {
  return at == NOBODY ? NULL : belay__cable_link(cluster->servers[at].cable, lane, affinity);
}

/* Where calls of that lane and affinity go; NULL if nobody knows. */
static belay__link_t *link_of(const belay_client_t *client, belay__lane_t lane, uint32_t affinity) {
  const cluster_t *cluster = (const cluster_t *)client;
  return link_at(cluster, cluster->owner[affinity % BELAY__SLOTS], lane, affinity);
}

static belay__link_t *route(const cluster_t *cluster, const belay__call_t *call) {
  uint16_t at = cluster->owner[belay__call_slot(call)];
  if (at != NOBODY && call->stale)
    at = reading_server(cluster, at, cluster->turn);
  return link_at(cluster, at, (belay__lane_t)call->lane, call->affinity);
}

/* ---- the map: when ------------------------------------------------------------------------------------- */

static void want_map(cluster_t *cluster) {
  belay_t *belay = belay_of(cluster);
  uint64_t now = belay__now(belay), when = now;
  if (cluster->closing || cluster->scout.state == BELAY__SCOUT_ASKING)
    return;
  if (cluster->asked != 0 && cluster->asked + REFRESH_MS * BELAY__MS > now)
    when = cluster->asked + REFRESH_MS * BELAY__MS;
  if (cluster->asked != 0)
    when += belay__random_below(belay, JITTER_MS * BELAY__MS);
  if (!belay__timer_is_set(&cluster->wake) || cluster->wake.when > when + JITTER_MS * BELAY__MS)
    belay__timer_set(belay, BELAY__RANK_OTHER, &cluster->wake, when);
}

/* Whether anybody waits for a map that is better than the one there is. */
static bool is_troubled(const cluster_t *cluster) {
  const belay_client_t *client = &cluster->node.base;
  bool troubled =
      cluster->waiting_len > 0 || (!cluster->has_map && client->channels.table.count > 0);
  for (size_t i = 0; i < cluster->servers_len && !troubled; i++) {
    const belay__cable_t *cable = cluster->servers[i].cable;
    for (size_t k = 0; cable != NULL && k < cable->count; k++)
      troubled = troubled ||
                 (cable->links[k].state == BELAY__LINK_BACKOFF && cable->links[k].queue_len > 0);
  }
  return troubled;
}

static void on_wake(belay__timer_t *timer) {
  cluster_t *cluster = BELAY__CONTAINER(timer, cluster_t, wake);
  if (belay__link_is_lasting(cluster->error) && !is_troubled(cluster)) {
    cluster->error = 0; /* whoever comes next may try */
    return;
  }
  cluster->asked = belay__now(belay_of(cluster));
  cluster->asks_shards = false;
  belay__scout_ask(&cluster->scout);
}

static void want_map_after(cluster_t *cluster, uint64_t ms) {
  belay_t *belay = belay_of(cluster);
  uint64_t delay = ms * BELAY__MS;
  belay__timer_set(belay, BELAY__RANK_OTHER, &cluster->wake,
                   belay__now(belay) + delay + belay__random_below(belay, delay / 4));
}

/* ---- calls --------------------------------------------------------------------------------------------- */

static void wait_for_map(cluster_t *cluster, belay__call_t *call) {
  call->at = NULL;
  belay__list_push(&cluster->waiting, &call->node);
  cluster->waiting_len++;
  want_map(cluster);
}

/* How many calls from here on belong together. */
static size_t group_len(belay__call_t *const *calls) {
  size_t n = 1;
  while (calls[n - 1]->followed)
    n++;
  return n;
}

static int admits(const cluster_t *cluster, belay__call_t *const *calls, size_t n) {
  const belay__trunk_t *trunk = &cluster->node.trunk;
  for (size_t i = 0; i < n; i += group_len(&calls[i])) {
    const belay__link_t *link = route(cluster, calls[i]);
    int error = link == NULL ? cluster->error : belay__link_admits(link, calls[0]->urgent, n);
    if (link == NULL && error == 0 && cluster->waiting_len + n > trunk->max_pending &&
        cluster->waiting_len > 0 && trunk->on_full == BELAY_FULL_REFUSE && !calls[0]->urgent)
      error = BELAY_EBUSY;
    if (error != 0 && (link != NULL || belay__link_is_lasting(error) || error == BELAY_EBUSY))
      return error;
  }
  return 0;
}

static int submit(belay_client_t *client, belay__call_t *const *calls, size_t n) {
  cluster_t *cluster = (cluster_t *)client;
  int error = admits(cluster, calls, n);
  if (error != 0)
    return error;
  if (calls[0]->tries > 0) /* it was refused before, perhaps because of what has changed */
    want_map(cluster);
  for (size_t i = 0, len; i < n; i += len) {
    belay__link_t *link = route(cluster, calls[i]);
    len = group_len(&calls[i]);
    for (size_t k = i; k < i + len; k++) {
      calls[k]->asking = false;
      if (link == NULL)
        wait_for_map(cluster, calls[k]);
      else
        belay__link_adopt(link, calls[k]);
    }
  }
  cluster->turn++;
  return 0;
}

static int withdraw(belay_client_t *client, belay__call_t *call) {
  cluster_t *cluster = (cluster_t *)client;
  if (call->at != NULL)
    return belay__link_withdraw(call->at, call);
  belay__list_remove(&call->node);
  cluster->waiting_len--;
  if (cluster->error != 0)
    return cluster->error;
  return cluster->has_map ? BELAY_ECLUSTERDOWN : BELAY_EUNREACHABLE;
}

static bool redirect(belay__link_t *link, belay__call_t *call, const belay__reply_t *reply) {
  cluster_t *cluster = cluster_of(link->cable->trunk);
  belay__place_t place;
  uint16_t slot;
  bool ask;
  want_map(cluster);
  if (!belay__slotmap_redirect(reply, &link->target.place, &ask, &slot, &place))
    return false;
  uint16_t at = take(cluster, &place);
  if (at == NOBODY)
    return false;
  if (!ask)
    set_owner(cluster, slot, at);
  if (!belay__call_redirect(call))
    return false;
  call->asking = ask;
  call->stale = false; /* what was asked of a replica may be too much for one */
  belay__link_adopt(link_at(cluster, at, (belay__lane_t)call->lane, call->affinity), call);
  return true;
}

/* What is queued here goes where it belongs now. */
static void sort_calls(cluster_t *cluster, belay__list_t *calls) {
  for (belay__list_t *node; (node = belay__list_pop(calls)) != NULL;) {
    belay__call_t *call = BELAY__CONTAINER(node, belay__call_t, node);
    belay__link_t *link = route(cluster, call);
    bool followed = call->followed;
    call->asking = false;
    if (link == NULL)
      wait_for_map(cluster, call);
    else
      belay__link_adopt(link, call);
    while (followed && (node = belay__list_pop(calls)) != NULL) {
      call = BELAY__CONTAINER(node, belay__call_t, node);
      followed = call->followed;
      if (link == NULL)
        wait_for_map(cluster, call);
      else
        belay__link_adopt(link, call);
    }
  }
}

static void sort_link(cluster_t *cluster, belay__link_t *link) {
  belay__list_t calls;
  belay__list_init(&calls);
  belay__link_surrender(link, &calls);
  sort_calls(cluster, &calls);
}

static void sort_all(cluster_t *cluster) {
  belay__list_t calls;
  belay__list_init(&calls);
  belay__list_splice_front(&calls, &cluster->waiting);
  cluster->waiting_len = 0;
  sort_calls(cluster, &calls);
  for (size_t i = 0; i < cluster->servers_len; i++)
    for (size_t k = 0; cluster->servers[i].cable != NULL && k < cluster->servers[i].cable->count;
         k++)
      if (!belay__link_is_up(&cluster->servers[i].cable->links[k]) || cluster->servers[i].retired)
        sort_link(cluster, &cluster->servers[i].cable->links[k]);
}

static void on_sort(belay__timer_t *timer) {
  sort_all(BELAY__CONTAINER(timer, cluster_t, sort));
}

/* ---- the port's questions ------------------------------------------------------------------------------ */

static void distrust(belay_client_t *client, const belay__call_t *call) {
  (void)client;
  if (call->at != NULL)
    belay__link_distrust(call->at, call->epoch);
}

/* Of a slot that has moved nothing is known: what was sent to the server that had it may be executed there when it has
 * it again. */
static uint32_t dead_epoch(const belay_client_t *client, belay__lane_t lane, uint32_t affinity) {
  const cluster_t *cluster = (const cluster_t *)client;
  unsigned slot = affinity % BELAY__SLOTS;
  const belay__link_t *link = link_of(client, lane, affinity);
  bool moved = (cluster->moved[slot / 64] >> slot % 64 & 1) != 0;
  return link == NULL || moved ? 0 : link->dead_epoch;
}

static const belay__server_t *server_of(const belay_client_t *client, belay__lane_t lane,
                                        uint32_t affinity) {
  const belay__link_t *link = link_of(client, lane, affinity);
  return link != NULL && belay__link_is_up(link) ? &link->peer.server : NULL;
}

static bool silent(belay_client_t *client, belay__lane_t lane, uint32_t affinity, uint64_t limit) {
  belay__link_t *link = link_of(client, lane, affinity);
  return link != NULL && belay__link_is_silent(link, limit);
}

/* Before there is a map it is one server as far as is known; then its version is another one. */
static bool shard(const belay_client_t *client, size_t i, uint32_t *affinity, uint32_t *version) {
  const cluster_t *cluster = (const cluster_t *)client;
  uint64_t seen[NODES_MAX / 64] = {0};
  size_t n = 0;
  *version = cluster->version;
  *affinity = 0;
  for (uint32_t slot = 0; slot < BELAY__SLOTS; slot++) {
    uint16_t at = cluster->owner[slot];
    if (at == NOBODY || (seen[at / 64] >> at % 64 & 1) != 0)
      continue;
    seen[at / 64] |= UINT64_C(1) << at % 64;
    *affinity = slot;
    if (n++ == i)
      return true;
  }
  return n == 0 && i == 0;
}

static uint32_t home(const belay_client_t *client, uint32_t affinity) {
  return ((const cluster_t *)client)->owner[affinity % BELAY__SLOTS];
}

static size_t links_up(const belay_client_t *client) {
  const cluster_t *cluster = (const cluster_t *)client;
  size_t n = 0;
  for (size_t i = 0; i < cluster->servers_len; i++)
    n += cluster->servers[i].cable == NULL ? 0 : belay__cable_links_up(cluster->servers[i].cable);
  return n;
}

static bool can(belay_client_t *client, belay__capability_t what) {
  const cluster_t *cluster = (cluster_t *)client;
  belay__trunk_t *trunk = &((cluster_t *)client)->node.trunk;
  if (!trunk->can_known) {
    unsigned all = UINT_MAX;
    bool any = false;
    for (size_t i = 0; i < cluster->servers_len; i++)
      any |= is_live(&cluster->servers[i]) && belay__cable_can(cluster->servers[i].cable, &all);
    trunk->can = any ? all : 0;
    trunk->can_known = true;
  }
  return (trunk->can >> what & 1) != 0;
}

/* ---- listening ----------------------------------------------------------------------------------------- */

static belay__listener_t *listener_of(const cluster_t *cluster, const belay__channel_t *channel) {
  uint16_t at = cluster->owner[belay__slot(channel->name, channel->len)];
  return at == NOBODY ? NULL : cluster->servers[at].cable->listener;
}

static void listen_to(belay_client_t *client, belay__channel_t *channel) {
  cluster_t *cluster = (cluster_t *)client;
  belay__listener_t *listener = channel->node.at;
  if (listener == NULL)
    listener = listener_of(cluster, channel);
  if (listener == NULL)
    want_map(cluster);
  else
    belay__listener_listen(listener, channel);
}

static void unlisten(belay_client_t *client, belay__channel_t *channel) {
  (void)client;
  if (channel->node.at != NULL)
    belay__listener_unlisten(channel->node.at, channel);
}

/* Listens where the channel is now. Who heard it is told last: he may leave it for good. */
static void sort_channel(belay__channel_t *channel, void *arg) {
  cluster_t *cluster = arg;
  belay__listener_t *from = channel->node.at, *to = listener_of(cluster, channel);
  if (from == to)
    return;
  if (from != NULL)
    belay__listener_unlisten(from, channel);
  if (to != NULL)
    belay__listener_listen(to, channel);
  belay__channel_lost(channel, BELAY_ECLUSTERDOWN);
}

static void on_moved(belay__listener_t *listener) {
  want_map(cluster_of(listener->link.cable->trunk));
}

/* ---- the map: what ------------------------------------------------------------------------------------- */

static void ask(belay__scout_t *scout) {
  belay__scout_say(scout, 2, (const char *const[]){"CLUSTER", "SLOTS"});
}

/* What a map says of one range. */
static void visit(const belay__range_t *range, void *arg) {
  cluster_t *cluster = arg;
  uint16_t primary = take(cluster, &range->primary);
  if (primary == NOBODY)
    return;
  server_t *server = &cluster->servers[primary];
  server->known = true;
  server->primary = NOBODY;
  if (server->cable->role != BELAY__ROLE_ANY) { /* it was a replica */
    server->cable->role = BELAY__ROLE_ANY;
    server->cable->readonly = false;
    belay__cable_leave(server->cable, BELAY_EUNREACHABLE);
  }
  for (uint32_t slot = range->from; slot <= range->to; slot++)
    set_owner(cluster, (uint16_t)slot, primary);
  for (size_t i = 0; i < range->replica_count; i++) {
    bool reads = cluster->node.base.read_from != BELAY_READ_PRIMARY;
    uint16_t at = reads ? take(cluster, &range->replicas[i]) : NOBODY;
    if (at == NOBODY || at == primary)
      continue;
    cluster->servers[at].known = true;
    cluster->servers[at].primary = primary;
    cluster->servers[at].cable->role = BELAY__ROLE_REPLICA;
    cluster->servers[at].cable->readonly = true;
    belay__link_want(belay__cable_link(cluster->servers[at].cable, BELAY__LANE_DATA, 0));
  }
}

static void forget_owners(cluster_t *cluster, uint16_t at) {
  for (uint32_t slot = 0; slot < BELAY__SLOTS; slot++)
    if (cluster->owner[slot] == at)
      set_owner(cluster, (uint16_t)slot, NOBODY);
}

/* Who is in no map any more ends when nothing is under way there. */
static void end_retired(cluster_t *cluster) {
  for (size_t i = 0; i < cluster->servers_len; i++) {
    server_t *server = &cluster->servers[i];
    if (server->cable == NULL || !server->retired)
      continue;
    if (belay__cable_drain(server->cable) && belay__cable_is_over(server->cable)) {
      belay__cable_free(server->cable);
      server->cable = NULL;
    }
  }
}

static void apply(cluster_t *cluster, const belay__reply_t *reply) {
  for (size_t i = 0; i < cluster->servers_len; i++)
    cluster->servers[i].known = false;
  belay__place_t here = *belay__scout_place(&cluster->scout);
  (void)belay__slotmap_read(reply, &here, cluster->node.url.tls, visit, cluster);
  for (size_t i = 0; i < cluster->servers_len; i++)
    if (is_live(&cluster->servers[i]) && !cluster->servers[i].known) {
      forget_owners(cluster, (uint16_t)i);
      cluster->servers[i].retired = true;
    }
  cluster->has_map = true;
  cluster->error = 0;
}

static void count_nothing(const belay__range_t *range, void *arg) {
  (void)range;
  (void)arg;
}

/* A node that is not a member yet knows of no slots at all. One that does not know SLOTS is asked for SHARDS. */
static belay__scout_verdict_t answer(belay__scout_t *scout, const belay__reply_t *reply) {
  cluster_t *cluster = BELAY__CONTAINER(scout, cluster_t, scout);
  const belay__place_t *here = belay__scout_place(scout);
  if (reply->type == BELAY__REPLY_ERROR) {
    if (cluster->asks_shards)
      return BELAY__SCOUT_NEXT;
    cluster->asks_shards = true;
    belay__scout_say(scout, 2, (const char *const[]){"CLUSTER", "SHARDS"});
    return BELAY__SCOUT_MORE;
  }
  if (belay__slotmap_read(reply, here, cluster->node.url.tls, count_nothing, NULL) == 0)
    return BELAY__SCOUT_NEXT;
  apply(cluster, reply);
  return BELAY__SCOUT_DONE;
}

static void refuse_waiting(cluster_t *cluster, int error) {
  for (belay__list_t *node; (node = belay__list_pop(&cluster->waiting)) != NULL;) {
    cluster->waiting_len--;
    belay__call_refused(BELAY__CONTAINER(node, belay__call_t, node), error);
  }
}

/* Those who are in the map, and those whom the user has named, are asked from now on. */
static void choose_scouts(cluster_t *cluster) {
  belay__place_t places[BELAY__SCOUT_PLACES];
  const belay__url_t *url = &cluster->node.url;
  size_t n = 0;
  for (size_t i = 0; i < cluster->servers_len && n < BELAY__SCOUT_PLACES - url->place_count; i++)
    if (is_live(&cluster->servers[i]))
      places[n++] = cluster->servers[i].cable->target.place;
  for (size_t i = 0; i < url->place_count; i++)
    places[n++] = url->places[i];
  belay__scout_set(&cluster->scout, places, n);
}

static void use_map(cluster_t *cluster) {
  sort_all(cluster);
  belay__channels_each(&cluster->node.base, sort_channel, cluster);
  end_retired(cluster);
  choose_scouts(cluster);
  want_map_after(cluster, REFRESH_ANYWAY_MS);
  if (is_troubled(cluster)) {
    belay__scout_turn(&cluster->scout); /* somebody else may know better */
    want_map(cluster);
  }
}

static void over(belay__scout_t *scout, int error) {
  cluster_t *cluster = BELAY__CONTAINER(scout, cluster_t, scout);
  bool lasting = belay__link_is_lasting(error);
  if (error == 0) {
    use_map(cluster);
    return;
  }
  belay__scout_explain(scout, error);
  if (!cluster->has_map)
    cluster->error = error;
  if (lasting && !cluster->has_map)
    refuse_waiting(cluster, error);
  if (lasting || cluster->has_map)
    want_map_after(cluster, (uint64_t)cluster->node.trunk.reconnect_max_ms);
  if (!lasting && is_troubled(cluster))
    want_map(cluster);
}

/* A replica's calls go to another one, or to its primary. */
static void on_lost(belay__link_t *link, int error) {
  cluster_t *cluster = cluster_of(link->cable->trunk);
  (void)error;
  if (cluster->closing)
    return;
  want_map(cluster);
  if (link->cable->role == BELAY__ROLE_REPLICA)
    belay__timer_set(belay_of(cluster), BELAY__RANK_OTHER, &cluster->sort,
                     belay__now(belay_of(cluster)));
}

/* ---- the end ------------------------------------------------------------------------------------------- */

static void end_if_over(cluster_t *cluster) {
  if (!cluster->closing || cluster->gone || !belay__scout_is_over(&cluster->scout))
    return;
  for (size_t i = 0; i < cluster->servers_len; i++)
    if (cluster->servers[i].cable != NULL && !belay__cable_is_over(cluster->servers[i].cable))
      return;
  cluster->gone = true;
  belay__client_gone(&cluster->node.base);
}

static void on_quiet(belay__cable_t *cable) {
  end_if_over(cluster_of(cable->trunk));
}

static void on_scout_quiet(belay__scout_t *scout) {
  end_if_over(BELAY__CONTAINER(scout, cluster_t, scout));
}

static void close_all(belay_client_t *client) {
  cluster_t *cluster = (cluster_t *)client;
  cluster->closing = true;
  belay__timer_stop(belay_of(cluster), BELAY__RANK_OTHER, &cluster->wake);
  belay__timer_stop(belay_of(cluster), BELAY__RANK_OTHER, &cluster->sort);
  refuse_waiting(cluster, BELAY_ECANCELED);
  for (size_t i = 0; i < cluster->servers_len; i++)
    if (cluster->servers[i].cable != NULL)
      belay__cable_close(cluster->servers[i].cable);
  belay__scout_close(&cluster->scout);
  end_if_over(cluster);
}

static void free_cluster(belay_client_t *client) {
  cluster_t *cluster = (cluster_t *)client;
  for (size_t i = 0; i < cluster->servers_len; i++)
    if (cluster->servers[i].cable != NULL)
      belay__cable_free(cluster->servers[i].cable);
  belay__scout_fini(&cluster->scout);
  belay__node_free(&cluster->node);
}

/* ---- making -------------------------------------------------------------------------------------------- */

static const belay__scout_ops_t scout_ops = {
    .ask = ask, .answer = answer, .over = over, .quiet = on_scout_quiet};

static int init(belay__node_t *node) {
  cluster_t *cluster = (cluster_t *)node;
  memset(cluster->owner, 0xff, sizeof cluster->owner);
  belay__list_init(&cluster->waiting);
  cluster->wake.fire = on_wake;
  cluster->sort.fire = on_sort;
  cluster->scout.trunk = &node->trunk;
  cluster->scout.ops = &scout_ops;
  cluster->scout.identity = node->trunk.identity;
  belay__scout_init(&cluster->scout);
  belay__scout_set(&cluster->scout, node->url.places, node->url.place_count);
  return 0;
}

static const belay__node_ops_t node_ops = {
    .by_slots = true,
    .submit = submit,
    .withdraw = withdraw,
    .distrust = distrust,
    .dead_epoch = dead_epoch,
    .server = server_of,
    .silent = silent,
    .shard = shard,
    .home = home,
    .links_up = links_up,
    .can = can,
    .listen = listen_to,
    .unlisten = unlisten,
    .close = close_all,
    .free = free_cluster,
};

static const belay__trunk_ops_t trunk_ops = {
    .lost = on_lost, .redirect = redirect, .moved = on_moved, .quiet = on_quiet};

const belay__deployment_t belay__cluster = {
    .size = sizeof(cluster_t), .ops = &node_ops, .trunk_ops = &trunk_ops, .init = init};
