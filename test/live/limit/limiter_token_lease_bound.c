/* Token leasing: validity and number of leased tokens, and events that void them. */
#include "limit/state.h"
#include "support/fixtures/limit/leases.h"
#include "support/deployments/relay.h"

#define MILLI INT64_C(1000)
#define S INT64_C(1000000)
#define HOUR (3600 * S)

/* ---- time ---- */

/* A server stands still: its leased tokens become void in time and cannot be returned. */
ENV_TEST_OF(leased_tokens_expire, o.timeout_ms = prompt_ms()) {
  const int64_t ms = 2 * prompt_ms();
  belay_limiter_t *limiter = leasing_limiter(env, lease_policies[1], 1, 8, (uint32_t)ms);
  belay_limiter_result_t result;
  int64_t began = clock_now();
  assert_said(take(env, limiter, "k", 1), BELAY_ALLOWED, BELAY_SOURCE_LEASE);
  server_pause(env->server);
  int64_t served = 0;
  while (clock_since_ms(began) < ms + 100) {
    int error = try_take(env, limiter, "k", 1, &result);
    if (error == 0) {
      served++;
      assert_said(&result, BELAY_ALLOWED, BELAY_SOURCE_LEASE);
      assert_true(clock_since_ms(began) <= ms);
    } else {
      assert_int_equal(error, BELAY_EAGAIN);
      if (clock_since_ms(began) > ms + 5)
        break;
    }
    env_run_for(env, ms / 5); /* not so long that it is idle */
  }
  assert_in_range(served, 1, 5);
  ask_t ask = {0};
  start_take(env, limiter, &ask, "k", 1);
  assert_error(answer(&ask, 0)->cause, BELAY_EUNKNOWN);
  env_until(env, limiter_stats(limiter).void_tokens == 8 - 1 - (uint64_t)served);
  server_resume(env->server);

  /* Also if the loop was stalled. */
  const int64_t brief = prompt_ms();
  limiter = leasing_limiter(env, lease_policies[1], 1, 8, (uint32_t)brief);
  for (int away = 0; away < 2; away++) {
    assert_said(take(env, limiter, "other", 1), BELAY_ALLOWED, BELAY_SOURCE_LEASE);
    stall_ms(away * (brief + 50));
    assert_int_equal(try_take(env, limiter, "other", 1, &result), away ? BELAY_EAGAIN : 0);
  }
}

/* Void tokens are returned, although the key is in use. */
ENV_TEST(expired_leases_returned) {
  belay_limiter_t *limiter = leasing_limiter(env, lease_policies[1], 1, 8, 200);
  belay_limiter_t *other = limiter_new(env, lease_policies[1], 1);
  int64_t used = 0;
  for (int64_t began = clock_now(); clock_since_ms(began) < 260;) {
    const belay_limiter_result_t *result = take(env, limiter, "k", 1);
    if (result->verdict != BELAY_ALLOWED) /* this machine stands still */
      break;
    used++;
    env_run_for(env, 45);
  }
  env_settle(env);
  assert_true(tokens_left(env, other) >= 20 - used - 8);
  close_limiter(env, limiter);
  assert_int_equal(tokens_left(env, other), 20 - used);
}

/* The reply comes after the deadline: the granted tokens are returned, and are not used. */
TEST(late_fetch_reply) {
  for (int how = 0; how < 2; how++) {
    belay_client_options_t options = client_options();
    options.timeout_ms = prompt_ms();
    env_t *env = env_open(&options);
    belay_limiter_t *limiter = leasing_limiter(env, lease_policies[how == 0 ? 1 : 3], 1, 8, 60000);
    belay_limiter_t *other = limiter_new(env, lease_policies[how == 0 ? 1 : 3], 1);
    assert_int_equal(tokens_left(env, other), 20);
    ask_t ask = {0};
    server_pause(env->server);
    start_take(env, limiter, &ask, "k", 1);
    assert_error(answer(&ask, 0)->cause, BELAY_EUNKNOWN);
    server_resume(env->server);
    env_until(env, client_stats(env).settled_late > 0);
    env_settle(env);
    assert_int_equal(tokens_left(env, other), 20);
    assert_int_equal(limiter_stats(limiter).void_tokens, 0);
    belay_limiter_result_t result;
    assert_int_equal(try_take(env, limiter, "k", 1, &result), BELAY_EAGAIN);
    env_close(env);
  }
}

/* Longer on its way than it is good for: it goes back, and each asks for itself. */
RELAY_TEST(lease_expired_on_arrival) {
  belay_limiter_t *limiter = leasing_limiter(env, lease_policies[1], 1, 8, 20);
  assert_int_equal(tokens_left(env, limiter), 20);
  relay_delay(env->relay, 20);
  start_takes(env, limiter, 3, 1);
  env_until(env, takes_ended == 3);
  for (int i = 0; i < 3; i++)
    assert_said(&takes[i].result, BELAY_ALLOWED, BELAY_SOURCE_SERVER);
  relay_delay(env->relay, 0);
  env_settle(env);
  assert_int_equal(tokens_left(env, limiter), 17);
}

