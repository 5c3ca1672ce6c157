/* The lock while the server, the network or the loop misbehaves. */
#include <stdio.h>

#include "support/fixtures/env.h"
#include "support/deployments/relay.h"

/* Wait until the server has no key, and check that no late execution creates one. */
static void expect_no_key(env_t *env) {
  env_settle(env);
  env_until(env, server_keys(env->server) == 0);
  env_run_for(env, 100);
  assert_int_equal(server_keys(env->server), 0);
}

/* Wait for the loss, which must come at the deadline. */
static void expect_loss_at_its_deadline(contender_t *c) {
  int64_t deadline = believed_until(c);
  assert_int_equal(c->lost, 0);
  await_loss_at(c, deadline);
}

/* ---- a stopped server ---- */

ENV_TEST(lock_without_watchdog_and_a_stopped_server) {
  belay_lock_options_t options = with_ttl(600 * slow());
  contender_t *c = contender_holding(env, "door", &options);
  server_pause(env->server);
  expect_loss_at_its_deadline(c);
  assert_error(release(c), BELAY_ENOTOWNER);
  server_resume(env->server);
  expect_no_key(env);
  assert_int_equal(c->lost, 1);
}

ENV_TEST(lock_with_watchdog_and_a_stopped_server) {
  belay_lock_options_t options = watched(kept_ttl());
  contender_t *c = contender_holding(env, "door", &options);
  env_run_for(env, options.ttl_ms * 5 / 4); /* several renewals */
  assert_int_equal(c->lost, 0);
  server_pause(env->server);
  expect_loss_at_its_deadline(c);
  server_resume(env->server);
  expect_no_key(env);
  assert_int_equal(c->lost, 1);
}

ENV_TEST(server_stop_shorter_than_the_ttl) {
  int64_t ttl = kept_ttl() * 3 / 2;
  belay_lock_options_t options = watched(ttl);
  contender_t *c = contender_holding(env, "door", &options);
  server_pause(env->server);
  env_run_for(env, ttl / 2);
  server_resume(env->server);
  env_run_for(env, ttl);
  assert_int_equal(c->lost, 0);
  assert_true(is_on_server(c));
}

ENV_TEST(acquire_timeout_is_unknown_and_undone) {
  belay_lock_options_t options = lock_options();
  options.timeout_ms = prompt_ms();
  contender_t *c = contender_connected(env, "door", &options);
  server_pause(env->server);
  int64_t began = clock_now();
  assert_error(try_lock(c), BELAY_EUNKNOWN);
  assert_between(clock_since_ms(began), options.timeout_ms - 2, options.timeout_ms + lag());
  assert_int_equal(belay_lock_remaining_us(c->lock), 0);
  server_resume(env->server);
  expect_no_key(env);
  assert_int_equal(client_stats(env).undo_failed, 0);
  assert_int_equal(server_info(env->server, "stats", "expired_keys"), 0);
  assert_true(server_calls(env->server, "set") >= 2); /* the server executed it later */
}

ENV_TEST(canceled_acquire_is_undone) {
  contender_t *c = contender_connected(env, "door", NULL);
  server_pause(env->server);
  uint64_t before = client_stats(env).writes;
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  env_until(env, client_stats(env).writes > before);
  assert_error(cancel(c), 0);
  assert_error(outcome(c), BELAY_ECANCELED);
  server_resume(env->server);
  expect_no_key(env);
  assert_true(server_calls(env->server, "set") >= 2);
}

ENV_TEST(waiter_continues_after_a_timeout) {
  belay_lock_options_t options = lock_options();
  options.timeout_ms = prompt_ms();
  contender_t *c = contender_connected(env, "door", &options);
  server_pause(env->server);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  env_run_for(env, 2 * options.timeout_ms);
  assert_int_equal(c->ended, 2);
  server_resume(env->server);
  assert_error(outcome(c), 0);
  assert_true(is_on_server(c));
  env_settle(env);
  env_run_for(env, 200);
  assert_true(is_on_server(c)); /* the undos of earlier attempts did not remove it */
}

