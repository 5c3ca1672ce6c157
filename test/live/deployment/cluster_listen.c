/* Subscriptions in a cluster: a topic's messages and a lock's wake-ups come from the node that
 * owns their slot at the time. */
#include <stdio.h>

#include "core/key/slot.h"
#include "support/deployments/cluster.h"
#include "support/fixtures/subscriber.h"

#define TURNS 12
#define TOPICS 12

typedef struct setup {
  cluster_t *cluster;
  env_t *env;
  belay_client_t *other; /* another client, which publishes and holds */
  subscriber_t topic[TOPICS];
  char name[TOPICS][16];
} setup_t;

/* As many topics as that, on all nodes, are listened to. */
static setup_t *setup_open(const cluster_options_t *options) {
  setup_t *setup = calloc(1, sizeof *setup);
  setup->cluster = cluster_start(options);
  setup->env = env_open_at(cluster_url(setup->cluster), NULL);
  setup->other = env_connect(setup->env, cluster_url(setup->cluster), NULL);
  for (int i = 0; i < TOPICS; i++) {
    snprintf(setup->name[i], sizeof setup->name[i], "news-%d", i);
    subscribe(setup->env, &setup->topic[i], setup->name[i]);
  }
  return setup;
}

static void setup_close(setup_t *setup) {
  env_close(setup->env);
  cluster_stop(setup->cluster);
  free(setup);
}

static unsigned slot_of(const setup_t *setup, int i) {
  return belay__slot(setup->name[i], strlen(setup->name[i]));
}

static unsigned owner_of(setup_t *setup, int i) {
  return (unsigned)cluster_owner(setup->cluster, slot_of(setup, i));
}

/* Expects that messages published from now on arrive. */
static void expect_heard(setup_t *setup, int i) {
  publication_t p = {.env = setup->env};
  subscriber_t *s = &setup->topic[i];
  unsigned before = s->messages;
  assert_error(begin_publish(setup->env, setup->other, &p, setup->name[i], "word", 4), 0);
  env_until(setup->env, p.ended == 1);
  assert_error(p.status, 0);
  env_until(setup->env, s->messages == before + 1);
}

static void expect_all_heard(setup_t *setup) {
  for (int i = 0; i < TOPICS; i++)
    expect_heard(setup, i);
}

static unsigned gaps(const setup_t *setup) {
  unsigned n = 0;
  for (int i = 0; i < TOPICS; i++)
    n += setup->topic[i].gaps;
  return n;
}

static bool all_up(const setup_t *setup) {
  for (int i = 0; i < TOPICS; i++)
    if (!setup->topic[i].up)
      return false;
  return true;
}

/* ---- topics ---- */

TEST_IN(messages_of_all_nodes, setup, setup_open(&(cluster_options_t){.without_replicas = true})) {
  int64_t listened = 0;
  expect_all_heard(setup);
  for (unsigned i = 0; i < 3; i++) {
    const resp_t *channels =
        server_ask(cluster_node(setup->cluster, i), "PUBSUB", "SHARDCHANNELS", NULL);
    assert_true(channels->count > 0);
    listened += (int64_t)channels->count;
  }
  assert_int_equal(listened, TOPICS);
  assert_int_equal(gaps(setup), 0);
}

/* Other subscriptions of the same connection are not affected. */
TEST_IN(slot_moves, setup, setup_open(&(cluster_options_t){.without_replicas = true})) {
  unsigned from = owner_of(setup, 0);
  expect_all_heard(setup);
  for (unsigned turn = 1; turn <= 3; turn++) {
    subscriber_t *s = &setup->topic[0];
    int64_t began = clock_now();
    cluster_move(setup->cluster, slot_of(setup, 0), (from + turn) % 3);
    env_until(setup->env, s->gaps == turn && s->up);
    print_message("# messages again after %d ms\n", (int)clock_since_ms(began));
    expect_all_heard(setup);
    assert_int_equal(gaps(setup), turn);
    assert_int_equal(client_stats(setup->env).drops, 0);
    while (!cluster_is_whole(setup->cluster))
      env_run_for(setup->env, 10);
  }
}

/* The map is known before the server says good-bye; and one that was left is not missed. */
TEST_IN(used_slot_moves, setup, setup_open(&(cluster_options_t){.without_replicas = true})) {
  unsigned from = owner_of(setup, 0);
  contender_t *c = contender_new(setup->env, setup->name[0], NULL);
  assert_int_equal(cluster_slot(setup->cluster, key_of(c)), slot_of(setup, 0));
  assert_error(try_lock(c), 0);
  for (unsigned turn = 1; turn <= TURNS; turn++) { /* the node's messages come in any order */
    assert_error(begin_extend(c, 10000 * slow()), 0);
    cluster_move(setup->cluster, slot_of(setup, 0), (from + turn) % 3);
    env_until(setup->env, c->extended == c->begun_extend);
    assert_error(c->extend_status, 0);
    env_until(setup->env, setup->topic[0].gaps == turn && setup->topic[0].up);
    expect_all_heard(setup);
    assert_int_equal(gaps(setup), turn);
    assert_int_equal(client_stats(setup->env).drops, 0);
    while (!cluster_is_whole(setup->cluster))
      env_run_for(setup->env, 10);
  }
}

