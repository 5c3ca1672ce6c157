/* Each allocation under batched calls fails in turn, belay's own and then hiredis's. Every
 * callback runs once, nothing leaks, and the server's counts match the results: a reported
 * success was executed once, a reported "not sent" never. */
#include <belay.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "support/base/alloc.h"
#include "support/base/clock.h"
#include "support/servers/server.h"
#include "support/base/test.h"

#define TAKES 20
#define COST(i) (1 + (i) % 2) /* equal takes would share a call instead of a batch */
#define COSTS (TAKES * 3 / 2)
#define ROUNDS 2
#define TOKENS 1000
#define HOUR_US INT64_C(3600000000)

/* ---- the scenario: two rounds of concurrent takes, and a peek ---- */

typedef struct play {
  uv_loop_t loop;
  belay_t *belay;
  belay_client_t *client;
  belay_limiter_t *limiter;
  belay_request_t requests[TAKES], last;
  int pending, round;
  int done, unknown; /* tokens of the takes */
  int64_t counted;   /* by the server; -1: it could not be asked */
  uint64_t joined;
} play_t;

static void ask(play_t *play);

static void on_last(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  play_t *play = request->data;
  belay_client_stats_t stats;
  if (status == 0)
    play->counted = TOKENS - 1 - result->remaining;
  belay_client_stats(play->client, &stats);
  play->joined = stats.batched;
  assert_int_equal(belay_close(play->belay, NULL), 0);
}

static void ask_at_last(play_t *play) {
  play->last.data = play;
  if (belay_limiter_take(play->limiter, &play->last, belay_string("key"), 1, on_last) != 0)
    assert_int_equal(belay_close(play->belay, NULL), 0);
}

static void over(play_t *play) {
  if (--play->pending > 0)
    return;
  if (++play->round < ROUNDS)
    ask(play);
  else
    ask_at_last(play);
}

static void on_answer(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  play_t *play = request->data;
  int cost = COST((int)(request - play->requests));
  (void)result;
  play->done += status == 0 ? cost : 0;
  play->unknown += status == BELAY_EUNKNOWN ? cost : 0;
  over(play);
}

static void ask(play_t *play) {
  play->pending = 1;
  for (int i = 0; i < TAKES; i++) {
    play->requests[i] = (belay_request_t){.data = play};
    play->pending += belay_limiter_take(play->limiter, &play->requests[i], belay_string("key"),
                                        COST(i), on_answer) == 0;
  }
  over(play);
}

static int make(play_t *play, const char *url) {
  belay_client_options_t client;
  belay_client_options_init(&client);
  client.timeout_ms = 10000 * slow();
  client.reconnect_max_ms = 20;
  belay_limit_t limit = {.kind = BELAY_LIMIT_FIXED, .count = TOKENS, .period_us = HOUR_US};
  belay_limiter_options_t options;
  belay_limiter_options_init(&options);
  options.limits = &limit;
  options.limits_len = 1;
  int error = belay_connect(play->belay, url, &client, &play->client);
  return error != 0 ? error : belay_limiter_new(play->client, &options, &play->limiter);
}

static void run(const belay_options_t *options, void *server) {
  static play_t play;
  play = (play_t){.counted = -1};
  server_do(server, "FLUSHALL", NULL);
  server_do(server, "SCRIPT", "FLUSH", NULL);
  assert_int_equal(uv_loop_init(&play.loop), 0);
  int error = belay_open(&play.loop, options, &play.belay);
  if (error == 0) {
    error = make(&play, server_url(server));
    if (error == 0)
      ask(&play);
    else
      assert_int_equal(belay_close(play.belay, NULL), 0);
  }
  assert_true(error == 0 || error == BELAY_ENOMEM);
  (void)uv_run(&play.loop, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&play.loop), 0);
  if (play.counted >= 0)
    assert_between(play.counted, play.done, play.done + play.unknown);
  if (alloc_has_failed())
    return;
  assert_int_equal(play.done, ROUNDS * COSTS);
  assert_int_equal(play.counted, ROUNDS * COSTS);
  assert_true(play.joined >= TAKES);
}

TEST_ON(belay_allocation_failure, server, server_start(NULL)) {
  assert_true(alloc_fail_each(ALLOC_BELAY, run, server) > 5);
}

TEST_ON(hiredis_allocation_failure, server, server_start(NULL)) {
  assert_true(alloc_fail_each(ALLOC_HIREDIS, run, server) > 5);
}