ENV_TEST(release_timeout_is_unknown_and_repeated) {
  belay_lock_options_t options = lock_options();
  options.timeout_ms = prompt_ms();
  contender_t *c = contender_holding(env, "door", &options);
  server_pause(env->server);
  assert_error(release(c), BELAY_EUNKNOWN);
  assert_int_equal(c->lost, 0);
  server_resume(env->server);
  expect_no_key(env);
}

ENV_TEST(late_replies_of_a_busy_server) {
  belay_lock_options_t impatient = lock_options(), patient = lock_options();
  char pause[12];
  snprintf(pause, sizeof pause, "%d", (int)(2 * prompt_ms()));
  impatient.timeout_ms = prompt_ms();
  patient.timeout_ms = 20000;
  contender_t *a = contender_new(env, "a", &impatient), *b = contender_new(env, "b", &patient);
  assert_error(try_lock(a), 0);
  assert_error(release(a), 0);
  server_do(env->server, "CLIENT", "PAUSE", pause, NULL);
  assert_error(begin_acquire(a, 0), 0);
  assert_error(begin_acquire(b, 0), 0);
  assert_error(outcome(a), BELAY_EUNKNOWN);
  assert_error(outcome(b), 0);
  assert_true(client_stats(env).settled_late >= 1);
  assert_error(release(b), 0);
  expect_no_key(env);
}

/* A reply that comes after the ttl is over. */
ENV_TEST(grant_after_the_ttl_is_expired) {
  belay_lock_options_t options = with_ttl(prompt_ms());
  char pause[12];
  snprintf(pause, sizeof pause, "%d", (int)(2 * prompt_ms()));
  options.timeout_ms = 20000;
  contender_t *c = contender_connected(env, "door", &options);
  server_do(env->server, "CLIENT", "PAUSE", pause, NULL);
  assert_error(try_lock(c), BELAY_EEXPIRED);
  assert_int_equal(c->lost, 0);
  expect_no_key(env);
}

/* ---- a blocked loop ---- */

static void stall_for(uv_timer_t *timer) {
  stall_ms(*(int64_t *)timer->data);
}

/* While the loop is blocked, one lock expires and replies for others arrive. */
ENV_TEST_OF(loss_precedes_replies_after_a_stalled_loop, o.timeout_ms = 60000;
            o.stall_timeout_ms = 60000) {
  int64_t ttl = prompt_ms(), pause = ttl + 50;
  belay_lock_options_t options = with_ttl(ttl);
  contender_t *lost = contender_new(env, "lost", &options);
  contender_t *first = contender_new(env, "first", NULL),
              *second = contender_new(env, "second", NULL);
  static uv_timer_t stall; /* closed after this function */
  uv_timer_init(&env->loop, &stall);
  stall.data = &pause;
  assert_error(try_lock(first), 0);
  assert_error(begin_ping(env), 0);
  env_until(env, env->pongs == 1);
  assert_error(try_lock(lost), 0);

  uint64_t before = client_stats(env).writes;
  server_pause(env->server);
  assert_error(begin_release(first), 0);
  assert_error(begin_acquire(second, 0), 0);
  assert_error(begin_ping(env), 0);
  env_until(env, client_stats(env).writes > before);
  server_resume(env->server); /* the replies arrive during the stall */
  uv_timer_start(&stall, stall_for, 0, 0);
  env_until(env, lost->lost == 1 && first->ended == 2 && second->ended == 1 && env->pongs == 2);

  assert_error(first->status, 0);
  assert_error(second->status, 0);
  assert_true(lost->lost_at < first->ended_at);
  assert_true(lost->lost_at < second->ended_at);
  assert_int_equal(lost->lost_at, 4); /* after the three callbacks before the stall */
  belay_stats_t stats;
  belay_stats(env->belay, &stats);
  assert_true(stats.max_gap_ns >= (uint64_t)(ttl * MS));
  uv_close((uv_handle_t *)&stall, NULL);
}

