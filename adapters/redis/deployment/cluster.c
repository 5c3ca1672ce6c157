/* A deployment that is a cluster: a router from slots to the cables of the servers that have them.
 *
 *   a call --its slot has a server--> the link to that one --MOVED, ASK--> the link to the one that is named
 *     |                                  ^  |
 *     +--nobody has it-> WAITING --------+  | slots of the server have gone elsewhere; it is retired; it is a replica
 *                          ^   a map comes  | that is not connected: what is queued there, and was not sent
 *                          +----------------+
 *
 * A MOVED is believed at once, for its slot; and a map is asked for (cluster_map.c). An ASK is for one call only: where the
 * server that it names is not to be had, the call begins anew with the one that has the slot.
 *
 * Order: what is queued goes on in the order in which it came. What was sent and is redirected may come behind what was
 * sent later to the new server; what must not, is not redirected (core/call/call.h). */
#include "redis/deployment/cluster.h"

#include <string.h>

#include "core/client/channel.h"
#include "core/client/lifecycle.h"
#include "redis/conn/cause.h"
#include "redis/conn/connection.h"
#include "redis/conn/liveness.h"
#include "redis/conn/outage.h"
#include "redis/conn/queue.h"
#include "redis/conn/subscriber.h"
#include "redis/deployment/cluster_map.h"
#include "redis/deployment/cluster_servers.h"

static belay__cluster_t *of_link(const belay__link_t *link) {
  return belay__cluster_of(link->cable->trunk);
}

/* ---- routes -------------------------------------------------------------------------------------------- */

/* Who answers what only reads: the replicas that can in turn, and the primary where that is wanted or none can. */
static uint16_t reader_of(const belay__cluster_t *cluster, uint16_t primary, belay__lane_t lane,
                          uint32_t affinity) {
  uint16_t ready[BELAY__SHARD_REPLICAS + 1], i = cluster->servers[primary]->replica;
  size_t n = 0;
  for (; i != BELAY__NOBODY && n < BELAY__SHARD_REPLICAS; i = cluster->servers[i]->next)
    if (belay__cable_reads(cluster->servers[i]->cable, lane, affinity))
      ready[n++] = i;
  if (n == 0 || cluster->node.base.read_from == BELAY_READ_ANY)
    ready[n++] = primary;
  return ready[cluster->turn % n];
}

static belay__link_t *link_at(const belay__cluster_t *cluster, uint16_t number, belay__lane_t lane,
                              uint32_t affinity) {
  return number == BELAY__NOBODY
             ? NULL
             : belay__cable_link(cluster->servers[number]->cable, lane, affinity);
}

/* Where calls of that lane and affinity go; NULL if nobody knows. */
static belay__link_t *link_of(const belay_client_t *client, belay__lane_t lane, uint32_t affinity) {
  const belay__cluster_t *cluster = belay__cluster_of_client(client);
  return link_at(cluster, cluster->owner[affinity % BELAY__SLOTS], lane, affinity);
}

static belay__link_t *route(const belay__cluster_t *cluster, const belay__call_t *call) {
  uint16_t number = cluster->owner[belay__call_slot(call)];
  belay__lane_t lane = (belay__lane_t)call->lane;
  if (number != BELAY__NOBODY && call->stale)
    number = reader_of(cluster, number, lane, call->affinity);
  return link_at(cluster, number, lane, call->affinity);
}

/* ---- calls --------------------------------------------------------------------------------------------- */

/* A call that stands in no queue counts as waiting: so it can be withdrawn, whatever happens meanwhile. */
static void wait(belay__cluster_t *cluster, belay__list_t *list, belay__call_t *call) {
  *belay__trip(call) = (belay__trip_t){.at = NULL};
  belay__list_push(list, &call->node);
  cluster->waiting_len++;
}

/* Queues a call that is in no list. */
static void put(belay__cluster_t *cluster, belay__call_t *call, belay__link_t *link) {
  if (link != NULL) {
    belay__link_adopt(link, call);
  } else {
    wait(cluster, &cluster->waiting, call);
    belay__cluster_doubt(cluster);
  }
}

/* How many calls from here on belong together. */
static size_t group_len(belay__call_t *const *calls) {
  size_t n = 1;
  while (calls[n - 1]->followed)
    n++;
  return n;
}

