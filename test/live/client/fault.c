/* The lock while the server, the network or the loop misbehaves. */
#include <stdio.h>

#include "support/fixtures/bed.h"
#include "support/deployments/relay.h"

/* Wait until the server has no key, and check that no late execution creates one. */
static void expect_no_key(bed_t *bed) {
  bed_settle(bed);
  bed_until(bed, server_keys(bed->server) == 0);
  bed_run_for(bed, 100);
  assert_int_equal(server_keys(bed->server), 0);
}

/* Wait for the loss, which must come at the deadline. */
static void expect_loss_at_its_deadline(contender_t *c) {
  int64_t deadline = believed_until(c);
  assert_int_equal(c->lost, 0);
  await_loss_at(c, deadline);
}

/* ---- a stopped server ---- */

BED_TEST(lock_without_watchdog_and_a_stopped_server) {
  belay_lock_options_t options = with_ttl(600 * slow());
  contender_t *c = contender_holding(bed, "door", &options);
  server_pause(bed->server);
  expect_loss_at_its_deadline(c);
  assert_error(release(c), BELAY_ENOTOWNER);
  server_resume(bed->server);
  expect_no_key(bed);
  assert_int_equal(c->lost, 1);
}

BED_TEST(lock_with_watchdog_and_a_stopped_server) {
  belay_lock_options_t options = watched(kept_ttl());
  contender_t *c = contender_holding(bed, "door", &options);
  bed_run_for(bed, options.ttl_ms * 5 / 4); /* several renewals */
  assert_int_equal(c->lost, 0);
  server_pause(bed->server);
  expect_loss_at_its_deadline(c);
  server_resume(bed->server);
  expect_no_key(bed);
  assert_int_equal(c->lost, 1);
}

BED_TEST(server_stop_shorter_than_the_ttl) {
  int64_t ttl = kept_ttl() * 3 / 2;
  belay_lock_options_t options = watched(ttl);
  contender_t *c = contender_holding(bed, "door", &options);
  server_pause(bed->server);
  bed_run_for(bed, ttl / 2);
  server_resume(bed->server);
  bed_run_for(bed, ttl);
  assert_int_equal(c->lost, 0);
  assert_true(is_on_server(c));
}

BED_TEST(acquire_timeout_is_unknown_and_undone) {
  belay_lock_options_t options = lock_options();
  options.timeout_ms = prompt_ms();
  contender_t *c = contender_connected(bed, "door", &options);
  server_pause(bed->server);
  int64_t began = clock_now();
  assert_error(try_lock(c), BELAY_EUNKNOWN);
  assert_between(clock_since_ms(began), options.timeout_ms - 2, options.timeout_ms + lag());
  assert_int_equal(belay_lock_remaining_us(c->lock), 0);
  server_resume(bed->server);
  expect_no_key(bed);
  assert_int_equal(client_stats(bed).undo_failed, 0);
  assert_int_equal(server_info(bed->server, "stats", "expired_keys"), 0);
  assert_true(server_calls(bed->server, "set") >= 2); /* the server executed it later */
}

BED_TEST(canceled_acquire_is_undone) {
  contender_t *c = contender_connected(bed, "door", NULL);
  server_pause(bed->server);
  uint64_t before = client_stats(bed).writes;
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  bed_until(bed, client_stats(bed).writes > before);
  assert_error(cancel(c), 0);
  assert_error(outcome(c), BELAY_ECANCELED);
  server_resume(bed->server);
  expect_no_key(bed);
  assert_true(server_calls(bed->server, "set") >= 2);
}

BED_TEST(waiter_continues_after_a_timeout) {
  belay_lock_options_t options = lock_options();
  options.timeout_ms = prompt_ms();
  contender_t *c = contender_connected(bed, "door", &options);
  server_pause(bed->server);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  bed_run_for(bed, 2 * options.timeout_ms);
  assert_int_equal(c->ended, 2);
  server_resume(bed->server);
  assert_error(outcome(c), 0);
  assert_true(is_on_server(c));
  bed_settle(bed);
  bed_run_for(bed, 200);
  assert_true(is_on_server(c)); /* the undos of earlier attempts did not remove it */
}

BED_TEST(release_timeout_is_unknown_and_repeated) {
  belay_lock_options_t options = lock_options();
  options.timeout_ms = prompt_ms();
  contender_t *c = contender_holding(bed, "door", &options);
  server_pause(bed->server);
  assert_error(release(c), BELAY_EUNKNOWN);
  assert_int_equal(c->lost, 0);
  server_resume(bed->server);
  expect_no_key(bed);
}

