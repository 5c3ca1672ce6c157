/* Why a connection was lost, or could not be made: in the log, and in belay_detail() of the call
 * that failed. */
#include <stdio.h>

#include "support/fixtures/limit/asks.h"
#include "support/deployments/fake.h"

#define S INT64_C(1000000)

static char line[512];   /* of the log: the last that names a connection */
static char detail[256]; /* of the last call that failed */

static void keep_line(env_t *env, const char *text) {
  (void)env;
  if (strstr(text, "connection to ") != NULL)
    snprintf(line, sizeof line, "%s", text);
}

static void keep_detail(env_t *env) {
  snprintf(detail, sizeof detail, "%s", belay_detail(env->belay));
}

static env_t *listened(env_t *env) {
  env->on_log = keep_line;
  env->then = keep_detail;
  line[0] = detail[0] = '\0';
  return env;
}

static int ping(env_t *env) {
  int before = env->pongs;
  assert_error(begin_ping(env), 0);
  env_until(env, env->pongs > before);
  return env->pong_status;
}

static void expect_words(const char *text, const char *words) {
  if (strstr(text, words) == NULL)
    fail_msg("\"%s\" is not in \"%s\"", words, text);
}

static void expect_one_of(const char *text, const char *words, const char *others) {
  if (strstr(text, words) == NULL && strstr(text, others) == NULL)
    fail_msg("neither \"%s\" nor \"%s\" is in \"%s\"", words, others, text);
}

static belay_client_options_t hasty(void) {
  belay_client_options_t options = client_options();
  options.timeout_ms = 500 * slow();
  return options;
}

static void note_detail(ask_t *ask) {
  snprintf(detail, sizeof detail, "%s", belay_detail(ask->env->belay));
}

/* Three calls are under way when the server is killed. */
TEST(killed_server) {
  belay_client_options_t options = client_options();
  options.timeout_ms = 60000 * slow();
  env_t *env = listened(env_open(&options));
  belay_limit_t limit = {.kind = BELAY_LIMIT_BUCKET, .count = 100, .period_us = 3600 * S};
  belay_limiter_t *limiter = limiter_new(env, &limit, 1);
  static ask_t asks[3];
  memset(asks, 0, sizeof asks);
  (void)take(env, limiter, "k", 1);
  server_do(env->server, "CLIENT", "PAUSE", "60000", NULL);
  uint64_t before = client_stats(env).commands;
  for (int i = 0; i < 3; i++) {
    char key[2] = {(char)('a' + i), 0};
    asks[i].then = note_detail;
    assert_error(
        belay_limiter_take(limiter, asked(env, &asks[i]), belay_bytes(key, 1), 1, on_answer), 0);
  }
  env_until(env, client_stats(env).commands > before);
  env_run_for(env, 20);
  server_kill(env->server);
  for (int i = 0; i < 3; i++)
    assert_error(answer(&asks[i], 0)->cause, BELAY_EUNKNOWN);
  expect_words(line, " lost: ");
  expect_one_of(line, "end of file; 3 calls end as unknown",
                "connection reset by peer; 3 calls end as unknown");
  assert_null(strstr(line, "nothing was sent"));
  expect_one_of(detail, ": end of file", ": connection reset by peer");
  server_restart(env->server);
  env_close(env);
}

TEST_ON(refused_connection, server, server_start(&(server_options_t){.address = "127.0.0.1"})) {
  belay_client_options_t options = hasty();
  char expected[64];
  env_t *env = listened(env_open_at(server_url(server), &options));
  snprintf(expected, sizeof expected, "127.0.0.1:%d: connection refused", server_port(server));
  server_kill(server);
  assert_error(ping(env), BELAY_EUNREACHABLE);
  expect_words(line, "no connection to 127.0.0.1:");
  expect_words(line, ": connection refused");
  assert_string_equal(detail, expected);
  env_close(env);
}

TEST(stopped_server_times_out) {
  belay_client_options_t options = hasty();
  options.connect_timeout_ms = 200 * slow();
  env_t *env = listened(env_open(&options));
  assert_error(ping(env), 0);
  server_pause(env->server);
  assert_error(ping(env), BELAY_EUNKNOWN);
  expect_words(detail, ": timed out: no answer within ");
  server_resume(env->server);
  env_close(env);

  env = listened(env_open(&options)); /* and one that never was connected */
  server_pause(env->server);
  assert_error(ping(env), BELAY_EUNREACHABLE);
  expect_words(detail, ": timed out: ");
  expect_words(line, "timed out: the handshake was not answered within ");
  server_resume(env->server);
  env_close(env);
}

static void hang_up(fake_link_t *link, const char *const *words, size_t count, void *arg) {
  (void)words, (void)count, (void)arg;
  fake_hang_up(link);
}

/* Cut before anything was answered, and after AUTH had been sent. */
TEST_ON(connection_cut_at_once, fake, fake_start(&(fake_options_t){.on_command = hang_up})) {
  belay_client_options_t options = hasty();
  for (int i = 0; i < 2; i++) {
    options.password = i == 0 ? NULL : "secret";
    env_t *env = listened(env_open_at(fake_url(fake), &options));
    assert_error(ping(env), BELAY_EUNREACHABLE);
    expect_one_of(line, ": end of file", ": connection reset by peer");
    expect_one_of(detail, ": end of file", ": connection reset by peer");
    assert_null(strstr(line, "nothing was sent"));
    assert_null(strstr(belay_strerror(BELAY_EUNREACHABLE), "nothing was sent"));
    env_close(env);
  }
}
