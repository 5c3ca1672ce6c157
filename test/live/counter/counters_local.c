/* Locally added sums under faults: each arrives once, or its loss is reported. */
#include <stdio.h>

#include "support/fixtures/data/counters.h"
#include "support/deployments/relay.h"

#define HITS "belay::counter::{hits}"

/* However often the connection is cut, or falls silent: each add counts once. */
TEST_ON(sum_with_lost_replies, server, server_start(NULL)) {
  relay_t *relay = relay_start(server_path(server));
  belay_client_options_t client = client_options();
  client.timeout_ms = 150 * slow();
  client.stall_timeout_ms = 100 * slow();
  client.reconnect_max_ms = 20;
  env_t *env = env_open_at(relay_url(relay), &client);
  const belay_counter_options_t options = counter_options_every(5);
  counters_t counters;
  counters_new(&counters, env, &options);
  int64_t sum[3] = {0};
  static const char *const keys[] = {"a", "b", "c"};
  for (int round = 0; round < 16; round++) {
    relay_delay(relay, round % 2 == 0 ? 10 : 1);
    for (int i = 0; i < 30; i++) {
      assert_error(add_local(&counters, keys[i % 3], i + round), 0);
      sum[i % 3] += i + round;
      if (i % 6 == 5)
        env_run_for(env, 2 + round % 5);
    }
    if (round % 8 == 7)
      relay_silence(relay);
    else if (round % 2 == 0)
      relay_cut(relay);
    else
      env_run_for(env, 60);
  }
  relay_delay(relay, 0);
  expect_idle(&counters);
  for (int i = 0; i < 3; i++)
    expect_got(&counters, keys[i], true, sum[i]);
  belay_counter_stats_t stats = stats_of(&counters);
  print_message("%d sums, %d sent again\n", (int)stats.sums, (int)stats.resends);
  assert_true(stats.resends > 0 && stats.counted == stats.sums && stats.lost == 0);
  env_close(env);
  relay_stop(relay);
}

ENV_TEST_OF(a_server_that_comes_back, o.timeout_ms = 60; o.reconnect_max_ms = 20) {
  const belay_counter_options_t options = counter_options_every(10);
  counters_t counters;
  counters_new(&counters, env, &options);
  server_kill(env->server);
  for (int i = 0; i < 20; i++) {
    assert_error(add_local(&counters, "hits", 1), 0);
    env_run_for(env, 10);
  }
  server_restart(env->server);
  expect_idle(&counters);
  assert_int_equal(number_at(env->server, HITS), 20);
  assert_int_equal(stats_of(&counters).lost, 0);
  server_do(env->server, "SCRIPT", "FLUSH", NULL);
  assert_error(add_local(&counters, "hits", 1), 0);
  expect_idle(&counters);
  assert_int_equal(number_at(env->server, HITS), 21);
}

static void expect_loss(const counters_t *counters, unsigned i, const char *key, int64_t amount,
                        int status, bool maybe) {
  assert_true(counters->losses > i);
  assert_string_equal(counters->loss[i].key, key);
  assert_int_equal(counters->loss[i].amount, amount);
  assert_error(counters->loss[i].status, status);
  assert_int_equal(counters->loss[i].maybe, maybe);
}

static char detail_of_loss[64];

static void keep_detail(counters_t *counters) {
  snprintf(detail_of_loss, sizeof detail_of_loss, "%s", belay_detail(counters->env->belay));
}

