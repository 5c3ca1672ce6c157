/* A slot moves between nodes with keys on both sides, under load: calls follow it, each has its
 * effect once, and the keys of one name stay together. */
#include <stdio.h>

#include "core/key/slot.h"
#include "support/fixtures/bed.h"
#include "support/deployments/cluster.h"

#define SCRIPTS 30

typedef struct stage {
  cluster_t *cluster;
  bed_t *bed;
  unsigned slot, from, to;
  unsigned names; /* tried so far */
} stage_t;

/* The slot of "door". The client has asked for the map, and each node has run a script. */
static stage_t stage_open(const cluster_options_t *options) {
  stage_t stage = {.cluster = cluster_start(options)};
  belay_client_options_t client = client_options();
  char name[16];
  client.timeout_ms = 10000; /* nodes may redirect in circles until all of them know of a move */
  stage.bed = bed_open_at(cluster_url(stage.cluster), &client);
  stage.slot = belay__slot("door", 4);
  stage.from = (unsigned)cluster_owner(stage.cluster, stage.slot);
  stage.to = (stage.from + 1) % 3;
  for (int i = 0; i < SCRIPTS; i++) {
    snprintf(name, sizeof name, "other-%d", i);
    contender_t *c = contender_new(stage.bed, name, NULL);
    assert_error(try_lock(c), 0);
    assert_error(release(c), 0);
    assert_error(close_lock(c), 0);
  }
  return stage;
}

static stage_t open_three(void) {
  return stage_open(&(cluster_options_t){.without_replicas = true});
}

/* Nothing was lost, so nothing is unknown. */
static void stage_close(stage_t *stage) {
  bed_settle(stage->bed);
  assert_int_equal(client_stats(stage->bed).unknown, 0);
  assert_int_equal(client_stats(stage->bed).drops, 0);
  bed_close(stage->bed);
  cluster_stop(stage->cluster);
}

static server_t *from(const stage_t *stage) {
  return cluster_node(stage->cluster, stage->from);
}

static server_t *to(const stage_t *stage) {
  return cluster_node(stage->cluster, stage->to);
}

