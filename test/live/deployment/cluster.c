/* A client of a cluster: calls find their node under any address that nodes announce and with
 * any refusal. */
#include <stdatomic.h>
#include <stdio.h>
#include <strings.h>

#include "support/servers/acl.h"
#include "support/fixtures/env.h"
#include "support/deployments/cluster.h"
#include "support/deployments/fake.h"

#define NAMES 40

static cluster_t *start_three(const char *password) {
  return cluster_start(&(cluster_options_t){.without_replicas = true, .password = password});
}

/* Acquires and releases locks in slots of all nodes. Returns the number of acquired locks. */
static int take_all(env_t *env) {
  contender_t *all[NAMES];
  char name[16];
  int taken = 0;
  for (int i = 0; i < NAMES; i++) {
    snprintf(name, sizeof name, "lock-%d", i);
    all[i] = contender_new(env, name, NULL);
    assert_error(begin_acquire(all[i], 20000), 0);
  }
  for (int i = 0; i < NAMES; i++)
    taken += outcome(all[i]) == 0;
  for (int i = 0; i < NAMES; i++)
    if (all[i]->status == 0)
      assert_error(release(all[i]), 0);
  for (int i = 0; i < NAMES; i++)
    assert_error(close_lock(all[i]), 0);
  return taken;
}

static void expect_all_used(cluster_t *cluster) {
  for (unsigned i = 0; i < cluster_size(cluster); i++)
    assert_true(server_calls(cluster_node(cluster, i), "set") > 0);
}

static void test_use(void **state) {
  cluster_t *cluster = cluster_start(*state);
  env_t *env = env_open_at(cluster_url(cluster), NULL);
  assert_int_equal(take_all(env), NAMES);
  expect_all_used(cluster);
  assert_int_equal(client_stats(env).unknown, 0);
  env_close(env);
  cluster_stop(cluster);
}

TEST_ROWS(use) {
  static const cluster_options_t plain = {.without_replicas = true},
                                 named = {.without_replicas = true,
                                          .hostname = "localhost",
                                          .endpoints = "hostname"},
                                 unknown = {.without_replicas = true,
                                            .endpoints = "unknown-endpoint"},
                                 password = {.without_replicas = true, .password = "secret"};
  test_add(__LINE__, test_use, &plain, "addresses");
  test_add(__LINE__, test_use, &named, "host_names");
  test_add(__LINE__, test_use, &unknown, "unknown_endpoints");
  test_add(__LINE__, test_use, &password, "password_of_all_nodes");
}

/* ---- passwords ---- */

TEST_ON(wrong_password, cluster, start_three("secret")) {
  belay_client_options_t wrong = client_options();
  wrong.password = "guess";
  wrong.reconnect_max_ms = 200;
  env_t *env = env_open_at(cluster_url(cluster), &wrong);
  contender_t *c = contender_new(env, "door", NULL);
  int64_t began = clock_now();
  assert_error(try_lock(c), BELAY_EAUTH);
  assert_true(clock_since_ms(began) < 1500 * slow()); /* at once, not at the deadline */
  assert_error(try_lock(c), BELAY_EAUTH);
  for (unsigned i = 0; i < 3; i++)
    server_do(cluster_node(cluster, i), "CONFIG", "SET", "requirepass", "guess", NULL);
  for (began = clock_now(); try_lock(c) != 0 && clock_since_ms(began) < 10000 * slow();)
    env_run_for(env, 20);
  assert_error(c->status, 0);
  env_close(env);
}

/* Calls to other nodes are served. */
TEST_ON(wrong_password_of_one_node, cluster, start_three("secret")) {
  server_do(cluster_node(cluster, 0), "CONFIG", "SET", "requirepass", "another", NULL);
  env_t *env = env_open_at(cluster_url(cluster), NULL);
  contender_t *all[NAMES];
  char name[16];
  int refused = 0;
  for (int i = 0; i < NAMES; i++) {
    snprintf(name, sizeof name, "lock-%d", i);
    all[i] = contender_new(env, name, NULL);
    int status = try_lock(all[i]);
    if (status != 0)
      assert_error(status, BELAY_EAUTH);
    refused += status != 0;
  }
  assert_between(refused, 1, NAMES - 1);
  env_close(env);
  server_do(cluster_node(cluster, 0), "CONFIG", "SET", "requirepass", "secret", NULL);
}

/* ---- what nodes answer ---- */

static int64_t calls_of_all(cluster_t *cluster, const char *command) {
  int64_t n = 0;
  for (unsigned i = 0; i < cluster_size(cluster); i++)
    n += server_calls(cluster_node(cluster, i), command);
  return n;
}

static char detail[256];

static void keep_detail(contender_t *c, event_t event) {
  if (event == EVENT_ENDED)
    snprintf(detail, sizeof detail, "%s", belay_detail(c->env->belay));
}

static void expect_words(env_t *env, int error, const char *what) {
  contender_t *c = contender_new(env, "door", NULL);
  c->then = keep_detail;
  assert_error(try_lock(c), error);
  if (strstr(detail, what) == NULL)
    fail_msg("\"%s\" does not say \"%s\"", detail, what);
}

TEST_ON(cluster_slots_not_permitted, cluster, start_three(NULL)) {
  for (unsigned i = 0; i < 3; i++)
    server_do(cluster_node(cluster, i), "ACL", "SETUSER", "default", "-cluster|slots", NULL);
  env_t *env = env_open_at(cluster_url(cluster), NULL);
  expect_words(env, BELAY_EPERM, "NOPERM");
  env_close(env);
}

static const char *scheme(void) {
  return servers_are_secure() ? "rediss" : "redis";
}

