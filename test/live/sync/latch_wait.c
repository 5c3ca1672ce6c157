/* Waiters of a latch learn that it is open, through every fault. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "support/fixtures/lease/latches.h"
#include "support/servers/process.h"

LATCH_TEST(wait_times_out_or_is_canceled, 1) {
  int64_t began = clock_now();
  assert_error(latch_wait_for(h, 300), BELAY_ETIMEDOUT);
  assert_between(clock_since_ms(began), 298, 300 + 200 * slow());
  assert_error(belay_latch_cancel(h->latch), BELAY_ESTATE);
  assert_ok(begin_latch_wait(h, BELAY_FOREVER), belay_latch_cancel(h->latch));
  assert_error(belay_latch_cancel(h->latch), BELAY_ESTATE);
  assert_error(end_of_latch_wait(h), BELAY_ECANCELED);
  assert_error(begin_latch_wait(h, BELAY_FOREVER), 0);
  env_run_for(env, 150);
  assert_error(belay_latch_cancel(h->latch), 0);
  assert_error(end_of_latch_wait(h), BELAY_ECANCELED);
  assert_int_equal(count(h, "a"), 0);
  assert_error(latch_wait_for(h, 10000), 0);
}

/* A waiter with a poll interval of a minute learns of it at once. */
ENV_TEST(opening_wakes_waiter) {
  belay_client_t *client = env_connect(env, server_url(env->server), NULL);
  belay_latch_options_t options = latch_options(1);
  options.retry_min_ms = options.retry_max_ms = options.backoff_max_ms = 60000;
  handle_t h, other;
  handle_of(&h, env, env->client, &options);
  handle_of(&other, env, client, &options);
  assert_error(begin_latch_wait(&h, BELAY_FOREVER), 0);
  env_run_for(env, 200 * slow());
  int64_t began = clock_now();
  assert_int_equal(count(&other, NULL), 0);
  assert_error(end_of_latch_wait(&h), 0);
  assert_between(clock_since_ms(began), 0, 1000 * slow());
}

