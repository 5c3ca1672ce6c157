/* The requests of every client to servers, Sentinels and cluster nodes, and the limits of the
 * access rules. */
#include <stdio.h>

#include "support/servers/acl.h"
#include "support/deployments/cluster.h"
#include "support/load/acl_cases.h"
#include "support/deployments/group.h"
#include "support/fixtures/subscriber.h"

#define RULES_MAX 4096

static belay_acl_options_t usual(void) {
  belay_acl_options_t options;
  belay_acl_options_init(&options);
  options.server_version = acl_version();
  return options;
}

/* The user "worker" has these rules, less a word. */
static void give(server_t *server, const belay_acl_options_t *options, const char *less) {
  char rules[RULES_MAX];
  size_t len;
  assert_error(belay_acl_rules(options, rules, sizeof rules, &len), 0);
  acl_user_set_rules(server, rules, less);
}

/* A client of that user; the env's server is not stopped with it. */
static env_t *worker_at(const char *url, const belay_client_options_t *options) {
  belay_client_options_t o = options == NULL ? client_options() : *options;
  o.close_timeout_ms = 20; /* an undo that the user may not run is not waited for */
  return env_open_at(url, &o);
}

static int ping(env_t *env) {
  int before = env->pongs;
  assert_error(begin_ping(env), 0);
  env_until(env, env->pongs > before);
  return env->pong_status;
}

static uint64_t connections(const env_t *env) {
  belay_client_stats_t stats = client_stats(env);
  return stats.connects + stats.connect_errors;
}

