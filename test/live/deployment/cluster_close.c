/* A client of a cluster is closed in any state: each callback comes, and nothing leaks. */
#include <stdio.h>
#include <stdlib.h>

#include "core/key/slot.h"
#include "support/deployments/cluster.h"
#include "support/fixtures/subscriber.h"

#define LOCKS 24
#define TOPICS 6

typedef struct setup {
  cluster_t *cluster;
  env_t *env;
  contender_t *all[LOCKS]; /* the first three's slot is on its way elsewhere */
  subscriber_t topic[TOPICS];
  unsigned slot;
} setup_t;

static belay_client_options_t options_of(belay_read_from_t from) {
  belay_client_options_t options = client_options();
  options.read_from = from;
  options.close_timeout_ms = 50;
  options.connections = 2;
  return options;
}

static void open_client(setup_t *setup, belay_read_from_t from) {
  belay_client_options_t options = options_of(from);
  char name[16];
  setup->env = env_open_at(cluster_url(setup->cluster), &options);
  memset(setup->topic, 0, sizeof setup->topic);
  for (unsigned i = 0, n = 0; i < LOCKS; n++) {
    snprintf(name, sizeof name, "%u", n);
    belay_lock_options_t o = lock_options();
    o.fencing = i % 4 == 1;
    o.min_replicas = i % 4 == 2;
    if (i >= 3 || belay__slot(name, strlen(name)) == setup->slot)
      setup->all[i++] = contender_new(setup->env, name, &o);
  }
}

static void begin_all(setup_t *setup) {
  char name[16];
  for (int i = 0; i < LOCKS; i++)
    assert_error(begin_acquire(setup->all[i], 5000), 0);
  for (int i = 0; i < TOPICS; i++) {
    snprintf(name, sizeof name, "news-%d", i);
    assert_error(subscribe_to(setup->env, setup->env->client, &setup->topic[i], name, strlen(name)),
                 0);
  }
}

static void close_client(setup_t *setup) {
  env_close(setup->env);
  for (int i = 0; i < TOPICS; i++)
    setup->topic[i] = (subscriber_t){0};
}

static setup_t *setup_open(void) {
  setup_t *setup = calloc(1, sizeof *setup);
  setup->cluster = cluster_start(NULL);
  setup->slot = belay__slot("0", 1);
  unsigned owner = (unsigned)cluster_owner(setup->cluster, setup->slot);
  cluster_move_begin(setup->cluster, setup->slot, (owner + 1) % 3);
  return setup;
}

static void setup_close(setup_t *setup) {
  cluster_stop(setup->cluster);
  free(setup);
}

/* ---- at any time ---- */

TEST_IN(close_at_any_time, setup, setup_open()) {
  for (int ms = 0; ms < 40; ms++) {
    open_client(setup, (belay_read_from_t)(ms % 3));
    begin_all(setup);
    env_run_for(setup->env, ms / 2);
    close_client(setup);
  }
}

/* Some answer, some do not. */
TEST_IN(close_with_stopped_nodes, setup, setup_open()) {
  for (int ms = 0; ms < 24; ms++) {
    unsigned still = (unsigned)ms % 3;
    bool early = ms % 2 == 0;
    if (early)
      server_pause(cluster_node(setup->cluster, still));
    open_client(setup, (belay_read_from_t)(ms % 3));
    begin_all(setup);
    env_run_for(setup->env, ms);
    if (!early)
      server_pause(cluster_node(setup->cluster, still));
    env_run_for(setup->env, ms);
    close_client(setup);
    server_resume(cluster_node(setup->cluster, still));
  }
}

TEST_IN(close_with_dead_nodes, setup, setup_open()) {
  open_client(setup, BELAY_READ_ANY);
  begin_all(setup);
  env_run_for(setup->env, 200);
  for (unsigned i = 0; i < cluster_size(setup->cluster); i++)
    server_kill(cluster_node(setup->cluster, i));
  env_run_for(setup->env, 20);
  close_client(setup);
  for (int ms = 0; ms < 60; ms += 10) {
    open_client(setup, BELAY_READ_REPLICA);
    begin_all(setup);
    env_run_for(setup->env, ms);
    close_client(setup);
  }
}

/* A silent node that is in no map any more owes a reply: neither calls nor the close wait for
 * it. */
static void leave_a_node(setup_t *setup, bool goes_on) {
  unsigned added = cluster_add(setup->cluster), slot = belay__slot("door", 4);
  unsigned owner = (unsigned)cluster_owner(setup->cluster, slot);
  contender_t *c = contender_new(setup->env, "door", NULL);
  cluster_move(setup->cluster, slot, added);
  assert_error(try_lock(c), 0);
  server_pause(cluster_node(setup->cluster, added));
  assert_error(begin_extend(c, 60000), 0);
  env_run_for(setup->env, 20);
  server_resume(cluster_node(setup->cluster, added));
  env_until(setup->env, c->extended == c->begun_extend);
  cluster_move(setup->cluster, slot, owner);
  server_pause(cluster_node(setup->cluster, added));
  assert_error(begin_extend(c, 60000), 0);
  env_until(setup->env,
            /* the client has asked a node, which has not named another one */
            c->extended == c->begun_extend);
  assert_error(c->extend_status, BELAY_EUNKNOWN);
  if (goes_on)
    server_resume(cluster_node(setup->cluster, added));
  env_run_for(setup->env, 300);
  close_client(setup);
  server_resume(cluster_node(setup->cluster, added));
  while (!cluster_is_whole(setup->cluster))
    stall_ms(10);
  cluster_forget(setup->cluster, added);
}

TEST(close_with_a_silent_retired_node) {
  setup_t setup = {.cluster = cluster_start(&(cluster_options_t){.without_replicas = true})};
  for (int goes_on = 0; goes_on < 2; goes_on++) {
    belay_client_options_t options = options_of(BELAY_READ_PRIMARY);
    setup.env = env_open_at(cluster_url(setup.cluster), &options);
    leave_a_node(&setup, goes_on != 0);
  }
  cluster_stop(setup.cluster);
}

/* ---- in callbacks ---- */

static void close_client_in_it(contender_t *contender, event_t event) {
  if (event == EVENT_ENDED)
    (void)begin_client_close(contender->env);
}

TEST_IN(close_in_a_callback, setup, setup_open()) {
  for (int i = 0; i < LOCKS; i++) {
    open_client(setup, BELAY_READ_PRIMARY);
    setup->all[i]->then = close_client_in_it;
    begin_all(setup);
    env_until(setup->env, setup->env->client_closed == 1);
    close_client(setup);
  }
}
