/* Limiters that are misused, that talk to nonsense, run out of memory, and are closed at the wrong
 * time. */
#include <stdio.h>

#include "support/fixtures/limit/asks.h"
#include "support/deployments/fake.h"

#define S INT64_C(1000000)
#define BIG (INT64_C(1) << 52)

/* ---- arguments ---- */

static void expect_detail(env_t *env, size_t row, int error, const char *detail) {
  if (error != BELAY_EINVAL || strstr(belay_detail(env->belay), detail) == NULL)
    fail_msg("row %zu: %s: \"%s\", not \"%s\"", row, belay_err_name(error),
             belay_detail(env->belay), detail);
}

#define B BELAY_LIMIT_BUCKET
#define F BELAY_LIMIT_FIXED
#define W BELAY_LIMIT_SLIDING
#define L BELAY_LIMIT_LOG

static const struct {
  belay_limit_t limits[5];
  size_t n;
  const char *detail; /* NULL: it is one */
} policies[] = {
    {{{0}}, 1, "limits[0].kind"},
    {{{(belay_limit_kind_t)5, 1, S, 0, false}}, 1, "limits[0].kind"},
    {{{B, -1, S, 1, false}}, 1, "limits[0].count: negative"},
    {{{F, INT64_MIN, S, 0, false}}, 1, "limits[0].count: negative"},
    {{{B, 1, 0, 1, false}}, 1, "limits[0].period_us: not positive"},
    {{{W, 1, -S, 0, false}}, 1, "limits[0].period_us: not positive"},
    {{{B, 0, S, 0, false}}, 1, "limits[0].burst: 0"},
    {{{B, 1, S, -1, false}}, 1, "limits[0].burst: negative"},
    {{{B, 0, 0, 1, false}}, 1, "limits[0].period_us: needed as the ttl"},
    {{{B, 0, -1, 1, false}}, 1, "limits[0].period_us: needed as the ttl"},
    {{{F, 0, S, 0, false}}, 1, "limits[0].count: 0"},
    {{{W, 0, S, 0, false}}, 1, "limits[0].count: 0"},
    {{{L, 0, S, 0, false}}, 1, "limits[0].count: 0"},
    {{{F, 1, S, 1, false}}, 1, "limits[0].burst: only a bucket"},
    {{{B, 1, S, 1, true}}, 1, "limits[0].aligned: only a fixed"},
    {{{W, 1, S, 0, true}}, 1, "limits[0].aligned: only a fixed"},
    {{{B, 1, S, BIG / S + 1, false}}, 1, "limits[0].burst, or count"},
    {{{B, 1, S, BIG / S, false}}, 1, NULL},
    {{{B, 1, BIG, 1, false}}, 1, NULL},
    {{{B, 1, BIG + 1, 1, false}}, 1, "limits[0].burst, or count"},
    {{{B, 1, 1, BIG, false}}, 1, NULL},
    {{{B, 1, 1, BIG + 1, false}}, 1, "limits[0].burst, or count"},
    {{{B, 1, INT64_MAX, INT64_MAX, false}}, 1, "limits[0].burst, or count"},
    {{{B, INT64_MAX - 1, INT64_MAX, 1, false}}, 1, "limits[0].count / gcd(count, period_us): over"},
    {{{B, INT64_MAX - 1, 1, 1, false}}, 1, "limits[0].count / gcd(count, period_us): over"},
    {{{B, BIG + 1, 1, 1, false}}, 1, "limits[0].count / gcd(count, period_us): over"},
    {{{B, BIG, 1, 1, false}}, 1, NULL},
    {{{B, BIG, BIG, BIG, false}}, 1, NULL}, /* divided by both it is small */
    {{{B, 0, BIG, 2, false}}, 1, "limits[0].burst, or count"},
    {{{F, 2, BIG, 0, false}}, 1, "limits[0].burst, or count"},
    {{{W, BIG, 2, 0, false}}, 1, "limits[0].burst, or count"},
    {{{W, BIG, 1, 0, false}}, 1, NULL},
    {{{L, BELAY_LIMITER_LOG_MAX + 1, S, 0, false}}, 1, "limits[0].count: over"},
    {{{L, BELAY_LIMITER_LOG_MAX, S, 0, false}}, 1, NULL},
    {{{L, 1, S, 0, false}, {B, 1, S, 1, false}}, 2, "limits[0].kind: a log"},
    {{{B, 1, S, 1, false}, {L, 1, S, 0, false}}, 2, "limits[1].kind: a log"},
    {{{B, 1, S, 1, false}, {F, 1, S, 0, false}, {B, 1, -1, 1, false}}, 3, "limits[2].period_us"},
    {{{B, BELAY_INFINITE, 0, 0, false}, {F, BELAY_INFINITE, -1, 0, false}}, 2, NULL},
    {{{B, BELAY_INFINITE, 0, -1, false}}, 1, "limits[0].burst: negative"},
    {{{B, 1, S, 1, false}}, 0, "limits: NULL, or not 1 to 4"},
    {{{B, 1, S, 1, false}, {B, 1, S, 1, false}, {B, 1, S, 1, false}, {B, 1, S, 1, false}}, 4, NULL},
    {{{B, 1, S, 1, false}, {B, 1, S, 1, false}}, 5, "limits: NULL, or not 1 to 4"},
};

