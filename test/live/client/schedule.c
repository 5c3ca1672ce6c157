/* Rare orders of events: callbacks that start an operation and close, a fork during a lease,
 * results that are known before their callbacks run, calls from other callbacks of the loop. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/fixtures/env.h"

/* ---- callbacks that start an operation and close ---- */

/* In the first callback of an operation: start an acquire, then close. */
static void acquire_and_close(contender_t *c, event_t event) {
  if (event != EVENT_ENDED)
    return;
  c->then = NULL;
  assert_error(begin_acquire(c, 0), 0);
  assert_error(begin_close(c), 0);
}

/* The operation begun in the callback is canceled, and its callback precedes that of the close. */
static void expect_canceled_then_closed(contender_t *c) {
  unsigned endings = c->begun + 1;
  env_until(c->env, c->closed == 1);
  assert_int_equal(c->begun, endings);
  assert_int_equal(c->ended, endings);
  assert_error(c->status, BELAY_ECANCELED);
  assert_true(c->ended_at < c->closed_at);
}

TEST(acquire_then_close_in_an_acquire_callback) {
  belay_client_options_t options = client_options();
  options.timeout_ms = 50;
  env_t *env = env_open_at("unix:///nonexistent/socket", &options);
  contender_t *c = contender_new(env, "door", NULL);
  assert_error(begin_acquire(c, 0), 0);
  c->then = acquire_and_close;
  expect_canceled_then_closed(c);
  env_close(env);
}

ENV_TEST_OF(acquire_then_close_in_a_release_callback, o.timeout_ms = prompt_ms();
            o.close_timeout_ms = 100) {
  contender_t *c = contender_holding(env, "door", NULL);
  server_kill(env->server);
  env_until(env, client_stats(env).connections_up == 0);
  assert_error(begin_release(c), 0);
  c->then = acquire_and_close;
  expect_canceled_then_closed(c);
}

/* ---- forks ---- */

/* In the child: run the copy of the loop. Returns 0 if belay did nothing. */
static int run_as_a_fork(env_t *env, const contender_t *c, int64_t ms) {
  belay_client_stats_t before = client_stats(env), after;
  if (uv_loop_fork(&env->loop) != 0)
    return 1;
  env_run_for(env, ms);
  after = client_stats(env);
  if (after.commands != before.commands || after.writes != before.writes)
    return 2;
  if (after.bytes_in != before.bytes_in || after.connects != before.connects)
    return 3;
  return c->lost != 0 || remaining_ms(c) != 0 ? 4 : 0;
}

/* Replace the child's program, so that its copied memory is no leak. */
static void end_as_another_program(int status) {
  char command[16];
  snprintf(command, sizeof command, "exit %d", status);
  execlp("sh", "sh", "-c", command, NULL);
  _exit(127);
}

ENV_TEST(fork_that_runs_the_loop) {
  int64_t ttl = kept_ttl();
  belay_lock_options_t options = watched(ttl);
  contender_t *c = contender_holding(env, "door", &options);
  uint64_t before = client_stats(env).commands;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0)
    end_as_another_program(run_as_a_fork(env, c, 2 * ttl));
  env_run_for(env, 2 * ttl + ttl / 2);
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);

  assert_int_equal(c->lost, 0);
  assert_true(is_on_server(c));
  assert_true(remaining_ms(c) > 0);
  assert_true(client_stats(env).commands >= before + 4); /* the renewals continued */
  assert_int_equal(client_stats(env).drops, 0);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  assert_error(release(c), 0);
}

/* ---- known, and not yet reported ---- */

static void stall_when_ended(contender_t *c, event_t event) {
  if (event == EVENT_ENDED)
    stall_ms(*(int64_t *)c->arg);
}

/* The lease ends while an earlier callback blocks the loop. */
ENV_TEST(extend_reported_after_the_loss_is_canceled) {
  int64_t ttl = kept_ttl(), pause = ttl + 50;
  belay_lock_options_t options = with_ttl(ttl);
  contender_t *c = contender_new(env, "door", &options);
  contender_t *busy = contender_new(env, "another door", NULL);
  busy->then = stall_when_ended;
  busy->arg = &pause;
  assert_error(try_lock(c), 0);
  assert_error(extend(c, BELAY_DEFAULT), 0); /* the server knows the script from now on */
  server_pause(env->server);                 /* so that both replies arrive together */
  assert_error(begin_acquire(busy, 0), 0);
  assert_error(begin_extend(c, BELAY_DEFAULT), 0);
  env_run_for(env, 20);
  server_resume(env->server);
  env_until(env, busy->ended == 1 && c->extended == 2);
  assert_error(c->extend_status, BELAY_ECANCELED);
  assert_int_equal(c->lost, 1);
  assert_int_equal(c->reason, BELAY_LOST_EXPIRED);
  assert_true(busy->ended_at < c->lost_at);
  assert_true(c->lost_at < c->extended_at);
}

/* ---- undos ---- */

