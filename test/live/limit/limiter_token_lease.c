/* Token leasing: tokens that are taken ahead are served once, in time, or given back. */
#include "limit/state.h"
#include "support/fixtures/limit/leases.h"
#include "support/deployments/relay.h"

#define MILLI INT64_C(1000)
#define S INT64_C(1000000)
#define HOUR (3600 * S)

ENV_TEST(leased_tokens_served_and_returned) {
  for (size_t k = 0; k < LEASE_POLICIES; k++) {
    server_do(env->server, "FLUSHALL", NULL);
    belay_limiter_t *limiter = leasing_limiter(env, lease_policies[k], limits_of(k), 8, 60000);
    belay_limiter_t *other = limiter_new(env, lease_policies[k], limits_of(k));
    belay_limiter_result_t result;
    assert_int_equal(try_take(env, limiter, "k", 1, &result), BELAY_EAGAIN);
    assert_int_equal(limiter_stats(limiter).leases, 0);
    result = *take(env, limiter, "k", 3);
    assert_said(&result, BELAY_ALLOWED, BELAY_SOURCE_LEASE);
    assert_int_equal(result.retry_after_us, 0);
    assert_int_equal(result.receipt.belay_private[0], 0);
    assert_int_equal(tokens_left(env, other), 12);
    assert_int_equal(try_take(env, limiter, "k", 1, &result), 0);
    assert_said(&result, BELAY_ALLOWED, BELAY_SOURCE_LEASE);
    assert_int_equal(limiter_stats(limiter).asked, 1);
    assert_said(take(env, limiter, "k", 9), BELAY_ALLOWED, BELAY_SOURCE_SERVER); /* not leased */
    assert_int_equal(tokens_left(env, other), 3);
    assert_int_equal(limiter_stats(limiter).leases, 1);
    close_limiter(env, limiter);
    assert_in_range(tokens_left(env, other), 7, 8); /* a bucket's units are finer */
    close_limiter(env, other);
  }
}

ENV_TEST(idle_lease_returned) {
  for (size_t k = 0; k < LEASE_POLICIES; k++) {
    server_do(env->server, "FLUSHALL", NULL);
    belay_limiter_t *limiter = leasing_limiter(env, lease_policies[k], limits_of(k), 8, 100);
    belay_limiter_t *other = limiter_new(env, lease_policies[k], limits_of(k));
    assert_said(take(env, limiter, "k", 3), BELAY_ALLOWED, BELAY_SOURCE_LEASE);
    env_until(env, limiter_stats(limiter).leases == 0);
    env_settle(env);
    assert_in_range(tokens_left(env, other), 16, 17);
    assert_in_range(limiter_stats(limiter).void_tokens, 0, 1);
    close_limiter(env, limiter);
    close_limiter(env, other);
  }
}

/* The tokens of a fetch in flight at the close are returned; an unsent one is not sent. */
ENV_TEST(close_during_fetch) {
  belay_limiter_t *other = limiter_new(env, lease_policies[1], 1);
  for (int how = 0; how < 3; how++) {
    belay_client_t *client = env_connect(env, server_url(env->server), NULL);
    belay_limiter_options_t options = leasing(lease_policies[1], 1, 8, 60000);
    belay_limiter_t *limiter = limiter_with(env, client, &options);
    assert_said(take(env, limiter, "elsewhere", 1), BELAY_ALLOWED, BELAY_SOURCE_LEASE);
    server_pause(env->server);
    ask_t ask = {0};
    bool closed = false;
    start_take(env, limiter, &ask, "k", 3);
    if (how > 0)
      env_run_for(env, 10); /* now it is on its way */
    if (how < 2)
      begin_close_limiter(limiter, &closed);
    else
      assert_error(begin_close_of(env, client), 0);
    env_run_for(env, 10);
    server_resume(env->server);
    env_until(env, closed || env->client_closed > 0);
    assert_error(answer(&ask, 0)->cause, BELAY_ECANCELED);
    assert_int_equal(tokens_left(env, other), 20);
  }
}

ENV_TEST(a_client_that_closes_gives_back) {
  belay_limiter_t *other = limiter_new(env, lease_policies[1], 1);
  belay_limiter_options_t options = leasing(lease_policies[1], 1, 8, 60000);
  belay_client_t *client = env_connect(env, server_url(env->server), NULL);
  belay_limiter_t *limiter = limiter_with(env, client, &options);
  assert_said(take(env, limiter, "k", 3), BELAY_ALLOWED, BELAY_SOURCE_LEASE);
  assert_int_equal(tokens_left(env, other), 12);
  assert_error(begin_close_of(env, client), 0);
  env_until(env, env->client_closed > 0);
  assert_int_equal(tokens_left(env, other), 17);

  /* With a stalled server the close waits only for its own time limit. */
  belay_client_options_t brief = client_options();
  brief.close_timeout_ms = 50;
  client = env_connect(env, server_url(env->server), &brief);
  limiter = limiter_with(env, client, &options);
  assert_said(take(env, limiter, "k", 3), BELAY_ALLOWED, BELAY_SOURCE_LEASE);
  server_pause(env->server);
  int64_t began = clock_now();
  assert_error(begin_close_of(env, client), 0);
  env_until(env, env->client_closed > 1);
  assert_in_range(clock_since_ms(began), 49, 1500);
  server_resume(env->server);
}

