/* A deployment with one primary: one server, or one of several that a resolver finds; and its
 * replicas, if reads may use them.
 *
 * The resolver runs before each attempt to connect. If it finds another primary, the present
 * connections end: sent calls without a reply are UNKNOWN, and the others go to the new primary.
 *
 * A replica:
 *
 *    named by the resolver --connected, role confirmed--> serves reads --cut off, silent, lost--+
 *                                  ^                          |                                 |
 *                                  +--------------------------|-----------retried---------------+
 *                                                             +--no longer named--> retired
 *    retired --its last reply--> closed
 *
 * Queued calls of a lost replica go to the other replicas or to the primary. */
#include <stdio.h>

#include "core/client/lifecycle.h"
#include "redis/conn/connection.h"
#include "redis/conn/liveness.h"
#include "redis/conn/outage.h"
#include "redis/conn/call_queue.h"
#include "redis/conn/server.h"
#include "redis/conn/subscriber.h"
#include "redis/deployment/node.h"
#include "redis/deployment/replicas.h"
#include "redis/deployment/sentinel.h"

#define REPLICA_CHECK_MS 5000

typedef struct single {
  belay__node_t node; /* first */
  belay__server_t *primary;
  belay__resolver_t *resolver;                    /* NULL: the server has a fixed address */
  bool applying;                                  /* the result of the resolver is being applied */
  belay__server_t *replicas[BELAY__REPLICAS_MAX]; /* NULL: unused */
  size_t turn;                                    /* the next server for reads */
  belay__timer_t requeue_timer; /* moves queued calls from failed replicas to other servers */
  belay__timer_t replica_timer; /* replicas that are not connected are tried again */
} single_t;

static single_t *single_of(const belay__settings_t *settings) {
  return BELAY__CONTAINER(settings, single_t, node.settings);
}

static belay_t *belay_of(const single_t *single) {
  return single->node.base.belay;
}

/* ---- the port ---- */

/* A replica that can be read from, or the primary. */
static belay__server_t *server_to_read(single_t *single, const belay__call_t *call) {
  size_t n = BELAY__REPLICAS_MAX + (single->node.base.read_from == BELAY_READ_ANY);
  for (size_t i = 0; i < n; i++) {
    size_t at = single->turn++ % n;
    if (at == BELAY__REPLICAS_MAX)
      break;
    belay__server_t *replica = single->replicas[at];
    if (replica != NULL && !replica->retired &&
        belay__server_is_readable(replica, (belay__conn_class_t)call->conn_class, call->route))
      return replica;
  }
  return single->primary;
}

static belay__connection_t *connection_of(const belay_client_t *client,
                                          belay__conn_class_t conn_class, uint32_t route) {
  return belay__server_connection(((const single_t *)client)->primary, conn_class, route);
}

/* Calls that are submitted together go to one server. */
static int submit(belay_client_t *client, belay__call_t *const *calls, size_t n) {
  single_t *single = (single_t *)client;
  bool stale = true;
  for (size_t i = 0; i < n && stale; i++)
    stale = calls[i]->stale;
  belay__server_t *server = stale ? server_to_read(single, calls[0]) : single->primary;
  return belay__connection_submit(
      belay__server_connection(server, (belay__conn_class_t)calls[0]->conn_class, calls[0]->route),
      calls, n);
}

static int withdraw(belay_client_t *client, belay__call_t *call) {
  (void)client;
  return belay__connection_withdraw(belay__dispatch(call)->at, call);
}

static uint32_t dead_epoch(const belay_client_t *client, belay__conn_class_t conn_class,
                           uint32_t route) {
  return connection_of(client, conn_class, route)->dead_epoch;
}

static const belay__server_info_t *server_info(const belay_client_t *client,
                                               belay__conn_class_t conn_class, uint32_t route) {
  const belay__connection_t *connection = connection_of(client, conn_class, route);
  return belay__connection_is_up(connection) ? &connection->peer.info : NULL;
}

static bool silent(belay_client_t *client, belay__conn_class_t conn_class, uint32_t route,
                   uint64_t limit) {
  return belay__connection_is_silent(connection_of(client, conn_class, route), limit);
}

static bool shard(const belay_client_t *client, size_t i, uint32_t *route, uint32_t *version) {
  (void)client;
  *route = 0;
  *version = 0; /* another primary is another server, which is noticed anyway */
  return i == 0;
}

#if BELAY_HAS_TOPOLOGY
/* With a list of addresses these are known; with Sentinels, only the primary. */
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
  belay__subscriber_add(((single_t *)client)->primary->subscriber, channel);
}

static void unlisten(belay_client_t *client, belay__channel_t *channel) {
  belay__subscriber_remove(((single_t *)client)->primary->subscriber, channel);
}

