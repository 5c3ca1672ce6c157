/* Servers that are far away, and answers that come late. */
#include "support/deployments/remote.h"

/* ---- all of them are far away ---- */

/* The round trip takes more than half of a server's time to reply: enough for one command, not for
 * two. */
#define FAR_MS (TTL / 16)

/* A quarantine that is over costs no question of its own. */
TEST_IN(distant_servers_first_grant, remote, remote_open_seasoned(3)) {
  belay_lock_options_t options = quarantine_options();
  options.max_attempts = 5;
  contender_t *c = nodes_contender(remote->nodes, "door", &options);
  remote_put(remote, FAR_MS);
  assert_error(wait_for(c), 0);
  assert_true(remaining_ms(c) > 0);
}

/* The machine may be slow now and then. */
TEST_IN(distant_servers_later_grants, remote, remote_open_seasoned(3)) {
  contender_t *c = quarantined(remote->nodes, "door");
  unsigned granted = 0;
  remote_put(remote, FAR_MS);
  assert_error(wait_for(c), 0);
  (void)release(c); /* the script is not there yet, and so it may take too long */
  nodes_settle(remote->nodes);
  for (int i = 0; i < 5; i++) {
    granted += try_lock(c) == 0;
    (void)release(c);
    nodes_settle(remote->nodes);
  }
  assert_between(granted, 3, 5);
  nodes_expect_no_key(remote->nodes);
}

/* ---- from when on it is held ---- */

#define LATE_MS 200
#define LONG_TTL (6000 * slow())

/* The most that can be left, after the reply, of a ttl that began when the request was sent. */
static int64_t left_of(int64_t ttl_ms) {
  return ttl_ms - ttl_ms / 100 - 2 - LATE_MS;
}

static belay_lock_options_t long_options(void) {
  return unhurried_options(LONG_TTL);
}

TEST_IN(validity_starts_at_send, remote, remote_open(1)) {
  belay_lock_options_t options = long_options();
  contender_t *c = contender_new(remote->nodes->env, "door", &options);
  remote_put(remote, LATE_MS);
  assert_error(try_lock(c), 0);
  assert_between(remaining_ms(c), 1, left_of(LONG_TTL));
  assert_error(extend(c, 2 * LONG_TTL), 0);
  assert_between(remaining_ms(c), LONG_TTL, left_of(2 * LONG_TTL));
}

TEST_IN(quorum_validity_starts_at_send, remote, remote_open(3)) {
  belay_lock_options_t options = long_options();
  contender_t *c = nodes_contender(remote->nodes, "door", &options);
  remote_put(remote, LATE_MS);
  assert_error(try_lock(c), 0);
  assert_between(remaining_ms(c), 1, left_of(LONG_TTL));
  assert_error(extend(c, 2 * LONG_TTL), 0);
  assert_between(remaining_ms(c), LONG_TTL, left_of(2 * LONG_TTL));
}

/* A number is agreed on after the grant, and takes two more questions. */
TEST_IN(validity_with_fencing_round, remote, remote_open(3)) {
  belay_lock_options_t options = long_options();
  options.fencing = true;
  contender_t *c = nodes_contender(remote->nodes, "door", &options);
  assert_error(try_lock(c), 0); /* and now the servers know the scripts */
  assert_error(release(c), 0);
  nodes_settle(remote->nodes);
  remote_put(remote, LATE_MS);
  assert_error(try_lock(c), 0);
  assert_between(remaining_ms(c), 1, left_of(LONG_TTL) - 2 * LATE_MS);
}

/* ---- one of them is slower than the others ---- */

#define SLOWER_MS (20 * slow()) /* each way */

static belay_lock_options_t numbered_options(void) {
  belay_lock_options_t options = quarantine_options();
  options.ttl_ms = MAX_TTL;
  options.timeout_ms = MAX_TTL / 10;
  options.renew_after_ms = MAX_TTL * 2 / 5;
  options.watchdog = BELAY_WATCHDOG_ON;
  options.fencing = true;
  return options;
}

/* The first two servers hold it, with a fencing number. The third one's reply to the acquire is
 * still in flight. */
static contender_t *held_by_the_quicker(remote_t *remote) {
  belay_lock_options_t options = numbered_options();
  ask_until(quarantined(remote->nodes, "season"), BELAY_VOTE_GRANTED, 3);
  nodes_settle(remote->nodes);
  contender_t *c = nodes_contender(remote->nodes, "door", &options);
  relay_delay(remote->relay[2], SLOWER_MS);
  assert_error(wait_for(c), 0);
  return c;
}

/* Waits for the third server's reply, which takes two one-way times. A renewal is due after
 * fifteen, or up to a quarter earlier. */
static void run_short_of_a_renewal(remote_t *remote) {
  env_run_for(remote->nodes->env, 6 * SLOWER_MS);
}

TEST_IN(late_grant_during_fencing_round, remote, remote_open_seasoned(3)) {
  contender_t *c = held_by_the_quicker(remote);
  run_short_of_a_renewal(remote);
  assert_int_equal(tally_of(c).votes[BELAY_VOTE_GRANTED], 3);
  assert_int_equal(nodes_holding(remote->nodes, c), 3);
}

TEST_IN(late_grant_replaces_a_lost_vote, remote, remote_open_seasoned(3)) {
  contender_t *c = held_by_the_quicker(remote);
  run_short_of_a_renewal(remote);
  server_restart(remote->nodes->server[1]);
  remote_reach(remote);
  env_run_for(remote->nodes->env, MAX_TTL);
  assert_int_equal(c->lost, 0);
  assert_true(remaining_ms(c) > 0);
  env_until(remote->nodes->env, tally_of(c).votes[BELAY_VOTE_GRANTED] == 3);
  assert_int_equal(c->lost, 0);
  assert_int_equal(nodes_holding(remote->nodes, c), 3);
}
