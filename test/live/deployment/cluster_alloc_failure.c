/* Failing allocations in a client of a cluster: each allocation fails in turn, belay's own and
 * then hiredis's. Nothing crashes or leaks, each callback comes exactly once, and a lock that is
 * reported as held is on the node of its slot. One slot is being moved to a node that no map
 * names. */
#include <belay.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "core/key/slot.h"
#include "support/deployments/cluster.h"
#include "support/base/alloc.h"
#include "support/base/test.h"

#define LOCKS 4
#define NODES 4
#define WAIT_MS 2500 /* for another map, if one could not be kept */

typedef struct setup {
  cluster_t *cluster;
  char name[LOCKS][16]; /* one for each node */
  unsigned slot[LOCKS];
} setup_t;

typedef struct play {
  const setup_t *setup;
  uv_timer_t patience; /* a subscriber alone does not keep the loop alive */
  belay_t *belay;
  belay_client_t *client;
  belay_lock_t *lock[LOCKS];
  belay_subscription_t *subscription;
  unsigned pending, granted, released, replies;
  bool closed;
} play_t;

/* ---- the play: each lock is taken, extended and given back, and somebody listens ---- */

static void on_closed(belay_t *belay, void *data) {
  (void)belay;
  ((play_t *)data)->closed = true;
}

static void end_when_quiet(play_t *play) {
  if (play->pending > 0 || uv_is_closing((uv_handle_t *)&play->patience))
    return;
  uv_close((uv_handle_t *)&play->patience, NULL);
  assert_int_equal(belay_close(play->belay, on_closed), 0);
}

static void on_patience(uv_timer_t *timer) {
  play_t *play = timer->data;
  if (play->replies == 0)
    play->pending--;
  play->replies++;
  end_when_quiet(play);
}

static unsigned number_of(const play_t *play, const belay_lock_t *lock) {
  unsigned i = 0;
  while (play->lock[i] != lock)
    i++;
  return i;
}

static bool is_there(const play_t *play, const belay_lock_t *lock) {
  unsigned i = number_of(play, lock);
  char slot[12];
  size_t len;
  const char *key = belay_lock_key(lock, &len);
  snprintf(slot, sizeof slot, "%u", play->setup->slot[i]);
  const resp_t *keys = server_ask(cluster_node(play->setup->cluster, i), "CLUSTER", "GETKEYSINSLOT",
                                  slot, "10", NULL);
  for (size_t k = 0; k < keys->count; k++)
    if (keys->items[k]->len == len && memcmp(keys->items[k]->str, key, len) == 0)
      return true;
  return false;
}

static void on_released(belay_lock_t *lock, int status) {
  play_t *play = belay_lock_data(lock);
  play->pending--;
  play->released += status == 0;
  end_when_quiet(play);
}

static void release(play_t *play, belay_lock_t *lock) {
  if (belay_lock_release(lock, 300, on_released) == 0)
    play->pending++;
  end_when_quiet(play);
}

static void on_extended(belay_lock_t *lock, int status) {
  play_t *play = belay_lock_data(lock);
  (void)status;
  play->pending--;
  release(play, lock);
}

static void on_acquired(belay_lock_t *lock, int status) {
  play_t *play = belay_lock_data(lock);
  play->pending--;
  if (status != 0) {
    end_when_quiet(play);
    return;
  }
  assert_true(is_there(play, lock));
  play->granted++;
  if (belay_lock_extend(lock, BELAY_DEFAULT, 300, on_extended) == 0)
    play->pending++;
  else
    release(play, lock);
}

static void on_event(belay_subscription_t *subscription, belay_topic_event_t event,
                     const void *message, size_t len, int status) {
  play_t *play = belay_subscription_data(subscription);
  (void)message;
  (void)len;
  (void)status;
  if (event == BELAY_TOPIC_LISTENING && play->replies++ == 0) {
    play->pending--;
    end_when_quiet(play);
  }
}

static void begin(play_t *play) {
  belay_lock_options_t options;
  belay_lock_options_init(&options);
  options.data = play;
  for (unsigned i = 0; i < LOCKS; i++) {
    const char *name = play->setup->name[i];
    if (belay_lock_new(play->client, belay_string(name), &options, &play->lock[i]) == 0 &&
        belay_lock_acquire(play->lock[i], WAIT_MS, on_acquired) == 0)
      play->pending++;
  }
  if (belay_topic_subscribe(play->client, belay_string(play->setup->name[0]), on_event, play,
                            &play->subscription) == 0)
    play->pending++;
  else
    play->replies++;
}

static void perform(play_t *play, const belay_options_t *options) {
  uv_loop_t loop;
  assert_int_equal(uv_loop_init(&loop), 0);
  uv_timer_init(&loop, &play->patience);
  play->patience.data = play;
  if (belay_open(&loop, options, &play->belay) == 0) {
    belay_client_options_t o;
    belay_client_options_init(&o);
    o.timeout_ms = WAIT_MS;
    o.close_timeout_ms = 100;
    o.reconnect_max_ms = 20;
    belay_set_data(play->belay, play);
    if (belay_connect(play->belay, cluster_url(play->setup->cluster), &o, &play->client) == 0)
      begin(play);
    else
      play->replies++;
    uv_timer_start(&play->patience, on_patience, 2 * WAIT_MS, 0);
    end_when_quiet(play);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(play->closed);
    assert_int_equal(play->pending, 0);
  } else {
    uv_close((uv_handle_t *)&play->patience, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
  }
  assert_int_equal(uv_loop_close(&loop), 0);
}

/* ---- every allocation fails ---- */

/* One name on each of the first three nodes, and one in a slot that is being moved from one of
 * these to the fourth. */
static void setup_open(setup_t *setup) {
  setup->cluster = cluster_start(&(cluster_options_t){.without_replicas = true});
  unsigned added = cluster_add(setup->cluster);
  assert_int_equal(added, NODES - 1);
  char number[12];
  for (unsigned i = 0, n = 0; i < LOCKS; n++) {
    snprintf(number, sizeof number, "%u", n);
    unsigned slot = belay__slot(number, strlen(number));
    int owner = cluster_owner(setup->cluster, slot);
    if (owner != (int)i && i < added)
      continue;
    snprintf(setup->name[i], sizeof setup->name[i], "%u", n);
    setup->slot[i++] = slot;
  }
  cluster_move_begin(setup->cluster, setup->slot[added], added);
}

static size_t granted;

/* A key whose undo failed lives until its ttl ends. */
static void run(const belay_options_t *options, void *arg) {
  play_t play = {.setup = arg};
  for (unsigned i = 0; i < NODES; i++)
    server_do(cluster_node(play.setup->cluster, i), "FLUSHALL", NULL);
  perform(&play, options);
  granted += play.granted;
  if (alloc_has_failed())
    return;
  assert_int_equal(play.granted, LOCKS);
  assert_int_equal(play.released, LOCKS);
  assert_int_equal(play.replies, 1);
}

static void expect_most_succeed(alloc_owner_t owner) {
  setup_t setup;
  setup_open(&setup);
  granted = 0;
  size_t runs = alloc_fail_each(owner, run, &setup);
  print_message("# %zu runs, %zu locks of %zu were granted\n", runs, granted, runs * LOCKS);
  assert_true(runs > 20 && granted > runs * LOCKS / 2); /* belay repeats what failed */
  cluster_stop(setup.cluster);
}

TEST(belay_allocation_failure) {
  expect_most_succeed(ALLOC_BELAY);
}

TEST(hiredis_allocation_failure) {
  expect_most_succeed(ALLOC_HIREDIS);
}
