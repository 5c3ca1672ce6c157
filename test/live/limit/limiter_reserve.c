/* Limiters: reserved tokens, their return, and waits for their time. */
#include "support/fixtures/limit/asks.h"
#include "support/deployments/relay.h"

#define SECOND INT64_C(1000000)
#define S (1000 * SECOND) /* stored values do not expire by the server's own clock meanwhile */
#define T0 INT64_C(1700000000000000)
#define DAY (86400 * SECOND)
#define KEY "belay::limit::test::{k}"

static belay_limiter_t *at_start(env_t *env, int64_t burst) {
  belay_limiter_t *limiter = limiter_of(env, bucket_limit(1, S, burst));
  limiter_at(limiter, T0);
  return limiter;
}

/* How long a reservation waits; it must be one. */
static int64_t wait_of(const belay_limiter_result_t *result) {
  assert_int_equal(result->cause, 0);
  assert_int_equal(result->verdict, BELAY_ALLOWED);
  return result->wait_us;
}

static int64_t debt_us(env_t *env, belay_limiter_t *limiter) {
  return peek(env, limiter, "k")->reset_after_us;
}

ENV_TEST(later_reservations_later_times) {
  belay_limiter_t *l = at_start(env, 2);
  assert_int_equal(wait_of(reserve(env, l, "k", 1, 0)), 0);
  assert_int_equal(wait_of(reserve(env, l, "k", 1, 0)), 0);
  assert_int_equal(wait_of(reserve(env, l, "k", 1, S)), S);
  assert_int_equal(reserve(env, l, "k", 2, 3 * S - 1)->verdict, BELAY_DENIED);
  assert_int_equal(debt_us(env, l), 3 * S); /* nothing was taken */
  assert_int_equal(wait_of(reserve(env, l, "k", 2, 3 * S)), 3 * S);
  assert_result(reserve(env, l, "k", 3, DAY), BELAY_NEVER, -1, -1, -1);
  assert_int_equal(reserve(env, l, "k", 3, DAY)->source, BELAY_SOURCE_POLICY);
  assert_result(take(env, l, "k", 1), BELAY_DENIED, 0, 4 * S, 5 * S);
  assert_int_equal(peek(env, l, "k")->verdict, BELAY_DENIED); /* overdrawn */
  limiter_at(l, T0 + 4 * S);
  assert_result(take(env, l, "k", 1), BELAY_ALLOWED, 0, 0, 2 * S);
  assert_int_equal(wait_of(reserve(env, l, "k", 1, DAY)), S);
  (void)ban(env, l, "k", 10 * S);
  assert_int_equal(reserve(env, l, "k", 1, DAY)->verdict, BELAY_DENIED);
  assert_true(reserve(env, l, "k", 1, DAY)->banned);
}

ENV_TEST(of_several_buckets_the_longest_counts) {
  belay_limit_t limits[2] = {bucket_limit(1, S, 2), bucket_limit(1, 10 * S, 4)};
  belay_limiter_t *l = limiter_new(env, limits, 2);
  limiter_at(l, T0);
  static const int64_t waits[] = {0, 0, 1, 2, 10, 20};
  for (size_t i = 0; i < 6; i++)
    assert_int_equal(wait_of(reserve(env, l, "k", 1, 20 * S)), waits[i] * S);
  uint64_t print = print_of(env->server, KEY);
  assert_int_equal(reserve(env, l, "k", 1, 20 * S)->verdict, BELAY_DENIED);
  assert_true(print_of(env->server, KEY) == print);
}

ENV_TEST(reservation_canceled_once) {
  belay_limiter_t *l = at_start(env, 2), *other = at_start(env, 2);
  belay_reservation_t first = reserve(env, l, "k", 2, 0)->reservation;
  belay_reservation_t last = reserve(env, l, "k", 2, DAY)->reservation;
  assert_int_equal(unreserve(env, l, "k", &last)->returned, 2);
  assert_int_equal(debt_us(env, l), 2 * S);
  for (int i = 0; i < 3; i++) {
    (void)unreserve(env, i == 0 ? l : other, "k", &last);
    assert_int_equal(debt_us(env, l), 2 * S);
  }
  limiter_at(l, T0 + S); /* half of it has leaked */
  assert_int_equal(unreserve(env, l, "k", &first)->returned, 1);
  assert_int_equal(debt_us(env, l), 0);
  belay_reservation_t unheard = {"nobody knows it"};
  assert_int_equal(wait_of(reserve(env, l, "k", 1, 0)), 0);
  assert_int_equal(unreserve(env, l, "k", &unheard)->returned, 0);
  assert_int_equal(unreserve(env, l, "j", &last)->returned, 0); /* of another key */
  assert_int_equal(debt_us(env, l), S);
}

