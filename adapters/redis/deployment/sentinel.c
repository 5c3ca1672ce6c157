/* The resolver that asks Sentinels ("Guidelines for Redis clients with support for Redis
 * Sentinel").
 *
 *    ask a Sentinel --no reply, refuses the login, does not know the master--> ask the next one
 *          |        --older configuration than the used one--> keep it, ask the next one
 *          v
 *    the primary is found
 *
 * If no Sentinel is left, a client without a connection takes the kept answer: Sentinels that
 * were set up again count from 0. Every connection verifies the role (ROLE, in the handshake).
 * The role decides, not the epoch: an epoch counts only while its primary is usable. After a
 * while without a usable one, no earlier answer counts any more, and another Sentinel is asked
 * first.
 *
 * The other Sentinels are those that the believed one has named last, and those of the URL. The
 * connection to the believed one stays open for events, which are only hints to ask again. Hints
 * can be lost, and a Sentinel can die silently, so the client also asks periodically.
 *
 * A failover:
 *
 *    +vote-for-leader RUNID                  that Sentinel is asked from now on
 *    +failover-state-wait-promotion          it is asked, and flags a replica as "promoted"
 *
 * The leader of a failover sends REPLICAOF NO ONE to a replica, and sees its new role up to a
 * second later. Only then it names the replica as the master, and the other Sentinels learn of
 * it. Until then it flags the replica as "promoted". So the client asks the leader. If the
 * leader reports the master as down, the client connects to the promoted replica, and the
 * handshake verifies its role. If the failover is given up, the flag disappears, and the named
 * master counts again. A failover that an operator orders while the master is well is not
 * anticipated: the old primary serves until the new one is named. */
#include "redis/deployment/sentinel.h"

#include <stdio.h>
#include <string.h>

#include "core/loop/backoff.h"
#include "redis/conn/cause.h"

#define POLL_MS 6000 /* ms between two queries without an event */

static belay__resolver_t *resolver_of(belay__discovery_t *discovery) {
  return BELAY__CONTAINER(discovery, belay__resolver_t, discovery);
}

/* ---- replies ---- */

static bool read_place(const belay__reply_t *host, const belay__reply_t *port,
                       belay__place_t *out) {
  uint64_t number;
  if (host == NULL || port == NULL || host->type != BELAY__REPLY_STRING ||
      !belay__reply_number(port, 1, UINT16_MAX, &number) ||
      !belay__place_set_host(out, host->str, host->len))
    return false;
  out->port = (uint16_t)number;
  return true;
}

static bool read_server(const belay__reply_t *server, belay__place_t *out) {
  return read_place(belay__reply_field(server, "ip"), belay__reply_field(server, "port"), out);
}

/* True if the Sentinel reports that the replica is connected to its primary. */
static bool is_well(const belay__reply_t *replica) {
  const belay__reply_t *connection = belay__reply_field(replica, "master-link-status");
  const belay__reply_t *flags = belay__reply_field(replica, "flags");
  return connection != NULL && belay__reply_is(connection, "ok", 2) && flags != NULL &&
         belay__reply_is(flags, "slave", 5);
}

static bool read_address(belay__resolver_t *resolver, const belay__reply_t *reply) {
  char words[64 + BELAY__MASTER_MAX];
  if (reply->type == BELAY__REPLY_ARRAY && reply->count == 2)
    return read_place(reply->items[0], reply->items[1], &resolver->found.primary);
  if (reply->type == BELAY__REPLY_NIL || reply->type == BELAY__REPLY_ARRAY) {
    snprintf(words, sizeof words, "it knows no master %s", resolver->master);
    belay__discovery_set_cause(&resolver->discovery, BELAY_ENOMASTER, words);
  }
  return false;
}

/* True if the text, whose words the separator divides, has that word. */
static bool has_word(const belay__reply_t *text, char separator, const char *word) {
  size_t n = strlen(word);
  for (const char *at = text->str, *end = at + text->len, *stop; at < end; at = stop + 1) {
    stop = memchr(at, separator, (size_t)(end - at));
    if (stop == NULL)
      stop = end;
    if ((size_t)(stop - at) == n && memcmp(at, word, n) == 0)
      return true;
  }
  return false;
}

static bool has_flag(const belay__reply_t *reply, const char *flag) {
  const belay__reply_t *flags = belay__reply_field(reply, "flags");
  return flags != NULL && flags->type == BELAY__REPLY_STRING && has_word(flags, ',', flag);
}

static void ask_for_replicas(belay__resolver_t *resolver);

