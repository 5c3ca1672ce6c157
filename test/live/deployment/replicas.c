/* Clients of a primary and its replicas without Sentinels, which ask all servers for their role:
 * none, one or two primaries, and manual promotions. */
#include <stdio.h>

#include "support/servers/acl.h"
#include "support/deployments/replicas.h"
#include "support/servers/secure.h"

static void expect(env_t *env, int status, const char *words) {
  const char *detail;
  assert_error(pong(env, &detail), status);
  if (words != NULL && strstr(detail, words) == NULL)
    fail_msg("\"%s\" is not in \"%s\"", words, detail);
}

static void expect_recovery(env_t *env) {
  int64_t began = clock_now();
  while (pong(env, NULL) != 0)
    assert_true(clock_since_ms(began) < 15000 * slow());
}

static belay_client_options_t hasty(void) {
  belay_client_options_t options = client_options();
  options.timeout_ms = 500 * slow();
  return options;
}

/* A lock that is taken is in the one that says so, whatever its place in the URL. */
static void expect_keys_at(env_t *env, replicas_t *replicas, unsigned primary) {
  contender_t *c = contender_new(env, "door", NULL);
  assert_error(try_lock(c), 0);
  assert_int_equal(server_keys(replicas_node(replicas, primary)), 1);
  assert_error(release(c), 0);
}

TEST_ON(primary_is_followed, replicas, replicas_start(NULL)) {
  env_t *env = env_open_at(replicas_url(replicas), NULL);
  for (unsigned i = 0; i < REPLICAS_NODES; i++) {
    if (i > 0)
      replicas_promote(replicas, i); /* the former primary becomes a replica and continues */
    expect_recovery(env);
    expect_keys_at(env, replicas, i);
    replicas_wait(replicas, i);
  }
  assert_int_equal(client_stats(env).unknown, 0); /* it was refused, and nothing else */
  env_close(env);
}

TEST_ON(lease_continues_after_promotion, replicas, replicas_start(NULL)) {
  belay_lock_options_t lasting = watched(3000 * slow());
  env_t *env = env_open_at(replicas_url(replicas), NULL);
  contender_t *c = contender_new(env, "door", &lasting);
  assert_error(try_lock(c), 0);
  replicas_wait(replicas, 0);
  replicas_promote(replicas, 2);
  env_run_for(env, 2 * lasting.ttl_ms);
  assert_int_equal(c->lost, 0);
  assert_error(release(c), 0);
  env_close(env);
}

/* It cannot say what it is meanwhile, and is asked every few seconds. */
TEST(busy_primary_is_kept) {
  acl_skip("the client that keeps it busy has no user");
  static const char script[] = "EVAL \"while true do end\" 0\r\n";
  static const char *const arguments[] = {"--busy-reply-threshold", "20", NULL};
  replicas_t *replicas = replicas_start(&(replicas_options_t){.arguments = arguments});
  server_t *primary = replicas_node(replicas, 0);
  env_t *env = env_open_at(replicas_url(replicas), NULL);
  resp_client_t busy;
  assert_error(pong(env, NULL), 0);
  assert_int_equal(resp_dial_tcp(&busy, "127.0.0.1", server_port(primary)), 0);
  assert_int_equal(resp_send(busy.fd, script, sizeof script - 1), 0);
  env_run_for(env, 6000);
  server_do(primary, "SCRIPT", "KILL", NULL);
  resp_hang_up(&busy);
  expect_recovery(env);
  assert_int_equal(client_stats(env).drops, 0);
  env_close(env);
  replicas_stop(replicas);
}

/* Connected clients continue. A new client cannot know which of the two primaries is right. */
TEST(two_primaries) {
  belay_client_options_t options = hasty();
  replicas_t *replicas = replicas_start(NULL);
  env_t *env = env_open_at(replicas_url(replicas), &options);
  assert_error(pong(env, NULL), 0);
  server_do(replicas_node(replicas, 1), "REPLICAOF", "NO", "ONE", NULL);
  assert_error(pong(env, NULL), 0);
  env_t *late = env_open_at(replicas_url(replicas), &options);
  expect(late, BELAY_ESPLIT, "is one too");
  assert_int_equal(client_stats(late).commands, 0);
  replicas_promote(replicas, 1);
  expect_recovery(late);
  expect_keys_at(late, replicas, 1);
  env_close(late);
  env_close(env);
  replicas_stop(replicas);
}

TEST(no_primary) {
  belay_client_options_t options = hasty();
  replicas_t *replicas = replicas_start(NULL);
  server_kill(replicas_node(replicas, 0));
  env_t *env = env_open_at(replicas_url(replicas), &options);
  expect(env, BELAY_EREADONLY, "it is a replica");
  assert_int_equal(client_stats(env).not_sent, 1);
  replicas_promote(replicas, 2);
  expect_recovery(env);
  expect_keys_at(env, replicas, 2);
  for (unsigned i = 0; i < REPLICAS_NODES; i++)
    server_kill(replicas_node(replicas, i));
  env_until(env, client_stats(env).connections_up == 0);
  expect(env, BELAY_EUNREACHABLE, "127.0.0.1:");
  env_close(env);
  replicas_stop(replicas);
}

TEST(wrong_password) {
  belay_client_options_t options = hasty();
  replicas_t *replicas = replicas_start(&(replicas_options_t){.password = "inner"});
  options.password = "outer";
  env_t *env = env_open_at(replicas_url(replicas), &options);
  expect(env, BELAY_EAUTH, "WRONGPASS");
  env_close(env);
  replicas_stop(replicas);
}
