/* Fencing numbers of locks: each grant's is larger than all before it, whatever becomes of the
 * counters. */
#include <inttypes.h>
#include <stdio.h>

#include "scripts.gen.h"
#include "support/fixtures/lease/fencing.h"

NODES_TEST(fence_grows_with_each_grant, 1, 3, 5) {
  contender_t *a = fenced(nodes, "door"), *b = fenced(nodes, "door");
  uint64_t last = 0;
  for (int i = 0; i < 100; i++)
    last = grow(i % 3 == 0 ? a : b, last);
}

ENV_TEST(fence_of_plain_lock) {
  belay_lock_options_t options = with_ttl(10000);
  options.fencing = true;
  contender_t *a = contender_new(env, "door", &options), *b = contender_new(env, "door", &options);
  uint64_t last = 0;
  for (int i = 0; i < 100; i++)
    last = grow(i % 2 == 0 ? a : b, last);
}

static void expect_growth_after(nodes_t *nodes, const char *const *loss) {
  contender_t *c = fenced(nodes, "door");
  uint64_t last = 0;
  for (int i = 0; i < 20; i++) {
    last = grow(c, last);
    for (unsigned j = 0; j < nodes->n; j++)
      server_do(nodes->server[j], loss[0], loss[1] != NULL ? loss[1] : counter_of(c), NULL);
  }
}

NODES_TEST(fence_grows_after_data_loss, 1, 3) {
  static const char *const losses[][2] = {{"SCRIPT", "FLUSH"}, {"DEL", NULL}, {"FLUSHALL", "SYNC"}};
  for (int i = 0; i < 3; i++)
    expect_growth_after(nodes, losses[i]);
}

NODES_TEST(fence_of_hold_is_constant, 1, 3) {
  belay_lock_options_t options = fencing_options();
  options.ttl_ms = kept_ttl();
  options.timeout_ms = kept_ttl() / 10;
  options.watchdog = BELAY_WATCHDOG_ON;
  contender_t *c = nodes_contender(nodes, "door", &options);
  assert_int_equal(fence_of(c), 0);
  assert_error(acquire(c, 5000 * slow()), 0);
  uint64_t fence = fence_of(c);
  assert_true(fence > 0);
  env_run_for(nodes->env, kept_ttl() * 5 / 4); /* renewed some times */
  assert_int_equal(c->lost, 0);
  assert_int_equal(fence_of(c), fence);
  for (unsigned i = 0; i < nodes->n; i++)
    server_do(nodes->server[i], "SET", key_of(c), "somebody else", "PX", "600000", NULL);
  env_until(nodes->env, c->lost == 1);
  assert_int_equal(fence_of(c), 0);
  assert_error(try_lock(c), BELAY_EHELD);
  assert_int_equal(fence_of(c), 0);
}

TEST_IN(no_fence_without_option, nodes, nodes_open(1, NULL)) {
  belay_lock_options_t options = redlock_options(10000);
  contender_t *c = nodes_contender(nodes, "door", &options);
  assert_error(try_lock(c), 0);
  assert_int_equal(fence_of(c), 0);
  assert_int_equal(server_keys(nodes->server[0]), 1);
}

TEST_IN(fencing_refused_with_exact_key, nodes, nodes_open(3, NULL)) {
  belay_lock_options_t options = fencing_options();
  belay_lock_t *lock;
  options.key = belay_string("door");
  assert_error(belay_redlock_new(nodes->client, 3, belay_string("door"), &options, &lock),
               BELAY_EINVAL);
  assert_error(belay_lock_new(nodes->env->client, belay_string("door"), &options, &lock),
               BELAY_EINVAL);
}

/* Until all nodes have accepted the same number: a majority is enough for a grant. */
static uint64_t grow_everywhere(contender_t *c, nodes_t *nodes, uint64_t last) {
  for (int tries = 0; tries < 100; tries++) {
    unsigned accepted = 0;
    last = grow(c, last);
    nodes_settle(nodes);
    for (unsigned i = 0; i < nodes->n; i++) {
      const char *number = server_string(nodes->server[i], "HGET", counter_of(c), "number", NULL);
      accepted += number != NULL && strcmp(number, digits(last)) == 0;
    }
    if (accepted == nodes->n)
      return last;
  }
  fail_msg("no number is accepted by all");
  return 0;
}

