/* A slot moves between nodes with keys on both sides, under load: calls follow it, each has its
 * effect once, and the keys of one name stay together. */
#include <stdio.h>

#include "core/key/slot.h"
#include "support/fixtures/env.h"
#include "support/deployments/cluster.h"

#define SCRIPTS 30

typedef struct setup {
  cluster_t *cluster;
  env_t *env;
  unsigned slot, from, to;
  unsigned names; /* tried so far */
} setup_t;

/* The slot of "door". The client has asked for the map, and each node has run a script. */
static setup_t *setup_open(const cluster_options_t *options) {
  setup_t *setup = calloc(1, sizeof *setup);
  belay_client_options_t client = client_options();
  char name[16];
  setup->cluster = cluster_start(options);
  client.timeout_ms = 10000; /* nodes may redirect in circles until all of them know of a move */
  setup->env = env_open_at(cluster_url(setup->cluster), &client);
  setup->slot = belay__slot("door", 4);
  setup->from = (unsigned)cluster_owner(setup->cluster, setup->slot);
  setup->to = (setup->from + 1) % 3;
  for (int i = 0; i < SCRIPTS; i++) {
    snprintf(name, sizeof name, "other-%d", i);
    contender_t *c = contender_new(setup->env, name, NULL);
    assert_error(try_lock(c), 0);
    assert_error(release(c), 0);
    assert_error(close_lock(c), 0);
  }
  return setup;
}

#define SLOT_TEST(name)                                                                            \
  TEST_IN(name, setup, setup_open(&(cluster_options_t){.without_replicas = true}))

/* Closes the client at once. */
static void setup_end(setup_t *setup) {
  env_close(setup->env);
  cluster_stop(setup->cluster);
  free(setup);
}

/* Nothing was lost, so nothing is unknown. */
static void setup_close(setup_t *setup) {
  env_settle(setup->env);
  assert_int_equal(client_stats(setup->env).unknown, 0);
  assert_int_equal(client_stats(setup->env).drops, 0);
  setup_end(setup);
}

static server_t *from(const setup_t *setup) {
  return cluster_node(setup->cluster, setup->from);
}

static server_t *to(const setup_t *setup) {
  return cluster_node(setup->cluster, setup->to);
}

/* One more in the slot. */
static contender_t *in_slot(setup_t *setup, const belay_lock_options_t *options) {
  char name[16];
  do
    snprintf(name, sizeof name, "n%u", setup->names++);
  while (belay__slot(name, strlen(name)) != setup->slot);
  return contender_new(setup->env, name, options);
}

static bool is_at(server_t *server, const contender_t *c) {
  char number[12];
  snprintf(number, sizeof number, "%u", belay__slot(key_of(c), strlen(key_of(c))));
  const resp_t *keys = server_ask(server, "CLUSTER", "GETKEYSINSLOT", number, "1000", NULL);
  for (size_t i = 0; i < keys->count; i++)
    if (strcmp(keys->items[i]->str, key_of(c)) == 0)
      return true;
  return false;
}

/* ---- one key ---- */

SLOT_TEST(slot_moves) {
  contender_t *holder = in_slot(setup, NULL), *other = in_slot(setup, NULL);
  assert_error(try_lock(holder), 0);
  cluster_move(setup->cluster, setup->slot, setup->to);
  assert_error(extend(holder, 10000), 0);
  assert_error(try_lock(other), 0);
  assert_true(is_at(to(setup), holder) && is_at(to(setup), other));
  assert_error(release(holder), 0);
  assert_error(release(other), 0);
  cluster_move(setup->cluster, setup->slot, setup->from);
  assert_error(try_lock(holder), 0);
  assert_true(is_at(from(setup), holder));
}

/* Keys still on the old node are served there; moved and new keys on the other one. */
SLOT_TEST(keys_on_both_nodes) {
  contender_t *gone = in_slot(setup, NULL), *late = in_slot(setup, NULL),
              *stays = in_slot(setup, NULL);
  assert_error(try_lock(gone), 0);
  cluster_move_begin(setup->cluster, setup->slot, setup->to);
  assert_int_equal(cluster_move_keys(setup->cluster, setup->slot, setup->to, 1), 1);
  assert_error(try_lock(late), 0);
  assert_true(is_at(to(setup), gone) && is_at(to(setup), late));
  assert_error(extend(gone, 10000), 0);
  assert_error(extend(late, 10000), 0);
  assert_error(release(gone), 0);
  assert_error(release(late), 0);
  assert_error(try_lock(stays), 0);
  cluster_move_end(setup->cluster, setup->slot, setup->to);
  assert_error(extend(stays, 10000), 0);
  assert_error(release(stays), 0);
}

