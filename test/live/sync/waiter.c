/* The waiter's rules that latch, barrier and election tests do not reach. A late reply proves
 * nothing. At each step the waiter withdraws every arrival that the server may have recorded. */
#include "sync/waiter.h"
#include "support/fixtures/env.h"

#define KEY "bell" /* it has rung when that is there */
#define WAKE KEY "::wake"

typedef struct watch {
  env_t *env;
  belay__waiter_t waiter;
  unsigned asked, missed, over;
} watch_t;

static watch_t *watch_of(belay__waiter_t *waiter) {
  return BELAY__CONTAINER(waiter, watch_t, waiter);
}

static void ask(belay__waiter_t *waiter, belay__call_t *call) {
  watch_of(waiter)->asked++;
  belay__call_command(call, "EXISTS", 2);
  belay__call_arg(call, KEY, sizeof KEY - 1);
}

static int read_it(belay__waiter_t *waiter, const belay__reply_t *reply, int64_t *holds_ms) {
  int64_t there;
  (void)waiter, (void)holds_ms;
  if (!belay__reply_integer(reply, 0, 1, &there))
    return BELAY_EPROTO;
  return there ? 0 : BELAY__NOT_YET;
}

static void leave(belay__waiter_t *waiter, belay__call_t *call) {
  (void)waiter;
  belay__call_command(call, "GETSET", 3);
  belay__call_arg(call, "left", 4);
  belay__call_arg(call, "1", 1);
}

/* The second withdrawal of the same arrival came too late. */
static int left(belay__waiter_t *waiter, const belay__reply_t *reply) {
  (void)waiter;
  return reply->type == BELAY__REPLY_NIL ? BELAY__NOT_YET : 0;
}

static void missed(belay__waiter_t *waiter, int status) {
  (void)status;
  watch_of(waiter)->missed++;
}

static void over(belay__waiter_t *waiter) {
  watch_of(waiter)->over++;
}

static const belay__waiter_ops_t ops = {.build_query = ask,
                                        .read = read_it,
                                        .build_withdraw = leave,
                                        .read_withdraw = left,
                                        .failed = missed,
                                        .finished = over};

static void watch_with(watch_t *watch, env_t *env, const belay__waiter_config_t *config) {
  *watch = (watch_t){.env = env};
  belay__waiter_init(&watch->waiter, &ops, env->client, config, WAKE, sizeof WAKE - 1);
}

static void watch_init(watch_t *watch, env_t *env, uint32_t forgotten_after) {
  const belay__waiter_config_t config = {
      .retry_min = 10,
      .retry_max = 20,
      .backoff_max = 50,
      .timeout = (uint32_t)(100 * slow()),
      .forgotten_after = forgotten_after,
  };
  watch_with(watch, env, &config);
}

static int end_of(watch_t *watch) {
  env_until(watch->env, watch->over == 1);
  assert_false(belay__waiter_is_on(&watch->waiter));
  return watch->waiter.status;
}

static bool has_left(env_t *env) {
  return server_integer(env->server, "EXISTS", "left", NULL) == 1;
}

static void until_waiting(watch_t *watch) {
  env_until(watch->env,
            watch->waiter.state == BELAY__WAITER_WAITING && watch->waiter.not_yet_count > 0);
}

TEST(forgotten_waiter_is_unknown) {
  needs_one_process("keys in one place");
  env_t *env = env_open(NULL);
  watch_t watch;
  watch_init(&watch, env, (uint32_t)(lag() + 400 * slow()));
  belay__waiter_start(&watch.waiter, BELAY_FOREVER);
  env_run_for(env, lag() + 1000 * slow()); /* answered all the time */
  assert_int_equal(watch.over, 0);
  server_pause(env->server);
  int64_t began = clock_now();
  assert_error(end_of(&watch), BELAY_EUNKNOWN);
  assert_between(clock_since_ms(began), 100 * slow(), 1500 * slow() + 2 * lag());
  assert_true(watch.missed > 0);
  server_resume(env->server);
  env_until(env, has_left(env));
  env_close(env);
}

ENV_TEST_OF(unreachable_waiter_is_not_forgotten, o.reconnect_max_ms = 50) {
  watch_t watch;
  watch_init(&watch, env, (uint32_t)(300 * slow()));
  server_kill(env->server);
  belay__waiter_start(&watch.waiter, BELAY_FOREVER);
  env_run_for(env, 1000 * slow());
  assert_int_equal(watch.over, 0);
  server_restart(env->server);
  server_do(env->server, "SET", KEY, "1", NULL);
  assert_error(end_of(&watch), 0);
  assert_false(has_left(env));
}