ENV_TEST(refund_below_later_reservations) {
  belay_limiter_t *l = at_start(env, 5);
  (void)taken(env, l, "k", 5);
  belay_reservation_t three = reserve(env, l, "k", 3, DAY)->reservation;
  assert_int_equal(wait_of(reserve(env, l, "k", 1, DAY)), 4 * S);
  assert_int_equal(unreserve(env, l, "k", &three)->returned, 2);
  assert_int_equal(debt_us(env, l),
                   7 * S); /* a new take waits for the reservation that was built upon it */
  assert_int_equal(wait_of(reserve(env, l, "k", 1, DAY)), 3 * S);
}

ENV_TEST(a_reset_or_a_change_voids_it) {
  belay_limiter_t *l = at_start(env, 2);
  belay_reservation_t before = reserve(env, l, "k", 2, DAY)->reservation;
  (void)reset(env, l, "k");
  limiter_at(l, T0 + 1);
  belay_reservation_t after = reserve(env, l, "k", 2, DAY)->reservation;
  assert_int_equal(unreserve(env, l, "k", &before)->returned, 0);
  belay_limit_t limit = bucket_limit(1, 2 * S, 2);
  assert_error(belay_limiter_reconfigure(l, &limit, 1), 0);
  assert_int_equal(unreserve(env, l, "k", &after)->returned, 0);
  assert_int_equal(debt_us(env, l), 4 * S);
}

/* For any mix of reservations, takes and refunds, the executed ones keep the policy's bound. */
ENV_TEST(reservations_keep_the_bound) {
  enum { N = 60, BURST = 6 };
  belay_limiter_t *l = at_start(env, BURST);
  unsigned seed = 5;
  for (int round = 0; round < 15; round++) {
    int64_t now = T0, at[N], cost[N];
    belay_reservation_t id[N];
    server_do(env->server, "FLUSHALL", NULL);
    for (int i = 0; i < N; i++) {
      limiter_at(l, now += rand_r(&seed) % 3 * (rand_r(&seed) % S));
      int64_t wanted = rand_r(&seed) % BURST + 1;
      bool reserves = rand_r(&seed) % 3 > 0;
      belay_limiter_result_t result =
          reserves ? *reserve(env, l, "k", wanted, 12 * S) : *take(env, l, "k", wanted);
      cost[i] = result.verdict == BELAY_ALLOWED ? wanted : 0;
      at[i] = now + result.wait_us;
      id[i] = result.reservation;
      int which = i - rand_r(&seed) % 4; /* one of the last, if its time has not come */
      if (rand_r(&seed) % 2 == 0 || which < 0 || at[which] <= now || cost[which] == 0)
        continue;
      assert_between((int64_t)unreserve(env, l, "k", &id[which])->returned, 0, cost[which]);
      cost[which] = 0;
    }
    for (int i = 0; i < N; i++)
      for (int j = 0; j < N; j++) { /* the tokens executed between i's time and j's */
        int64_t sum = 0;
        for (int k = 0; k < N && at[i] <= at[j]; k++)
          sum += at[k] >= at[i] && at[k] <= at[j] ? cost[k] : 0;
        if (sum > 0 && (sum - BURST) * S > at[j] - at[i])
          fail_msg("%lld in %lld us", (long long)sum, (long long)(at[j] - at[i]));
      }
  }
}

