/* Subscriptions in a cluster: a topic's messages and a lock's wake-ups come from the node that
 * owns their slot at the time. */
#include <stdio.h>

#include "core/key/slot.h"
#include "support/deployments/cluster.h"
#include "support/fixtures/subscriber.h"

#define TURNS 12
#define TOPICS 12

typedef struct stage {
  cluster_t *cluster;
  bed_t *bed;
  belay_client_t *other; /* another client, which publishes and holds */
  subscriber_t topic[TOPICS];
  char name[TOPICS][16];
} stage_t;

/* As many topics as that, on all nodes, are listened to. */
static stage_t *stage_open(const cluster_options_t *options) {
  stage_t *stage = calloc(1, sizeof *stage);
  stage->cluster = cluster_start(options);
  stage->bed = bed_open_at(cluster_url(stage->cluster), NULL);
  stage->other = bed_connect(stage->bed, cluster_url(stage->cluster), NULL);
  for (int i = 0; i < TOPICS; i++) {
    snprintf(stage->name[i], sizeof stage->name[i], "news-%d", i);
    subscribe(stage->bed, &stage->topic[i], stage->name[i]);
  }
  return stage;
}

static void stage_close(stage_t *stage) {
  bed_close(stage->bed);
  cluster_stop(stage->cluster);
  free(stage);
}

static unsigned slot_of(const stage_t *stage, int i) {
  return belay__slot(stage->name[i], strlen(stage->name[i]));
}

static unsigned owner_of(stage_t *stage, int i) {
  return (unsigned)cluster_owner(stage->cluster, slot_of(stage, i));
}

/* Expects that messages published from now on arrive. */
static void expect_heard(stage_t *stage, int i) {
  publication_t p = {.bed = stage->bed};
  subscriber_t *s = &stage->topic[i];
  unsigned before = s->messages;
  assert_error(begin_publish(stage->bed, stage->other, &p, stage->name[i], "word", 4), 0);
  bed_until(stage->bed, p.ended == 1);
  assert_error(p.status, 0);
  bed_until(stage->bed, s->messages == before + 1);
}

static void expect_all_heard(stage_t *stage) {
  for (int i = 0; i < TOPICS; i++)
    expect_heard(stage, i);
}

static unsigned gaps(const stage_t *stage) {
  unsigned n = 0;
  for (int i = 0; i < TOPICS; i++)
    n += stage->topic[i].gaps;
  return n;
}

static bool all_up(const stage_t *stage) {
  for (int i = 0; i < TOPICS; i++)
    if (!stage->topic[i].up)
      return false;
  return true;
}

/* ---- topics -------------------------------------------------------------------------------------------- */

TEST_IN(each_is_heard_from_its_node, stage,
        stage_open(&(cluster_options_t){.without_replicas = true})) {
  int64_t listened = 0;
  expect_all_heard(stage);
  for (unsigned i = 0; i < 3; i++) {
    const resp_t *channels =
        server_ask(cluster_node(stage->cluster, i), "PUBSUB", "SHARDCHANNELS", NULL);
    assert_true(channels->count > 0);
    listened += (int64_t)channels->count;
  }
  assert_int_equal(listened, TOPICS);
  assert_int_equal(gaps(stage), 0);
}

/* Other subscriptions of the same connection are not affected. */
TEST_IN(a_slot_moves, stage, stage_open(&(cluster_options_t){.without_replicas = true})) {
  unsigned from = owner_of(stage, 0);
  expect_all_heard(stage);
  for (unsigned turn = 1; turn <= 3; turn++) {
    subscriber_t *s = &stage->topic[0];
    int64_t began = clock_now();
    cluster_move(stage->cluster, slot_of(stage, 0), (from + turn) % 3);
    bed_until(stage->bed, s->gaps == turn && s->up);
    print_message("# heard again after %d ms\n", (int)clock_since_ms(began));
    expect_all_heard(stage);
    assert_int_equal(gaps(stage), turn);
    assert_int_equal(client_stats(stage->bed).drops, 0);
    while (!cluster_is_whole(stage->cluster))
      bed_run_for(stage->bed, 10);
  }
}

/* The map is known before the server says good-bye; and one that was left is not missed. */
TEST_IN(a_slot_moves_that_is_used_too, stage,
        stage_open(&(cluster_options_t){.without_replicas = true})) {
  unsigned from = owner_of(stage, 0);
  contender_t *c = contender_new(stage->bed, stage->name[0], NULL);
  assert_int_equal(cluster_slot(stage->cluster, key_of(c)), slot_of(stage, 0));
  assert_error(try_lock(c), 0);
  for (unsigned turn = 1; turn <= TURNS; turn++) { /* the node's messages come in any order */
    assert_error(begin_extend(c, 10000 * slow()), 0);
    cluster_move(stage->cluster, slot_of(stage, 0), (from + turn) % 3);
    bed_until(stage->bed, c->extended == c->begun_extend);
    assert_error(c->extend_status, 0);
    bed_until(stage->bed, stage->topic[0].gaps == turn && stage->topic[0].up);
    expect_all_heard(stage);
    assert_int_equal(gaps(stage), turn);
    assert_int_equal(client_stats(stage->bed).drops, 0);
    while (!cluster_is_whole(stage->cluster))
      bed_run_for(stage->bed, 10);
  }
}