BED_TEST(late_replies_of_a_busy_server) {
  belay_lock_options_t impatient = lock_options(), patient = lock_options();
  char pause[12];
  snprintf(pause, sizeof pause, "%d", (int)(2 * prompt_ms()));
  impatient.timeout_ms = prompt_ms();
  patient.timeout_ms = 20000;
  contender_t *a = contender_new(bed, "a", &impatient), *b = contender_new(bed, "b", &patient);
  assert_error(try_lock(a), 0);
  assert_error(release(a), 0);
  server_do(bed->server, "CLIENT", "PAUSE", pause, NULL);
  assert_error(begin_acquire(a, 0), 0);
  assert_error(begin_acquire(b, 0), 0);
  assert_error(outcome(a), BELAY_EUNKNOWN);
  assert_error(outcome(b), 0);
  assert_true(client_stats(bed).settled_late >= 1);
  assert_error(release(b), 0);
  expect_no_key(bed);
}

/* A reply that comes after the ttl is over. */
BED_TEST(grant_after_the_ttl_is_expired) {
  belay_lock_options_t options = with_ttl(prompt_ms());
  char pause[12];
  snprintf(pause, sizeof pause, "%d", (int)(2 * prompt_ms()));
  options.timeout_ms = 20000;
  contender_t *c = contender_connected(bed, "door", &options);
  server_do(bed->server, "CLIENT", "PAUSE", pause, NULL);
  assert_error(try_lock(c), BELAY_EEXPIRED);
  assert_int_equal(c->lost, 0);
  expect_no_key(bed);
}

/* ---- a blocked loop ---- */

static void stall_for(uv_timer_t *timer) {
  stall_ms(*(int64_t *)timer->data);
}

/* While the loop is blocked, one lock expires and replies for others arrive. */
BED_TEST_OF(loss_precedes_replies_after_a_stalled_loop, o.timeout_ms = 60000;
            o.stall_timeout_ms = 60000) {
  int64_t ttl = prompt_ms(), pause = ttl + 50;
  belay_lock_options_t options = with_ttl(ttl);
  contender_t *lost = contender_new(bed, "lost", &options);
  contender_t *first = contender_new(bed, "first", NULL),
              *second = contender_new(bed, "second", NULL);
  static uv_timer_t stall; /* closed after this function */
  uv_timer_init(&bed->loop, &stall);
  stall.data = &pause;
  assert_error(try_lock(first), 0);
  assert_error(begin_ping(bed), 0);
  bed_until(bed, bed->pongs == 1);
  assert_error(try_lock(lost), 0);

  uint64_t before = client_stats(bed).writes;
  server_pause(bed->server);
  assert_error(begin_release(first), 0);
  assert_error(begin_acquire(second, 0), 0);
  assert_error(begin_ping(bed), 0);
  bed_until(bed, client_stats(bed).writes > before);
  server_resume(bed->server); /* the replies arrive during the stall */
  uv_timer_start(&stall, stall_for, 0, 0);
  bed_until(bed, lost->lost == 1 && first->ended == 2 && second->ended == 1 && bed->pongs == 2);

  assert_error(first->status, 0);
  assert_error(second->status, 0);
  assert_true(lost->lost_at < first->ended_at);
  assert_true(lost->lost_at < second->ended_at);
  assert_int_equal(lost->lost_at, 4); /* after the three callbacks before the stall */
  belay_stats_t stats;
  belay_stats(bed->belay, &stats);
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
  bed_t *bed = bed_open(NULL);
  int64_t ttl = prompt_ms(), pause = ttl + 50;
  belay_lock_options_t options = with_ttl(ttl);
  contender_t *lost = contender_new(bed, "lost", &options);
  contender_t *first = contender_new(bed, "first", NULL),
              *second = contender_new(bed, "second", NULL);
  first->then = stall_when_ended;
  first->arg = &pause;
  assert_error(try_lock(lost), 0);
  server_pause(bed->server); /* so that both replies arrive together */
  assert_error(begin_acquire(first, 0), 0);
  assert_error(begin_acquire(second, 0), 0);
  bed_run_for(bed, 20);
  server_resume(bed->server);
  bed_until(bed, lost->lost == 1 && first->ended == 1 && second->ended == 1);
  assert_true(first->ended_at < lost->lost_at);
  assert_true(lost->lost_at < second->ended_at);
  bed_close(bed);
}

static void check_remaining(uv_timer_t *timer) {
  contender_t *c = timer->data;
  stall_ms(remaining_ms(c) + 5);
  assert_int_equal(c->lost, 0); /* belay has not run yet */
  assert_int_equal(belay_lock_remaining_us(c->lock), 0);
  assert_error(begin_release(c), BELAY_ENOTOWNER);
}

