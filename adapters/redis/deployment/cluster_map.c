/* The map of a cluster: who has which slot, as one of its nodes tells.
 *
 *   KEPT --wanted: a connection was lost, MOVED, a slot that nobody has--> DUE --its time--> ASKED
 *    ^ |                                                                   ^                  |
 *    | +--a minute is over-------------------------------------------------|------------------+
 *    |                                                                     |                  |
 *    +--it has come, or is as it was, or nobody has one--------------------|------------------+
 *    |                                                                     +--still wanted----+
 *    +--time-- REFUSED <--nobody has one, for a reason that is a lasting one------------------+
 *                 +--time, and somebody listens--> ASKED
 *
 * It is asked for at most once a second, at a random time of a tenth of that, so that many who lose a server do not all
 * ask at once. But until a replica takes over, which takes seconds, each map would be the same, and who has just asked for
 * one would learn of the next a second late. So what is asked first, and may be asked ten times a second, is whether
 * anything has changed (CLUSTER INFO): an election, which has another epoch, is over when no slots fail any more. The map
 * is asked for only then; or if there is reason to believe that it is wrong, such as MOVED; or if it is old, or nobody
 * tells, because an address may have changed, which is not seen so.
 *
 * A node may know less than others: it lives in the past, or in a minority. So who asks for the map again soon asks
 * another one. (Not who asks for less: that would be ten connections a second.)
 *
 * A map may be partial. A slot that it leaves out stays with who had it, unless that one is in the map no more. */
#include "redis/deployment/cluster_map.h"

#include "core/call/refusal.h"
#include "core/loop/backoff.h"
#include "redis/conn/cause.h"
#include "redis/conn/subscriber.h"
#include "redis/deployment/cluster_servers.h"

#define APART_MS UINT64_C(1000) /* two maps, at least */
#define LOOK_MS UINT64_C(50)    /* two questions, at least; and at most the jitter more */
#define JITTER_MS UINT64_C(100)
#define OLD_MS UINT64_C(5000) /* a map that somebody doubts */
#define ANYWAY_MS UINT64_C(60000)
#define READER_MS UINT64_C(10000) /* who reads from replicas learns of new ones only so */
#define SOON_MS UINT64_C(5000)

typedef enum event {
  EVENT_WANTED,
  EVENT_TIME, /* of the timer */
  EVENT_OVER  /* the scout has an answer, or there is none */
} event_t;

/* ---- who is asked -------------------------------------------------------------------------------------- */

static uint64_t since(const belay__cluster_t *cluster, uint64_t then) {
  return belay__now(belay__cluster_host(cluster)) - then;
}

/* As far as is known: it may never have been asked for anything. */
static bool is_well(const belay__instance_t *server) {
  const belay__cable_t *cable = server->cable;
  bool failed = false;
  for (size_t i = 0; i < cable->count; i++)
    failed |= cable->links[i].error != 0;
  return !belay__cable_owes(cable, BELAY__SILENCE_MS) &&
         (!failed || belay__cable_links_up(cable) > 0);
}

/* Those who seem to be well, each of them the first in turn; then the others, then those whom the user has named. */
static void choose_scouts(belay__cluster_t *cluster) {
  belay__place_t places[BELAY__SCOUT_PLACES];
  const belay__url_t *url = &cluster->node.url;
  size_t n = 0, room = BELAY__SCOUT_PLACES - url->place_count;
  for (int well = 1; well >= 0; well--)
    for (size_t i = 0; i < cluster->servers_len && n < room; i++) {
      const belay__instance_t *server =
          cluster->servers[(cluster->first + i) % cluster->servers_len];
      if (server == NULL || server->cable->retired)
        continue;
      if (is_well(server) == well)
        places[n++] = server->cable->target.place;
    }
  for (size_t i = 0; i < url->place_count; i++)
    places[n++] = url->places[i];
  belay__scout_set(&cluster->scout, places, n);
}

/* Whether the one who was asked last does not seem to be. */
static bool asks_the_sick(const belay__cluster_t *cluster) {
  const belay__place_t *place = belay__scout_place(&cluster->scout);
  for (size_t i = 0; i < cluster->servers_len; i++) {
    const belay__instance_t *server = cluster->servers[i];
    if (server != NULL && belay__place_is(&server->cable->target.place, place))
      return !is_well(server);
  }
  return false;
}

