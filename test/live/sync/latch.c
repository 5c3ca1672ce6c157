/* The latch: it is counted down exactly once for each operation, whatever is lost on the way. */
#include <stdio.h>

#include "support/fixtures/lease/latches.h"
#include "support/deployments/relay.h"

LATCH_TEST(opens_after_count, 3) {
  assert_error(latch_wait_for(h, 0), BELAY_ETIMEDOUT);
  assert_error(begin_latch_wait(h, BELAY_FOREVER), 0);
  assert_error(begin_latch_wait(h, BELAY_FOREVER), BELAY_ESTATE);
  assert_int_equal(count(h, "a"), 2);
  assert_int_equal(count(h, "b"), 1);
  env_run_for(env, 100);
  assert_int_equal(h->ended, 1);
  assert_int_equal(count(h, "c"), 0);
  assert_ok(end_of_latch_wait(h), latch_wait_for(h, 0));
}

ENV_TEST(operation_counts_once) {
  handle_t one, other;
  handle_new(&one, env, 3);
  handle_new(&other, env, 3);
  for (int i = 0; i < 5; i++) {
    assert_int_equal(count(&one, "a"), 2);
    assert_int_equal(count(&other, "a"), 2);
  }
  assert_int_equal(count(&one, "count"), 1); /* the name of a field of ours is as good as any */
  assert_int_equal(count(&one, "count"), 1);
  assert_int_equal(count(&other, NULL), 0);
}

LATCH_TEST(no_count_below_zero, 5) {
  for (unsigned i = 0; i < 5; i++)
    assert_int_equal(count(h, NULL), 4 - i);
  for (int i = 0; i < 20; i++)
    assert_int_equal(count(h, NULL), 0);
  assert_int_equal(counted(env), 5);
  assert_int_equal(server_keys(env->server), 1);
}

ENV_TEST(many_counts_at_once) {
  enum { MANY = 300 };
  static count_op_t t[MANY];
  bool seen[MANY] = {false};
  handle_t h;
  handle_new(&h, env, MANY);
  memset(t, 0, sizeof t);
  for (int i = 0; i < MANY; i++)
    assert_error(begin_count(&h, &t[i], NULL), 0);
  assert_error(begin_count(&h, &t[0], NULL), BELAY_ESTATE);
  for (int i = 0; i < MANY; i++) {
    env_until(env, t[i].ended == 1);
    assert_error(t[i].status, 0);
    assert_true(t[i].left < MANY &&
                !seen[t[i].left]); /* each number once: exactly one has opened it */
    seen[t[i].left] = true;
  }
}

/* The connection breaks or is silent before the request is read, or before the reply arrives. */
TEST(lost_reply_counts_once) {
  belay_client_options_t options = client_options();
  options.stall_timeout_ms = 300 * slow();
  options.timeout_ms = 10000 * slow();
  env_t *env = env_open_relayed(&options);
  handle_t h;
  handle_new(&h, env, 100);
  assert_int_equal(count(&h, "first"), 99);
  count_op_t t[20] = {0};
  char operation[8];
  for (int i = 0; i < 20; i++) {
    int64_t before = counted(env);
    snprintf(operation, sizeof operation, "%d", i);
    relay_delay(env->relay, 20);
    assert_error(begin_count(&h, &t[i], operation), 0);
    env_run_for(env, i % 3 * 13);
    if (i % 4 == 3)
      relay_silence(env->relay);
    else
      relay_cut(env->relay);
    relay_delay(env->relay, 0);
    env_until(env, t[i].ended == 1);
    assert_error(t[i].status, 0);
    assert_int_equal(counted(env), before + 1);
    assert_int_equal(t[i].left, 100 - counted(env));
    assert_int_equal(count(&h, operation), t[i].left);
  }
  env_close(env);
}

