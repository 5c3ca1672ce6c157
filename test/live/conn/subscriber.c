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

static void publish_raw(bed_t *bed, const char *topic, const char *text) {
  char channel[64];
  snprintf(channel, sizeof channel, "belay::topic::{%s}", topic);
  (void)server_publish(bed->server, channel, text);
}

/* ---- when there is one ---- */

BED_TEST(connection_exists_while_subscribed) {
  subscriber_t one = {0}, two = {0};
  assert_int_equal(client_stats(bed).connections_up, 0);
  subscribe(bed, &one, "one");
  subscribe(bed, &two, "two");
  assert_int_equal(client_stats(bed).connections_up, 1);
  assert_error(unsubscribe(&one), 0);
  bed_until(bed, subscribed_to(bed->server, "one") == 0);
  assert_int_equal(subscribed_to(bed->server, "two"), 1);
  assert_int_equal(client_stats(bed).connections_up, 1);
  assert_error(unsubscribe(&two), 0);
  bed_until(bed, client_stats(bed).connections_up == 0);
  assert_int_equal(client_stats(bed).drops, 0); /* nothing was lost */
  subscribe(bed, &one, "one");
  publish_raw(bed, "one", "hello");
  bed_until(bed, one.messages == 1);
}

/* A channel that is subscribed again soon has not changed. */
BED_TEST(channel_lingers) {
  subscriber_t s = {0};
  for (int i = 0; i < 20; i++) {
    subscribe(bed, &s, "news");
    publish_raw(bed, "news", "hello");
    bed_until(bed, s.messages == 1);
    assert_error(unsubscribe(&s), 0);
    bed_until(bed, s.closed == 1);
  }
  assert_true(server_calls(bed->server, deployment_subscribe()) <=
              2); /* on a slow machine a second passes */
  assert_true(client_stats(bed).connects <= 2);
}

/* No more than 1,024 of them do. */
TEST(lingering_channels_are_limited) {
  enum { COUNT = 3000 };
  bed_t *bed = bed_open(NULL);
  subscriber_t *all = calloc(COUNT, sizeof *all);
  char name[16];
  for (int i = 0; i < COUNT; i++)
    assert_error(subscribe_to(bed, bed->client, &all[i], name,
                              (size_t)snprintf(name, sizeof name, "n%d", i)),
                 0);
  bed_until(bed, all[COUNT - 1].listening == 1);
  for (int i = 0; i < COUNT; i++)
    assert_error(unsubscribe(&all[i]), 0);
  assert_int_equal(bed->client->channels.lingering_len, 1024);
  assert_int_equal(bed->client->channels.table.count, 1024);
  bed_until(bed, client_stats(bed).connections_up == 0);
  bed_close(bed);
  free(all);
}

TEST(channels_are_limited) {
  enum { MAX = 65536 };
  bed_t *bed = bed_open(NULL);
  subscriber_t *all = calloc(MAX + 1, sizeof *all), again = {0};
  char name[16];
  for (int i = 0; i <= MAX; i++) {
    int len = snprintf(name, sizeof name, "n%d", i);
    assert_error(subscribe_to(bed, bed->client, &all[i], name, (size_t)len),
                 i < MAX ? 0 : BELAY_EBUSY);
  }
  subscribe(bed, &again, "n7"); /* one more on a channel of these */
  bed_until(bed, all[MAX - 1].listening == 1);
  assert_error(unsubscribe(&all[0]), 0); /* it lingers, and makes room at once */
  assert_error(subscribe_to(bed, bed->client, &all[MAX], name, strlen(name)), 0);
  bed_until(bed, all[MAX].listening == 1);
  bed_close(bed);
  free(all);
}

