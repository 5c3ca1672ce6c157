/* The quarantine: a server that may have lost leases does not vote until they have expired.
 *
 * When a connection is first used for a vote, a script behind the command reads the marker of the
 * namespace, a key on the server that names the server. The vote waits for the reply of that
 * script. The marker and the server's uptime decide from which time on the server votes:
 *
 *    restarted without its data:           no marker           uptime below the longest ttl
 *    restarted with its data:              another's marker    uptime below the longest ttl
 *    a replica that replaced the primary:  another's marker    any uptime
 *    always present:                       its own marker      uptime above the longest ttl
 *
 * A server is identified by its run id and by the id of its data: a server that was a replica in
 * between has another server's data. The result also holds for older connections to the same
 * server. So one query per connection suffices for all leases of the client. */
#include "lease/quorum/quarantine.h"

#include <stdio.h>

#include "core/key/key.h"
#include "lease/machine/deadline.h"
#include "scripts.gen.h"

/* True if the stored result holds for the lease on this server: the longest ttl, the server and its
 * data are the same, and the query was sent on this connection or on a later one. */
static bool is_current(const belay__member_t *member, const belay__server_info_t *server) {
  const belay__quarantine_state_t *quarantine =
      &belay__client_leases(belay__member_client(member))->quarantine;
  return server->run_id_len > 0 && server->epoch <= quarantine->server.epoch &&
         quarantine->max_ttl == belay__member_lease(member)->config->max_ttl &&
         belay__server_info_is(&quarantine->server, server->run_id, server->run_id_len) &&
         quarantine->server.data_id_len == server->data_id_len &&
         memcmp(quarantine->server.data_id, server->data_id, server->data_id_len) == 0;
}

bool belay__quarantine_known(const belay__member_t *member) {
  const belay__lease_t *lease = belay__member_lease(member);
  const belay__server_info_t *server =
      lease->config->quarantine ? belay__member_server(member) : NULL;
  return server != NULL && is_current(member, server) &&
         (int64_t)belay__lease_now(lease) <
             belay__client_leases(belay__member_client(member))->quarantine.votes_from;
}

uint64_t belay__quarantine_ends(const belay__lease_t *lease) {
  uint64_t first = BELAY__NEVER;
  for (unsigned i = 0; i < lease->members; i++) {
    const belay__member_t *member = &lease->member[i];
    if (!belay__quarantine_known(member))
      continue;
    uint64_t from =
        (uint64_t)belay__client_leases(belay__member_client(member))->quarantine.votes_from;
    if (from < first)
      first = from;
  }
  return first;
}