/* The server may still have the long ttl. */
TEST(undo_after_the_end_of_a_shortened_ttl) {
  int64_t brief = 2 * lag();
  belay_client_options_t options = client_options();
  options.timeout_ms = prompt_ms();
  options.connect_timeout_ms = prompt_ms();
  env_t *env = env_open(&options);
  belay_lock_options_t lasting = with_ttl(600000);
  contender_t *c = contender_holding(env, "door", &lasting);
  assert_error(extend(c, brief), 0);
  server_do(env->server, "CLIENT", "KILL", "TYPE", "normal", NULL);
  server_pause(env->server);
  env_until(env, client_stats(env).drops == 1);
  assert_error(release(c), BELAY_EUNREACHABLE);
  env_run_for(env, brief);
  assert_int_equal(client_stats(env).undo_pending, 1);
  server_resume(env->server);
  assert_true(pttl_of(c) > 500000 || value_of(c) == NULL);
  env_settle(env);
  assert_int_equal(server_keys(env->server), 0);
  assert_int_equal(client_stats(env).undo_failed, 0);
  assert_int_equal(client_stats(env).undone, 1);
  env_close(env);
}

static void stop_the_loop(uv_timer_t *timer) {
  uv_stop(timer->loop);
}

/* Only the undo is left. It continues whenever the loop runs. */
TEST(undo_keeps_the_loop_for_the_close_timeout) {
  int64_t limit = 4000 * slow();
  belay_client_options_t options = client_options();
  options.timeout_ms = prompt_ms();
  options.close_timeout_ms = 300 * slow();
  env_t *env = env_open(&options);
  belay_lock_options_t lasting = with_ttl(2 * limit);
  contender_t *c = contender_connected(env, "door", &lasting);
  uv_timer_t guard;
  uv_timer_init(&env->loop, &guard);
  uv_unref((uv_handle_t *)&guard);

  server_pause(env->server);
  assert_error(begin_acquire(c, 0), 0);
  int64_t began = clock_now();
  uv_update_time(&env->loop);
  uv_timer_start(&guard, stop_the_loop, (uint64_t)limit, 0);
  uv_run(&env->loop, UV_RUN_DEFAULT);
  int64_t took = clock_since_ms(began);
  uv_close((uv_handle_t *)&guard, NULL);
  assert_int_equal(c->ended, 3);
  assert_error(c->status, BELAY_EUNKNOWN);
  assert_int_equal(client_stats(env).undo_pending, 1);
  assert_between(took, options.timeout_ms + options.close_timeout_ms - 2, limit - 1000 * slow());

  server_resume(env->server);
  env_settle(env);
  assert_int_equal(server_keys(env->server), 0);
  env_close(env);
}

/* ---- many handles ---- */

/* Acquire and release again and again. */
static void acquire_or_release(contender_t *c, event_t event) {
  if (event != EVENT_ENDED || begin_release(c) == 0)
    return;
  (void)begin_acquire(c, 0); /* it may be closing */
}

TEST(renewal_precedes_20000_queued_calls) {
  enum { CONTENDERS = 20000 };
  int64_t ttl = kept_ttl();
  belay_client_options_t options = client_options();
  options.on_full = BELAY_FULL_WAIT;
  options.max_pending = 1;
  env_t *env = env_open(&options);
  belay_lock_options_t kept = watched(ttl), patient = lock_options();
  patient.timeout_ms = 60000;
  contender_t *c = contender_holding(env, "kept", &kept);
  for (int i = 0; i < CONTENDERS; i++) {
    char name[16];
    snprintf(name, sizeof name, "%d", i);
    contender_t *busy = contender_new(env, name, &patient);
    busy->then = acquire_or_release;
    assert_error(begin_acquire(busy, 0), 0);
  }
  env_run_for(env, 2 * ttl);
  assert_int_equal(c->lost, 0);
  assert_true(is_on_server(c));
  env_close(env);
}

/* ---- callbacks of the program on the same loop ---- */

/* A loop without other timers, with a prepare callback of the program. */
typedef struct foreign {
  uv_loop_t loop;
  uv_prepare_t prepare;
  uv_timer_t guard;
  belay_lock_t *lock;
  bool armed, done;
  int status;
} foreign_t;

static void on_tried(belay_lock_t *lock, int status) {
  foreign_t *foreign = belay_lock_data(lock);
  foreign->done = true;
  foreign->status = status;
  uv_stop(&foreign->loop);
}

static void try_when_armed(uv_prepare_t *prepare) {
  foreign_t *foreign = prepare->data;
  if (!foreign->armed)
    return;
  foreign->armed = false;
  assert_error(belay_lock_try(foreign->lock, on_tried), 0);
}

/* Run the loop until the attempt ends. Returns its duration in milliseconds, at most the limit. */
static int64_t wait_for_try(foreign_t *foreign, int64_t limit) {
  int64_t began = clock_now();
  foreign->done = false;
  uv_update_time(&foreign->loop);
  uv_timer_start(&foreign->guard, stop_the_loop, (uint64_t)limit, 0);
  uv_run(&foreign->loop, UV_RUN_DEFAULT);
  uv_timer_stop(&foreign->guard);
  return clock_since_ms(began);
}

