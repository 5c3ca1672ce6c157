/* Redlock while it is held: renewed, extended and lost by majorities, and nodes that forgot it. */
#include <stdio.h>

#include "support/deployments/nodes.h"
#include "support/servers/quarantine.h"

static belay_lock_options_t renewed(int64_t ttl_ms) {
  belay_lock_options_t options = unhurried_options(ttl_ms);
  options.watchdog = BELAY_WATCHDOG_ON;
  return options;
}

/* Five nodes, and a lock that all of them have granted. */
static contender_t *open_held(const belay_lock_options_t *options) {
  nodes_t *nodes = nodes_open(5, NULL);
  contender_t *c = nodes_contender(nodes, "door", options);
  c->arg = nodes;
  nodes_warm(nodes);
  assert_error(acquire(c, 10000), 0);
  nodes_settle(nodes);
  assert_int_equal(nodes_holding(nodes, c), 5);
  return c;
}

/* Defines a test with `nodes`, five of them, and `c`, a lock that all of them have granted. */
#define HELD_TEST(name, options)                                                                   \
  static void held_##name(nodes_t *nodes, contender_t *c);                                         \
  TEST(name) {                                                                                     \
    belay_lock_options_t options_ = options;                                                       \
    contender_t *c = open_held(&options_);                                                         \
    nodes_t *nodes = c->arg;                                                                       \
    held_##name(nodes, c);                                                                         \
    nodes_close(nodes);                                                                            \
  }                                                                                                \
  static void held_##name(nodes_t *nodes, contender_t *c)

static belay_lock_options_t prompt_options(void) {
  belay_lock_options_t options = redlock_options(60000);
  options.timeout_ms = prompt_ms();
  return options;
}

static void forget(nodes_t *nodes, contender_t *c, unsigned node) {
  server_do(nodes->server[node], "DEL", key_of(c), NULL);
}

static void pause_pair(nodes_t *nodes, unsigned first) {
  server_pause(nodes->server[first]);
  server_pause(nodes->server[first + 1]);
}

static void resume_pair(nodes_t *nodes, unsigned first) {
  server_resume(nodes->server[first]);
  server_resume(nodes->server[first + 1]);
}

static int64_t pttl_at(nodes_t *nodes, contender_t *c, unsigned node) {
  return server_integer(nodes->server[node], "PTTL", key_of(c), NULL);
}

HELD_TEST(renewed_by_majority, renewed(kept_ttl())) {
  const int64_t ttl_ms = kept_ttl();
  nodes_kill(nodes, 2);
  for (int i = 0; i < 4; i++) {
    env_run_for(nodes->env, ttl_ms / 2);
    assert_true(belay_lock_remaining_us(c->lock) > 0);
  }
  assert_int_equal(c->lost, 0);
  assert_int_equal(nodes_holding(nodes, c), 3);
  assert_error(release(c), 0);
  nodes_restart(nodes, 2);
  nodes_expect_no_key(nodes);
}

HELD_TEST(renewed_with_stalled_minority, renewed(kept_ttl())) {
  const int64_t ttl_ms = kept_ttl();
  nodes_pause(nodes, 2);
  for (int i = 0; i < 4; i++) {
    env_run_for(nodes->env, ttl_ms / 2);
    assert_true(belay_lock_remaining_us(c->lock) > 0);
  }
  nodes_resume(nodes);
  env_until(nodes->env, nodes_holding(nodes, c) == 5);
  assert_int_equal(c->lost, 0);
  assert_error(release(c), 0);
  nodes_expect_no_key(nodes);
}

/* One after the other, so that there is always a majority: in the end none is as it was. */
HELD_TEST(empty_nodes_get_the_key, renewed(kept_ttl())) {
  for (unsigned i = 0; i < 5; i++) {
    server_restart(nodes->server[i]);
    env_until(nodes->env, nodes_holding(nodes, c) == 5);
    env_run_for(nodes->env, kept_ttl()); /* renewed at least once more, and it counts again */
  }
  assert_int_equal(c->lost, 0);
  assert_true(belay_lock_remaining_us(c->lock) > 0);
}

