/* Limiters: refunds, and takes that can no longer be refunded. */
#include "support/fixtures/limit/asks.h"

#define S INT64_C(1000000000) /* stored values do not expire by the server's own clock meanwhile */
#define T0 INT64_C(1700000000000000)
#define KEY "belay::limit::test::{k}"

static const belay_limit_t all[] = {
    {.kind = BELAY_LIMIT_BUCKET, .count = 1, .period_us = S, .burst = 5},
    {.kind = BELAY_LIMIT_FIXED, .count = 5, .period_us = 5 * S},
    {.kind = BELAY_LIMIT_FIXED, .count = 5, .period_us = 5 * S, .aligned = true},
    {.kind = BELAY_LIMIT_SLIDING, .count = 5, .period_us = 5 * S},
    {.kind = BELAY_LIMIT_BUCKET, .burst = 5, .period_us = 5 * S},
    {.kind = BELAY_LIMIT_LOG, .count = 5, .period_us = 5 * S},
};
enum { ALL = sizeof all / sizeof *all, MIXED = 2, FIRST_MIXED = 0 };

/* One of them, or several at once. */
static belay_limiter_t *make(env_t *env, size_t i) {
  server_do(env->server, "FLUSHALL", NULL);
  belay_limiter_t *limiter =
      i < ALL ? limiter_new(env, &all[i], 1) : limiter_new(env, all + FIRST_MIXED, 4);
  limiter_at(limiter, T0 + 3 * S);
  return limiter;
}

static void drop(belay_limiter_t *limiter) {
  assert_error(belay_limiter_close(limiter, NULL), 0);
}

/* The returned tokens, with their fraction; and rounded down. */
static double exactly_returned(env_t *env, belay_limiter_t *limiter, belay_receipt_t *receipt,
                               int64_t tokens) {
  const belay_limiter_result_t *result = refund(env, limiter, "k", receipt, tokens);
  assert_int_equal(result->cause, 0);
  assert_int_equal(result->verdict, BELAY_ALLOWED);
  return result->returned;
}

static int64_t returned(env_t *env, belay_limiter_t *limiter, belay_receipt_t *receipt,
                        int64_t tokens) {
  return (int64_t)exactly_returned(env, limiter, receipt, tokens);
}

ENV_TEST(immediate_refund_restores_state) {
  for (size_t i = 0; i <= ALL; i++) {
    belay_limiter_t *limiter = make(env, i);
    belay_receipt_t receipt = taken(env, limiter, "k", 3);
    assert_int_equal(returned(env, limiter, &receipt, 3), 3);
    assert_int_equal(server_keys(env->server), 0);
    (void)taken(env, limiter, "k", 2);
    uint64_t print = print_of(env->server, KEY);
    receipt = taken(env, limiter, "k", 3);
    assert_int_equal(take(env, limiter, "k", 1)->verdict, BELAY_DENIED);
    assert_int_equal(returned(env, limiter, &receipt, 3), 3);
    assert_true(print_of(env->server, KEY) == print);
    drop(limiter);
  }
}

ENV_TEST(a_receipt_is_good_for_one_refund) {
  for (size_t i = 0; i <= ALL; i++) {
    belay_limiter_t *limiter = make(env, i);
    belay_receipt_t receipt = taken(env, limiter, "k", 4);
    ask_t ask = {0};
    assert_error(
        belay_limiter_refund(limiter, &ask.request, belay_string("k"), &receipt, 5, on_answer),
        BELAY_EINVAL);
    assert_int_equal(returned(env, limiter, &receipt, 3), 3);
    assert_error(
        belay_limiter_refund(limiter, &ask.request, belay_string("k"), &receipt, 1, on_answer),
        BELAY_EINVAL);
    assert_ptr_equal(strstr(belay_detail(env->belay), "receipt: void"), belay_detail(env->belay));
    assert_int_equal(peek(env, limiter, "k")->remaining, 4);
    receipt = take(env, limiter, "k", 5)->receipt; /* denied: it has none */
    assert_error(
        belay_limiter_refund(limiter, &ask.request, belay_string("k"), &receipt, 1, on_answer),
        BELAY_EINVAL);
    assert_ptr_equal(strstr(belay_detail(env->belay), "receipt: void"), belay_detail(env->belay));
    receipt = peek(env, limiter, "k")->receipt;
    assert_error(
        belay_limiter_refund(limiter, &ask.request, belay_string("k"), &receipt, 1, on_answer),
        BELAY_EINVAL);
    receipt = taken(env, limiter, "k", 1);
    assert_error(
        belay_limiter_refund(limiter, &ask.request, belay_string("k"), &receipt, 2, on_answer),
        BELAY_EINVAL);
    assert_string_equal(belay_detail(env->belay), "tokens: not from 1 to 1");
    drop(limiter);
  }
}

