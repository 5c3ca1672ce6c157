/* The barrier when parties die, answers and messages are lost, and servers forget. */
#include <signal.h>
#include <stdio.h>

#include "scripts.gen.h"
#include "support/fixtures/lease/parties.h"
#include "support/servers/process.h"
#include "support/deployments/relay.h"

/* Passes `times` times and prints each generation. */
static int play_party(const char *url, const char *count, const char *times) {
  env_t *env = env_open_at(url, NULL);
  belay_latch_options_t options = barrier_options((unsigned)atoi(count));
  options.waiter_ttl_ms = 1000 * slow();
  party_t p;
  party_of(&p, env, env->client, &options);
  for (int i = 0; i < atoi(times); i++) {
    assert_error(barrier_wait_for(&p, BELAY_FOREVER), 0);
    printf("%llu\n", (unsigned long long)p.generation);
    fflush(stdout);
  }
  env_close(env);
  return 0;
}

static process_t start_party(env_t *env, const char *count, const char *times) {
  const char *argv[] = {process_self(), "--party", server_url(env->server), count, times, NULL};
  return process_start(argv);
}

static unsigned generation_of(process_t *process) {
  char line[64];
  assert_true(process_read_line(process, line, sizeof line));
  return (unsigned)atoi(line);
}

ENV_TEST(processes_pass) {
  enum { N = 4, GENERATIONS = 25 };
  process_t process[N];
  for (int i = 0; i < N; i++)
    process[i] = start_party(env, "4", "25");
  for (unsigned g = 1; g <= GENERATIONS; g++)
    for (int i = 0; i < N; i++)
      assert_int_equal(generation_of(&process[i]), g);
  for (int i = 0; i < N; i++)
    assert_int_equal(process_wait(&process[i]), 0);
  assert_int_equal(party_count(env), 0);
}

ENV_TEST(killed_party_loses_its_place) {
  party_t one, other;
  belay_latch_options_t options = barrier_options(3);
  options.waiter_ttl_ms = 1000 * slow();
  party_pair(&one, &other, env, env->client, &options);
  process_t process = start_party(env, "3", "1");
  env_until(env, party_count(env) == 1);
  process_finish(&process);
  int64_t died = clock_now();
  begin_and_arrive(&one, BELAY_FOREVER);
  env_until(env, party_count(env) == 1); /* its place is swept, ours is renewed */
  assert_between(clock_since_ms(died), 0, 3000 * slow());
  env_run_for(env, 1500 * slow());
  begin_and_arrive(&other, BELAY_FOREVER);
  assert_int_equal(one.ended + other.ended, 0);
  process = start_party(env, "3", "1");
  assert_int_equal(generation_of(&process), 1);
  assert_int_equal(process_wait(&process), 0);
  assert_ok(end_of_barrier_wait(&one), end_of_barrier_wait(&other));
}

/* A party without a reply asks again, and learns the generation in which it passed. */
TEST(replies_lost) {
  belay_client_options_t options = client_options();
  options.stall_timeout_ms = 300 * slow();
  options.timeout_ms = 300 * slow();
  options.reconnect_max_ms = 50;
  env_t *env = env_open_relayed(&options);
  belay_client_t *near = env_connect(env, server_url(env->server), NULL);
  belay_latch_options_t terms = barrier_options(2);
  terms.waiter_ttl_ms = 10000 * slow();
  party_t far, other;
  party_pair(&far, &other, env, near, &terms);
  for (unsigned g = 1; g <= 16; g++) {
    party_t *last = g % 2 == 0 ? &far : &other, *first = g % 2 == 0 ? &other : &far;
    begin_and_arrive(first, BELAY_FOREVER);
    relay_delay(env->relay, 20);
    assert_error(begin_barrier_wait(last, BELAY_FOREVER), 0);
    env_run_for(env, g % 3 * 13);
    if (g % 4 == 3)
      relay_silence(env->relay);
    else
      relay_cut(env->relay);
    relay_delay(env->relay, 0);
    assert_ok(end_of_barrier_wait(&far), end_of_barrier_wait(&other));
    assert_int_equal(far.generation, g);
    assert_int_equal(other.generation, g);
    assert_int_equal(party_count(env), 0);
  }
  env_close(env);
}

/* A request of a lost connection may be executed after its withdrawal on the next connection. */
ENV_TEST(late_arrival_after_withdrawal) {
  party_t one, other;
  char id[256];
  party_new(&one, env, 2);
  party_new(&other, env, 2);
  begin_and_arrive(&one, BELAY_FOREVER);
  const resp_t *who = server_ask(env->server, "ZRANGE", PARTIES, "0", "-1", NULL);
  assert_int_equal(who->count, 1);
  snprintf(id, sizeof id, "%s", who->items[0]->str);
  assert_error(belay_barrier_cancel(one.barrier), 0);
  assert_error(end_of_barrier_wait(&one), BELAY_ECANCELED);
  for (int i = 0; i < 2; i++)
    assert_int_equal(server_integer(env->server, "EVAL", belay__script_barrier_arrive.text, "4",
                                    KEY, PARTIES, KEY "::passed", KEY "::opened", "2", "10000", id,
                                    "10000", "60000", "", "", NULL),
                     -1);
  assert_int_equal(party_count(env), 0);
  assert_error(barrier_wait_for(&other, 0), BELAY_ETIMEDOUT);
}