TEST_IN(counter_ttl_is_a_day_or_more, nodes, nodes_open(3, NULL)) {
  contender_t *c = fenced(nodes, "door");
  (void)grow_everywhere(c, nodes, 0);
  for (unsigned i = 0; i < 3; i++) {
    int64_t ttl = server_integer(nodes->server[i], "PTTL", counter_of(c), NULL);
    assert_true(ttl > 24 * 3600 * 1000 - 60 * 1000);
  }
}

TEST_IN(resent_acquire_keeps_fence, nodes, nodes_open(1, NULL)) {
  contender_t *c = fenced(nodes, "door");
  char first[32], counter[256];
  snprintf(counter, sizeof counter, "%s", counter_of(c));
  for (int i = 0; i < 3; i++) {
    const char *number =
        server_string(nodes->server[0], "EVAL", belay__script_lock_acquire_fenced.text, "2",
                      key_of(c), counter, "token", "60000", "0", DAY_MS, NULL);
    if (i == 0)
      snprintf(first, sizeof first, "%s", number);
    assert_string_equal(number, first);
  }
}

TEST_IN(guard_refuses_earlier_holder, nodes, nodes_open(3, NULL)) {
  contender_t *a = fenced(nodes, "door"), *b = fenced(nodes, "door");
  belay_fence_t resource = {.number = 0};
  char of_a[256], of_b[256];
  assert_error(acquire(a, 5000 * slow()), 0);
  uint64_t number = fence_of(a);
  size_t len = belay_lock_token(a->lock, of_a, sizeof of_a);
  assert_ok(belay_fence_guard(&resource, number, belay_bytes(of_a, len)), release(a));
  assert_error(acquire(b, 5000 * slow()), 0);
  size_t len_b = belay_lock_token(b->lock, of_b, sizeof of_b);
  assert_error(belay_fence_guard(&resource, fence_of(b), belay_bytes(of_b, len_b)), 0);
  assert_error(belay_fence_guard(&resource, number, belay_bytes(of_a, len)), BELAY_EFENCED);
  assert_error(belay_fence_guard(&resource, fence_of(b), belay_bytes(of_a, len)), BELAY_EFENCED);
  assert_error(belay_fence_guard(&resource, fence_of(b), belay_bytes(of_b, len_b)), 0);
}

typedef struct queue {
  uint64_t last;
  unsigned grants, disorder;
} queue_t;

static void take_a_number(contender_t *c, event_t event) {
  queue_t *queue = c->arg;
  if (event != EVENT_ENDED)
    return;
  if (belay_lock_remaining_us(c->lock) > 0) {
    queue->disorder += fence_of(c) <= queue->last;
    queue->last = fence_of(c);
    queue->grants++;
    (void)begin_release(c);
  } else if (queue->grants < 200) {
    (void)begin_acquire(c, BELAY_FOREVER);
  }
}

TEST(fence_grows_under_contention) {
  nodes_t *nodes = nodes_open(3, NULL);
  queue_t queue = {.last = 0};
  belay_lock_options_t options = fencing_options();
  options.retry_min_ms = 1;
  options.retry_max_ms = 20;
  contender_t *all[5];
  for (int i = 0; i < 5; i++) {
    all[i] = nodes_contender(nodes, "door", &options);
    all[i]->then = take_a_number;
    all[i]->arg = &queue;
    assert_error(begin_acquire(all[i], BELAY_FOREVER), 0);
  }
  env_until(nodes->env, queue.grants >= 200);
  assert_int_equal(queue.disorder, 0);
  nodes_close(nodes);
}