/* The result states by how much the key's debt fell: a recent token returns except for the part
 * that has leaked. */
ENV_TEST(returned_amount_is_exact) {
  belay_limiter_t *limiter = make(env, 0);
  for (int64_t ms = 0; ms < 1000; ms += 37) {
    server_do(env->server, "FLUSHALL", NULL);
    limiter_at(limiter, T0);
    belay_receipt_t receipt = taken(env, limiter, "k", 1);
    limiter_at(limiter, T0 + ms * S / 1000);
    int64_t before = peek(env, limiter, "k")->reset_after_us;
    double back = exactly_returned(env, limiter, &receipt, 1);
    int64_t less = before - peek(env, limiter, "k")->reset_after_us;
    assert_true(back * S >= (double)less - 1.5 && back * S <= (double)less + 1.5);
    assert_true(back > 0.999 - (double)ms / 1000 && back < 1.001 - (double)ms / 1000);
  }
  drop(limiter);
}

ENV_TEST(leaked_tokens_not_refunded) {
  belay_limiter_t *limiter = make(env, 0);
  belay_receipt_t first = taken(env, limiter, "k", 3);
  limiter_at(limiter, T0 + 3 * S + S / 2);
  belay_receipt_t second = taken(env, limiter, "k", 2);
  double back = exactly_returned(env, limiter, &first, 3);
  assert_true(back > 2.49 && back < 2.51);
  assert_int_equal(peek(env, limiter, "k")->reset_after_us, 2 * S);
  limiter_at(limiter, T0 + 5 * S + S / 2); /* the second has leaked, and others come */
  (void)taken(env, limiter, "k", 5);
  assert_int_equal(returned(env, limiter, &second, 2), 0);
  assert_int_equal(peek(env, limiter, "k")->remaining, 0);
  drop(limiter);
}

/* For every order: a refund never returns more than the key would owe without these takes. */
ENV_TEST(no_order_gives_too_much) {
  belay_limiter_t *limiter = limiter_of(env, bucket_limit(1, S, 20));
  unsigned seed = 7;
  for (int round = 0; round < 60; round++) {
    server_do(env->server, "DEL", KEY, NULL);
    belay_receipt_t receipt[6];
    bool back[6] = {false};
    int64_t at[6], cost[6], now = T0;
    for (int i = 0; i < 6; i++) {
      cost[i] = rand_r(&seed) % 3 + 1;
      limiter_at(limiter, at[i] = now);
      receipt[i] = taken(env, limiter, "k", cost[i]);
      now += rand_r(&seed) % (2 * S);
    }
    for (int n = 0; n < 5; n++) {
      int which = round < 10   ? n     /* first in, first out */
                  : round < 20 ? 5 - n /* last in, first out */
                               : rand_r(&seed) % 6;
      limiter_at(limiter, now);
      int64_t before = peek(env, limiter, "k")->reset_after_us;
      if (!back[which])
        assert_between(returned(env, limiter, &receipt[which], cost[which]), 0, cost[which]);
      back[which] = true;
      int64_t without = 0, then = T0;
      for (int i = 0; i < 6; i++) {
        without -= without < at[i] - then ? without : at[i] - then;
        without += back[i] ? 0 : cost[i] * S;
        then = at[i];
      }
      without -= without < now - then ? without : now - then;
      int64_t owed = peek(env, limiter, "k")->reset_after_us;
      assert_between(owed, without, before);
      now += rand_r(&seed) % (S / 4);
    }
  }
}

