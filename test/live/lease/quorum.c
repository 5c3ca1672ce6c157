/* Redlock's decision, exhaustively: for every combination of node behaviours, the result follows
 * from the votes. */
#include <stdio.h>

#include "support/deployments/nodes.h"

#define TRIES 6 /* of a pattern on a machine that has other things to do */

static unsigned power(unsigned base, unsigned exponent) {
  return exponent == 0 ? 1 : base * power(base, exponent - 1);
}

static unsigned quorum_of(const nodes_t *nodes) {
  return nodes->n / 2 + 1;
}

static belay_lock_tally_t tally_of(const contender_t *c) {
  belay_lock_tally_t tally;
  belay_lock_tally(c->lock, &tally);
  return tally;
}

static bool is_occupied(unsigned pattern, unsigned node) {
  return (pattern >> node & 1) != 0;
}

static unsigned count_free(unsigned pattern, unsigned n) {
  unsigned count = 0;
  for (unsigned i = 0; i < n; i++)
    count += !is_occupied(pattern, i);
  return count;
}

/* The vote of each node; no vote is correct if the decision came before the node's reply. */
static void expect_occupied_votes(const contender_t *c, unsigned pattern, bool settled) {
  belay_lock_tally_t tally = tally_of(c);
  unsigned votes[BELAY_VOTES] = {0};
  for (unsigned i = 0; i < tally.nodes; i++) {
    bool occupied = is_occupied(pattern, i);
    belay_vote_t vote = tally.node[i].vote;
    votes[vote]++;
    if (vote == BELAY_VOTE_NONE && !settled)
      continue;
    assert_string_equal(belay_vote_name(vote), occupied ? "held" : "granted");
    assert_error(tally.node[i].error, occupied ? BELAY_EHELD : 0);
  }
  assert_memory_equal(votes, tally.votes, sizeof votes);
}

static void expect_decision(const contender_t *c, bool held) {
  belay_lock_tally_t tally = tally_of(c);
  if (held)
    assert_true(tally.votes[BELAY_VOTE_GRANTED] >= tally.quorum);
  else
    assert_true(tally.votes[BELAY_VOTE_HELD] > tally.nodes - tally.quorum);
}

/* Foreign keys are unchanged. The other nodes have the token, or no key. */
static void expect_values(nodes_t *nodes, contender_t *c, unsigned pattern, bool held) {
  char token[256] = "";
  belay_lock_token(c->lock, token, sizeof token);
  for (unsigned i = 0; i < nodes->n; i++) {
    const char *value = nodes_value(nodes, i, c);
    if (is_occupied(pattern, i) || held)
      assert_string_equal(value, is_occupied(pattern, i) ? "somebody else" : token);
    else
      assert_null(value);
  }
}

static void try_occupied(nodes_t *nodes, contender_t *c, unsigned pattern) {
  for (unsigned i = 0; i < nodes->n; i++)
    if (is_occupied(pattern, i))
      nodes_occupy(nodes, i, c, 600000);
  bool held = count_free(pattern, nodes->n) >= quorum_of(nodes);
  assert_error(try_lock(c), held ? 0 : BELAY_EHELD);
  expect_occupied_votes(c, pattern, false);
  expect_decision(c, held);
  nodes_settle(nodes);
  expect_occupied_votes(c, pattern, held);
  expect_values(nodes, c, pattern, held);
  if (held)
    assert_error(release(c), 0);
  nodes_settle(nodes);
  expect_values(nodes, c, pattern, false);
  for (unsigned i = 0; i < nodes->n; i++)
    server_do(nodes->server[i], "DEL", key_of(c), NULL);
}

NODES_TEST(occupied_nodes, 1, 3, 4, 5) {
  belay_lock_options_t options = unhurried_options(10000);
  contender_t *c = nodes_contender(nodes, "door", &options);
  for (unsigned pattern = 0; pattern < power(2, nodes->n); pattern++)
    try_occupied(nodes, c, pattern);
}

typedef enum mood { ANSWERS, REFUSES, HANGS, MOODS } mood_t;

static const struct {
  char letter;
  belay_vote_t vote;
} moods[MOODS] = {
    [ANSWERS] = {'a', BELAY_VOTE_GRANTED},
    [REFUSES] = {'r', BELAY_VOTE_REFUSED},
    [HANGS] = {'h', BELAY_VOTE_TIMED_OUT},
};

typedef struct pattern {
  mood_t mood[BELAY_NODES_MAX];
  unsigned count[MOODS];
  char name[BELAY_NODES_MAX + 1];
} pattern_t;

static pattern_t pattern_of(unsigned number, unsigned n) {
  pattern_t pattern = {.name = ""};
  for (unsigned i = 0; i < n; i++, number /= MOODS) {
    pattern.mood[i] = (mood_t)(number % MOODS);
    pattern.count[pattern.mood[i]]++;
    pattern.name[i] = moods[pattern.mood[i]].letter;
  }
  return pattern;
}