static void expect_loss_at_its_deadline(contender_t *c) {
  int64_t deadline = believed_until(c);
  assert_int_equal(c->lost, 0);
  await_loss_at(c, deadline);
}

TEST(expires_with_stalled_majority) {
  for (int watchdog = 0; watchdog < 2; watchdog++)
    for (unsigned paused = 3; paused <= 5; paused += 2) {
      belay_lock_options_t options = watchdog ? renewed(kept_ttl()) : unhurried_options(kept_ttl());
      contender_t *c = open_held(&options);
      nodes_t *nodes = c->arg;
      nodes_pause(nodes, paused);
      expect_loss_at_its_deadline(c);
      assert_error(release(c), BELAY_ENOTOWNER);
      nodes_resume(nodes);
      nodes_expect_no_key(nodes);
      assert_int_equal(c->lost, 1);
      nodes_close(nodes);
    }
}

HELD_TEST(expires_with_killed_majority, renewed(kept_ttl())) {
  nodes_kill(nodes, 3);
  expect_loss_at_its_deadline(c);
  nodes_restart(nodes, 3);
  nodes_expect_no_key(nodes);
}

HELD_TEST(majority_back_in_time, renewed(2 * kept_ttl())) {
  nodes_pause(nodes, 4);
  env_run_for(nodes->env, kept_ttl());
  nodes_resume(nodes);
  env_run_for(nodes->env, 3 * kept_ttl());
  assert_int_equal(c->lost, 0);
  assert_int_equal(nodes_holding(nodes, c), 5);
}

static void take_away(nodes_t *nodes, contender_t *c, unsigned node, bool occupy) {
  forget(nodes, c, node);
  if (occupy)
    nodes_occupy(nodes, node, c, 60000);
}

/* Deletes the key on `count` nodes, or gives it to another owner. */
static void lose_on(unsigned count, bool occupy) {
  const int64_t ttl_ms = kept_ttl();
  belay_lock_options_t options = renewed(ttl_ms);
  contender_t *c = open_held(&options);
  nodes_t *nodes = c->arg;
  for (unsigned i = 0; i < count; i++)
    take_away(nodes, c, i, occupy);
  int64_t began = clock_now();
  env_until(nodes->env, c->lost == 1 || clock_since_ms(began) > ttl_ms * 5 / 4);
  if (count < 3) {
    assert_int_equal(c->lost, 0);
    assert_int_equal(nodes_holding(nodes, c), occupy ? 5 - count : 5);
    assert_error(release(c), 0);
  } else {
    assert_int_equal(c->lost, 1);
    assert_string_equal(belay_lost_name(c->reason), "taken");
    assert_true((c->lost_time - began) / MS < ttl_ms / 3 + lag());
    assert_error(release(c), BELAY_ENOTOWNER);
  }
  nodes_settle(nodes);
  assert_int_equal(nodes_keys(nodes), occupy ? count : 0);
  for (unsigned i = 0; occupy && i < count; i++)
    assert_string_equal(nodes_value(nodes, i, c), "somebody else");
  nodes_close(nodes);
}

TEST(minority_lost_key) {
  for (unsigned count = 1; count <= 2; count++)
    lose_on(count, false);
}

TEST(minority_has_foreign_key) {
  for (unsigned count = 1; count <= 2; count++)
    lose_on(count, true);
}

TEST(majority_lost_key) {
  for (unsigned count = 3; count <= 5; count++)
    lose_on(count, false);
}

TEST(majority_has_foreign_key) {
  for (unsigned count = 3; count <= 5; count++)
    lose_on(count, true);
}

/* Extends it until a node that lost the key has it again: that takes a renewal, or two, the
 * first of which learns of it. Returns how long the lease would have run without the last, in
 * milliseconds. */
