/* Votes and the quarantine: new servers, servers that hide their identity, and one max_ttl for
 * all. */
#include <stdio.h>

#include "support/base/never.h"
#include "support/servers/quarantine.h"

/* Defines a test with servers that other tests use, too. */
#define VISIT_TEST(name, visit) TEST_WITH_(name, nodes, visit, leave)

TEST(marker_contents) {
  char max_ttl[24];
  nodes_t *nodes = visit();
  snprintf(max_ttl, sizeof max_ttl, "%lld", (long long)MAX_TTL);
  ask_until(quarantined(nodes, "door"), BELAY_VOTE_GRANTED, 3);
  for (unsigned i = 0; i < 3; i++) {
    expect_marker_of(nodes->server[i]);
    assert_int_equal(marker_since(nodes->server[i]), 0);
    assert_string_equal(marker(nodes->server[i], "max_ttl"), max_ttl);
    assert_int_equal(server_integer(nodes->server[i], "PTTL", marker_key(), NULL), -1);
  }
  leave(nodes);
}

VISIT_TEST(marker_of_other_type, visit()) {
  contender_t *c = quarantined(nodes, "door");
  server_do(nodes->server[1], "SET", marker_key(), "something else", NULL);
  ask_until(c, BELAY_VOTE_REFUSED, 1);
  assert_error(tally_of(c).node[1].error, BELAY_EWRONGTYPE);
  assert_error(wait_for(c), 0);
}

/* Each node with this vote reports this error. */
static void expect_reason(contender_t *c, belay_vote_t vote, int error) {
  belay_lock_tally_t tally = tally_of(c);
  for (unsigned i = 0; i < tally.nodes; i++)
    if (tally.node[i].vote == vote)
      assert_error(tally.node[i].error, error);
}

TEST_IN(fresh_servers_do_not_vote, nodes, nodes_open(3, NULL)) {
  contender_t *c = quarantined(nodes, "door");
  ask_until(c, BELAY_VOTE_QUARANTINED, 2);
  assert_each(BELAY_ENOQUORUM, try_lock(c), belay_lock_error(c->lock));
  expect_reason(c, BELAY_VOTE_QUARANTINED, BELAY_EQUARANTINED);
  nodes_expect_no_key(nodes);
}

TEST(fresh_servers_vote_after_max_ttl) {
  int64_t began = clock_now();
  nodes_t *nodes = nodes_open(3, NULL);
  contender_t *c = quarantined(nodes, "door");
  assert_error(wait_for(c), 0);
  assert_between(clock_since_ms(began), MAX_TTL, MAX_TTL + 3 * SECONDS + 1 * SECONDS * slow());
  nodes_close(nodes);
}

TEST_IN(quarantine_off, nodes, nodes_open(3, NULL)) {
  belay_lock_options_t options = quarantine_options_with(BELAY_QUARANTINE_OFF);
  ask_until(nodes_contender(nodes, "door", &options), BELAY_VOTE_GRANTED, 3);
  nodes_settle(nodes);
  for (unsigned i = 0; i < 3; i++)
    assert_int_equal(server_keys(nodes->server[i]), 0);
}

TEST_IN(trust_with_known_run_id, nodes, nodes_open(3, NULL)) {
  belay_lock_options_t options = quarantine_options_with(BELAY_QUARANTINE_TRUST);
  contender_t *c = nodes_contender(nodes, "door", &options);
  ask_until(c, BELAY_VOTE_QUARANTINED, 2);
  assert_error(try_lock(c), BELAY_ENOQUORUM);
}

