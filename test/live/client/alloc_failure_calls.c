/* Memory runs out: every single allocation is made to fail in turn, belay's own and then hiredis's. Whatever
 * fails, nothing crashes, nothing leaks, every callback comes exactly once, and a lock that is said to be held
 * is on the server. */
#include <belay.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "support/base/alloc.h"
#include "support/base/clock.h"
#include "support/servers/server.h"
#include "support/base/test.h"

#define NODES 3
#define MAX_TTL_MS 1000 /* of the quorum's namespace; servers that have been up for longer vote */

/* The servers; one: a plain lock, several: Redlock, with all that it can have. */
typedef struct cast {
  unsigned n;
  server_t *server[NODES];
} cast_t;

typedef struct play {
  const cast_t *cast;
  belay_t *belay;
  belay_client_t *client[NODES];
  belay_lock_t *one, *two;
  int pending; /* callbacks that are owed */
  int granted;
  bool closed;
  int64_t ms; /* for a call; for an acquire three times that */
} play_t;

/* ---- the play: two contenders, a wait, an extend, two releases, a close -------------------------------- */

static void on_closed(belay_t *belay, void *data) {
  (void)belay;
  ((play_t *)data)->closed = true;
}

static void end_when_quiet(play_t *play) {
  if (play->pending == 0)
    assert_int_equal(belay_close(play->belay, on_closed), 0);
}

static void on_released(belay_lock_t *lock, int status) {
  (void)status;
  play_t *play = belay_lock_data(lock);
  play->pending--;
  end_when_quiet(play);
}

static void release(play_t *play, belay_lock_t *lock) {
  if (belay_lock_release(lock, 200, on_released) == 0)
    play->pending++;
  end_when_quiet(play);
}

static void on_extended(belay_lock_t *lock, int status) {
  (void)status;
  play_t *play = belay_lock_data(lock);
  play->pending--;
  release(play, lock);
}

/* On how many servers a lock that is held is. */
static unsigned holding(const play_t *play, belay_lock_t *lock) {
  unsigned count = 0;
  size_t len;
  char token[128];
  const char *key = belay_lock_key(lock, &len);
  char name[64];
  assert_true(len < sizeof name);
  memcpy(name, key, len);
  name[len] = '\0';
  assert_true(belay_lock_token(lock, token, sizeof token) < sizeof token);
  for (unsigned i = 0; i < play->cast->n; i++) {
    const char *value = server_string(play->cast->server[i], "GET", name, NULL);
    count += value != NULL && strcmp(value, token) == 0;
  }
  return count;
}

static void on_acquired(belay_lock_t *lock, int status) {
  play_t *play = belay_lock_data(lock);
  play->pending--;
  if (status != 0) {
    end_when_quiet(play);
    return;
  }
  assert_true(holding(play, lock) >= play->cast->n / 2 + 1);
  assert_int_equal(belay_lock_fence(lock) > 0, play->cast->n > 1);
  play->granted++;
  if (belay_lock_extend(lock, BELAY_DEFAULT, 2 * play->ms, on_extended) == 0)
    play->pending++;
  else
    release(play, lock);
}

static void begin(play_t *play, belay_lock_t *lock) {
  if (lock != NULL && belay_lock_acquire(lock, 3 * play->ms, on_acquired) == 0)
    play->pending++;
}

static bool connect_all(play_t *play) {
  belay_client_options_t options;
  belay_client_options_init(&options);
  options.timeout_ms = play->ms;
  options.close_timeout_ms = 100;
  options.reconnect_max_ms = 20;
  for (unsigned i = 0; i < play->cast->n; i++)
    if (belay_connect(play->belay, server_url(play->cast->server[i]), &options, &play->client[i]) !=
        0)
      return false;
  return true;
}

static void make(play_t *play, belay_lock_t **lock) {
  belay_lock_options_t options;
  belay_lock_options_init(&options);
  options.data = play;
  if (play->cast->n == 1) {
    (void)belay_lock_new(play->client[0], belay_string("one"), &options, lock);
    return;
  }
  options.ttl_ms = MAX_TTL_MS;
  options.max_ttl_ms = MAX_TTL_MS;
  options.watchdog = BELAY_WATCHDOG_ON;
  options.fencing = true;
  (void)belay_redlock_new(play->client, play->cast->n, belay_string("one"), &options, lock);
}

static void perform(play_t *play, const belay_options_t *options) {
  uv_loop_t loop;
  assert_int_equal(uv_loop_init(&loop), 0);
  if (belay_open(&loop, options, &play->belay) == 0) {
    belay_set_data(play->belay, play);
    if (connect_all(play)) {
      make(play, &play->one);
      make(play, &play->two);
    }
    begin(play, play->one);
    begin(play, play->two);
    end_when_quiet(play);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(play->closed);
    assert_int_equal(play->pending, 0);
  }
  assert_int_equal(uv_loop_close(&loop), 0);
}

/* A key whose undo failed lives until its ttl ends. */
static void run(const belay_options_t *options, void *arg) {
  const cast_t *cast = arg;
  play_t play = {.cast = cast, .ms = alloc_is_patient() ? 10000 * slow() : 100};
  for (unsigned i = 0; i < cast->n && !alloc_is_patient(); i++) {
    server_do(cast->server[i], "FLUSHALL", NULL);
    server_do(cast->server[i], "SCRIPT", "FLUSH", NULL);
  }
  perform(&play, options);
  if (alloc_is_patient() && !alloc_has_failed())
    assert_int_equal(play.granted, 2);
}

static void expect_all_end(alloc_owner_t owner, unsigned n) {
  cast_t cast = {.n = n};
  for (unsigned i = 0; i < n; i++)
    cast.server[i] = server_start(NULL);
  while (n > 1 &&
         server_info(cast.server[n - 1], "server", "uptime_in_seconds") < MAX_TTL_MS / 1000 + 2)
    usleep(50000);
  assert_true(alloc_fail_each(owner, run, &cast) > 5);
  for (unsigned i = 0; i < n; i++)
    server_stop(cast.server[i]);
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
