/* Messages for an operator: the place of a failed connection, and the cause if a URL leads to
 * another kind of server. */
#include <stdio.h>

#include "support/servers/acl.h"
#include "support/fixtures/env.h"
#include "support/deployments/cluster.h"
#include "support/deployments/group.h"

#define SECRET "correct-horse"

static char detail[256];
static char problem[512]; /* the last line of the log that is a warning or an error */
static unsigned problems; /* how many there were */

static void check_line(env_t *env, const char *line) {
  if (env->warnings + env->errors != problems)
    snprintf(problem, sizeof problem, "%s", line);
  problems = env->warnings + env->errors;
}

static env_t *listen_to(env_t *env) {
  env->on_log = check_line;
  problems = 0;
  return env;
}

static void keep_detail(env_t *env) {
  snprintf(detail, sizeof detail, "%s", belay_detail(env->belay));
}

/* A ping's status; its detail is kept. */
static int ping(env_t *env) {
  int before = env->pongs;
  env->then = keep_detail;
  assert_error(begin_ping(env), 0);
  env_until(env, env->pongs > before);
  env->then = NULL;
  return env->pong_status;
}

static void expect_words(const char *text, const char *words) {
  if (strstr(text, words) == NULL)
    fail_msg("\"%s\" is not in \"%s\"", words, text);
  assert_null(strstr(text, SECRET));
}

static belay_client_options_t hasty(void) {
  belay_client_options_t options = client_options();
  options.timeout_ms = 500 * slow();
  options.connect_timeout_ms = 400 * slow();
  return options;
}

static env_t *open_at(const char *scheme, const server_t *server, const char *rest) {
  char url[128];
  belay_client_options_t options = hasty();
  snprintf(url, sizeof url, "%s://%s127.0.0.1:%d%s", scheme, server_login(server),
           server_port(server), rest);
  return listen_to(env_open_at(url, &options));
}

TEST_ON(log_of_an_unreachable_server, server,
        server_start(&(server_options_t){.address = "127.0.0.1"})) {
  char place[64];
  snprintf(place, sizeof place, "127.0.0.1:%d: ", server_port(server));
  env_t *env = open_at("redis", server, "");
  server_kill(server);
  assert_error(ping(env), BELAY_EUNREACHABLE);
  assert_true(env->warnings > 0);
  expect_words(problem, "no connection to ");
  expect_words(problem, place);
  env_close(env);
}

TEST(log_of_a_missing_socket) {
  belay_client_options_t options = hasty();
  env_t *env = listen_to(env_open_at("unix://me:" SECRET "@/nowhere/re%09dis.sock", &options));
  assert_error(ping(env), BELAY_EUNREACHABLE);
  expect_words(problem, "no connection to unix:/nowhere/re\\x09dis.sock: ");
  env_close(env);
}

TEST_ON(log_of_a_wrong_password, server,
        server_start(&(server_options_t){.address = "127.0.0.1"})) {
  char place[64], url[128];
  belay_client_options_t options = hasty();
  snprintf(place, sizeof place, "no connection to 127.0.0.1:%d: ", server_port(server));
  snprintf(url, sizeof url, "redis://me:" SECRET "@127.0.0.1:%d", server_port(server));
  env_t *env = listen_to(env_open_at(url, &options));
  assert_error(ping(env), BELAY_EAUTH);
  expect_words(problem, place);
  expect_words(problem, "WRONGPASS");
  assert_int_equal(env->errors, 1);
  env_close(env);
}

/* One log line per cause: repeats are not logged, another cause is. */
static void expect_one_line(const char *scheme, const char *rest, int status) {
  server_t *server = server_start(&(server_options_t){.address = "127.0.0.1"});
  char place[64];
  snprintf(place, sizeof place, "127.0.0.1:%d: ", server_port(server));
  env_t *env = open_at(scheme, server, rest);
  server_kill(server);
  for (int i = 0; i < 3; i++)
    assert_error(ping(env), status);
  assert_int_equal(env->warnings, 1);
  assert_int_equal(env->errors, 0);
  expect_words(problem, "asked 1 where to connect to, in vain: ");
  expect_words(problem, place);
  assert_true(client_stats(env).connect_errors >= 2);
  env_close(env);
  server_stop(server);
}

TEST(no_node_of_a_cluster_answers) {
  expect_one_line("redis+cluster", "", BELAY_EUNREACHABLE);
}

TEST(no_sentinel_answers) {
  expect_one_line("redis+sentinel", "/mymaster", BELAY_ENOSENTINEL);
}

TEST(no_replica_answers) {
  expect_one_line("redis+replicas", "", BELAY_EUNREACHABLE);
}

/* The error is reported at once, with these words, and the log has one line with them. */
static void expect_other(env_t *env, int status, const char *words) {
  for (int i = 0; i < 2; i++) {
    assert_error(ping(env), status);
    expect_words(detail, words);
  }
  assert_int_equal(env->warnings + env->errors, 1);
  expect_words(problem, words);
  expect_words(problem, "127.0.0.1:");
  assert_true(client_stats(env).connect_errors >= 1);
  env_close(env);
}

TEST(a_server_is_no_cluster_and_no_sentinel) {
  needs_one_server("one that is no cluster");
  acl_skip("it is a server who asks for a password before all else");
  server_t *server = server_start(&(server_options_t){.address = "127.0.0.1"});
  expect_other(open_at("redis+cluster", server, ""), BELAY_EREFUSED, "cluster support disabled");
  expect_other(open_at("redis+sentinel", server, "/mymaster"), BELAY_EREFUSED, "'SENTINEL'");
  server_stop(server);
}

TEST_ON(a_sentinel_is_no_server, group, group_start(NULL)) {
  const server_t *sentinel = group_sentinel(group, 0);
  expect_other(open_at("redis", sentinel, ""), BELAY_EREFUSED, "it is a sentinel");
  expect_other(open_at("redis+replicas", sentinel, ""), BELAY_EREFUSED, "it is a sentinel");
  expect_other(open_at("redis+cluster", sentinel, ""), BELAY_EREFUSED, "'CLUSTER'");
}

/* Requests to the node itself are answered. Keys of other nodes are refused, and the error names
 * the owner. */
TEST_ON(a_node_of_a_cluster_is_not_all_of_it, cluster,
        cluster_start(&(cluster_options_t){.without_replicas = true})) {
  env_t *env = open_at("redis", cluster_node(cluster, 0), "");
  char name[16];
  unsigned moved = 0;
  for (int i = 0; i < 30; i++) {
    snprintf(name, sizeof name, "lock-%d", i);
    contender_t *c = contender_new(env, name, NULL);
    int status = try_lock(c);
    if (status != 0)
      assert_error(status, BELAY_EMOVED);
    moved += status != 0;
  }
  assert_true(moved > 0);
  assert_int_equal(env->warnings, 1);
  expect_words(problem, "is a node of a cluster");
  expect_words(problem, "redis+cluster://");
  env_close(env);
}
