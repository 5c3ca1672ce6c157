/* Each allocation of belay, and then of hiredis, fails in turn, while two handles contend for a
 * lock. Expected: no crash, no leak, every callback runs once, and a lock that is reported as held
 * is on the server. */
#include <belay.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/base/alloc.h"
#include "support/base/clock.h"
#include "support/servers/server.h"
#include "support/base/test.h"

#define NODES 3
#define MAX_TTL_MS 1000 /* of the quorum's namespace; servers that have been up for longer vote */

/* The servers; 1: a plain lock, several: Redlock, with all that it can have. */
typedef struct nodes {
  unsigned n;
  server_t *server[NODES];
} nodes_t;

typedef struct scene {
  alloc_run_t run; /* first */
  const nodes_t *nodes;
  belay_client_t *client[NODES];
  belay_lock_t *one, *two;
  int granted;
  int64_t ms; /* for a call; for an acquire three times that */
} scene_t;

/* ---- two contenders, a wait, an extend, two releases, a close ---- */

static void on_ended(belay_lock_t *lock, int status) {
  (void)status;
  alloc_called_back(belay_lock_data(lock));
}

static void on_extended(belay_lock_t *lock, int status) {
  scene_t *scene = belay_lock_data(lock);
  scene->run.pending += belay_lock_release(lock, 200, on_ended) == 0;
  on_ended(lock, status);
}

/* The number of servers that have the token of this lock. */
static unsigned holding(const scene_t *scene, belay_lock_t *lock) {
  unsigned count = 0;
  size_t len;
  char token[128];
  const char *key = belay_lock_key(lock, &len);
  char name[64];
  assert_true(len < sizeof name);
  memcpy(name, key, len);
  name[len] = '\0';
  assert_true(belay_lock_token(lock, token, sizeof token) < sizeof token);
  for (unsigned i = 0; i < scene->nodes->n; i++) {
    const char *value = server_string(scene->nodes->server[i], "GET", name, NULL);
    count += value != NULL && strcmp(value, token) == 0;
  }
  return count;
}

static void on_acquired(belay_lock_t *lock, int status) {
  scene_t *scene = belay_lock_data(lock);
  if (status == 0) {
    assert_true(holding(scene, lock) >= scene->nodes->n / 2 + 1);
    assert_int_equal(belay_lock_fence(lock) > 0, scene->nodes->n > 1);
    scene->granted++;
    bool extends = belay_lock_extend(lock, BELAY_DEFAULT, 2 * scene->ms, on_extended) == 0;
    scene->run.pending += extends || belay_lock_release(lock, 200, on_ended) == 0;
  }
  on_ended(lock, status);
}

static void begin_acquire(scene_t *scene, belay_lock_t *lock) {
  scene->run.pending += lock != NULL && belay_lock_acquire(lock, 3 * scene->ms, on_acquired) == 0;
}

static bool connect_all(scene_t *scene) {
  belay_client_options_t options;
  belay_client_options_init(&options);
  options.timeout_ms = scene->ms;
  options.close_timeout_ms = 100;
  options.reconnect_max_ms = 20;
  for (unsigned i = 0; i < scene->nodes->n; i++)
    if (belay_connect(scene->run.belay, server_url(scene->nodes->server[i]), &options,
                      &scene->client[i]) != 0)
      return false;
  return true;
}

static void make(scene_t *scene, belay_lock_t **lock) {
  belay_lock_options_t options;
  belay_lock_options_init(&options);
  options.data = scene;
  if (scene->nodes->n == 1) {
    (void)belay_lock_new(scene->client[0], belay_string("one"), &options, lock);
    return;
  }
  options.ttl_ms = MAX_TTL_MS;
  options.max_ttl_ms = MAX_TTL_MS;
  options.watchdog = BELAY_WATCHDOG_ON;
  options.fencing = true;
  (void)belay_redlock_new(scene->client, scene->nodes->n, belay_string("one"), &options, lock);
}

static void begin(alloc_run_t *run) {
  scene_t *scene = (scene_t *)run;
  if (!connect_all(scene))
    return;
  make(scene, &scene->one);
  make(scene, &scene->two);
  begin_acquire(scene, scene->one);
  begin_acquire(scene, scene->two);
}

/* A key whose undo failed lives until its ttl ends. */
static void run_once(const belay_options_t *options, void *arg) {
  const nodes_t *nodes = arg;
  scene_t scene = {.nodes = nodes, .ms = alloc_is_patient() ? 10000 * slow() : 100};
  for (unsigned i = 0; i < nodes->n && !alloc_is_patient(); i++) {
    server_do(nodes->server[i], "FLUSHALL", NULL);
    server_do(nodes->server[i], "SCRIPT", "FLUSH", NULL);
  }
  alloc_run(&scene.run, options, begin);
  if (alloc_is_patient() && !alloc_has_failed())
    assert_int_equal(scene.granted, 2);
}

static void expect_all_end(alloc_owner_t owner, unsigned n) {
  nodes_t nodes = {.n = n};
  for (unsigned i = 0; i < n; i++)
    nodes.server[i] = server_start(NULL);
  while (n > 1 &&
         server_info(nodes.server[n - 1], "server", "uptime_in_seconds") < MAX_TTL_MS / 1000 + 2)
    usleep(50000);
  assert_true(alloc_fail_each(owner, run_once, &nodes) > 5);
  for (unsigned i = 0; i < n; i++)
    server_stop(nodes.server[i]);
}

TEST(allocations_of_belay_fail) {
  expect_all_end(ALLOC_BELAY, 1);
}

TEST(allocations_of_belay_fail_in_a_quorum) {
  needs_quorum();
  expect_all_end(ALLOC_BELAY, NODES);
}

TEST(allocations_of_hiredis_fail) {
  expect_all_end(ALLOC_HIREDIS, 1);
}