/* The lock is held on the old node, and no other client gets it on the new one. */
SLOT_TEST(one_holder_during_a_move) {
  contender_t *holder = in_slot(setup, NULL);
  belay_client_t *another = env_connect(setup->env, cluster_url(setup->cluster), NULL);
  char name[16];
  snprintf(name, sizeof name, "n%u", setup->names - 1);
  contender_t *contender = contender_of(setup->env, another, name, NULL);
  assert_error(try_lock(holder), 0);
  assert_error(try_lock(contender), BELAY_EHELD);
  cluster_move_begin(setup->cluster, setup->slot, setup->to);
  assert_error(try_lock(contender), BELAY_EHELD);
  assert_int_equal(cluster_move_keys(setup->cluster, setup->slot, setup->to, 1000), 1);
  assert_error(try_lock(contender), BELAY_EHELD);
  assert_error(extend(holder, 10000), 0);
  cluster_move_end(setup->cluster, setup->slot, setup->to);
  assert_error(try_lock(contender), BELAY_EHELD);
  assert_error(release(holder), 0);
  assert_error(try_lock(contender), 0);
}

/* The slot moves without the holder's key. The next renewal is due only after 100 s. */
SLOT_TEST(lease_checked_after_a_move) {
  belay_lock_options_t options;
  belay_lock_options_init(&options);
  options.ttl_ms = 300000;
  contender_t *holder = in_slot(setup, &options), *other = in_slot(setup, NULL);
  assert_error(try_lock(holder), 0);
  cluster_move_begin(setup->cluster, setup->slot, setup->to);
  server_do(from(setup), "DEL", key_of(holder), NULL);
  cluster_move_end(setup->cluster, setup->slot, setup->to);
  assert_int_equal(holder->lost, 0);
  assert_error(try_lock(other), 0); /* the client learns that the slot has moved */
  env_until(setup->env, holder->lost == 1);
}

/* The text follows behind the ASKING of its own. */
SLOT_TEST(script_unknown_on_the_new_node) {
  contender_t *holder = in_slot(setup, NULL);
  assert_error(try_lock(holder), 0);
  assert_error(extend(holder, 10000), 0);
  cluster_move_begin(setup->cluster, setup->slot, setup->to);
  assert_int_equal(cluster_move_keys(setup->cluster, setup->slot, setup->to, 1000), 1);
  server_do(to(setup), "SCRIPT", "FLUSH", NULL);
  server_do(to(setup), "CONFIG", "RESETSTAT", NULL);
  assert_error(extend(holder, 10000), 0);
  assert_error(release(holder), 0);
  assert_true(server_calls(to(setup), "asking") >= 2);
  assert_true(server_calls(to(setup), "eval") >= 1);
}

/* ---- several keys ---- */

/* A lock and its fencing counter are on different nodes: the acquire waits until they are
 * together. */
SLOT_TEST(keys_of_one_script_on_two_nodes) {
  belay_lock_options_t options = lock_options();
  options.fencing = true;
  options.timeout_ms = 10000;
  contender_t *c = in_slot(setup, &options);
  assert_error(try_lock(c), 0);
  uint64_t fence = belay_lock_fence(c->lock);
  assert_error(release(c), 0);
  cluster_move_begin(setup->cluster, setup->slot, setup->to);
  assert_error(begin_acquire(c, 0), 0);
  env_run_for(setup->env, 700); /* more than five redirections would be too many */
  assert_int_equal(c->ended, c->begun - 1);
  (void)cluster_move_keys(setup->cluster, setup->slot, setup->to, 1000);
  env_run_for(setup->env, 300);
  assert_int_equal(c->ended, c->begun - 1); /* the lock's key is on no side */
  cluster_move_end(setup->cluster, setup->slot, setup->to);
  assert_error(outcome(c), 0);
  assert_true(belay_lock_fence(c->lock) > fence);
}