ENV_TEST(last_in_first_out_is_exact) {
  belay_limiter_t *limiter = limiter_of(env, bucket_limit(1, S, 20));
  belay_receipt_t receipt[5];
  for (int i = 0; i < 5; i++) {
    limiter_at(limiter, T0 + i * S / 4);
    receipt[i] = taken(env, limiter, "k", i + 1);
  }
  for (int i = 4; i >= 0; i--) { /* 15 less one; the last one back has leaked */
    assert_int_equal(returned(env, limiter, &receipt[i], i + 1), i == 0 ? 0 : i + 1);
    assert_int_equal(peek(env, limiter, "k")->reset_after_us, i * (i + 1) / 2 * S - (i > 0) * S);
  }
}

ENV_TEST(a_refund_in_a_window) {
  static const int64_t next[] = {0, 0, 0, 3, 0, 0}; /* its worth in the following window */
  for (size_t i = 1; i < ALL; i++) {
    belay_limiter_t *limiter = make(env, i);
    limiter_at(limiter, T0 + S);
    belay_receipt_t one = taken(env, limiter, "k", 1), three = taken(env, limiter, "k", 3);
    limiter_at(limiter, T0 + 5 * S - S / 10);
    assert_int_equal(returned(env, limiter, &one, 1), 1);
    assert_int_equal(peek(env, limiter, "k")->remaining, 2);
    limiter_at(limiter, T0 + 6 * S); /* over */
    if (i == 4) {                    /* an allotment, if it was not renewed */
      limiter_at(limiter, T0 + 6 * S - S / 10);
      (void)taken(env, limiter, "k", 1);
      limiter_at(limiter, T0 + 7 * S);
      assert_int_equal(returned(env, limiter, &three, 3), 3);
      assert_int_equal(peek(env, limiter, "k")->remaining, 4);
      drop(limiter);
      continue;
    }
    (void)take(env, limiter, "k", 1);
    assert_int_equal(returned(env, limiter, &three, 3), next[i]);
    drop(limiter);
  }
}

ENV_TEST(several_windows_say_the_least) {
  belay_limiter_t *limiter = make(env, ALL);
  belay_receipt_t receipt = taken(env, limiter, "k", 4);
  limiter_at(limiter, T0 + 4 * S); /* a token has leaked from the bucket, none from the windows */
  assert_int_equal(returned(env, limiter, &receipt, 4), 3);
  assert_int_equal(peek(env, limiter, "k")->remaining, 5);
  drop(limiter);
}

ENV_TEST(a_reset_voids_what_was_before) {
  for (size_t i = 0; i <= ALL; i++) {
    belay_limiter_t *limiter = make(env, i);
    belay_receipt_t receipt = taken(env, limiter, "k", 3);
    limiter_at(limiter, T0 + 3 * S + 1);
    assert_int_equal(reset(env, limiter, "k")->verdict, BELAY_ALLOWED);
    (void)taken(env, limiter, "k", 5);
    assert_int_equal(returned(env, limiter, &receipt, 3), 0);
    assert_int_equal(peek(env, limiter, "k")->remaining, 0);
    drop(limiter);
  }
}

ENV_TEST(new_policy_voids_receipts) {
  for (size_t i = 0; i < ALL - 1; i++) {
    belay_limiter_t *limiter = make(env, i);
    belay_receipt_t first = taken(env, limiter, "k", 2), second = taken(env, limiter, "k", 2);
    belay_limit_t limit = all[i];
    limit.period_us *= 2;
    assert_error(belay_limiter_reconfigure(limiter, &limit, 1), 0);
    /* no other take came between */
    assert_error(belay_limiter_reconfigure(limiter, &all[i], 1), 0);
    assert_int_equal(returned(env, limiter, &first, 1), 1);
    assert_error(belay_limiter_reconfigure(limiter, &limit, 1), 0);
    (void)taken(env, limiter, "k", 1);
    assert_int_equal(returned(env, limiter, &second, 2), 0);
    assert_error(belay_limiter_reconfigure(limiter, &all[i], 1), 0);
    belay_receipt_t third = taken(env, limiter, "k", 1);
    assert_int_equal(peek(env, limiter, "k")->remaining, 0);
    assert_int_equal(returned(env, limiter, &third, 1), 1);
    drop(limiter);
  }
}

