/* Each allocation during a wait fails in turn. Expected: no crash, no leak, every callback runs
 * once, no waiter waits for ever, and every reported effect is real. */
#include <belay.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "support/servers/server.h"
#include "support/base/alloc.h"
#include "support/base/test.h"

enum { WAIT_MS = 300, PARTIES = 2 };

typedef struct play {
  server_t *server;
  belay_t *belay;
  belay_client_t *client;
  belay_latch_t *latch;
  belay_barrier_t *barrier[PARTIES];
  belay_election_t *election;
  belay_request_t request;
  int pending; /* callbacks that are owed */
  bool counted, opened, elected, seen, filled, listed, broken, met, closed;
  uint64_t generation[PARTIES];
} play_t;

static void on_closed(belay_t *belay, void *data) {
  (void)belay;
  ((play_t *)data)->closed = true;
}

static void end_when_quiet(play_t *play) {
  if (play->pending == 0)
    assert_int_equal(belay_close(play->belay, on_closed), 0);
}

static void answered(play_t *play) {
  assert_true(play->pending-- > 0);
  end_when_quiet(play);
}

/* ---- a latch --------------------------------------------------------------------------------------------- */

static void on_counted(belay_request_t *request, int status, unsigned left) {
  play_t *play = request->data;
  assert_int_equal(left, 0);
  play->counted = status == 0;
  answered(play);
}

static void on_open(belay_latch_t *latch, int status) {
  play_t *play = belay_latch_data(latch);
  play->opened = status == 0;
  if (play->opened)
    assert_int_equal(server_integer(play->server, "HLEN", "belay::latch::{one}", NULL), 3);
  answered(play);
}

static void play_latch(play_t *play) {
  if (belay_latch_new(play->client, belay_string("one"), NULL, &play->latch) != 0)
    return;
  belay_latch_set_data(play->latch, play);
  play->pending += belay_latch_wait(play->latch, WAIT_MS, on_open) == 0;
  play->request.data = play;
  play->pending +=
      belay_latch_count_down(play->latch, &play->request, belay_bytes(NULL, 0), on_counted) == 0;
}

/* ---- a barrier ------------------------------------------------------------------------------------------- */

static void on_passed(belay_barrier_t *barrier, int status, uint64_t generation) {
  play_t *play = belay_barrier_data(barrier);
  for (int i = 0; i < PARTIES; i++)
    if (barrier == play->barrier[i])
      play->generation[i] = generation;
  assert_int_equal(generation, status == 0);
  answered(play);
}

static void play_barrier(play_t *play) {
  belay_latch_options_t options;
  belay_latch_options_init(&options);
  options.count = PARTIES;
  for (int i = 0; i < PARTIES; i++) {
    if (belay_barrier_new(play->client, belay_string("one"), &options, &play->barrier[i]) != 0)
      continue;
    belay_barrier_set_data(play->barrier[i], play);
    play->pending += belay_barrier_wait(play->barrier[i], WAIT_MS, on_passed) == 0;
  }
}

/* ---- an election ----------------------------------------------------------------------------------------- */

static void on_resigned(belay_election_t *election, int status) {
  (void)status;
  answered(belay_election_data(election));
}

static void on_campaigned(belay_election_t *election, int status) {
  play_t *play = belay_election_data(election);
  if (status == 0 && belay_election_resign(election, on_resigned) == 0)
    play->pending++;
  play->elected = status == 0;
  answered(play);
}

static void on_observe(belay_election_t *election, int status, const belay_leader_t *leader) {
  play_t *play = belay_election_data(election);
  (void)leader;
  if (status != 0 || play->seen)
    return;
  play->seen = true;
  answered(play);
}

static void play_election(play_t *play) {
  belay_election_options_t options;
  belay_election_options_init(&options);
  options.on_observe = on_observe;
  options.data = play;
  if (belay_election_new(&play->client, 1, belay_string("one"), &options, &play->election) != 0)
    return;
  play->pending += belay_election_observe(play->election, 1) == 0;
  play->pending += belay_election_campaign(play->election, on_campaigned) == 0;
  belay_election_ref(play->election);
}

/* ---- a bucket -------------------------------------------------------------------------------------------- */

static void on_filled(belay_request_t *request, int status, const belay_bucket_state_t *state) {
  play_t *play = request->data;
  play->filled = status == 0 && state->applied;
  if (play->filled)
    assert_string_equal(server_string(play->server, "GET", "belay::bucket::{one}", NULL), "5");
  answered(play);
}

static void play_bucket(play_t *play) {
  belay_bucket_options_t options;
  belay_bucket_t *bucket;
  belay_bucket_options_init(&options);
  options.capacity = 10;
  if (belay_bucket_new(play->client, &options, &bucket) != 0)
    return;
  play->request.data = play;
  play->pending +=
      belay_bucket_add(bucket, &play->request, belay_string("one"), 5, 0, on_filled) == 0;
}

/* ---- a refiller ------------------------------------------------------------------------------------------ */

static void on_members(belay_request_t *request, int status, const belay_refiller_member_t *members,
                       size_t n) {
  play_t *play = request->data;
  for (size_t i = 0; i < n; i++)
    play->listed |= strcmp(members[i].label, "other") == 0;
  assert_int_equal(play->listed, status == 0);
  answered(play);
}

