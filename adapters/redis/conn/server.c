#include "redis/conn/server.h"

#include <limits.h>
#include <string.h>

#include "core/loop/backoff.h"
#include "redis/conn/connection.h"
#include "redis/conn/handshake.h"
#include "redis/conn/liveness.h"
#include "redis/conn/outage.h"
#include "redis/conn/subscriber.h"

#define PROBE_MS 5000

static void on_role_due(belay__timer_t *timer);
static const belay__connection_events_t ops;

static size_t size_of(size_t count) {
  return sizeof(belay__server_t) + sizeof(belay__subscriber_t) +
         count * sizeof(belay__connection_t);
}

belay__server_t *belay__server_new(belay__settings_t *settings) {
  size_t per_class = settings->options.connections, count = 2 * per_class + 2;
  _Static_assert(sizeof(belay__server_t) % _Alignof(belay__subscriber_t) == 0 &&
                     sizeof(belay__subscriber_t) % _Alignof(belay__connection_t) == 0,
                 "they lie behind each other");
  belay__server_t *server = belay__alloc(&settings->host->base, size_of(count));
  if (server == NULL)
    return NULL;
  memset(server, 0, size_of(count));
  *server =
      (belay__server_t){.settings = settings,
                        .ops = &ops,
                        .target = {.keepalive_ms = settings->options.keepalive_ms,
                                   .tcp_user_timeout_ms = settings->options.tcp_user_timeout_ms},
                        .role_timer = {.fire = on_role_due},
                        .refuse_timer = {.fire = belay__outage_on_refuse},
                        .count = count};
  server->subscriber = (belay__subscriber_t *)(void *)(server + 1);
  server->connections = (belay__connection_t *)(void *)(server->subscriber + 1);
  for (size_t i = 0; i < count; i++)
    belay__connection_init(&server->connections[i], server,
                           i < 2 * per_class && i % per_class != 0);
  belay__subscriber_init(server->subscriber, server);
  belay__list_push(&settings->servers, &server->node);
  return server;
}

/* Returns connection i. Connections below server->count carry calls; number server->count is the
 * subscriber. */
static belay__connection_t *connection_at(const belay__server_t *server, size_t i) {
  return i < server->count ? &server->connections[i] : &server->subscriber->connection;
}

void belay__server_free(belay__server_t *server) {
  belay__list_remove(&server->node);
  for (size_t i = 0; i <= server->count; i++)
    belay__connection_deinit(connection_at(server, i));
  belay__free(belay__server_loop(server), server, size_of(server->count));
}

/* Ends all connections of the server at once. */
static void close_connections(belay__server_t *server) {
  belay__timer_stop(belay__server_loop(server), BELAY__RANK_OTHER, &server->role_timer);
  belay__timer_stop(belay__server_loop(server), BELAY__RANK_OTHER, &server->refuse_timer);
  for (size_t i = 0; i < server->count; i++)
    belay__connection_close(&server->connections[i]);
  belay__subscriber_close(server->subscriber);
}

/* True if a closed server has no open connection and no open handle. */
static bool is_over(const belay__server_t *server) {
  bool over = server->handles == 0;
  for (size_t i = 0; i <= server->count && over; i++)
    over = belay__connection_is_over(connection_at(server, i));
  return over;
}

bool belay__server_drain(belay__server_t *server) {
  bool all = true;
  for (size_t i = 0; i < server->count; i++) {
    belay__connection_t *connection = &server->connections[i];
    if (connection->in_flight == 0)
      belay__connection_close(connection);
    else
      belay__connection_drain(connection, BELAY_EUNREACHABLE,
                              "the server is not part of the deployment any more");
    all = all && connection->state == BELAY__CONNECTION_CLOSED;
  }
  if (all)
    close_connections(server);
  return all && is_over(server);
}

/* The connections stand in the order of the connection classes. */
belay__connection_t *belay__server_connection(const belay__server_t *server,
                                              belay__conn_class_t conn_class, uint32_t route) {
  size_t n = server->settings->options.connections, own = (route >> 14) % n, i = 0;
  switch (conn_class) {
  case BELAY__CLASS_LEASE:
    i = own;
    break;
  case BELAY__CLASS_DATA:
    i = n + own;
    break;
  case BELAY__CLASS_BULK:
    i = 2 * n;
    break;
  case BELAY__CLASS_DURABLE:
  case BELAY__LANES:
    i = 2 * n + 1;
    break;
  }
  return &server->connections[i];
}

bool belay__server_owes_reply(const belay__server_t *server, uint64_t ms) {
  bool owes = false;
  for (size_t i = 0; i < server->count; i++)
    owes |= belay__connection_owes_reply(&server->connections[i], ms * BELAY__MS);
  return owes;
}

bool belay__server_is_silent(belay__server_t *server) {
  bool silent = false; /* Each connection is checked, because the check has to note the time. */
  for (size_t i = 0; i < server->count; i++)
    silent |= belay__connection_is_silent(&server->connections[i], BELAY__SILENCE_MS * BELAY__MS);
  return silent;
}

size_t belay__server_connections_up(const belay__server_t *server) {
  size_t n = 0;
  for (size_t i = 0; i <= server->count; i++)
    n += belay__connection_is_up(connection_at(server, i));
  return n;
}

void belay__server_on_resolved(belay__server_t *server, int error) {
  for (size_t i = 0; i <= server->count; i++)
    belay__connection_on_resolved(connection_at(server, i), error);
}

void belay__server_retry_now(belay__server_t *server) {
  for (size_t i = 0; i <= server->count; i++)
    belay__connection_retry_now(connection_at(server, i));
}

