/* The listening connection: when it exists, its cost, and its faults. */
#include <stdio.h>

#include "core/client/client.h"
#include "support/deployments/relay.h"
#include "support/fixtures/subscriber.h"

static int64_t subscribed_to(server_t *server, const char *topic) {
  char channel[64];
  snprintf(channel, sizeof channel, "belay::topic::{%s}", topic);
  return server_listeners(server, channel);
}

static void publish_raw(env_t *env, const char *topic, const char *text) {
  char channel[64];
  snprintf(channel, sizeof channel, "belay::topic::{%s}", topic);
  (void)server_publish(env->server, channel, text);
}

/* ---- when there is one ---- */

ENV_TEST(connection_exists_while_subscribed) {
  subscriber_t one = {0}, two = {0};
  assert_int_equal(client_stats(env).connections_up, 0);
  subscribe(env, &one, "one");
  subscribe(env, &two, "two");
  assert_int_equal(client_stats(env).connections_up, 1);
  assert_error(unsubscribe(&one), 0);
  env_until(env, subscribed_to(env->server, "one") == 0);
  assert_int_equal(subscribed_to(env->server, "two"), 1);
  assert_int_equal(client_stats(env).connections_up, 1);
  assert_error(unsubscribe(&two), 0);
  env_until(env, client_stats(env).connections_up == 0);
  assert_int_equal(client_stats(env).drops, 0); /* nothing was lost */
  subscribe(env, &one, "one");
  publish_raw(env, "one", "hello");
  env_until(env, one.messages == 1);
}

/* A channel that is subscribed again soon has not changed. */
ENV_TEST(channel_lingers) {
  subscriber_t s = {0};
  for (int i = 0; i < 20; i++) {
    subscribe(env, &s, "news");
    publish_raw(env, "news", "hello");
    env_until(env, s.messages == 1);
    assert_error(unsubscribe(&s), 0);
    env_until(env, s.closed == 1);
  }
  assert_true(server_calls(env->server, deployment_subscribe()) <=
              2); /* on a slow machine a second passes */
  assert_true(client_stats(env).connects <= 2);
}

/* No more than 1,024 of them do. */
TEST(lingering_channels_are_limited) {
  enum { COUNT = 3000 };
  env_t *env = env_open(NULL);
  subscriber_t *all = calloc(COUNT, sizeof *all);
  char name[16];
  for (int i = 0; i < COUNT; i++)
    assert_error(subscribe_to(env, env->client, &all[i], name,
                              (size_t)snprintf(name, sizeof name, "n%d", i)),
                 0);
  env_until(env, all[COUNT - 1].listening == 1);
  for (int i = 0; i < COUNT; i++)
    assert_error(unsubscribe(&all[i]), 0);
  assert_int_equal(env->client->channels.lingering_len, 1024);
  assert_int_equal(env->client->channels.table.count, 1024);
  env_until(env, client_stats(env).connections_up == 0);
  env_close(env);
  free(all);
}

TEST(channels_are_limited) {
  enum { MAX = 65536 };
  env_t *env = env_open(NULL);
  subscriber_t *all = calloc(MAX + 1, sizeof *all), again = {0};
  char name[16];
  for (int i = 0; i <= MAX; i++) {
    int len = snprintf(name, sizeof name, "n%d", i);
    assert_error(subscribe_to(env, env->client, &all[i], name, (size_t)len),
                 i < MAX ? 0 : BELAY_EBUSY);
  }
  subscribe(env, &again, "n7"); /* one more on a channel of these */
  env_until(env, all[MAX - 1].listening == 1);
  assert_error(unsubscribe(&all[0]), 0); /* it lingers, and makes room at once */
  assert_error(subscribe_to(env, env->client, &all[MAX], name, strlen(name)), 0);
  env_until(env, all[MAX].listening == 1);
  env_close(env);
  free(all);
}