/* Who asks again for the map soon asks another one, and so does whoever would ask one that is not well; what that one
 * tells of slots that fail is not compared. */
static void turn(belay__cluster_t *cluster) {
  bool again = cluster->whole && cluster->answered != 0 &&
               since(cluster, cluster->answered) < SOON_MS * BELAY__MS;
  bool sick = asks_the_sick(cluster);
  cluster->first += again;
  if (cluster->whole || sick)
    choose_scouts(cluster);
  if (!again && !sick)
    return;
  cluster->failing = 0;
  belay__scout_first(&cluster->scout);
}

/* Whether somebody waits for a connection that was lost. */
static bool is_missed(const belay__link_t *link, bool wanted) {
  return wanted && link->error != 0 && !belay__link_is_lasting(link->error);
}

static bool waits_for_server(const belay__cluster_t *cluster, const belay__instance_t *server) {
  const belay__cable_t *cable = server->cable;
  const belay__listener_t *listener = cable->listener;
  uint64_t patience = (uint64_t)cluster->node.trunk.stall_timeout_ms / 4;
  bool waits = is_missed(&listener->link, listener->link.channels > 0);
  for (size_t i = 0; i < cable->count && !waits; i++)
    waits = is_missed(&cable->links[i], cable->links[i].queue_len > 0);
  return waits || belay__cable_owes(server->cable, patience);
}