TEST_ON(server_is_no_cluster, server, server_start(&(server_options_t){.address = "127.0.0.1"})) {
  char url[64];
  snprintf(url, sizeof url, "%s+cluster://%s127.0.0.1:%d", scheme(), server_login(server),
           server_port(server));
  env_t *env = env_open_at(url, NULL);
  expect_words(env, BELAY_EREFUSED, "cluster support disabled");
  env_close(env);
}

/* All nodes report a slot without an owner: calls to it wait and then fail; others are not
 * affected. */
TEST(slot_without_owner) {
  static const char *const arguments[] = {"--cluster-require-full-coverage", "no", NULL};
  cluster_t *cluster =
      cluster_start(&(cluster_options_t){.without_replicas = true, .arguments = arguments});
  char slot[12];
  unsigned number = cluster_slot(cluster, "belay::lock::{door}");
  unsigned owner = (unsigned)cluster_owner(cluster, number);
  snprintf(slot, sizeof slot, "%u", number);
  for (unsigned i = 0; i < cluster_size(cluster); i++)
    server_do(cluster_node(cluster, i), "CLUSTER", "DELSLOTS", slot, NULL);
  belay_client_options_t hasty = client_options();
  hasty.timeout_ms = 500 * slow();
  env_t *env = env_open_at(cluster_url(cluster), &hasty);
  contender_t *c = contender_new(env, "door", NULL);
  assert_int_equal(take_all(env), NAMES);
  assert_error(try_lock(c), BELAY_ECLUSTERDOWN);
  assert_int_equal(take_all(env), NAMES);
  assert_error(begin_acquire(c, 20000), 0);
  env_run_for(env, 100);
  assert_int_equal(c->ended, c->begun - 1);
  server_do(cluster_node(cluster, owner), "CLUSTER", "ADDSLOTS", slot, NULL);
  assert_error(outcome(c), 0);
  env_close(env);
  cluster_stop(cluster);
}

/* ---- databases ---- */

/* The database comes from the URL or from the option. */
static env_t *open_db(const char *url, int db, bool by_option) {
  char text[256];
  belay_client_options_t options = client_options();
  options.db = by_option ? db : options.db;
  snprintf(text, sizeof text, by_option ? "%s" : "%s/%d", url, db);
  return env_open_at(text, &options);
}

/* A cluster has one database. Another number fails at once with the server's text, and no write
 * goes to the wrong one. */
TEST(database_not_zero) {
  acl_skip("its user may not ask for another database");
  cluster_t *cluster = start_three(NULL);
  for (int by_option = 0; by_option < 2; by_option++) {
    env_t *env = open_db(cluster_url(cluster), 3, by_option);
    int64_t began = clock_now();
    expect_words(env, BELAY_EREFUSED, "SELECT is not allowed in cluster mode");
    assert_true(clock_since_ms(began) < 1500 * slow());
    assert_int_equal(calls_of_all(cluster, "set") + calls_of_all(cluster, "eval"), 0);
    assert_int_equal(calls_of_all(cluster, "evalsha"), 0);
    env_close(env);
  }
  env_t *env = open_db(cluster_url(cluster), 0, false);
  assert_int_equal(take_all(env), NAMES);
  env_close(env);
  cluster_stop(cluster);
}

/* A cluster node with several databases: the selected number, and the requests. */
typedef struct fake_node {
  fake_t *fake;
  char map[128];
  atomic_int db, asked_elsewhere;
} fake_node_t;

/* In the fake's thread; there is one connection for calls. */
static void answer_as_fake_node(fake_link_t *link, const char *const *words, size_t count,
                                void *arg) {
  fake_node_t *fake_node = arg;
  if (strcasecmp(words[0], "CLUSTER") == 0) {
    fake_say(link, fake_node->map);
    return;
  }
  if (strcasecmp(words[0], "SELECT") == 0)
    atomic_store(&fake_node->db, atoi(words[1]));
  else if (!fake_is_handshake(words) && atomic_load(&fake_node->db) != 3)
    atomic_fetch_add(&fake_node->asked_elsewhere, 1);
  fake_behave(link, words, count);
}

/* A fake server: some products have several databases in a cluster. */
TEST(several_databases) {
  fake_node_t fake_node = {.db = 0};
  fake_node.fake =
      fake_start(&(fake_options_t){.on_command = answer_as_fake_node, .arg = &fake_node});
  const char *place = strstr(fake_url(fake_node.fake), "127.0.0.1");
  char url[128];
  snprintf(fake_node.map, sizeof fake_node.map,
           "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n",
           atoi(strrchr(place, ':') + 1));
  snprintf(url, sizeof url, "redis+cluster://%s", place);
  env_t *env = open_db(url, 3, false);
  contender_t *c = contender_new(env, "door", NULL);
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
  assert_int_equal(atomic_load(&fake_node.db), 3);
  assert_int_equal(atomic_load(&fake_node.asked_elsewhere), 0);
  env_close(env);
  fake_stop(fake_node.fake);
}

/* ---- a foreign node ---- */

/* One that is no member knows no slots: the next one is asked. */
TEST_ON(first_node_is_no_member, cluster, start_three(NULL)) {
  server_t *foreign = server_start(&(server_options_t){.cluster = true});
  char url[128];
  snprintf(url, sizeof url, "%s+cluster://%s127.0.0.1:1,127.0.0.1:%d,127.0.0.1:%d", scheme(),
           server_login(foreign), server_port(foreign), server_port(cluster_node(cluster, 2)));
  env_t *env = env_open_at(url, NULL);
  assert_int_equal(take_all(env), NAMES);
  expect_all_used(cluster);
  env_close(env);
  server_stop(foreign);
}
