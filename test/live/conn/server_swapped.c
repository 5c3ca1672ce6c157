/* Replies of another server than the expected one. */
#include <stdatomic.h>
#include <stdio.h>

#include "support/servers/acl.h"
#include "support/deployments/fake.h"
#include "support/deployments/remote.h"

/* ---- one server that speaks for several ---- */

TEST(one_server_without_run_id_for_three_clients) {
  char url[256];
  server_t *server = server_start(NULL);
  server_do(server, "ACL", "SETUSER", "guest", "on", ">pw", "~*", "&*", "+@all", "-info", NULL);
  snprintf(url, sizeof url, "unix://guest:pw@%s", server_path(server));
  env_t *env = env_open_at(url, NULL);
  env->server = server;
  belay_client_t *clients[] = {env->client, env_connect(env, url, NULL),
                               env_connect(env, url, NULL)};
  belay_lock_options_t options = unhurried_options(10 * SECONDS);
  options.quarantine = BELAY_QUARANTINE_TRUST;
  contender_t *c = contender_over(env, clients, 3, "door", &options);
  assert_error(acquire(c, 5 * SECONDS * slow()), BELAY_EDUPLICATE);
  assert_int_equal(belay_lock_remaining_us(c->lock), 0);
  env_settle(env);
  assert_int_equal(server_keys(server), 0);
  env_close(env);
}

/* Two of three servers stop, and one of their addresses then leads to the third one. The first
 * reply comes from either connection: they never count as two votes. */
TEST_IN(address_moves_to_another_node, remote, remote_open(3)) {
  belay_lock_options_t options = unhurried_options(TTL);
  options.watchdog = BELAY_WATCHDOG_ON;
  contender_t *c = nodes_contender(remote->nodes, "door", &options);
  assert_error(acquire(c, 5 * SECONDS * slow()), 0);
  env_until(remote->nodes->env, tally_of(c).votes[BELAY_VOTE_GRANTED] == 3);
  relay_lead(remote->relay[2], server_url(remote->nodes->server[1]));
  relay_cut(remote->relay[2]);
  server_kill(remote->nodes->server[0]);
  server_kill(remote->nodes->server[2]);
  int64_t gone = clock_now();
  for (unsigned i = 0; i < 10; i++) {
    relay_delay(remote->relay[1 + i % 2], TTL / 40);
    relay_delay(remote->relay[2 - i % 2], 0);
    env_run_for(remote->nodes->env, TTL / 5);
  }
  assert_int_equal(c->lost, 1);
  assert_int_equal(c->reason, BELAY_LOST_EXPIRED);
  assert_between((c->lost_time - gone) / MS, 0, TTL + lag());
}

static void extend_once(nodes_t *nodes, contender_t *c) {
  assert_error(extend(c, BELAY_DEFAULT), 0);
  nodes_settle(nodes);
}

/* Two of five names lead to one server, which lost the key. After it set the key again, neither
 * of the two votes counts, also if the second one finds the key of the first. */
TEST_IN(restarted_server_behind_two_addresses, remote, remote_open(5)) {
  nodes_t *nodes = remote->nodes;
  belay_lock_options_t options = unhurried_options(60 * SECONDS);
  options.timeout_ms = 2 * prompt_ms();
  contender_t *c = nodes_contender(nodes, "door", &options);
  assert_error(acquire(c, 5 * SECONDS * slow()), 0);
  env_until(nodes->env, tally_of(c).votes[BELAY_VOTE_GRANTED] == 5);
  relay_lead(remote->relay[4], server_url(nodes->server[0]));
  relay_cut(remote->relay[4]);
  server_do(nodes->server[4], "DEL", key_of(c), NULL);
  do {
    extend_once(nodes, c);
    env_run_for(nodes->env, 10);
  } while (tally_of(c).votes[BELAY_VOTE_GRANTED] < 4 || tally_of(c).votes[BELAY_VOTE_REFUSED] < 1);
  server_do(nodes->server[0], "DEL", key_of(c), NULL);
  extend_once(nodes, c);
  assert_int_equal(tally_of(c).votes[BELAY_VOTE_HELD], 2);
  server_pause(nodes->server[3]);
  assert_error(extend(c, BELAY_DEFAULT), BELAY_ENOQUORUM);
  assert_int_equal(tally_of(c).votes[BELAY_VOTE_RESTORED], 2);
  server_resume(nodes->server[3]);
}

/* ---- a server that was another's replica in between ---- */

#define HOLD (4000 * slow())

static void drop_connections(server_t *server) {
  (void)server_ask(server, "CLIENT", "KILL", "TYPE", "normal", NULL);
}

