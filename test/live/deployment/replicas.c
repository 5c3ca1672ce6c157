/* Clients of a primary and its replicas without Sentinels, which ask all servers for their role:
 * none, one or two primaries, and manual promotions. */
#include <stdio.h>

#include "support/servers/acl.h"
#include "support/deployments/replicas.h"
#include "support/servers/secure.h"

static void expect(bed_t *bed, int status, const char *words) {
  const char *detail;
  assert_error(pong(bed, &detail), status);
  if (words != NULL && strstr(detail, words) == NULL)
    fail_msg("\"%s\" is not in \"%s\"", words, detail);
}

static void expect_recovery(bed_t *bed) {
  int64_t began = clock_now();
  while (pong(bed, NULL) != 0)
    assert_true(clock_since_ms(began) < 15000 * slow());
}

static belay_client_options_t hasty(void) {
  belay_client_options_t options = client_options();
  options.timeout_ms = 500 * slow();
  return options;
}

/* A lock that is taken is in the one that says so, whatever its place in the URL. */
static void expect_keys_at(bed_t *bed, replicas_t *replicas, unsigned primary) {
  contender_t *c = contender_new(bed, "door", NULL);
  assert_error(try_lock(c), 0);
  assert_int_equal(server_keys(replicas_node(replicas, primary)), 1);
  assert_error(release(c), 0);
}

TEST_ON(primary_is_followed, replicas, replicas_start(NULL)) {
  bed_t *bed = bed_open_at(replicas_url(replicas), NULL);
  for (unsigned i = 0; i < REPLICAS_NODES; i++) {
    if (i > 0)
      replicas_promote(replicas, i); /* the former primary becomes a replica and continues */
    expect_recovery(bed);
    expect_keys_at(bed, replicas, i);
    replicas_wait(replicas, i);
  }
  assert_int_equal(client_stats(bed).unknown, 0); /* it was refused, and nothing else */
  bed_close(bed);
}

TEST_ON(lease_continues_after_promotion, replicas, replicas_start(NULL)) {
  belay_lock_options_t lasting = watched(3000 * slow());
  bed_t *bed = bed_open_at(replicas_url(replicas), NULL);
  contender_t *c = contender_new(bed, "door", &lasting);
  assert_error(try_lock(c), 0);
  replicas_wait(replicas, 0);
  replicas_promote(replicas, 2);
  bed_run_for(bed, 2 * lasting.ttl_ms);
  assert_int_equal(c->lost, 0);
  assert_error(release(c), 0);
  bed_close(bed);
}

/* It cannot say what it is meanwhile, and is asked every few seconds. */
TEST(busy_primary_is_kept) {
  acl_skip("the client that keeps it busy has no user");
  static const char script[] = "EVAL \"while true do end\" 0\r\n";
  static const char *const arguments[] = {"--busy-reply-threshold", "20", NULL};
  replicas_t *replicas = replicas_start(&(replicas_options_t){.arguments = arguments});
  server_t *primary = replicas_node(replicas, 0);
  bed_t *bed = bed_open_at(replicas_url(replicas), NULL);
  resp_client_t busy;
  assert_error(pong(bed, NULL), 0);
  assert_int_equal(resp_dial_tcp(&busy, "127.0.0.1", server_port(primary)), 0);
  assert_int_equal(resp_send(busy.fd, script, sizeof script - 1), 0);
  bed_run_for(bed, 6000);
  server_do(primary, "SCRIPT", "KILL", NULL);
  resp_hang_up(&busy);
  expect_recovery(bed);
  assert_int_equal(client_stats(bed).drops, 0);
  bed_close(bed);
  replicas_stop(replicas);
}

/* Connected clients continue. A new client cannot know which of the two primaries is right. */
TEST(two_primaries) {
  belay_client_options_t options = hasty();
  replicas_t *replicas = replicas_start(NULL);
  bed_t *bed = bed_open_at(replicas_url(replicas), &options);
  assert_error(pong(bed, NULL), 0);
  server_do(replicas_node(replicas, 1), "REPLICAOF", "NO", "ONE", NULL);
  assert_error(pong(bed, NULL), 0);
  bed_t *late = bed_open_at(replicas_url(replicas), &options);
  expect(late, BELAY_ESPLIT, "is one too");
  assert_int_equal(client_stats(late).commands, 0);
  replicas_promote(replicas, 1);
  expect_recovery(late);
  expect_keys_at(late, replicas, 1);
  bed_close(late);
  bed_close(bed);
  replicas_stop(replicas);
}

TEST(no_primary) {
  belay_client_options_t options = hasty();
  replicas_t *replicas = replicas_start(NULL);
  server_kill(replicas_node(replicas, 0));
  bed_t *bed = bed_open_at(replicas_url(replicas), &options);
  expect(bed, BELAY_EREADONLY, "it is a replica");
  assert_int_equal(client_stats(bed).not_sent, 1);
  replicas_promote(replicas, 2);
  expect_recovery(bed);
  expect_keys_at(bed, replicas, 2);
  for (unsigned i = 0; i < REPLICAS_NODES; i++)
    server_kill(replicas_node(replicas, i));
  bed_until(bed, client_stats(bed).connections_up == 0);
  expect(bed, BELAY_EUNREACHABLE, "127.0.0.1:");
  bed_close(bed);
  replicas_stop(replicas);
}

TEST(wrong_password) {
  belay_client_options_t options = hasty();
  replicas_t *replicas = replicas_start(&(replicas_options_t){.password = "inner"});
  options.password = "outer";
  bed_t *bed = bed_open_at(replicas_url(replicas), &options);
  expect(bed, BELAY_EAUTH, "WRONGPASS");
  bed_close(bed);
  replicas_stop(replicas);
}
