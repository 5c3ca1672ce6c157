/* A holder with a watchdog asks at once when the server may have lost the lease, not at its next
 * renewal, which these tests do not reach. */
#include "support/fixtures/env.h"
#include "support/deployments/nodes.h"
#include "support/fixtures/admin/views.h"

enum { TTL = 300000, SOON_MS = 30000 };

static belay_lock_options_t long_options(void) {
  belay_lock_options_t options = watched(TTL);
  options.notice_break = true;
  return options;
}

static contender_t *hold(env_t *env, bool fair) {
  belay_lock_options_t options = long_options();
  options.fair = fair;
  belay_client_t *client = env_connect(env, server_url(env->server), NULL);
  contender_t *c = contender_of(env, client, "door", &options);
  assert_error(acquire(c, 10000 * slow()), 0);
  return c;
}

/* Waits until the first queries, which follow the subscription, are answered. */
static void hold_quietly(env_t *env, const contender_t *c) {
  env_until(env, server_calls(env->server, "pexpire") > 0 || c->lost > 0);
  env_settle(env);
}

static void expect_lost_soon(contender_t *c, int64_t since) {
  await_loss(c, BELAY_LOST_TAKEN);
  assert_true(clock_since_ms(since) < SOON_MS);
}

ENV_TEST(empty_server_is_noticed) {
  contender_t *c = hold(env, false);
  int64_t began = clock_now();
  server_kill(env->server);
  server_restart(env->server);
  expect_lost_soon(c, began);
}

ENV_TEST(server_back_with_data) {
  contender_t *c = hold(env, false);
  server_restart_keeping(env->server);
  env_until(env, server_calls(env->server, "pexpire") > 0); /* of the new run */
  env_settle(env);
  assert_int_equal(c->lost, 0);
  assert_true(is_on_server(c));
}

/* A majority still has the key. The node that lost it gets it again. */
TEST_IN(one_of_three_servers_back_empty, nodes, nodes_open(3, NULL)) {
  nodes_warm(nodes);
  belay_lock_options_t options = watched(TTL);
  options.quarantine = BELAY_QUARANTINE_OFF;
  contender_t *c = nodes_contender(nodes, "door", &options);
  assert_error(acquire(c, 10000 * slow()), 0);
  env_until(nodes->env, nodes_holding(nodes, c) == 3);
  int64_t began = clock_now();
  nodes_kill(nodes, 1);
  nodes_restart(nodes, 1);
  env_until(nodes->env, c->lost > 0 || server_calls(nodes->server[0], "get") > 0);
  assert_true(clock_since_ms(began) < SOON_MS);
  assert_int_equal(c->lost, 0);
  assert_true(remaining_ms(c) > 0);
}

TEST(break_is_noticed) {
  for (int fair = 0; fair < 2; fair++) {
    env_t *env = env_open(NULL);
    contender_t *c = hold(env, fair == 1);
    hold_quietly(env, c);
    assert_int_equal(c->lost, 0);
    int64_t began = clock_now();
    view_t view;
    belay_broken_t broken;
    assert_error(view_held(env, BELAY_HELD_LOCK, "door", &view), 0);
    assert_error(break_held(env, &view.held, &broken), 0);
    assert_int_equal(broken.removed, 1);
    expect_lost_soon(c, began);
    env_close(env);
  }
}

/* The loss of the lease may have been missed while the subscription was down. */
ENV_TEST(break_without_subscription) {
  contender_t *c = hold(env, false);
  hold_quietly(env, c);
  int64_t began = clock_now();
  server_do(env->server, "DEL", key_of(c), NULL);
  server_do(env->server, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
  expect_lost_soon(c, began);
}
