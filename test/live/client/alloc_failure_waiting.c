/* Each allocation during a wait fails in turn. Expected: no crash, no leak, every callback runs
 * once, no waiter waits for ever, and every reported effect is real. */
#include <belay.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "support/servers/server.h"
#include "support/base/alloc.h"
#include "support/base/test.h"

enum { WAIT_MS = 300, PARTIES = 2 };

typedef struct scene scene_t;

struct scene {
  alloc_run_t run; /* first */
  server_t *server;
  void (*begin)(scene_t *scene);
  belay_client_t *client;
  belay_latch_t *latch;
  belay_barrier_t *barrier[PARTIES];
  belay_election_t *election;
  belay_request_t request;
  bool counted, opened, elected, seen, filled, read, broken, met;
  uint64_t generation[PARTIES];
};

/* ---- a latch ---- */

static void on_counted(belay_request_t *request, int status, unsigned left) {
  scene_t *scene = request->data;
  assert_int_equal(left, 0);
  scene->counted = status == 0;
  alloc_called_back(&scene->run);
}

static void on_open(belay_latch_t *latch, int status) {
  scene_t *scene = belay_latch_data(latch);
  scene->opened = status == 0;
  if (scene->opened)
    assert_int_equal(server_integer(scene->server, "HLEN", "belay::latch::{one}", NULL), 3);
  alloc_called_back(&scene->run);
}

static void begin_latch(scene_t *scene) {
  if (belay_latch_new(scene->client, belay_string("one"), NULL, &scene->latch) != 0)
    return;
  belay_latch_set_data(scene->latch, scene);
  scene->run.pending += belay_latch_wait(scene->latch, WAIT_MS, on_open) == 0;
  scene->request.data = scene;
  scene->run.pending +=
      belay_latch_count_down(scene->latch, &scene->request, belay_bytes(NULL, 0), on_counted) == 0;
}

/* ---- a barrier ---- */

static void on_passed(belay_barrier_t *barrier, int status, uint64_t generation) {
  scene_t *scene = belay_barrier_data(barrier);
  for (int i = 0; i < PARTIES; i++)
    if (barrier == scene->barrier[i])
      scene->generation[i] = generation;
  assert_int_equal(generation, status == 0);
  alloc_called_back(&scene->run);
}

static void begin_barrier(scene_t *scene) {
  belay_latch_options_t options;
  belay_latch_options_init(&options);
  options.count = PARTIES;
  for (int i = 0; i < PARTIES; i++) {
    if (belay_barrier_new(scene->client, belay_string("one"), &options, &scene->barrier[i]) != 0)
      continue;
    belay_barrier_set_data(scene->barrier[i], scene);
    scene->run.pending += belay_barrier_wait(scene->barrier[i], WAIT_MS, on_passed) == 0;
  }
}

/* ---- an election ---- */

static void on_resigned(belay_election_t *election, int status) {
  (void)status;
  alloc_called_back(belay_election_data(election));
}

static void on_campaigned(belay_election_t *election, int status) {
  scene_t *scene = belay_election_data(election);
  if (status == 0 && belay_election_resign(election, on_resigned) == 0)
    scene->run.pending++;
  scene->elected = status == 0;
  alloc_called_back(&scene->run);
}

static void on_observe(belay_election_t *election, int status, const belay_leader_t *leader) {
  scene_t *scene = belay_election_data(election);
  (void)leader;
  if (status != 0 || scene->seen)
    return;
  scene->seen = true;
  alloc_called_back(&scene->run);
}

static void begin_election(scene_t *scene) {
  belay_election_options_t options;
  belay_election_options_init(&options);
  options.on_observe = on_observe;
  options.data = scene;
  if (belay_election_new(scene->client, belay_string("one"), &options, &scene->election) != 0)
    return;
  scene->run.pending += belay_election_observe(scene->election, 1) == 0;
  scene->run.pending += belay_election_campaign(scene->election, on_campaigned) == 0;
  belay_election_ref(scene->election);
}

/* ---- a bucket ---- */

static void on_filled(belay_request_t *request, int status, const belay_bucket_state_t *state) {
  scene_t *scene = request->data;
  scene->filled = status == 0 && state->applied;
  if (scene->filled)
    assert_string_equal(server_string(scene->server, "GET", "belay::bucket::{one}", NULL), "5");
  alloc_called_back(&scene->run);
}

static void begin_bucket(scene_t *scene) {
  belay_bucket_options_t options;
  belay_bucket_t *bucket;
  belay_bucket_options_init(&options);
  options.capacity = 10;
  if (belay_bucket_new(scene->client, &options, &bucket) != 0)
    return;
  scene->request.data = scene;
  scene->run.pending +=
      belay_bucket_add(bucket, &scene->request, belay_string("one"), 5, 0, on_filled) == 0;
}

/* ---- a refiller ---- */

