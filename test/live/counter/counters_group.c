/* Adds to one counter that begin in the same turn of the loop. */
#include "support/fixtures/data/counters.h"

enum { ADDS = 6 };

static const int64_t deltas[ADDS] = {3, 1, 0, 700, 3, 2};

static void start_adds(counters_t *counters, count_t counts[ADDS], const char *key) {
  for (int i = 0; i < ADDS; i++)
    assert_error(BEGIN(counters, &counts[i], add, KEY(key), deltas[i], on_result), 0);
}

static void expect_sums(count_t counts[ADDS], int64_t value) {
  for (int i = 0; i < ADDS; i++) {
    assert_error(end_of_count(&counts[i]), 0);
    assert_int_equal(counts[i].result.value, value += deltas[i]);
    assert_true(counts[i].result.applied);
  }
}

static void check_adds(counters_t *counters) {
  static count_t counts[ADDS];
  expect_added(counters, "k", 10, 10);
  uint64_t commands = client_stats(counters->env).commands;
  uint64_t grouped = client_stats(counters->env).grouped;
  start_adds(counters, counts, "k");
  expect_sums(counts, 10);
  assert_int_equal(client_stats(counters->env).commands, commands + 1);
  assert_int_equal(client_stats(counters->env).grouped, grouped + ADDS);
  start_adds(counters, counts, "new");
  expect_sums(counts, 0);
}

COUNTER_TEST(adds_of_a_turn_share_a_command) {
  check_adds(counters);
}

COUNTER_TEST_OF(the_same_with_a_ttl, o.ttl_ms = 60000; o.extend_ttl = true) {
  check_adds(counters);
  expect_no_key_for_ever(counters->env->server);
}

COUNTER_TEST_OF(a_group_is_of_one_shard, o.shards = 7) {
  static count_t counts[ADDS];
  start_adds(counters, counts, "k");
  expect_sums(counts, 0);
  expect_got(counters, "k", true, 709);
}

/* Up and down in turn, other keys, a set and a get in between. */
COUNTER_TEST(operations_keep_their_order) {
  static count_t counts[9];
  assert_error(BEGIN(counters, &counts[0], add, KEY("k"), 5, on_result), 0);
  assert_error(BEGIN(counters, &counts[1], add, KEY("k"), 2, on_result), 0);
  assert_error(BEGIN(counters, &counts[2], add, KEY("k"), -1, on_result), 0);
  assert_error(BEGIN(counters, &counts[3], add, KEY("k"), -1, on_result), 0);
  assert_error(BEGIN(counters, &counts[4], add, KEY("other"), 1, on_result), 0);
  assert_error(BEGIN(counters, &counts[5], get, KEY("k"), on_result), 0);
  assert_error(BEGIN(counters, &counts[6], add, KEY("k"), 1, on_result), 0);
  assert_error(BEGIN(counters, &counts[7], set, KEY("k"), 100, on_result), 0);
  assert_error(BEGIN(counters, &counts[8], add, KEY("k"), 1, on_result), 0);
  static const int64_t values[9] = {5, 7, 6, 5, 1, 5, 6, 6, 101};
  for (int i = 0; i < 9; i++) {
    assert_error(end_of_count(&counts[i]), 0);
    assert_int_equal(counts[i].result.value, values[i]);
  }
  assert_int_equal(client_stats(counters->env).grouped, 4);
}

/* The sum does not fit, and some of the adds do. */
static void check_overflow(counters_t *counters) {
  static count_t counts[4];
  static const int64_t most[4] = {4, 4, 4, 2}, least[4] = {-4, -4, -4, -2};
  expect_set(counters, "high", INT64_MAX - 10, false, 0);
  expect_set(counters, "low", INT64_MIN + 10, false, 0);
  for (int low = 0; low < 2; low++) {
    const int64_t *adds = low ? least : most;
    int64_t value = low ? INT64_MIN + 10 : INT64_MAX - 10;
    for (int i = 0; i < 4; i++)
      assert_error(BEGIN(counters, &counts[i], add, KEY(low ? "low" : "high"), adds[i], on_result),
                   0);
    for (int i = 0; i < 4; i++) {
      assert_error(end_of_count(&counts[i]), i == 2 ? BELAY_EOVERFLOW : 0);
      value += i == 2 ? 0 : adds[i];
      if (i != 2)
        assert_int_equal(counts[i].result.value, value);
    }
  }
  /* not even the sum is a number of 64 bits */
  for (int i = 0; i < 2; i++)
    assert_error(BEGIN(counters, &counts[i], add, KEY("sum"), INT64_MAX, on_result), 0);
  assert_error(end_of_count(&counts[0]), 0);
  assert_error(end_of_count(&counts[1]), BELAY_EOVERFLOW);
}

