/* A cluster: a router from slots to the connections of their servers.
 *
 *    call --slot has a server--> its connection --MOVED, ASK--> connection of the named server
 *      |                            ^  |
 *      +--no server--> WAITING -----+  | the server lost slots, is retired, or is a replica without
 *                        ^      a map  | a connection: unsent calls are queued again
 *                        +-------------+
 *
 * MOVED updates its slot at once and asks for a map (cluster_map.c). ASK is for one call only:
 * if the named server cannot be reached, the call starts again at the slot's owner.
 *
 * Order: queued calls keep their order. A redirected call may run after a later call to the new
 * server; a call that must not is not redirected (core/call/call.h). */
#include <string.h>

#include "core/client/channel.h"
#include "core/client/lifecycle.h"
#include "redis/conn/cause.h"
#include "redis/conn/connection.h"
#include "redis/conn/liveness.h"
#include "redis/conn/outage.h"
#include "redis/conn/call_queue.h"
#include "redis/conn/subscriber.h"
#include "redis/deployment/cluster_map.h"
#include "redis/deployment/cluster_servers.h"

static belay__cluster_t *cluster_of_connection(const belay__connection_t *connection) {
  return belay__cluster_of(connection->server->settings);
}

/* ---- routes ---- */

/* Chooses the server of a read: usable replicas in turn; the primary if it is allowed, or if no
 * replica is usable. */
static uint16_t reader_of(const belay__cluster_t *cluster, uint16_t primary,
                          belay__conn_class_t conn_class, uint32_t route) {
  uint16_t ready[BELAY__SHARD_REPLICAS + 1], i = cluster->instances[primary]->replica;
  size_t n = 0;
  for (; i != BELAY__NO_INSTANCE && n < BELAY__SHARD_REPLICAS; i = cluster->instances[i]->next)
    if (belay__server_is_readable(cluster->instances[i]->server, conn_class, route))
      ready[n++] = i;
  if (n == 0 || cluster->node.base.read_from == BELAY_READ_ANY)
    ready[n++] = primary;
  return ready[cluster->turn % n];
}

static belay__connection_t *connection_at(const belay__cluster_t *cluster, uint16_t number,
                                          belay__conn_class_t conn_class, uint32_t route) {
  return number == BELAY__NO_INSTANCE
             ? NULL
             : belay__server_connection(cluster->instances[number]->server, conn_class, route);
}

/* Returns the connection for calls of this class and route; NULL if the server is unknown. */
static belay__connection_t *connection_of(const belay_client_t *client,
                                          belay__conn_class_t conn_class, uint32_t route) {
  const belay__cluster_t *cluster = belay__cluster_of_client(client);
  return connection_at(cluster, cluster->owner[route % BELAY__SLOTS], conn_class, route);
}

static belay__connection_t *find_route(const belay__cluster_t *cluster, const belay__call_t *call) {
  uint16_t number = cluster->owner[belay__call_slot(call)];
  belay__conn_class_t conn_class = (belay__conn_class_t)call->conn_class;
  if (number != BELAY__NO_INSTANCE && call->stale)
    number = reader_of(cluster, number, conn_class, call->route);
  return connection_at(cluster, number, conn_class, call->route);
}

/* ---- calls ---- */

/* The call is on no connection. ASKING was for the server that a redirection named: another server
 * that imports the slot would serve the call although the owner of the slot has the key. */
static void leave_server(belay__call_t *call) {
  *belay__dispatch(call) = (belay__dispatch_t){.at = NULL};
  call->asking = false;
}

/* Adds a call to a list of waiting calls, from which it can be withdrawn. */
static void wait(belay__cluster_t *cluster, belay__list_t *list, belay__call_t *call) {
  leave_server(call);
  belay__list_push(list, &call->node);
  cluster->waiting_len++;
}

/* Queues a call that is in no list. */
static void put(belay__cluster_t *cluster, belay__call_t *call, belay__connection_t *connection) {
  if (connection != NULL) {
    belay__connection_enqueue(connection, call);
  } else {
    wait(cluster, &cluster->waiting, call);
    belay__cluster_check_map(cluster);
  }
}

/* Returns the number of calls from here on that belong together. */
static size_t group_len(belay__call_t *const *calls) {
  size_t n = 1;
  while (calls[n - 1]->followed)
    n++;
  return n;
}

