/* Limiters: equal takes on one key that begin in the same turn of the loop. */
#include "support/fixtures/limit/asks.h"

#define S INT64_C(1000000)
#define T0 INT64_C(1700000000000000)

enum { TAKES = 9 };

typedef struct takes {
  ask_t asks[TAKES];
} takes_t;

static void start_takes(env_t *env, belay_limiter_t *limiter, takes_t *takes, const char *key,
                        int64_t cost) {
  memset(takes, 0, sizeof *takes);
  for (size_t i = 0; i < TAKES; i++)
    start_take(env, limiter, &takes->asks[i], key, cost);
}

static int64_t count_allowed(takes_t *takes) {
  int64_t n = 0;
  for (size_t i = 0; i < TAKES; i++)
    n += answer(&takes->asks[i], 0)->verdict == BELAY_ALLOWED;
  return n;
}

static void assert_same(const belay_limiter_result_t *a, const belay_limiter_result_t *b) {
  assert_int_equal(a->verdict, b->verdict);
  assert_int_equal(a->source, b->source);
  assert_int_equal(a->cause, b->cause);
  assert_int_equal(a->window, b->window);
  assert_int_equal(a->banned, b->banned);
  assert_int_equal(a->remaining, b->remaining);
  assert_int_equal(a->retry_after_us, b->retry_after_us);
  assert_int_equal(a->reset_after_us, b->reset_after_us);
  assert_int_equal(a->receipt.belay_private[0], b->receipt.belay_private[0]);
  for (int i = 2; i < 4 + BELAY_LIMITER_LIMITS_MAX; i++)
    assert_int_equal(a->receipt.belay_private[i], b->receipt.belay_private[i]);
}

static const belay_limit_t policies[][2] = {
    {{.kind = BELAY_LIMIT_BUCKET, .count = 10, .period_us = 7 * S}},
    {{.kind = BELAY_LIMIT_BUCKET, .burst = 11, .period_us = 1000 * S}},
    {{.kind = BELAY_LIMIT_FIXED, .count = 10, .period_us = 1000 * S}},
    {{.kind = BELAY_LIMIT_FIXED, .count = 10, .period_us = 1000 * S, .aligned = true}},
    {{.kind = BELAY_LIMIT_SLIDING, .count = 10, .period_us = 1000 * S}},
    {{.kind = BELAY_LIMIT_LOG, .count = 10, .period_us = 1000 * S}},
    {{.kind = BELAY_LIMIT_BUCKET, .count = 10, .period_us = 7 * S},
     {.kind = BELAY_LIMIT_SLIDING, .count = 12, .period_us = 1000 * S}},
};

/* The takes of one turn, and the same takes one after the other, of the same state. */
static void compare(env_t *env, const belay_limit_t *limits, size_t n, int64_t before,
                    int64_t cost) {
  belay_limiter_t *limiter = limiter_new(env, limits, n);
  takes_t takes;
  server_do(env->server, "FLUSHALL", NULL);
  limiter_at(limiter, T0);
  for (const char *const *key = (const char *const[]){"one", "all", NULL}; *key != NULL; key++)
    if (before > 0)
      (void)take(env, limiter, *key, before);
  limiter_at(limiter, T0 + 1001 * S); /* a sliding window: half of what was before */
  if (before > 0 && limits->kind != BELAY_LIMIT_SLIDING)
    limiter_at(limiter, T0 + S / 3);
  start_takes(env, limiter, &takes, "all", cost);
  for (size_t i = 0; i < TAKES; i++) {
    belay_limiter_result_t alone = *take(env, limiter, "one", cost);
    assert_same(answer(&takes.asks[i], 0), &alone);
  }
  close_limiter(env, limiter);
}

ENV_TEST(takes_of_a_turn_are_as_one_after_the_other) {
  for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
    for (int64_t before = 0; before < 9; before += 4)
      for (int64_t cost = 1; cost < 6; cost++)
        compare(env, policies[i], policies[i][1].kind == 0 ? 1 : 2, before, cost);
}