static int64_t extend_until_restored(nodes_t *nodes, contender_t *c, unsigned node,
                                     int64_t apart_ms) {
  int64_t left_ms = 0;
  for (int i = 0; i < 2 && nodes_value(nodes, node, c) == NULL; i++) {
    env_run_for(nodes->env, apart_ms);
    left_ms = remaining_ms(c);
    assert_error(extend(c, BELAY_DEFAULT), 0);
    nodes_settle(nodes);
  }
  assert_non_null(nodes_value(nodes, node, c));
  return left_ms;
}

/* Not for a whole ttl: if there is no majority after all, it must not be in anybody's way for
 * longer. */
HELD_TEST(restored_key_has_rest_of_lease, unhurried_options(3000 * slow())) {
  const int64_t ttl_ms = 3000 * slow(), drift_ms = ttl_ms / 100 + 2;
  forget(nodes, c, 0);
  int64_t left_ms = extend_until_restored(nodes, c, 0, ttl_ms / 4);
  assert_between(pttl_at(nodes, c, 0), 1, left_ms + drift_ms);
  assert_true(pttl_at(nodes, c, 1) > left_ms + drift_ms);
}

/* Two nodes that lost the key were given it again, and a third is gone. Five less three is no
 * majority. */
HELD_TEST(restored_keys_make_no_majority, renewed(kept_ttl())) {
  server_kill(nodes->server[2]);
  forget(nodes, c, 0);
  forget(nodes, c, 1);
  int64_t deadline = believed_until(c);
  env_until(nodes->env, nodes_holding(nodes, c) == 4);
  env_run_for(nodes->env, 20 * slow());
  assert_error(extend(c, 60000), BELAY_ENOQUORUM);
  await_loss_at(c, deadline);
  server_restart(nodes->server[2]);
  nodes_expect_no_key(nodes);
}

/* A majority lost the key and was given it again; but that answer never came. */
HELD_TEST(lost_retakes_make_no_majority, prompt_options()) {
  assert_error(extend(c, BELAY_DEFAULT), 0); /* the script is known everywhere */
  nodes_settle(nodes);
  for (unsigned i = 0; i < 3; i++)
    forget(nodes, c, i);
  nodes_pause(nodes, 3);
  assert_error(extend(c, BELAY_DEFAULT), BELAY_ENOQUORUM);
  nodes_resume(nodes);
  nodes_warm(nodes); /* by now they have done what they were asked to */
  assert_true(extend(c, BELAY_DEFAULT) != 0);
}

/* Two of the five nodes forget the lock. */
static void forget_on_two(nodes_t *nodes, contender_t *c) {
  forget(nodes, c, 0);
  forget(nodes, c, 1);
}

/* Two nodes were given the key again, and the three others have extended it since: then one of
 * those may lose it. */
HELD_TEST(restored_key_counts_after_majority, unhurried_options(60000)) {
  forget_on_two(nodes, c);
  extend_until_restored(nodes, c, 0, 0);
  assert_error(extend(c, BELAY_DEFAULT), 0);
  nodes_settle(nodes);
  forget(nodes, c, 2);
  extend_until_restored(nodes, c, 2, 0);
  assert_int_equal(nodes_holding(nodes, c), 5);
  assert_int_equal(c->lost, 0);
}

