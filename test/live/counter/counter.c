/* Fencing counters that are lost, and counters that are at their end. */
#include "support/fixtures/lease/fencing.h"
#include "support/deployments/remote.h"

static contender_t *numbered(remote_t *remote) {
  belay_lock_options_t options = quarantine_options();
  options.fencing = true;
  return nodes_contender(remote->nodes, "door", &options);
}

/* The number is far ahead of all clocks. Two nodes have accepted it, and the second one loses it.
 * The first one is slow: without quarantine the others would agree on a smaller number first. */
TEST_IN(number_grows_after_a_node_loses_it, remote, remote_open_seasoned(3)) {
  nodes_t *nodes = remote->nodes;
  contender_t *before = numbered(remote), *after = numbered(remote);
  ask_until(quarantined(nodes, "season"), BELAY_VOTE_GRANTED, 3);
  nodes_settle(nodes);
  uint64_t ahead = in_an_hour(nodes->server[0]);
  plant(nodes->server[0], before, digits(ahead), "somebody else");
  server_pause(nodes->server[2]);
  uint64_t number = grow(before, ahead);
  server_resume(nodes->server[2]);
  server_restart(nodes->server[1]);
  remote_reach(remote);
  nodes_settle(nodes);
  relay_delay(remote->relay[0], 10 * slow());
  assert_error(wait_for(after), 0);
  assert_true(fence_of(after) > number);
  assert_int_equal(tally_of(after).node[1].vote, BELAY_VOTE_QUARANTINED); /* it was in time */
}

/* There is none after the last one, and it is said so every time. */
static void expect_the_end(nodes_t *nodes, contender_t *c) {
  plant_on_all(nodes, c, digits(LARGEST_FENCE - 1));
  for (int i = 0; i < 3; i++) {
    assert_error(try_lock(c), BELAY_EOVERFLOW);
    assert_non_null(strstr(belay_detail(nodes->env->belay), "fencing number"));
    expect_nothing_left(nodes, c);
  }
}

TEST_IN(plain_lock_without_numbers_left, nodes, nodes_open(1, NULL)) {
  belay_lock_options_t options = fencing_options();
  expect_the_end(nodes, contender_new(nodes->env, "door", &options));
}

TEST_IN(redlock_without_numbers_left, nodes, nodes_open(3, NULL)) {
  expect_the_end(nodes, fenced(nodes, "door"));
}

/* Up to there every grant has one of its own. */
static void expect_the_last_ones(contender_t *c) {
  uint64_t last = grow(c, LARGEST_FENCE - 3);
  assert_true(last == LARGEST_FENCE - 2);
  last = grow(c, last);
  assert_true(last == LARGEST_FENCE - 1);
  assert_error(try_lock(c), BELAY_EOVERFLOW);
}

TEST_IN(last_numbers_are_unique, nodes, nodes_open(1, NULL)) {
  belay_lock_options_t options = fencing_options();
  contender_t *c = contender_new(nodes->env, "door", &options);
  plant_on_all(nodes, c, digits(LARGEST_FENCE - 3));
  expect_the_last_ones(c);
  expect_nothing_left(nodes, c);
}