/* An answer without an epoch counts as up to date. */
static bool read_master(belay__resolver_t *resolver, const belay__reply_t *reply) {
  belay__found_t *found = &resolver->found;
  const belay__reply_t *epoch = belay__reply_field(reply, "config-epoch");
  if (epoch == NULL || !belay__reply_number(epoch, 0, UINT64_MAX, &found->epoch))
    found->epoch = resolver->epoch;
  found->down = has_flag(reply, "s_down") || has_flag(reply, "o_down");
  found->promotes = found->down && has_flag(reply, "failover_in_progress");
  if (found->promotes && !resolver->with_replicas)
    ask_for_replicas(resolver);
  return true;
}

static bool knows_older(const belay__resolver_t *resolver) {
  return resolver->found.epoch < resolver->epoch;
}

/* Notes the address of the Sentinel that leads a failover. */
static void note_leader(belay__resolver_t *resolver, const belay__reply_t *sentinel) {
  const belay__reply_t *run_id = belay__reply_field(sentinel, "runid");
  if (resolver->leader_len > 0 && run_id != NULL &&
      belay__reply_is(run_id, resolver->leader, resolver->leader_len))
    (void)read_server(sentinel, &resolver->leads);
}

/* The list does not contain the asked Sentinel itself. */
static bool read_sentinels(belay__resolver_t *resolver, const belay__reply_t *reply) {
  belay__place_t places[BELAY__DISCOVERY_PLACES];
  size_t n = resolver->configured_count;
  if (reply->type != BELAY__REPLY_ARRAY || knows_older(resolver))
    return true;
  memcpy(places, resolver->configured, n * sizeof *places);
  places[n++] = *belay__discovery_place(&resolver->discovery);
  for (size_t i = 0; i < reply->count && n < BELAY__DISCOVERY_PLACES; i++) {
    n += read_server(reply->items[i], &places[n]);
    note_leader(resolver, reply->items[i]);
  }
  belay__discovery_set_places(&resolver->discovery, places, n);
  return true;
}

static bool read_replicas(belay__resolver_t *resolver, const belay__reply_t *reply) {
  belay__found_t *found = &resolver->found;
  bool list = reply->type == BELAY__REPLY_ARRAY;
  for (size_t i = 0; list && i < reply->count; i++) {
    const belay__reply_t *replica = reply->items[i];
    if (found->replica_count < BELAY__REPLICAS_MAX && is_well(replica) &&
        read_server(replica, &found->replicas[found->replica_count]))
      found->replica_count++;
    if (found->promotes && has_flag(replica, "promoted"))
      (void)read_server(replica, &found->promoted);
  }
  return true;
}

/* ---- the query ---- */

/* The last one is sent only if replicas are needed, or the Sentinel leads a failover. */
static const struct query {
  const char *word;
  /* False if the Sentinel is of no use. */
  bool (*read)(belay__resolver_t *resolver, const belay__reply_t *reply);
} queries[] = {
    {"GET-MASTER-ADDR-BY-NAME", read_address},
    {"MASTER", read_master},
    {"SENTINELS", read_sentinels},
    {"REPLICAS", read_replicas},
};

#define QUERIES ((unsigned)(sizeof queries / sizeof *queries))

static unsigned query_count(const belay__resolver_t *resolver) {
  return QUERIES - !(resolver->with_replicas || resolver->found.promotes);
}

static void send_query(belay__resolver_t *resolver, unsigned query) {
  const char *const argv[] = {"SENTINEL", queries[query].word, resolver->master};
  belay__discovery_send(&resolver->discovery, 3, argv);
}

static void ask(belay__discovery_t *discovery) {
  belay__resolver_t *resolver = resolver_of(discovery);
  resolver->answers = 0;
  resolver->found = (belay__found_t){.replica_count = 0};
  resolver->leads.port = 0;
  for (unsigned i = 0; i < query_count(resolver); i++)
    send_query(resolver, i);
}

static void ask_for_replicas(belay__resolver_t *resolver) {
  send_query(resolver, QUERIES - 1);
}

static belay__discovery_verdict_t answer(belay__discovery_t *discovery,
                                         const belay__reply_t *reply) {
  belay__resolver_t *resolver = resolver_of(discovery);
  if (!queries[resolver->answers++].read(resolver, reply))
    return BELAY__DISCOVERY_NEXT;
  if (resolver->answers < query_count(resolver))
    return BELAY__DISCOVERY_MORE;
  if (resolver->found.promoted.port != 0)
    resolver->found.primary = resolver->found.promoted;
  if (!knows_older(resolver))
    return BELAY__DISCOVERY_DONE;
  if (resolver->outdated.primary.port == 0 || resolver->found.epoch > resolver->outdated.epoch)
    resolver->outdated = resolver->found;
  return BELAY__DISCOVERY_NEXT;
}

