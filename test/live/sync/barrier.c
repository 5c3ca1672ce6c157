/* The barrier: exactly n parties pass at a time, all in one generation, even if others give up
 * or close. */
#include "support/fixtures/lease/parties.h"

/* Every remaining key has a ttl. */
static void expect_ttls(env_t *env) {
  static const char *const keys[] = {KEY, PARTIES, KEY "::passed", KEY "::opened"};
  int64_t n = 0;
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    int64_t ttl = server_integer(env->server, "PTTL", keys[i], NULL);
    assert_true(ttl == -2 || ttl > 0);
    n += ttl > 0;
  }
  assert_int_equal(server_keys(env->server), n);
}

ENV_TEST(all_parties_pass) {
  enum { N = 5, GENERATIONS = 20 };
  party_t p[N];
  for (int i = 0; i < N; i++)
    party_new(&p[i], env, N);
  for (unsigned g = 1; g <= GENERATIONS; g++) {
    for (int i = 0; i + 1 < N; i++)
      assert_error(begin_barrier_wait(&p[i], BELAY_FOREVER), 0);
    assert_error(begin_barrier_wait(&p[0], BELAY_FOREVER), BELAY_ESTATE);
    env_until(env, party_count(env) == N - 1);
    if (g % 5 == 0)
      env_run_for(env, 100);
    for (int i = 0; i < N; i++)
      assert_int_equal(p[i].ended, g - 1);
    assert_error(begin_barrier_wait(&p[N - 1], BELAY_FOREVER), 0);
    for (int i = 0; i < N; i++) {
      assert_error(end_of_barrier_wait(&p[i]), 0);
      assert_int_equal(p[i].generation, g);
    }
    assert_int_equal(party_count(env), 0);
  }
  expect_ttls(env);
}

ENV_TEST(count_of_one) {
  party_t p;
  party_new(&p, env, 1);
  for (unsigned g = 1; g <= 3; g++) {
    assert_error(barrier_wait_for(&p, 0), 0);
    assert_int_equal(p.generation, g);
  }
}

ENV_TEST(extra_parties_wait_for_next_generation) {
  enum { N = 7, COUNT = 3 };
  party_t p[N];
  unsigned passed[4] = {0};
  for (int i = 0; i < N; i++) {
    party_new(&p[i], env, COUNT);
    assert_error(begin_barrier_wait(&p[i], 1000 * slow()), 0);
  }
  for (int i = 0; i < N; i++) {
    int status = end_of_barrier_wait(&p[i]);
    assert_true(p[i].generation <= 2);
    passed[p[i].generation]++;
    assert_error(status, p[i].generation > 0 ? 0 : BELAY_ETIMEDOUT);
  }
  assert_int_equal(passed[1], COUNT);
  assert_int_equal(passed[2], COUNT);
  assert_int_equal(passed[0], N - 2 * COUNT);
  assert_int_equal(party_count(env), 0);
}

ENV_TEST(opening_wakes_parties) {
  belay_client_t *client = env_connect(env, server_url(env->server), NULL);
  belay_latch_options_t options = barrier_options(2);
  options.retry_min_ms = options.retry_max_ms = 60000;
  options.waiter_ttl_ms = 180000;
  party_t one, other;
  party_pair(&one, &other, env, client, &options);
  begin_and_arrive(&one, BELAY_FOREVER);
  env_run_for(env, 200 * slow());
  int64_t began = clock_now();
  assert_ok(barrier_wait_for(&other, BELAY_FOREVER), end_of_barrier_wait(&one));
  assert_between(clock_since_ms(began), 0, 1000 * slow());
}

ENV_TEST(canceled_party_does_not_count) {
  party_t one, other;
  party_new(&one, env, 2);
  party_new(&other, env, 2);
  int64_t began = clock_now();
  assert_error(barrier_wait_for(&one, 200), BELAY_ETIMEDOUT);
  assert_between(clock_since_ms(began), 198, 200 + 200 * slow());
  assert_error(barrier_wait_for(&one, 0), BELAY_ETIMEDOUT);
  assert_error(belay_barrier_cancel(one.barrier), BELAY_ESTATE);
  begin_and_arrive(&one, BELAY_FOREVER);
  assert_error(belay_barrier_cancel(one.barrier), 0);
  assert_error(end_of_barrier_wait(&one), BELAY_ECANCELED);
  assert_int_equal(party_count(env), 0);
  begin_and_arrive(&one, BELAY_FOREVER);
  assert_error(begin_close_barrier(&one), 0);
  env_until(env, one.closed == 1);
  assert_error(one.status, BELAY_ECANCELED);
  assert_error(barrier_wait_for(&other, 100), BELAY_ETIMEDOUT);
  assert_int_equal(party_count(env), 0);
  expect_ttls(env);
}

