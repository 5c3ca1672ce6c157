/* Grants and renewals that count only once replicas have them. */
#include <stdio.h>

#include "support/deployments/nodes.h"

#define REPLICA_TIMEOUT (300 * slow())
#define TIMEOUT (1500 * slow())

/* ---- a primary and a replica ---- */

typedef struct replicated {
  env_t *env; /* its server is the primary */
  server_t *replica;
} replicated_t;

static server_t *start_primary(void) {
  return server_start(&(server_options_t){.address = "127.0.0.1"});
}

static server_t *start_replica(server_t *primary) {
  server_t *replica = server_start(NULL);
  server_follow(replica, primary);
  return replica;
}

static server_t *the_primary,
    *the_replica; /* of all tests: replicas take a second to get in step */

TEST_BEGIN {
  the_primary = start_primary();
  the_replica = start_replica(the_primary);
}

TEST_END {
  server_stop(the_replica);
  server_stop(the_primary);
}

/* WAIT may take as long as a test likes. */
static belay_client_options_t patient(void) {
  belay_client_options_t options = client_options();
  options.stall_timeout_ms = 60000;
  return options;
}

static replicated_t *replicated_open(void) {
  belay_client_options_t options = patient();
  replicated_t *replicated = malloc(sizeof *replicated);
  *replicated = (replicated_t){.env = env_open_with(the_primary, &options), .replica = the_replica};
  server_resume(the_replica);
  server_do(the_primary, "FLUSHALL", NULL);
  server_do(the_primary, "CONFIG", "RESETSTAT", NULL);
  int64_t began = clock_now();
  while (server_keys(the_replica) > 0 && clock_since_ms(began) < 5000 * slow())
    stall_ms(2);
  return replicated;
}

static void replicated_close(replicated_t *replicated) {
  replicated->env->server = NULL; /* the next test needs it */
  env_close(replicated->env);
  free(replicated);
}

#define REPLICATED_TEST(name) TEST_IN(name, replicated, replicated_open())

static belay_lock_options_t with_replica(belay_lock_options_t options) {
  options.min_replicas = 1;
  options.timeout_ms = TIMEOUT;
  options.replica_timeout_ms = REPLICA_TIMEOUT;
  return options;
}

static contender_t *durable(const replicated_t *replicated, const char *name) {
  belay_lock_options_t options = with_replica(with_ttl(10000 * slow()));
  return contender_new(replicated->env, name, &options);
}

static contender_t *durable_watched(const replicated_t *replicated, int64_t ttl_ms) {
  belay_lock_options_t options = with_replica(watched(ttl_ms));
  options.timeout_ms = ttl_ms / 3;
  options.replica_timeout_ms = ttl_ms / 6;
  return contender_new(replicated->env, "door", &options);
}

/* The replica must not be paused. */
static bool is_on_replica(const replicated_t *replicated, contender_t *c) {
  char token[256];
  const char *value = server_string(replicated->replica, "GET", key_of(c), NULL);
  belay_lock_token(c->lock, token, sizeof token);
  return value != NULL && token[0] != '\0' && strcmp(value, token) == 0;
}

static void expect_no_key(env_t *env) {
  env_settle(env);
  env_until(env, server_keys(env->server) == 0);
  env_run_for(env, 100);
  assert_int_equal(server_keys(env->server), 0);
}

/* ---- acquire ---- */

REPLICATED_TEST(grant_is_on_the_replica) {
  contender_t *c = durable(replicated, "door");
  for (int i = 0; i < 100; i++) {
    assert_error(try_lock(c), 0);
    assert_true(is_on_replica(replicated, c));
    assert_error(release(c), 0);
  }
}

REPLICATED_TEST(concurrent_grants_are_on_the_replica) {
  contender_t *all[40];
  char name[8];
  for (int i = 0; i < 40; i++) {
    snprintf(name, sizeof name, "door%d", i);
    all[i] = durable(replicated, name);
    assert_error(begin_acquire(all[i], 5000 * slow()), 0);
  }
  for (int i = 0; i < 40; i++) {
    assert_error(outcome(all[i]), 0);
    assert_true(is_on_replica(replicated, all[i]));
  }
}

