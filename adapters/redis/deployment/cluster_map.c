/* The map of a cluster: the owners of slots, as one of its nodes reports them.
 *
 *    KEPT --wanted: a lost connection, MOVED, a slot without server--> DUE --its time--> ASKED
 *     ^ |                                                                ^                  |
 *     | +--a minute is over----------------------------------------------|------------------+
 *     |                                                                  |                  |
 *     +--it has come, is unchanged, or no node has one-------------------|------------------+
 *     |                                                                  +--still wanted----+
 *     +--time-- REFUSED <--no node has one, for a lasting reason----------------------------+
 *                  +--time, and there are subscribers--> ASKED
 *
 * The map is asked for at most once a second, with a random delay of a tenth of that, so that
 * clients that lose a server together do not all ask together. During an election, which takes
 * seconds, each map would be the same, and the next one would come a second late. So the first
 * query, up to ten times a second, is whether anything has changed (CLUSTER INFO): an
 * election has another epoch, and it is over when no slot fails any more. The map is asked for
 * only then; or if it is probably wrong, as after MOVED; or if it is old, or no node reports
 * changes, because changed addresses are not visible otherwise.
 *
 * A node may know less than others: it may lag, or be in a minority. So the next map comes from
 * another node. (CLUSTER INFO stays at one node: changing it would mean ten connections a
 * second.)
 *
 * A map may be partial. A missing slot keeps its owner, unless that server is not in the map any
 * more. */
#include "redis/deployment/cluster_map.h"

#include "core/call/refusal.h"
#include "core/loop/backoff.h"
#include "redis/conn/cause.h"
#include "redis/conn/subscriber.h"
#include "redis/deployment/cluster_servers.h"

#define APART_MS UINT64_C(1000)   /* shortest time between two maps */
#define LOOK_MS UINT64_C(50)      /* shortest time between two queries */
#define JITTER_MS UINT64_C(100)   /* random addition to both */
#define OLD_MS UINT64_C(5000)     /* age at which a doubted map is asked for in any case */
#define ANYWAY_MS UINT64_C(60000) /* age at which any map is */
#define READER_MS UINT64_C(10000) /* the same with reads from replicas: only a map names new ones */
#define SOON_MS UINT64_C(5000)    /* a map that is asked for sooner comes from another node */

/* ---- which node is asked ---- */

static uint64_t since(const belay__cluster_t *cluster, uint64_t then) {
  return belay__now(belay__cluster_host(cluster)) - then;
}

/* True if no problem of the server is known. It may never have been used. */
static bool is_well(const belay__instance_t *instance) {
  const belay__server_t *server = instance->server;
  bool failed = false;
  for (size_t i = 0; i < server->count; i++)
    failed |= server->connections[i].error != 0;
  return !belay__server_owes_reply(server, BELAY__SILENCE_MS) &&
         (!failed || belay__server_connections_up(server) > 0);
}

/* Lists the nodes to ask: those that are well, beginning with each in turn; then the others; then
 * the hosts of the URL. */
static void choose_places(belay__cluster_t *cluster) {
  belay__place_t places[BELAY__DISCOVERY_PLACES];
  const belay__url_t *url = &cluster->node.url;
  size_t n = 0, room = BELAY__DISCOVERY_PLACES - url->place_count;
  for (int well = 1; well >= 0; well--)
    for (size_t i = 0; i < cluster->instances_len && n < room; i++) {
      const belay__instance_t *instance =
          cluster->instances[(cluster->first + i) % cluster->instances_len];
      if (instance == NULL || instance->server->retired)
        continue;
      if (is_well(instance) == well)
        places[n++] = instance->server->target.place;
    }
  for (size_t i = 0; i < url->place_count; i++)
    places[n++] = url->places[i];
  belay__discovery_set_places(&cluster->discovery, places, n);
}

/* True if the node that was asked last is not well. */
static bool asked_node_fails(const belay__cluster_t *cluster) {
  const belay__place_t *place = belay__discovery_place(&cluster->discovery);
  for (size_t i = 0; i < cluster->instances_len; i++) {
    const belay__instance_t *instance = cluster->instances[i];
    if (instance != NULL && belay__place_is(&instance->server->target.place, place))
      return !is_well(instance);
  }
  return false;
}