COUNTER_TEST(overflows_concern_single_adds) {
  check_overflow(counters);
}

COUNTER_TEST_OF(overflows_with_a_ttl, o.ttl_ms = 60000) {
  check_overflow(counters);
}

/* n equal adds within bounds, and the values after them as if they came one after the other. */
static void check_bounded(counters_t *counters, int64_t value, int64_t delta, int64_t min,
                          int64_t max) {
  static count_t counts[5];
  const belay_counter_bounds_t bounds = {.min = min, .max = max};
  expect_deleted(counters, "k", client_stats(counters->env).calls > 0);
  expect_set(counters, "k", value, false, 0);
  for (int i = 0; i < 5; i++)
    assert_error(BEGIN(counters, &counts[i], add_bounded, KEY("k"), delta, &bounds, on_result), 0);
  for (int i = 0; i < 5; i++) {
    assert_error(end_of_count(&counts[i]), 0);
    bool fits = value + delta >= min && value + delta <= max;
    value += fits ? delta : 0;
    assert_int_equal(counts[i].result.applied, fits);
    assert_int_equal(counts[i].result.value, value);
  }
}

COUNTER_TEST(bounded_adds_are_as_one_after_the_other) {
  for (int64_t value = -12; value <= 12; value += 3)
    for (int64_t delta = -4; delta <= 4; delta++)
      check_bounded(counters, value, delta, -5, 7);
}

COUNTER_TEST(a_used_up_counter_costs_one_command) {
  static count_t counts[ADDS];
  const belay_counter_bounds_t bounds = {.min = 0, .max = 3};
  expect_added(counters, "k", 2, 2);
  uint64_t commands = client_stats(counters->env).commands;
  for (int i = 0; i < ADDS; i++)
    assert_error(BEGIN(counters, &counts[i], add_bounded, KEY("k"), 2, &bounds, on_result), 0);
  for (int i = 0; i < ADDS; i++) {
    assert_error(end_of_count(&counts[i]), 0);
    assert_false(counts[i].result.applied);
    assert_int_equal(counts[i].result.value, 2);
  }
  assert_int_equal(client_stats(counters->env).commands, commands + 1);
}

COUNTER_TEST(refusals_and_unknown_outcomes_concern_all) {
  static count_t counts[ADDS];
  server_do(counters->env->server, "RPUSH", "belay::counter::{list}", "x", NULL);
  start_adds(counters, counts, "list");
  for (int i = 0; i < ADDS; i++)
    assert_error(end_of_count(&counts[i]), BELAY_EWRONGTYPE);
  server_pause(counters->env->server);
  for (int i = 0; i < ADDS; i++) {
    count_begin(counters, &counts[i]);
    counts[i].request.timeout_ms = 50;
    assert_error(count_begun(counters, &counts[i],
                             belay_counter_add(counters->counter, &counts[i].request, KEY("k"), 1,
                                               on_result)),
                 0);
  }
  for (int i = 0; i < ADDS; i++)
    assert_error(end_of_count(&counts[i]), BELAY_EUNKNOWN);
  server_resume(counters->env->server);
  expect_got(counters, "k", true, ADDS); /* executed late, once */
}

COUNTER_TEST(a_canceled_add_is_not_sent) {
  static count_t counts[ADDS];
  expect_got(counters, "k", false, 0);
  start_adds(counters, counts, "k");
  assert_error(belay_request_cancel(&counts[0].request), 0);
  assert_error(belay_request_cancel(&counts[3].request), 0);
  int64_t value = 0;
  for (int i = 0; i < ADDS; i++) {
    bool is_canceled = i % 3 == 0;
    assert_error(end_of_count(&counts[i]), is_canceled ? BELAY_ECANCELED : 0);
    value += is_canceled ? 0 : deltas[i];
    if (!is_canceled)
      assert_int_equal(counts[i].result.value, value);
  }
  expect_got(counters, "k", true, 6);
  for (int i = 0; i < 2; i++)
    assert_error(BEGIN(counters, &counts[i], add, KEY("two"), 5 - i, on_result), 0);
  assert_error(belay_request_cancel(&counts[0].request), 0);
  assert_error(BEGIN(counters, &counts[2], add, KEY("two"), 1, on_result), 0);
  assert_error(end_of_count(&counts[1]), 0);
  assert_int_equal(counts[1].result.value, 4);
  assert_error(end_of_count(&counts[2]), 0);
  assert_int_equal(counts[2].result.value, 5);
}