/* The answer is lost, and it is asked again: the reservation is the same one, and counts once. */
TEST(an_answer_that_is_lost) {
  belay_client_options_t options = client_options();
  options.timeout_ms = 10000;
  env_t *env = env_open_relayed(&options);
  belay_limiter_t *l = at_start(env, 2);
  (void)taken(env, l, "k", 2);
  ask_t asks[3] = {0};
  for (int turn = 0; turn < 2; turn++) {
    server_pause(env->server);
    if (turn == 0) {
      assert_error(
          belay_limiter_reserve(l, asked(env, &asks[0]), belay_string("k"), 2, DAY, on_answer), 0);
      start_take(env, l, &asks[1], "j", 1);
    } else {
      assert_error(belay_limiter_cancel_reservation(l, asked(env, &asks[0]), belay_string("k"),
                                                    &asks[2].result.reservation, on_answer),
                   0);
    }
    env_run_for(env, 50);
    relay_cut(env->relay);
    server_resume(env->server);
    assert_result(answer(&asks[0], 0), BELAY_ALLOWED, -2, 0, -2);
    asks[2].result = asks[0].result;
    assert_int_equal(debt_us(env, l), turn == 0 ? 4 * S : 2 * S);
  }
  assert_int_equal(answer(&asks[1], 0)->cause, BELAY_EUNKNOWN); /* a take is not */
  assert_int_equal(asks[1].result.verdict, BELAY_INDETERMINATE);
  assert_int_equal(asks[1].result.remaining, -1);
  env_close(env);
}

/* ---- waiting ---- */

static unsigned turn_of[24], turns;

static void note_turn(ask_t *ask) {
  turn_of[(size_t)(uintptr_t)ask->arg] = turns++;
}

ENV_TEST(waits_are_fair) {
  enum { N = 24 };
  belay_client_t *second = env_connect(env, server_url(env->server), NULL);
  belay_limit_t limit = bucket_limit(50, SECOND, 1);
  belay_limiter_options_t options = limiter_options(&limit, 1);
  belay_limiter_t *l[2] = {limiter_with(env, env->client, &options),
                           limiter_with(env, second, &options)};
  static ask_t asks[N];
  memset(asks, 0, sizeof asks);
  turns = 0;
  int64_t begun = clock_now();
  for (size_t i = 0; i < N; i++) {
    asks[i].arg = (void *)(uintptr_t)i;
    asks[i].then = note_turn;
    start_wait(env, l[i % 2], &asks[i], "k", 1, 60 * SECOND);
  }
  belay_limiter_stats_t stats;
  belay_limiter_stats(l[0], &stats);
  assert_int_equal(stats.waiting, N / 2);
  for (size_t i = 0; i < N; i++)
    assert_result(answer(&asks[i], 0), BELAY_ALLOWED, -2, 0, -2);
  assert_true(clock_since_ms(begun) >= (N - 1) * 20 - 5);
  for (size_t i = 2; i < N; i++) { /* of one process in its order; of both in turns, more or less */
    assert_true(turn_of[i] > turn_of[i - 2]);
    assert_true(asks[i].result.wait_us >= asks[i - 2].result.wait_us);
  }
  belay_limiter_stats(l[0], &stats);
  assert_int_equal(stats.waiting, 0);
}

ENV_TEST(max_waiting) {
  belay_limit_t limit = bucket_limit(1, 3600 * SECOND, 1);
  belay_limiter_options_t options = limiter_options(&limit, 1);
  for (uint32_t most = 0; most < 3; most++) {
    options.max_waiting = most;
    belay_limiter_t *l = limiter_with(env, env->client, &options);
    ask_t asks[4] = {0};
    for (uint32_t i = 0; i <= most; i++)
      assert_error(
          belay_limiter_wait(l, asked(env, &asks[i]), belay_string("k"), 1, DAY, on_answer),
          i < most ? 0 : BELAY_EBUSY);
    asks[most].begun--;
    assert_error(
        belay_limiter_wait(l, asked(env, &asks[3]), belay_string("other"), 1, DAY, on_answer),
        most > 0 ? 0 : BELAY_EBUSY);
    asks[3].begun -= most == 0;
    assert_int_equal(take(env, l, "third", 1)->verdict,
                     most == 0 ? BELAY_ALLOWED : BELAY_DENIED); /* of the round before */
    env_run_for(env, 20);
    if (most > 0) { /* a place is free again */
      int last = (int)most - 1;
      int canceled = belay_request_cancel(&asks[last].request);
      assert_true(canceled == 0 || asks[last].ended == 1);
      (void)answer(&asks[last], 0);
      start_wait(env, l, &asks[last], "k", 1, DAY);
    }
    assert_error(belay_limiter_close(l, NULL), 0);
    for (size_t i = 0; i < 4; i++)
      env_until(env, asks[i].ended == asks[i].begun);
  }
}