/* A refused login or an unknown master says more than a missing reply. */
static int final_error(belay__resolver_t *resolver, int error) {
  if (!belay__error_is_lasting(error) && error != BELAY_ENOMASTER)
    error = BELAY_ENOSENTINEL;
  belay__discovery_report(&resolver->discovery, error);
  return error;
}

/* If the primary seems to be down, the Sentinel that leads the failover is asked from now on. True
 * if so. */
static bool follow_leader(belay__resolver_t *resolver) {
  bool needed = resolver->found.down || resolver->failed_since != 0;
  if (!needed || resolver->leads.port == 0)
    return false;
  resolver->leader_len = 0;
  return belay__discovery_prefer(&resolver->discovery, &resolver->leads);
}

static void on_over(belay__discovery_t *discovery, int error) {
  belay__resolver_t *resolver = resolver_of(discovery);
  belay_t *belay = &discovery->settings->host->base;
  belay__timer_set(belay, BELAY__RANK_OTHER, &resolver->poll_timer,
                   belay__now(belay) + belay__period(belay, POLL_MS * BELAY__MS));
  resolver->is_outdated = error != 0 && resolver->outdated.primary.port != 0;
  if (resolver->is_outdated) {
    resolver->found = resolver->outdated;
    error = 0;
  }
  bool follow = error == 0 && follow_leader(resolver);
  resolver->on_resolved(resolver, error == 0 ? 0 : final_error(resolver, error));
  if (resolver->hinted || follow)
    belay__resolver_ask(resolver);
}

/* ---- events ---- */

#define ELECTED "+vote-for-leader"
#define DOWN "+sdown"

/* +vote-for-leader: the Sentinel has voted for the leader of a failover. All others but +sdown
 * come from the leader: +failover-state-wait-promotion when it has promoted a replica,
 * +promoted-slave when that is a primary, +switch-master when all replicas follow it. The other
 * Sentinels publish +switch-master when the leader has informed them of the new primary. */
static const char *const channels[] = {
    DOWN, ELECTED, "+failover-state-wait-promotion", "+promoted-slave", "+switch-master", NULL};

/* Reads "RUNID EPOCH": the Sentinel that has the vote, for any master. */
static void note_vote(belay__resolver_t *resolver, const char *data, size_t len) {
  const char *space = memchr(data, ' ', len);
  size_t n = space == NULL ? len : (size_t)(space - data);
  if (n == 0 || n > sizeof resolver->leader)
    return;
  memcpy(resolver->leader, data, n);
  resolver->leader_len = n;
}

static void on_message(belay__discovery_t *discovery, const belay__reply_t *channel,
                       const belay__reply_t *message) {
  belay__resolver_t *resolver = resolver_of(discovery);
  const char *data = message->str;
  bool vote = belay__reply_is(channel, ELECTED, sizeof ELECTED - 1);
  bool other = belay__reply_is(channel, DOWN, sizeof DOWN - 1) &&
               (message->len < 7 || memcmp(data, "master ", 7) != 0);
  if (vote)
    note_vote(resolver, data, message->len);
  else if (other || !has_word(message, ' ', resolver->master))
    return;
  resolver->hinted = true;
  belay__resolver_ask(resolver);
}

/* Without the connection no event arrives. */
static void lost(belay__discovery_t *discovery) {
  belay__resolver_ask(resolver_of(discovery));
}

static void on_poll(belay__timer_t *timer) {
  belay__resolver_ask(BELAY__CONTAINER(timer, belay__resolver_t, poll_timer));
}

static const belay__discovery_ops_t ops = {
    .ask = ask, .answer = answer, .on_over = on_over, .lost = lost, .on_message = on_message};

void belay__sentinel_init(belay__resolver_t *resolver, belay__settings_t *settings,
                          const char *username, const char *password, const belay__place_t *places,
                          size_t n) {
  const belay__login_t login = {.username = username, .password = password};
  resolver->discovery.channels = channels;
  resolver->poll_timer.fire = on_poll;
  resolver->configured = places;
  resolver->configured_count = n;
  belay__discovery_init(&resolver->discovery, settings, &ops, login, places, n);
}