/* ---- replicas ---- */

static void requeue_connection(single_t *single, belay__connection_t *connection) {
  belay__list_t calls;
  belay__list_init(&calls);
  belay__connection_take_queued(connection, &calls);
  for (belay__call_t *call; (call = belay__pop_call(&calls)) != NULL;) {
    belay__connection_enqueue(
        connection_of(&single->node.base, (belay__conn_class_t)call->conn_class, call->route),
        call);
  }
}

/* Moves calls that would wait too long to the primary. */
static void on_requeue(belay__timer_t *timer) {
  single_t *single = BELAY__CONTAINER(timer, single_t, requeue_timer);
  for (size_t i = 0; i < BELAY__REPLICAS_MAX; i++) {
    const belay__server_t *replica = single->replicas[i];
    for (size_t k = 0; replica != NULL && k < replica->count; k++)
      if (replica->retired || !belay__connection_is_up(&replica->connections[k]))
        requeue_connection(single, &replica->connections[k]);
  }
}

static void requeue_soon(single_t *single) {
  belay__timer_set(belay_of(single), BELAY__RANK_OTHER, &single->requeue_timer,
                   belay__now(belay_of(single)));
}

/* The calls of the connection are still being returned. */
static void on_lost(belay__connection_t *connection) {
  single_t *single = single_of(connection->server->settings);
  if (connection->server->role == BELAY__ROLE_REPLICA && !single->node.closing)
    requeue_soon(single);
}

static void on_replica_timer(belay__timer_t *timer) {
  single_t *single = BELAY__CONTAINER(timer, single_t, replica_timer);
  on_requeue(&single->requeue_timer); /* a closed replica would refuse its queued calls */
  belay__timer_set(belay_of(single), BELAY__RANK_OTHER, &single->replica_timer,
                   belay__after_ms(belay_of(single), REPLICA_CHECK_MS));
  for (size_t i = 0; i < BELAY__REPLICAS_MAX; i++) {
    belay__server_t *replica = single->replicas[i];
    if (replica == NULL)
      continue;
    if (!replica->retired) {
      belay__server_connect(replica);
    } else if (belay__server_drain(replica)) {
      belay__server_free(replica);
      single->replicas[i] = NULL;
    }
  }
}

static bool is_named(const single_t *single, const belay__place_t *place) {
  const belay__found_t *found = &single->resolver->found;
  bool named = false;
  for (size_t i = 0; i < found->replica_count && !named; i++)
    named = belay__place_is(place, &found->replicas[i]);
  return named && !belay__place_is(place, &found->primary);
}

/* Adds a server for that replica, unless there is one, or no room for it. */
static void add_replica(single_t *single, const belay__place_t *place) {
  belay__server_t **room = NULL;
  for (size_t i = 0; i < BELAY__REPLICAS_MAX; i++) {
    const belay__server_t *replica = single->replicas[i];
    if (replica == NULL)
      room = &single->replicas[i];
    else if (!replica->retired && belay__place_is(&replica->target.place, place))
      return;
  }
  if (room == NULL)
    return;
  belay__server_t *new_replica = *room = belay__server_new(&single->node.settings);
  if (new_replica == NULL)
    return;
  new_replica->role = BELAY__ROLE_REPLICA;
  new_replica->target.place = *place;
  belay__server_connect(new_replica);
}

static void use_replicas(single_t *single) {
  const belay__found_t *found = &single->resolver->found;
  for (size_t i = 0; i < BELAY__REPLICAS_MAX; i++) {
    belay__server_t *replica = single->replicas[i];
    if (replica != NULL && !is_named(single, &replica->target.place))
      replica->retired = true;
  }
  for (size_t i = 0; i < found->replica_count; i++)
    if (is_named(single, &found->replicas[i]))
      add_replica(single, &found->replicas[i]);
  requeue_soon(single);
  if (!belay__timer_is_set(&single->replica_timer))
    on_replica_timer(&single->replica_timer);
}

/* ---- find the primary ---- */

/* Only the primary's address has to be found. */
static void resolve(belay__server_t *server) {
  single_t *single = single_of(server->settings);
  if (server != single->primary) {
    belay__server_on_resolved(server, 0);
  } else if (!single->applying) {
    if (belay__server_connections_up(server) == 0)
      belay__resolver_primary_failed(single->resolver);
    belay__resolver_ask(single->resolver);
  }
}

static void on_up(belay__connection_t *connection) {
  single_t *single = single_of(connection->server->settings);
  if (connection->server == single->primary)
    single->resolver->failed_since = 0;
}

/* A silent primary may have been replaced. */
static void on_suspect(belay__connection_t *connection) {
  single_t *single = single_of(connection->server->settings);
  if (connection->server == single->primary)
    belay__resolver_ask(single->resolver);
}

