/* Servers that have forgotten who holds what, or that took the place of another, make no second
 * holder. */
#include <stdio.h>

#include "support/base/never.h"
#include "support/servers/quarantine.h"

TEST_IN(quarantined_minority, nodes, seasoned(3)) {
  contender_t *c = quarantined(nodes, "door");
  int64_t restarted = clock_now();
  server_restart(nodes->server[2]);
  ask_until(c, BELAY_VOTE_QUARANTINED, 1);
  assert_int_equal(tally_of(c).node[2].vote, BELAY_VOTE_QUARANTINED);
  assert_ok(wait_for(c), release(c));
  ask_until(c, BELAY_VOTE_GRANTED, 3);
  assert_true(clock_since_ms(restarted) >= MAX_TTL);
}

/* How long another believed in it still when it was granted: c->arg. */
typedef struct overlap {
  contender_t *other;
  int64_t believed_ms;
} overlap_t;

static void note_overlap(contender_t *c, event_t event) {
  overlap_t *overlap = c->arg;
  if (event == EVENT_ENDED && c->status == 0)
    overlap->believed_ms = remaining_ms(overlap->other);
}

/* Somebody holds it, and a majority of the nodes forgets that. */
static void expect_one_holder_at_a_time(belay_watchdog_t watchdog) {
  nodes_t *nodes = seasoned(3);
  belay_lock_options_t options = quarantine_options();
  options.watchdog = watchdog;
  contender_t *holder = nodes_contender(nodes, "door", &options);
  contender_t *other = quarantined(nodes, "door");
  overlap_t overlap = {.other = holder, .believed_ms = -1};
  other->then = note_overlap;
  other->arg = &overlap;
  assert_error(wait_for(holder), 0);
  server_restart(nodes->server[0]);
  server_restart(nodes->server[1]);
  assert_true(remaining_ms(holder) > 0);
  assert_error(wait_for(other), 0);
  assert_never(overlap.believed_ms > 0);
  assert_int_equal(overlap.believed_ms, 0);
  assert_int_equal(holder->lost, 1);
  nodes_close(nodes);
}

TEST(majority_lost_data) {
  expect_one_holder_at_a_time(BELAY_WATCHDOG_OFF);
}

TEST(majority_lost_data_with_renewals) {
  expect_one_holder_at_a_time(BELAY_WATCHDOG_ON);
}

/* Shows the need for the quarantine. */
TEST_IN(majority_lost_data_without_quarantine, nodes, nodes_open(3, NULL)) {
  belay_lock_options_t options = redlock_options(10 * SECONDS * slow());
  contender_t *holder = nodes_contender(nodes, "door", &options);
  contender_t *other = nodes_contender(nodes, "door", &options);
  assert_error(wait_for(holder), 0);
  env_until(nodes->env, nodes_holding(nodes, holder) == 3);
  server_restart(nodes->server[0]);
  server_restart(nodes->server[1]);
  assert_error(acquire(other, 5 * SECONDS * slow()), 0);
  assert_true(remaining_ms(holder) > 0);
}

TEST_IN(key_is_restored_on_empty_node, nodes, seasoned(3)) {
  belay_lock_options_t options = quarantine_options();
  options.watchdog = BELAY_WATCHDOG_ON;
  contender_t *c = nodes_contender(nodes, "door", &options);
  assert_error(wait_for(c), 0);
  env_until(nodes->env, nodes_holding(nodes, c) == 3);
  server_restart(nodes->server[2]);
  env_until(nodes->env, nodes_value(nodes, 2, c) != NULL);
  /* the lease time that was left when the renewal began */
  assert_true(server_integer(nodes->server[2], "PTTL", key_of(c), NULL) <= TTL * 4 / 5);
  assert_int_equal(nodes_holding(nodes, c), 3);
  env_until(nodes->env, tally_of(c).node[2].vote == BELAY_VOTE_RESTORED);
  env_until(nodes->env, tally_of(c).node[2].vote == BELAY_VOTE_GRANTED);
  assert_int_equal(c->lost, 0);
  assert_error(release(c), 0);
  nodes_expect_no_key(nodes);
}

/* The server has a long uptime, a marker of another server, and no quarantine state yet. */
static void expect_quarantine_from_now(contender_t *c, server_t *server) {
  int64_t began = clock_now(), before = server_time_ms(server);
  ask_until(c, BELAY_VOTE_QUARANTINED, 1);
  assert_between(marker_since(server), before, server_time_ms(server));
  expect_marker_of(server);
  assert_error(try_lock(c), BELAY_EQUARANTINED);
  assert_error(wait_for(c), 0);
  assert_between(clock_since_ms(began), MAX_TTL, MAX_TTL + 2 * SECONDS * slow());
}