TEST(ten_thousand_channels_cost_few_writes) {
  enum { COUNT = 10000 };
  bed_t *bed = bed_open(NULL);
  subscriber_t *all = calloc(COUNT, sizeof *all);
  char name[16];
  for (int i = 0; i < COUNT; i++)
    assert_error(subscribe_to(bed, bed->client, &all[i], name,
                              (size_t)snprintf(name, sizeof name, "n%d", i)),
                 0);
  bed_until(bed, all[COUNT - 1].listening == 1);
  uint64_t writes = client_stats(bed).writes;
  server_do(bed->server, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
  bed_until(bed, all[COUNT - 1].listening == 2);
  for (int i = 0; i < COUNT; i++)
    assert_string_equal(all[i].story, "LGL");
  assert_true(client_stats(bed).writes - writes < 200);
  bed_close(bed);
  free(all);
}

/* A client with a small max_reply receives the largest message, and so do its other
 * subscriptions. */
TEST(message_larger_than_max_reply) {
  belay_client_options_t options = client_options();
  options.max_reply = 65536;
  bed_t *bed = bed_open(&options);
  belay_client_t *other = bed_connect(bed, server_url(bed->server), NULL);
  subscriber_t s = {0};
  subscribe(bed, &s, "news");
  char *message = calloc(1, BELAY_TOPIC_MESSAGE_MAX);
  publication_t p = {0};
  for (unsigned i = 1; i <= 3; i++) {
    assert_error(begin_publish(bed, other, &p, "news", message, BELAY_TOPIC_MESSAGE_MAX), 0);
    bed_until(bed, s.messages == i && p.ended == i);
    assert_int_equal(s.len, BELAY_TOPIC_MESSAGE_MAX);
  }
  assert_string_equal(s.story, "LMMM");
  assert_int_equal(client_stats(bed).drops, 0);
  bed_close(bed);
  free(message);
}

/* ---- a connection that dies ---- */

TEST(silent_connection) {
  belay_client_options_t options = client_options();
  options.idle_timeout_ms = 100;
  options.connect_timeout_ms = 4 * prompt_ms();
  bed_t *bed = bed_open_relayed(&options);
  subscriber_t s = {0};
  subscribe(bed, &s, "news");
  bed_run_for(bed, 350);
  assert_string_equal(s.story, "L"); /* one that is only idle stays */
  assert_true(server_calls(bed->server, "ping") >= 2);
  relay_silence(bed->relay);
  bed_until(bed, s.listening == 2);
  publish_raw(bed, "news", "hello");
  bed_until(bed, s.messages == 1);
  assert_string_equal(s.story, "LGLM");
  bed_close(bed);
}

BED_TEST_OF(stopped_server, o.stall_timeout_ms = prompt_ms()) {
  subscriber_t s = {0}, other = {0};
  subscribe(bed, &s, "news");
  server_pause(bed->server);
  assert_error(subscribe_to(bed, bed->client, &other, "other", 5), 0);
  bed_until(bed, s.gaps == 1); /* it owes an answer to the second */
  assert_int_equal(other.gaps, 0);
  server_resume(bed->server);
  bed_until(bed, s.listening == 2 && other.listening == 1);
}

/* The address now leads to another server, while the former one is alive and silent. */
TEST(server_replaced) {
  server_t *old = server_start(NULL), *new = server_start(NULL);
  relay_t *relay = relay_start(server_path(old));
  bed_t *bed = bed_open_at(relay_url(relay), NULL);
  subscriber_t s = {0};
  publication_t p = {0};
  subscribe(bed, &s, "news");
  assert_error(publish(bed, &p, "news", "one"), 0);
  bed_until(bed, s.messages == 1);
  relay_lead(relay, server_path(new));
  server_do(old, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
  while (publish(bed, &p, "news", "two") != 0) /* the connection is lost with the first */
    ;
  bed_until(bed, s.listening == 2);
  assert_error(publish(bed, &p, "news", "three"), 0);
  bed_until(bed, s.messages == 2);
  assert_string_equal(s.story, "LMGLM");
  server_do(new, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
  while (publish(bed, &p, "news", "four") != 0)
    ;
  bed_until(bed, s.messages == 3);
  assert_string_equal(s.story, "LMGLMM"); /* the same server again is no news */
  bed_close(bed);
  relay_stop(relay);
  server_stop(old);
  server_stop(new);
}

/* ---- refusals ---- */

static bed_t *bed_with_user(const char *const *rules, belay_client_options_t *options,
                            int64_t reconnect_max_ms) {
  server_t *server = server_start(NULL);
  server_do(server, "ACL", "SETUSER", "u", "on", ">p", "~*", "resetchannels", rules[0], rules[1],
            rules[2], NULL);
  options->username = "u";
  options->password = "p";
  options->reconnect_max_ms = reconnect_max_ms;
  return bed_open_with(server, options);
}

TEST(subscribe_not_permitted) {
  static const char *const rules[][3] = {{"+@all", "-@pubsub", "allchannels"},
                                         {"+@all", "-ping", "allchannels"}};
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
    belay_client_options_t options = client_options();
    bed_t *bed = bed_with_user(rules[i], &options, 100);
    subscriber_t s = {0};
    assert_error(subscribe_to(bed, bed->client, &s, "news", 4), 0);
    bed_until(bed, s.gaps == 1);
    assert_error(s.status, BELAY_EPERM);
    bed_run_for(bed, 500);
    assert_string_equal(s.story, "G");
    assert_true(server_info(bed->server, "stats", "total_connections_received") < 20);
    server_do(bed->server, "ACL", "SETUSER", "u", "+@all", NULL);
    bed_until(bed, s.listening == 1); /* it was tried again */
    publish_raw(bed, "news", "hello");
    bed_until(bed, s.messages == 1);
    server_do(bed->server, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
    bed_until(bed, s.listening == 2);
    publish_raw(bed, "news", "hello");
    bed_until(bed, s.messages == 2);
    assert_string_equal(s.story, "GLMGLM");
    bed_close(bed);
  }
}

static void explained(subscriber_t *s, belay_topic_event_t event) {
  if (event == BELAY_TOPIC_GAP)
    assert_non_null(strstr(belay_detail(s->bed->belay), "NOPERM"));
}

/* A forbidden channel does not affect the others. */
TEST(one_channel_not_permitted) {
  static const char *const rules[] = {"+@all", "&belay::topic::{a*", "&belay::topic::{b*"};
  enum { COUNT = 300 };
  belay_client_options_t options = client_options();
  bed_t *bed = bed_with_user(rules, &options, 100);
  static subscriber_t all[COUNT];
  subscriber_t bad[3] = {{.then = explained}, {0}, {0}}, late = {0};
  char name[16];
  memset(all, 0, sizeof all);
  for (int i = 0; i < COUNT; i++) {
    int len = snprintf(name, sizeof name, "%c%d", 'a' + i % 2, i);
    assert_error(subscribe_to(bed, bed->client, &all[i], name, (size_t)len), 0);
    if (i % 100 == 50)
      assert_error(subscribe_to(bed, bed->client, &bad[i / 100], i == 50 ? "x" : "y", 1), 0);
  }
  for (int i = 0; i < COUNT; i++)
    bed_until(bed, all[i].listening == 1);
  bed_until(bed, bad[0].gaps == 1 && bad[1].gaps == 1 && bad[2].gaps == 1);
  assert_error(bad[2].status, BELAY_EPERM);
  bed_run_for(bed, 300);
  assert_error(subscribe_to(bed, bed->client, &late, "x", 1), 0);
  bed_until(bed, late.gaps == 1); /* a later subscriber learns of it, too */
  server_do(bed->server, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
  for (int i = 0; i < COUNT; i++)
    bed_until(bed, all[i].listening == 2);
  bed_run_for(bed, 300);
  for (int i = 0; i < COUNT; i++)
    assert_string_equal(all[i].story, "LGL");
  for (int i = 0; i < 3; i++)
    assert_string_equal(bad[i].story, "G");
  assert_int_equal(client_stats(bed).connects, 2 + deployment_scouts());
  server_do(bed->server, "ACL", "SETUSER", "u", "allchannels", NULL);
  bed_until(bed, bad[0].listening == 1 && bad[1].listening == 1 && late.listening == 1);
  bed_close(bed);
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
  bed_t *bed = bed_with_user(rules, &options, 1000);
  static subscriber_t all[COUNT];
  char name[16];
  memset(all, 0, sizeof all);
  for (int i = 0; i < COUNT; i++) {
    int len = snprintf(name, sizeof name, "b%d", i);
    assert_error(subscribe_to(bed, bed->client, &all[i], name, (size_t)len), 0);
  }
  bed_until(bed, all[COUNT - 1].gaps == 1);
  server_do(bed->server, "ACL", "SETUSER", "u", "allchannels", NULL);
  bed_until(bed, listening(all, COUNT) == COUNT); /* one by one they would take half a minute */
  assert_int_equal(client_stats(bed).connects, 1 + deployment_scouts());
  bed_close(bed);
}

TEST(unsubscribe_not_permitted) {
  static const char *const rules[] = {"+@all", "-unsubscribe", "allchannels"};
  belay_client_options_t options = client_options();
  bed_t *bed = bed_with_user(rules, &options, 100);
  subscriber_t one = {0}, two = {0}, again = {0};
  subscribe(bed, &one, "one");
  subscribe(bed, &two, "two");
  assert_error(unsubscribe(&one), 0);
  bed_run_for(bed, 1300);
  subscribe(bed, &again, "one");
  publish_raw(bed, "one", "hello");
  bed_until(bed, again.messages == 1);
  assert_string_equal(two.story, "L");
  assert_int_equal(client_stats(bed).connects, 1 + deployment_scouts());
  bed_close(bed);
}

TEST(publish_not_permitted) {
  static const char *const rules[] = {"+@all", "-@pubsub", "allchannels"};
  belay_client_options_t options = client_options();
  bed_t *bed = bed_with_user(rules, &options, 100);
  publication_t p = {0};
  assert_error(publish(bed, &p, "news", "x"), BELAY_EPERM);
  assert_non_null(strstr(belay_detail(bed->belay), "NOPERM"));
  bed_close(bed);
}

/* ---- clusters ---- */

static bed_t *bed_with_cluster(const belay_client_options_t *options) {
  const server_options_t cluster = {.cluster = true,
                                    .arguments = {"--cluster-require-full-coverage", "no"}};
  server_t *server = server_start(&cluster);
  server_do(server, "CLUSTER", "ADDSLOTSRANGE", "0", "16383", NULL);
  bed_t *bed = bed_open_with(server, options);
  bed_until(bed,
            strstr(server_string(server, "CLUSTER", "INFO", NULL), "cluster_state:ok") != NULL);
  return bed;
}

TEST(sharded_channels) {
  enum { COUNT = 1000 };
  bed_t *bed = bed_with_cluster(NULL);
  server_t *server = bed->server;
  belay_client_t *other = bed_connect(bed, server_url(server), NULL);
  subscriber_t *all = calloc(COUNT, sizeof *all);
  char name[16];
  for (int i = 0; i < COUNT; i++)
    assert_error(
        subscribe_to(bed, other, &all[i], name, (size_t)snprintf(name, sizeof name, "n%d", i)), 0);
  bed_until(bed, all[COUNT - 1].listening == 1);
  publication_t p = {0};
  assert_error(publish(bed, &p, "n7", "the first word of this client"), 0);
  assert_int_equal(p.receivers, 1);
  publish_numbers(bed, bed->client, "n8", 100);
  bed_until(bed, all[7].messages == 1 && all[8].messages == 100);
  assert_true(all[8].sum == sum_of_numbers(100));
  assert_true(server_calls(server, "spublish") == 101 && server_calls(server, "publish") == 0);
  server_do(server, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
  bed_until(bed, all[COUNT - 1].listening == 2);
  assert_error(unsubscribe(&all[7]), 0);
  bed_until(bed, server_integer(server, "SPUBLISH", "belay::topic::{n7}", "x", NULL) == 0);
  assert_error(publish(bed, &p, "n8", "x"), 0);
  bed_until(bed, all[8].messages == 101);
  assert_string_equal(all[9].story, "LGL");
  /* the slots go elsewhere: the server takes the channels back */
  server_do(server, "CLUSTER", "DELSLOTSRANGE", "0", "16383", NULL);
  bed_until(bed, all[8].gaps == 2);
  server_do(server, "CLUSTER", "ADDSLOTSRANGE", "0", "16383", NULL);
  bed_until(bed, all[8].listening == 3);
  bed_close(bed);
  free(all);
}

/* A slot without an owner affects only its own subscribers. */
TEST(slot_without_owner) {
  enum { COUNT = 300 };
  belay_client_options_t options = client_options();
  options.reconnect_min_ms = 10;
  options.reconnect_max_ms = 200;
  bed_t *bed = bed_with_cluster(&options);
  int64_t number = server_integer(bed->server, "CLUSTER", "KEYSLOT", "{bad}", NULL);
  char slot[16], name[16];
  snprintf(slot, sizeof slot, "%lld", (long long)number);
  server_do(bed->server, "CLUSTER", "DELSLOTS", slot, NULL);
  static subscriber_t all[COUNT];
  subscriber_t bad = {0}, worse = {0};
  memset(all, 0, sizeof all);
  assert_error(subscribe_to(bed, bed->client, &bad, "bad", 3), 0); /* in front of the others */
  for (int i = 0; i < COUNT; i++) {
    int len = snprintf(name, sizeof name, "n%d", i);
    assert_error(subscribe_to(bed, bed->client, &all[i], name, (size_t)len), 0);
  }
  for (int i = 0; i < COUNT; i++)
    bed_until(bed, all[i].listening == 1);
  assert_error(subscribe_to(bed, bed->client, &worse, "bad", 3), 0); /* and behind them */
  bed_run_for(bed, 500);
  publish_numbers(bed, bed->client, "n7", 100);
  bed_until(bed, all[7].messages == 100);
  assert_int_equal(client_stats(bed).drops, 0);
  for (int i = 0; i < COUNT; i++)
    assert_true(all[i].listening == 1 && all[i].gaps == 0);
  assert_string_equal(bad.story, ""); /* it may pass */
  server_do(bed->server, "CLUSTER", "ADDSLOTS", slot, NULL);
  bed_until(bed, bad.listening == 1 && worse.listening == 1);
  bed_close(bed);
}