REPLICATED_TEST(no_wait_without_min_replicas) {
  contender_t *plain = contender_new(replicated->env, "plain", NULL),
              *c = durable(replicated, "door");
  assert_error(try_lock(plain), 0);
  assert_error(release(plain), 0);
  assert_int_equal(server_calls(replicated->env->server, "wait"), 0);
  assert_error(try_lock(c), 0);
  assert_int_equal(server_calls(replicated->env->server, "wait"), 1);
}

REPLICATED_TEST(stopped_replica) {
  contender_t *c = durable(replicated, "door");
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
  server_pause(replicated->replica);
  int64_t began = clock_now();
  assert_error(try_lock(c), BELAY_ENOREPLICAS);
  assert_between(clock_since_ms(began), REPLICA_TIMEOUT - 50, TIMEOUT + 200 * slow());
  assert_int_equal(belay_lock_remaining_us(c->lock), 0);
  assert_error(belay_lock_error(c->lock), BELAY_ENOREPLICAS);
  expect_no_key(replicated->env);
}

TEST(no_replica) {
  belay_client_options_t of_client = patient();
  env_t *env = env_open(&of_client);
  belay_lock_options_t options = with_replica(with_ttl(10000));
  assert_error(try_lock(contender_new(env, "door", &options)), BELAY_ENOREPLICAS);
  expect_no_key(env);
  env_close(env);
}

REPLICATED_TEST(replica_returns_for_a_waiter) {
  contender_t *c = durable(replicated, "door");
  server_pause(replicated->replica);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  env_run_for(replicated->env, 3 * REPLICA_TIMEOUT);
  assert_int_equal(c->ended, 0);
  server_resume(replicated->replica);
  assert_error(outcome(c), 0);
  assert_true(is_on_replica(replicated, c));
  env_settle(replicated->env);
  assert_true(is_on_server(c)); /* the undos before it did not harm it */
}

REPLICATED_TEST(cancel_during_wait) {
  contender_t *c = durable(replicated, "door");
  server_pause(replicated->replica);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  env_until(replicated->env, value_of(c) != NULL);
  assert_error(cancel(c), 0);
  assert_error(outcome(c), BELAY_ECANCELED);
  expect_no_key(replicated->env);
}

REPLICATED_TEST(held_by_another_client) {
  contender_t *c = durable(replicated, "door");
  foreign_holder(c, 60000);
  assert_error(try_lock(c), BELAY_EHELD);
  server_pause(replicated->replica);
  assert_error(try_lock(c), BELAY_EHELD);
  assert_string_equal(value_of(c), "somebody else");
}

REPLICATED_TEST(two_replicas_required) {
  belay_lock_options_t options = with_replica(with_ttl(10000 * slow()));
  options.min_replicas = 2;
  contender_t *c = contender_new(replicated->env, "door", &options);
  assert_error(try_lock(c), BELAY_ENOREPLICAS);
  server_t *second = start_replica(replicated->env->server);
  assert_error(acquire(c, 5000 * slow()), 0);
  assert_non_null(server_string(second, "GET", key_of(c), NULL));
  assert_true(is_on_replica(replicated, c));
  server_stop(second);
}

REPLICATED_TEST(fencing_counter_is_on_the_replica) {
  char key[256];
  belay_lock_options_t options = with_replica(with_ttl(10000 * slow()));
  options.fencing = true;
  contender_t *c = contender_new(replicated->env, "door", &options);
  assert_error(try_lock(c), 0);
  assert_true(is_on_replica(replicated, c));
  snprintf(key, sizeof key, "%s::fence", key_of(c));
  const char *number = server_string(replicated->replica, "HGET", key, "number", NULL);
  assert_non_null(number);
  assert_int_equal(strtoull(number, NULL, 10), belay_lock_fence(c->lock));
}

/* ---- renewal, extend ---- */

REPLICATED_TEST(unreplicated_renewals_do_not_count) {
  contender_t *c = durable_watched(replicated, kept_ttl());
  assert_error(try_lock(c), 0);
  env_run_for(replicated->env, kept_ttl() * 5 / 4); /* renewed some times */
  assert_int_equal(c->lost, 0);
  server_pause(replicated->replica);
  env_run_for(replicated->env, 20); /* the confirmation that is still in flight */
  int64_t deadline = believed_until(c);
  env_until(replicated->env, belay_lock_error(c->lock) == BELAY_ENOREPLICAS);
  await_loss_at(c, deadline);
  expect_no_key(replicated->env);
}

