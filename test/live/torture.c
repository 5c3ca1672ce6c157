/* Memory runs out: every single allocation is made to fail in turn, belay's own and then hiredis's. Whatever
 * fails, nothing crashes, nothing leaks, every callback comes exactly once, and a lock that is said to be held
 * is on the server. */
#include <belay.h>
#include <hiredis/alloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "support/server.h"
#include "support/unit.h"

#define TURNS_MAX 2000 /* more allocations than a play makes */

typedef struct meter {
  size_t allocations, fail_at; /* fail_at 0: never */
  size_t live;
} meter_t;

typedef struct play {
  server_t *server;
  belay_t *belay;
  belay_client_t *client;
  belay_lock_t *one, *two;
  int pending; /* callbacks that are owed */
  int granted;
  bool closed;
} play_t;

static meter_t meter;

static void *metered_alloc(void *ctx, size_t size) {
  meter_t *m = ctx;
  if (++m->allocations == m->fail_at)
    return NULL;
  void *p = malloc(size);
  assert_non_null(p);
  m->live++;
  return p;
}

static void metered_free(void *ctx, void *ptr) {
  ((meter_t *)ctx)->live--;
  free(ptr);
}

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

static void on_acquired(belay_lock_t *lock, int status) {
  play_t *play = belay_lock_data(lock);
  play->pending--;
  if (status != 0) {
    end_when_quiet(play);
    return;
  }
  size_t len;
  char token[128];
  const char *key = belay_lock_key(lock, &len);
  char name[64];
  assert_true(len < sizeof name);
  memcpy(name, key, len);
  name[len] = '\0';
  assert_true(belay_lock_token(lock, token, sizeof token) < sizeof token);
  assert_string_equal(server_string(play->server, "GET", name, NULL), token);
  play->granted++;
  if (belay_lock_extend(lock, 20000, 200, on_extended) == 0)
    play->pending++;
  else
    release(play, lock);
}

static void begin(play_t *play, belay_lock_t *lock) {
  if (lock != NULL && belay_lock_acquire(lock, 300, on_acquired) == 0)
    play->pending++;
}

static void perform(play_t *play, const belay_options_t *options) {
  uv_loop_t loop;
  assert_int_equal(uv_loop_init(&loop), 0);
  if (belay_open(&loop, options, &play->belay) == 0) {
    belay_set_data(play->belay, play);
    belay_client_options_t co;
    belay_client_options_init(&co);
    co.timeout_ms = 100;
    co.close_timeout_ms = 100;
    co.reconnect_max_ms = 20;
    belay_lock_options_t lo;
    belay_lock_options_init(&lo);
    lo.data = play;
    if (belay_connect(play->belay, server_url(play->server), &co, &play->client) == 0) {
      (void)belay_lock_new(play->client, "one", 3, &lo, &play->one);
      (void)belay_lock_new(play->client, "one", 3, &lo, &play->two);
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

static void play_until_nothing_fails(void (*use)(server_t *server)) {
  server_t *server = server_start(NULL);
  int turn = 0;
  do {
    meter = (meter_t){.fail_at = (size_t)++turn};
    assert_true(turn < TURNS_MAX);
    server_do(server, "FLUSHALL", NULL); /* what an undo could not be made for lives for its ttl */
    server_do(server, "SCRIPT", "FLUSH", NULL);
    use(server);
    assert_int_equal(meter.live, 0);
  } while (meter.allocations >= meter.fail_at);
  assert_true(turn > 5);
  server_stop(server);
}

/* ---- belay's own --------------------------------------------------------------------------------------- */

static void with_failing_belay(server_t *server) {
  belay_options_t options;
  belay_options_init(&options);
  options.allocator = (belay_allocator_t){metered_alloc, metered_free, &meter};
  play_t play = {.server = server};
  perform(&play, &options);
  if (meter.allocations < meter.fail_at)
    assert_int_equal(play.granted, 2);
}

static void test_every_allocation_of_belays_may_fail(void **state) {
  (void)state;
  play_until_nothing_fails(with_failing_belay);
}

/* ---- hiredis's ----------------------------------------------------------------------------------------- */

static void *failing_malloc(size_t size) {
  return ++meter.allocations == meter.fail_at ? NULL : malloc(size);
}

static void *failing_calloc(size_t n, size_t size) {
  return ++meter.allocations == meter.fail_at ? NULL : calloc(n, size);
}

static void *failing_realloc(void *ptr, size_t size) {
  return ++meter.allocations == meter.fail_at ? NULL : realloc(ptr, size);
}

static char *failing_strdup(const char *text) {
  return ++meter.allocations == meter.fail_at ? NULL : strdup(text);
}

static void with_failing_hiredis(server_t *server) {
  hiredisAllocFuncs funcs = {failing_malloc, failing_calloc, failing_realloc, failing_strdup, free};
  hiredisSetAllocators(&funcs);
  play_t play = {.server = server};
  perform(&play, NULL);
  hiredisResetAllocators();
  if (meter.allocations < meter.fail_at)
    assert_int_equal(play.granted, 2);
}

static void test_every_allocation_of_hiredis_may_fail(void **state) {
  (void)state;
  play_until_nothing_fails(with_failing_hiredis);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_allocation_of_belays_may_fail),
      cmocka_unit_test(test_every_allocation_of_hiredis_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