ENV_TEST(lasting_refusal_is_reported) {
  const belay_counter_options_t options = counter_options_every(1);
  counters_t counters;
  counters_new(&counters, env, &options);
  counters.then = keep_detail;
  server_do(env->server, "RPUSH", HITS, "x", NULL);
  assert_error(add_local(&counters, "hits", 3), 0);
  assert_error(add_local(&counters, "other", 4), 0);
  expect_idle(&counters);
  assert_int_equal(counters.losses, 1);
  expect_loss(&counters, 0, "hits", 3, BELAY_EWRONGTYPE, false);
  assert_non_null(strstr(detail_of_loss, HITS ": WRONGTYPE"));
  server_do(env->server, "SET", HITS, "9223372036854775807", NULL);
  assert_error(add_local(&counters, "hits", 1), 0);
  expect_idle(&counters);
  expect_loss(&counters, 1, "hits", 1, BELAY_EOVERFLOW, false);
  assert_error(add_local(&counters, "hits", -1), 0);
  expect_idle(&counters);
  assert_int_equal(number_at(env->server, HITS), INT64_MAX - 1);
  assert_int_equal(stats_of(&counters).lost, 2);
  assert_int_equal(number_at(env->server, "belay::counter::{other}"), 4);
}

/* However rarely sums are sent: one that is not answered is asked for while the server knows it. */
TEST_ON(unanswered_sum_is_resent_soon, server, server_start(NULL)) {
  relay_t *relay = relay_start(server_path(server));
  belay_client_options_t client = client_options();
  client.timeout_ms = 1000;
  client.reconnect_max_ms = 20;
  env_t *env = env_open_at(relay_url(relay), &client);
  belay_counter_options_t options = counter_options_every(60000);
  options.op_ttl_ms = 5000;
  counters_t counters;
  counters_new(&counters, env, &options);
  expect_added(&counters, "hits", 1, 1);
  relay_delay(relay, 100);
  assert_error(add_local(&counters, "hits", 1), 0);
  assert_error(belay_counter_flush(counters.counter), 0);
  env_run_for(env, 20);
  env_until(env, number_at(server, HITS) == 2);
  relay_cut(relay);
  relay_delay(relay, 0);
  expect_idle(&counters);
  assert_int_equal(stats_of(&counters).resends, 1);
  assert_int_equal(stats_of(&counters).counted, 1);
  assert_int_equal(number_at(server, HITS), 2);
  env_close(env);
  relay_stop(relay);
}

/* A sum that the server may have forgotten is not sent again. */
ENV_TEST_OF(unanswered_sum_is_given_up, o.timeout_ms = lag()) {
  belay_counter_options_t options = counter_options_every(1);
  options.op_ttl_ms = 1000;
  counters_t counters;
  counters_new(&counters, env, &options);
  expect_added(&counters, "hits", 100, 100);
  server_pause(env->server);
  int64_t begun = clock_now();
  assert_error(add_local(&counters, "hits", 7), 0);
  env_until(env, counters.losses == 1);
  assert_true(clock_now() - begun < (1000 + 500 * slow() + lag()) * MS);
  expect_loss(&counters, 0, "hits", 7, BELAY_EUNKNOWN, true);
  assert_true(stats_of(&counters).resends > 0);
  server_resume(env->server);
  assert_error(add_local(&counters, "hits", 1), 0);
  expect_idle(&counters);
  env_until(env, number_at(env->server, HITS) >= 101);
  int64_t value = number_at(env->server, HITS);
  assert_true(value == 101 || value == 108);
}

typedef enum what { COUNTER, CLIENT, BELAY, WHATS } what_t;

static void begin_end(counters_t *counters, what_t what) {
  if (what == COUNTER)
    assert_error(begin_close_counters(counters), 0);
  else if (what == CLIENT)
    assert_error(begin_client_close(counters->env), 0);
  else
    assert_error(begin_belay_close(counters->env), 0);
}