BED_TEST(remaining_is_0_before_the_loss_is_reported) {
  belay_lock_options_t options = with_ttl(prompt_ms());
  contender_t *c = contender_new(bed, "door", &options);
  static uv_timer_t own; /* closed after this function */
  uv_timer_init(&bed->loop, &own);
  own.data = c;
  assert_error(try_lock(c), 0);
  uv_timer_start(&own, check_remaining, 0, 0);
  bed_until(bed, c->lost == 1);
  uv_close((uv_handle_t *)&own, NULL);
}

/* ---- a server that restarts, connections that are lost ---- */

BED_TEST(restart_during_a_wait) {
  contender_t *waiter = contender_new(bed, "door", NULL);
  foreign_holder(waiter, 600000);
  assert_error(begin_acquire(waiter, BELAY_FOREVER), 0);
  bed_run_for(bed, 200);
  server_terminate(bed->server);
  bed_run_for(bed, 300);
  assert_int_equal(waiter->ended, 0);
  int64_t began = clock_now();
  server_restart(bed->server);
  assert_error(outcome(waiter), 0);
  assert_true(clock_since_ms(began) < 5000 * slow());
  assert_true(is_on_server(waiter));
  assert_true(client_stats(bed).connects >= 2);
}

BED_TEST(restart_while_held_is_a_loss_at_the_renewal) {
  belay_lock_options_t options = watched(kept_ttl());
  contender_t *c = contender_holding(bed, "door", &options);
  server_kill(bed->server);
  server_restart(bed->server);
  bed_until(bed, c->lost == 1);
  assert_int_equal(c->reason, BELAY_LOST_TAKEN);
}

BED_TEST(wait_continues_without_a_server) {
  contender_t *c = contender_new(bed, "door", NULL);
  server_kill(bed->server);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  bed_run_for(bed, 500);
  assert_int_equal(c->ended, 0);
  server_restart(bed->server);
  assert_error(outcome(c), 0);
}

TEST(connections_killed_while_held) {
  needs_one_process("the number of killed connections");
  bed_t *bed = bed_open(NULL);
  belay_lock_options_t options = watched(kept_ttl());
  contender_t *c = contender_holding(bed, "door", &options);
  for (int i = 0; i < 3; i++) {
    assert_true(server_integer(bed->server, "CLIENT", "KILL", "TYPE", "normal", NULL) >= 1);
    bed_run_for(bed, options.ttl_ms * 3 / 4);
  }
  assert_int_equal(c->lost, 0);
  assert_true(is_on_server(c));
  assert_error(release(c), 0);
  assert_int_equal(server_keys(bed->server), 0);
  assert_true(client_stats(bed).drops >= 3);
  bed_close(bed);
}

BED_TEST(connections_killed_during_a_wait) {
  contender_t *waiter = contender_new(bed, "door", NULL);
  foreign_holder(waiter, 600000);
  assert_error(begin_acquire(waiter, BELAY_FOREVER), 0);
  for (int i = 0; i < 5; i++) {
    bed_run_for(bed, 60);
    server_do(bed->server, "CLIENT", "KILL", "TYPE", "normal", NULL);
  }
  bed_run_for(bed, 100);
  assert_int_equal(waiter->ended, 0);
  server_do(bed->server, "DEL", key_of(waiter), NULL);
  assert_error(outcome(waiter), 0);
  assert_true(is_on_server(waiter));
  bed_settle(bed);
  assert_true(is_on_server(waiter));
}