/* At the deadline the error names the cause, and no command was executed. */
SLOT_TEST(keys_stay_on_two_nodes) {
  belay_lock_options_t options = lock_options();
  options.fencing = true;
  options.timeout_ms = prompt_ms();
  contender_t *c = in_slot(setup, &options);
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
  cluster_move_begin(setup->cluster, setup->slot, setup->to);
  assert_error(try_lock(c), BELAY_ECLUSTERDOWN);
  assert_false(is_at(from(setup), c) || is_at(to(setup), c));
  (void)cluster_move_keys(setup->cluster, setup->slot, setup->to, 1000);
  cluster_move_end(setup->cluster, setup->slot, setup->to);
}

/* ---- several calls ---- */

static contender_t *durable(setup_t *setup) {
  belay_lock_options_t options = lock_options();
  options.min_replicas = 1;
  options.timeout_ms = 4000;
  options.replica_timeout_ms = 2000;
  return in_slot(setup, &options);
}

/* A SET and the WAIT behind it follow the slot together, in one attempt. */
TEST_IN(durable_lock_follows_the_slot, setup, setup_open(NULL)) {
  contender_t *one = durable(setup), *two = durable(setup), *three = durable(setup);
  assert_error(try_lock(one), 0);
  cluster_move_begin(setup->cluster, setup->slot, setup->to);
  assert_error(try_lock(two), 0); /* ASK */
  assert_true(is_at(to(setup), two));
  (void)cluster_move_keys(setup->cluster, setup->slot, setup->to, 1000);
  assert_error(extend(one, 10000), 0);
  cluster_move_end(setup->cluster, setup->slot, setup->to);
  assert_error(try_lock(three), 0); /* MOVED */
  assert_error(extend(one, 10000), 0);
  assert_error(extend(two, 10000), 0);
  assert_error(release(one), 0);
  assert_error(release(two), 0);
  assert_error(release(three), 0);
  assert_false(is_at(to(setup), one) || is_at(to(setup), two) || is_at(to(setup), three));
}

/* Where no replica is left a WAIT takes its time, although the SET before it was refused. */
static setup_t *open_without_replica(contender_t **one, contender_t **two) {
  setup_t *setup = setup_open(NULL);
  *one = durable(setup);
  *two = durable(setup);
  assert_error(try_lock(*one), 0);
  cluster_move(setup->cluster, setup->slot, setup->to);
  server_kill(cluster_node(setup->cluster, setup->from + 3));
  while (server_info(from(setup), "replication", "connected_slaves") > 0)
    stall_ms(2);
  return setup;
}

TEST(durable_lock_waits_for_wait) {
  contender_t *one, *two;
  setup_t *setup = open_without_replica(&one, &two);
  assert_error(try_lock(two), 0);
  assert_true(is_at(to(setup), two));
  assert_error(extend(one, 10000), 0);
  setup_close(setup);
}

TEST(durable_lock_node_dies) {
  contender_t *one, *two;
  setup_t *setup = open_without_replica(&one, &two);
  assert_error(begin_acquire(two, 10000), 0);
  env_run_for(setup->env, 100);
  server_kill(from(setup));
  assert_error(outcome(two), 0); /* by another attempt */
  assert_true(is_at(to(setup), two));
  assert_error(release(two), 0);
  env_settle(setup->env);
  assert_false(is_at(to(setup), two));
  setup_end(setup);
}

TEST(durable_lock_canceled) {
  contender_t *one, *two;
  setup_t *setup = open_without_replica(&one, &two);
  contender_t *three = durable(setup);
  assert_error(begin_acquire(two, 10000), 0);
  assert_error(begin_acquire(three, 10000), 0);
  env_run_for(setup->env, 100);
  assert_error(cancel(two), 0);
  assert_error(outcome(two), BELAY_ECANCELED);
  assert_error(begin_close(three), 0);
  env_until(setup->env, three->closed == 1);
  env_settle(setup->env);
  assert_false(is_at(to(setup), two));
  assert_error(try_lock(two), 0);
  setup_end(setup); /* with calls in flight */
}