TEST(ten_thousand_channels_cost_few_writes) {
  enum { COUNT = 10000 };
  env_t *env = env_open(NULL);
  subscriber_t *all = calloc(COUNT, sizeof *all);
  char name[16];
  for (int i = 0; i < COUNT; i++)
    assert_error(subscribe_to(env, env->client, &all[i], name,
                              (size_t)snprintf(name, sizeof name, "n%d", i)),
                 0);
  env_until(env, all[COUNT - 1].listening == 1);
  uint64_t writes = client_stats(env).writes;
  server_do(env->server, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
  env_until(env, all[COUNT - 1].listening == 2);
  for (int i = 0; i < COUNT; i++)
    assert_string_equal(all[i].story, "LGL");
  assert_true(client_stats(env).writes - writes < 200);
  env_close(env);
  free(all);
}

/* A client with a small max_reply receives the largest message, and so do its other
 * subscriptions. */
TEST(message_larger_than_max_reply) {
  belay_client_options_t options = client_options();
  options.max_reply = 65536;
  env_t *env = env_open(&options);
  belay_client_t *other = env_connect(env, server_url(env->server), NULL);
  subscriber_t s = {0};
  subscribe(env, &s, "news");
  char *message = calloc(1, BELAY_TOPIC_MESSAGE_MAX);
  publication_t p = {0};
  for (unsigned i = 1; i <= 3; i++) {
    assert_error(begin_publish(env, other, &p, "news", message, BELAY_TOPIC_MESSAGE_MAX), 0);
    env_until(env, s.messages == i && p.ended == i);
    assert_int_equal(s.len, BELAY_TOPIC_MESSAGE_MAX);
  }
  assert_string_equal(s.story, "LMMM");
  assert_int_equal(client_stats(env).drops, 0);
  env_close(env);
  free(message);
}

/* ---- a connection that dies ---- */

TEST(silent_connection) {
  belay_client_options_t options = client_options();
  options.idle_timeout_ms = 100;
  options.connect_timeout_ms = 4 * prompt_ms();
  env_t *env = env_open_relayed(&options);
  subscriber_t s = {0};
  subscribe(env, &s, "news");
  env_run_for(env, 350);
  assert_string_equal(s.story, "L"); /* one that is only idle stays */
  assert_true(server_calls(env->server, "ping") >= 2);
  relay_silence(env->relay);
  env_until(env, s.listening == 2);
  publish_raw(env, "news", "hello");
  env_until(env, s.messages == 1);
  assert_string_equal(s.story, "LGLM");
  env_close(env);
}

ENV_TEST_OF(stopped_server, o.stall_timeout_ms = prompt_ms()) {
  subscriber_t s = {0}, other = {0};
  subscribe(env, &s, "news");
  server_pause(env->server);
  assert_error(subscribe_to(env, env->client, &other, "other", 5), 0);
  env_until(env, s.gaps == 1); /* it owes an answer to the second */
  assert_int_equal(other.gaps, 0);
  server_resume(env->server);
  env_until(env, s.listening == 2 && other.listening == 1);
}

/* The address now leads to another server, while the former one is alive and silent. */
TEST(server_replaced) {
  server_t *old = server_start(NULL), *new = server_start(NULL);
  relay_t *relay = relay_start(server_path(old));
  env_t *env = env_open_at(relay_url(relay), NULL);
  subscriber_t s = {0};
  publication_t p = {0};
  subscribe(env, &s, "news");
  assert_error(publish(env, &p, "news", "one"), 0);
  env_until(env, s.messages == 1);
  relay_lead(relay, server_path(new));
  server_do(old, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
  while (publish(env, &p, "news", "two") != 0) /* the connection is lost with the first */
    ;
  env_until(env, s.listening == 2);
  assert_error(publish(env, &p, "news", "three"), 0);
  env_until(env, s.messages == 2);
  assert_string_equal(s.story, "LMGLM");
  server_do(new, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
  while (publish(env, &p, "news", "four") != 0)
    ;
  env_until(env, s.messages == 3);
  assert_string_equal(s.story, "LMGLMM"); /* the same server again is no news */
  env_close(env);
  relay_stop(relay);
  server_stop(old);
  server_stop(new);
}

/* ---- refusals ---- */

static env_t *env_with_user(const char *const *rules, belay_client_options_t *options,
                            int64_t reconnect_max_ms) {
  server_t *server = server_start(NULL);
  server_do(server, "ACL", "SETUSER", "u", "on", ">p", "~*", "resetchannels", rules[0], rules[1],
            rules[2], NULL);
  options->username = "u";
  options->password = "p";
  options->reconnect_max_ms = reconnect_max_ms;
  return env_open_with(server, options);
}

TEST(subscribe_not_permitted) {
  static const char *const rules[][3] = {{"+@all", "-@pubsub", "allchannels"},
                                         {"+@all", "-ping", "allchannels"}};
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    belay_client_options_t options = client_options();
    env_t *env = env_with_user(rules[i], &options, 100);
    subscriber_t s = {0};
    assert_error(subscribe_to(env, env->client, &s, "news", 4), 0);
    env_until(env, s.gaps == 1);
    assert_error(s.status, BELAY_EPERM);
    env_run_for(env, 500);
    assert_string_equal(s.story, "G");
    assert_true(server_info(env->server, "stats", "total_connections_received") < 20);
    server_do(env->server, "ACL", "SETUSER", "u", "+@all", NULL);
    env_until(env, s.listening == 1); /* it was tried again */
    publish_raw(env, "news", "hello");
    env_until(env, s.messages == 1);
    server_do(env->server, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
    env_until(env, s.listening == 2);
    publish_raw(env, "news", "hello");
    env_until(env, s.messages == 2);
    assert_string_equal(s.story, "GLMGLM");
    env_close(env);
  }
}

static void explained(subscriber_t *s, belay_topic_event_t event) {
  if (event == BELAY_TOPIC_GAP)
    assert_non_null(strstr(belay_detail(s->env->belay), "NOPERM"));
}

/* A forbidden channel does not affect the others. */
TEST(one_channel_not_permitted) {
  static const char *const rules[] = {"+@all", "&belay::topic::{a*", "&belay::topic::{b*"};
  enum { COUNT = 300 };
  belay_client_options_t options = client_options();
  env_t *env = env_with_user(rules, &options, 100);
  static subscriber_t all[COUNT];
  subscriber_t bad[3] = {{.then = explained}, {0}, {0}}, late = {0};
  char name[16];
  memset(all, 0, sizeof all);
  for (int i = 0; i < COUNT; i++) {
    int len = snprintf(name, sizeof name, "%c%d", 'a' + i % 2, i);
    assert_error(subscribe_to(env, env->client, &all[i], name, (size_t)len), 0);
    if (i % 100 == 50)
      assert_error(subscribe_to(env, env->client, &bad[i / 100], i == 50 ? "x" : "y", 1), 0);
  }
  for (int i = 0; i < COUNT; i++)
    env_until(env, all[i].listening == 1);
  env_until(env, bad[0].gaps == 1 && bad[1].gaps == 1 && bad[2].gaps == 1);
  assert_error(bad[2].status, BELAY_EPERM);
  env_run_for(env, 300);
  assert_error(subscribe_to(env, env->client, &late, "x", 1), 0);
  env_until(env, late.gaps == 1); /* a later subscriber learns of it, too */
  server_do(env->server, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
  for (int i = 0; i < COUNT; i++)
    env_until(env, all[i].listening == 2);
  env_run_for(env, 300);
  for (int i = 0; i < COUNT; i++)
    assert_string_equal(all[i].story, "LGL");
  for (int i = 0; i < 3; i++)
    assert_string_equal(bad[i].story, "G");
  assert_int_equal(client_stats(env).connects, 2 + deployment_scouts());
  server_do(env->server, "ACL", "SETUSER", "u", "allchannels", NULL);
  env_until(env, bad[0].listening == 1 && bad[1].listening == 1 && late.listening == 1);
  env_close(env);
}

static int listening(const subscriber_t *all, int n) {
  int count = 0;
  for (int i = 0; i < n; i++)
    count += all[i].listening > 0;
  return count;
}

/* A few forbidden channels are tried now and then. After one success the others are tried, too. */
TEST(channels_permitted_later) {
  static const char *const rules[] = {"+@all", "&belay::topic::{a*", "&other"};
  enum { COUNT = 600 };
  belay_client_options_t options = client_options();
  env_t *env = env_with_user(rules, &options, 1000);
  static subscriber_t all[COUNT];
  char name[16];
  memset(all, 0, sizeof all);
  for (int i = 0; i < COUNT; i++) {
    int len = snprintf(name, sizeof name, "b%d", i);
    assert_error(subscribe_to(env, env->client, &all[i], name, (size_t)len), 0);
  }
  env_until(env, all[COUNT - 1].gaps == 1);
  server_do(env->server, "ACL", "SETUSER", "u", "allchannels", NULL);
  env_until(env, listening(all, COUNT) == COUNT); /* one by one they would take half a minute */
  assert_int_equal(client_stats(env).connects, 1 + deployment_scouts());
  env_close(env);
}

TEST(unsubscribe_not_permitted) {
  static const char *const rules[] = {"+@all", "-unsubscribe", "allchannels"};
  belay_client_options_t options = client_options();
  env_t *env = env_with_user(rules, &options, 100);
  subscriber_t one = {0}, two = {0}, again = {0};
  subscribe(env, &one, "one");
  subscribe(env, &two, "two");
  assert_error(unsubscribe(&one), 0);
  env_run_for(env, 1300);
  subscribe(env, &again, "one");
  publish_raw(env, "one", "hello");
  env_until(env, again.messages == 1);
  assert_string_equal(two.story, "L");
  assert_int_equal(client_stats(env).connects, 1 + deployment_scouts());
  env_close(env);
}

TEST(publish_not_permitted) {
  static const char *const rules[] = {"+@all", "-@pubsub", "allchannels"};
  belay_client_options_t options = client_options();
  env_t *env = env_with_user(rules, &options, 100);
  publication_t p = {0};
  assert_error(publish(env, &p, "news", "x"), BELAY_EPERM);
  assert_non_null(strstr(belay_detail(env->belay), "NOPERM"));
  env_close(env);
}

/* ---- clusters ---- */

static env_t *env_with_cluster(const belay_client_options_t *options) {
  const server_options_t cluster = {.cluster = true,
                                    .arguments = {"--cluster-require-full-coverage", "no"}};
  server_t *server = server_start(&cluster);
  server_do(server, "CLUSTER", "ADDSLOTSRANGE", "0", "16383", NULL);
  env_t *env = env_open_with(server, options);
  env_until(env,
            strstr(server_string(server, "CLUSTER", "INFO", NULL), "cluster_state:ok") != NULL);
  return env;
}

TEST(sharded_channels) {
  enum { COUNT = 1000 };
  env_t *env = env_with_cluster(NULL);
  server_t *server = env->server;
  belay_client_t *other = env_connect(env, server_url(server), NULL);
  subscriber_t *all = calloc(COUNT, sizeof *all);
  char name[16];
  for (int i = 0; i < COUNT; i++)
    assert_error(
        subscribe_to(env, other, &all[i], name, (size_t)snprintf(name, sizeof name, "n%d", i)), 0);
  env_until(env, all[COUNT - 1].listening == 1);
  publication_t p = {0};
  assert_error(publish(env, &p, "n7", "the first word of this client"), 0);
  assert_int_equal(p.receivers, 1);
  publish_numbers(env, env->client, "n8", 100);
  env_until(env, all[7].messages == 1 && all[8].messages == 100);
  assert_true(all[8].sum == sum_of_numbers(100));
  assert_true(server_calls(server, "spublish") == 101 && server_calls(server, "publish") == 0);
  server_do(server, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
  env_until(env, all[COUNT - 1].listening == 2);
  assert_error(unsubscribe(&all[7]), 0);
  env_until(env, server_integer(server, "SPUBLISH", "belay::topic::{n7}", "x", NULL) == 0);
  assert_error(publish(env, &p, "n8", "x"), 0);
  env_until(env, all[8].messages == 101);
  assert_string_equal(all[9].story, "LGL");
  /* the slots go elsewhere: the server takes the channels back */
  server_do(server, "CLUSTER", "DELSLOTSRANGE", "0", "16383", NULL);
  env_until(env, all[8].gaps == 2);
  server_do(server, "CLUSTER", "ADDSLOTSRANGE", "0", "16383", NULL);
  env_until(env, all[8].listening == 3);
  env_close(env);
  free(all);
}

/* A slot without an owner affects only its own subscribers. */
TEST(slot_without_owner) {
  enum { COUNT = 300 };
  belay_client_options_t options = client_options();
  options.reconnect_min_ms = 10;
  options.reconnect_max_ms = 200;
  env_t *env = env_with_cluster(&options);
  int64_t number = server_integer(env->server, "CLUSTER", "KEYSLOT", "{bad}", NULL);
  char slot[16], name[16];
  snprintf(slot, sizeof slot, "%lld", (long long)number);
  server_do(env->server, "CLUSTER", "DELSLOTS", slot, NULL);
  static subscriber_t all[COUNT];
  subscriber_t bad = {0}, worse = {0};
  memset(all, 0, sizeof all);
  assert_error(subscribe_to(env, env->client, &bad, "bad", 3), 0); /* in front of the others */
  for (int i = 0; i < COUNT; i++) {
    int len = snprintf(name, sizeof name, "n%d", i);
    assert_error(subscribe_to(env, env->client, &all[i], name, (size_t)len), 0);
  }
  for (int i = 0; i < COUNT; i++)
    env_until(env, all[i].listening == 1);
  assert_error(subscribe_to(env, env->client, &worse, "bad", 3), 0); /* and behind them */
  env_run_for(env, 500);
  publish_numbers(env, env->client, "n7", 100);
  env_until(env, all[7].messages == 100);
  assert_int_equal(client_stats(env).drops, 0);
  for (int i = 0; i < COUNT; i++)
    assert_true(all[i].listening == 1 && all[i].gaps == 0);
  assert_string_equal(bad.story, ""); /* it may pass */
  server_do(env->server, "CLUSTER", "ADDSLOTS", slot, NULL);
  env_until(env, bad.listening == 1 && worse.listening == 1);
  env_close(env);
}