static void stall_when_ended(contender_t *c, event_t event) {
  if (event == EVENT_ENDED)
    stall_ms(*(int64_t *)c->arg);
}

/* A callback of belay blocks the loop while further callbacks are queued. */
TEST(loss_precedes_replies_after_a_stalled_callback) {
  needs_one_process("replies in order");
  env_t *env = env_open(NULL);
  int64_t ttl = prompt_ms(), pause = ttl + 50;
  belay_lock_options_t options = with_ttl(ttl);
  contender_t *lost = contender_new(env, "lost", &options);
  contender_t *first = contender_new(env, "first", NULL),
              *second = contender_new(env, "second", NULL);
  first->then = stall_when_ended;
  first->arg = &pause;
  assert_error(try_lock(lost), 0);
  server_pause(env->server); /* so that both replies arrive together */
  assert_error(begin_acquire(first, 0), 0);
  assert_error(begin_acquire(second, 0), 0);
  env_run_for(env, 20);
  server_resume(env->server);
  env_until(env, lost->lost == 1 && first->ended == 1 && second->ended == 1);
  assert_true(first->ended_at < lost->lost_at);
  assert_true(lost->lost_at < second->ended_at);
  env_close(env);
}

static void check_remaining(uv_timer_t *timer) {
  contender_t *c = timer->data;
  stall_ms(remaining_ms(c) + 5);
  assert_int_equal(c->lost, 0); /* belay has not run yet */
  assert_int_equal(belay_lock_remaining_us(c->lock), 0);
  assert_error(begin_release(c), BELAY_ENOTOWNER);
}

ENV_TEST(remaining_is_0_before_the_loss_is_reported) {
  belay_lock_options_t options = with_ttl(prompt_ms());
  contender_t *c = contender_new(env, "door", &options);
  static uv_timer_t own; /* closed after this function */
  uv_timer_init(&env->loop, &own);
  own.data = c;
  assert_error(try_lock(c), 0);
  uv_timer_start(&own, check_remaining, 0, 0);
  env_until(env, c->lost == 1);
  uv_close((uv_handle_t *)&own, NULL);
}

/* ---- a server that restarts, connections that are lost ---- */

ENV_TEST(restart_during_a_wait) {
  contender_t *waiter = contender_new(env, "door", NULL);
  foreign_holder(waiter, 600000);
  assert_error(begin_acquire(waiter, BELAY_FOREVER), 0);
  env_run_for(env, 200);
  server_terminate(env->server);
  env_run_for(env, 300);
  assert_int_equal(waiter->ended, 0);
  int64_t began = clock_now();
  server_restart(env->server);
  assert_error(outcome(waiter), 0);
  assert_true(clock_since_ms(began) < 5000 * slow());
  assert_true(is_on_server(waiter));
  assert_true(client_stats(env).connects >= 2);
}

ENV_TEST(restart_while_held_is_a_loss_at_the_renewal) {
  belay_lock_options_t options = watched(kept_ttl());
  contender_t *c = contender_holding(env, "door", &options);
  server_kill(env->server);
  server_restart(env->server);
  env_until(env, c->lost == 1);
  assert_int_equal(c->reason, BELAY_LOST_TAKEN);
}

ENV_TEST(wait_continues_without_a_server) {
  contender_t *c = contender_new(env, "door", NULL);
  server_kill(env->server);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  env_run_for(env, 500);
  assert_int_equal(c->ended, 0);
  server_restart(env->server);
  assert_error(outcome(c), 0);
}