static void on_read(belay_request_t *request, int status, const belay_bucket_state_t *state) {
  scene_t *scene = request->data;
  (void)state;
  scene->read = status == 0;
  alloc_called_back(&scene->run);
}

static void begin_refiller(scene_t *scene) {
  belay_bucket_options_t options;
  belay_refiller_options_t o;
  belay_bucket_t *bucket;
  belay_refiller_t *refiller;
  belay_bucket_options_init(&options);
  belay_refiller_options_init(&o);
  options.capacity = 10;
  o.name = belay_string("one");
  if (belay_bucket_new(scene->client, &options, &bucket) != 0 ||
      belay_refiller_new(bucket, &o, &refiller) != 0)
    return;
  (void)belay_refiller_add(refiller, belay_string("one"), 5);
  scene->request.data = scene;
  scene->run.pending +=
      belay_bucket_read(bucket, &scene->request, belay_string("one"), on_read) == 0;
}

/* ---- held objects ---- */

static void on_broken(belay_request_t *request, int status, const belay_broken_t *broken) {
  scene_t *scene = request->data;
  scene->broken = status == 0 && broken->removed == 1;
  if (scene->broken)
    assert_int_equal(server_integer(scene->server, "EXISTS", "belay::lock::{one}", NULL), 0);
  alloc_called_back(&scene->run);
}

static void on_held(belay_sweep_t *sweep, const belay_held_t *held) {
  scene_t *scene = belay_sweep_data(sweep);
  scene->request.data = scene;
  scene->run.pending += belay_held_break(scene->client, &scene->request, held, on_broken) == 0;
}

static void on_swept(belay_sweep_t *sweep, int status, const belay_sweep_totals_t *totals) {
  (void)status;
  (void)totals;
  alloc_called_back(belay_sweep_data(sweep));
}

static void begin_held(scene_t *scene) {
  belay_sweep_options_t options;
  belay_sweep_t *sweep;
  belay_sweep_options_init(&options);
  options.on_held = on_held;
  options.patience_ms = 0;
  options.data = scene;
  server_do(scene->server, "SET", "belay::lock::{one}",
            "0123456789abcdef0123456789abcdef01234567:other", NULL);
  if (belay_sweep_new(scene->client, &options, &sweep) == 0)
    scene->run.pending += belay_sweep_start(sweep, on_swept) == 0;
}

/* ---- topology ---- */

#if BELAY_HAS_TOPOLOGY
static void on_servers(belay_request_t *request, int status, const belay_topology_server_t *servers,
                       size_t n) {
  scene_t *scene = request->data;
  assert_true((n > 0) == (status == 0));
  scene->met = n > 0 && servers[0].samples == 2;
  alloc_called_back(&scene->run);
}

static void begin_topology(scene_t *scene) {
  scene->request.data = scene;
  scene->run.pending += belay_topology_read(scene->client, &scene->request, 2, on_servers) == 0;
}
#endif

/* ---- the tests ---- */

static void begin(alloc_run_t *run) {
  scene_t *scene = (scene_t *)run;
  belay_client_options_t client;
  belay_client_options_init(&client);
  client.timeout_ms = 100;
  client.close_timeout_ms = 100;
  client.reconnect_max_ms = 20;
  if (belay_connect(run->belay, server_url(scene->server), &client, &scene->client) == 0)
    scene->begin(scene);
}

static void run_once(const belay_options_t *options, void *arg) {
  scene_t *scene = arg;
  *scene = (scene_t){.server = scene->server, .begin = scene->begin};
  server_do(scene->server, "FLUSHALL", NULL);
  server_do(scene->server, "SCRIPT", "FLUSH", NULL);
  alloc_run(&scene->run, options, begin);
  for (int i = 1; i < PARTIES; i++) /* all pass, or none does */
    assert_int_equal(scene->generation[i], scene->generation[0]);
}

/* Defines a test whose condition holds when nothing failed. */
#define ALLOC_TEST(name, begin_it, condition)                                                      \
  TEST_ON(name, server, server_start(NULL)) {                                                      \
    scene_t last = {.server = server, .begin = (begin_it)}, *scene = &last;                        \
    assert_true(alloc_fail_each(ALLOC_BELAY, run_once, scene) > 5);                                \
    assert_true(condition);                                                                        \
  }
ALLOC_TEST(latch, begin_latch, scene->counted && scene->opened)
ALLOC_TEST(barrier, begin_barrier, scene->generation[0] == 1 && scene->generation[1] == 1)
ALLOC_TEST(election, begin_election, scene->elected && scene->seen)
ALLOC_TEST(bucket, begin_bucket, scene->filled)
ALLOC_TEST(refiller, begin_refiller, scene->read)
ALLOC_TEST(held, begin_held, scene->broken)
#if BELAY_HAS_TOPOLOGY
ALLOC_TEST(topology, begin_topology, scene->met)
#endif
