/* Waiters: the queue in a client, the hand-over, and wake-ups from other clients. */
#include <stdio.h>
#include <unistd.h>

#include "support/fixtures/env.h"
#include "support/deployments/relay.h"

enum { MANY = 40 };
#define LONG 20000 /* a poll comes too late for any test */

/* Each contender releases the lock at once. Notes the order of the grants. */
typedef struct turns {
  contender_t *all[MANY + 1];
  unsigned order[MANY + 1], count;
  uint64_t fence;
  bool grow; /* so far, fencing numbers have */
  int64_t least_ttl;
} turns_t;

static void take_turn(contender_t *c, event_t event) {
  turns_t *turns = c->arg;
  if (event != EVENT_ENDED || c->status != 0 || belay_lock_remaining_us(c->lock) == 0)
    return;
  for (unsigned i = 0; i <= MANY; i++)
    if (turns->all[i] == c)
      turns->order[turns->count++] = i;
  int64_t ttl = remaining_ms(c);
  uint64_t fence = belay_lock_fence(c->lock);
  turns->grow &= fence > turns->fence;
  turns->fence = fence;
  turns->least_ttl = ttl < turns->least_ttl ? ttl : turns->least_ttl;
  assert_error(begin_release(c), 0);
}

static void ask(env_t *env, belay_client_t *client, turns_t *turns, unsigned i,
                const belay_lock_options_t *options) {
  contender_t *c = turns->all[i] = contender_of(env, client, "door", options);
  c->arg = turns;
  c->then = take_turn;
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
}

static bool all_at_rest(const turns_t *turns) {
  for (unsigned i = 0; i <= MANY; i++)
    if (turns->all[i] != NULL && turns->all[i]->ended < turns->all[i]->begun)
      return false;
  return true;
}

static belay_lock_options_t patient(void) {
  belay_lock_options_t options = with_ttl(30000);
  options.retry_min_ms = options.retry_max_ms = LONG;
  return options;
}

ENV_TEST(queue_order_and_hand_over) {
  belay_lock_options_t options = patient();
  options.fencing = true;
  options.max_handovers = 1000;
  turns_t turns = {.grow = true, .least_ttl = INT64_MAX};
  contender_t *holder = contender_holding(env, "door", &options);
  for (unsigned i = 0; i < MANY; i++)
    ask(env, env->client, &turns, i, &options);
  env_run_for(env, 100);
  uint64_t commands = client_stats(env).commands;
  assert_error(release(holder), 0);
  env_until(env, turns.count == MANY && all_at_rest(&turns));
  for (unsigned i = 0; i < MANY; i++)
    assert_int_equal(turns.order[i], i);
  assert_true(turns.grow);
  assert_true(turns.least_ttl > 25000); /* a whole one each time */
  assert_int_equal(client_stats(env).commands - commands, MANY + 1);
  assert_int_equal(server_keys(env->server), 1); /* the counter */
}

ENV_TEST(hand_overs_are_limited) {
  belay_client_t *other = env_connect(env, server_url(env->server), NULL);
  belay_lock_options_t options = patient();
  options.max_handovers = 4;
  turns_t turns = {.least_ttl = INT64_MAX};
  contender_t *holder = contender_holding(env, "door", &options);
  for (unsigned i = 0; i < MANY; i++)
    ask(env, env->client, &turns, i, &options);
  ask(env, other, &turns, MANY, &options);
  env_run_for(env, 200 * slow()); /* it listens by now */
  assert_error(release(holder), 0);
  env_until(env, turns.count == MANY + 1 && all_at_rest(&turns));
  unsigned at = 0;
  while (turns.order[at] != MANY)
    at++;
  assert_in_range(at, 0, 9); /* after four of ours, or eight if it was slow for once */
}

ENV_TEST(no_hand_overs) {
  belay_lock_options_t options = with_ttl(30000);
  options.max_handovers = 0;
  turns_t turns = {.least_ttl = INT64_MAX};
  int64_t before = server_calls(env->server, "del");
  for (unsigned i = 0; i < 10; i++)
    ask(env, env->client, &turns, i, &options);
  env_until(env, turns.count == 10 && all_at_rest(&turns));
  assert_int_equal(server_calls(env->server, "del") - before, 10);
}

/* Holds the lock for a moment, releases or closes it, and acquires again. */
typedef struct busy {
  env_t *env;
  uv_timer_t timer;
  contender_t *holder;
  bool close, over; /* close: instead of a release */
  const belay_lock_options_t *options;
} busy_t;

static void be_busy(contender_t *c, event_t event);

static void begin_anew(busy_t *busy) {
  contender_t *c = contender_new(busy->env, "door", busy->options);
  c->arg = busy;
  c->then = be_busy;
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
}

static void end_hold(uv_timer_t *timer) {
  busy_t *busy = timer->data;
  contender_t *c = busy->holder;
  busy->holder = NULL;
  if (busy->close && !busy->over)
    begin_anew(busy);
  assert_error(busy->close ? begin_close(c) : begin_release(c), 0);
}