ENV_TEST(waiter_with_replies_is_not_forgotten) {
  const belay__waiter_config_t config = {
      .retry_min = 60000,
      .retry_max = 60000,
      .backoff_max = 60000,
      .timeout = 60000,
      .forgotten_after = (uint32_t)(lag() + 800 * slow()),
  };
  watch_t watch;
  watch_with(&watch, env, &config);
  belay__waiter_start(&watch.waiter, BELAY_FOREVER);
  env_run_for(env, 3 * (lag() + 800 * slow()));
  assert_int_equal(watch.over, 0);
  assert_true(watch.asked >= 4 && watch.asked < 20);
  server_do(env->server, "SET", KEY, "1", NULL);
  assert_error(end_of(&watch), 0);
}

/* A withdrawal after the server may have forgotten proves nothing; a recorded arrival does. */
ENV_TEST(late_reply_of_withdrawal) {
  for (int step = 0; step < 4; step++) {
    const belay__waiter_config_t config = {
        .retry_min = 10,
        .retry_max = 20,
        .backoff_max = 50,
        .timeout = 60000,
        .forgotten_after = (uint32_t)(400 * slow()),
    };
    watch_t watch;
    server_do(env->server, "FLUSHALL", NULL);
    if (step == 3)
      server_do(env->server, "SET", "left", "1", NULL);
    watch_with(&watch, env, &config);
    belay__waiter_start(&watch.waiter, BELAY_FOREVER);
    until_waiting(&watch);
    server_pause(env->server);
    belay__waiter_cancel(&watch.waiter, BELAY_ECANCELED);
    env_run_for(env, step == 0 ? 50 : 600 * slow());
    if (step == 2)
      belay__waiter_cancel(&watch.waiter, BELAY_ECANCELED);
    server_resume(env->server);
    assert_error(end_of(&watch), step == 0 ? BELAY_ECANCELED : step == 3 ? 0 : BELAY_EUNKNOWN);
    assert_true(has_left(env));
  }
}

ENV_TEST(cancel_at_each_step) {
  watch_t watch;
  for (int step = 0; step < 4; step++) {
    server_do(env->server, "FLUSHALL", NULL);
    watch_init(&watch, env, 0);
    belay__waiter_start(&watch.waiter, step == 3 ? 200 : BELAY_FOREVER);
    if (step > 0)
      until_waiting(&watch);
    if (step == 2) {
      belay__waiter_ask_soon(&watch.waiter);
      env_until(env, watch.waiter.state == BELAY__WAITER_ASKING);
    }
    if (step < 3)
      belay__waiter_cancel(&watch.waiter, BELAY_ECANCELED);
    assert_error(end_of(&watch), step == 3 ? BELAY_ETIMEDOUT : BELAY_ECANCELED);
    assert_int_equal(has_left(env), step > 0); /* an unsent request left nothing */
  }
}

ENV_TEST(wanted_reply_after_cancel) {
  watch_t watch;
  watch_init(&watch, env, 0);
  server_do(env->server, "SET", "left", "1", NULL);
  belay__waiter_start(&watch.waiter, BELAY_FOREVER);
  until_waiting(&watch);
  belay__waiter_cancel(&watch.waiter, BELAY_ECANCELED);
  assert_int_equal(watch.waiter.state, BELAY__WAITER_LEAVING);
  belay__waiter_ask_soon(&watch.waiter); /* means nothing any more */
  belay__waiter_cancel(&watch.waiter, BELAY_ECANCELED);
  assert_error(end_of(&watch), 0);
}

ENV_TEST(stop_at_each_step) {
  static const int expected[] = {BELAY_ECANCELED, BELAY_EUNKNOWN, BELAY_EUNKNOWN, BELAY_EUNKNOWN};
  watch_t watch;
  watch_init(&watch, env, 0);
  belay__waiter_stop(&watch.waiter);
  assert_int_equal(watch.over, 0);
  for (size_t step = 0; step < sizeof expected / sizeof *expected; step++) {
    watch_init(&watch, env, 0);
    belay__waiter_start(&watch.waiter, BELAY_FOREVER);
    if (step > 0)
      until_waiting(&watch);
    if (step == 2)
      belay__waiter_ask_soon(&watch.waiter);
    if (step == 3)
      belay__waiter_cancel(&watch.waiter, BELAY_ECANCELED);
    belay__waiter_stop(&watch.waiter);
    assert_int_equal(watch.over, 1);
    assert_error(watch.waiter.status, expected[step]);
    env_run_for(env, 50);
    assert_int_equal(watch.over, 1);
  }
}