ENV_TEST(long_polls_keep_place) {
  belay_latch_options_t options = barrier_options(2);
  options.retry_min_ms = options.retry_max_ms = 60000;
  options.waiter_ttl_ms = kept_ttl();
  party_t one, other;
  party_pair(&one, &other, env, env->client, &options);
  begin_and_arrive(&one, BELAY_FOREVER);
  env_run_for(env, 2 * options.waiter_ttl_ms);
  assert_ok(barrier_wait_for(&other, 0), end_of_barrier_wait(&one));
}

ENV_TEST(messages_lost) {
  enum { N = 3 };
  party_t p[N];
  for (int i = 0; i < N; i++)
    party_new(&p[i], env, N);
  for (unsigned g = 1; g <= 10; g++) {
    for (int i = 0; i + 1 < N; i++)
      begin_and_arrive(&p[i], BELAY_FOREVER);
    server_do(env->server, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
    int64_t began = clock_now();
    assert_error(begin_barrier_wait(&p[N - 1], BELAY_FOREVER), 0);
    for (int i = 0; i < N; i++) {
      assert_error(end_of_barrier_wait(&p[i]), 0);
      assert_int_equal(p[i].generation, g);
    }
    assert_between(clock_since_ms(began), 0, 1000 * slow());
  }
}

ENV_TEST_OF(barrier_data_lost, o.reconnect_max_ms = 50) {
  party_t one, other;
  party_new(&one, env, 2);
  party_new(&other, env, 2);
  begin_and_arrive(&one, BELAY_FOREVER);
  server_do(env->server, "FLUSHALL", NULL);
  env_until(env, party_count(env) == 1); /* it has come again */
  server_do(env->server, "SCRIPT", "FLUSH", NULL);
  env_run_for(env, 500);
  server_kill(env->server);
  env_run_for(env, 200);
  server_restart(env->server);
  env_until(env, party_count(env) == 1);
  assert_int_equal(one.ended, 0);
  assert_ok(barrier_wait_for(&other, BELAY_FOREVER), end_of_barrier_wait(&one));
  assert_int_equal(one.generation, 1);
}

static int64_t passed(env_t *env) {
  return server_integer(env->server, "ZCARD", KEY "::passed", NULL);
}

/* The records of passed parties stay bounded. */
ENV_TEST(passed_parties_are_forgotten) {
  enum { PARTIES_SEEN = 5 };
  party_t p[PARTIES_SEEN];
  for (int i = 0; i < PARTIES_SEEN; i++) {
    party_new(&p[i], env, 1);
    for (int k = 0; k < 20; k++)
      assert_error(barrier_wait_for(&p[i], 0), 0);
    assert_int_equal(passed(env), i + 1);
  }
  assert_int_equal(p[4].generation, 100);
  assert_between(server_integer(env->server, "ZCARD", KEY "::opened", NULL), 1, 5 * slow());
  server_do(env->server, "DEL", KEY "::opened", NULL);
  server_do(env->server, "ZADD", KEY "::opened", "1000", "20", "2000", "60",
            NULL); /* as if it had been long ago */
  int64_t now =
      server_integer(env->server, "EVAL", "return redis.call('TIME')[1] * 1000", "0", NULL);
  char text[24];
  snprintf(text, sizeof text, "%lld", (long long)now);
  server_do(env->server, "ZADD", KEY "::opened", text, "80", NULL);
  server_do(env->server, "ZADD", KEY "::passed", "-1000", "withdrawn", NULL);
  assert_error(barrier_wait_for(&p[4], 0), 0);
  assert_int_equal(p[4].generation, 101);
  assert_int_equal(passed(env), 2); /* the one that passed in 80, and this one */
  server_do(env->server, "ZADD", KEY "::passed", "-1000", "withdrawn", NULL);
  server_do(env->server, "DEL", KEY "::opened", NULL);
  assert_error(barrier_wait_for(&p[0], 0), 0);
  assert_int_equal(passed(env), 1);
  server_do(env->server, "ZADD", KEY "::passed", "-1000", "withdrawn", NULL);
  party_t more;
  belay_latch_options_t options = barrier_options(2);
  server_do(env->server, "DEL", KEY, NULL);
  party_of(&more, env, env->client, &options);
  assert_error(barrier_wait_for(&more, 0), BELAY_ETIMEDOUT);
  assert_int_equal(passed(env), 2);
}

/* The server remembers a party whose reply was lost: its request may be executed late. */
ENV_TEST_OF(lost_reply_is_remembered, o.timeout_ms = prompt_ms()) {
  party_t p;
  party_new(&p, env, 1);
  assert_error(barrier_wait_for(&p, 0), 0);
  server_pause(env->server);
  assert_error(barrier_wait_for(&p, 0), BELAY_EUNKNOWN);
  server_resume(env->server);
  env_until(env, passed(env) == 1);
  for (int i = 0; i < 5; i++)
    assert_error(barrier_wait_for(&p, 0), 0);
  assert_int_equal(passed(env), 2);
}

TEST_ROLE(party, "--party") {
  return play_party(argv[2], argv[3], argv[4]);
}