/* The ttl would end before the count is sent again. */
TEST(resent_count_in_same_latch) {
  belay_client_options_t client = client_options();
  client.timeout_ms = 10000 * slow();
  env_t *env = env_open_relayed(&client);
  belay_latch_options_t options = latch_options(9);
  options.ttl_ms = 1000;
  for (int old = 0; old < 2; old++) { /* the first to count makes it */
    handle_t h;
    count_op_t t = {0};
    server_do(env->server, "FLUSHALL", NULL);
    handle_of(&h, env, env->client, &options);
    assert_error(old ? latch_wait_for(&h, 0) : begin_ping(env), old ? BELAY_ETIMEDOUT : 0);
    env_run_for(env, 100);
    relay_delay(env->relay, 100);
    assert_error(begin_count(&h, &t, "a"), 0);
    env_until(env, counted(env) == 1);
    server_pause(env->server);
    relay_cut(env->relay);
    relay_delay(env->relay, 0);
    env_run_for(env, 1200);
    server_resume(env->server);
    env_until(env, t.ended == 1);
    assert_error(t.status, 0);
    assert_int_equal(t.left, 8);
    assert_int_equal(counted(env), 1);
    assert_true(server_integer(env->server, "PTTL", KEY, NULL) <=
                client.timeout_ms + client.timeout_ms / 100 - 1000);
  }
  env_close(env);
}

LATCH_TEST(count_times_out, 2) {
  assert_int_equal(count(h, "a"), 1);
  server_pause(env->server);
  count_op_t t = {.request = {.timeout_ms = 100 * slow()}};
  assert_error(count_status(h, &t, "b"), BELAY_EUNKNOWN);
  server_resume(env->server);
  assert_int_equal(count(h, "b"), 0);
  assert_int_equal(count(h, "a"), 0);
  assert_int_equal(counted(env), 2);
}

LATCH_TEST(cancel_count, 2) {
  count_op_t t = {0};
  assert_int_equal(count(h, "a"), 1);
  assert_error(begin_count(h, &t, "b"), 0);
  assert_error(belay_request_cancel(&t.request), 0);
  assert_int_equal(t.ended, 0);
  env_until(env, t.ended == 1);
  assert_error(t.status, BELAY_ECANCELED);
  assert_error(belay_request_cancel(&t.request), BELAY_ESTATE);
  assert_int_equal(count(h, "b"), 0); /* the request is ours again, and the operation counts once */
}

ENV_TEST(count_mismatch) {
  handle_t two, three;
  handle_new(&two, env, 2);
  handle_new(&three, env, 3);
  assert_error(latch_wait_for(&two, 0), BELAY_ETIMEDOUT); /* a wait creates the latch, too */
  count_op_t t = {0};
  assert_error(count_status(&three, &t, "a"), BELAY_EMISMATCH);
  assert_error(latch_wait_for(&three, BELAY_FOREVER), BELAY_EMISMATCH);
  assert_int_equal(counted(env), 0);
  assert_int_equal(count(&two, "a"), 1);
}

ENV_TEST(expires_after_first_use) {
  belay_latch_options_t options = latch_options(2);
  options.ttl_ms = 1000;
  count_within_ms = 900; /* a longer one has it remembered for that long */
  handle_t h;
  handle_of(&h, env, env->client, &options);
  int64_t began = clock_now();
  assert_error(latch_wait_for(&h, 0), BELAY_ETIMEDOUT);
  assert_int_equal(count(&h, "a"), 1);
  while (clock_since_ms(began) < 500) {
    assert_error(latch_wait_for(&h, 50), BELAY_ETIMEDOUT);
    assert_int_equal(count(&h, "a"), 1);
    assert_true(server_integer(env->server, "PTTL", KEY, NULL) <=
                1000 - clock_since_ms(began) + lag());
  }
  env_until(env, server_keys(env->server) == 0);
  assert_between(clock_since_ms(began), 990, 15000);
  assert_int_equal(count(&h, "a"), 1); /* a new one */
  assert_int_equal(count(&h, "b"), 0);
  assert_int_equal(count(&h, "c"), 0);
  assert_between(server_integer(env->server, "PTTL", KEY, NULL), 1, 1000);
  count_within_ms = BELAY_DEFAULT;
}

LATCH_TEST(key_of_other_type, 2) {
  server_do(env->server, "SET", KEY, "something else", NULL);
  for (int i = 0; i < 2; i++) {
    count_op_t t = {0};
    assert_each(BELAY_EWRONGTYPE, count_status(h, &t, "a"), latch_wait_for(h, BELAY_FOREVER));
    server_do(env->server, "DEL", KEY, NULL);
    server_do(env->server, "HSET", KEY, "somebody", "else's", NULL);
  }
  assert_int_equal(server_integer(env->server, "HLEN", KEY, NULL), 1);
}

static void close_it(handle_t *h) {
  h->then = NULL;
  assert_error(begin_close_latch(h), 0);
  assert_each(BELAY_ECLOSING, begin_close_latch(h), begin_latch_wait(h, 0));
}