TEST(quarantine_of_plain_lock) {
  needs_one_server("a quarantine");
  int64_t began = clock_now();
  env_t *env = env_open(NULL);
  belay_lock_options_t options = quarantine_options();
  contender_t *c = contender_new(env, "door", &options);
  ask_until(c, BELAY_VOTE_QUARANTINED, 1);
  assert_error(try_lock(c), BELAY_EQUARANTINED);
  assert_true(belay_err_retryable(BELAY_EQUARANTINED));
  env_settle(env);
  assert_null(value_of(c));
  assert_error(wait_for(c), 0);
  assert_true(clock_since_ms(began) >= MAX_TTL);
  assert_true(is_on_server(c));
  env_close(env);
}

ENV_TEST(quarantine_default_of_plain_lock) {
  (void)contender_holding(env, "door", NULL);
  assert_int_equal(server_keys(env->server), 1);
}

VISIT_TEST(max_ttl_mismatch, visit()) {
  belay_lock_options_t options = quarantine_options();
  ask_until(quarantined(nodes, "door"), BELAY_VOTE_GRANTED, 3);
  options.max_ttl_ms = MAX_TTL - 1;
  contender_t *c = nodes_contender(nodes, "door", &options);
  assert_error(wait_for(c), BELAY_EMISMATCH);
  assert_false(belay_err_retryable(BELAY_EMISMATCH));
  ask_until(c, BELAY_VOTE_REFUSED, 2);
  expect_reason(c, BELAY_VOTE_REFUSED, BELAY_EMISMATCH);
  nodes_expect_no_key(nodes);
}

VISIT_TEST(max_ttl_mismatch_on_minority, visit()) {
  contender_t *c = quarantined(nodes, "door");
  ask_until(c, BELAY_VOTE_GRANTED, 3);
  server_do(nodes->server[0], "HSET", marker_key(), "max_ttl", "123456", NULL);
  (void)server_ask(nodes->server[0], "CLIENT", "KILL", "TYPE", "normal", NULL); /* asked again */
  ask_until(c, BELAY_VOTE_REFUSED, 1);
  assert_error(tally_of(c).node[0].error, BELAY_EMISMATCH);
  assert_error(wait_for(c), 0);
}

static int new_status(nodes_t *nodes, const belay_lock_options_t *options) {
  belay_lock_t *lock;
  int error = belay_redlock_new(nodes->client, nodes->n, belay_string("door"), options, &lock);
  assert_int_equal(error == 0, lock != NULL);
  if (error == 0)
    assert_error(belay_lock_close(lock, NULL), 0);
  return error;
}

VISIT_TEST(ttl_above_max_ttl, visit()) {
  belay_lock_options_t options = quarantine_options();
  options.ttl_ms = options.max_ttl_ms;
  assert_error(new_status(nodes, &options), 0);
  options.ttl_ms = options.max_ttl_ms + 1;
  assert_error(new_status(nodes, &options), BELAY_EINVAL);
  options.ttl_ms = BELAY_DEFAULT;
  options.max_ttl_ms = 9999;
  assert_error(new_status(nodes, &options), BELAY_EINVAL);
  options.quarantine = BELAY_QUARANTINE_OFF;
  assert_error(new_status(nodes, &options), 0);
}

VISIT_TEST(extend_above_max_ttl, visit()) {
  contender_t *c = quarantined(nodes, "door");
  assert_error(wait_for(c), 0);
  assert_error(extend(c, MAX_TTL + 1), BELAY_EINVAL);
  assert_ok(extend(c, MAX_TTL), release(c));
}

/* Extends the lock until the vote of the first server counts again. Counts its votes until then. */
static void extend_until_it_counts(nodes_t *nodes, contender_t *c, int64_t restarted,
                                   unsigned said[BELAY_VOTES]) {
  do {
    assert_error(extend(c, MAX_TTL), 0);
    nodes_settle(nodes);
    env_run_for(nodes->env, 10);
    said[tally_of(c).node[0].vote]++;
  } while (said[BELAY_VOTE_GRANTED] == 0);
  assert_true(clock_since_ms(restarted) >= MAX_TTL);
  assert_true(said[BELAY_VOTE_QUARANTINED] > 0);
}