ENV_TEST(opening_before_subscription) {
  belay_client_t *client = env_connect(env, server_url(env->server), NULL);
  belay_latch_options_t options = latch_options(1);
  options.retry_min_ms = options.retry_max_ms = options.backoff_max_ms = 60000;
  for (int i = 0; i < 40; i++) {
    handle_t h, other;
    server_do(env->server, "FLUSHALL", NULL);
    handle_of(&h, env, env->client, &options);
    handle_of(&other, env, client, &options);
    assert_error(begin_latch_wait(&h, BELAY_FOREVER), 0);
    for (int turns = 0; turns < i / 4; turns++)
      uv_run(&env->loop, UV_RUN_NOWAIT);
    assert_int_equal(count(&other, NULL), 0);
    assert_ok(end_of_latch_wait(&h), begin_close_latch(&h), begin_close_latch(&other));
    env_until(env, h.closed == 1 && other.closed == 1);
    if (i % 2 == 0) /* the next one has to subscribe again */
      server_do(env->server, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
  }
}

/* The latch opens and expires before the next query; perhaps there is a new one. */
ENV_TEST(latch_expires_during_wait) {
  belay_latch_options_t options = latch_options(1);
  options.retry_min_ms = options.retry_max_ms = options.backoff_max_ms = 60000;
  for (int another = 0; another < 2; another++) {
    handle_t h, other;
    handle_of(&h, env, env->client, &options);
    handle_of(&other, env, env->client, &options);
    assert_error(begin_latch_wait(&h, 3000 * slow()), 0);
    env_run_for(env, 300 * slow());
    server_do(env->server, "DEL", KEY, NULL);
    if (another)
      assert_error(latch_wait_for(&other, 0), BELAY_ETIMEDOUT);
    (void)server_publish(env->server, KEY "::wake", "");
    assert_error(end_of_latch_wait(&h), BELAY_EUNKNOWN);
    assert_int_equal(server_keys(env->server), another);
    assert_error(latch_wait_for(&h, 0), BELAY_ETIMEDOUT); /* that is another wait */
  }
}

LATCH_TEST(messages_lost, 1) {
  assert_error(begin_latch_wait(h, BELAY_FOREVER), 0);
  env_run_for(env, 1500); /* as rarely as it gets */
  int64_t began = clock_now();
  server_do(env->server, "HSET", KEY, ":somebody", "", NULL); /* counts without a message */
  assert_error(end_of_latch_wait(h), 0);
  assert_between(clock_since_ms(began), 0, 600 + prompt_ms());
}

ENV_TEST(subscription_refused) {
  server_do(env->server, "ACL", "SETUSER", "default", "resetchannels", "-subscribe", "-ssubscribe",
            "-publish", "-spublish", NULL);
  handle_t h;
  handle_new(&h, env, 1);
  assert_error(begin_latch_wait(&h, BELAY_FOREVER), 0);
  env_run_for(env, 500);
  int64_t began = clock_now();
  assert_int_equal(count(&h, NULL), 0); /* and may not publish, either */
  assert_error(end_of_latch_wait(&h), 0);
  assert_between(clock_since_ms(began), 0, 300 + prompt_ms());
}

LATCH_TEST(polls_back_off, 1) {
  assert_error(begin_latch_wait(h, BELAY_FOREVER), 0);
  env_run_for(env, 1000);
  uint64_t before = client_stats(env).calls;
  env_run_for(env, 2000);
  assert_between((int64_t)(client_stats(env).calls - before), 2,
                 21); /* at most once in 100 ms; not 40 */
}

ENV_TEST_OF(temporary_faults_in_wait, o.timeout_ms = prompt_ms(); o.reconnect_max_ms = 50;
            o.stall_timeout_ms = 400 * slow()) {
  handle_t h;
  handle_new(&h, env, 1);
  assert_error(begin_latch_wait(&h, BELAY_FOREVER), 0);
  env_run_for(env, 100);
  server_do(env->server, "SCRIPT", "FLUSH", NULL);
  env_run_for(env, 100);
  server_pause(env->server);
  env_run_for(env, 600 * slow());
  server_resume(env->server);
  env_run_for(env, 100);
  server_do(env->server, "SAVE", NULL);
  server_kill(env->server);
  env_run_for(env, 300);
  server_restart(env->server);
  env_run_for(env, 300 * slow());
  assert_int_equal(h.ended, 0);
  assert_int_equal(count(&h, "a"), 0);
  assert_error(end_of_latch_wait(&h), 0);
  server_do(env->server, "FLUSHALL", NULL);
  assert_error(begin_latch_wait(&h, BELAY_FOREVER), 0);
  env_run_for(env, 300 * slow());
  server_do(env->server, "FLUSHALL", NULL); /* that does not: it may have been open */
  assert_error(end_of_latch_wait(&h), BELAY_EUNKNOWN);
}

ENV_TEST_OF(server_away_at_end_of_wait, o.timeout_ms = prompt_ms()) {
  handle_t h;
  handle_new(&h, env, 1);
  assert_error(latch_wait_for(&h, 0), BELAY_ETIMEDOUT);
  server_pause(env->server);
  assert_each(BELAY_EUNKNOWN, latch_wait_for(&h, 300 * slow()), latch_wait_for(&h, 0));
  server_resume(env->server);
  server_kill(env->server);
  env_run_for(env, 50);
  assert_error(latch_wait_for(&h, 300 * slow()), BELAY_EUNREACHABLE);
  server_restart(env->server);
}

TEST(authentication_fails) {
  server_options_t locked = {.password = "secret"};
  server_t *server = server_start(&locked);
  char url[256];
  snprintf(url, sizeof url, "unix://:wrong@%s", server_path(server));
  env_t *env = env_open_at(url, NULL);
  env->server = server;
  handle_t h;
  handle_new(&h, env, 1);
  assert_error(latch_wait_for(&h, BELAY_FOREVER), BELAY_EAUTH);
  count_op_t t = {0};
  assert_error(count_status(&h, &t, NULL), BELAY_EAUTH);
  env_close(env);
}

enum { PROCESSES = 4, WAITERS = 6 };

static int play_process(const char *url, const char *number) {
  env_t *env = env_open_at(url, NULL);
  belay_latch_options_t options = latch_options(PROCESSES);
  handle_t h;
  char line[16];
  handle_of(&h, env, env->client, &options);
  assert_error(begin_latch_wait(&h, BELAY_FOREVER), 0);
  process_t out = {.out = STDIN_FILENO};
  env_run_for(env, 50);
  printf("waiting\n");
  fflush(stdout);
  process_read_line(&out, line, sizeof line);
  (void)count(&h, number);
  printf("counted\n");
  fflush(stdout);
  assert_error(end_of_latch_wait(&h), 0);
  printf("open\n");
  fflush(stdout);
  env_close(env);
  return 0;
}

static process_t start_process(env_t *env, int i) {
  char number[12];
  snprintf(number, sizeof number, "%d", i);
  const char *argv[] = {process_self(), "--process", server_url(env->server), number, NULL};
  return process_start(argv);
}

/* A process is killed, perhaps after its count. Its replacement repeats the count. */
ENV_TEST(opening_wakes_all_waiters) {
  process_t process[PROCESSES];
  handle_t waiter[WAITERS];
  belay_latch_options_t options = latch_options(PROCESSES);
  for (int i = 0; i < PROCESSES; i++)
    process[i] = start_process(env, i);
  for (int i = 0; i < WAITERS; i++) {
    belay_client_t *client =
        i < WAITERS / 2 ? env->client : env_connect(env, server_url(env->server), NULL);
    handle_of(&waiter[i], env, client, &options);
    assert_error(begin_latch_wait(&waiter[i], BELAY_FOREVER), 0);
  }
  for (int i = 0; i < PROCESSES; i++)
    process_expect_line(&process[i], "waiting");
  process_write_line(&process[0], "count");
  process_finish(&process[0]);
  process[0] = start_process(env, 0);
  process_expect_line(&process[0], "waiting");
  for (int i = 0; i < PROCESSES; i++) {
    assert_int_equal(waiter[0].ended, 0);
    process_write_line(&process[i], "count");
    process_expect_line(&process[i], "counted");
    if (i + 1 < PROCESSES)
      env_run_for(env, 50);
  }
  for (int i = 0; i < PROCESSES; i++) {
    process_expect_line(&process[i], "open");
    assert_int_equal(process_wait(&process[i]), 0);
  }
  for (int i = 0; i < WAITERS; i++)
    assert_error(end_of_latch_wait(&waiter[i]), 0);
  assert_int_equal(counted(env), PROCESSES);
}

TEST_ROLE(process, "--process") {
  return play_process(argv[2], argv[3]);
}