/* Later penalties stay: an overdrawn key stays overdrawn. */
ENV_TEST(a_refund_of_who_is_banned_or_overdrawn) {
  for (size_t i = 0; i <= ALL; i++) {
    belay_limiter_t *limiter = make(env, i);
    belay_receipt_t receipt = taken(env, limiter, "k", 3);
    (void)ban(env, limiter, "k", S);
    assert_int_equal(returned(env, limiter, &receipt, 3), 3);
    assert_int_equal(take(env, limiter, "k", 1)->banned, true);
    limiter_at(limiter, T0 + 4 * S);
    assert_int_equal(peek(env, limiter, "k")->remaining, 5);
    receipt = taken(env, limiter, "k", 3);
    (void)penalty(env, limiter, "k", 4);
    assert_between(returned(env, limiter, &receipt, 3), 0, 3);
    assert_true(peek(env, limiter, "k")->remaining <= 1);
    drop(limiter);
  }
}

/* Each of them leaves its cost in what later refunds are measured by, up to 2^53: then they give
 * nothing. */
ENV_TEST(refunds_out_of_order_for_ever) {
  int64_t half = INT64_C(1) << 51;
  belay_limiter_t *limiter = limiter_of(env, bucket_limit(1, 1, 2 * half));
  limiter_at(limiter, T0);
  belay_receipt_t receipt = taken(env, limiter, "k", half);
  int cycles = 0;
  for (int64_t back = half; back > 0; cycles++) {
    assert_true(cycles < 20);
    belay_receipt_t next = taken(env, limiter, "k", half);
    back = returned(env, limiter, &receipt, half);
    assert_true(back == half || back == 0);
    receipt = next;
  }
  assert_true(cycles > 1);
  assert_result(take(env, limiter, "k", 1), BELAY_DENIED, 0, 1, 2 * half);
  limiter_at(limiter, T0 + half); /* only the real debt leaks */
  assert_result(take(env, limiter, "k", half), BELAY_ALLOWED, 0, 0, 2 * half);
  assert_int_equal(client_stats(env).drops, 0);
}

/* Requests that overlap and are refunded when they end: each gives back all of it, however many
 * there were, and nothing is kept for longer than something is owed. */
ENV_TEST(refunds_of_requests_that_overlap) {
  belay_limit_t limits[2] = {bucket_limit(1, S, 5), bucket_limit(1, 2 * S, 5)};
  for (size_t n = 1; n <= 2; n++) {
    server_do(env->server, "FLUSHALL", NULL);
    belay_limiter_t *limiter = limiter_new(env, limits, n);
    limiter_at(limiter, T0);
    belay_receipt_t receipt = taken(env, limiter, "k", 2);
    for (int i = 0; i < 50; i++) {
      belay_receipt_t next = taken(env, limiter, "k", 2);
      assert_int_equal(returned(env, limiter, &receipt, 2), 2);
      receipt = next;
    }
    assert_int_equal(peek(env, limiter, "k")->reset_after_us, 2 * (int64_t)n * S);
    assert_between(server_integer(env->server, "PTTL", KEY, NULL), 1, 2 * (int64_t)n * S / 1000);
    (void)taken(env, limiter, "k", 1);
    assert_between(server_integer(env->server, "PTTL", KEY, NULL), 1, 3 * (int64_t)n * S / 1000);
    assert_int_equal(returned(env, limiter, &receipt, 2), 2);
    drop(limiter);
  }
}
