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
 * question, up to ten times a second, is whether anything has changed (CLUSTER INFO): an
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

#define APART_MS UINT64_C(1000) /* two maps, at least */
#define LOOK_MS UINT64_C(50)    /* two questions, at least; and at most the jitter more */
#define JITTER_MS UINT64_C(100)
#define OLD_MS UINT64_C(5000) /* age of a map that a call made doubtful */
#define ANYWAY_MS UINT64_C(60000)
#define READER_MS UINT64_C(10000) /* new replicas become known only by a refresh */
#define SOON_MS UINT64_C(5000)

typedef enum event {
  EVENT_WANTED,
  EVENT_TIME, /* of the timer */
  EVENT_OVER  /* the discovery has an answer, or there is none */
} event_t;

/* ---- who is asked ---- */

static uint64_t since(const belay__cluster_t *cluster, uint64_t then) {
  return belay__now(belay__cluster_host(cluster)) - then;
}

/* As far as is known: it may never have been asked for anything. */
static bool is_well(const belay__instance_t *instance) {
  const belay__server_t *server = instance->server;
  bool failed = false;
  for (size_t i = 0; i < server->count; i++)
    failed |= server->connections[i].error != 0;
  return !belay__server_owes_reply(server, BELAY__SILENCE_MS) &&
         (!failed || belay__server_connections_up(server) > 0);
}

/* Those who seem to be well, each of them the first in turn; then the others, then those whom the user has named. */
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