/* ---- the bound ---- */

typedef struct worker {
  belay_limiter_t *limiter;
  ask_t ask;
  uint64_t admitted, slices;
} worker_t;

static void count(worker_t *worker, const belay_limiter_result_t *result) {
  worker->admitted += result->verdict == BELAY_ALLOWED;
  worker->slices += result->source == BELAY_SOURCE_LEASE;
}

static void hammer(env_t *env, worker_t *worker) {
  belay_limiter_result_t result;
  for (int i = 0; i < 20; i++) {
    if (try_take(env, worker->limiter, "k", 1, &result) != 0)
      break;
    count(worker, &result);
  }
  if (worker->ask.begun != worker->ask.ended)
    return;
  if (worker->ask.ended > 0)
    count(worker, &worker->ask.result);
  start_take(env, worker->limiter, &worker->ask, "k", 1);
}

/* Two clients, each with slices of the same bucket, as fast as they can: no interval has more than
 * the policy admits in it and lease_ms; and nearly all that it admits is used. */
ENV_TEST(two_clients_and_the_bound) {
  belay_limit_t limit = bucket_limit(1000, S, 50);
  belay_limiter_options_t options = leasing(&limit, 1, 25, 100);
  options.max_denied = 10;
  worker_t workers[2] = {{0}};
  workers[0].limiter = limiter_with(env, env->client, &options);
  workers[1].limiter = limiter_with(env, env_connect(env, server_url(env->server), NULL), &options);
  enum { SAMPLES = 4096 };
  static struct {
    int64_t at;
    uint64_t admitted;
  } samples[SAMPLES];
  size_t n = 0;
  int64_t began = clock_now();
  while (clock_since_ms(began) < 1000 && n < SAMPLES) {
    samples[n].at = clock_now();
    samples[n++].admitted = workers[0].admitted + workers[1].admitted;
    for (int spin = 0; spin < 5; spin++) {
      hammer(env, &workers[0]);
      hammer(env, &workers[1]);
      uv_run(&env->loop, UV_RUN_NOWAIT);
    }
  }
  uint64_t all = workers[0].admitted + workers[1].admitted;
  int64_t ms = clock_since_ms(began),
          used = 0; /* tokens that accrue in a pause longer than the burst are lost */
  for (size_t i = 0; i + 1 < n; i++) {
    int64_t turn = samples[i + 1].at - samples[i].at;
    used += turn < 50 * MS ? turn : 50 * MS;
  }
  for (size_t i = 0; i + 1 < n; i++) {
    size_t j = i + 1 + (i * 7919) % (n - i - 1 > 0 ? n - i - 1 : 1);
    if (j >= n)
      continue;
    /* tokens counted between two samples were admitted between the first sample and the one
     * after */
    int64_t d = (samples[j].at - samples[i].at) / 1000000 + 1;
    assert_true((int64_t)(samples[j].admitted - samples[i].admitted) <= 50 + d + 100 + 2);
  }
  assert_true((int64_t)all <= 50 + ms + 100);
  assert_true(all >= (uint64_t)(used / MS * 7 / 10 / slow()));
  assert_true(workers[0].slices > 0 && workers[1].slices > 0);
  env_until(env, workers[0].ask.begun == workers[0].ask.ended &&
                     workers[1].ask.begun == workers[1].ask.ended);
}

/* Tokens are fetched ahead in small steps, so that no take waits. At most one lease is out. */
ENV_TEST(lease_refilled_ahead) {
  belay_limit_t limit = {.kind = BELAY_LIMIT_FIXED, .count = 10000, .period_us = HOUR};
  belay_limiter_t *limiter = leasing_limiter(env, &limit, 1, 16, 60000);
  belay_limiter_t *other = limiter_new(env, &limit, 1);
  belay_limiter_result_t result;
  assert_said(take(env, limiter, "k", 1), BELAY_ALLOWED, BELAY_SOURCE_LEASE);
  int64_t used = 1;
  for (int i = 0; i < 200; i++) {
    assert_int_equal(try_take(env, limiter, "k", 1, &result), 0);
    used++;
    env_settle(env);
    assert_true(tokens_left(env, other) >= 10000 - used - 16);
  }
  assert_in_range(limiter_stats(limiter).asked, 200 / 16, 200 / 12 + 2);
  for (int i = 0; i < 12; i++)
    (void)try_take(env, limiter, "k", 1, &result);
  uint64_t before = limiter_stats(limiter).asked;
  for (int i = 0; i < 10; i++) /* one at a time */
    (void)try_take(env, limiter, "k", 16, &result);
  assert_true(limiter_stats(limiter).asked <= before + 1);
}