TEST(connection_killed_during_an_acquire) {
  bed_t *bed = bed_open(NULL);
  contender_t *c = contender_connected(bed, "door", NULL);
  if (server_ask(bed->server, "CLIENT", "PAUSE", "300", "WRITE", NULL)->type == RESP_ERROR) {
    bed_close(bed); /* before 6.2 a pause also delayed the KILL */
    skip();
  }
  uint64_t before = client_stats(bed).writes;
  assert_error(begin_acquire(c, 0), 0);
  bed_until(bed, client_stats(bed).writes > before);
  server_do(bed->server, "CLIENT", "KILL", "TYPE", "normal", NULL);
  assert_error(outcome(c), BELAY_EUNKNOWN);
  expect_no_key(bed);
  bed_close(bed);
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
  bed_t *bed = bed_open_at(relay_url(relay), &client);
  bed->server = server;
  belay_lock_options_t options = lock_options();
  options.timeout_ms = 1000 * slow();
  contender_t *c = contender_connected(bed, "door", &options);
  server_pause(server);
  assert_error(begin_acquire(c, waits ? BELAY_FOREVER : 0), 0);
  bed_run_for(bed, 100); /* the bytes are in the server's socket */
  relay_cut(relay);
  if (!waits) {
    assert_error(outcome(c), BELAY_EUNKNOWN);
  } else {
    bed_run_for(bed, 100);
    assert_error(cancel(c), 0);
    assert_error(outcome(c), BELAY_ECANCELED);
  }
  server_resume(server);
  bed_settle(bed);
  bed_run_for(bed, 300);
  assert_int_equal(server_keys(server), 0);
  assert_int_equal(client_stats(bed).undo_failed, 0);
  /* a server before 7 counts all of CLIENT as one */
  assert_true(server_calls(server, "client|kill") + server_calls(server, "client") >= may_kill);
  assert_error(try_lock(c), 0);
  assert_true(is_on_server(c));
  bed_close(bed);
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

BED_TEST_WITH_(silent_connection_is_replaced, bed_open_relayed, client_options(),
               o.stall_timeout_ms = 300 * slow()) {
  belay_lock_options_t lock = watched(2000 * slow());
  lock.renew_after_ms = 200 * slow();
  contender_t *c = contender_holding(bed, "door", &lock);
  relay_silence(bed->relay);
  bed_run_for(bed, 2500 * slow());
  assert_int_equal(c->lost, 0); /* renewed on the next connection */
  assert_true(client_stats(bed).drops >= 1);
  assert_true(relay_connections(bed->relay) >= 2);
  assert_error(release(c), 0);
}

/* ---- changes by other programs ---- */

BED_TEST(flushed_scripts_are_sent_again) {
  contender_t *c = contender_new(bed, "door", NULL), *other = contender_new(bed, "door", NULL);
  for (int i = 0; i < 3; i++) {
    assert_error(try_lock(c), 0);
    server_do(bed->server, "SCRIPT", "FLUSH", NULL);
    assert_error(extend(c, 20000), 0);
    server_do(bed->server, "SCRIPT", "FLUSH", NULL);
    assert_error(acquire(other, 100), BELAY_ETIMEDOUT);
    server_do(bed->server, "SCRIPT", "FLUSH", NULL);
    assert_error(release(c), 0);
    assert_int_equal(server_keys(bed->server), 0);
  }
}

BED_TEST(flushall_is_a_loss_at_the_renewal) {
  int64_t ttl = kept_ttl();
  belay_lock_options_t options = watched(ttl);
  contender_t *c = contender_holding(bed, "door", &options);
  server_do(bed->server, "FLUSHALL", NULL);
  int64_t began = clock_now();
  bed_until(bed, c->lost == 1);
  assert_int_equal(c->reason, BELAY_LOST_TAKEN);
  assert_true(clock_since_ms(began) < ttl / 3 + lag());
  assert_error(belay_lock_error(c->lock), BELAY_ENOTOWNER);
  assert_int_equal(server_keys(bed->server), 0);
  bed_run_for(bed, ttl);
  assert_int_equal(c->lost, 1);
}

BED_TEST(key_taken_over_is_a_loss_and_stays) {
  belay_lock_options_t options = watched(kept_ttl());
  contender_t *c = contender_holding(bed, "door", &options);
  foreign_holder(c, 60000);
  bed_until(bed, c->lost == 1);
  assert_int_equal(c->reason, BELAY_LOST_TAKEN);
  bed_settle(bed);
  assert_string_equal(value_of(c), "somebody else");
  assert_true(pttl_of(c) > 50000);
}

BED_TEST(server_out_of_memory_keeps_held_locks) {
  belay_lock_options_t options = watched(kept_ttl());
  contender_t *held = contender_new(bed, "held", &options),
              *other = contender_new(bed, "other", NULL);
  assert_error(try_lock(held), 0);
  server_do(bed->server, "CONFIG", "SET", "maxmemory-policy", "noeviction", NULL);
  server_do(bed->server, "CONFIG", "SET", "maxmemory", "1", NULL);
  assert_error(try_lock(other), BELAY_EOOM);
  assert_true(belay_err_retryable(BELAY_EOOM));
  assert_error(acquire(other, 300), BELAY_EOOM);
  bed_run_for(bed, options.ttl_ms * 5 / 4);
  assert_int_equal(held->lost, 0);
  assert_true(is_on_server(held));
  assert_error(release(held), 0);
  assert_int_equal(server_keys(bed->server), 0);
}

BED_TEST(wait_continues_while_the_server_is_out_of_memory) {
  contender_t *c = contender_new(bed, "door", NULL);
  server_do(bed->server, "CONFIG", "SET", "maxmemory", "1", NULL);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  bed_run_for(bed, 300);
  assert_int_equal(c->ended, 0);
  server_do(bed->server, "CONFIG", "SET", "maxmemory", "0", NULL);
  assert_error(outcome(c), 0);
}