/* Whether the one who was asked last does not seem to be. */
static bool asks_the_sick(const belay__cluster_t *cluster) {
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
static void turn(belay__cluster_t *cluster) {
  bool again = cluster->whole && cluster->answered != 0 &&
               since(cluster, cluster->answered) < SOON_MS * BELAY__MS;
  bool sick = asks_the_sick(cluster);
  cluster->first += again;
  if (cluster->whole || sick)
    choose_places(cluster);
  if (!again && !sick)
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
  uint64_t patience = (uint64_t)cluster->node.settings.stall_timeout_ms / 4;
  bool waits = is_missed(&subscriber->connection, subscriber->connection.channels > 0);
  for (size_t i = 0; i < server->count && !waits; i++)
    waits = is_missed(&server->connections[i], server->connections[i].queue_len > 0);
  return waits || belay__server_owes_reply(instance->server, patience);
}

/* Whether anybody waits for a map that is better than the one there is. */
static bool is_wanted(const belay__cluster_t *cluster) {
  const belay_client_t *client = &cluster->node.base;
  bool wanted = cluster->wanted || cluster->news || cluster->waiting_len > 0 ||
                (!cluster->has_map && client->channels.table.count > 0);
  for (size_t i = 0; i < cluster->instances_len && !wanted; i++)
    wanted = cluster->instances[i] != NULL && !cluster->instances[i]->server->retired &&
             waits_for_instance(cluster, cluster->instances[i]);
  return wanted;
}

/* Whether it is asked for, whatever has changed, as soon as that may be. */
static bool is_needed(const belay__cluster_t *cluster) {
  return !cluster->has_map || cluster->news || cluster->blind || cluster->waiting_len > 0 ||
         since(cluster, cluster->asked) >= OLD_MS * BELAY__MS;
}

static bool may_be_asked(const belay__cluster_t *cluster) {
  return cluster->asked == 0 || since(cluster, cluster->asked) >= APART_MS * BELAY__MS;
}

static void start_asking(belay__cluster_t *cluster) {
  cluster->wanted = false;
  cluster->whole = is_needed(cluster) && may_be_asked(cluster);
  turn(cluster);
  belay__discovery_ask(&cluster->discovery);
}

static void set_timer(belay__cluster_t *cluster, uint64_t when) {
  belay__timer_set(belay__cluster_host(cluster), BELAY__RANK_OTHER, &cluster->due, when);
}

/* As soon as may be, unless that is set. The first time there is nothing to wait for. */
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

static void end_question(belay__cluster_t *cluster, int error) {
  bool lasting = belay__error_is_lasting(error);
  uint64_t patience = (uint64_t)cluster->node.settings.reconnect_max_ms;
  uint64_t now = belay__now(belay__cluster_host(cluster));
  cluster->error = cluster->has_map ? 0 : error;
  cluster->blind = cluster->blind || error != 0;
  if (cluster->whole || error != 0)
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

static void step(belay__cluster_t *cluster, event_t event, int error) {
  belay__map_state_t state = cluster->map;
  switch (event) {
  case EVENT_WANTED:
    if (state == BELAY__MAP_KEPT)
      set_due(cluster);
    else if (state == BELAY__MAP_ASKED)
      cluster->wanted = true;
    break;
  case EVENT_TIME:
    if (state == BELAY__MAP_REFUSED && !is_wanted(cluster)) {
      cluster->map = BELAY__MAP_KEPT; /* a later call may try again */
      cluster->error = 0;
    } else {
      cluster->map = BELAY__MAP_ASKED;
      start_asking(cluster);
    }
    break;
  case EVENT_OVER:
    end_question(cluster, error);
    break;
  }
}

void belay__cluster_check_map(belay__cluster_t *cluster) {
  if (!cluster->node.closing)
    step(cluster, EVENT_WANTED, 0);
}

void belay__cluster_map_changed(belay__cluster_t *cluster) {
  cluster->news = true;
  belay__cluster_check_map(cluster);
}

static void on_due(belay__timer_t *timer) {
  step(BELAY__CONTAINER(timer, belay__cluster_t, due), EVENT_TIME, 0);
}

/* ---- what ---- */

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
static void visit(const belay__range_t *range, void *arg) {
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

/* False if it is no map. One that knows no slots is of a node that is not a member yet. */
static bool apply(belay__cluster_t *cluster, const belay__reply_t *reply) {
  const belay__place_t here = *belay__discovery_place(&cluster->discovery);
  bool tls = cluster->node.url.tls;
  if (belay__slot_map_count(reply, &here, tls) == 0)
    return false;
  for (size_t i = 0; i < cluster->instances_len; i++)
    if (cluster->instances[i] != NULL) {
      cluster->instances[i]->known = false;
      cluster->instances[i]->primary = cluster->instances[i]->replica = BELAY__NO_INSTANCE;
    }
  belay__slot_map_read(reply, &here, tls, visit, cluster);
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

static void say(belay__cluster_t *cluster, const char *what) {
  belay__discovery_send(&cluster->discovery, 2, (const char *const[]){"CLUSTER", what});
}

static void say_map(belay__cluster_t *cluster) {
  say(cluster, cluster->by_shards ? "SHARDS" : "SLOTS");
}

static void ask(belay__discovery_t *discovery) {
  belay__cluster_t *cluster = cluster_of_discovery(discovery);
  cluster->answers = 0;
  say(cluster, "INFO");
}

/* 0: it is not there, or no number. */
static uint64_t number_in(const belay__reply_t *info, const char *name) {
  uint64_t number = 0;
  (void)belay__info_number(info, name, 0, UINT64_MAX, &number);
  return number;
}

/* Whether the map has changed, as far as can be seen. While slots fail an election may be under way whose epoch is known
 * already: so that is not taken note of. */
static bool has_changed(belay__cluster_t *cluster, const belay__reply_t *info) {
  uint64_t epoch = number_in(info, "cluster_current_epoch"),
           failing = number_in(info, "cluster_slots_pfail") + number_in(info, "cluster_slots_fail");
  bool fewer = failing < cluster->failing, other = failing == 0 && epoch > cluster->epoch;
  cluster->failing = failing;
  if (other || (cluster->whole && failing == 0))
    cluster->epoch = epoch;
  return fewer || other;
}

static belay__discovery_verdict_t answer_info(belay__cluster_t *cluster,
                                              const belay__reply_t *reply) {
  cluster->blind = reply->type != BELAY__REPLY_STRING;
  if (reply->type == BELAY__REPLY_ERROR) /* and perhaps to all else */
    belay__discovery_set_cause(&cluster->discovery,
                               belay__refusal_find(reply->str, reply->len)->error, reply->str);
  if (cluster->blind || has_changed(cluster, reply))
    cluster->news = true;
  if (cluster->news && may_be_asked(cluster))
    cluster->whole = true;
  if (!cluster->whole)
    return BELAY__DISCOVERY_DONE;
  cluster->news = false;
  say_map(cluster);
  return BELAY__DISCOVERY_MORE;
}

/* One of the two may have been renamed, or not be permitted, or not exist yet or any more. */
static belay__discovery_verdict_t answer(belay__discovery_t *discovery,
                                         const belay__reply_t *reply) {
  belay__cluster_t *cluster = cluster_of_discovery(discovery);
  if (cluster->answers++ == 0)
    return answer_info(cluster, reply);
  if (reply->type != BELAY__REPLY_ERROR)
    return apply(cluster, reply) ? BELAY__DISCOVERY_DONE : BELAY__DISCOVERY_NEXT;
  if (cluster->answers > 2)
    return BELAY__DISCOVERY_NEXT;
  cluster->by_shards = !cluster->by_shards;
  say_map(cluster);
  return BELAY__DISCOVERY_MORE;
}

static void over(belay__discovery_t *discovery, int error) {
  step(cluster_of_discovery(discovery), EVENT_OVER, error);
}

static const belay__discovery_ops_t scout_ops = {.ask = ask, .answer = answer, .on_over = over};

void belay__cluster_map_init(belay__cluster_t *cluster) {
  belay__node_t *node = &cluster->node;
  cluster->due.fire = on_due;
  node->discovery = &cluster->discovery;
  belay__discovery_init(&cluster->discovery, &node->settings, &scout_ops, node->settings.login,
                        node->url.places, node->url.place_count);
}
