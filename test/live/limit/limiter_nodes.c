/* Limiters on a cluster, one node of which does not answer: options.away is for its keys, and for
 * no others. */
#include <stdio.h>

#include "support/fixtures/limit/asks.h"
#include "support/deployments/cluster.h"

#define S INT64_C(1000000)
#define TIMEOUT_MS (300 * slow())

/* Nobody notices that a node stands still, and the others go on without it. */
static cluster_t *start_cluster(void) {
  static const char *const arguments[] = {"--cluster-require-full-coverage", "no", NULL};
  return cluster_start(&(cluster_options_t){.without_replicas = true, .arguments = arguments});
}

/* A key of that node. */
static void key_at(cluster_t *cluster, unsigned node, char key[16]) {
  char whole[64];
  int i = 0;
  do {
    snprintf(key, 16, "k%d", i++);
    snprintf(whole, sizeof whole, "belay::limit::test::{%s}", key);
  } while (cluster_owner(cluster, cluster_slot(cluster, whole)) != (int)node);
}

static void begin_take(env_t *env, belay_limiter_t *limiter, ask_t *ask, const char *key) {
  start_take(env, limiter, ask, key, 1);
}

static void expect_said(const belay_limiter_result_t *result, belay_source_t source) {
  assert_int_equal(result->verdict, BELAY_ALLOWED);
  assert_int_equal(result->source, source);
}

static void expect_each_for_itself(int64_t slice) {
  cluster_t *cluster = start_cluster();
  belay_client_options_t client = client_options();
  client.timeout_ms = TIMEOUT_MS;
  env_t *env = env_open_at(cluster_url(cluster), &client);
  belay_limit_t limit = bucket_limit(1000, 3600 * S, 1000);
  belay_limiter_options_t options = limiter_options(&limit, 1);
  options.away = BELAY_AWAY_OPEN;
  if (slice > 0)
    options.lease_tokens = slice;
  belay_limiter_t *limiter = limiter_with(env, env->client, &options);
  belay_source_t asked_for = slice > 0 ? BELAY_SOURCE_LEASE : BELAY_SOURCE_SERVER;
  char away[16], here[16];
  static ask_t other;
  key_at(cluster, 0, away);
  key_at(cluster, 1, here);
  (void)take(env, limiter, away, 1);
  (void)take(env, limiter, here, 1);
  server_pause(cluster_node(cluster, 0));
  if (slice > 0)
    env_run_for(env, 2000); /* leased tokens are returned */
  expect_said(take(env, limiter, away, 1), BELAY_SOURCE_AWAY);
  for (int i = 0; i < 3; i++) {
    other = (ask_t){0};
    begin_take(env, limiter, &other, away); /* that another node answers is no news of this one */
    uint64_t sent = client_stats(env).commands;
    expect_said(answer(&other, 0), BELAY_SOURCE_AWAY);
    assert_int_equal(client_stats(env).commands, sent);
    expect_said(take(env, limiter, here, 1), asked_for);
  }
  server_resume(cluster_node(cluster, 0));
  int64_t began = clock_now();
  while (take(env, limiter, away, 1)->source == BELAY_SOURCE_AWAY)
    assert_true(clock_since_ms(began) < 10000 * slow());
  env_close(env);
  cluster_stop(cluster);
}

TEST(outage_of_one_node) {
  expect_each_for_itself(0);
}

TEST(fairness_with_leased_tokens) {
  expect_each_for_itself(10);
}