ENV_TEST(they_share_a_command) {
  belay_limiter_t *limiter = limiter_of(env, bucket_limit(100, 1000 * S, 100));
  takes_t takes;
  (void)take(env, limiter, "other", 1);
  uint64_t commands = client_stats(env).commands, asked_before = limiter_stats(limiter).asked;
  start_takes(env, limiter, &takes, "k", 2);
  assert_int_equal(count_allowed(&takes), TAKES);
  assert_int_equal(client_stats(env).commands, commands + 1);
  assert_int_equal(client_stats(env).grouped, TAKES);
  assert_int_equal(limiter_stats(limiter).asked, asked_before + 1);
  assert_int_equal(peek(env, limiter, "k")->remaining, 100 - 2 * TAKES);
}

/* Other costs, other timeouts, and commands in between. */
ENV_TEST(they_keep_their_order) {
  belay_limiter_t *limiter = limiter_of(env, bucket_limit(10, 1000 * S, 10));
  ask_t asks[7] = {{.begun = 0}};
  static const int64_t costs[] = {1, 1, 2, 1, 0, 1, 1}, remaining[] = {9, 8, 6, 5, 10, 9, 8};
  for (size_t i = 0; i < 7; i++) {
    if (costs[i] > 0)
      start_take(env, limiter, &asks[i], "k", costs[i]);
    else
      assert_error(belay_limiter_reset(limiter, asked(env, &asks[i]), belay_string("k"), on_answer),
                   0);
  }
  for (size_t i = 0; i < 7; i++)
    assert_int_equal(answer(&asks[i], 0)->remaining, remaining[i]);
  uint64_t grouped = client_stats(env).grouped;
  assert_int_equal(grouped, 4);
  for (size_t i = 0; i < 4; i++) {
    asked(env, &asks[i])->timeout_ms = 1000 + (int64_t)i;
    assert_error(belay_limiter_take(limiter, &asks[i].request, belay_string("k"), 1, on_answer), 0);
  }
  for (size_t i = 0; i < 4; i++)
    assert_int_equal(answer(&asks[i], 0)->remaining, 7 - (int64_t)i);
  assert_int_equal(client_stats(env).grouped, grouped);
}

/* Many keys, a long one, and a hot one among them. */
ENV_TEST(a_hot_key_among_others) {
  enum { OTHERS = 200 };
  static ask_t hot[OTHERS], others[OTHERS];
  static char keys[OTHERS][BELAY_LIMITER_KEY_MAX + 1];
  belay_limiter_t *limiter = limiter_of(env, bucket_limit(OTHERS, 1000 * S, OTHERS));
  memset(hot, 0, sizeof hot);
  memset(others, 0, sizeof others);
  for (int i = 0; i < OTHERS; i++) {
    snprintf(keys[i], sizeof keys[i], "%0*d", 1 + 4 * i, i);
    start_take(env, limiter, &hot[i], "hot", 1);
    start_take(env, limiter, &others[i], keys[i], 1);
  }
  for (int i = 0; i < OTHERS; i++) {
    assert_int_equal(answer(&hot[i], 0)->remaining, OTHERS - 1 - i);
    assert_int_equal(answer(&others[i], 0)->remaining, OTHERS - 1);
  }
  assert_true(client_stats(env).grouped > OTHERS / 2);
}

ENV_TEST(a_canceled_take_is_not_sent_or_counts) {
  belay_limiter_t *limiter = limiter_of(env, bucket_limit(20, 1000 * S, 20));
  takes_t takes;
  static const size_t canceled[] = {0, 4, 8};
  for (int sent = 0; sent < 2; sent++) {
    char key[] = {(char)('a' + sent), '\0'};
    int64_t next = 20;
    (void)peek(env, limiter, "connected");
    server_pause(env->server);
    start_takes(env, limiter, &takes, key, 1);
    if (sent)
      env_run_for(env, 10);
    for (size_t i = 0; i < 3; i++)
      assert_error(belay_request_cancel(&takes.asks[canceled[i]].request), 0);
    server_resume(env->server);
    for (size_t i = 0; i < TAKES; i++) {
      const belay_limiter_result_t *result = answer(&takes.asks[i], 0);
      bool is_canceled = i % 4 == 0;
      next -= sent || !is_canceled;
      assert_int_equal(result->cause, is_canceled ? BELAY_ECANCELED : 0);
      assert_int_equal(result->remaining, is_canceled ? -1 : next);
    }
    assert_int_equal(peek(env, limiter, key)->remaining, next);
  }
}