static int64_t later(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* Stores the result. ms: time until the server votes; if negative, it has voted for -ms. */
static void set_state(belay_client_t *client, const belay__server_info_t *server, int64_t ms,
                      uint32_t max_ttl) {
  int64_t ns = (int64_t)BELAY__MS, now = (int64_t)belay__now(client->belay);
  int64_t by_uptime = server->started_by + (int64_t)belay__lease_forgotten_after(max_ttl);
  int64_t by_marker =
      ms < -now / ns ? 0 : now + (ms + 1) * ns; /* +1: the server's clock was cut to ms */
  belay__client_leases(client)->quarantine = (belay__quarantine_state_t){
      .server = *server, .max_ttl = max_ttl, .votes_from = later(by_uptime, by_marker)};
}

/* Sets the detail, and returns BELAY_EMISMATCH: the marker has another longest ttl than the lease.
 * Either value would be wrong for one of the clients. */
static int mismatch(belay_client_t *client, const belay__reply_t *reply) {
  char text[96];
  int n = snprintf(text, sizeof text, "the namespace has another max_ttl_ms: %.20s", reply->str);
  belay__client_refused(client, BELAY_EMISMATCH, text, (size_t)n);
  return BELAY_EMISMATCH;
}

/* True if `name` is the server's run id and the id of its data. Otherwise the query was built for
 * an older connection to another server. */
static bool is_name_of(const belay__server_info_t *server, const belay__reply_t *name) {
  size_t n = server->run_id_len;
  return name->type == BELAY__REPLY_STRING && name->len == n + server->data_id_len &&
         memcmp(name->str, server->run_id, n) == 0 &&
         memcmp(name->str + n, server->data_id, server->data_id_len) == 0;
}

int belay__quarantine_read(belay__call_t *call, const belay__result_t *result) {
  belay_client_t *client = call->client;
  const belay__reply_t *reply = result->reply;
  const belay__server_info_t *server =
      client->node_ops->server(client, (belay__conn_class_t)call->conn_class, call->route);
  int64_t ms, max_ttl;
  if (result->outcome != BELAY_OUTCOME_REPLY)
    return result->error;
  if (reply->type == BELAY__REPLY_STRING)
    return mismatch(client, reply);
  if (reply->type != BELAY__REPLY_ARRAY || reply->count != 3 ||
      !belay__reply_integer(reply->items[0], INT64_MIN, 2 * BELAY__TTL_MAX_MS, &ms) ||
      !belay__reply_integer(reply->items[1], BELAY__TTL_MIN_MS, BELAY__TTL_MAX_MS, &max_ttl)) {
    belay__call_distrust(call, reply);
    return BELAY_EPROTO;
  }
  if (server == NULL || server->epoch != call->epoch || !is_name_of(server, reply->items[2]))
    return BELAY_EUNKNOWN;
  set_state(client, server, ms, (uint32_t)max_ttl);
  return 0;
}

/* Stores the result of a query that no member waits for, also if the reply is late. */
static void on_abandoned(belay__call_t *call, const belay__result_t *result) {
  if (result->outcome == BELAY_OUTCOME_UNKNOWN)
    belay__quarantine_abandon(&call);
  else
    (void)belay__quarantine_read(call, result);
}

void belay__quarantine_abandon(belay__call_t **place) {
  belay__call_t *call = *place;
  *place = NULL;
  call->place = NULL;
  call->done = on_abandoned;
  call->owner = NULL;
}

static int send_query(belay__member_t *member, const belay__server_info_t *server,
                      uint64_t deadline, belay__call_cb done) {
  const belay__lease_t *lease = belay__member_lease(member);
  belay_client_t *client = belay__member_client(member);
  uint64_t rest = belay__lease_forgotten_after(lease->config->max_ttl);
  char key[BELAY__KEY_MAX];
  belay__call_t *call = belay__call_new(client, belay__lease_class(lease));
  if (call == NULL)
    return BELAY_ENOMEM;
  belay__call_script_text(call, &belay__script_quarantine, 1, 3);
  belay__call_arg(call, key,
                  belay__key_build(key, client->prefix, client->prefix_len, "node", "marker", 6));
  belay__call_arg_joined(call, server->run_id, server->run_id_len, server->data_id,
                         server->data_id_len);
  belay__call_arg_int(call, lease->config->max_ttl);
  belay__call_arg_int(call, (int64_t)(rest / BELAY__MS) + 1);
  call->deadline = deadline;
  call->route = lease->route;
  call->urgent = true;
  int error = belay__call_start(&belay__member_exchange(member)->confirm, call, done, member);
  return error == 0 ? BELAY__PENDING : error;
}

void belay__quarantine_send_ahead(belay__member_t *member, uint64_t deadline, belay__call_cb done) {
  const belay__server_info_t *server =
      belay__member_lease(member)->config->quarantine ? belay__member_server(member) : NULL;
  if (server != NULL && server->run_id_len > 0 && !is_current(member, server))
    (void)send_query(member, server, deadline, done);
}

bool belay__quarantine_allows(const belay__member_t *member) {
  const belay__lease_t *lease = belay__member_lease(member);
  const belay__server_info_t *server = belay__member_server(member);
  if (!lease->config->quarantine)
    return true;
  if (server == NULL || server->epoch != member->sent_on)
    return false;
  if (server->run_id_len == 0)
    return lease->config->trust;
  return is_current(member, server) &&
         (int64_t)belay__member_exchange(member)->sent >=
             belay__client_leases(belay__member_client(member))->quarantine.votes_from;
}

int belay__quarantine_check(belay__member_t *member, belay__call_cb done) {
  static const char silent[] = "the server does not tell its run id";
  const belay__server_info_t *server = belay__member_server(member);
  if (belay__quarantine_allows(member))
    return 0;
  if (server == NULL || server->epoch != member->sent_on)
    return BELAY_EUNKNOWN; /* the connection of the reply is lost */
  if (server->run_id_len > 0 && !is_current(member, server))
    return send_query(member, server, belay__member_lease(member)->active->round_deadline, done) ==
                   BELAY__PENDING
               ? BELAY__PENDING
               : BELAY_EUNKNOWN;
  if (server->run_id_len == 0)
    belay__client_refused(belay__member_client(member), BELAY_EQUARANTINED, silent,
                          sizeof silent - 1);
  return BELAY_EQUARANTINED;
}
