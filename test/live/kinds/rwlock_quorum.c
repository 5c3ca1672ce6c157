/* Readers and writers over several servers. */
#include <stdio.h>

#include "support/fixtures/lease/rw.h"

static contender_t *rw_handle(nodes_t *nodes, belay_rwlock_mode_t mode,
                              const belay_lock_options_t *options) {
  belay_client_t *client[BELAY_NODES_MAX]; /* of its own: in one client they would line up */
  for (unsigned i = 0; i < nodes->n; i++)
    client[i] = env_connect(nodes->env, server_url(nodes->server[i]), NULL);
  return rw_over(nodes->env, client, nodes->n, "page", mode, options);
}

static contender_t *reader(nodes_t *nodes, const belay_lock_options_t *options) {
  return rw_handle(nodes, BELAY_RWLOCK_READ, options);
}

static contender_t *writer(nodes_t *nodes, const belay_lock_options_t *options) {
  return rw_handle(nodes, BELAY_RWLOCK_WRITE, options);
}

static void expect_no_key(nodes_t *nodes) {
  nodes_settle(nodes);
  for (unsigned i = 0; i < nodes->n; i++)
    env_until(nodes->env, server_keys(nodes->server[i]) == 0);
}

static void await_on_all(nodes_t *nodes, contender_t *c, const char *set, int64_t n) {
  for (unsigned i = 0; i < nodes->n; i++)
    env_until(nodes->env, count_in(nodes->server[i], c, set) == n);
}

static belay_lock_options_t usual(void) {
  return unhurried_options(8000 * slow());
}

NODES_TEST(readers_and_writer, 3, 5) {
  nodes_warm(nodes);
  belay_lock_options_t o = usual();
  contender_t *a = reader(nodes, &o), *b = reader(nodes, &o), *w = writer(nodes, &o);
  contender_t *late = reader(nodes, &o);
  assert_ok(acquire(a, 5000 * slow()), acquire(b, 5000 * slow()));
  await_on_all(nodes, a, "readers",
               2); /* without one of the nodes, a new writer is granted again and again */
  assert_error(try_lock(w), BELAY_EHELD);
  assert_error(begin_acquire(w, 60000), 0);
  await_on_all(nodes, w, "writers", 1);
  assert_error(try_lock(late), BELAY_EHELD);
  assert_error(begin_acquire(late, 60000), 0);
  await_on_all(nodes, w, "waiting", 1);
  assert_error(release(a), 0);
  assert_int_equal(w->ended, 1);
  assert_ok(release(b), outcome(w));
  assert_int_equal(late->ended, 1);
  assert_true(nodes_holding(nodes, w) > nodes->n / 2);
  assert_ok(release(w), outcome(late), release(late));
  expect_no_key(nodes);
}

NODES_TEST(change_mode, 3, 5) {
  nodes_warm(nodes);
  belay_lock_options_t o = usual();
  contender_t *a = reader(nodes, &o), *b = reader(nodes, &o);
  assert_ok(acquire(a, 5000 * slow()), acquire(b, 5000 * slow()));
  assert_error(upgrade(a), BELAY_ESHARED);
  assert_false(is_writer(a));
  assert_error(upgrade(b), BELAY_ESHARED);
  assert_true(is_held(a) && is_held(b));
  assert_ok(release(b), upgrade(a));
  assert_true(is_writer(a));
  assert_error(try_lock(b), BELAY_EHELD);
  assert_ok(extend(a, BELAY_DEFAULT), downgrade(a), acquire(b, 5000 * slow()), release(a));
  assert_error(release(b), 0);
  expect_no_key(nodes);
}

/* Late replies after a majority of refusals drop no connection. */
NODES_TEST(late_refusal_of_upgrade, 3, 5) {
  nodes_warm(nodes);
  belay_lock_options_t o = usual();
  contender_t *a = rw_over(nodes->env, nodes->client, nodes->n, "page", BELAY_RWLOCK_READ, &o);
  contender_t *b = reader(nodes, &o);
  assert_ok(acquire(a, 5000 * slow()), acquire(b, 5000 * slow()));
  await_on_all(nodes, a, "readers", 2);
  for (unsigned i = 0; i < 20; i++) {
    assert_error(upgrade(a), BELAY_ESHARED);
    nodes_settle(nodes);
  }
  assert_true(is_held(a) && is_held(b));
  for (unsigned i = 0; i < nodes->n; i++) {
    belay_client_stats_t stats;
    belay_client_stats(nodes->client[i], &stats);
    assert_int_equal(stats.drops, 0);
  }
}

/* An upgrade succeeds only on nodes without other readers. The handle stays a reader elsewhere,
 * and the nodes are made equal soon, without a renewal. */