ENV_TEST(invalid_policies) {
  belay_limit_t good = bucket_limit(1, S, 1);
  belay_limiter_t *limiter, *standing = limiter_new(env, &good, 1);
  for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
    belay_limiter_options_t options = limiter_options(policies[i].limits, policies[i].n);
    int error = belay_limiter_new(env->client, &options, &limiter);
    if (policies[i].detail == NULL) {
      if (error != 0)
        fail_msg("row %zu: %s", i, belay_detail(env->belay));
      assert_error(belay_limiter_close(limiter, NULL), 0);
      continue;
    }
    expect_detail(env, i, error, policies[i].detail);
    assert_null(limiter);
    expect_detail(env, i, belay_limiter_reconfigure(standing, policies[i].limits, policies[i].n),
                  policies[i].detail);
  }
  expect_detail(env, 0, belay_limiter_reconfigure(standing, NULL, 1), "limits: NULL");
  assert_int_equal(take(env, standing, "k", 1)->remaining, 0); /* it is as it was */
}

ENV_TEST(refused_calls) {
  static char key[BELAY_LIMITER_KEY_MAX + 1];
  belay_limit_t limits[2] = {bucket_limit(1, S, 5), {.kind = F, .count = 5, .period_us = S}};
  belay_limiter_t *l = limiter_new(env, limits, 1), *windows = limiter_new(env, limits, 2);
  belay_request_t request = {0}, *q = &request;
  belay_receipt_t receipt = {{5}}, empty = {{0}};
  belay_reservation_t reservation = {{0}};
#define REFUSED(call, detail) expect_detail(env, __LINE__, call, detail)
  REFUSED(belay_limiter_take(l, q, belay_bytes(NULL, 1), 1, on_answer), "key");
  REFUSED(belay_limiter_take(l, q, belay_string(key), 1, on_answer), "key");
  REFUSED(belay_limiter_take(l, q, belay_bytes(key, sizeof key), 1, on_answer), "key");
  REFUSED(belay_limiter_take(l, q, belay_bytes(key, 1), -1, on_answer), "cost");
  REFUSED(belay_limiter_take(l, q, belay_bytes(key, 1), INT64_MIN, on_answer), "cost");
  REFUSED(belay_limiter_peek(l, q, belay_string(key), on_answer), "key");
  REFUSED(belay_limiter_penalty(l, q, belay_bytes(key, 1), 0, on_answer), "cost");
  REFUSED(belay_limiter_penalty(l, q, belay_bytes(key, 1), -1, on_answer), "cost");
  REFUSED(belay_limiter_penalty(l, q, belay_bytes(key, 1), BIG / S + 1, on_answer), "cost");
  REFUSED(belay_limiter_penalty(l, q, belay_string(key), 1, on_answer), "key");
  REFUSED(belay_limiter_refund(l, q, belay_bytes(key, 1), NULL, 1, on_answer), "receipt");
  REFUSED(belay_limiter_refund(l, q, belay_bytes(key, 1), &empty, 1, on_answer), "receipt: void");
  REFUSED(belay_limiter_refund(l, q, belay_bytes(key, 1), &receipt, 0, on_answer), "tokens");
  REFUSED(belay_limiter_refund(l, q, belay_bytes(key, 1), &receipt, 6, on_answer), "tokens");
  REFUSED(belay_limiter_refund(l, q, belay_bytes(NULL, 1), &receipt, 1, on_answer), "key");
  REFUSED(belay_limiter_reset(l, q, belay_string(key), on_answer), "key");
  REFUSED(belay_limiter_ban(l, q, belay_bytes(key, 1), -1, on_answer), "ban_us");
  REFUSED(belay_limiter_ban(l, q, belay_bytes(key, 1), INT64_MAX, on_answer), "ban_us");
  REFUSED(belay_limiter_reserve(l, q, belay_bytes(key, 1), 0, S, on_answer), "cost");
  REFUSED(belay_limiter_reserve(l, q, belay_bytes(key, 1), 1, -1, on_answer), "max_wait_us");
  REFUSED(belay_limiter_reserve(l, q, belay_bytes(key, 1), 1, 86400 * S + 1, on_answer),
          "max_wait_us");
  REFUSED(belay_limiter_reserve(windows, q, belay_bytes(key, 1), 1, S, on_answer), "credit");
  REFUSED(belay_limiter_wait(windows, q, belay_bytes(key, 1), 1, S, on_answer), "credit");
  REFUSED(belay_limiter_wait(l, q, belay_bytes(key, 1), -5, S, on_answer), "cost");
  REFUSED(belay_limiter_wait(l, q, belay_bytes(key, sizeof key), 1, S, on_answer), "key");
  REFUSED(belay_limiter_cancel_reservation(l, q, belay_bytes(key, 1), NULL, on_answer),
          "reservation");
  REFUSED(
      belay_limiter_cancel_reservation(windows, q, belay_bytes(key, 1), &reservation, on_answer),
      "credit");
  assert_error(belay_limiter_reconfigure(NULL, limits, 1), BELAY_EINVAL);
  belay_limiter_stats(NULL, NULL);
  belay_limiter_stats(l, NULL);
  assert_int_equal(receipt.belay_private[0], 5); /* nothing was used up */
  ask_t ask = {0};
  assert_error(belay_limiter_take(l, asked(env, &ask), belay_bytes(key, 1), 1, on_answer), 0);
  assert_error(belay_limiter_take(l, &ask.request, belay_bytes(key, 1), 1, on_answer),
               BELAY_ESTATE);
  assert_error(belay_limiter_refund(l, &ask.request, belay_bytes(key, 1), &receipt, 1, on_answer),
               BELAY_ESTATE);
  assert_int_equal(receipt.belay_private[0], 5);
  assert_int_equal(answer(&ask, 0)->remaining, 4);
  belay_limiter_stats_t stats;
  belay_limiter_stats(l, &stats);
  assert_int_equal(stats.asked, 1);
}