static void be_busy(contender_t *c, event_t event) {
  busy_t *busy = c->arg;
  if (event != EVENT_ENDED || c->status != 0)
    return;
  if (belay_lock_remaining_us(c->lock) > 0) {
    busy->holder = c;
    uv_timer_start(&busy->timer, end_hold, 1, 0);
  } else if (!busy->over) {
    assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  }
}

/* Counts the grants of another client while eight handles compete: for a while, or until the
 * first. */
static void expect_turns(bool close, belay_wakeup_t wakeup, unsigned least) {
  env_t *env = env_open(NULL);
  belay_client_t *other = env_connect(env, server_url(env->server), NULL);
  belay_lock_options_t options = lock_options();
  busy_t busy = {.env = env, .close = close, .options = &options};
  uv_timer_init(&env->loop, &busy.timer);
  busy.timer.data = &busy;
  for (int i = 0; i < 8; i++)
    begin_anew(&busy);
  belay_lock_options_t elsewhere = lock_options();
  elsewhere.wakeup = wakeup;
  contender_t *outsider = contender_of(env, other, "door", &elsewhere);
  unsigned turns = 0;
  for (int64_t began = clock_now(); clock_since_ms(began) < (turns > 0 ? 4000 : 20000) * slow();) {
    int status = acquire(outsider, 1000);
    turns += status == 0;
    assert_error(status, status == 0 ? 0 : BELAY_ETIMEDOUT);
    if (status == 0)
      assert_error(release(outsider), 0);
  }
  busy.over = true;
  env_until(env, busy.holder == NULL);
  uv_close((uv_handle_t *)&busy.timer, NULL);
  env_close(env);
  print_message("%u turns\n", turns);
  assert_true(turns >= least);
}

TEST(notified_client_gets_turns) {
  expect_turns(false, BELAY_WAKE_NOTIFY, 20);
}

TEST(turns_with_closed_handles) {
  expect_turns(true, BELAY_WAKE_NOTIFY, 20);
}

TEST(polling_client_gets_grants) {
  expect_turns(false, BELAY_WAKE_POLL, 1);
}

ENV_TEST(canceled_waiter_is_skipped) {
  belay_lock_options_t options = patient();
  contender_t *all[5];
  for (int i = 0; i < 5; i++)
    all[i] = contender_new(env, "door", &options);
  assert_error(try_lock(all[0]), 0);
  for (int i = 1; i < 5; i++)
    assert_error(begin_acquire(all[i], i == 3 ? 100 : BELAY_FOREVER), 0);
  assert_ok(cancel(all[1]), begin_close(all[2]));
  env_until(env, all[3]->ended == 1); /* its time is over */
  assert_error(all[1]->status, BELAY_ECANCELED);
  assert_error(all[3]->status, BELAY_ETIMEDOUT);
  assert_error(belay_lock_error(all[3]->lock), BELAY_EHELD);
  assert_ok(release(all[0]), outcome(all[4]));
  assert_true(is_on_server(all[4]));
}

ENV_TEST(loss_gives_turn_to_next) {
  belay_lock_options_t options = patient();
  options.ttl_ms = kept_ttl();
  options.watchdog = BELAY_WATCHDOG_OFF;
  contender_t *holder = contender_holding(env, "door", &options);
  contender_t *waiter = contender_new(env, "door", &options);
  assert_ok(begin_acquire(waiter, BELAY_FOREVER), outcome(waiter));
  assert_int_equal(holder->lost, 1);
  assert_true(holder->lost_at < waiter->ended_at);
  assert_true(is_on_server(waiter));
}

/* A queued waiter gets the cause of the failures of those before it. */
ENV_TEST(queued_waiter_reports_unreachable) {
  belay_lock_options_t options = lock_options();
  options.timeout_ms = 500;
  contender_t *first = contender_new(env, "door", &options);
  contender_t *second = contender_new(env, "door", &options);
  server_kill(env->server);
  assert_ok(begin_acquire(first, 30000), begin_acquire(second, 3000));
  assert_error(outcome(second), BELAY_EUNREACHABLE);
  assert_error(cancel(first), 0);
}

typedef struct passing {
  env_t *env;
  contender_t *holder, *waiter;
} passing_t;

/* A holder hands over to a waiter of its client through a relay with this delay. */
static passing_t *passing_open(int64_t delay) {
  belay_client_options_t client = client_options();
  client.reconnect_max_ms = 50;
  env_t *env = env_open_relayed(&client);
  passing_t *passing = env_new(env, sizeof *passing);
  belay_lock_options_t options = patient();
  *passing = (passing_t){.env = env,
                         .holder = contender_holding(env, "door", &options),
                         .waiter = contender_new(env, "door", &options)};
  assert_error(begin_acquire(passing->waiter, BELAY_FOREVER), 0);
  relay_delay(env->relay, delay);
  assert_error(begin_release(passing->holder), 0);
  env_run_for(env, 20);
  return passing;
}

static void passing_close(passing_t *passing) {
  expect_keys(passing->env, 0);
  env_close(passing->env);
}