/* A renewal that restores the key does not end the quarantine early. */
TEST_IN(restored_key_does_not_count_in_quarantine, nodes, seasoned(3)) {
  contender_t *c = quarantined(nodes, "door");
  unsigned said[BELAY_VOTES] = {0};
  assert_error(wait_for(c), 0);
  nodes_settle(nodes);
  server_kill(nodes->server[0]);
  server_restart(nodes->server[0]);
  int64_t restarted = clock_now();
  extend_until_it_counts(nodes, c, restarted, said);
  assert_true(said[BELAY_VOTE_RESTORED] > 0);
  assert_error(release(c), 0);
}

/* The server granted the lease without a vote, or its reply was lost. A renewal does not count
 * either. */
static void expect_no_vote_by_renewals(bool heard) {
  nodes_t *nodes = seasoned(3);
  contender_t *c = quarantined(nodes, "door");
  unsigned said[BELAY_VOTES] = {0};
  server_kill(nodes->server[0]);
  server_restart(nodes->server[0]);
  int64_t restarted = clock_now();
  do {
    int before = nodes->env->pongs;
    assert_error(begin_ping(nodes->env), 0);
    env_until(nodes->env, nodes->env->pongs > before);
  } while (nodes->env->pong_status != 0);
  if (!heard)
    server_pause(nodes->server[0]);
  assert_error(wait_for(c), 0);
  if (!heard) {
    assert_error(extend(c, MAX_TTL), 0);
    server_resume(nodes->server[0]);
  }
  nodes_settle(nodes);
  assert_int_equal(tally_of(c).node[0].vote, BELAY_VOTE_QUARANTINED);
  assert_non_null(nodes_value(nodes, 0, c));
  extend_until_it_counts(nodes, c, restarted, said);
  assert_error(release(c), 0);
  nodes_close(nodes);
}

TEST(key_set_before_restart_does_not_count) {
  expect_no_vote_by_renewals(true);
  expect_no_vote_by_renewals(false);
}

VISIT_TEST(hidden_run_id_never_votes, visit_without_info()) {
  contender_t *c = quarantined(nodes, "door");
  assert_error(acquire(c, MAX_TTL + 1 * SECONDS), BELAY_ENOQUORUM);
  ask_until(c, BELAY_VOTE_QUARANTINED, 2);
  nodes_expect_no_key(nodes);
}

VISIT_TEST(hidden_run_id_with_trust, visit_without_info()) {
  belay_lock_options_t options = quarantine_options_with(BELAY_QUARANTINE_TRUST);
  ask_until(nodes_contender(nodes, "door", &options), BELAY_VOTE_GRANTED, 3);
}

VISIT_TEST(reconnect_keeps_vote, visit()) {
  contender_t *c = quarantined(nodes, "door");
  ask_until(c, BELAY_VOTE_GRANTED, 3);
  for (int round = 0; round < 5; round++) {
    for (unsigned i = 0; i < 3; i++)
      (void)server_ask(nodes->server[i], "CLIENT", "KILL", "TYPE", "normal", NULL);
    assert_error(wait_for(c), 0);
    env_run_for(nodes->env, 50);
    assert_int_equal(tally_of(c).votes[BELAY_VOTE_QUARANTINED], 0);
    (void)release(c);
    ask_until(c, BELAY_VOTE_GRANTED, 3);
  }
}

typedef struct contest {
  contender_t *all[12];
  unsigned grants, overlaps;
} contest_t;

static void pass_it_on(contender_t *c, event_t event) {
  contest_t *contest = c->arg;
  if (event != EVENT_ENDED || c->ended != 1)
    return;
  contest->grants += c->status == 0;
  for (size_t i = 0; i < 12; i++)
    contest->overlaps += contest->all[i] != c && remaining_ms(contest->all[i]) > 0;
  if (c->status == 0)
    (void)begin_release(c);
}

