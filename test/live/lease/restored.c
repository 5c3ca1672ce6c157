/* A node that has lost the key and has it again: when it counts, and when it does not yet. */
#include "support/deployments/remote.h"

#define LONG_TTL (3000 * slow())
/* Each way: so an answer comes after twice the time that it may take. */
#define BEYOND_MS (LONG_TTL / 10)

static contender_t *held(remote_t *remote) {
  belay_lock_options_t options = unhurried_options(LONG_TTL);
  contender_t *c = nodes_contender(remote->nodes, "door", &options);
  assert_error(acquire(c, 5 * SECONDS * slow()), 0);
  return c;
}

/* By all nodes, not only by a majority. */
static contender_t *held_by_all(remote_t *remote) {
  contender_t *c = held(remote);
  env_until(remote->nodes->env, tally_of(c).votes[BELAY_VOTE_GRANTED] == 3);
  return c;
}

static void lose_key(remote_t *remote, unsigned node, contender_t *c) {
  server_do(remote->nodes->server[node], "DEL", key_of(c), NULL);
}

/* A renewal that a majority grants, when the third one has said too what it has to say. */
static void renew(contender_t *c) {
  assert_error(extend(c, LONG_TTL), 0);
  env_until(c->env, tally_of(c).node[2].vote != BELAY_VOTE_NONE);
}

/* An extend that reaches the first and the third one, whose answers come too late. */
static void extend_in_vain(remote_t *remote, contender_t *c) {
  relay_delay(remote->relay[0], BEYOND_MS);
  relay_delay(remote->relay[2], BEYOND_MS);
  (void)extend(c, LONG_TTL);
  relay_delay(remote->relay[0], 0);
  relay_delay(remote->relay[2], 0);
  env_run_for(remote->nodes->env, 2 * BEYOND_MS); /* nothing is on its way any more */
}

/* The third node has lost the key and has it again; the second one does not answer. */
static contender_t *held_and_restored(remote_t *remote) {
  contender_t *c = held_by_all(remote);
  lose_key(remote, 2, c);
  renew(c);
  lose_key(remote, 2, c);
  server_pause(remote->nodes->server[1]);
  int64_t left = remaining_ms(c);
  assert_error(extend(c, LONG_TTL), BELAY_ENOQUORUM);
  assert_int_equal(nodes_holding(remote->nodes, c), 2); /* it is there again */
  assert_int_equal(tally_of(c).node[0].vote, BELAY_VOTE_GRANTED);
  assert_int_equal(tally_of(c).node[2].vote, BELAY_VOTE_RESTORED);
  assert_between(remaining_ms(c), 1, left);
  return c;
}

TEST_IN(restored_key_does_not_count, remote, remote_open(3)) {
  contender_t *c = held_and_restored(remote);
  int64_t deadline = believed_until(c);
  while (extend(c, LONG_TTL) == BELAY_ENOQUORUM) /* and it does not come to count by being asked */
    env_run_for(remote->nodes->env, LONG_TTL / 30);
  await_loss_at(c, deadline);
}

TEST_IN(restored_key_counts_after_majority, remote, remote_open(3)) {
  contender_t *c = held_and_restored(remote);
  server_resume(remote->nodes->server[1]);
  remote_reach(remote);
  renew(c);
  server_pause(remote->nodes->server[1]);
  assert_error(extend(c, LONG_TTL), 0);
  assert_int_equal(tally_of(c).node[2].vote, BELAY_VOTE_GRANTED);
  assert_int_equal(c->lost, 0);
}

/* Nor is it a refusal for good, as the other one's is, which is not allowed to be asked any
 * more. */
TEST_IN(restored_key_is_no_refusal, remote, remote_open(3)) {
  contender_t *c = held_by_all(remote);
  lose_key(remote, 1, c);
  assert_error(extend(c, LONG_TTL), 0);
  env_until(c->env, tally_of(c).node[1].vote != BELAY_VOTE_NONE);
  lose_key(remote, 1, c);
  server_do(remote->nodes->server[2], "ACL", "SETUSER", "default", "-evalsha", "-eval", NULL);
  assert_each(BELAY_ENOQUORUM, extend(c, LONG_TTL), belay_lock_error(c->lock));
  assert_int_equal(tally_of(c).node[1].vote, BELAY_VOTE_RESTORED);
}

/* It has lost the key before an extend whose answers come too late. */
TEST_IN(lost_retake_does_not_count, remote, remote_open(3)) {
  server_pause(remote->nodes->server[1]);
  contender_t *c = held(remote);
  renew(c); /* and now the servers know the script */
  lose_key(remote, 2, c);
  extend_in_vain(remote, c);
  assert_true(extend(c, LONG_TTL) != 0);
  env_until(remote->nodes->env, c->lost == 1);
}

/* It is known that it has lost it, and an extend whose answers come too late has set it again. */
TEST_IN(lost_retake_keeps_no_lease, remote, remote_open(3)) {
  contender_t *c = held_by_all(remote);
  lose_key(remote, 2, c);
  renew(c);
  lose_key(remote, 2, c);
  server_pause(remote->nodes->server[1]);
  extend_in_vain(remote, c);
  assert_int_equal(nodes_holding(remote->nodes, c), 2);
  int64_t left = remaining_ms(c);
  assert_true(extend(c, LONG_TTL) != 0);
  assert_int_equal(tally_of(c).node[2].vote, BELAY_VOTE_RESTORED);
  assert_between(remaining_ms(c), 1, left);
}