TEST_IN(refused_upgrade_is_undone, nodes, nodes_open(3, NULL)) {
  nodes_warm(nodes);
  belay_lock_options_t o = usual();
  contender_t *a = reader(nodes, &o), *b = reader(nodes, &o);
  assert_ok(acquire(a, 5000 * slow()), acquire(b, 5000 * slow()));
  await_on_all(nodes, a, "readers", 2);
  nodes_settle(nodes);
  server_do(nodes->server[0], "FLUSHALL", NULL);
  do { /* until its answer was heard before the others had decided, and it was taken again */
    assert_error(extend(a, BELAY_DEFAULT), 0);
    nodes_settle(nodes);
  } while (count_in(nodes->server[0], a, "readers") == 0);
  assert_error(extend(a, BELAY_DEFAULT), 0); /* from now on that counts */
  nodes_settle(nodes);
  assert_error(upgrade(a), BELAY_ESHARED);
  env_until(nodes->env, nodes_value(nodes, 0, a) == NULL);
  assert_int_equal(count_in(nodes->server[0], a, "readers"), 1);
  assert_true(is_held(a) && is_held(b));
}

/* Grants to the reader by nodes that refused the upgrade do not count for the writer. */
TEST_IN(writer_counts_confirming_nodes, nodes, nodes_open(5, NULL)) {
  nodes_warm(nodes);
  belay_lock_options_t o = usual();
  contender_t *c = reader(nodes, &o);
  char key[256];
  assert_error(acquire(c, 5000 * slow()), 0);
  snprintf(key, sizeof key, "%s::readers", key_of(c));
  await_on_all(nodes, c, "readers", 1);
  for (unsigned i = 0; i < 2; i++)
    server_do(nodes->server[i], "ZADD", key, "9999999999999", "another reader", NULL);
  assert_error(upgrade(c), 0);
  assert_true(is_writer(c));
  env_until(nodes->env, nodes_holding(nodes, c) == 3);
  nodes_pause(nodes, 2);
  server_do(nodes->server[2], "SET", key_of(c), "another writer", NULL);
  assert_error(extend(c, BELAY_DEFAULT), BELAY_ENOTOWNER);
  await_loss(c, BELAY_LOST_TAKEN);
  nodes_resume(nodes);
}

TEST_IN(minority_away, nodes, nodes_open(5, NULL)) {
  nodes_warm(nodes);
  belay_lock_options_t o = usual();
  contender_t *a = reader(nodes, &o), *b = reader(nodes, &o), *w = writer(nodes, &o);
  assert_error(acquire(a, 5000 * slow()), 0);
  nodes_kill(nodes, 2);
  assert_ok(acquire(b, 5000 * slow()), extend(a, BELAY_DEFAULT), release(b), upgrade(a));
  assert_ok(downgrade(a), begin_acquire(w, 60000));
  env_run_for(nodes->env, 200);
  assert_int_equal(w->ended, 0);
  assert_ok(release(a), outcome(w));
  nodes_restart(nodes, 2);
  assert_error(release(w), 0);
}

/* A key lost on one of three nodes is restored. Lost on two, the lock is lost. */
TEST_IN(nodes_lose_data, nodes, nodes_open(3, NULL)) {
  nodes_warm(nodes);
  belay_lock_options_t o = unhurried_options(1500 * slow());
  o.watchdog = BELAY_WATCHDOG_ON;
  contender_t *w = writer(nodes, &o);
  assert_error(acquire(w, 5000 * slow()), 0);
  env_until(nodes->env, nodes_holding(nodes, w) == 3); /* a majority was enough until now */
  server_do(nodes->server[1], "FLUSHALL", NULL);
  env_until(nodes->env, nodes_holding(nodes, w) == 3);
  env_run_for(nodes->env, 1500 * slow());
  assert_int_equal(w->lost, 0);
  server_do(nodes->server[1], "FLUSHALL", NULL);
  server_do(nodes->server[2], "FLUSHALL", NULL);
  await_loss(w, BELAY_LOST_TAKEN);
  belay_lock_options_t quick = usual();
  contender_t *r = reader(nodes, &quick);
  assert_error(acquire(r, 5000 * slow()), 0);
}

TEST_IN(fence_grows, nodes, nodes_open(3, NULL)) {
  nodes_warm(nodes);
  belay_lock_options_t o = usual();
  o.fencing = true;
  contender_t *all[] = {reader(nodes, &o), writer(nodes, &o), reader(nodes, &o)};
  uint64_t last = 0;
  for (int i = 0; i < 12; i++) {
    contender_t *c = all[i % 3];
    assert_error(acquire(c, 5000 * slow()), 0);
    assert_true(belay_lock_fence(c->lock) > last);
    last = belay_lock_fence(c->lock);
    assert_error(release(c), 0);
  }
}

TEST_IN(invalid_clients_and_options, nodes, nodes_open(3, NULL)) {
  belay_lock_t *lock;
  belay_client_t *twice[] = {nodes->client[0], nodes->client[1], nodes->client[0]};
  assert_error(belay_rwlock_new(twice, 3, belay_string("page"), BELAY_RWLOCK_READ, NULL, &lock),
               BELAY_EINVAL);
  assert_error(
      belay_rwlock_new(nodes->client, 2, belay_string("page"), BELAY_RWLOCK_READ, NULL, &lock),
      BELAY_EINVAL);
  assert_null(lock);
}