static void fail_over(setup_t *setup, cluster_way_t way) {
  unsigned slot = slot_of(setup, 0), before = setup->topic[0].gaps;
  cluster_begin_fail_over(setup->cluster, slot, way);
  int64_t began = clock_now();
  while (!cluster_has_failed_over(setup->cluster) && clock_since_ms(began) < 20000 * slow())
    env_run_for(setup->env, 5);
  began = clock_now();
  env_until(setup->env, setup->topic[0].gaps > before && all_up(setup));
  print_message("# messages again %d ms after it has failed over\n", (int)clock_since_ms(began));
  expect_all_heard(setup);
  cluster_mend(setup->cluster);
  while (!cluster_is_whole(setup->cluster))
    env_run_for(setup->env, 10);
  expect_all_heard(setup);
}

TEST_IN(node_dies, setup, setup_open(NULL)) {
  fail_over(setup, CLUSTER_KILLED);
  fail_over(setup, CLUSTER_TAKEN);
}

/* All come back where they were, and a topic that is new is listened to. */
TEST(all_nodes_die) {
  setup_t *setup = setup_open(&(cluster_options_t){.without_replicas = true});
  for (unsigned i = 0; i < 3; i++)
    server_kill(cluster_node(setup->cluster, i));
  env_until(setup->env, gaps(setup) == TOPICS);
  subscriber_t late = {0};
  assert_error(subscribe_to(setup->env, setup->env->client, &late, "late", 4), 0);
  env_run_for(setup->env, 300);
  assert_string_equal(late.story, "");
  cluster_mend(setup->cluster);
  env_until(setup->env, all_up(setup) && late.up);
  expect_all_heard(setup);
  env_close(setup->env);
  cluster_stop(setup->cluster);
  free(setup);
}

/* A client that does nothing but listen asks where to. */
TEST_ON(wrong_password, cluster,
        cluster_start(&(cluster_options_t){.without_replicas = true, .password = "secret"})) {
  belay_client_options_t options = client_options();
  options.password = "guess";
  options.reconnect_max_ms = 200;
  env_t *env = env_open_at(cluster_url(cluster), &options);
  subscriber_t s = {0};
  assert_error(subscribe_to(env, env->client, &s, "news", 4), 0);
  env_until(env, s.gaps == 1);
  assert_error(s.status, BELAY_EAUTH);
  for (unsigned i = 0; i < 3; i++)
    server_do(cluster_node(cluster, i), "CONFIG", "SET", "requirepass", "guess", NULL);
  env_until(env, s.up);
  assert_string_equal(s.story, "GL");
  env_close(env);
}

/* ---- wake-ups ---- */

/* A poll interval of a minute. */
static belay_lock_options_t sleepy(void) {
  belay_lock_options_t options = lock_options();
  options.ttl_ms = 100000;
  options.retry_min_ms = options.retry_max_ms = options.backoff_max_ms = 60000;
  return options;
}

typedef struct waiting {
  contender_t *holder, *waiter;
} waiting_t;

/* The second handle waits for the lock of the first and is woken. */
static waiting_t wait_for_holder(setup_t *setup, const char *name) {
  belay_lock_options_t options = sleepy();
  waiting_t waiting = {.holder = contender_of(setup->env, setup->other, name, &options),
                       .waiter = contender_new(setup->env, name, &options)};
  assert_error(try_lock(waiting.holder), 0);
  assert_error(begin_acquire(waiting.waiter, 100000), 0);
  return waiting;
}

static void pass_on(setup_t *setup, const waiting_t *waiting) {
  int64_t began = clock_now();
  assert_error(release(waiting->holder), 0);
  assert_error(outcome(waiting->waiter), 0);
  assert_true(clock_since_ms(began) < 10000 * slow());
  assert_error(release(waiting->waiter), 0);
  (void)setup;
}

TEST(waiters_are_woken) {
  setup_t *setup = setup_open(NULL);
  waiting_t waiting[TOPICS];
  unsigned slot = slot_of(setup, 0), from = owner_of(setup, 0);
  for (int i = 0; i < TOPICS; i++)
    waiting[i] = wait_for_holder(setup, setup->name[i]);
  env_run_for(setup->env, 300);
  for (int i = 1; i < TOPICS; i += 2)
    pass_on(setup, &waiting[i]);
  cluster_move(setup->cluster, slot, (from + 1) % 3);
  env_until(setup->env, setup->topic[0].gaps == 1 && setup->topic[0].up);
  pass_on(setup, &waiting[0]);
  cluster_begin_fail_over(setup->cluster, slot_of(setup, 2), CLUSTER_KILLED);
  while (!cluster_has_failed_over(setup->cluster))
    env_run_for(setup->env, 10);
  env_until(setup->env, all_up(setup) && setup->topic[2].gaps > 0);
  for (int i = 2; i < TOPICS; i += 2)
    pass_on(setup, &waiting[i]);
  setup_close(setup);
}
