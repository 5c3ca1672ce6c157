/* Each allocation of a limiter with denial cache, token leasing and fallback fails in turn.
 * Every callback runs once, nothing leaks, and no take passes the limit. */
#include <belay.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "support/servers/server.h"
#include "support/base/alloc.h"
#include "support/base/test.h"

#define S INT64_C(1000000)
#define TAKES 12

typedef struct play {
  uv_loop_t loop;
  belay_t *belay;
  belay_limiter_t *limiter, *alone, *plain;
  belay_request_t requests[TAKES], others[TAKES], ban, plain_requests[8];
  int pending, allowed, plain_ended, plain_allowed, round;
} play_t;

static void ask(play_t *play);

static void over(play_t *play) {
  if (--play->pending > 0)
    return;
  if (++play->round < 3) {
    ask(play);
    return;
  }
  assert_int_equal(belay_close(play->belay, NULL), 0);
}

static void on_answer(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  play_t *play = request->data;
  (void)status;
  play->allowed += result->verdict == BELAY_ALLOWED;
  over(play);
}

static void on_other(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  (void)status;
  (void)result;
  over(request->data);
}

static void on_plain(belay_request_t *request, int status, const belay_limiter_result_t *result) {
  play_t *play = request->data;
  (void)status;
  play->plain_allowed += result->verdict == BELAY_ALLOWED;
  if (play->plain_ended++ == 0) /* the callback begins another operation */
    play->pending += belay_limiter_peek(play->plain, request, belay_string("k"), on_plain) == 0;
  over(play);
}

/* All operations. */
static void begin_plain(play_t *play) {
  belay_limiter_t *l = play->plain;
  belay_request_t *q = play->plain_requests;
  belay_bytes_t k = belay_string("k");
  belay_receipt_t receipt = {{1}};
  for (int i = 0; i < 8; i++)
    q[i] = (belay_request_t){.data = play};
  play->pending += belay_limiter_take(l, &q[0], k, 1, on_plain) == 0;
  play->pending += belay_limiter_take(l, &q[1], k, 100, on_plain) == 0;
  play->pending += belay_limiter_penalty(l, &q[2], k, 1, on_plain) == 0;
  play->pending += belay_limiter_refund(l, &q[3], k, &receipt, 1, on_plain) == 0;
  play->pending += belay_limiter_reserve(l, &q[4], k, 1, S, on_plain) == 0;
  play->pending += belay_limiter_wait(l, &q[5], k, 1, S, on_plain) == 0;
  play->pending += belay_limiter_wait(l, &q[6], belay_string("j"), 1, S, on_plain) == 0;
  play->pending += belay_limiter_reset(l, &q[7], k, on_plain) == 0;
}

/* Some from slices and denials, some from a server that is not there; then the policy is another
 * one. */
static void ask(play_t *play) {
  play->pending = 1;
  if (play->round == 0)
    begin_plain(play);
  for (int i = 0; i < TAKES; i++) {
    const char *key = i % 3 == 0 ? "one" : "two";
    play->requests[i] = play->others[i] = (belay_request_t){.data = play};
    play->pending += belay_limiter_take(play->limiter, &play->requests[i], belay_bytes(key, 3),
                                        1 + i % 2, on_answer) == 0;
    char other[2] = {(char)('a' + i), 0};
    play->pending +=
        belay_limiter_take(play->alone, &play->others[i], belay_bytes(other, 1), 1, on_other) == 0;
  }
  if (play->round == 1) {
    belay_limit_t limit = {.kind = BELAY_LIMIT_FIXED, .count = 5, .period_us = 3600 * S};
    (void)belay_limiter_reconfigure(play->limiter, &limit, 1);
    play->ban = (belay_request_t){.data = play};
    play->pending +=
        belay_limiter_ban(play->limiter, &play->ban, belay_string("two"), 60 * S, on_other) == 0;
  }
  over(play);
}

static int make(play_t *play, const char *url, bool alone, belay_limiter_t **out) {
  belay_client_options_t client_options;
  belay_client_options_init(&client_options);
  client_options.timeout_ms = alone ? 5 : 2000;
  client_options.close_timeout_ms = 200;
  belay_limit_t limit = {.kind = BELAY_LIMIT_FIXED, .count = 6, .period_us = 3600 * S};
  belay_limiter_options_t options;
  belay_limiter_options_init(&options);
  options.limits = &limit;
  options.limits_len = 1;
  options.lease_tokens = alone ? 0 : 4;
  options.lease_ms = 60000;
  options.away = alone ? BELAY_AWAY_LOCAL : BELAY_AWAY_UNKNOWN;
  options.max_away = 5;
  belay_client_t *client;
  int error = belay_connect(play->belay, url, &client_options, &client);
  return error != 0 ? error : belay_limiter_new(client, &options, out);
}

/* It also gets another policy. */
static int make_plain(play_t *play, const char *url) {
  belay_limit_t limits[2] = {
      {.kind = BELAY_LIMIT_BUCKET, .count = 1000, .period_us = S, .burst = 10},
      {.kind = BELAY_LIMIT_BUCKET, .count = 1000, .period_us = S, .burst = 20}};
  belay_client_t *client;
  belay_limiter_options_t options;
  belay_limiter_options_init(&options);
  options.name = belay_string("plain");
  options.limits = limits;
  options.limits_len = 2;
  int error = belay_connect(play->belay, url, NULL, &client);
  if (error == 0)
    error = belay_limiter_new(client, &options, &play->plain);
  if (error == 0)
    (void)belay_limiter_reconfigure(play->plain, limits, 1);
  return error;
}

static void run(const belay_options_t *options, void *server) {
  static play_t play;
  play = (play_t){0};
  server_do(server, "FLUSHALL", NULL);
  assert_int_equal(uv_loop_init(&play.loop), 0);
  int error = belay_open(&play.loop, options, &play.belay);
  if (error == 0) {
    error = make(&play, server_url(server), false, &play.limiter);
    if (error == 0)
      error = make(&play, "unix:///nowhere/at/all", true, &play.alone);
    if (error == 0)
      error = make_plain(&play, server_url(server));
    if (error == 0)
      ask(&play);
    else
      assert_int_equal(belay_close(play.belay, NULL), 0);
  }
  assert_true(error == 0 || error == BELAY_ENOMEM);
  while (uv_run(&play.loop, UV_RUN_ONCE) != 0) {
  }
  assert_int_equal(uv_loop_close(&play.loop), 0);
  assert_true(play.allowed <= 2 * 6);
  assert_true(error != 0 || play.round == 3);
  if (alloc_is_patient() && !alloc_has_failed())
    assert_int_equal(play.plain_allowed, 8);
}

TEST_ON(allocations_fail, server, server_start(NULL)) {
  assert_true(alloc_fail_each(ALLOC_BELAY, run, server) > 40);
}