TEST(durable_lock_client_closes) {
  contender_t *one, *two;
  setup_t *setup = open_without_replica(&one, &two);
  assert_error(begin_acquire(two, 10000), 0);
  env_run_for(setup->env, 100);
  setup_end(setup);
}

/* ---- many ---- */

SLOT_TEST(many_calls_during_a_move) {
  enum { COUNT = 200 };
  contender_t *all[COUNT];
  for (int i = 0; i < COUNT; i++)
    all[i] = in_slot(setup, NULL);
  for (int i = 0; i < COUNT; i++)
    assert_error(begin_acquire(all[i], 5000), 0);
  cluster_move_begin(setup->cluster, setup->slot, setup->to);
  for (int i = 0; i < COUNT; i++)
    assert_error(outcome(all[i]), 0);
  for (int i = 0; i < COUNT; i++)
    assert_error(begin_extend(all[i], 20000), 0);
  (void)cluster_move_keys(setup->cluster, setup->slot, setup->to, COUNT / 2);
  for (int i = 0; i < COUNT; i++) {
    env_until(setup->env, all[i]->extended == all[i]->begun_extend);
    assert_error(all[i]->extend_status, 0);
  }
  for (int i = 0; i < COUNT; i++)
    assert_error(begin_release(all[i]), 0);
  (void)cluster_move_keys(setup->cluster, setup->slot, setup->to, COUNT);
  cluster_move_end(setup->cluster, setup->slot, setup->to);
  for (int i = 0; i < COUNT; i++)
    assert_error(outcome(all[i]), 0);
  env_settle(setup->env);
  assert_int_equal(server_keys(from(setup)) + server_keys(to(setup)), 0);
}

/* ---- keys that are taken away and made again ---- */

typedef struct submitted {
  unsigned ended;
  int status;
  int64_t score;
} submitted_t;

static void on_submitted(belay_request_t *request, int status, const belay_ranking_entry_t *entries,
                         size_t n) {
  submitted_t *submitted = request->data;
  submitted->ended++;
  submitted->status = status;
  submitted->score = n > 0 ? entries[0].score : -1;
}

static void submit(setup_t *setup, belay_ranking_t *ranking, int64_t score) {
  submitted_t submitted = {.ended = 0};
  belay_request_t request = {.data = &submitted};
  const belay_ranking_score_t item = {.member = {"ann", 3}, .score = score};
  assert_error(belay_ranking_submit(
                   ranking, &request, belay_string("door"),
                   &(belay_ranking_submission_t){.mode = BELAY_RANKING_SET, .items = &item, .n = 1},
                   on_submitted),
               0);
  env_until(setup->env, submitted.ended == 1);
  assert_error(submitted.status, 0);
  assert_int_equal(submitted.score, score);
}

/* During a move a node does not create a key again that the script has deleted: the script would
 * stop in the middle. */
SLOT_TEST(ranking_during_a_move) {
  belay_ranking_options_t options;
  belay_ranking_t *ranking;
  belay_ranking_options_init(&options);
  options.name = belay_string("timed");
  options.ties = BELAY_RANKING_EARLIER_FIRST;
  assert_error(belay_ranking_new(setup->env->client, &options, &ranking), 0);
  submit(setup, ranking, 7);
  cluster_move_begin(setup->cluster, setup->slot, setup->to);
  submit(setup, ranking, 8);
  (void)cluster_move_keys(setup->cluster, setup->slot, setup->to, 1000);
  cluster_move_end(setup->cluster, setup->slot, setup->to);
  submit(setup, ranking, 9);
}

/* A renewal names no optional key: an absent key would block it for the whole move. */
SLOT_TEST(fair_lock_during_a_move) {
  belay_lock_options_t options;
  belay_lock_options_init(&options);
  options.fair = true;
  contender_t *fair = in_slot(setup, &options);
  assert_error(try_lock(fair), 0);
  cluster_move_begin(setup->cluster, setup->slot, setup->to);
  assert_error(extend(fair, 10000), 0);
  (void)cluster_move_keys(setup->cluster, setup->slot, setup->to, 1000);
  assert_error(extend(fair, 10000), 0);
  cluster_move_end(setup->cluster, setup->slot, setup->to);
  assert_error(extend(fair, 10000), 0);
  assert_error(release(fair), 0);
}