/* ---- servers that answer nonsense ---- */

typedef struct plot {
  char text[512];
  size_t len;
} plot_t;

static void talk(fake_link_t *link, const char *const *words, size_t count, void *arg) {
  const plot_t *plot = arg;
  if (fake_is_handshake(words))
    fake_behave(link, words, count);
  else
    fake_say_bytes(link, plot->text, plot->len);
}

static const belay_limit_t answered_policies[][2] = {
    {{B, 3, 7 * S, 5, false}},
    {{F, 5, S, 0, false}},
    {{F, 5, S, 0, true}},
    {{W, 5, S, 0, false}},
    {{B, 0, S, 5, false}},
    {{L, 5, S, 0, false}},
    {{B, 1, S, 5, false}, {W, 5, S, 0, false}},
};

/* No policy can make anything of that: neither allowed nor denied, and the connection is not
 * trusted any more. */
static void expect_survival(const plot_t *plot) {
  fake_t *fake = fake_start(&(fake_options_t){.on_command = talk, .arg = (void *)(uintptr_t)plot});
  belay_client_options_t options = client_options();
  options.reconnect_min_ms = 1;
  options.reconnect_max_ms = 20;
  env_t *env = env_open_at(fake_url(fake), &options);
  for (size_t i = 0; i < sizeof answered_policies / sizeof *answered_policies; i++) {
    belay_limiter_t *limiter =
        limiter_new(env, answered_policies[i], answered_policies[i][1].kind != 0 ? 2 : 1);
    belay_receipt_t receipt = {{5, 0, 1, 2, 3, 4, 5, 6}};
    const belay_limiter_result_t *result = i % 3 == 0   ? take(env, limiter, "k", 5)
                                           : i % 3 == 1 ? peek(env, limiter, "k")
                                                        : refund(env, limiter, "k", &receipt, 5);
    assert_error(result->cause, BELAY_EPROTO);
    assert_int_equal(result->verdict, BELAY_INDETERMINATE);
    assert_int_equal(result->remaining, -1);
    assert_error(belay_limiter_close(limiter, NULL), 0);
  }
  env_close(env);
  fake_stop(fake);
}

TEST(invalid_replies) {
  static const char *const texts[] = {
      ":0\r\n", "+OK\r\n", "$-1\r\n",           "$0\r\n\r\n", "$8\r\n01234567\r\n",
      "*0\r\n", "*-1\r\n", "*1\r\n$1\r\nx\r\n", ":-1\r\n",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    plot_t plot = {.len = strlen(texts[i])};
    memcpy(plot.text, texts[i], plot.len);
    expect_survival(&plot);
  }
  static const size_t lengths[] = {1, 6, 8, 9, 12, 19, 25, 32};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    plot_t plot = {.len = 8 * lengths[i] + 8};
    snprintf(plot.text, 6, "$%03zu\r", 8 * lengths[i]); /* all of them 0 */
    plot.text[5] = '\n';
    memcpy(plot.text + plot.len - 2, "\r\n", 2);
    expect_survival(&plot);
  }
}

