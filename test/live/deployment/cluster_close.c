/* A client of a cluster is closed, whatever is under way: no callback is lost, and nothing is left. */
#include <stdio.h>
#include <stdlib.h>

#include "core/key/slot.h"
#include "support/deployments/cluster.h"
#include "support/fixtures/subscriber.h"

#define LOCKS 24
#define TOPICS 6

typedef struct stage {
  cluster_t *cluster;
  bed_t *bed;
  contender_t *all[LOCKS]; /* the first three's slot is on its way elsewhere */
  subscriber_t topic[TOPICS];
  unsigned slot;
} stage_t;

static belay_client_options_t options_of(belay_read_from_t from) {
  belay_client_options_t options = client_options();
  options.read_from = from;
  options.close_timeout_ms = 50;
  options.connections = 2;
  return options;
}

static void open_client(stage_t *stage, belay_read_from_t from) {
  belay_client_options_t options = options_of(from);
  char name[16];
  stage->bed = bed_open_at(cluster_url(stage->cluster), &options);
  memset(stage->topic, 0, sizeof stage->topic);
  for (unsigned i = 0, n = 0; i < LOCKS; n++) {
    snprintf(name, sizeof name, "%u", n);
    belay_lock_options_t o = lock_options();
    o.fencing = i % 4 == 1;
    o.min_replicas = i % 4 == 2;
    if (i >= 3 || belay__slot(name, strlen(name)) == stage->slot)
      stage->all[i++] = contender_new(stage->bed, name, &o);
  }
}

static void begin_all(stage_t *stage) {
  char name[16];
  for (int i = 0; i < LOCKS; i++)
    assert_error(begin_acquire(stage->all[i], 5000), 0);
  for (int i = 0; i < TOPICS; i++) {
    snprintf(name, sizeof name, "news-%d", i);
    assert_error(subscribe_to(stage->bed, stage->bed->client, &stage->topic[i], name, strlen(name)),
                 0);
  }
}

static void close_client(stage_t *stage) {
  bed_close(stage->bed);
  for (int i = 0; i < TOPICS; i++)
    stage->topic[i] = (subscriber_t){0};
}

static stage_t *stage_open(void) {
  stage_t *stage = calloc(1, sizeof *stage);
  stage->cluster = cluster_start(NULL);
  stage->slot = belay__slot("0", 1);
  unsigned owner = (unsigned)cluster_owner(stage->cluster, stage->slot);
  cluster_move_begin(stage->cluster, stage->slot, (owner + 1) % 3);
  return stage;
}

static void stage_close(stage_t *stage) {
  cluster_stop(stage->cluster);
  free(stage);
}

/* ---- at any time --------------------------------------------------------------------------------------- */

TEST_IN(at_any_time, stage, stage_open()) {
  for (int ms = 0; ms < 40; ms++) {
    open_client(stage, (belay_read_from_t)(ms % 3));
    begin_all(stage);
    bed_run_for(stage->bed, ms / 2);
    close_client(stage);
  }
}

/* Some answer, some do not. */
TEST_IN(while_nodes_stand_still, stage, stage_open()) {
  for (int ms = 0; ms < 24; ms++) {
    unsigned still = (unsigned)ms % 3;
    bool early = ms % 2 == 0;
    if (early)
      server_pause(cluster_node(stage->cluster, still));
    open_client(stage, (belay_read_from_t)(ms % 3));
    begin_all(stage);
    bed_run_for(stage->bed, ms);
    if (!early)
      server_pause(cluster_node(stage->cluster, still));
    bed_run_for(stage->bed, ms);
    close_client(stage);
    server_resume(cluster_node(stage->cluster, still));
  }
}

TEST_IN(while_nobody_is_there, stage, stage_open()) {
  open_client(stage, BELAY_READ_ANY);
  begin_all(stage);
  bed_run_for(stage->bed, 200);
  for (unsigned i = 0; i < cluster_size(stage->cluster); i++)
    server_kill(cluster_node(stage->cluster, i));
  bed_run_for(stage->bed, 20);
  close_client(stage);
  for (int ms = 0; ms < 60; ms += 10) {
    open_client(stage, BELAY_READ_REPLICA);
    begin_all(stage);
    bed_run_for(stage->bed, ms);
    close_client(stage);
  }
}

/* A silent node that is in no map any more owes a reply: neither calls nor the close wait for
 * it. */
static void leave_a_node(stage_t *stage, bool goes_on) {
  unsigned added = cluster_add(stage->cluster), slot = belay__slot("door", 4);
  unsigned owner = (unsigned)cluster_owner(stage->cluster, slot);
  contender_t *c = contender_new(stage->bed, "door", NULL);
  cluster_move(stage->cluster, slot, added);
  assert_error(try_lock(c), 0);
  server_pause(cluster_node(stage->cluster, added));
  assert_error(begin_extend(c, 60000), 0);
  bed_run_for(stage->bed, 20);
  server_resume(cluster_node(stage->cluster, added));
  bed_until(stage->bed, c->extended == c->begun_extend);
  cluster_move(stage->cluster, slot, owner);
  server_pause(cluster_node(stage->cluster, added));
  assert_error(begin_extend(c, 60000), 0);
  bed_until(stage->bed,
            /* the client has asked a node, which has not named another one */
            c->extended == c->begun_extend);
  assert_error(c->extend_status, BELAY_EUNKNOWN);
  if (goes_on)
    server_resume(cluster_node(stage->cluster, added));
  bed_run_for(stage->bed, 300);
  close_client(stage);
  server_resume(cluster_node(stage->cluster, added));
  while (!cluster_is_whole(stage->cluster))
    stall_ms(10);
  cluster_forget(stage->cluster, added);
}

TEST(while_one_that_is_left_owes_an_answer) {
  stage_t stage = {.cluster = cluster_start(&(cluster_options_t){.without_replicas = true})};
  for (int goes_on = 0; goes_on < 2; goes_on++) {
    belay_client_options_t options = options_of(BELAY_READ_PRIMARY);
    stage.bed = bed_open_at(cluster_url(stage.cluster), &options);
    leave_a_node(&stage, goes_on != 0);
  }
  cluster_stop(stage.cluster);
}

/* ---- in callbacks -------------------------------------------------------------------------------------- */

static void close_client_in_it(contender_t *contender, event_t event) {
  if (event == EVENT_ENDED)
    (void)begin_client_close(contender->bed);
}

TEST_IN(in_a_callback, stage, stage_open()) {
  for (int i = 0; i < LOCKS; i++) {
    open_client(stage, BELAY_READ_PRIMARY);
    stage->all[i]->then = close_client_in_it;
    begin_all(stage);
    bed_until(stage->bed, stage->bed->client_closed == 1);
    close_client(stage);
  }
}