TEST_IN(server_back_with_old_data, nodes, seasoned(1)) {
  contender_t *c = quarantined(nodes, "door");
  server_restart_keeping(nodes->server[0]);
  assert_non_null(marker(nodes->server[0], "server"));
  stall_ms(MAX_TTL + 3 * SECONDS);
  expect_quarantine_from_now(c, nodes->server[0]);
}

/* A primary, a replica of it that has been up for as long, and a client for each; the marker is
 * on both. */
typedef struct replication {
  env_t *env;
  server_t *primary, *replica;
  belay_client_t *of_primary, *of_replica;
} replication_t;

static contender_t *at(replication_t *replication, belay_client_t *client) {
  belay_lock_options_t options = quarantine_options();
  return contender_over(replication->env, &client, 1, "door", &options);
}

static replication_t replication_open(void) {
  replication_t replication = {.primary = server_start(&(server_options_t){.address = "127.0.0.1"}),
                               .replica =
                                   server_start(&(server_options_t){.address = "127.0.0.1"})};
  replication.env = env_open_with(replication.primary, NULL);
  replication.of_primary = replication.env->client;
  replication.of_replica = env_connect(replication.env, server_url(replication.replica), NULL);
  ask_until(at(&replication, replication.of_primary), BELAY_VOTE_GRANTED, 1);
  server_follow(replication.replica, replication.primary);
  assert_non_null(marker(replication.replica, "server"));
  stall_ms(1 * SECONDS); /* it was started a little later */
  return replication;
}

static void replication_close(replication_t *replication) {
  env_close(replication->env); /* and the primary */
  server_stop(replication->replica);
}

TEST(promoted_replica_is_quarantined) {
  replication_t replication = replication_open();
  server_kill(replication.primary);
  server_do(replication.replica, "REPLICAOF", "NO", "ONE", NULL);
  expect_quarantine_from_now(at(&replication, replication.of_replica), replication.replica);
  replication_close(&replication);
}

TEST(promoted_replica_without_lock) {
  replication_t replication = replication_open();
  contender_t *holder = at(&replication, replication.of_primary),
              *other = at(&replication, replication.of_replica);
  overlap_t overlap = {.other = holder, .believed_ms = -1};
  other->then = note_overlap;
  other->arg = &overlap;
  server_do(replication.replica, "REPLICAOF", "NO", "ONE", NULL);
  assert_error(wait_for(holder), 0);
  server_kill(replication.primary);
  assert_error(wait_for(other), 0);
  assert_never(overlap.believed_ms > 0);
  assert_int_equal(overlap.believed_ms, 0);
  replication_close(&replication);
}

/* Until it has the other one's data, where there is no such key. Clients are cut off, as
 * Sentinel does. */
static void demote_for_a_moment(server_t *server, server_t *other, const char *key) {
  char port[12];
  snprintf(port, sizeof port, "%d", server_port(other));
  server_do(server, "CONFIG", "SET", "repl-diskless-load", "swapdb", NULL);
  server_do(other, "CONFIG", "SET", "repl-diskless-sync-delay", "0", NULL);
  server_do(server, "REPLICAOF", "127.0.0.1", port, NULL);
  int64_t began = clock_now();
  while (server_string(server, "GET", key, NULL) != NULL && clock_since_ms(began) < TTL)
    stall_ms(2);
  server_do(server, "REPLICAOF", "NO", "ONE", NULL);
  (void)server_ask(server, "CLIENT", "KILL", "TYPE", "normal", NULL);
}

/* It has the same run id, and the data of another. */
TEST(primary_demoted_and_promoted) {
  replication_t replication = replication_open();
  contender_t *holder = at(&replication, replication.of_primary),
              *other = at(&replication, replication.of_primary);
  overlap_t overlap = {.other = holder, .believed_ms = -1};
  other->then = note_overlap;
  other->arg = &overlap;
  server_do(replication.replica, "REPLICAOF", "NO", "ONE", NULL);
  assert_error(wait_for(holder), 0);
  demote_for_a_moment(replication.primary, replication.replica, key_of(holder));
  assert_true(remaining_ms(holder) > 0);
  assert_error(wait_for(other), 0);
  assert_never(overlap.believed_ms > 0);
  assert_int_equal(overlap.believed_ms, 0);
  replication_close(&replication);
}