static void fail_over(stage_t *stage, cluster_way_t way) {
  unsigned slot = slot_of(stage, 0), before = stage->topic[0].gaps;
  cluster_begin_fail_over(stage->cluster, slot, way);
  int64_t began = clock_now();
  while (!cluster_has_failed_over(stage->cluster) && clock_since_ms(began) < 20000 * slow())
    bed_run_for(stage->bed, 5);
  began = clock_now();
  bed_until(stage->bed, stage->topic[0].gaps > before && all_up(stage));
  print_message("# heard again %d ms after it has failed over\n", (int)clock_since_ms(began));
  expect_all_heard(stage);
  cluster_mend(stage->cluster);
  while (!cluster_is_whole(stage->cluster))
    bed_run_for(stage->bed, 10);
  expect_all_heard(stage);
}

TEST_IN(a_node_dies, stage, stage_open(NULL)) {
  fail_over(stage, CLUSTER_KILLED);
  fail_over(stage, CLUSTER_TAKEN);
}

/* All come back where they were, and a topic that is new is listened to. */
TEST(all_nodes_die) {
  stage_t *stage = stage_open(&(cluster_options_t){.without_replicas = true});
  for (unsigned i = 0; i < 3; i++)
    server_kill(cluster_node(stage->cluster, i));
  bed_until(stage->bed, gaps(stage) == TOPICS);
  subscriber_t late = {0};
  assert_error(subscribe_to(stage->bed, stage->bed->client, &late, "late", 4), 0);
  bed_run_for(stage->bed, 300);
  assert_string_equal(late.story, "");
  cluster_mend(stage->cluster);
  bed_until(stage->bed, all_up(stage) && late.up);
  expect_all_heard(stage);
  bed_close(stage->bed);
  cluster_stop(stage->cluster);
  free(stage);
}

/* A client that does nothing but listen asks where to. */
TEST_ON(nobody_lets_us_in, cluster,
        cluster_start(&(cluster_options_t){.without_replicas = true, .password = "secret"})) {
  belay_client_options_t options = client_options();
  options.password = "guess";
  options.reconnect_max_ms = 200;
  bed_t *bed = bed_open_at(cluster_url(cluster), &options);
  subscriber_t s = {0};
  assert_error(subscribe_to(bed, bed->client, &s, "news", 4), 0);
  bed_until(bed, s.gaps == 1);
  assert_error(s.status, BELAY_EAUTH);
  for (unsigned i = 0; i < 3; i++)
    server_do(cluster_node(cluster, i), "CONFIG", "SET", "requirepass", "guess", NULL);
  bed_until(bed, s.up);
  assert_string_equal(s.story, "GL");
  bed_close(bed);
}

/* ---- wake-ups ------------------------------------------------------------------------------------------ */

/* A poll interval of a minute. */
static belay_lock_options_t sleepy(void) {
  belay_lock_options_t options = lock_options();
  options.ttl_ms = 100000;
  options.retry_min_ms = options.retry_max_ms = options.backoff_max_ms = 60000;
  return options;
}

typedef struct pair {
  contender_t *holder, *waiter;
} pair_t;

/* The second handle waits for the lock of the first and is woken. */
static pair_t wait_in_pairs(stage_t *stage, const char *name) {
  belay_lock_options_t options = sleepy();
  pair_t pair = {.holder = contender_of(stage->bed, stage->other, name, &options),
                 .waiter = contender_new(stage->bed, name, &options)};
  assert_error(try_lock(pair.holder), 0);
  assert_error(begin_acquire(pair.waiter, 100000), 0);
  return pair;
}

static void pass_on(stage_t *stage, const pair_t *pair) {
  int64_t began = clock_now();
  assert_error(release(pair->holder), 0);
  assert_error(outcome(pair->waiter), 0);
  assert_true(clock_since_ms(began) < 10000 * slow());
  assert_error(release(pair->waiter), 0);
  (void)stage;
}

TEST(waiters_are_woken) {
  stage_t *stage = stage_open(NULL);
  pair_t pair[TOPICS];
  unsigned slot = slot_of(stage, 0), from = owner_of(stage, 0);
  for (int i = 0; i < TOPICS; i++)
    pair[i] = wait_in_pairs(stage, stage->name[i]);
  bed_run_for(stage->bed, 300);
  for (int i = 1; i < TOPICS; i += 2)
    pass_on(stage, &pair[i]);
  cluster_move(stage->cluster, slot, (from + 1) % 3);
  bed_until(stage->bed, stage->topic[0].gaps == 1 && stage->topic[0].up);
  pass_on(stage, &pair[0]);
  cluster_begin_fail_over(stage->cluster, slot_of(stage, 2), CLUSTER_KILLED);
  while (!cluster_has_failed_over(stage->cluster))
    bed_run_for(stage->bed, 10);
  bed_until(stage->bed, all_up(stage) && stage->topic[2].gaps > 0);
  for (int i = 2; i < TOPICS; i += 2)
    pass_on(stage, &pair[i]);
  stage_close(stage);
}