static void close_client(handle_t *h) {
  h->then = NULL;
  assert_error(begin_client_close(h->env), 0);
}

static void close_everything(handle_t *h) {
  h->then = NULL;
  assert_error(begin_belay_close(h->env), 0);
}

static void (*const closes[])(handle_t *h) = {close_it, close_client, close_everything};

TEST(close_cancels_operations) {
  for (int paused = 0; paused < 2; paused++)
    for (size_t i = 0; i < sizeof closes / sizeof *closes; i++) {
      env_t *env = env_open(NULL);
      handle_t h;
      count_op_t t[3] = {0};
      handle_new(&h, env, 10);
      assert_int_equal(count(&h, NULL), 9);
      if (paused)
        server_pause(env->server);
      assert_error(begin_latch_wait(&h, BELAY_FOREVER), 0);
      env_run_for(env, 50);
      for (int k = 0; k < 3; k++)
        assert_error(begin_count(&h, &t[k], NULL), 0);
      closes[i](&h);
      env_until(env, h.ended == 1 && t[0].ended + t[1].ended + t[2].ended == 3);
      assert_error(h.status, BELAY_ECANCELED);
      for (int k = 0; k < 3; k++)
        assert_error(t[k].status, BELAY_ECANCELED);
      server_resume(env->server);
      env_close(env);
    }
}

TEST(close_in_each_callback) {
  for (int where = 0; where < 4; where++)
    for (size_t i = 0; i < sizeof closes / sizeof *closes; i++) {
      env_t *env = env_open(NULL);
      handle_t h;
      count_op_t t = {0}, more = {0};
      handle_new(&h, env, 2);
      h.then = closes[i];
      if (where == 0) {
        assert_ok(begin_count(&h, &t, NULL), begin_count(&h, &more, NULL));
      } else {
        assert_error(begin_latch_wait(&h, where == 2 ? 50 : 0), 0);
        if (where == 3) /* one ends the other */
          assert_error(begin_count(&h, &t, NULL), 0);
      }
      env_until(env, h.then == NULL);
      env_close(env);
      assert_int_equal(h.ended, h.begun);
      assert_int_equal(t.ended + more.ended, t.begun + more.begun);
    }
}

static void wait_again(handle_t *h) {
  if (h->ended < 5)
    assert_error(begin_latch_wait(h, 0), 0);
}

LATCH_TEST(wait_in_callback, 1) {
  h->then = wait_again;
  assert_error(begin_latch_wait(h, 0), 0);
  env_until(env, h->ended == 5);
  assert_error(h->status, BELAY_ETIMEDOUT);
}

LATCH_TEST(invalid_arguments, 1) {
  count_op_t t = {0};
  char longest[BELAY_LATCH_OP_ID_MAX + 2];
  memset(longest, 'x', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  assert_each(BELAY_EINVAL, begin_count(h, &t, longest), begin_count(h, &t, ""));
  t.request.timeout_ms = 600001;
  assert_error(begin_count(h, &t, "a"), BELAY_EINVAL);
  t.request.timeout_ms = 0;
  belay_latch_t *latch;
  assert_error(belay_latch_new(NULL, belay_string("gate"), NULL, &latch), BELAY_EINVAL);
  assert_error(belay_latch_new(env->client, belay_bytes(NULL, 4), NULL, &latch), BELAY_EINVAL);
  assert_error(belay_latch_new(env->client, belay_string(""), NULL, &latch), BELAY_EINVAL);
  assert_error(belay_latch_new(env->client, belay_string("gate"), NULL, NULL), BELAY_EINVAL);
  assert_error(belay_latch_count_down(h->latch, &t.request, belay_string("a"), NULL), BELAY_EINVAL);
  assert_error(belay_latch_count_down(h->latch, NULL, belay_string("a"), on_counted), BELAY_EINVAL);
  assert_error(belay_latch_count_down(NULL, &t.request, belay_string("a"), on_counted),
               BELAY_EINVAL);
  assert_each(BELAY_EINVAL, begin_latch_wait(h, -3), belay_latch_wait(h->latch, 0, NULL));
  assert_each(BELAY_EINVAL, belay_latch_wait(NULL, 0, on_latch_ended), belay_latch_cancel(NULL));
  assert_error(belay_latch_close(NULL, NULL), BELAY_EINVAL);
  assert_null(belay_latch_data(NULL));
  env_run_for(env, 20);
  assert_int_equal(server_keys(env->server), 0);
  assert_int_equal(count(h, longest + 1), 0);
}