TEST(many_clients_wait_for_fresh_servers) {
  nodes_t *nodes = nodes_open(3, NULL);
  belay_lock_options_t options = quarantine_options();
  contest_t contest = {.grants = 0};
  belay_client_t *clients[3];
  for (size_t i = 0; i < 12; i++) {
    for (unsigned j = 0; j < 3 && i % 3 == 0; j++)
      clients[j] = env_connect(nodes->env, server_url(nodes->server[j]), NULL);
    contest.all[i] = contender_over(nodes->env, clients, 3, "door", &options);
    contest.all[i]->then = pass_it_on;
    contest.all[i]->arg = &contest;
  }
  for (size_t i = 0; i < 12; i++)
    assert_error(begin_acquire(contest.all[i], BELAY_FOREVER), 0);
  env_until(nodes->env, contest.grants == 12);
  assert_never(contest.overlaps > 0);
  for (unsigned i = 0; i < 3; i++)
    expect_marker_of(nodes->server[i]);
  nodes_close(nodes);
}

#define VAIN_MS (1500 * slow())
/* Attempts at most every retry_min_ms, each with an acquire and an undo. A loop that answers
 * itself would send far more. */
#define VAIN_ASKS (VAIN_MS / 25 + 10)

static env_t *env_without_info(void) {
  env_t *env = env_open(NULL);
  server_do(env->server, "ACL", "SETUSER", "guest", "on", ">pw", "~*", "&*", "+@all", "-info",
            NULL);
  return env;
}

static belay_client_t *guest_of(env_t *env) {
  static char url[256];
  snprintf(url, sizeof url, "unix://guest:pw@%s", server_path(env->server));
  return env_connect(env, url, NULL);
}

/* The number of SET commands and script calls. */
static int64_t asks_of(env_t *env) {
  return server_calls(env->server, "set") + server_calls(env->server, "eval") +
         server_calls(env->server, "evalsha");
}

/* n waiters for a held lock: each of them tries and undoes at its own pace. */
static void expect_patience(env_t *env, contender_t *const *c, int64_t n) {
  int64_t before = asks_of(env);
  for (int64_t i = 0; i < n; i++)
    assert_int_equal(begin_acquire(c[i], VAIN_MS), 0);
  for (int64_t i = 0; i < n; i++)
    assert_true(outcome(c[i]) < 0);
  env_settle(env);
  assert_between(asks_of(env) - before, 2 * n, 4 * n * VAIN_ASKS);
}

static void expect_no_wake_by_own_undo(env_t *env, bool fair) {
  belay_lock_options_t options = quarantine_options();
  options.fair = fair;
  contender_t *c = contender_of(env, guest_of(env), "door", &options);
  assert_error(try_lock(c), BELAY_EQUARANTINED);
  expect_patience(env, &c, 1);
}

TEST_IN(own_undo_does_not_wake, env, env_without_info()) {
  expect_no_wake_by_own_undo(env, false);
}

TEST_IN(own_undo_does_not_wake_queue, env, env_without_info()) {
  expect_no_wake_by_own_undo(env, true);
}

TEST_IN(undos_of_two_contenders_do_not_wake, env, env_without_info()) {
  belay_lock_options_t options = quarantine_options();
  contender_t *c[2];
  for (int i = 0; i < 2; i++)
    c[i] = contender_of(env, guest_of(env), "door", &options);
  expect_patience(env, c, 2);
}

ENV_TEST(own_undo_does_not_wake_without_replicas) {
  belay_lock_options_t options = with_ttl(TTL);
  options.min_replicas = 1;
  options.replica_timeout_ms = 1;
  contender_t *c = contender_new(env, "door", &options);
  assert_error(try_lock(c), BELAY_ENOREPLICAS);
  expect_patience(env, &c, 1);
}

TEST_BEGIN {
  start_veterans();
}

TEST_END {
  stop_veterans();
}