TEST_IN(receiver_canceled_during_hand_over, passing, passing_open(100 * slow())) {
  assert_error(cancel(passing->waiter), 0);
  assert_error(outcome(passing->waiter), BELAY_ECANCELED);
  assert_error(outcome(passing->holder), 0);
}

TEST_IN(receiver_closed_during_hand_over, passing, passing_open(100 * slow())) {
  assert_ok(begin_close(passing->waiter), outcome(passing->holder));
  env_until(passing->env, passing->waiter->closed == 1);
}

TEST_IN(holder_closed_during_hand_over, passing, passing_open(100 * slow())) {
  assert_ok(begin_close(passing->holder), outcome(passing->waiter));
  assert_true(is_on_server(passing->waiter));
  assert_error(release(passing->waiter), 0);
}

/* The reply is lost with the connection: no callback reports a grant, and the lock is free. */
TEST_IN(hand_over_reply_lost, passing, passing_open(300 * slow())) {
  relay_cut(passing->env->relay); /* first: the reply may be just coming */
  relay_delay(passing->env->relay, 0);
  int status = outcome(passing->holder);
  assert_true(status == 0 || status == BELAY_EUNKNOWN);
  assert_error(outcome(passing->waiter), 0); /* which tries again */
  assert_true(is_on_server(passing->waiter));
  assert_error(release(passing->waiter), 0);
}

/* A waiter with a very long poll interval gets the lock soon after another client's release. */
static void expect_a_wake_up(env_t *env) {
  belay_client_t *other = env_connect(env, server_url(env->server), NULL);
  belay_lock_options_t options = patient();
  contender_t *holder = contender_holding(env, "door", &options);
  contender_t *waiter = contender_of(env, other, "door", &options);
  assert_error(begin_acquire(waiter, BELAY_FOREVER), 0);
  env_run_for(env, 200 * slow());
  assert_int_equal(waiter->ended, 0);
  int64_t began = clock_now();
  assert_ok(release(holder), outcome(waiter));
  assert_true(clock_since_ms(began) < 1000 * slow());
}

ENV_TEST(release_wakes_other_client) {
  expect_a_wake_up(env);
  assert_true(server_publications(env->server) > 0);
}

TEST(release_wakes_other_client_in_cluster) {
  const server_options_t cluster = {.cluster = true};
  server_t *server = server_start(&cluster);
  server_do(server, "CLUSTER", "ADDSLOTSRANGE", "0", "16383", NULL);
  env_t *env = env_open_with(server, NULL);
  env_until(env,
            strstr(server_string(server, "CLUSTER", "INFO", NULL), "cluster_state:ok") != NULL);
  expect_a_wake_up(env);
  assert_true(server_calls(server, "spublish") > 0);
  assert_int_equal(server_calls(server, "publish"), 0);
  env_close(env);
}

ENV_TEST(polling_lock_publishes_nothing) {
  belay_client_t *other = env_connect(env, server_url(env->server), NULL);
  belay_lock_options_t options = lock_options();
  options.wakeup = BELAY_WAKE_POLL;
  contender_t *holder = contender_holding(env, "door", &options);
  contender_t *waiter = contender_of(env, other, "door", &options);
  assert_error(begin_acquire(waiter, BELAY_FOREVER), 0);
  env_run_for(env, 100);
  assert_ok(release(holder), outcome(waiter), release(waiter));
  assert_int_equal(server_publications(env->server), 0);
  assert_int_equal(server_calls(env->server, deployment_subscribe()), 0);
}

ENV_TEST(polls_back_off) {
  belay_lock_options_t options = lock_options();
  options.wakeup = BELAY_WAKE_POLL;
  options.retry_min_ms = options.retry_max_ms = 10;
  options.backoff_max_ms = 320;
  contender_t *waiter = contender_new(env, "door", &options);
  foreign_holder(waiter, 60000);
  assert_error(begin_acquire(waiter, BELAY_FOREVER), 0);
  env_run_for(env, 700);
  uint64_t commands = client_stats(env).commands;
  env_run_for(env, 1600);
  assert_in_range(client_stats(env).commands - commands, 1, 12); /* not 160 */
  assert_error(cancel(waiter), 0);
}

/* A wait ends after the hand-over to the waiter and before its request. The refusal from before
 * does not count as the reply for this hand-over. */
ENV_TEST(hand_over_at_end_of_wait) {
  belay_client_t *other = env_connect(env, server_url(env->server), NULL);
  belay_lock_options_t options = with_ttl(60000);
  options.wakeup = BELAY_WAKE_POLL;
  options.retry_min_ms = options.retry_max_ms = LONG;
  contender_t *holder = contender_of(env, other, "door", &options);
  contender_t *waiter = contender_new(env, "door", &options);
  contender_t *next = contender_new(env, "door", &options);
  assert_ok(try_lock(holder), begin_acquire(waiter, 1000));
  env_run_for(env, 100); /* two attempts, which find the lock held */
  assert_ok(release(holder), try_lock(next), begin_release(next));
  usleep(1000000); /* the loop stands still until the wait is over */
  assert_error(outcome(next), 0);
  assert_error(outcome(waiter), BELAY_ETIMEDOUT);
  env_settle(env);
  assert_false(is_on_server(next));
}