static void set_moods(nodes_t *nodes, const pattern_t *pattern) {
  for (unsigned i = 0; i < nodes->n; i++) {
    server_do(nodes->server[i], "CONFIG", "SET", "maxmemory",
              pattern->mood[i] == REFUSES ? "1" : "0", NULL);
    if (pattern->mood[i] == HANGS)
      server_pause(nodes->server[i]);
  }
}

/* The number of votes that are missing or do not fit the behaviour of the node. */
static unsigned wrong_votes(const contender_t *c, const pattern_t *pattern, bool settled) {
  belay_lock_tally_t tally = tally_of(c);
  unsigned wrong = 0;
  for (unsigned i = 0; i < tally.nodes; i++) {
    belay_vote_t vote = tally.node[i].vote;
    int error = tally.node[i].error;
    if (vote == BELAY_VOTE_NONE && !settled)
      continue;
    wrong += vote != moods[pattern->mood[i]].vote;
    wrong += (error == 0) != (pattern->mood[i] == ANSWERS);
    wrong += pattern->mood[i] == REFUSES && error != BELAY_EOOM;
  }
  return wrong;
}

/* The received votes allow this decision, on a machine of any speed. */
static void expect_votes_that_decide(const contender_t *c) {
  belay_lock_tally_t tally = tally_of(c);
  unsigned yes = tally.votes[BELAY_VOTE_GRANTED];
  unsigned no = tally.nodes - yes - tally.votes[BELAY_VOTE_NONE];
  if (c->status == 0)
    assert_true(yes >= tally.quorum);
  else
    assert_true(no > tally.nodes - tally.quorum);
}

typedef struct complaint {
  char text[160];
} complaint_t;

/* Waits for the nodes that were not needed: their votes must fit, too. */
static bool comes_right(const contender_t *c, const pattern_t *pattern) {
  int64_t began = clock_now();
  while (wrong_votes(c, pattern, true) > 0) {
    if (clock_since_ms(began) > 1000 * slow())
      return false;
    env_run_for(c->env, 5);
  }
  return true;
}

/* True if the nodes that reply at once decide the round. Without a possible majority, the
 * hanging nodes still matter if all of them can refuse for a lasting reason: the status would
 * name it. */
static bool is_soon_decided(const nodes_t *nodes, const pattern_t *pattern) {
  unsigned spare = nodes->n - quorum_of(nodes);
  return pattern->count[ANSWERS] >= quorum_of(nodes) ||
         (pattern->count[REFUSES] > spare && pattern->count[HANGS] <= spare);
}

/* One attempt. Returns true if it is as expected; otherwise the complaint has the reason. */
static bool attempt(nodes_t *nodes, contender_t *c, const pattern_t *pattern, int64_t deadline_ms,
                    complaint_t *complaint) {
  int64_t most_ms = is_soon_decided(nodes, pattern) ? deadline_ms / 2 : deadline_ms + 20 * slow();
  bool may = pattern->count[ANSWERS] >= quorum_of(nodes);
  int expected = may ? 0 : BELAY_ENOQUORUM;
  set_moods(nodes, pattern);
  int64_t began = clock_now();
  int status = try_lock(c);
  int64_t took_ms = (c->ended_time - began) / MS;
  assert_true(status != 0 || may); /* for every transition of the machine */
  expect_votes_that_decide(c);
  unsigned wrong = wrong_votes(c, pattern, false);
  bool settled = status != 0 || comes_right(c, pattern);
  snprintf(complaint->text, sizeof complaint->text,
           "%s: %s for %s, %u wrong votes%s, after %lld of %lld ms", pattern->name,
           belay_err_name(status), belay_err_name(expected), wrong,
           settled ? "" : ", also when settled", (long long)took_ms, (long long)most_ms);
  return status == expected && wrong == 0 && settled && took_ms <= most_ms;
}

/* Stalled nodes continue: no node keeps a key of this client, even after allocation failures. */
static void expect_all_undone(nodes_t *nodes, contender_t *c) {
  nodes_resume(nodes);
  if (belay_lock_remaining_us(c->lock) > 0)
    (void)release(c);
  nodes_warm(nodes);
  nodes_expect_no_key(nodes);
}

static void try_pattern(nodes_t *nodes, contender_t *c, const pattern_t *pattern,
                        int64_t deadline_ms) {
  complaint_t complaint;
  for (unsigned tries = 0; tries < TRIES; tries++) {
    bool right = attempt(nodes, c, pattern, deadline_ms, &complaint);
    expect_all_undone(nodes, c);
    if (right)
      return;
    print_message("# once more: %s\n", complaint.text);
  }
  fail_msg("%s", complaint.text);
}

/* All patterns use the same servers, connections and handle. */
NODES_TEST(node_faults, 3, 4, 5) {
  belay_lock_options_t options = redlock_options(10000);
  int64_t deadline_ms = 50;
  if (slow() > 1)
    deadline_ms = options.timeout_ms = 50 * slow(); /* the default is too little */
  contender_t *c = nodes_contender(nodes, "door", &options);
  nodes_warm(nodes);
  for (unsigned number = 0; number < power(MOODS, nodes->n); number++) {
    pattern_t pattern = pattern_of(number, nodes->n);
    try_pattern(nodes, c, &pattern, deadline_ms);
  }
}