/* Returns 0 if n more calls may wait for a map. There is always room for the first group. */
static int may_wait(belay__cluster_t *cluster, const belay__call_t *call, size_t n) {
  bool urgent = call->urgent;
  const belay__settings_t *settings = &cluster->node.settings;
  bool full = cluster->waiting_len > 0 && cluster->waiting_len + n > settings->options.max_pending;
  if (cluster->map == BELAY__MAP_REFUSED)
    return cluster->error;
  if (call->fail_fast && !cluster->has_map && cluster->error != 0) {
    belay__discovery_report(&cluster->discovery, cluster->error);
    belay__cluster_check_map(cluster);
    return belay__unsent_error(cluster->error);
  }
  return full && !urgent && settings->options.on_full == BELAY_FULL_REFUSE ? BELAY_EBUSY : 0;
}

/* Returns 0, or the error with which all calls are refused. If only some calls have fail_fast and
 * a server that is away, these end later, from the loop. */
static int admits(belay__cluster_t *cluster, belay__call_t *const *calls, size_t n) {
  int away = BELAY_EUNREACHABLE;
  for (size_t i = 0; i < n; i += group_len(&calls[i])) {
    belay__connection_t *connection = find_route(cluster, calls[i]);
    bool urgent = calls[0]->urgent;
    int error = connection == NULL ? may_wait(cluster, calls[0], n)
                                   : belay__connection_check_room(connection, urgent, n);
    if (error != 0)
      return error;
    if (away != 0)
      away = connection == NULL || !calls[i]->fail_fast
                 ? 0
                 : belay__connection_check_fail_fast(connection);
  }
  return away;
}

/* A call that was refused because its slot had no server may succeed on another server now. */
static int submit(belay_client_t *client, belay__call_t *const *calls, size_t n) {
  belay__cluster_t *cluster = belay__cluster_of_client(client);
  int error = admits(cluster, calls, n);
  if (error != 0)
    return error;
  if (calls[0]->last_error == BELAY_ECLUSTERDOWN || calls[0]->last_error == BELAY_EREADONLY)
    belay__cluster_check_map(cluster);
  for (size_t i = 0, end; i < n; i = end) {
    belay__connection_t *connection = find_route(cluster, calls[i]);
    end = i + group_len(&calls[i]);
    for (size_t k = i; k < end; k++) {
      leave_server(calls[k]);
      put(cluster, calls[k], connection);
    }
  }
  cluster->turn++;
  return 0;
}

static int withdraw(belay_client_t *client, belay__call_t *call) {
  belay__cluster_t *cluster = belay__cluster_of_client(client);
  belay__connection_t *connection = belay__dispatch(call)->at;
  if (connection != NULL)
    return belay__connection_withdraw(connection, call);
  belay__list_remove(&call->node);
  cluster->waiting_len--;
  if (cluster->has_map)
    return BELAY_ECLUSTERDOWN;
  return belay__unsent_error(cluster->error != 0 ? cluster->error : cluster->discovery.error);
}

static void on_redirect(belay__connection_t *connection, const belay__redirect_t *to,
                        belay__list_t *calls) {
  belay__cluster_t *cluster = cluster_of_connection(connection);
  uint16_t number = belay__cluster_add_redirected(cluster, &to->place);
  belay__list_t moving;
  belay__list_init(&moving);
  if (number == BELAY__NO_INSTANCE || (!to->ask && cluster->owner[to->slot] != number))
    belay__cluster_map_changed(cluster);
  if (number != BELAY__NO_INSTANCE && to->ask) {
    belay__cluster_mark_moved(cluster, to->slot);
    cluster->instances[number]->importing = true;
  } else if (number != BELAY__NO_INSTANCE) {
    belay__cluster_set_owner(cluster, to->slot, number);
  }
  for (belay__call_t *call; (call = belay__pop_call(calls)) != NULL;)
    wait(cluster, &moving, call);
  for (belay__call_t *call; (call = belay__pop_call(&moving)) != NULL;) {
    cluster->waiting_len--;
    call->stale = false;    /* a replica's refusal may not apply to a primary */
    call->asking = to->ask; /* the slot is being moved to this server */
    put(cluster, call,
        connection_at(cluster, number, (belay__conn_class_t)call->conn_class, call->route));
  }
}

/* ---- process changes ---- */