/* Half a second, and a debt below 0; of each policy. unit/limit/limit_numbers.c has many more. */
TEST(invalid_numbers) {
  static const unsigned char half[] = {0, 0, 0, 0, 0, 0, 0xe0, 0x3f};
  static const unsigned char minus[] = {0, 0, 0, 0, 0, 0, 0xf0, 0xbf};
  for (size_t at = 0; at < 7; at++) {
    plot_t plot = {.text = "$056\r\n", .len = 6 + 56 + 2};
    memcpy(plot.text + 6 + 8 * at, at < 4 ? half : minus, 8);
    memcpy(plot.text + 6 + 56, "\r\n", 2);
    expect_survival(&plot);
  }
}

/* ---- closing ---- */

enum { PENDING = 6 };

typedef struct ending {
  env_t *env;
  belay_limiter_t *limiter;
  ask_t ask[PENDING];
  int what, calls;
} ending_t;

static void on_limiter_closed(belay_limiter_t *limiter, void *data) {
  ending_t *ending = data;
  belay_request_t request = {0};
  ending->calls++;
  assert_ptr_equal(belay_limiter_data(limiter), data);
  assert_error(belay_limiter_take(limiter, &request, belay_string("k"), 1, on_answer),
               BELAY_ECLOSING);
  assert_error(belay_limiter_close(limiter, NULL), BELAY_ECLOSING);
  for (int i = 0; i < PENDING; i++) /* after all callbacks */
    assert_int_equal(ending->ask[i].ended, ending->ask[i].begun);
}

static void end_it(ask_t *ask) {
  ending_t *ending = ask->arg;
  belay_limit_t limit = bucket_limit(1, S, 1);
  switch (ending->what) {
  case 0:
    assert_error(belay_limiter_close(ending->limiter, on_limiter_closed), 0);
    assert_error(belay_limiter_reconfigure(ending->limiter, &limit, 1), BELAY_ECLOSING);
    break;
  case 1:
    assert_error(begin_client_close(ending->env), 0);
    break;
  case 2:
    assert_error(begin_belay_close(ending->env), 0);
    break;
  default:
    for (int i = 1; i < PENDING; i++)
      assert_error(belay_request_cancel(&ending->ask[i].request), 0);
    assert_error(belay_request_cancel(&ask->request), BELAY_ESTATE);
    return;
  }
  assert_true(belay_limiter_take(ending->limiter, asked(ending->env, ask), belay_string("k"), 1,
                                 on_answer) == BELAY_ECLOSING);
  ask->begun--;
}

/* In the callback of the first, while others are on the way, parked until their time, or answered
 * by the policy. */
TEST(end_in_callback) {
  for (int what = 0; what < 4; what++) {
    static ending_t ending;
    env_t *env = env_open(NULL);
    ending = (ending_t){.env = env, .what = what};
    belay_limit_t limit = bucket_limit(1, 10 * S, 2);
    belay_limiter_options_t options = limiter_options(&limit, 1);
    options.data = &ending;
    belay_limiter_t *l = ending.limiter = limiter_with(env, env->client, &options);
    (void)taken(env, l, "k", 2);
    ask_t *a = ending.ask;
    a[0].then = end_it;
    a[0].arg = &ending;
    start_wait(env, l, &a[1], "k", 1, 60 * S);
    env_run_for(env, 50);
    assert_error(belay_limiter_peek(l, asked(env, &a[0]), belay_string("k"), on_answer), 0);
    server_pause(env->server);
    start_take(env, l, &a[2], "j", 1);
    assert_error(belay_limiter_reset(l, asked(env, &a[3]), belay_string("j"), on_answer), 0);
    start_wait(env, l, &a[4], "j", 1, S);
    assert_error(belay_limiter_reserve(l, asked(env, &a[5]), belay_string("j"), 1, S, on_answer),
                 0);
    server_resume(env->server);
    for (int i = 0; i < PENDING; i++)
      (void)answer(&a[i], 0);
    assert_int_equal(a[1].result.cause, BELAY_ECANCELED);
    assert_int_equal(a[1].result.verdict, BELAY_INDETERMINATE);
    if (what == 0)
      env_until(env, ending.calls == 1);
    if (what == 3) { /* the reserved tokens are returned */
      env_settle(env);
      assert_true(peek(env, l, "k")->reset_after_us <= 20 * S);
    }
    env_close(env);
  }
}