/* The barrier opens while one party cancels: both pass or none does. */
ENV_TEST(cancel_after_opening) {
  belay_client_t *client = env_connect(env, server_url(env->server), NULL);
  belay_latch_options_t options = barrier_options(2);
  unsigned passed = 0, withdrawn = 0;
  for (int i = 0; i < 36; i++) {
    party_t one, other;
    party_pair(&one, &other, env, client, &options);
    begin_and_arrive(&one, BELAY_FOREVER);
    env_run_for(env, i % 3 == 0 ? 20 : 0);
    assert_error(begin_barrier_wait(&other, 120 * slow()), 0);
    if (i % 2 == 0)
      assert_error(belay_barrier_cancel(one.barrier), 0);
    else
      assert_error(begin_close_barrier(&one), 0);
    env_until(env, one.ended == 1 && other.ended == 1);
    assert_error(other.status, one.status == 0 ? 0 : BELAY_ETIMEDOUT);
    assert_int_equal(one.generation, other.generation);
    if (one.status != 0)
      assert_error(one.status, BELAY_ECANCELED);
    env_until(env, one.closed == (unsigned)i % 2);
    passed += one.status == 0;
    withdrawn += one.status != 0;
  }
  print_message("%u passed, %u withdrew\n", passed, withdrawn);
  assert_int_equal(party_count(env), 0);
}

/* The request of the other party is before the withdrawal in the socket of the server. */
ENV_TEST(withdrawal_after_opening) {
  belay_client_t *client = env_connect(env, server_url(env->server), NULL);
  belay_client_stats_t stats;
  belay_latch_options_t options = barrier_options(2);
  party_t one, other;
  party_pair(&one, &other, env, client, &options);
  assert_error(barrier_wait_for(&other, 0), BELAY_ETIMEDOUT); /* connected */
  begin_and_arrive(&one, BELAY_FOREVER);
  server_pause(env->server);
  belay_client_stats(client, &stats);
  uint64_t before = stats.writes;
  assert_error(begin_barrier_wait(&other, BELAY_FOREVER), 0);
  do {
    env_run_for(env, 5);
    belay_client_stats(client, &stats);
  } while (stats.writes == before);
  server_resume(env->server);
  server_do(env->server, "PING", NULL); /* it has read what was there */
  assert_ok(belay_barrier_cancel(one.barrier), end_of_barrier_wait(&one));
  assert_error(end_of_barrier_wait(&other), 0);
  assert_int_equal(one.generation, 1);
  assert_int_equal(other.generation, 1);
}

TEST(failed_withdrawal_is_unknown) {
  belay_client_options_t client = client_options();
  client.timeout_ms = prompt_ms();
  env_t *env = env_open(&client);
  belay_latch_options_t options = barrier_options(2);
  options.waiter_ttl_ms = 500 * slow();
  party_t p, other;
  party_pair(&p, &other, env, env->client, &options);
  begin_and_arrive(&p, BELAY_FOREVER);
  server_pause(env->server);
  assert_error(belay_barrier_cancel(p.barrier), 0);
  assert_each(BELAY_EUNKNOWN, end_of_barrier_wait(&p), barrier_wait_for(&p, 300 * slow()));
  server_resume(env->server);
  env_settle(env);
  assert_error(barrier_wait_for(&other, 50),
               BELAY_ETIMEDOUT); /* the stopped server's unread request was withdrawn, too */
  server_kill(env->server);
  env_run_for(env, 50);
  assert_error(barrier_wait_for(&p, 300 * slow()), BELAY_EUNREACHABLE); /* nothing was ever sent */
  server_restart(env->server);
  env_close(env);
}

TEST(count_mismatch) {
  env_t *env = env_open(NULL);
  party_t two, three;
  party_new(&two, env, 2);
  party_new(&three, env, 3);
  begin_and_arrive(&two, BELAY_FOREVER);
  assert_error(barrier_wait_for(&three, BELAY_FOREVER), BELAY_EMISMATCH);
  assert_int_equal(party_count(env), 1);
  assert_int_equal(two.ended, 0);
  env_close(env);
}