/* Moves the queued calls of a server in front of the waiting calls, which are newer. */
static void take_back(belay__cluster_t *cluster, const belay__instance_t *instance) {
  belay__list_t queued, calls;
  belay__list_init(&queued);
  belay__list_init(&calls);
  for (size_t i = 0; i < instance->server->count; i++) {
    belay__connection_take_queued(&instance->server->connections[i], &queued);
    for (belay__call_t *call; (call = belay__pop_call(&queued)) != NULL;)
      wait(cluster, &calls, call);
  }
  belay__list_splice_front(&cluster->waiting, &calls);
}

/* Queues the waiting calls whose server is known now. Calls that belong together stay together. */
static void queue_waiting(belay__cluster_t *cluster) {
  belay__list_t calls;
  belay__connection_t *connection = NULL;
  bool followed = false;
  belay__list_init(&calls);
  belay__list_splice_front(&calls, &cluster->waiting);
  for (belay__call_t *call; (call = belay__pop_call(&calls)) != NULL;) {
    if (!followed || !call->follows)
      connection = find_route(cluster, call);
    followed = call->followed;
    cluster->waiting_len--;
    put(cluster, call, connection);
  }
}

/* True for a replica for reads that is not connected. */
static bool is_off(const belay__instance_t *instance) {
  return instance->primary != BELAY__NO_INSTANCE &&
         !belay__connection_is_up(belay__server_connection(instance->server, BELAY__CLASS_DATA, 0));
}

static belay__subscriber_t *subscriber_of(const belay__cluster_t *cluster,
                                          const belay__channel_t *channel) {
  uint16_t number = cluster->owner[channel->node.slot];
  return number == BELAY__NO_INSTANCE ? NULL : cluster->instances[number]->server->subscriber;
}

/* Subscribes on the channel's present server. The subscribers are notified last, because they
 * may unsubscribe. */
static void move_channel(belay__channel_t *channel, void *arg) {
  belay__cluster_t *cluster = arg;
  belay__subscriber_t *from = channel->node.at, *to = subscriber_of(cluster, channel);
  if (from == to)
    return;
  if (from != NULL)
    belay__subscriber_remove(from, channel);
  if (to != NULL)
    belay__subscriber_add(to, channel);
  if (from != NULL)
    belay__channel_lost(channel, BELAY_ECLUSTERDOWN);
}

/* Takes the queued calls, and connects if an attempt is useful. */
static void update_instance(belay__cluster_t *cluster, belay__instance_t *instance) {
  take_back(cluster, instance);
  if (instance->changed && !instance->server->retired)
    belay__server_retry_now(instance->server);
  instance->changed = false;
  if (is_off(instance))
    belay__server_connect(instance->server);
}

static void tidy(belay__cluster_t *cluster) {
  bool again = false;
  belay__timer_stop(belay__cluster_host(cluster), BELAY__RANK_OTHER, &cluster->tidy);
  for (size_t i = 0; i < cluster->instances_len; i++) {
    belay__instance_t *instance = cluster->instances[i];
    if (instance == NULL || !(instance->changed || is_off(instance)))
      continue;
    update_instance(cluster, instance);
    again = again || is_off(instance);
  }
  queue_waiting(cluster);
  if (cluster->tidied != cluster->version && !cluster->node.closing) {
    cluster->tidied = cluster->version;
    belay__client_lost_connection(&cluster->node.base);
    belay__channels_each(&cluster->node.base, move_channel, cluster);
  }
  bool ends = !cluster->node.closing && !belay__cluster_close_retired(cluster);
  if (again || ends)
    belay__cluster_tidy_later(cluster, ends);
}

static void on_tidy(belay__timer_t *timer) {
  tidy(BELAY__CONTAINER(timer, belay__cluster_t, tidy));
}

static void report_refused(belay__channel_t *channel, void *error) {
  if (channel->node.at == NULL)
    belay__channel_lost(channel, *(const int *)error);
}

static void refuse_fail_fast(belay__cluster_t *cluster, int error) {
  belay__list_t kept;
  belay__list_init(&kept);
  for (belay__call_t *call; (call = belay__pop_call(&cluster->waiting)) != NULL;) {
    if (!call->fail_fast) {
      belay__list_push(&kept, &call->node);
      continue;
    }
    cluster->waiting_len--;
    belay__call_refused(call, belay__unsent_error(error));
  }
  belay__list_splice_front(&cluster->waiting, &kept);
}