/* There is one that has a place, at least. */
static void play_refiller(play_t *play) {
  belay_bucket_options_t options;
  belay_refiller_options_t o;
  belay_bucket_t *bucket;
  belay_refiller_t *refiller;
  belay_bucket_options_init(&options);
  belay_refiller_options_init(&o);
  options.capacity = 10;
  o.name = belay_string("one");
  server_do(play->server, "ZADD", "belay::semaphore::{refill/0//one}", "99999999999999",
            "0123456789abcdef0123456789abcdef01234567:other", NULL);
  if (belay_bucket_new(play->client, &options, &bucket) != 0 ||
      belay_refiller_new(bucket, &o, &refiller) != 0)
    return;
  (void)belay_refiller_add(refiller, belay_string("one"), 5);
  play->request.data = play;
  play->pending += belay_refiller_members(refiller, &play->request, on_members) == 0;
}

/* ---- what is held ---------------------------------------------------------------------------------------- */

static void on_broken(belay_request_t *request, int status, const belay_broken_t *broken) {
  play_t *play = request->data;
  play->broken = status == 0 && broken->removed == 1;
  if (play->broken)
    assert_int_equal(server_integer(play->server, "EXISTS", "belay::lock::{one}", NULL), 0);
  answered(play);
}

static void on_held(belay_sweep_t *sweep, const belay_held_t *held) {
  play_t *play = belay_sweep_data(sweep);
  play->request.data = play;
  play->pending += belay_held_break(play->client, &play->request, held, on_broken) == 0;
}

static void on_swept(belay_sweep_t *sweep, int status, const belay_sweep_totals_t *totals) {
  (void)status;
  (void)totals;
  answered(belay_sweep_data(sweep));
}

static void play_held(play_t *play) {
  belay_sweep_options_t options;
  belay_sweep_t *sweep;
  belay_sweep_options_init(&options);
  options.on_held = on_held;
  options.patience_ms = 0;
  options.data = play;
  server_do(play->server, "SET", "belay::lock::{one}",
            "0123456789abcdef0123456789abcdef01234567:other", NULL);
  if (belay_sweep_new(play->client, &options, &sweep) == 0)
    play->pending += belay_sweep_start(sweep, on_swept) == 0;
}

/* ---- who the servers are --------------------------------------------------------------------------------- */

#if BELAY_HAS_TOPOLOGY
static void on_servers(belay_request_t *request, int status, const belay_topology_server_t *servers,
                       size_t n) {
  play_t *play = request->data;
  assert_true((n > 0) == (status == 0));
  play->met = n > 0 && servers[0].samples == 2;
  answered(play);
}

static void play_topology(play_t *play) {
  play->request.data = play;
  play->pending += belay_topology_read(play->client, &play->request, 2, on_servers) == 0;
}
#endif

/* ---- all of it ------------------------------------------------------------------------------------------- */

static void perform(play_t *play, const belay_options_t *options, void (*part)(play_t *play)) {
  uv_loop_t loop;
  assert_int_equal(uv_loop_init(&loop), 0);
  if (belay_open(&loop, options, &play->belay) == 0) {
    belay_client_options_t client;
    belay_client_options_init(&client);
    client.timeout_ms = 100;
    client.close_timeout_ms = 100;
    client.reconnect_max_ms = 20;
    belay_set_data(play->belay, play);
    if (belay_connect(play->belay, server_url(play->server), &client, &play->client) == 0)
      part(play);
    end_when_quiet(play);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(play->closed);
    assert_int_equal(play->pending, 0);
  }
  assert_int_equal(uv_loop_close(&loop), 0);
}

typedef struct part {
  server_t *server;
  void (*begin)(play_t *play);
  play_t last;
} part_t;

static void run(const belay_options_t *options, void *arg) {
  part_t *part = arg;
  server_do(part->server, "FLUSHALL", NULL);
  server_do(part->server, "SCRIPT", "FLUSH", NULL);
  part->last = (play_t){.server = part->server};
  perform(&part->last, options, part->begin);
  for (int i = 1; i < PARTIES; i++) /* all pass, or none does */
    assert_int_equal(part->last.generation[i], part->last.generation[0]);
}

/* Defines a test whose condition holds when nothing failed. */
#define ALLOC_TEST(name, begin_it, condition)                                                      \
  TEST_ON(name, server, server_start(NULL)) {                                                      \
    part_t part = {.server = server, .begin = (begin_it)};                                         \
    assert_true(alloc_fail_each(ALLOC_BELAY, run, &part) > 5);                                     \
    const play_t *play = &part.last;                                                               \
    assert_true(condition);                                                                        \
  }
ALLOC_TEST(latch, play_latch, play->counted && play->opened)
ALLOC_TEST(barrier, play_barrier, play->generation[0] == 1 && play->generation[1] == 1)
ALLOC_TEST(election, play_election, play->elected && play->seen)
ALLOC_TEST(bucket, play_bucket, play->filled)
ALLOC_TEST(refiller, play_refiller, play->listed)
ALLOC_TEST(held, play_held, play->broken)
#if BELAY_HAS_TOPOLOGY
ALLOC_TEST(topology, play_topology, play->met)
#endif