TEST(close_sends_sums) {
  for (what_t what = COUNTER; what < WHATS; what++) {
    env_t *env = env_open(NULL);
    const belay_counter_options_t options = counter_options_every(60000);
    counters_t counters;
    counters_new(&counters, env, &options);
    for (int i = 0; i < 20; i++)
      assert_error(add_local(&counters, i % 2 ? "hits" : "other", 1), 0);
    assert_error(belay_counter_flush(counters.counter), 0);
    uv_run(&env->loop, UV_RUN_NOWAIT); /* perhaps these are on the way */
    assert_error(add_local(&counters, "hits", 5), 0);
    begin_end(&counters, what);
    assert_error(add_local(&counters, "hits", 5), BELAY_ECLOSING);
    assert_error(belay_counter_flush(counters.counter), BELAY_ECLOSING);
    if (what == COUNTER)
      env_until(env, counters.closed == 1);
    else
      env_until(env, env->client_closed == 1 || env->belay_closed == 1);
    assert_int_equal(number_at(env->server, HITS), 15);
    assert_int_equal(counters.losses, 0);
    env_close(env);
  }
}

/* It waits for its time limit and reports the rest. */
TEST(close_is_bounded) {
  for (what_t what = COUNTER; what < WHATS; what++) {
    belay_client_options_t client = client_options();
    client.close_timeout_ms = 80;
    env_t *env = env_open(&client);
    const belay_counter_options_t options = counter_options_every(60000);
    counters_t counters;
    counters_new(&counters, env, &options);
    expect_added(&counters, "hits", 1, 1);
    expect_added(&counters, "other", 1, 1); /* connected, wherever they are */
    server_pause(env->server);
    assert_error(add_local(&counters, "hits", 3), 0);
    assert_error(belay_counter_flush(counters.counter), 0);
    env_run_for(env, 20);
    assert_error(add_local(&counters, "hits", 5), 0);
    assert_error(add_local(&counters, "other", 7), 0);
    int64_t begun = clock_now();
    begin_end(&counters, what);
    if (what == COUNTER)
      env_until(env, counters.closed == 1);
    else
      env_until(env, env->client_closed == 1 || env->belay_closed == 1);
    assert_between((clock_now() - begun) / MS, 60, 80 + 500 * slow());
    assert_int_equal(counters.losses, 3);
    expect_loss(&counters, 0, "hits", 3, BELAY_ECANCELED, true);
    expect_loss(&counters, 1, "hits", 5, BELAY_ECANCELED, false);
    expect_loss(&counters, 2, "other", 7, BELAY_ECANCELED, true);
    server_resume(env->server);
    env_close(env);
  }
}

static what_t to_close;

static void close_it(counters_t *counters) {
  counters->then = NULL;
  begin_end(counters, to_close);
}

TEST(close_in_the_loss_callback) {
  for (to_close = COUNTER; to_close < WHATS; to_close++) {
    env_t *env = env_open(NULL);
    const belay_counter_options_t options = counter_options_every(1);
    counters_t counters;
    counters_new(&counters, env, &options);
    server_do(env->server, "RPUSH", HITS, "x", NULL);
    server_do(env->server, "RPUSH", "belay::counter::{other}", "x", NULL);
    counters.then = close_it;
    assert_error(add_local(&counters, "hits", 3), 0);
    assert_error(add_local(&counters, "other", 3), 0);
    assert_error(add_local(&counters, "fine", 3), 0);
    env_until(env, counters.losses == 2);
    if (to_close == COUNTER)
      env_until(env, counters.closed == 1);
    else
      env_until(env, env->client_closed == 1 || env->belay_closed == 1);
    assert_int_equal(number_at(env->server, "belay::counter::{fine}"), 3);
    env_close(env);
  }
}

/* Added in the callback, to the key that it is about. */
static void add_again(counters_t *counters) {
  counters->then = NULL;
  server_do(counters->env->server, "DEL", HITS, NULL);
  assert_error(add_local(counters, "hits", counters->loss[0].amount), 0);
}

COUNTER_TEST_OF(add_in_the_loss_callback, o.batch_ms = 1) {
  server_do(env->server, "RPUSH", HITS, "x", NULL);
  counters->then = add_again;
  assert_error(add_local(counters, "hits", 3), 0);
  expect_idle(counters);
  assert_int_equal(number_at(env->server, HITS), 3);
}