/* One more in the slot. */
static contender_t *in_slot(stage_t *stage, const belay_lock_options_t *options) {
  char name[16];
  do
    snprintf(name, sizeof name, "n%u", stage->names++);
  while (belay__slot(name, strlen(name)) != stage->slot);
  return contender_new(stage->bed, name, options);
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

/* ---- one key ------------------------------------------------------------------------------------------- */

TEST(a_slot_moves) {
  stage_t stage = open_three();
  contender_t *holder = in_slot(&stage, NULL), *other = in_slot(&stage, NULL);
  assert_error(try_lock(holder), 0);
  cluster_move(stage.cluster, stage.slot, stage.to);
  assert_error(extend(holder, 10000), 0);
  assert_error(try_lock(other), 0);
  assert_true(is_at(to(&stage), holder) && is_at(to(&stage), other));
  assert_error(release(holder), 0);
  assert_error(release(other), 0);
  cluster_move(stage.cluster, stage.slot, stage.from);
  assert_error(try_lock(holder), 0);
  assert_true(is_at(from(&stage), holder));
  stage_close(&stage);
}

/* Keys still on the old node are served there; moved and new keys on the other one. */
TEST(keys_are_on_both_sides) {
  stage_t stage = open_three();
  contender_t *gone = in_slot(&stage, NULL), *late = in_slot(&stage, NULL),
              *stays = in_slot(&stage, NULL);
  assert_error(try_lock(gone), 0);
  cluster_move_begin(stage.cluster, stage.slot, stage.to);
  assert_int_equal(cluster_move_keys(stage.cluster, stage.slot, stage.to, 1), 1);
  assert_error(try_lock(late), 0);
  assert_true(is_at(to(&stage), gone) && is_at(to(&stage), late));
  assert_error(extend(gone, 10000), 0);
  assert_error(extend(late, 10000), 0);
  assert_error(release(gone), 0);
  assert_error(release(late), 0);
  assert_error(try_lock(stays), 0);
  cluster_move_end(stage.cluster, stage.slot, stage.to);
  assert_error(extend(stays, 10000), 0);
  assert_error(release(stays), 0);
  stage_close(&stage);
}

/* The lock is held on the old node, and no other client gets it on the new one. */
TEST(a_holder_is_one_on_both_sides) {
  stage_t stage = open_three();
  contender_t *holder = in_slot(&stage, NULL);
  belay_client_t *another = bed_connect(stage.bed, cluster_url(stage.cluster), NULL);
  char name[16];
  snprintf(name, sizeof name, "n%u", stage.names - 1);
  contender_t *rival = contender_of(stage.bed, another, name, NULL);
  assert_error(try_lock(holder), 0);
  assert_error(try_lock(rival), BELAY_EHELD);
  cluster_move_begin(stage.cluster, stage.slot, stage.to);
  assert_error(try_lock(rival), BELAY_EHELD);
  assert_int_equal(cluster_move_keys(stage.cluster, stage.slot, stage.to, 1000), 1);
  assert_error(try_lock(rival), BELAY_EHELD);
  assert_error(extend(holder, 10000), 0);
  cluster_move_end(stage.cluster, stage.slot, stage.to);
  assert_error(try_lock(rival), BELAY_EHELD);
  assert_error(release(holder), 0);
  assert_error(try_lock(rival), 0);
  stage_close(&stage);
}

/* The slot moves, and the holder's key is not among those that move. The next renewal is due only after 100 s. */
TEST(a_lease_is_checked_when_its_slot_has_moved) {
  stage_t stage = open_three();
  belay_lock_options_t options;
  belay_lock_options_init(&options);
  options.ttl_ms = 300000;
  contender_t *holder = in_slot(&stage, &options), *other = in_slot(&stage, NULL);
  assert_error(try_lock(holder), 0);
  cluster_move_begin(stage.cluster, stage.slot, stage.to);
  server_do(from(&stage), "DEL", key_of(holder), NULL);
  cluster_move_end(stage.cluster, stage.slot, stage.to);
  assert_int_equal(holder->lost, 0);
  assert_error(try_lock(other), 0); /* the client learns that the slot has moved */
  bed_until(stage.bed, holder->lost == 1);
  stage_close(&stage);
}

/* The text follows behind the ASKING of its own. */
TEST(a_script_is_not_known_on_the_other_side) {
  stage_t stage = open_three();
  contender_t *holder = in_slot(&stage, NULL);
  assert_error(try_lock(holder), 0);
  assert_error(extend(holder, 10000), 0);
  cluster_move_begin(stage.cluster, stage.slot, stage.to);
  assert_int_equal(cluster_move_keys(stage.cluster, stage.slot, stage.to, 1000), 1);
  server_do(to(&stage), "SCRIPT", "FLUSH", NULL);
  server_do(to(&stage), "CONFIG", "RESETSTAT", NULL);
  assert_error(extend(holder, 10000), 0);
  assert_error(release(holder), 0);
  assert_true(server_calls(to(&stage), "asking") >= 2);
  assert_true(server_calls(to(&stage), "eval") >= 1);
  stage_close(&stage);
}

/* ---- several keys -------------------------------------------------------------------------------------- */

/* A lock and the counter of its fencing numbers, which are not on the same side: it has to wait until they are. */
TEST(keys_of_one_script_are_apart) {
  stage_t stage = open_three();
  belay_lock_options_t options = lock_options();
  options.fencing = true;
  options.timeout_ms = 10000;
  contender_t *c = in_slot(&stage, &options);
  assert_error(try_lock(c), 0);
  uint64_t fence = belay_lock_fence(c->lock);
  assert_error(release(c), 0);
  cluster_move_begin(stage.cluster, stage.slot, stage.to);
  assert_error(begin_acquire(c, 0), 0);
  bed_run_for(stage.bed, 700); /* more than five redirections would be too many */
  assert_int_equal(c->ended, c->begun - 1);
  (void)cluster_move_keys(stage.cluster, stage.slot, stage.to, 1000);
  bed_run_for(stage.bed, 300);
  assert_int_equal(c->ended, c->begun - 1); /* the lock's key is on no side */
  cluster_move_end(stage.cluster, stage.slot, stage.to);
  assert_error(outcome(c), 0);
  assert_true(belay_lock_fence(c->lock) > fence);
  stage_close(&stage);
}

/* At the deadline the error names the cause, and no command was executed. */
TEST(keys_stay_apart) {
  stage_t stage = open_three();
  belay_lock_options_t options = lock_options();
  options.fencing = true;
  options.timeout_ms = prompt_ms();
  contender_t *c = in_slot(&stage, &options);
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
  cluster_move_begin(stage.cluster, stage.slot, stage.to);
  assert_error(try_lock(c), BELAY_ECLUSTERDOWN);
  assert_false(is_at(from(&stage), c) || is_at(to(&stage), c));
  (void)cluster_move_keys(stage.cluster, stage.slot, stage.to, 1000);
  cluster_move_end(stage.cluster, stage.slot, stage.to);
  stage_close(&stage);
}

/* ---- several calls ------------------------------------------------------------------------------------- */

static contender_t *durable(stage_t *stage) {
  belay_lock_options_t options = lock_options();
  options.min_replicas = 1;
  options.timeout_ms = 4000;
  options.replica_timeout_ms = 2000;
  return in_slot(stage, &options);
}

/* A SET and the WAIT behind it follow the slot together, in one attempt. */
TEST(a_durable_lock_follows) {
  stage_t stage = stage_open(NULL);
  contender_t *one = durable(&stage), *two = durable(&stage), *three = durable(&stage);
  assert_error(try_lock(one), 0);
  cluster_move_begin(stage.cluster, stage.slot, stage.to);
  assert_error(try_lock(two), 0); /* ASK */
  assert_true(is_at(to(&stage), two));
  (void)cluster_move_keys(stage.cluster, stage.slot, stage.to, 1000);
  assert_error(extend(one, 10000), 0);
  cluster_move_end(stage.cluster, stage.slot, stage.to);
  assert_error(try_lock(three), 0); /* MOVED */
  assert_error(extend(one, 10000), 0);
  assert_error(extend(two, 10000), 0);
  assert_error(release(one), 0);
  assert_error(release(two), 0);
  assert_error(release(three), 0);
  assert_false(is_at(to(&stage), one) || is_at(to(&stage), two) || is_at(to(&stage), three));
  stage_close(&stage);
}

/* Where no replica is left a WAIT takes its time, although the SET before it was refused. */
static stage_t open_without_replica(contender_t **one, contender_t **two) {
  stage_t stage = stage_open(NULL);
  *one = durable(&stage);
  *two = durable(&stage);
  assert_error(try_lock(*one), 0);
  cluster_move(stage.cluster, stage.slot, stage.to);
  server_kill(cluster_node(stage.cluster, stage.from + 3));
  while (server_info(from(&stage), "replication", "connected_slaves") > 0)
    stall_ms(2);
  return stage;
}

TEST(a_durable_lock_waits_on_its_way) {
  contender_t *one, *two;
  stage_t stage = open_without_replica(&one, &two);
  assert_error(try_lock(two), 0);
  assert_true(is_at(to(&stage), two));
  assert_error(extend(one, 10000), 0);
  stage_close(&stage);
}

TEST(a_durable_lock_is_cut_off_on_its_way) {
  contender_t *one, *two;
  stage_t stage = open_without_replica(&one, &two);
  assert_error(begin_acquire(two, 10000), 0);
  bed_run_for(stage.bed, 100);
  server_kill(from(&stage));
  assert_error(outcome(two), 0); /* by another attempt */
  assert_true(is_at(to(&stage), two));
  assert_error(release(two), 0);
  bed_settle(stage.bed);
  assert_false(is_at(to(&stage), two));
  bed_close(stage.bed);
  cluster_stop(stage.cluster);
}

TEST(a_durable_lock_is_given_up_on_its_way) {
  contender_t *one, *two;
  stage_t stage = open_without_replica(&one, &two);
  contender_t *three = durable(&stage);
  assert_error(begin_acquire(two, 10000), 0);
  assert_error(begin_acquire(three, 10000), 0);
  bed_run_for(stage.bed, 100);
  assert_error(cancel(two), 0);
  assert_error(outcome(two), BELAY_ECANCELED);
  assert_error(begin_close(three), 0);
  bed_until(stage.bed, three->closed == 1);
  bed_settle(stage.bed);
  assert_false(is_at(to(&stage), two));
  assert_error(try_lock(two), 0);
  bed_close(stage.bed); /* with calls in flight */
  cluster_stop(stage.cluster);
}

TEST(the_client_closes_while_a_durable_lock_is_on_its_way) {
  contender_t *one, *two;
  stage_t stage = open_without_replica(&one, &two);
  assert_error(begin_acquire(two, 10000), 0);
  bed_run_for(stage.bed, 100);
  bed_close(stage.bed);
  cluster_stop(stage.cluster);
}

/* ---- many ---------------------------------------------------------------------------------------------- */

TEST(many_calls_are_on_their_way) {
  enum { COUNT = 200 };
  stage_t stage = open_three();
  contender_t *all[COUNT];
  for (int i = 0; i < COUNT; i++)
    all[i] = in_slot(&stage, NULL);
  for (int i = 0; i < COUNT; i++)
    assert_error(begin_acquire(all[i], 5000), 0);
  cluster_move_begin(stage.cluster, stage.slot, stage.to);
  for (int i = 0; i < COUNT; i++)
    assert_error(outcome(all[i]), 0);
  for (int i = 0; i < COUNT; i++)
    assert_error(begin_extend(all[i], 20000), 0);
  (void)cluster_move_keys(stage.cluster, stage.slot, stage.to, COUNT / 2);
  for (int i = 0; i < COUNT; i++) {
    bed_until(stage.bed, all[i]->extended == all[i]->begun_extend);
    assert_error(all[i]->extend_status, 0);
  }
  for (int i = 0; i < COUNT; i++)
    assert_error(begin_release(all[i]), 0);
  (void)cluster_move_keys(stage.cluster, stage.slot, stage.to, COUNT);
  cluster_move_end(stage.cluster, stage.slot, stage.to);
  for (int i = 0; i < COUNT; i++)
    assert_error(outcome(all[i]), 0);
  bed_settle(stage.bed);
  assert_int_equal(server_keys(from(&stage)) + server_keys(to(&stage)), 0);
  stage_close(&stage);
}

/* ---- keys that are taken away and made again --------------------------------------------------------------- */

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

static void submit(stage_t *stage, belay_ranking_t *ranking, int64_t score) {
  submitted_t submitted = {.ended = 0};
  belay_request_t request = {.data = &submitted};
  const belay_ranking_score_t item = {.member = {"ann", 3}, .score = score};
  assert_error(belay_ranking_submit(
                   ranking, &request, belay_string("door"),
                   &(belay_ranking_submission_t){.mode = BELAY_RANKING_SET, .items = &item, .n = 1},
                   on_submitted),
               0);
  bed_until(stage->bed, submitted.ended == 1);
  assert_error(submitted.status, 0);
  assert_int_equal(submitted.score, score);
}

/* On the way a node does not make a key again that its script has taken away: it would be stopped in the middle. */
TEST(a_board_of_one_is_whole_on_its_way) {
  stage_t stage = open_three();
  belay_ranking_options_t options;
  belay_ranking_t *ranking;
  belay_ranking_options_init(&options);
  options.name = belay_string("timed");
  options.ties = BELAY_RANKING_EARLIER_FIRST;
  assert_error(belay_ranking_new(stage.bed->client, &options, &ranking), 0);
  submit(&stage, ranking, 7);
  cluster_move_begin(stage.cluster, stage.slot, stage.to);
  submit(&stage, ranking, 8);
  (void)cluster_move_keys(stage.cluster, stage.slot, stage.to, 1000);
  cluster_move_end(stage.cluster, stage.slot, stage.to);
  submit(&stage, ranking, 9);
  stage_close(&stage);
}

/* A renewal names no optional key: an absent key would block it for the whole move. */
TEST(leases_with_queues_last_on_their_way) {
  stage_t stage = open_three();
  belay_lock_options_t options;
  belay_lock_options_init(&options);
  options.fair = true;
  contender_t *fair = in_slot(&stage, &options);
  assert_error(try_lock(fair), 0);
  cluster_move_begin(stage.cluster, stage.slot, stage.to);
  assert_error(extend(fair, 10000), 0);
  (void)cluster_move_keys(stage.cluster, stage.slot, stage.to, 1000);
  assert_error(extend(fair, 10000), 0);
  cluster_move_end(stage.cluster, stage.slot, stage.to);
  assert_error(extend(fair, 10000), 0);
  assert_error(release(fair), 0);
  stage_close(&stage);
}