/* Chooses another node for the next map. A node that is not well is skipped; its view of failing
 * slots is not compared. */
static void choose_node(belay__cluster_t *cluster) {
  bool again = cluster->asks_map && cluster->answered != 0 &&
               since(cluster, cluster->answered) < SOON_MS * BELAY__MS;
  bool fails = asked_node_fails(cluster);
  cluster->first += again;
  if (cluster->asks_map || fails)
    choose_places(cluster);
  if (!again && !fails)
    return;
  cluster->failing = 0;
  belay__discovery_restart_list(&cluster->discovery);
}

/* True if calls wait for a connection that was lost. */
static bool is_missed(const belay__connection_t *connection, bool wanted) {
  return wanted && connection->error != 0 && !belay__error_is_lasting(connection->error);
}

static bool waits_for_instance(const belay__cluster_t *cluster, const belay__instance_t *instance) {
  const belay__server_t *server = instance->server;
  const belay__subscriber_t *subscriber = server->subscriber;
  uint64_t patience = (uint64_t)cluster->node.settings.options.stall_timeout_ms / 4;
  bool waits = is_missed(&subscriber->connection, subscriber->connection.channels > 0);
  for (size_t i = 0; i < server->count && !waits; i++)
    waits = is_missed(&server->connections[i], server->connections[i].queue_len > 0);
  return waits || belay__server_owes_reply(instance->server, patience);
}

/* True if a call or a channel waits for a better map. */
static bool is_wanted(const belay__cluster_t *cluster) {
  const belay_client_t *client = &cluster->node.base;
  bool wanted = cluster->wanted || cluster->map_changed || cluster->waiting_len > 0 ||
                (!cluster->has_map && client->channels.table.count > 0);
  for (size_t i = 0; i < cluster->instances_len && !wanted; i++)
    wanted = cluster->instances[i] != NULL && !cluster->instances[i]->server->retired &&
             waits_for_instance(cluster, cluster->instances[i]);
  return wanted;
}

/* True if the map is asked for even if CLUSTER INFO reports no change. */
static bool is_needed(const belay__cluster_t *cluster) {
  return !cluster->has_map || cluster->map_changed || cluster->without_info ||
         cluster->waiting_len > 0 || since(cluster, cluster->asked) >= OLD_MS * BELAY__MS;
}

static bool may_be_asked(const belay__cluster_t *cluster) {
  return cluster->asked == 0 || since(cluster, cluster->asked) >= APART_MS * BELAY__MS;
}

static void set_timer(belay__cluster_t *cluster, uint64_t when) {
  belay__timer_set(belay__cluster_host(cluster), BELAY__RANK_OTHER, &cluster->due, when);
}

/* Plans the next query. The first one is asked at once. */
static void set_due(belay__cluster_t *cluster) {
  belay_t *belay = belay__cluster_host(cluster);
  uint64_t when = belay__now(belay);
  if (cluster->map == BELAY__MAP_DUE)
    return;
  if (cluster->asked != 0) {
    uint64_t again = cluster->asked + APART_MS * BELAY__MS;
    if (!is_needed(cluster))
      when += LOOK_MS * BELAY__MS;
    else if (when < again)
      when = again;
    when += belay__spread(belay, JITTER_MS * BELAY__MS);
  }
  cluster->map = BELAY__MAP_DUE;
  set_timer(cluster, when);
}

static void set_later(belay__cluster_t *cluster, uint64_t ms) {
  belay_t *belay = belay__cluster_host(cluster);
  set_timer(cluster, belay__now(belay) + belay__period(belay, ms * BELAY__MS));
}