REPLICATED_TEST(replica_away_for_less_than_the_ttl) {
  contender_t *c = durable_watched(replicated, 2 * kept_ttl());
  assert_error(try_lock(c), 0);
  server_pause(replicated->replica);
  env_run_for(replicated->env, kept_ttl());
  server_resume(replicated->replica);
  env_run_for(replicated->env, 2 * kept_ttl());
  assert_int_equal(c->lost, 0);
  assert_true(is_on_replica(replicated, c));
}

REPLICATED_TEST(unreplicated_extend_does_not_count) {
  contender_t *c = durable(replicated, "door");
  assert_error(try_lock(c), 0);
  server_pause(replicated->replica);
  assert_error(extend(c, 50000 * slow()), BELAY_ENOREPLICAS);
  assert_between(remaining_ms(c), 1, 10000 * slow());
  server_resume(replicated->replica);
  assert_error(extend(c, 50000 * slow()), 0);
  assert_true(remaining_ms(c) > 40000 * slow());
  assert_between(server_integer(replicated->replica, "PTTL", key_of(c), NULL), 40000 * slow(),
                 50000 * slow());
}

/* The second extend writes nothing, because the primary's ttl is longer. Its WAIT, on another
 * connection, would not cover the replica's state. */
REPLICATED_TEST(shorter_extend_on_a_new_connection) {
  contender_t *c = durable(replicated, "door");
  assert_error(try_lock(c), 0);
  server_pause(replicated->replica);
  assert_error(extend(c, 50000 * slow()), BELAY_ENOREPLICAS);
  (void)server_ask(replicated->env->server, "CLIENT", "KILL", "TYPE", "normal", NULL);
  env_run_for(replicated->env, 500 * slow());
  assert_int_not_equal(extend(c, 30000 * slow()), 0);
  assert_true(remaining_ms(c) <= 10000 * slow());
}

REPLICATED_TEST(other_locks_are_not_delayed) {
  belay_lock_options_t options = with_replica(with_ttl(20000 * slow()));
  options.replica_timeout_ms = 2000 * slow();
  options.timeout_ms = 4000 * slow();
  contender_t *c = contender_new(replicated->env, "door", &options);
  contender_t *plain = contender_new(replicated->env, "plain", NULL);
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
  server_pause(replicated->replica);
  assert_error(begin_acquire(c, 0), 0);
  env_until(replicated->env, value_of(c) != NULL);
  for (int i = 0; i < 10; i++) {
    assert_error(try_lock(plain), 0);
    assert_error(release(plain), 0);
  }
  assert_int_equal(c->ended, 2);
  assert_error(outcome(c), BELAY_ENOREPLICAS);
}

/* ---- scripts that the server does not know any more ---- */

static void flush_scripts(const replicated_t *replicated) {
  server_do(replicated->env->server, "SCRIPT", "FLUSH", NULL);
}

REPLICATED_TEST(script_flush) {
  contender_t *c = durable(replicated, "door");
  for (int i = 0; i < 20; i++) {
    flush_scripts(replicated);
    assert_error(try_lock(c), 0);
    flush_scripts(replicated);
    assert_error(extend(c, (20000 + i) * slow()), 0);
    assert_true(server_integer(replicated->replica, "PTTL", key_of(c), NULL) > 10000 * slow());
    flush_scripts(replicated);
    assert_error(release(c), 0);
  }
}

/* The replica has everything, and gets nothing more; and the primary knows no script. */
static void cut_off(const replicated_t *replicated) {
  assert_int_equal(server_integer(replicated->env->server, "WAIT", "1", "5000", NULL), 1);
  server_pause(replicated->replica);
  flush_scripts(replicated);
}

/* After a script that did not run, WAIT would confirm the write before it, which the replica
 * has. */
