/* How nodes agree on a fencing number when proposers are late, overtake each other or find no
 * majority: with the scripts fence_read and fence_accept, and during an acquire. */
#include "support/fixtures/lease/fencing.h"

TEST_IN(paused_proposer_is_refused, nodes, nodes_open(3, NULL)) {
  contender_t *c = fenced(nodes, "door");
  uint64_t paused = read_all_by_hand(nodes, c);
  (void)grow(c, paused);
  nodes_settle(nodes);
  assert_true(accept_all_by_hand(nodes, c, paused, "the paused one") <= 1); /* no majority */
}

/* The counters are ahead of the clocks, so both proposers read the same number. */
TEST_IN(paused_proposer_with_equal_number, nodes, nodes_open(3, NULL)) {
  contender_t *c = fenced(nodes, "door");
  plant_on_all(nodes, c, digits(in_an_hour(nodes->server[0])));
  uint64_t paused = read_all_by_hand(nodes, c);
  assert_error(acquire(c, 5000 * slow()), 0);
  assert_int_equal(fence_of(c), paused);
  nodes_settle(nodes);
  assert_true(accept_all_by_hand(nodes, c, paused, "the paused one") <= 1); /* no majority */
}

/* A minority accepts the number of a paused proposer. The next holder has a larger number, or the
 * same one; then the paused proposer gets no majority. */
TEST_IN(number_accepted_by_minority, nodes, nodes_open(3, NULL)) {
  contender_t *c = fenced(nodes, "door");
  plant_on_all(nodes, c, digits(in_an_hour(nodes->server[0])));
  uint64_t paused = read_all_by_hand(nodes, c);
  assert_int_equal(accept_by_hand(nodes->server[0], c, paused, "the paused one"), 1);
  assert_error(acquire(c, 5000 * slow()), 0);
  nodes_settle(nodes);
  unsigned late = accept_by_hand(nodes->server[1], c, paused, "the paused one") +
                  accept_by_hand(nodes->server[2], c, paused, "the paused one");
  assert_true(fence_of(c) > paused || (fence_of(c) == paused && late == 0));
}

/* Two proposers send their numbers in every order. Bit i of `order` is set if node i receives
 * the second proposal first. Expects the number of nodes that accepted each. */
static void propose(nodes_t *nodes, const contender_t *c, unsigned order, const uint64_t number[2],
                    unsigned accepted[2]) {
  static const char *const token[2] = {"the first", "the second"};
  accepted[0] = accepted[1] = 0;
  for (unsigned i = 0; i < nodes->n; i++) {
    unsigned early = order >> i & 1;
    accepted[early] += accept_by_hand(nodes->server[i], c, number[early], token[early]);
    accepted[!early] += accept_by_hand(nodes->server[i], c, number[!early], token[!early]);
  }
}

static unsigned ones(unsigned bits) {
  unsigned count = 0;
  for (; bits != 0; bits &= bits - 1)
    count++;
  return count;
}

NODES_TEST(equal_numbers_of_two_proposers, 3, 5) {
  const unsigned n = nodes->n;
  contender_t *c = fenced(nodes, "door");
  for (unsigned order = 0; order < 1U << n; order++) {
    uint64_t number = read_all_by_hand(nodes, c), same[2] = {number, number}, accepted_by;
    unsigned accepted[2];
    propose(nodes, c, order, same, accepted);
    accepted_by = accepted[0] + accepted[1];
    assert_int_equal(accepted_by, n); /* each node took the one that it heard first */
    assert_int_equal(accepted[1], ones(order));
    assert_false(accepted[0] > n / 2 && accepted[1] > n / 2);
  }
}

TEST_IN(smaller_number_is_refused, nodes, nodes_open(5, NULL)) {
  contender_t *c = fenced(nodes, "door");
  for (unsigned order = 0; order < 1U << 5; order++) {
    uint64_t number = read_all_by_hand(nodes, c), two[2] = {number, number + 1};
    unsigned accepted[2];
    propose(nodes, c, order, two, accepted);
    assert_int_equal(accepted[0], 5 - ones(order));
    assert_int_equal(accepted[1], 5);
  }
}

/* Accepting is remembered with the token, so that it may be sent again. */
TEST_IN(resent_accept, nodes, nodes_open(1, NULL)) {
  contender_t *c = fenced(nodes, "door");
  uint64_t number = read_by_hand(nodes->server[0], c);
  assert_int_equal(accept_by_hand(nodes->server[0], c, number, "mine"), 1);
  assert_int_equal(accept_by_hand(nodes->server[0], c, number, "mine"), 1);
  assert_int_equal(accept_by_hand(nodes->server[0], c, number, "another's"), 0);
  assert_int_equal(accept_by_hand(nodes->server[0], c, number - 1, "mine"), 0);
}