/* Nothing is fetched ahead from a server that has said that it has no more. */
ENV_TEST(no_fetch_ahead_after_denial) {
  for (size_t k = 0; k < LEASE_POLICIES; k++) {
    server_do(env->server, "FLUSHALL", NULL);
    belay_limiter_t *limiter = leasing_limiter(env, lease_policies[k], limits_of(k), 8, 60000);
    belay_limiter_result_t result;
    start_takes(env, limiter, 21, 1);
    env_until(env, takes_ended == 21);
    assert_int_equal(takes[20].result.verdict, BELAY_DENIED);
    uint64_t before = limiter_stats(limiter).asked;
    for (int i = 0; i < 10; i++) {
      assert_int_equal(try_take(env, limiter, "k", 1, &result), BELAY_EAGAIN);
      env_settle(env);
    }
    assert_int_equal(limiter_stats(limiter).asked, before);
    close_limiter(env, limiter);
  }
}

/* ---- what makes it void ---- */

ENV_TEST(ban_and_reset_void_leased_tokens) {
  belay_limiter_t *limiter = leasing_limiter(env, lease_policies[1], 1, 8, 60000);
  belay_limiter_t *other = limiter_new(env, lease_policies[1], 1);
  belay_limiter_result_t result;
  ask_t ask = {0}, fetch = {0};
  for (int flight = 0; flight < 2; flight++) {
    assert_said(take(env, limiter, "k", 1), BELAY_ALLOWED, BELAY_SOURCE_LEASE);
    if (flight == 1)
      start_take(env, limiter, &fetch, "k", 8);
    assert_error(belay_limiter_ban(limiter, asked(env, &ask), belay_string("k"), HOUR, on_answer),
                 0);
    assert_int_equal(try_take(env, limiter, "k", 1, &result), BELAY_EAGAIN);
    answer(&ask, 0);
    if (flight == 1)
      assert_said(answer(&fetch, 0), BELAY_DENIED, BELAY_SOURCE_SERVER);
    assert_true(take(env, limiter, "k", 1)->banned);
    answer(&ask, belay_limiter_ban(limiter, asked(env, &ask), belay_string("k"), 0, on_answer));
    env_settle(env);
    assert_int_equal(tokens_left(env, other), 19 - flight);
  }
  assert_said(take(env, limiter, "k", 1), BELAY_ALLOWED, BELAY_SOURCE_LEASE);
  answer(&ask, belay_limiter_reset(limiter, asked(env, &ask), belay_string("k"), on_answer));
  env_settle(env);
  assert_int_equal(tokens_left(env, other), 20);
  assert_int_equal(try_take(env, limiter, "k", 1, &result), BELAY_EAGAIN);
}

ENV_TEST(new_policy_voids_leased_tokens) {
  belay_limiter_t *limiter = leasing_limiter(env, lease_policies[1], 1, 8, 60000);
  belay_limiter_result_t result;
  assert_said(take(env, limiter, "k", 1), BELAY_ALLOWED, BELAY_SOURCE_LEASE);
  belay_limit_t small = lease_policies[1][0],
                none = {.kind = BELAY_LIMIT_FIXED, .count = BELAY_INFINITE};
  small.count = 5;
  assert_error(belay_limiter_reconfigure(limiter, &small, 1), 0);
  assert_int_equal(tokens_left(env, limiter), 4);
  assert_int_equal(try_take(env, limiter, "k", 1, &result), BELAY_EAGAIN);
  assert_said(take(env, limiter, "k", 4), BELAY_ALLOWED, BELAY_SOURCE_LEASE);
  assert_said(take(env, limiter, "k", 1), BELAY_DENIED, BELAY_SOURCE_SERVER);
  /* While some wait. */
  assert_error(belay_limiter_reconfigure(limiter, lease_policies[1], 1), 0);
  start_takes(env, limiter, 8, 3);
  small.count = 24; /* 5 are taken, and 8 by requests in flight */
  assert_error(belay_limiter_reconfigure(limiter, &small, 1), 0);
  env_until(env, takes_ended == 8);
  unsigned allowed = 0;
  for (unsigned i = 0; i < 8; i++) {
    assert_int_equal(takes_order[i], i);
    allowed += takes[i].result.verdict == BELAY_ALLOWED;
    assert_int_equal(takes[i].result.verdict, allowed > i ? BELAY_ALLOWED : BELAY_DENIED);
  }
  assert_in_range(allowed, 3, 6);
  assert_error(belay_limiter_reconfigure(limiter, lease_policies[1], 1), 0);
  start_takes(env, limiter, 3, 7);
  small.count = 6;
  assert_error(belay_limiter_reconfigure(limiter, &small, 1), 0);
  env_until(env, takes_ended == 3);
  for (unsigned i = 0; i < 3; i++)
    assert_int_equal(takes[i].result.verdict, BELAY_NEVER);
  start_takes(env, limiter, 3, 6);
  assert_error(belay_limiter_reconfigure(limiter, &none, 1), 0);
  env_until(env, takes_ended == 3);
  for (unsigned i = 0; i < 3; i++)
    assert_said(&takes[i].result, BELAY_ALLOWED, BELAY_SOURCE_POLICY);
}