TEST_IN(counters_lost_one_by_one, nodes, nodes_open(3, NULL)) {
  contender_t *c = fenced(nodes, "door");
  uint64_t last = in_an_hour(nodes->server[0]); /* so that no clock can help */
  plant_on_all(nodes, c, digits(last));
  for (unsigned i = 0; i < 30; i++) {
    last = grow_everywhere(c, nodes, last);
    server_do(nodes->server[i % 3], "DEL", counter_of(c), NULL);
  }
}

TEST_IN(nodes_restarted_empty_one_by_one, nodes, nodes_open(3, NULL)) {
  contender_t *c = fenced(nodes, "door");
  uint64_t last = 0;
  for (unsigned i = 0; i < 9; i++) {
    last = grow(c, last);
    server_restart(nodes->server[i % 3]);
  }
  (void)grow(c, last);
}

NODES_TEST(fence_exceeds_counter_ahead, 1, 3, 5) {
  contender_t *c = fenced(nodes, "door");
  uint64_t planted = in_an_hour(nodes->server[0]);
  for (unsigned i = 0; i < nodes->n / 2 + 1; i++)
    plant(nodes->server[i], c, digits(planted), "somebody else");
  planted = grow(c, planted);
  (void)grow(c, planted);
}

TEST_IN(counter_ahead_on_minority, nodes, nodes_open(5, NULL)) {
  contender_t *c = fenced(nodes, "door");
  uint64_t last = grow(c, 0);
  plant(nodes->server[0], c, digits(in_an_hour(nodes->server[0])), "somebody else");
  plant(nodes->server[1], c, digits(in_an_hour(nodes->server[1]) + 1000000), "somebody else");
  for (int i = 0; i < 20; i++)
    last = grow(c, last);
}

/* After the last number there is none: an error, not the same one again. */
NODES_TEST(fence_numbers_used_up, 1, 3) {
  contender_t *c = fenced_for(nodes, 1000 * slow());
  plant_on_all(nodes, c, digits(LARGEST_FENCE - 2));
  uint64_t last = grow(c, LARGEST_FENCE - 2);
  for (int i = 0; i < 3; i++) {
    if (try_lock(c) == 0) {
      if (fence_of(c) <= last || fence_of(c) > LARGEST_FENCE)
        fail_msg("%" PRIu64 " was granted after %" PRIu64, fence_of(c), last);
      last = fence_of(c);
      assert_error(release(c), 0);
    }
  }
  assert_int_not_equal(try_lock(c), 0);
  expect_nothing_left(nodes, c);
}

static void expect_no_grant_from_nonsense(unsigned n, const char *nonsense) {
  nodes_t *nodes = nodes_open(n, NULL);
  contender_t *c = fenced_for(nodes, 1000 * slow());
  plant_on_all(nodes, c, nonsense);
  if (try_lock(c) == 0)
    fail_msg("%" PRIu64 " was granted where the counter is \"%s\"", fence_of(c), nonsense);
  expect_nothing_left(nodes, c);
  nodes_close(nodes);
}

TEST(invalid_counter_refuses_grant) {
  static const char *const all[] = {"", "many", "1e300", "9007199254740992", "9007199254740993"};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    expect_no_grant_from_nonsense(1, all[i]);
    expect_no_grant_from_nonsense(3, all[i]);
  }
}

TEST_IN(counter_of_other_type, nodes, nodes_open(3, NULL)) {
  contender_t *c = fenced(nodes, "door");
  server_do(nodes->server[0], "RPUSH", counter_of(c), "a", NULL);
  uint64_t last = grow(c, 0);
  (void)grow(c, last);
  server_do(nodes->server[1], "SET", counter_of(c), "a", NULL);
  server_do(nodes->server[2], "SET", counter_of(c), "a", NULL);
  assert_error(try_lock(c), BELAY_EWRONGTYPE);
  expect_nothing_left(nodes, c);
}

TEST_IN(counter_of_other_type_on_one_node, nodes, nodes_open(1, NULL)) {
  contender_t *c = fenced(nodes, "door");
  server_do(nodes->server[0], "RPUSH", counter_of(c), "a", NULL);
  assert_error(try_lock(c), BELAY_EWRONGTYPE);
  expect_nothing_left(nodes, c);
}