TEST_ON(call_after_the_prepare_callback_is_sent_at_once, server, server_start(NULL)) {
  foreign_t foreign = {.status = 1};
  belay_t *belay;
  belay_client_t *client;
  belay_lock_options_t options = lock_options();
  options.timeout_ms = 20000 * slow();
  options.data = &foreign;
  uv_loop_init(&foreign.loop);
  uv_timer_init(&foreign.loop, &foreign.guard);
  uv_prepare_init(&foreign.loop, &foreign.prepare);
  foreign.prepare.data = &foreign;
  /* handlers run in the reverse order of their start */
  uv_prepare_start(&foreign.prepare, try_when_armed);
  assert_error(belay_open(&foreign.loop, NULL, &belay), 0);
  assert_error(belay_connect(belay, server_url(server), NULL, &client), 0);
  assert_error(belay_lock_new(client, belay_string("door"), &options, &foreign.lock), 0);

  assert_error(belay_lock_try(foreign.lock, on_tried), 0); /* connects */
  (void)wait_for_try(&foreign, 10000 * slow());
  assert_true(foreign.done);
  assert_error(foreign.status, 0);
  foreign.armed = true; /* it is held by another handle now */
  belay_lock_t *first = foreign.lock;
  assert_error(belay_lock_new(client, belay_string("door"), &options, &foreign.lock), 0);
  int64_t took = wait_for_try(&foreign, 3000 * slow());
  assert_true(foreign.done);
  assert_error(foreign.status, BELAY_EHELD);
  assert_true(took < 1000 * slow());
  assert_true(belay_lock_remaining_us(first) > 0);

  uv_close((uv_handle_t *)&foreign.prepare, NULL);
  uv_close((uv_handle_t *)&foreign.guard, NULL);
  assert_error(belay_close(belay, NULL), 0);
  uv_run(&foreign.loop, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&foreign.loop), 0);
}

/* ---- calls before the loop sleeps ---- */

typedef struct late {
  uv_loop_t loop;
  uv_timer_t stall;
  server_t *ill; /* stopped while its lease ends */
  belay_t *belay;
  belay_client_t *ill_client, *well_client;
  belay_lock_t *lost, *other;
  int64_t began, took_ms;
  int status;
} late_t;

static late_t late; /* a ping has no pointer for data */

static void on_other_lock(belay_lock_t *lock, int status) {
  (void)lock;
  late.status = status;
  late.took_ms = clock_since_ms(late.began);
  server_resume(late.ill);
  uv_close((uv_handle_t *)&late.stall, NULL);
  assert_error(belay_close(late.belay, NULL), 0);
}

static void take_the_other(belay_lock_t *lock, belay_lost_t reason) {
  (void)lock;
  assert_int_equal(reason, BELAY_LOST_EXPIRED);
  late.began = clock_now();
  assert_error(belay_lock_try(late.other, on_other_lock), 0);
}

static void ignore_pong(belay_client_t *client, int status) {
  (void)client;
  (void)status;
}

/* The loop continues after the end of the lease, and has bytes to write before it sleeps. */
static void stall_and_ping(uv_timer_t *timer) {
  stall_ms(*(int64_t *)timer->data);
  assert_error(belay_client_ping(late.ill_client, 60000, ignore_pong), 0);
}

static void on_ill_held(belay_lock_t *lock, int status) {
  static int64_t pause;
  assert_error(status, 0);
  pause = belay_lock_remaining_us(lock) / 1000 + 50;
  server_pause(late.ill);
  late.stall.data = &pause;
  uv_timer_start(&late.stall, stall_and_ping, 20, 0);
}

static void on_well_up(belay_client_t *client, int status) {
  (void)client;
  assert_error(status, 0);
  assert_error(belay_lock_try(late.lost, on_ill_held), 0);
}

TEST(call_in_on_lost_before_the_loop_sleeps_is_sent_at_once) {
  late = (late_t){.ill = server_start(NULL), .status = 1};
  server_t *well = server_start(NULL);
  belay_client_options_t patient = client_options();
  patient.timeout_ms = patient.stall_timeout_ms = 60000;
  belay_lock_options_t options = with_ttl(kept_ttl());
  options.watchdog = BELAY_WATCHDOG_OFF;
  options.on_lost = take_the_other;
  uv_loop_init(&late.loop);
  uv_timer_init(&late.loop, &late.stall);
  assert_error(belay_open(&late.loop, NULL, &late.belay), 0);
  assert_error(belay_connect(late.belay, server_url(late.ill), &patient, &late.ill_client), 0);
  assert_error(belay_connect(late.belay, server_url(well), &patient, &late.well_client), 0);
  assert_error(belay_lock_new(late.ill_client, belay_string("lost"), &options, &late.lost), 0);
  assert_error(belay_lock_new(late.well_client, belay_string("wanted"), NULL, &late.other), 0);
  assert_error(belay_client_ping(late.well_client, BELAY_DEFAULT, on_well_up), 0);
  uv_run(&late.loop, UV_RUN_DEFAULT);
  assert_error(late.status, 0);
  assert_true(late.took_ms < prompt_ms());
  assert_int_equal(uv_loop_close(&late.loop), 0);
  server_stop(well);
  server_stop(late.ill);
}