static void end_query(belay__cluster_t *cluster, int error) {
  bool lasting = belay__error_is_lasting(error);
  uint64_t patience = (uint64_t)cluster->node.settings.options.reconnect_max_ms;
  uint64_t now = belay__now(belay__cluster_host(cluster));
  cluster->error = cluster->has_map ? 0 : error;
  cluster->without_info = cluster->without_info || error != 0;
  if (cluster->asks_map || error != 0)
    cluster->asked = now;
  if (error == 0)
    cluster->answered = now;
  else
    belay__discovery_report(&cluster->discovery, error);
  if (error != 0 && lasting && !cluster->has_map) {
    cluster->map = BELAY__MAP_REFUSED;
    set_later(cluster, patience);
    cluster->map_over(cluster, error);
    return;
  }
  cluster->map = BELAY__MAP_KEPT;
  bool reads = cluster->node.base.read_from != BELAY_READ_PRIMARY;
  if (cluster->has_map)
    set_later(cluster, error != 0 ? patience : reads ? READER_MS : ANYWAY_MS);
  cluster->map_over(cluster, error);
  if (!cluster->node.closing && is_wanted(cluster))
    set_due(cluster);
}

void belay__cluster_check_map(belay__cluster_t *cluster) {
  if (cluster->node.closing)
    return;
  if (cluster->map == BELAY__MAP_KEPT)
    set_due(cluster);
  else if (cluster->map == BELAY__MAP_ASKED)
    cluster->wanted = true;
}

void belay__cluster_map_changed(belay__cluster_t *cluster) {
  cluster->map_changed = true;
  belay__cluster_check_map(cluster);
}

static void on_due(belay__timer_t *timer) {
  belay__cluster_t *cluster = BELAY__CONTAINER(timer, belay__cluster_t, due);
  if (cluster->map == BELAY__MAP_REFUSED && !is_wanted(cluster)) {
    cluster->map = BELAY__MAP_KEPT; /* a later call may try again */
    cluster->error = 0;
    return;
  }
  cluster->map = BELAY__MAP_ASKED;
  cluster->wanted = false;
  cluster->asks_map = is_needed(cluster) && may_be_asked(cluster);
  choose_node(cluster);
  belay__discovery_ask(&cluster->discovery);
}

/* ---- the reply ---- */

static void add_replica(belay__cluster_t *cluster, belay__instance_t *primary,
                        const belay__place_t *place) {
  uint16_t number = belay__cluster_add_instance(cluster, place);
  belay__instance_t *instance = number == BELAY__NO_INSTANCE ? NULL : cluster->instances[number];
  if (instance == NULL || instance->known)
    return;
  instance->known = true;
  instance->primary = primary->number;
  instance->next = primary->replica;
  primary->replica = number;
}

/* Reads one range of a map. */
static void add_range(const belay__range_t *range, void *arg) {
  belay__cluster_t *cluster = arg;
  uint16_t number = belay__cluster_add_instance(cluster, &range->primary);
  if (number == BELAY__NO_INSTANCE)
    return;
  belay__instance_t *instance = cluster->instances[number];
  instance->known = true;
  instance->primary = BELAY__NO_INSTANCE;
  for (uint32_t slot = range->from; slot <= range->to; slot++)
    belay__cluster_set_owner(cluster, (uint16_t)slot, number);
  for (size_t i = 0; i < range->replica_count; i++)
    if (cluster->node.base.read_from != BELAY_READ_PRIMARY)
      add_replica(cluster, instance, &range->replicas[i]);
}

/* The connection's former role does not fit the instance's present role. */
static void set_role(const belay__instance_t *instance) {
  belay__server_t *server = instance->server;
  bool replica = instance->primary != BELAY__NO_INSTANCE;
  if (server->readonly != replica) {
    server->readonly = replica;
    server->role = replica ? BELAY__ROLE_REPLICA : BELAY__ROLE_ANY;
    belay__server_replace_connections(server);
  }
}

/* Uses a map. False if the reply is none. A map without slots comes from a node that is not a
 * member yet. */