/* The next majority is the next one, in whatever order the answers come. */
HELD_TEST(late_restored_key_counts, unhurried_options(60000)) {
  forget_on_two(nodes, c);
  assert_error(extend(c, BELAY_DEFAULT), 0);
  nodes_settle(nodes);
  pause_pair(nodes, 0); /* set again after the others have decided */
  assert_error(extend(c, BELAY_DEFAULT), 0);
  resume_pair(nodes, 0);
  nodes_settle(nodes);
  assert_int_equal(nodes_holding(nodes, c), 5);
  pause_pair(nodes, 3); /* and first to answer in the next */
  assert_error(begin_extend(c, BELAY_DEFAULT), 0);
  env_until(nodes->env, tally_of(c).votes[BELAY_VOTE_RESTORED] == 2);
  resume_pair(nodes, 3);
  assert_error(extend_outcome(c), 0);
  nodes_settle(nodes);
  forget(nodes, c, 2);
  pause_pair(nodes, 0);
  assert_error(begin_extend(c, BELAY_DEFAULT), 0);
  env_until(nodes->env, tally_of(c).votes[BELAY_VOTE_HELD] == 1);
  assert_true(belay_lock_remaining_us(c->lock) > 0);
  resume_pair(nodes, 0);
  assert_error(extend_outcome(c), 0);
  assert_int_equal(c->lost, 0);
}

HELD_TEST(failed_extend_keeps_deadline, unhurried_options(10000)) {
  nodes_pause(nodes, 3);
  int64_t before_ms = remaining_ms(c);
  assert_error(extend(c, 60000), BELAY_ENOQUORUM);
  assert_between(remaining_ms(c), 1, before_ms);
  assert_int_equal(c->lost, 0);
  nodes_resume(nodes);
  nodes_warm(nodes);
  assert_error(extend(c, 60000), 0);
  assert_true(remaining_ms(c) > 50000);
  assert_error(release(c), 0);
  nodes_expect_no_key(nodes);
}

HELD_TEST(extend_to_shorter_ttl, prompt_options()) {
  nodes_pause(nodes, 3);
  assert_error(begin_extend(c, 5000), 0);
  assert_between(remaining_ms(c), 1, 4948);
  assert_error(extend_outcome(c), BELAY_ENOQUORUM);
  assert_between(remaining_ms(c), 1, 4948);
  nodes_resume(nodes);
}

HELD_TEST(extend_by_majority, unhurried_options(10000)) {
  nodes_pause(nodes, 2);
  assert_error(extend(c, 60000), 0);
  assert_true(remaining_ms(c) > 50000);
}

static void while_idle(nodes_t *nodes, contender_t *c) {
  (void)nodes, (void)c;
}

static void while_held(nodes_t *nodes, contender_t *c) {
  assert_error(acquire(c, 10000), 0);
  nodes_settle(nodes);
}

static void while_waiting(nodes_t *nodes, contender_t *c) {
  for (unsigned i = 0; i < 3; i++)
    nodes_occupy(nodes, i, c, 60000);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  env_run_for(nodes->env, 30);
}

static void while_being_acquired(nodes_t *nodes, contender_t *c) {
  nodes_pause(nodes, 3);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
}

static const struct {
  void (*enter)(nodes_t *nodes, contender_t *c);
  int status; /* status of the operation when it ends */
  unsigned foreign_keys;
} doings[] = {
    {while_idle, 0, 0},
    {while_held, 0, 0},
    {while_waiting, BELAY_ECANCELED, 3},
    {while_being_acquired, BELAY_ECANCELED, 0},
};

/* The handle also waits for the late replies of other members: no key is left on any node. */
TEST(close_of_one_client) {
  for (size_t i = 0; i < sizeof doings / sizeof *doings; i++)
    for (unsigned node = 0; node < 5; node += 4) {
      nodes_t *nodes = nodes_open(5, NULL);
      belay_lock_options_t options = unhurried_options(60000);
      contender_t *c = nodes_contender(nodes, "door", &options);
      nodes_warm(nodes);
      doings[i].enter(nodes, c);
      assert_error(begin_close_of(nodes->env, nodes->client[node]), 0);
      assert_error(begin_close(c), BELAY_ECLOSING);
      nodes_resume(nodes);
      env_until(nodes->env, nodes->env->client_closed == 1);
      c->lock = NULL;
      assert_int_equal(c->ended, c->begun);
      assert_error(c->status, doings[i].status);
      nodes_settle(nodes);
      assert_int_equal(nodes_keys(nodes), doings[i].foreign_keys);
      nodes_close(nodes);
    }
}
