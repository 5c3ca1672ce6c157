/* Clients of real Sentinel groups: failovers of each kind, dying Sentinels, passwords, host
 * names. */
#include <stdio.h>

#include "support/fixtures/data/counters.h"
#include "support/deployments/group.h"
#include "support/fixtures/scene.h"
#include "support/fixtures/subscriber.h"

#define WHOLE_MS 60000

/* The loop runs while the group comes together again. */
static void heal(env_t *env, group_t *group) {
  int64_t began = clock_now();
  group_mend(group);
  while (!group_is_whole(group)) {
    env_run_for(env, 50);
    if (clock_since_ms(began) > WHOLE_MS * slow())
      fail_msg("a Sentinel group does not come together");
  }
}

static void fail_over(env_t *env, group_t *group, group_way_t way) {
  group_begin_fail_over(group, way);
  env_until(env, group_has_failed_over(group));
}

/* Waits until calls succeed. Earlier errors name the failover as their cause. */
static void expect_recovery(env_t *env) {
  int64_t began = clock_now();
  for (int status = pong(env, NULL); status != 0; status = pong(env, NULL)) {
    if (status != BELAY_EUNKNOWN && status != BELAY_EUNREACHABLE && status != BELAY_EREADONLY)
      assert_error(status, 0);
    assert_true(clock_since_ms(began) < 15000 * slow());
  }
}

/* A lock is held and a topic is subscribed over failovers of every kind. */
TEST_ON(operations_during_failovers, group, group_start(NULL)) {
  static const group_way_t ways[] = {GROUP_KILLED, GROUP_PAUSED, GROUP_ASKED};
  belay_lock_options_t lasting = watched(10000 * slow());
  env_t *env = env_open_at(group_url(group), NULL);
  contender_t *c = contender_new(env, "door", &lasting), *other = contender_new(env, "door", NULL);
  subscriber_t subscriber = {0};
  publication_t publication = {0};
  assert_error(try_lock(c), 0);
  subscribe(env, &subscriber, "news");
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    unsigned messages = subscriber.messages, gaps = subscriber.gaps;
    heal(env, group); /* the elected primary has the key */
    uint64_t drops = client_stats(env).drops;
    fail_over(env, group, ways[i]);
    env_until(env, client_stats(env).drops > drops); /* the old one may answer until then */
    expect_recovery(env);
    assert_error(try_lock(other), BELAY_EHELD);
    env_until(env, subscriber.gaps > gaps && subscriber.up);
    assert_error(publish(env, &publication, "news", "it is here"), 0);
    env_until(env, subscriber.messages > messages);
  }
  assert_int_equal(c->lost, 0);
  assert_true(remaining_ms(c) > 0);
  assert_error(release(c), 0);
  assert_error(try_lock(other), 0);
  env_close(env);
}

/* Gets are answered by replicas before and after a failover. The new primary gets no more reads,
 * and a returned server gets them again. */
TEST_ON(read_from_replicas, group, group_start(NULL)) {
  int64_t before[REPLICAS_NODES];
  counters_t counters;
  belay_client_options_t options = client_options();
  options.read_from = BELAY_READ_REPLICA;
  env_t *env = env_open_at(group_url(group), &options);
  counters_new(&counters, env, NULL);
  expect_added(&counters, "a", 2, 2);
  for (int i = 0; i < 2; i++) {
    heal(env, group);
    int primary = group_primary(group);
    bool both = false;
    int64_t began = clock_now();
    while (!both) { /* they are found, and connected to, in time */
      for (unsigned k = 0; k < REPLICAS_NODES; k++)
        before[k] = server_calls(group_node(group, k), "get");
      for (int k = 0; k < 10; k++)
        expect_got(&counters, "a", true, 2);
      both = true;
      for (unsigned k = 0; k < REPLICAS_NODES; k++)
        both =
            both && (server_calls(group_node(group, k), "get") > before[k]) == ((int)k != primary);
      env_run_for(env, 20);
      assert_true(clock_since_ms(began) < 30000 * slow());
    }
    fail_over(env, group, GROUP_KILLED);
    expect_got(&counters, "a", true, 2);
    expect_recovery(env);
  }
  env_close(env);
}

TEST_ON(sentinels_die_one_by_one, group, group_start(NULL)) {
  env_t *env = env_open_at(group_url(group), NULL);
  for (unsigned i = 0; i < GROUP_SENTINELS; i++) {
    if (i % 2 == 0)
      server_kill(group_sentinel(group, i));
    else
      server_pause(group_sentinel(group, i));
    env_run_for(env, 200);
    assert_error(pong(env, NULL), 0);
  }
  int primary = -1;
  for (unsigned i = 0; i < REPLICAS_NODES; i++)
    if (server_is_primary(group_node(group, i)))
      primary = (int)i;
  server_kill(group_node(group, (unsigned)primary));
  env_until(env, client_stats(env).connections_up == 0);
  assert_error(pong(env, NULL), BELAY_ENOSENTINEL);
  assert_int_equal(client_stats(env).unknown, 0);
  for (unsigned i = 0; i < GROUP_SENTINELS; i++) { /* the primary stays where it is */
    if (server_is_paused(group_sentinel(group, i)))
      server_resume(group_sentinel(group, i));
    else
      group_revive_sentinel(group, i);
  }
  env_until(env, group_primary(group) >= 0);
  expect_recovery(env);
  env_close(env);
}

TEST(separate_passwords) {
  const group_options_t start_options = {.nodes = {.password = "inner"},
                                         .sentinel_password = "outer"};
  group_t *group = group_start(&start_options);
  belay_client_options_t options = client_options();
  env_t *env = env_open_at(group_url(group), &options);
  assert_error(pong(env, NULL), BELAY_EAUTH); /* NOAUTH: it has said nothing */
  env_close(env);
  options.sentinel_password = "inner";
  env = env_open_at(group_url(group), &options);
  assert_error(pong(env, NULL), BELAY_EAUTH);
  env_close(env);
  options.sentinel_password = "outer";
  options.password = "outer";
  env = env_open_at(group_url(group), &options);
  assert_error(pong(env, NULL), BELAY_EAUTH);
  env_close(env);
  options.password = NULL;
  env = env_open_at(group_url(group), &options);
  assert_error(pong(env, NULL), 0);
  fail_over(env, group, GROUP_KILLED);
  expect_recovery(env);
  env_close(env);
  group_stop(group);
}

/* A Sentinel that names servers by their names. */
TEST_ON(sentinels_with_host_names, server,
        server_start(&(server_options_t){.address = "127.0.0.1"})) {
  char lines[256], url[128];
  snprintf(lines, sizeof lines,
           "sentinel resolve-hostnames yes\nsentinel announce-hostnames yes\n"
           "sentinel monitor named localhost %d 1\n",
           server_port(server));
  server_t *sentinel =
      server_start(&(server_options_t){.address = "127.0.0.1", .sentinel = true, .lines = lines});
  const resp_t *reply = server_ask(sentinel, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "named", NULL);
  assert_string_equal(reply->items[0]->str, "localhost");
  snprintf(url, sizeof url, "redis%s+sentinel://%slocalhost:%d/named",
           servers_are_secure() ? "s" : "", server_login(server), server_port(sentinel));
  env_t *env = env_open_at(url, NULL);
  assert_error(pong(env, NULL), 0);
  env_close(env);
  server_stop(sentinel);
}