/* Whether one more group may wait for a map; with the first there is always room. */
static int may_wait(belay__cluster_t *cluster, const belay__call_t *call, size_t n) {
  bool urgent = call->urgent;
  const belay__trunk_t *trunk = &cluster->node.trunk;
  bool full = cluster->waiting_len > 0 && cluster->waiting_len + n > trunk->max_pending;
  if (cluster->map == BELAY__MAP_REFUSED)
    return cluster->error;
  if (call->fail_fast && !cluster->has_map && cluster->error != 0) {
    belay__scout_explain(&cluster->scout, cluster->error);
    belay__cluster_doubt(cluster);
    return belay__link_unsent(cluster->error);
  }
  return full && !urgent && trunk->on_full == BELAY_FULL_REFUSE ? BELAY_EBUSY : 0;
}

/* Of calls with fail_fast those whose server is away end from the loop, unless all are such. */
static int admits(belay__cluster_t *cluster, belay__call_t *const *calls, size_t n) {
  int away = BELAY_EUNREACHABLE;
  for (size_t i = 0; i < n; i += group_len(&calls[i])) {
    belay__link_t *link = route(cluster, calls[i]);
    bool urgent = calls[0]->urgent;
    int error = link == NULL ? may_wait(cluster, calls[0], n) : belay__link_admits(link, urgent, n);
    if (error != 0)
      return error;
    if (away != 0)
      away = link == NULL || !calls[i]->fail_fast ? 0 : belay__link_fail_fast(link);
  }
  return away;
}

/* What was refused because its slot was not served may be served elsewhere by now. */
static int submit(belay_client_t *client, belay__call_t *const *calls, size_t n) {
  belay__cluster_t *cluster = belay__cluster_of_client(client);
  int error = admits(cluster, calls, n);
  if (error != 0)
    return error;
  if (calls[0]->last_error == BELAY_ECLUSTERDOWN || calls[0]->last_error == BELAY_EREADONLY)
    belay__cluster_doubt(cluster);
  for (size_t i = 0, end; i < n; i = end) {
    belay__link_t *link = route(cluster, calls[i]);
    end = i + group_len(&calls[i]);
    for (size_t k = i; k < end; k++) {
      *belay__trip(calls[k]) = (belay__trip_t){.at = NULL};
      put(cluster, calls[k], link);
    }
  }
  cluster->turn++;
  return 0;
}

static int withdraw(belay_client_t *client, belay__call_t *call) {
  belay__cluster_t *cluster = belay__cluster_of_client(client);
  belay__link_t *link = belay__trip(call)->at;
  if (link != NULL)
    return belay__link_withdraw(link, call);
  belay__list_remove(&call->node);
  cluster->waiting_len--;
  if (cluster->has_map)
    return BELAY_ECLUSTERDOWN;
  return belay__link_unsent(cluster->error != 0 ? cluster->error : cluster->scout.error);
}

static void on_redirect(belay__link_t *link, const belay__redirect_t *to, belay__list_t *calls) {
  belay__cluster_t *cluster = of_link(link);
  uint16_t number = belay__cluster_hear_of(cluster, &to->place);
  belay__list_t moving;
  belay__list_init(&moving);
  if (number == BELAY__NOBODY || (!to->ask && cluster->owner[to->slot] != number))
    belay__cluster_news(cluster);
  if (number != BELAY__NOBODY && to->ask) {
    belay__cluster_mark_moved(cluster, to->slot);
    cluster->servers[number]->guests = true;
  } else if (number != BELAY__NOBODY) {
    belay__cluster_set_owner(cluster, to->slot, number);
  }
  for (belay__list_t *node; (node = belay__list_pop(calls)) != NULL;)
    wait(cluster, &moving, BELAY__CONTAINER(node, belay__call_t, node));
  for (belay__list_t *node; (node = belay__list_pop(&moving)) != NULL;) {
    belay__call_t *call = BELAY__CONTAINER(node, belay__call_t, node);
    cluster->waiting_len--;
    call->stale = false; /* what was asked of a replica may be too much for one */
    belay__trip(call)->asking = to->ask;
    put(cluster, call, link_at(cluster, number, (belay__lane_t)call->lane, call->affinity));
  }
}

/* ---- tidying ------------------------------------------------------------------------------------------- */

/* Takes back what is queued at a server, to the calls that wait, before those: it is older. */
static void take_back(belay__cluster_t *cluster, const belay__instance_t *server) {
  belay__list_t queued, calls;
  belay__list_init(&queued);
  belay__list_init(&calls);
  for (size_t i = 0; i < server->cable->count; i++) {
    belay__link_surrender(&server->cable->links[i], &queued);
    for (belay__list_t *node; (node = belay__list_pop(&queued)) != NULL;)
      wait(cluster, &calls, BELAY__CONTAINER(node, belay__call_t, node));
  }
  belay__list_splice_front(&cluster->waiting, &calls);
}