/* The first server is the primary, the second its replica. Both names lead to the first one. */
TEST(promoted_again) {
  if (deployment_is_cluster())
    skip(); /* where there is no quarantine */
  const server_options_t tcp = {.address = "127.0.0.1"};
  server_t *server = server_start(&tcp), *other = server_start(&tcp);
  env_t *env = env_open_with(server, NULL);
  belay_lock_options_t options = quarantine_options();
  options.ttl_ms = options.max_ttl_ms = HOLD;
  contender_t *holder = contender_new(env, "door", &options);
  contender_t *contender = contender_new(env, "door", &options);
  server_follow(other, server);
  assert_error(wait_for(contender), 0);
  assert_error(release(contender), 0);
  drop_connections(server);
  server_do(other, "REPLICAOF", "NO", "ONE", NULL); /* which does not have what comes now */
  assert_error(acquire(holder, 2 * SECONDS * slow()), 0);
  server_follow(server, other);
  assert_null(value_of(holder));
  server_do(server, "REPLICAOF", "NO", "ONE", NULL);
  drop_connections(server);
  assert_error(acquire(contender, 500 * slow()), BELAY_EQUARANTINED);
  assert_true(remaining_ms(holder) > 0);
  env_settle(env);
  assert_null(value_of(contender));
  env_close(env);
  server_stop(other);
}

/* ---- a WAIT that another server answers ---- */

/* Which connections were granted something: how many, and the last of them. */
typedef struct grants {
  atomic_uint count, last;
} grants_t;

/* Two servers at one address, one after the other. The first one grants and does not reply to
 * WAIT. The second one has enough replicas. */
static void grant_and_fall_silent(fake_link_t *link, const char *const *words, size_t count,
                                  void *arg) {
  grants_t *grants = arg;
  if (strcmp(words[0], "WAIT") == 0 && fake_link_number(link) == atomic_load(&grants->last))
    return;
  fake_behave(link, words, count);
  if (strcmp(words[0], "SET") != 0)
    return;
  atomic_store(&grants->last, fake_link_number(link));
  atomic_fetch_add(&grants->count, 1);
}

/* The grant and the end of its connection are there when belay looks. */
TEST(replicas_of_another_server) {
  needs_one_server("one that only pretends to be a server");
  grants_t grants = {.count = 0};
  fake_t *fake = fake_start(&(fake_options_t){.on_command = grant_and_fall_silent, .arg = &grants});
  relay_t *relay = relay_start(fake_url(fake));
  belay_client_options_t client = client_options();
  client.max_pending = 1; /* one after the other */
  client.on_full = BELAY_FULL_WAIT;
  env_t *env = env_open_at(relay_url(relay), &client);
  belay_lock_options_t options = with_ttl(10 * SECONDS);
  options.min_replicas = 1;
  contender_t *c = contender_new(env, "door", &options);
  assert_error(begin_ping(env), 0);
  env_until(env, env->pongs == 1); /* it is known which commands the server has */
  relay_delay(relay, 50 * slow());
  assert_error(begin_acquire(c, 0), 0);
  env_until(env, atomic_load(&grants.count) == 1);
  stall_ms(100 * slow());
  relay_delay(relay, 0);
  relay_cut(relay);
  assert_error(outcome(c), BELAY_EUNKNOWN);
  assert_int_equal(belay_lock_remaining_us(c->lock), 0);
  assert_int_equal(atomic_load(&grants.count), 1);
  env_close(env);
  relay_stop(relay);
  fake_stop(fake);
}

/* ---- a server that cannot say who it is at this time ---- */

/* A server on which a script runs that does not end by itself. */
typedef struct busy {
  env_t *env;
  resp_client_t script;
} busy_t;

static busy_t busy_open(void) {
  static const char script[] = "EVAL \"while true do end\" 0\r\n";
  const server_options_t options = {.arguments = {"--busy-reply-threshold", "5"}};
  busy_t busy = {.env = env_open_with(server_start(&options), NULL)};
  assert_int_equal(acl_dial(NULL, &busy.script, server_path(busy.env->server)), 0);
  assert_int_equal(resp_send(busy.script.fd, script, sizeof script - 1), 0);
  while (server_ask(busy.env->server, "PING", NULL)->type != RESP_ERROR)
    stall_ms(1);
  return busy;
}

/* Connects, or tries to, while the script runs, and again when it has ended. */
static void connect_meanwhile(busy_t *busy) {
  assert_error(begin_ping(busy->env), 0);
  env_run_for(busy->env, 200 * slow());
  server_do(busy->env->server, "SCRIPT", "KILL", NULL);
  env_until(busy->env, busy->env->pongs == 1);
  resp_hang_up(&busy->script);
}

TEST(busy_server_reports_run_id_later) {
  if (deployment_is_cluster())
    skip(); /* where there is no quarantine */
  busy_t busy = busy_open();
  belay_lock_options_t options = quarantine_options();
  contender_t *c = contender_new(busy.env, "door", &options);
  connect_meanwhile(&busy);
  assert_error(wait_for(c), 0);
  assert_true(is_on_server(c));
  env_close(busy.env);
}

TEST(busy_server_is_not_trusted) {
  if (deployment_is_cluster())
    skip(); /* where there is no quarantine */
  busy_t busy = busy_open();
  belay_lock_options_t options = quarantine_options_with(BELAY_QUARANTINE_TRUST);
  options.max_ttl_ms = 60 * SECONDS * slow();
  contender_t *c = contender_new(busy.env, "door", &options);
  connect_meanwhile(&busy);
  assert_error(acquire(c, 500 * slow()), BELAY_EQUARANTINED);
  env_settle(busy.env);
  assert_null(value_of(c));
  env_close(busy.env);
}