static void on_primary_resolved(belay__resolver_t *resolver, int error) {
  single_t *single = (single_t *)resolver->discovery.settings->client;
  belay__server_t *server = single->primary;
  belay__place_t *place = &server->target.place;
  bool elsewhere = error == 0 && !belay__place_is(place, &resolver->found.primary);
  bool kept = elsewhere && resolver->is_outdated && belay__server_connections_up(server) > 0;
  bool moved = elsewhere && !kept;
  if (single->node.closing)
    return;
  if (error == 0 && !kept)
    resolver->epoch = resolver->found.epoch;
  single->applying = true;
  if (moved) {
    char words[BELAY__TARGET_WORDS], cause[BELAY__CAUSE_MAX];
    *place = resolver->found.primary;
    (void)snprintf(cause, sizeof cause, "the primary is at %s now",
                   belay__place_words(place, words));
    belay__server_disconnect(server, BELAY_EUNREACHABLE, cause);
  }
  if (moved || (error == 0 && resolver->has_news))
    belay__server_retry_now(server);
  single->applying = false;
  belay__server_on_resolved(server, error);
  if (error == 0 && resolver->with_replicas && !kept)
    use_replicas(single);
}

/* ---- end ---- */

static void on_handle_closed(belay__settings_t *settings, belay__server_t *server) {
  (void)server;
  belay__node_check_closed(&single_of(settings)->node);
}

static void close_all(belay_client_t *client) {
  single_t *single = (single_t *)client;
  belay__timer_stop(belay_of(single), BELAY__RANK_OTHER, &single->requeue_timer);
  belay__timer_stop(belay_of(single), BELAY__RANK_OTHER, &single->replica_timer);
  if (single->resolver != NULL)
    belay__timer_stop(belay_of(single), BELAY__RANK_OTHER, &single->resolver->poll_timer);
  belay__node_close(&single->node);
}

static void free_single(belay_client_t *client) {
  single_t *single = (single_t *)client;
  belay_t *belay = belay_of(single);
  belay__resolver_t *resolver = single->resolver;
  belay__node_free(&single->node);
  belay__free(belay, resolver, sizeof *resolver);
}

/* ---- start ---- */

static const belay__deployment_ops_t single_ops = {.handle_closed = on_handle_closed};
static const belay__deployment_ops_t resolved_ops = {.resolve = resolve,
                                                     .up = on_up,
                                                     .lost = on_lost,
                                                     .suspect = on_suspect,
                                                     .handle_closed = on_handle_closed};

static const char *or_none(const char *text) {
  return text[0] == '\0' ? NULL : text;
}

static bool make_resolver(single_t *single) {
  belay__node_t *node = &single->node;
  const belay__url_t *url = &node->url;
  belay__resolver_t *resolver = single->resolver = belay__alloc(belay_of(single), sizeof *resolver);
  if (resolver == NULL)
    return false;
  *resolver = (belay__resolver_t){.on_resolved = on_primary_resolved,
                                  .with_replicas = node->base.read_from != BELAY_READ_PRIMARY,
                                  .master = url->master};
  if (url->kind == BELAY__URL_SENTINEL)
    belay__sentinel_init(resolver, &node->settings, or_none(node->sentinel_username),
                         or_none(node->sentinel_password), url->places, url->place_count);
  else
    belay__replicas_init(resolver, &node->settings, url->places, url->place_count);
  node->discovery = &resolver->discovery;
  return true;
}

static int init(belay__node_t *node) {
  single_t *single = (single_t *)node;
  const belay__url_t *url = &node->url;
  belay__server_t *server = single->primary = belay__server_new(&node->settings);
  if (server == NULL)
    return BELAY_ENOMEM;
  single->requeue_timer.fire = on_requeue;
  single->replica_timer.fire = on_replica_timer;
  if (url->kind == BELAY__URL_SINGLE) {
    server->target.path = url->is_unix ? url->path : NULL;
    server->target.place = url->places[0];
    return 0;
  }
  node->settings.ops = &resolved_ops;
  server->role = BELAY__ROLE_PRIMARY;
  return make_resolver(single) ? 0 : BELAY_ENOMEM;
}

static const belay__node_ops_t node_ops = {
    BELAY__NODE_OPS,          .submit = submit,           .withdraw = withdraw,
    .dead_epoch = dead_epoch, .server = server_info,      .silent = silent,
    .shard = shard,
#if BELAY_HAS_TOPOLOGY
    .place = place,           .visit = belay__node_visit,
#endif
    .listen = listen_to,      .unlisten = unlisten,       .close = close_all,
    .free = free_single,
};

const belay__deployment_t belay__single = {
    .size = sizeof(single_t), .ops = &node_ops, .deployment_ops = &single_ops, .init = init};