static void expect_no_false_confirmation(bool fencing) {
  replicated_t *replicated = replicated_open();
  belay_lock_options_t options = with_replica(with_ttl(10000 * slow()));
  options.fencing = fencing;
  contender_t *c = contender_new(replicated->env, "door", &options);
  assert_error(try_lock(c), 0);
  assert_error(extend(c, 10000 * slow()), 0); /* each script was called on this connection */
  cut_off(replicated);
  assert_error(extend(c, 50000 * slow()), BELAY_ENOREPLICAS);
  server_resume(replicated->replica);
  assert_error(release(c), 0);
  cut_off(replicated);
  assert_error(try_lock(c), BELAY_ENOREPLICAS);
  replicated_close(replicated);
}

TEST(script_flush_without_replica) {
  expect_no_false_confirmation(false);
}

TEST(script_flush_without_replica_fencing) {
  expect_no_false_confirmation(true);
}

/* ---- options, and several nodes ---- */

static int new_status(env_t *env, const belay_lock_options_t *options) {
  belay_lock_t *lock;
  int error = belay_lock_new(env->client, belay_string("door"), options, &lock);
  if (error == 0)
    assert_error(belay_lock_close(lock, NULL), 0);
  return error;
}

TEST(option_ranges) {
  belay_client_options_t hasty = client_options(), options = patient();
  hasty.stall_timeout_ms = 1000;
  env_t *env = env_open_at("redis://127.0.0.1:1", &options);
  belay_lock_options_t good = with_replica(with_ttl(10000)), bad = good;
  good.min_replicas = 255;
  good.replica_timeout_ms = good.timeout_ms;
  assert_error(new_status(env, &good), 0);
  good.timeout_ms = good.replica_timeout_ms = 1;
  assert_error(new_status(env, &good), 0);
  good.replica_timeout_ms = BELAY_DEFAULT;
  assert_error(new_status(env, &good), 0);
  bad.min_replicas = 256;
  assert_error(new_status(env, &bad), BELAY_EINVAL);
  bad.min_replicas = 1;
  bad.replica_timeout_ms = 0;
  assert_error(new_status(env, &bad), BELAY_EINVAL);
  bad.replica_timeout_ms = bad.timeout_ms + 1;
  assert_error(new_status(env, &bad), BELAY_EINVAL);
  env_close(env);
  env = env_open_at("redis://127.0.0.1:1",
                    &hasty); /* a connection that is silent for longer is dropped */
  bad.replica_timeout_ms = 501;
  assert_error(new_status(env, &bad), BELAY_EINVAL);
  bad.replica_timeout_ms = 500;
  assert_error(new_status(env, &bad), 0);
  env_close(env);
}

/* Three primaries, each with a replica of its own. */
TEST(replica_of_each_quorum_node) {
  server_t *primary[3], *replica[3];
  belay_client_t *client[3];
  for (int i = 0; i < 3; i++)
    replica[i] = start_replica(primary[i] = start_primary());
  belay_client_options_t of_client = patient();
  env_t *env = env_open_with(primary[0], &of_client);
  for (int i = 0; i < 3; i++)
    client[i] = i == 0 ? env->client : env_connect(env, server_url(primary[i]), &of_client);
  belay_lock_options_t options = redlock_options(20000 * slow());
  options.min_replicas = 1;
  options.timeout_ms = TIMEOUT;
  options.replica_timeout_ms = REPLICA_TIMEOUT;
  contender_t *c = contender_over(env, client, 3, "door", &options);
  belay_lock_tally_t tally;

  server_pause(replica[2]);
  assert_error(acquire(c, 5000 * slow()), 0);
  env_run_for(env, TIMEOUT);
  belay_lock_tally(c->lock, &tally);
  assert_int_equal(tally.votes[BELAY_VOTE_GRANTED], 2);
  assert_int_equal(tally.node[2].vote, BELAY_VOTE_REFUSED);
  assert_error(tally.node[2].error, BELAY_ENOREPLICAS);
  assert_error(release(c), 0);
  env_settle(env); /* on every node */

  server_pause(replica[1]);
  int status = try_lock(c);
  if (status != BELAY_ENOQUORUM && status != BELAY_ENOREPLICAS)
    fail_msg("%s without two replicas of three", belay_err_name(status));
  env_settle(env);
  for (int i = 0; i < 3; i++)
    assert_int_equal(server_keys(primary[i]), 0);
  env_close(env); /* and the first primary */
  for (int i = 0; i < 3; i++)
    server_stop(replica[i]);
  server_stop(primary[1]);
  server_stop(primary[2]);
}