/* Has a lock twice, with a connection that is lost in between. */
static int use_lock(env_t *env, server_t *server) {
  belay_lock_options_t options = with_ttl(60000);
  contender_t *c = contender_new(env, "door", &options);
  for (int i = 0; i < 2; i++) {
    MUST(acquire(c, 10000));
    if (i == 0 && server != NULL) {
      server_do(server, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
      env_until(env, client_stats(env).drops > 0);
    }
    MUST(extend(c, 60000));
    MUST(release(c));
  }
  return 0;
}

/* The client works without refused parts of the handshake, except PING where it is required. */
TEST_ON(each_part_of_a_handshake, server, server_start(NULL)) {
  static const char *const words[] = {"client|kill", "client|setname",   "command|info",
                                      "hello",       "info|replication", "info|server"};
  for (size_t i = 0; i <= sizeof words / sizeof *words; i++) {
    const char *less = i == 0 ? NULL : words[i - 1];
    acl_user_set_features(server, "lock", less);
    server_do(server, "CONFIG", "RESETSTAT", NULL);
    env_t *env = worker_at(acl_user_url(server), NULL);
    assert_error(ping(env), 0);
    const char *list = server_string(server, "CLIENT", "LIST", NULL);
    bool named = strstr(list, "name=belay ") != NULL;
    assert_int_equal(named, less == NULL || strcmp(less, "client|setname") != 0);
    assert_error(use_lock(env, server), 0);
    assert_true(connections(env) <= 4);
    if (less == NULL) { /* all of them are asked */
      assert_true(server_calls(server, "client|kill") > 1);
      assert_true(server_calls(server, "command|info") > 0);
      assert_true(server_calls(server, "hello") > 0);
    }
    env_close(env);
  }
}

TEST_ON(a_ping_that_is_not_permitted, server, server_start(NULL)) {
  acl_user_set_features(server, "lock", "ping");
  env_t *env = worker_at(acl_user_url(server), NULL);
  assert_error(ping(env), BELAY_EPERM);
  assert_non_null(strstr(belay_detail(env->belay), "'ping'"));
  assert_error(use_lock(env, NULL), 0);
  assert_true(connections(env) <= 3);
  env_close(env);
}

TEST_ON(a_database, server, server_start(NULL)) {
  belay_acl_options_t rules = usual();
  belay_client_options_t options = client_options();
  rules.db = 3;
  give(server, &rules, NULL);
  options.db = 3;
  env_t *env = worker_at(acl_user_url(server), &options);
  assert_error(use_lock(env, server), 0);
  env_close(env);
  options.db = 4;
  env = worker_at(acl_user_url(server), &options);
  for (int i = 0; i < 20; i++) /* the client does not ask each time */
    assert_error(ping(env), BELAY_EPERM);
  assert_non_null(strstr(belay_detail(env->belay), "'select'"));
  assert_true(connections(env) <= 2);
  env_close(env);
}

TEST_ON(replicas_need_wait, server, server_start(NULL)) {
  belay_lock_options_t options = with_ttl(60000);
  options.min_replicas = 1;
  for (int may = 0; may < 2; may++) {
    acl_user_set_features(server, may ? "lock durable" : "lock", NULL);
    env_t *env = worker_at(acl_user_url(server), NULL);
    int status = acquire(contender_new(env, "door", &options), 0);
    if (may) {
      assert_error(status, BELAY_ENOREPLICAS); /* it was asked, and there are none */
    } else {
      assert_error(status, BELAY_EPERM);
      assert_non_null(strstr(belay_detail(env->belay), "'wait'"));
    }
    env_close(env);
  }
}

TEST_ON(a_cluster, cluster, cluster_start(&(cluster_options_t){.without_replicas = true})) {
  static const struct {
    const char *names, *less;
    int status;
    const char *detail;
  } rows[] = {
      {"lock topic cluster", NULL, 0, ""},
      {"lock topic cluster", "cluster|slots", BELAY_EPERM, "'cluster|slots'"},
      {"lock topic cluster", "cluster|info", 0, ""},
      {"lock topic", NULL, BELAY_EPERM, "'cluster|"},
      {"lock topic cluster", "evalsha", BELAY_EPERM, "'evalsha'"},
      {"lock topic cluster", "set", BELAY_EPERM, "'set'"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char url[256];
    for (unsigned j = 0; j < cluster_size(cluster); j++) {
      server_do(cluster_node(cluster, j), "FLUSHALL", NULL);
      acl_user_set_features(cluster_node(cluster, j), rows[i].names, rows[i].less);
    }
    snprintf(url, sizeof url, "redis+cluster://worker:secret@127.0.0.1:%d",
             server_port(cluster_node(cluster, 0)));
    env_t *env = worker_at(url, NULL);
    int status = use_lock(env, NULL);
    assert_error(status, rows[i].status);
    if (status != 0)
      assert_non_null(strcasestr(belay_detail(env->belay), rows[i].detail));
    assert_true(connections(env) <= 12);
    if (i == 0) {
      static subscriber_t s;
      static publication_t p;
      subscribe(env, &s, "news");
      assert_error(publish(env, &p, "news", "hello"), 0);
      env_until(env, s.messages == 1);
    }
    env_close(env);
  }
}

/* The user of the Sentinels is another user, which may only ask for the primary. */
TEST_ON(sentinels, group, group_start(NULL)) {
  static const char *const without[] = {NULL, "sentinel|get-master-addr-by-name", "role"};
  static const int expected[] = {0, BELAY_EPERM, BELAY_EPERM};
  belay_acl_options_t watching = usual();
  belay_client_options_t options = client_options();
  watching.sentinel = true;
  options.sentinel_username = "worker";
  options.sentinel_password = "secret";
  for (size_t i = 0; i < 3; i++) {
    char url[256], *at = url;
    for (unsigned j = 0; j < REPLICAS_NODES; j++)
      acl_user_set_features(replicas_node(group_replicas(group), j), "lock sentinel", without[i]);
    at += snprintf(url, sizeof url, "redis+sentinel://worker:secret@");
    for (unsigned j = 0; j < GROUP_SENTINELS; j++) {
      server_t *sentinel = group_sentinel(group, j);
      give(sentinel, &watching, without[i]);
      at += snprintf(at, sizeof url - (size_t)(at - url), "%s127.0.0.1:%d", j > 0 ? "," : "",
                     server_port(sentinel));
    }
    snprintf(at, sizeof url - (size_t)(at - url), "/%s", GROUP_NAME);
    env_t *env = worker_at(url, &options);
    int status = use_lock(env, NULL);
    assert_error(status, expected[i]);
    if (status != 0)
      assert_non_null(strcasestr(belay_detail(env->belay), without[i]));
    /* a connection to a useless server counts twice */
    assert_true(connections(env) <= 2 * GROUP_SENTINELS + 1);
    for (unsigned j = 0; j < GROUP_SENTINELS && i == 0; j++) /* nothing is asked in vain */
      assert_int_equal(server_ask(group_sentinel(group, j), "ACL", "LOG", NULL)->count, 0);
    env_close(env);
  }
}

/* As the worker, by hand: whether it is refused. */
static bool is_refused(server_t *server, const char *const *strings) {
  resp_client_t client;
  resp_words_t words = {0}, auth = {3, {"AUTH", "worker", "secret"}, {4, 6, 6}};
  for (; *strings != NULL; strings++) {
    words.word[words.count] = *strings;
    words.len[words.count++] = strlen(*strings);
  }
  assert_int_equal(resp_dial_unix(&client, server_path(server)), 0);
  resp_free(resp_call(&client, &auth));
  resp_t *reply = resp_call(&client, &words);
  assert_non_null(reply);
  bool refused = reply->type == RESP_ERROR &&
                 (strncmp(reply->str, "NOPERM", 6) == 0 || strstr(reply->str, "user") != NULL);
  resp_free(reply);
  resp_hang_up(&client);
  return refused;
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST_ON(other_commands_are_refused, server, server_start(NULL)) {
  static const char *const words[][6] = {
      {"GET", "other::lock::{a}"},
      {"GET", "belay"},
      {"GET", "belay:lock"},
      {"SET", "belayer::x", "1"},
      {"EVAL", "return redis.call('GET', KEYS[1])", "1", "other::x"},
      {"EVAL", "return redis.call('GET', 'other::x')", "0"},
      {"EVAL", "return redis.call('KEYS', '*')", "0"},
      {"EVAL", "return redis.call('PUBLISH', 'other::x', '')", "0"},
      {"SUBSCRIBE", "other::x"},
      {"PSUBSCRIBE", "*"},
      {"PUBLISH", "other::x", ""},
      {"INFO", "clients"},
      {"INFO"},
      {"CLIENT", "LIST"},
      {"CLIENT", "NO-EVICT", "on"},
      {"COMMAND", "LIST"},
      {"SELECT", "1"},
      {"CONFIG", "GET", "requirepass"},
      {"ACL", "LIST"},
      {"KEYS", "*"},
      {"FLUSHALL"},
      {"FLUSHDB"},
      {"SCRIPT", "FLUSH"},
      {"SCRIPT", "LOAD", "return 1"},
      {"FUNCTION", "LIST"},
      {"MONITOR"},
      {"SHUTDOWN"},
      {"REPLICAOF", "NO", "ONE"},
      {"CLUSTER", "SLOTS"},
      {"INCR", "belay::x"},
      {"RANDOMKEY"},
      {"DBSIZE"},
  };
  acl_user_set_features(server, "all", NULL);
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (!is_refused(server, words[i]))
      fail_msg("%s %s is permitted", words[i][0], words[i][1] == NULL ? "" : words[i][1]);
  assert_false(is_refused(server, WORDS("GET", "belay::x")));
  assert_false(is_refused(server, WORDS("PUBLISH", "belay::x", "")));
}

/* Pattern characters of a namespace are literal. A user of a namespace may use the namespaces
 * below it, but not those above. */
TEST_ON(namespaces, server, server_start(NULL)) {
  static const struct {
    const char *parts[2];
    const char *inside, *outside[3];
  } rows[] = {
      {{"app", NULL}, "app::eu::x", {"app", "apple::x", "eu::x"}},
      {{"app", "eu"}, "app::eu::x", {"app::x", "app::us::x", "app::europe::x"}},
      {{"a*", NULL}, "a*::x", {"ab::x", "a::x", "a*x"}},
      {{"a?[b]\\", NULL}, "a?[b]\\::x", {"aab\\::x", "a?b::x", "a?[b]::x"}},
      {{"[^a-z]", NULL}, "[^a-z]::x", {"A::x", "b::x", "^::x"}},
      {{"a:", "{b}"}, "a%3A::%7Bb%7D::x", {"a:::{b}::x", "a::{b}::x", "a::x"}},
      {{"\"it's\"", NULL}, "\"it's\"::x", {"its::x", "it's::x", "x"}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    belay_acl_options_t options = usual();
    options.namespace_parts = rows[i].parts;
    options.namespace_count = rows[i].parts[1] == NULL ? 1 : 2;
    give(server, &options, NULL);
    if (is_refused(server, WORDS("GET", rows[i].inside)) ||
        is_refused(server, WORDS("PUBLISH", rows[i].inside, "")))
      fail_msg("%s is not permitted", rows[i].inside);
    for (int j = 0; j < 3; j++)
      if (!is_refused(server, WORDS("GET", rows[i].outside[j])) ||
          !is_refused(server, WORDS("PUBLISH", rows[i].outside[j], "")))
        fail_msg("%s is permitted to the user of %s", rows[i].outside[j], rows[i].inside);
    belay_client_options_t client = client_options();
    client.namespace_parts = options.namespace_parts;
    client.namespace_count = options.namespace_count;
    env_t *env = worker_at(acl_user_url(server), &client);
    assert_error(use_lock(env, NULL), 0);
    env_close(env);
  }
}

/* The user may hold the lock and wait for it. A release wakes the waiter long before its poll. */
TEST_ON(an_exact_key, server, server_start(NULL)) {
  static const char *const keys[] = {"shared*door", "another"};
  belay_acl_options_t rules = usual();
  belay_lock_options_t options = with_ttl(60000);
  options.key = belay_string(keys[0]);
  options.retry_min_ms = options.retry_max_ms = 60000;
  rules.keys = keys;
  rules.keys_count = 2;
  give(server, &rules, NULL);
  env_t *env = worker_at(acl_user_url(server), NULL);
  contender_t *a = contender_new(env, "a", &options);
  contender_t *b = contender_of(env, env_connect(env, acl_user_url(server), NULL), "b", &options);
  assert_error(acquire(a, 0), 0);
  assert_error(begin_acquire(b, BELAY_FOREVER), 0);
  env_until(env,
            server_ask(server, "PUBSUB", "NUMSUB", "shared*door::wake", NULL)->items[1]->integer ==
                1);
  env_settle(env);
  assert_error(release(a), 0);
  assert_error(outcome(b), 0);
  assert_error(release(b), 0);
  assert_true(is_refused(server, WORDS("GET", "shared door")));
  assert_true(is_refused(server, WORDS("GET", "shared*doors")));
  env_close(env);
}