/* Whether anybody waits for a map that is better than the one there is. */
static bool is_wanted(const belay__cluster_t *cluster) {
  const belay_client_t *client = &cluster->node.base;
  bool wanted = cluster->wanted || cluster->news || cluster->waiting_len > 0 ||
                (!cluster->has_map && client->channels.table.count > 0);
  for (size_t i = 0; i < cluster->servers_len && !wanted; i++)
    wanted = cluster->servers[i] != NULL && !cluster->servers[i]->cable->retired &&
             waits_for_server(cluster, cluster->servers[i]);
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
  belay__scout_ask(&cluster->scout);
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
  bool lasting = belay__link_is_lasting(error);
  uint64_t patience = (uint64_t)cluster->node.trunk.reconnect_max_ms;
  uint64_t now = belay__now(belay__cluster_host(cluster));
  cluster->error = cluster->has_map ? 0 : error;
  cluster->blind = cluster->blind || error != 0;
  if (cluster->whole || error != 0)
    cluster->asked = now;
  if (error == 0)
    cluster->answered = now;
  else
    belay__scout_explain(&cluster->scout, error);
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
      cluster->map = BELAY__MAP_KEPT; /* whoever comes next may try */
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

void belay__cluster_doubt(belay__cluster_t *cluster) {
  if (!cluster->node.closing)
    step(cluster, EVENT_WANTED, 0);
}

void belay__cluster_news(belay__cluster_t *cluster) {
  cluster->news = true;
  belay__cluster_doubt(cluster);
}

static void on_due(belay__timer_t *timer) {
  step(BELAY__CONTAINER(timer, belay__cluster_t, due), EVENT_TIME, 0);
}

/* ---- what ---------------------------------------------------------------------------------------------- */

static void add_replica(belay__cluster_t *cluster, belay__instance_t *primary,
                        const belay__place_t *place) {
  uint16_t number = belay__cluster_take(cluster, place);
  belay__instance_t *server = number == BELAY__NOBODY ? NULL : cluster->servers[number];
  if (server == NULL || server->known)
    return;
  server->known = true;
  server->primary = primary->number;
  server->next = primary->replica;
  primary->replica = number;
}

/* What a map says of one range. */
static void visit(const belay__range_t *range, void *arg) {
  belay__cluster_t *cluster = arg;
  uint16_t number = belay__cluster_take(cluster, &range->primary);
  if (number == BELAY__NOBODY)
    return;
  belay__instance_t *server = cluster->servers[number];
  server->known = true;
  server->primary = BELAY__NOBODY;
  for (uint32_t slot = range->from; slot <= range->to; slot++)
    belay__cluster_set_owner(cluster, (uint16_t)slot, number);
  for (size_t i = 0; i < range->replica_count; i++)
    if (cluster->node.base.read_from != BELAY_READ_PRIMARY)
      add_replica(cluster, server, &range->replicas[i]);
}

/* What it was connected to for is not what it is for now. */
static void set_role(const belay__instance_t *server) {
  belay__cable_t *cable = server->cable;
  bool replica = server->primary != BELAY__NOBODY;
  if (cable->readonly != replica) {
    cable->readonly = replica;
    cable->role = replica ? BELAY__ROLE_REPLICA : BELAY__ROLE_ANY;
    belay__cable_renew(cable);
  }
}

/* False if it is no map. One that knows no slots is of a node that is not a member yet. */
static bool apply(belay__cluster_t *cluster, const belay__reply_t *reply) {
  const belay__place_t here = *belay__scout_place(&cluster->scout);
  bool tls = cluster->node.url.tls;
  if (belay__slotmap_count(reply, &here, tls) == 0)
    return false;
  for (size_t i = 0; i < cluster->servers_len; i++)
    if (cluster->servers[i] != NULL) {
      cluster->servers[i]->known = false;
      cluster->servers[i]->primary = cluster->servers[i]->replica = BELAY__NOBODY;
    }
  belay__slotmap_read(reply, &here, tls, visit, cluster);
  for (size_t i = 0; i < cluster->servers_len; i++) {
    belay__instance_t *server = cluster->servers[i];
    if (server != NULL && !server->cable->retired && server->known)
      set_role(server);
  }
  belay__cluster_retire_unknown(cluster);
  cluster->has_map = true;
  return true;
}

/* ---- the scout ----------------------------------------------------------------------------------------- */

static belay__cluster_t *of_scout(belay__scout_t *scout) {
  return BELAY__CONTAINER(scout, belay__cluster_t, scout);
}

static void say(belay__cluster_t *cluster, const char *what) {
  belay__scout_say(&cluster->scout, 2, (const char *const[]){"CLUSTER", what});
}

static void say_map(belay__cluster_t *cluster) {
  say(cluster, cluster->by_shards ? "SHARDS" : "SLOTS");
}

static void ask(belay__scout_t *scout) {
  belay__cluster_t *cluster = of_scout(scout);
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

static belay__scout_verdict_t answer_info(belay__cluster_t *cluster, const belay__reply_t *reply) {
  cluster->blind = reply->type != BELAY__REPLY_STRING;
  if (reply->type == BELAY__REPLY_ERROR) /* and perhaps to all else */
    belay__scout_blame(&cluster->scout, belay__refusal_find(reply->str, reply->len)->error,
                       reply->str);
  if (cluster->blind || has_changed(cluster, reply))
    cluster->news = true;
  if (cluster->news && may_be_asked(cluster))
    cluster->whole = true;
  if (!cluster->whole)
    return BELAY__SCOUT_DONE;
  cluster->news = false;
  say_map(cluster);
  return BELAY__SCOUT_MORE;
}

/* One of the two may have been renamed, or not be permitted, or not exist yet or any more. */
static belay__scout_verdict_t answer(belay__scout_t *scout, const belay__reply_t *reply) {
  belay__cluster_t *cluster = of_scout(scout);
  if (cluster->answers++ == 0)
    return answer_info(cluster, reply);
  if (reply->type != BELAY__REPLY_ERROR)
    return apply(cluster, reply) ? BELAY__SCOUT_DONE : BELAY__SCOUT_NEXT;
  if (cluster->answers > 2)
    return BELAY__SCOUT_NEXT;
  cluster->by_shards = !cluster->by_shards;
  say_map(cluster);
  return BELAY__SCOUT_MORE;
}

static void over(belay__scout_t *scout, int error) {
  step(of_scout(scout), EVENT_OVER, error);
}

static const belay__scout_ops_t scout_ops = {.ask = ask, .answer = answer, .over = over};

void belay__cluster_map_init(belay__cluster_t *cluster) {
  belay__node_t *node = &cluster->node;
  cluster->due.fire = on_due;
  node->scout = &cluster->scout;
  belay__scout_init(&cluster->scout, &node->trunk, &scout_ops, node->trunk.identity,
                    node->url.places, node->url.place_count);
}