ENV_TEST(all_of_a_group_are_unknown) {
  belay_limiter_t *limiter = limiter_of(env, bucket_limit(20, 1000 * S, 20));
  takes_t takes;
  memset(&takes, 0, sizeof takes);
  (void)peek(env, limiter, "k");
  server_pause(env->server);
  for (size_t i = 0; i < TAKES; i++) {
    asked(env, &takes.asks[i])->timeout_ms = 50;
    assert_error(
        belay_limiter_take(limiter, &takes.asks[i].request, belay_string("k"), 1, on_answer), 0);
  }
  for (size_t i = 0; i < TAKES; i++) {
    assert_said(answer(&takes.asks[i], 0), BELAY_INDETERMINATE, BELAY_SOURCE_SERVER);
    assert_int_equal(takes.asks[i].result.cause, BELAY_EUNKNOWN);
  }
  server_resume(env->server);
  assert_int_equal(peek(env, limiter, "k")->remaining, 20 - TAKES); /* executed late, once */
}

/* Its receipts: each gives back its own tokens. */
ENV_TEST(each_has_a_receipt) {
  belay_limiter_t *limiter = limiter_of(env, bucket_limit(20, 1000000 * S, 20));
  takes_t takes;
  start_takes(env, limiter, &takes, "k", 2);
  assert_int_equal(count_allowed(&takes), TAKES);
  for (int i = TAKES - 1; i >= 0; i--)
    assert_true(refund(env, limiter, "k", &takes.asks[i].result.receipt, 2)->returned > 1.9);
  assert_int_equal(peek(env, limiter, "k")->remaining, 20);
}

ENV_TEST(a_new_policy_is_for_later_takes) {
  const belay_limit_t old = bucket_limit(20, 1000 * S, 20), new = bucket_limit(30, 1000 * S, 30);
  belay_limiter_t *limiter = limiter_of(env, old);
  takes_t before, after;
  limiter_at(limiter, T0);
  start_takes(env, limiter, &before, "k", 1);
  assert_error(belay_limiter_reconfigure(limiter, &new, 1), 0);
  start_takes(env, limiter, &after, "k", 1);
  for (int i = 0; i < TAKES; i++)
    assert_int_equal(answer(&before.asks[i], 0)->remaining, 19 - i);
  for (int i = 0; i < TAKES; i++)
    assert_int_equal(answer(&after.asks[i], 0)->remaining, 29 - TAKES - i);
}

static void close_in_callback(ask_t *ask) {
  if (ask->arg != NULL)
    assert_error(belay_limiter_close(ask->arg, NULL), 0);
  ask->arg = NULL;
}

ENV_TEST(a_close_in_a_callback_ends_the_others) {
  belay_limiter_t *limiter = limiter_of(env, bucket_limit(20, 1000 * S, 20));
  takes_t takes, held;
  start_takes(env, limiter, &takes, "k", 1);
  takes.asks[2].arg = limiter;
  takes.asks[2].then = close_in_callback;
  assert_int_equal(count_allowed(&takes), TAKES); /* their results were known */
  limiter = limiter_of(env, bucket_limit(20, 1000 * S, 20));
  start_takes(env, limiter, &held, "held", 1);
  close_limiter(env, limiter);
  for (size_t i = 0; i < TAKES; i++)
    assert_int_equal(answer(&held.asks[i], 0)->cause, BELAY_ECANCELED);
  assert_int_equal(print_of(env->server, "belay::limit::test::{held}"), 0);
}

/* Learned from the first take that was denied. */
ENV_TEST(a_denied_take_is_remembered) {
  const belay_limit_t limit = bucket_limit(4, 1000 * S, 4);
  belay_limiter_options_t options = limiter_options(&limit, 1);
  takes_t takes;
  options.max_denied = 10;
  belay_limiter_t *limiter = limiter_with(env, env->client, &options);
  start_takes(env, limiter, &takes, "k", 1);
  assert_int_equal(count_allowed(&takes), 4);
  assert_said(take(env, limiter, "k", 1), BELAY_DENIED, BELAY_SOURCE_DENIAL);
}