TEST(connections_killed_while_held) {
  needs_one_process("the number of killed connections");
  env_t *env = env_open(NULL);
  belay_lock_options_t options = watched(kept_ttl());
  contender_t *c = contender_holding(env, "door", &options);
  for (int i = 0; i < 3; i++) {
    assert_true(server_integer(env->server, "CLIENT", "KILL", "TYPE", "normal", NULL) >= 1);
    env_run_for(env, options.ttl_ms * 3 / 4);
  }
  assert_int_equal(c->lost, 0);
  assert_true(is_on_server(c));
  assert_error(release(c), 0);
  assert_int_equal(server_keys(env->server), 0);
  assert_true(client_stats(env).drops >= 3);
  env_close(env);
}

ENV_TEST(connections_killed_during_a_wait) {
  contender_t *waiter = contender_new(env, "door", NULL);
  foreign_holder(waiter, 600000);
  assert_error(begin_acquire(waiter, BELAY_FOREVER), 0);
  for (int i = 0; i < 5; i++) {
    env_run_for(env, 60);
    server_do(env->server, "CLIENT", "KILL", "TYPE", "normal", NULL);
  }
  env_run_for(env, 100);
  assert_int_equal(waiter->ended, 0);
  server_do(env->server, "DEL", key_of(waiter), NULL);
  assert_error(outcome(waiter), 0);
  assert_true(is_on_server(waiter));
  env_settle(env);
  assert_true(is_on_server(waiter));
}

TEST(connection_killed_during_an_acquire) {
  env_t *env = env_open(NULL);
  contender_t *c = contender_connected(env, "door", NULL);
  if (server_ask(env->server, "CLIENT", "PAUSE", "300", "WRITE", NULL)->type == RESP_ERROR) {
    env_close(env); /* before 6.2 a pause also delayed the KILL */
    skip();
  }
  uint64_t before = client_stats(env).writes;
  assert_error(begin_acquire(c, 0), 0);
  env_until(env, client_stats(env).writes > before);
  server_do(env->server, "CLIENT", "KILL", "TYPE", "normal", NULL);
  assert_error(outcome(c), BELAY_EUNKNOWN);
  expect_no_key(env);
  env_close(env);
}

/* Cut the client's connection while the stopped server has an acquire in its socket: the server
 * executes the acquire later. */
static void check_late_execution(bool waits, bool may_kill) {
  server_t *server = server_start(NULL);
  server_do(server, "ACL", "SETUSER", "guest", "on", ">pw", "~*", "+@all",
            may_kill ? "+client" : "-client", NULL);
  relay_t *relay = relay_start(server_path(server));
  belay_client_options_t client = client_options();
  client.username = "guest";
  client.password = "pw";
  env_t *env = env_open_at(relay_url(relay), &client);
  env->server = server;
  belay_lock_options_t options = lock_options();
  options.timeout_ms = 1000 * slow();
  contender_t *c = contender_connected(env, "door", &options);
  server_pause(server);
  assert_error(begin_acquire(c, waits ? BELAY_FOREVER : 0), 0);
  env_run_for(env, 100); /* the bytes are in the server's socket */
  relay_cut(relay);
  if (!waits) {
    assert_error(outcome(c), BELAY_EUNKNOWN);
  } else {
    env_run_for(env, 100);
    assert_error(cancel(c), 0);
    assert_error(outcome(c), BELAY_ECANCELED);
  }
  server_resume(server);
  env_settle(env);
  env_run_for(env, 300);
  assert_int_equal(server_keys(server), 0);
  assert_int_equal(client_stats(env).undo_failed, 0);
  /* a server before 7 counts all of CLIENT as one */
  assert_true(server_calls(server, "client|kill") + server_calls(server, "client") >= may_kill);
  assert_error(try_lock(c), 0);
  assert_true(is_on_server(c));
  env_close(env);
  relay_stop(relay);
}

TEST(late_execution_of_an_acquire_leaves_no_key) {
  check_late_execution(false, true);
}

TEST(late_execution_of_a_canceled_wait_leaves_no_key) {
  check_late_execution(true, true);
}

TEST(late_execution_without_the_right_to_kill_leaves_no_key) {
  check_late_execution(false, false);
  check_late_execution(true, false);
}