ENV_TEST(key_of_other_type) {
  static const char *const keys[] = {KEY, PARTIES, KEY "::passed", KEY "::opened"};
  party_t p;
  party_new(&p, env, 2);
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    server_do(env->server, "FLUSHALL", NULL);
    server_do(env->server, "SET", keys[i], "something else", NULL);
    assert_error(barrier_wait_for(&p, BELAY_FOREVER), BELAY_EWRONGTYPE);
    assert_int_equal(server_keys(env->server), 1); /* nothing was done */
  }
}

ENV_TEST(expires_after_last_use) {
  belay_latch_options_t options = barrier_options(1);
  options.ttl_ms = 1000;
  options.waiter_ttl_ms = 500;
  party_t p;
  party_of(&p, env, env->client, &options);
  for (unsigned g = 1; g <= 3; g++) {
    assert_error(barrier_wait_for(&p, BELAY_FOREVER), 0);
    assert_int_equal(p.generation, g);
    assert_between(server_integer(env->server, "PTTL", KEY, NULL), 1, 1000);
  }
  env_until(env, server_integer(env->server, "EXISTS", KEY, NULL) == 0);
  assert_error(barrier_wait_for(&p, BELAY_FOREVER), 0);
  assert_int_equal(p.generation, 1);
  expect_ttls(env);
}

static void close_it(party_t *p) {
  p->then = NULL;
  assert_error(begin_close_barrier(p), 0);
  assert_each(BELAY_ECLOSING, begin_close_barrier(p), begin_barrier_wait(p, 0));
  assert_error(belay_barrier_cancel(p->barrier), BELAY_ECLOSING);
}

static void close_client(party_t *p) {
  p->then = NULL;
  assert_error(begin_client_close(p->env), 0);
}

static void close_everything(party_t *p) {
  p->then = NULL;
  assert_error(begin_belay_close(p->env), 0);
}

static void (*const closes[])(party_t *p) = {close_it, close_client, close_everything};

TEST(close_during_wait) {
  for (int paused = 0; paused < 2; paused++)
    for (size_t i = 0; i < sizeof closes / sizeof *closes; i++) {
      belay_client_options_t options = client_options();
      options.close_timeout_ms = 300 * slow();
      env_t *env = env_open(&options);
      party_t p;
      party_new(&p, env, 2);
      begin_and_arrive(&p, BELAY_FOREVER);
      env_run_for(env, 30);
      if (paused)
        server_pause(env->server);
      int64_t began = clock_now();
      closes[i](&p);
      env_until(env, p.ended == 1);
      assert_between(clock_since_ms(began), 0, options.close_timeout_ms + lag());
      assert_error(p.status, paused ? BELAY_EUNKNOWN : BELAY_ECANCELED);
      server_resume(env->server);
      if (!paused)
        assert_int_equal(party_count(env), 0);
      env_close(env);
    }
}

TEST(close_in_callback) {
  for (int opens = 0; opens < 2; opens++)
    for (size_t i = 0; i < sizeof closes / sizeof *closes; i++) {
      env_t *env = env_open(NULL);
      party_t p;
      party_new(&p, env, opens ? 1 : 2);
      p.then = closes[i];
      assert_error(begin_barrier_wait(&p, 20), 0);
      env_until(env, p.ended == 1);
      assert_error(p.status, opens ? 0 : BELAY_ETIMEDOUT);
      env_close(env);
    }
}

ENV_TEST(invalid_arguments) {
  party_t p;
  belay_barrier_t *barrier = NULL;
  belay_latch_options_t options = barrier_options(BELAY_BARRIER_COUNT_MAX + 1);
  assert_error(belay_barrier_new(env->client, belay_string("gate"), &options, &barrier),
               BELAY_EINVAL);
  assert_error(belay_barrier_new(env->client, belay_string("gate"), NULL, NULL), BELAY_EINVAL);
  assert_error(belay_barrier_new(NULL, belay_string("gate"), NULL, &barrier), BELAY_EINVAL);
  party_new(&p, env, 2);
  assert_each(BELAY_EINVAL, begin_barrier_wait(&p, -3), belay_barrier_wait(p.barrier, 0, NULL));
  assert_error(belay_barrier_wait(NULL, 0, on_barrier_ended), BELAY_EINVAL);
  assert_each(BELAY_EINVAL, belay_barrier_cancel(NULL), belay_barrier_close(NULL, NULL));
  assert_null(belay_barrier_data(NULL));
  env_run_for(env, 20);
  assert_int_equal(server_keys(env->server), 0);
}