static bool apply(belay__cluster_t *cluster, const belay__reply_t *reply) {
  const belay__place_t here = *belay__discovery_place(&cluster->discovery);
  if (belay__slot_map_count(reply, &here) == 0)
    return false;
  for (size_t i = 0; i < cluster->instances_len; i++)
    if (cluster->instances[i] != NULL) {
      cluster->instances[i]->known = false;
      cluster->instances[i]->primary = cluster->instances[i]->replica = BELAY__NO_INSTANCE;
    }
  belay__slot_map_read(reply, &here, add_range, cluster);
  for (size_t i = 0; i < cluster->instances_len; i++) {
    belay__instance_t *instance = cluster->instances[i];
    if (instance != NULL && !instance->server->retired && instance->known)
      set_role(instance);
  }
  belay__cluster_retire_unknown(cluster);
  cluster->has_map = true;
  return true;
}

/* ---- the discovery ---- */

static belay__cluster_t *cluster_of_discovery(belay__discovery_t *discovery) {
  return BELAY__CONTAINER(discovery, belay__cluster_t, discovery);
}

static void send_query(belay__cluster_t *cluster, const char *subcommand) {
  belay__discovery_send(&cluster->discovery, 2, (const char *const[]){"CLUSTER", subcommand});
}

static void ask(belay__discovery_t *discovery) {
  belay__cluster_t *cluster = cluster_of_discovery(discovery);
  cluster->info_read = false;
  send_query(cluster, "INFO");
}

/* Returns a number of INFO; 0 if the field is missing or no number. */
static uint64_t read_number(const belay__reply_t *info, const char *name) {
  uint64_t number = 0;
  (void)belay__info_number(info, name, 0, UINT64_MAX, &number);
  return number;
}

/* True if CLUSTER INFO shows that the map has changed. The epoch is not noted while slots fail: an
 * election that has already raised the epoch may still be in progress. */
static bool has_changed(belay__cluster_t *cluster, const belay__reply_t *info) {
  uint64_t epoch = read_number(info, "cluster_current_epoch"),
           failing =
               read_number(info, "cluster_slots_pfail") + read_number(info, "cluster_slots_fail");
  bool fewer = failing < cluster->failing, other = failing == 0 && epoch > cluster->epoch;
  cluster->failing = failing;
  if (other || (cluster->asks_map && failing == 0))
    cluster->epoch = epoch;
  return fewer || other;
}

static belay__discovery_verdict_t read_info(belay__cluster_t *cluster,
                                            const belay__reply_t *reply) {
  cluster->info_read = true;
  cluster->without_info = reply->type != BELAY__REPLY_STRING;
  if (reply->type == BELAY__REPLY_ERROR) /* the node may refuse CLUSTER SLOTS, too */
    belay__discovery_set_cause(&cluster->discovery,
                               belay__refusal_find(reply->str, reply->len)->error, reply->str);
  if (cluster->without_info || has_changed(cluster, reply))
    cluster->map_changed = true;
  if (cluster->map_changed && may_be_asked(cluster))
    cluster->asks_map = true;
  if (!cluster->asks_map)
    return BELAY__DISCOVERY_DONE;
  cluster->map_changed = false;
  send_query(cluster, "SLOTS");
  return BELAY__DISCOVERY_MORE;
}

static belay__discovery_verdict_t answer(belay__discovery_t *discovery,
                                         const belay__reply_t *reply) {
  belay__cluster_t *cluster = cluster_of_discovery(discovery);
  if (!cluster->info_read)
    return read_info(cluster, reply);
  return reply->type != BELAY__REPLY_ERROR && apply(cluster, reply) ? BELAY__DISCOVERY_DONE
                                                                    : BELAY__DISCOVERY_NEXT;
}

static void on_over(belay__discovery_t *discovery, int error) {
  end_query(cluster_of_discovery(discovery), error);
}

static const belay__discovery_ops_t ops = {.ask = ask, .answer = answer, .on_over = on_over};

void belay__cluster_map_init(belay__cluster_t *cluster) {
  belay__node_t *node = &cluster->node;
  cluster->due.fire = on_due;
  node->discovery = &cluster->discovery;
  belay__discovery_init(&cluster->discovery, &node->settings, &ops, node->settings.login,
                        node->url.places, node->url.place_count);
}