static void refuse_all(belay__cluster_t *cluster, int error) {
  belay__channels_each(&cluster->node.base, report_refused, &error);
  for (belay__call_t *call; (call = belay__pop_call(&cluster->waiting)) != NULL;) {
    cluster->waiting_len--;
    belay__call_refused(call, error);
  }
}

/* ---- events of connections ---- */

static void on_suspect(belay__connection_t *connection) {
  belay__cluster_check_map(cluster_of_connection(connection));
}

/* The calls of the connection are still being returned. Calls that wait there for a reply to ASK
 * start again. */
static void on_lost(belay__connection_t *connection) {
  belay__cluster_t *cluster = cluster_of_connection(connection);
  belay__instance_t *instance = connection->server->owner;
  instance->changed = instance->changed || instance->importing || instance->server->retired;
  instance->importing = false;
  if (instance->changed || is_off(instance))
    belay__cluster_tidy_soon(cluster);
  if (instance->primary == BELAY__NO_INSTANCE)
    belay__cluster_check_map(cluster);
}

static void on_handle_closed(belay__settings_t *settings, belay__server_t *server) {
  belay__cluster_t *cluster = belay__cluster_of(settings);
  if (server != NULL && server->retired)
    belay__cluster_tidy_soon(cluster);
  belay__node_check_closed(&cluster->node);
}

/* ---- the rest of the port ---- */

/* Connections are numbered across servers, and each server knows which of its own are dead. If
 * several servers got calls, the answer is unknown: a call on another server may still be
 * executed there after the slot returns. */
static uint32_t dead_epoch(const belay_client_t *client, belay__conn_class_t conn_class,
                           uint32_t route) {
  const belay__cluster_t *cluster = belay__cluster_of_client(client);
  unsigned slot = route % BELAY__SLOTS;
  const belay__connection_t *connection = connection_of(client, conn_class, route);
  bool several = (cluster->moved[slot / 64] >> slot % 64 & 1) != 0;
  return connection == NULL || several ? 0 : connection->dead_epoch;
}

static const belay__server_info_t *server_of(const belay_client_t *client,
                                             belay__conn_class_t conn_class, uint32_t route) {
  const belay__connection_t *connection = connection_of(client, conn_class, route);
  return connection != NULL && belay__connection_is_up(connection) ? &connection->peer.info : NULL;
}

static bool silent(belay_client_t *client, belay__conn_class_t conn_class, uint32_t route,
                   uint64_t limit) {
  belay__connection_t *connection = connection_of(client, conn_class, route);
  return connection != NULL && belay__connection_is_silent(connection, limit);
}

static void listen_to(belay_client_t *client, belay__channel_t *channel) {
  belay__cluster_t *cluster = belay__cluster_of_client(client);
  belay__subscriber_t *subscriber = channel->node.at;
  channel->node.slot = belay__slot(channel->keyed.key, channel->keyed.key_len);
  if (subscriber == NULL)
    subscriber = subscriber_of(cluster, channel);
  if (subscriber == NULL)
    belay__cluster_check_map(cluster);
  else
    belay__subscriber_add(subscriber, channel);
}

static void unlisten(belay_client_t *client, belay__channel_t *channel) {
  (void)client;
  if (channel->node.at != NULL)
    belay__subscriber_remove(channel->node.at, channel);
}

/* ---- start and end ---- */

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
  for (size_t i = 0; i < cluster->instances_len; i++)
    if (cluster->instances[i] != NULL)
      belay__cluster_free_instance(cluster, cluster->instances[i]);
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
    BELAY__NODE_OPS,
    .submit = submit,
    .withdraw = withdraw,
    .dead_epoch = dead_epoch,
    .server = server_of,
    .silent = silent,
    .shard = belay__cluster_shard,
#if BELAY_HAS_TOPOLOGY
    .place = belay__cluster_place,
    .visit = belay__node_visit,
#endif
    .listen = listen_to,
    .unlisten = unlisten,
    .close = close_all,
    .free = free_cluster,
};

static const belay__deployment_ops_t deployment_ops = {.lost = on_lost,
                                                       .redirect = on_redirect,
                                                       .suspect = on_suspect,
                                                       .handle_closed = on_handle_closed};

const belay__deployment_t belay__cluster = {.size = sizeof(belay__cluster_t),
                                            .ops = &node_ops,
                                            .deployment_ops = &deployment_ops,
                                            .init = init};