/* Queues what waits, where that is known by now. Those that belong together stay together. */
static void deal(belay__cluster_t *cluster) {
  belay__list_t calls;
  belay__link_t *link = NULL;
  bool followed = false;
  belay__list_init(&calls);
  belay__list_splice_front(&calls, &cluster->waiting);
  for (belay__list_t *node; (node = belay__list_pop(&calls)) != NULL;) {
    belay__call_t *call = BELAY__CONTAINER(node, belay__call_t, node);
    if (!followed || !call->follows)
      link = route(cluster, call);
    followed = call->followed;
    cluster->waiting_len--;
    put(cluster, call, link);
  }
}

/* Whether it is a replica that is to be read from, and cannot be. */
static bool is_off(const belay__instance_t *server) {
  return server->primary != BELAY__NOBODY &&
         !belay__link_is_up(belay__cable_link(server->cable, BELAY__LANE_DATA, 0));
}

static belay__listener_t *listener_of(const belay__cluster_t *cluster,
                                      const belay__channel_t *channel) {
  uint16_t number = cluster->owner[channel->node.slot];
  return number == BELAY__NOBODY ? NULL : cluster->servers[number]->cable->listener;
}

/* Listens where the channel is now. Who heard it is told last: he may leave it for good. */
static void move_channel(belay__channel_t *channel, void *arg) {
  belay__cluster_t *cluster = arg;
  belay__listener_t *from = channel->node.at, *to = listener_of(cluster, channel);
  if (from == to)
    return;
  if (from != NULL)
    belay__listener_unlisten(from, channel);
  if (to != NULL)
    belay__listener_listen(to, channel);
  if (from != NULL)
    belay__channel_lost(channel, BELAY_ECLUSTERDOWN);
}

/* Its calls are dealt anew, and it is connected to if it is worth trying. */
static void tend(belay__cluster_t *cluster, belay__instance_t *server) {
  take_back(cluster, server);
  if (server->changed && !server->cable->retired)
    belay__cable_hurry(server->cable);
  server->changed = false;
  if (is_off(server))
    belay__cable_want(server->cable);
}

static void tidy(belay__cluster_t *cluster) {
  bool again = false;
  belay__timer_stop(belay__cluster_host(cluster), BELAY__RANK_OTHER, &cluster->tidy);
  for (size_t i = 0; i < cluster->servers_len; i++) {
    belay__instance_t *server = cluster->servers[i];
    if (server == NULL || !(server->changed || is_off(server)))
      continue;
    tend(cluster, server);
    again = again || is_off(server);
  }
  deal(cluster);
  if (cluster->tidied != cluster->version && !cluster->node.closing) {
    cluster->tidied = cluster->version;
    belay__client_lost_connection(&cluster->node.base);
    belay__channels_each(&cluster->node.base, move_channel, cluster);
  }
  bool ends = !cluster->node.closing && !belay__cluster_end_retired(cluster);
  if (again || ends)
    belay__cluster_tidy_later(cluster, ends);
}

static void on_tidy(belay__timer_t *timer) {
  tidy(BELAY__CONTAINER(timer, belay__cluster_t, tidy));
}

static void tell_refused(belay__channel_t *channel, void *error) {
  if (channel->node.at == NULL)
    belay__channel_lost(channel, *(const int *)error);
}

static void refuse_fail_fast(belay__cluster_t *cluster, int error) {
  belay__list_t kept;
  belay__list_init(&kept);
  for (belay__list_t *node; (node = belay__list_pop(&cluster->waiting)) != NULL;) {
    belay__call_t *call = BELAY__CONTAINER(node, belay__call_t, node);
    if (!call->fail_fast) {
      belay__list_push(&kept, node);
      continue;
    }
    cluster->waiting_len--;
    belay__call_refused(call, belay__link_unsent(error));
  }
  belay__list_splice_front(&cluster->waiting, &kept);
}

static void refuse_all(belay__cluster_t *cluster, int error) {
  belay__channels_each(&cluster->node.base, tell_refused, &error);
  for (belay__list_t *node; (node = belay__list_pop(&cluster->waiting)) != NULL;) {
    cluster->waiting_len--;
    belay__call_refused(BELAY__CONTAINER(node, belay__call_t, node), error);
  }
}

/* ---- what links tell ----------------------------------------------------------------------------------- */

static void on_doubt(belay__link_t *link) {
  belay__cluster_doubt(of_link(link));
}

/* Its calls are still being given back. What waits there for an answer to ASK begins anew. */
static void on_lost(belay__link_t *link, int error) {
  belay__cluster_t *cluster = of_link(link);
  belay__instance_t *server = link->cable->of;
  (void)error;
  server->changed = server->changed || server->guests || server->cable->retired;
  server->guests = false;
  if (server->changed || is_off(server))
    belay__cluster_tidy_soon(cluster);
  if (server->primary == BELAY__NOBODY)
    belay__cluster_doubt(cluster);
}