/* ---- who waits for a fetch ---- */

ENV_TEST(waiting_takes_in_order) {
  for (size_t k = 0; k < LEASE_POLICIES; k++) {
    server_do(env->server, "FLUSHALL", NULL);
    belay_limiter_t *limiter = leasing_limiter(env, lease_policies[k], limits_of(k), 8, 60000);
    start_takes(env, limiter, TAKES_MAX, 1);
    env_until(env, takes_ended == TAKES_MAX);
    for (unsigned i = 0; i < TAKES_MAX; i++) {
      assert_int_equal(takes_order[i], i);
      const belay_limiter_result_t *result = &takes[i].result;
      if (i < 20) {
        assert_said(result, BELAY_ALLOWED, BELAY_SOURCE_LEASE);
      } else {
        assert_said(result, BELAY_DENIED, BELAY_SOURCE_SERVER);
        assert_true(result->retry_after_us > 0 && result->retry_after_us <= 2 * HOUR);
        assert_int_equal(result->window, k == 5);
      }
    }
    assert_in_range(limiter_stats(limiter).asked, 3, 4 + 10 * (k == 3));
    close_limiter(env, limiter);
  }
}

/* A take that is too large for the rest is denied, and a smaller one behind it is served. */
ENV_TEST(take_larger_than_remaining_tokens) {
  for (size_t k = 0; k < LEASE_POLICIES; k++) {
    server_do(env->server, "FLUSHALL", NULL);
    belay_limiter_t *limiter = leasing_limiter(env, lease_policies[k], limits_of(k), 10, 60000);
    belay_limiter_t *other = limiter_new(env, lease_policies[k], limits_of(k));
    static const int64_t costs[] = {2, 9, 10, 1};
    static ask_t asks[4];
    memset(asks, 0, sizeof asks);
    assert_said(take(env, other, "k", 6), BELAY_ALLOWED, BELAY_SOURCE_SERVER);
    for (int i = 0; i < 4; i++)
      start_take(env, limiter, &asks[i], "k", costs[i]);
    assert_said(answer(&asks[0], 0), BELAY_ALLOWED, BELAY_SOURCE_LEASE);
    assert_said(answer(&asks[1], 0), BELAY_ALLOWED, BELAY_SOURCE_LEASE);
    assert_said(answer(&asks[2], 0), BELAY_DENIED, BELAY_SOURCE_SERVER);
    assert_true(asks[2].result.retry_after_us > 0);
    assert_said(answer(&asks[3], 0), BELAY_ALLOWED, BELAY_SOURCE_LEASE);
    close_limiter(env, limiter);
    assert_in_range(tokens_left(env, other), 1, 2);
    close_limiter(env, other);
  }
}

/* A denial is remembered with the tokens that the server would not add to the rest. */
ENV_TEST(denial_counts_remaining_tokens) {
  belay_limiter_options_t options = leasing(lease_policies[1], 1, 8, 60000);
  options.max_denied = 10;
  belay_limiter_t *limiter = limiter_with(env, env->client, &options);
  belay_limiter_t *other = limiter_new(env, lease_policies[1], 1);
  assert_said(take(env, other, "k", 11), BELAY_ALLOWED, BELAY_SOURCE_SERVER);
  assert_said(take(env, limiter, "k", 6), BELAY_ALLOWED, BELAY_SOURCE_LEASE);
  assert_said(take(env, limiter, "k", 4), BELAY_DENIED, BELAY_SOURCE_SERVER); /* 2 here, 1 there */
  assert_said(take(env, limiter, "k", 4), BELAY_DENIED, BELAY_SOURCE_DENIAL);
  assert_said(take(env, limiter, "k", 3), BELAY_ALLOWED, BELAY_SOURCE_LEASE);
  assert_said(take(env, limiter, "k", 1), BELAY_DENIED, BELAY_SOURCE_DENIAL);
  assert_int_equal(limiter_stats(limiter).asked, 3);
}