/* Acts when the client is about to send this script to the first nodes. */
typedef struct trap {
  nodes_t *nodes;
  contender_t *c; /* NULL: not set */
  const char *script;
  void (*generator)(struct trap *trap);
  unsigned times, sprung; /* at most, and so far */
  uint64_t planted;
} trap_t;

static void on_trace(void *ctx, const belay_trace_t *trace) {
  trap_t *trap = ctx;
  if (trap->c == NULL || trap->sprung == trap->times || trace->event != BELAY_TRACE_SENT ||
      strcmp(trace->command, trap->script) != 0)
    return;
  trap->sprung++;
  trap->generator(trap);
}

static trap_t *trap_open(const char *script, void (*generator)(trap_t *trap), unsigned times) {
  trap_t *trap = calloc(1, sizeof *trap);
  belay_client_options_t options = client_options();
  options.trace = on_trace;
  options.trace_ctx = trap;
  trap->script = script;
  trap->generator = generator;
  trap->times = times;
  trap->nodes = nodes_open(3, &options);
  return trap;
}

/* The contender has held the lock before, so its connections are up. */
static void set_trap(trap_t *trap) {
  contender_t *c = fenced_for(trap->nodes, 1500 * slow());
  (void)grow(c, 0);
  nodes_settle(trap->nodes);
  trap->c = c;
}

static void trap_close(trap_t *trap) {
  nodes_close(trap->nodes);
  free(trap);
}

static void overtake(trap_t *trap) {
  trap->planted = read_all_by_hand(trap->nodes, trap->c) + 1000;
  plant_on_all(trap->nodes, trap->c, digits(trap->planted));
}

TEST_IN(overtaken_proposer_reads_again, trap, trap_open("fence_accept", overtake, 1)) {
  set_trap(trap);
  assert_error(try_lock(trap->c), 0);
  assert_int_equal(trap->sprung, 1);
  assert_true(fence_of(trap->c) > trap->planted);
}

TEST_IN(overtaken_proposer_gives_up, trap, trap_open("fence_accept", overtake, 1000000)) {
  set_trap(trap);
  int64_t began = clock_now();
  assert_int_not_equal(try_lock(trap->c), 0);
  assert_true(trap->sprung > 0);
  assert_true(clock_since_ms(began) < 2000 * slow());
  trap->times = 0;
  expect_nothing_left(trap->nodes, trap->c);
}

static void oversleep(trap_t *trap) {
  (void)trap;
  stall_ms(1800 * slow());
}

TEST_IN(deadline_passes_before_accept, trap, trap_open("fence_accept", oversleep, 1)) {
  set_trap(trap);
  assert_int_not_equal(try_lock(trap->c), 0);
  assert_int_equal(trap->sprung, 1);
  expect_nothing_left(trap->nodes, trap->c);
}

static void pause_a_majority(trap_t *trap) {
  server_pause(trap->nodes->server[0]);
  server_pause(trap->nodes->server[1]);
}

static void expect_no_grant_without_a_majority_for(const char *script) {
  trap_t *trap = trap_open(script, pause_a_majority, 1);
  set_trap(trap);
  int64_t began = clock_now();
  int status = try_lock(trap->c);
  assert_true(status == BELAY_ENOQUORUM || status == BELAY_EUNKNOWN || status == BELAY_EEXPIRED);
  assert_int_equal(trap->sprung, 1);
  assert_true(clock_since_ms(began) < 2000 * slow());
  server_resume(trap->nodes->server[0]);
  server_resume(trap->nodes->server[1]);
  expect_nothing_left(trap->nodes, trap->c);
  (void)grow(trap->c, 0);
  trap_close(trap);
}

TEST(majority_stalls_before_read) {
  expect_no_grant_without_a_majority_for("fence_read");
}

TEST(majority_stalls_before_accept) {
  expect_no_grant_without_a_majority_for("fence_accept");
}

TEST_IN(stalled_minority_causes_no_delay, nodes, nodes_open(5, NULL)) {
  contender_t *c = fenced(nodes, "door");
  uint64_t last = grow(c, 0);
  server_pause(nodes->server[1]);
  server_pause(nodes->server[3]);
  int64_t began = clock_now();
  for (int i = 0; i < 10; i++)
    last = grow(c, last);
  assert_true(clock_since_ms(began) < 2500 * slow()); /* half of ten timeouts */
}