static void on_quiet(belay__trunk_t *trunk, belay__cable_t *cable) {
  belay__cluster_t *cluster = belay__cluster_of(trunk);
  if (cable != NULL && cable->retired)
    belay__cluster_tidy_soon(cluster);
  belay__node_quiet(&cluster->node);
}

/* ---- the port's questions ------------------------------------------------------------------------------ */

/* Connections are numbered, whatever server they lead to; of one server's it is known which are dead. So where several have
 * been asked nothing is known: what was sent to another one may be executed there, if it gets the slot back. */
static uint32_t dead_epoch(const belay_client_t *client, belay__lane_t lane, uint32_t affinity) {
  const belay__cluster_t *cluster = belay__cluster_of_client(client);
  unsigned slot = affinity % BELAY__SLOTS;
  const belay__link_t *link = link_of(client, lane, affinity);
  bool several = (cluster->moved[slot / 64] >> slot % 64 & 1) != 0;
  return link == NULL || several ? 0 : link->dead_epoch;
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

static void listen_to(belay_client_t *client, belay__channel_t *channel) {
  belay__cluster_t *cluster = belay__cluster_of_client(client);
  belay__listener_t *listener = channel->node.at;
  channel->node.slot = belay__slot(channel->name, channel->len);
  if (listener == NULL)
    listener = listener_of(cluster, channel);
  if (listener == NULL)
    belay__cluster_doubt(cluster);
  else
    belay__listener_listen(listener, channel);
}

static void unlisten(belay_client_t *client, belay__channel_t *channel) {
  (void)client;
  if (channel->node.at != NULL)
    belay__listener_unlisten(channel->node.at, channel);
}

/* ---- begin and end ------------------------------------------------------------------------------------- */

static void close_all(belay_client_t *client) {
  belay__cluster_t *cluster = belay__cluster_of_client(client);
  cluster->node.closing = true;
  belay__timer_stop(belay__cluster_host(cluster), BELAY__RANK_OTHER, &cluster->tidy);
  belay__timer_stop(belay__cluster_host(cluster), BELAY__RANK_OTHER, &cluster->due);
  refuse_all(cluster, BELAY_ECANCELED);
  belay__node_close(&cluster->node);
}

static void free_cluster(belay_client_t *client) {
  belay__cluster_t *cluster = belay__cluster_of_client(client);
  for (size_t i = 0; i < cluster->servers_len; i++)
    if (cluster->servers[i] != NULL)
      belay__cluster_free_server(cluster, cluster->servers[i]);
  belay__table_free(belay__cluster_host(cluster), &cluster->places);
  belay__node_free(&cluster->node);
}

/* No map, for a lasting reason: nothing waits. No map yet: calls with fail_fast do not wait. */
static void on_map_over(belay__cluster_t *cluster, int error) {
  if (cluster->map == BELAY__MAP_REFUSED) {
    refuse_all(cluster, error);
    return;
  }
  if (error != 0 && !cluster->has_map)
    refuse_fail_fast(cluster, error);
  tidy(cluster);
}

static int init(belay__node_t *node) {
  belay__cluster_t *cluster = BELAY__CONTAINER(node, belay__cluster_t, node);
  memset(cluster->owner, 0xff, sizeof cluster->owner);
  belay__list_init(&cluster->waiting);
  cluster->tidy.fire = on_tidy;
  cluster->map_over = on_map_over;
  belay__cluster_map_init(cluster);
  return 0;
}

static const belay__node_ops_t node_ops = {
    .by_slots = true,
    .call_room = sizeof(belay__trip_t),
    .submit = submit,
    .withdraw = withdraw,
    .overdue = belay__node_overdue,
    .distrust = belay__node_distrust,
    .dead_epoch = dead_epoch,
    .server = server_of,
    .silent = silent,
    .shard = belay__cluster_shard,
#if BELAY_HAS_TOPOLOGY
    .place = belay__cluster_place,
    .visit = belay__node_visit,
#endif
    .connections_up = belay__node_links_up,
    .can = belay__node_can,
    .listen = listen_to,
    .unlisten = unlisten,
    .close = close_all,
    .free = free_cluster,
};

static const belay__trunk_ops_t trunk_ops = {
    .lost = on_lost, .redirect = on_redirect, .doubt = on_doubt, .quiet = on_quiet};

const belay__deployment_t belay__cluster = {
    .size = sizeof(belay__cluster_t), .ops = &node_ops, .trunk_ops = &trunk_ops, .init = init};