ENV_TEST_WITH_(silent_connection_is_replaced, env_open_relayed, client_options(),
               o.stall_timeout_ms = 300 * slow()) {
  belay_lock_options_t lock = watched(2000 * slow());
  lock.renew_after_ms = 200 * slow();
  contender_t *c = contender_holding(env, "door", &lock);
  relay_silence(env->relay);
  env_run_for(env, 2500 * slow());
  assert_int_equal(c->lost, 0); /* renewed on the next connection */
  assert_true(client_stats(env).drops >= 1);
  assert_true(relay_connections(env->relay) >= 2);
  assert_error(release(c), 0);
}

/* ---- changes by other programs ---- */

ENV_TEST(flushed_scripts_are_sent_again) {
  contender_t *c = contender_new(env, "door", NULL), *other = contender_new(env, "door", NULL);
  for (int i = 0; i < 3; i++) {
    assert_error(try_lock(c), 0);
    server_do(env->server, "SCRIPT", "FLUSH", NULL);
    assert_error(extend(c, 20000), 0);
    server_do(env->server, "SCRIPT", "FLUSH", NULL);
    assert_error(acquire(other, 100), BELAY_ETIMEDOUT);
    server_do(env->server, "SCRIPT", "FLUSH", NULL);
    assert_error(release(c), 0);
    assert_int_equal(server_keys(env->server), 0);
  }
}

ENV_TEST(flushall_is_a_loss_at_the_renewal) {
  int64_t ttl = kept_ttl();
  belay_lock_options_t options = watched(ttl);
  contender_t *c = contender_holding(env, "door", &options);
  server_do(env->server, "FLUSHALL", NULL);
  int64_t began = clock_now();
  env_until(env, c->lost == 1);
  assert_int_equal(c->reason, BELAY_LOST_TAKEN);
  assert_true(clock_since_ms(began) < ttl / 3 + lag());
  assert_error(belay_lock_error(c->lock), BELAY_ENOTOWNER);
  assert_int_equal(server_keys(env->server), 0);
  env_run_for(env, ttl);
  assert_int_equal(c->lost, 1);
}

ENV_TEST(key_taken_over_is_a_loss_and_stays) {
  belay_lock_options_t options = watched(kept_ttl());
  contender_t *c = contender_holding(env, "door", &options);
  foreign_holder(c, 60000);
  env_until(env, c->lost == 1);
  assert_int_equal(c->reason, BELAY_LOST_TAKEN);
  env_settle(env);
  assert_string_equal(value_of(c), "somebody else");
  assert_true(pttl_of(c) > 50000);
}

ENV_TEST(server_out_of_memory_keeps_held_locks) {
  belay_lock_options_t options = watched(kept_ttl());
  contender_t *held = contender_new(env, "held", &options),
              *other = contender_new(env, "other", NULL);
  assert_error(try_lock(held), 0);
  server_do(env->server, "CONFIG", "SET", "maxmemory-policy", "noeviction", NULL);
  server_do(env->server, "CONFIG", "SET", "maxmemory", "1", NULL);
  assert_error(try_lock(other), BELAY_EOOM);
  assert_true(belay_err_retryable(BELAY_EOOM));
  assert_error(acquire(other, 300), BELAY_EOOM);
  env_run_for(env, options.ttl_ms * 5 / 4);
  assert_int_equal(held->lost, 0);
  assert_true(is_on_server(held));
  assert_error(release(held), 0);
  assert_int_equal(server_keys(env->server), 0);
}

ENV_TEST(wait_continues_while_the_server_is_out_of_memory) {
  contender_t *c = contender_new(env, "door", NULL);
  server_do(env->server, "CONFIG", "SET", "maxmemory", "1", NULL);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  env_run_for(env, 300);
  assert_int_equal(c->ended, 0);
  server_do(env->server, "CONFIG", "SET", "maxmemory", "0", NULL);
  assert_error(outcome(c), 0);
}