void belay__server_disconnect(belay__server_t *server, int error, const char *cause) {
  for (size_t i = 0; i <= server->count; i++)
    belay__connection_disconnect(connection_at(server, i), error, cause);
}

void belay__server_replace_connections(belay__server_t *server) {
  for (size_t i = 0; i < server->count; i++)
    belay__connection_drain(&server->connections[i], BELAY_EREADONLY,
                            "the server has another role now");
}

/* ---- role ---- */

/* A server that cannot answer ROLE now, for example while a script runs, keeps its role. The
 * expected role may have changed since ROLE was sent. */
static void on_role(redisAsyncContext *ac, void *object, void *privdata) {
  (void)privdata;
  belay__connection_t *connection = belay__connection_of_context(ac);
  belay__server_t *server = connection->server;
  const belay__reply_t *reply = belay__transport_take_reply(&connection->transport, object);
  if (server->role == BELAY__ROLE_ANY || reply == NULL || reply->type == BELAY__REPLY_ERROR ||
      belay__role_is(reply, server->role))
    return;
  belay__server_disconnect(server, BELAY_EREADONLY, belay__role_words(server->role));
}

static void set_role_timer(belay__server_t *server) {
  belay_t *belay = belay__server_loop(server);
  belay__timer_set(belay, BELAY__RANK_OTHER, &server->role_timer,
                   belay__now(belay) + belay__period(belay, PROBE_MS * BELAY__MS));
}

/* Sends ROLE on a connection that is up. Without one the timer ends. */
static void on_role_due(belay__timer_t *timer) {
  belay__server_t *server = BELAY__CONTAINER(timer, belay__server_t, role_timer);
  for (size_t i = 0; i < server->count; i++) {
    belay__connection_t *connection = &server->connections[i];
    if (!belay__connection_is_up(connection) || server->role == BELAY__ROLE_ANY)
      continue;
    set_role_timer(server);
    if (connection->state != BELAY__CONNECTION_UP)
      continue; /* It may be up the next time. */
    belay__transport_command(&connection->transport, on_role, NULL, 1,
                             (const char *const[]){"ROLE"});
    belay__connection_reply_expected(connection);
    return;
  }
}

void belay__server_connect(belay__server_t *server) {
  belay__connection_connect(belay__server_connection(server, BELAY__CLASS_DATA, 0));
}

bool belay__server_is_readable(const belay__server_t *server, belay__conn_class_t conn_class,
                               uint32_t route) {
  belay__connection_t *connection = belay__server_connection(server, conn_class, route);
  return belay__connection_is_up(belay__server_connection(server, BELAY__CLASS_DATA, 0)) &&
         belay__connection_check_room(connection, false, 1) == 0 &&
         !belay__connection_is_silent(connection, BELAY__SILENCE_MS * BELAY__MS);
}

/* ---- events of connections ---- */

static void on_up(belay__connection_t *connection) {
  belay__server_t *server = connection->server;
  const belay__deployment_ops_t *owner = server->settings->ops;
  if (connection->is_subscriber)
    belay__subscriber_connected(server->subscriber);
  else
    belay__subscriber_check_server(server->subscriber, connection);
  if (owner->up != NULL)
    owner->up(connection);
  if (server->role != BELAY__ROLE_ANY && !belay__timer_is_set(&server->role_timer))
    set_role_timer(server);
}

static void on_lost(belay__connection_t *connection, int error) {
  const belay__deployment_ops_t *owner = connection->server->settings->ops;
  if (connection->is_subscriber)
    belay__subscriber_lost(connection->server->subscriber, error);
  if (owner->lost != NULL)
    owner->lost(connection);
}

static const belay__connection_events_t ops = {
    .up = on_up, .lost = on_lost, .retry_now = belay__server_retry_now};

/* ---- all servers of a client ---- */

static belay__server_t *server_at(const belay__list_t *node) {
  return BELAY__CONTAINER(node, belay__server_t, node);
}

size_t belay__servers_connections_up(const belay__settings_t *settings) {
  size_t n = 0;
  for (const belay__list_t *node = settings->servers.next; node != &settings->servers;
       node = node->next)
    n += belay__server_connections_up(server_at(node));
  return n;
}

/* Removes from *can the capabilities that a connected peer lacks. False if no connection is up. */
static bool intersect_capabilities(const belay__server_t *server, unsigned *can) {
  bool any = false;
  for (size_t i = 0; i < server->count; i++) {
    const belay__connection_t *connection = &server->connections[i];
    if (!belay__connection_is_up(connection))
      continue;
    *can &= connection->peer.capabilities;
    any = true;
  }
  return any;
}

bool belay__servers_can(belay__settings_t *settings, belay__capability_t what) {
  const belay__list_t *servers = &settings->servers;
  if (!settings->capabilities_known) {
    unsigned all = UINT_MAX;
    bool any = false;
    for (const belay__list_t *node = servers->next; node != servers; node = node->next)
      any |= !server_at(node)->retired && intersect_capabilities(server_at(node), &all);
    settings->capabilities = any ? all : 0;
    settings->capabilities_known = true;
  }
  return (settings->capabilities >> what & 1) != 0;
}

void belay__servers_close(belay__settings_t *settings) {
  for (belay__list_t *node = settings->servers.next; node != &settings->servers; node = node->next)
    close_connections(server_at(node));
}

bool belay__servers_are_closed(const belay__settings_t *settings) {
  const belay__list_t *servers = &settings->servers;
  bool over = true;
  for (const belay__list_t *node = servers->next; node != servers && over; node = node->next)
    over = is_over(server_at(node));
  return over;
}

void belay__servers_free(belay__settings_t *settings) {
  while (!belay__list_empty(&settings->servers))
    belay__server_free(server_at(settings->servers.next));
}