/* The queue and the table of keys are full: all other takes ask the server themselves. */
ENV_TEST(token_lease_limits) {
  belay_limit_t limit = {.kind = BELAY_LIMIT_FIXED, .count = 100, .period_us = HOUR};
  belay_limiter_options_t options = leasing(&limit, 1, 4, 60000);
  options.max_waiting = 2;
  options.max_leases = 2;
  belay_limiter_t *limiter = limiter_with(env, env->client, &options);
  start_takes(env, limiter, 6, 1);
  env_until(env, takes_ended == 6);
  for (int i = 0; i < 6; i++)
    assert_said(&takes[i].result, BELAY_ALLOWED, i < 2 ? BELAY_SOURCE_LEASE : BELAY_SOURCE_SERVER);
  assert_said(take(env, limiter, "second", 1), BELAY_ALLOWED, BELAY_SOURCE_LEASE);
  assert_said(take(env, limiter, "third", 1), BELAY_ALLOWED, BELAY_SOURCE_SERVER);
  assert_int_equal(limiter_stats(limiter).leases, 2);
  options.max_waiting = options.max_leases = 0;
  limiter = limiter_with(env, env->client, &options);
  assert_said(take(env, limiter, "k", 1), BELAY_ALLOWED, BELAY_SOURCE_SERVER);
}

static belay_limiter_t *to_close;

static void cancel_next(ask_t *ask) {
  if (ask + 1 < takes + TAKES_MAX && ask[1].begun > ask[1].ended)
    assert_error(belay_request_cancel(&ask[1].request), 0);
}

static void close_it(ask_t *ask) {
  (void)ask;
  if (to_close != NULL)
    assert_error(belay_limiter_close(to_close, NULL), 0);
  to_close = NULL;
}

/* Canceled in callbacks; closed in one; and a client that is closed while some wait. */
ENV_TEST(canceled_takes_of_a_lease) {
  belay_limiter_t *limiter = leasing_limiter(env, lease_policies[1], 1, 2, 60000);
  start_takes(env, limiter, 10, 1);
  for (int i = 0; i < 10; i++)
    takes[i].then = cancel_next;
  assert_error(belay_request_cancel(&takes[3].request), 0);
  for (int i = 0; i < 10; i++)
    answer(&takes[i], 0);
  unsigned allowed = 0;
  for (int i = 0; i < 10; i++) {
    assert_true(takes[i].result.cause == 0 || takes[i].result.cause == BELAY_ECANCELED);
    allowed += takes[i].result.verdict == BELAY_ALLOWED;
  }
  assert_error(takes[3].result.cause, BELAY_ECANCELED);
  assert_in_range(allowed, 2, 7);
  belay_limiter_t *other = limiter_new(env, lease_policies[1], 1);
  assert_in_range(tokens_left(env, other), 20 - allowed - 2, 20 - allowed);
  start_takes(env, limiter, 10, 1);
  takes[1].then = close_it;
  to_close = limiter;
  for (int i = 0; i < 10; i++)
    answer(&takes[i], 0);
  assert_error(takes[9].result.cause, BELAY_ECANCELED);
  env_settle(env);
  limiter = leasing_limiter(env, lease_policies[1], 1, 5, 60000);
  start_takes(env, limiter, 10, 1);
  assert_error(begin_client_close(env), 0);
  for (int i = 0; i < 10; i++)
    assert_error(answer(&takes[i], 0)->cause, BELAY_ECANCELED);
}

/* Its own time, not the fetch's. */
ENV_TEST(deadline_of_waiting_take) {
  belay_limiter_t *limiter = leasing_limiter(env, lease_policies[1], 1, 5, 60000);
  ask_t ask = {0}, patient = {0};
  ask.request.timeout_ms = 50;
  assert_said(take(env, limiter, "elsewhere", 1), BELAY_ALLOWED, BELAY_SOURCE_LEASE);
  server_pause(env->server);
  int64_t began = clock_now();
  start_take(env, limiter, &patient, "k", 1);
  start_take(env, limiter, &ask, "k", 1);
  assert_error(answer(&ask, 0)->cause, BELAY_EUNKNOWN);
  assert_int_equal(ask.result.verdict, BELAY_INDETERMINATE);
  assert_in_range(clock_since_ms(began), 49, 1500);
  server_resume(env->server);
  assert_said(answer(&patient, 0), BELAY_ALLOWED, BELAY_SOURCE_LEASE);

  /* A try does not overtake waiting takes. */
  belay_limiter_result_t result;
  server_pause(env->server);
  start_take(env, limiter, &patient, "k", 5);
  assert_int_equal(try_take(env, limiter, "k", 1, &result), BELAY_EAGAIN);
  server_resume(env->server);
  assert_said(answer(&patient, 0), BELAY_ALLOWED, BELAY_SOURCE_LEASE);
}
