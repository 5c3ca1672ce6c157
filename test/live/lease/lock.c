/* The lock against a real server, with nothing going wrong: taking it, giving it back, its
 * names. */
#include <ctype.h>
#include <stdio.h>
#include <unistd.h>

#include "support/fixtures/env.h"

ENV_TEST(acquire_free_lock) {
  contender_t *c = contender_new(env, "door", NULL);
  assert_int_equal(belay_lock_remaining_us(c->lock), 0);
  assert_error(try_lock(c), 0);
  assert_true(is_on_server(c));
  assert_between(pttl_of(c), 10000 - 1000 * slow(), 10000);
  assert_between(remaining_ms(c), 9898 - 1000 * slow(), 9898);
  assert_error(belay_lock_error(c->lock), 0);
  assert_int_equal(server_keys(env->server), 1);
}

ENV_TEST(try_held_lock) {
  contender_t *holder = contender_holding(env, "door", NULL),
              *other = contender_new(env, "door", NULL);
  assert_error(try_lock(other), BELAY_EHELD);
  assert_true(belay_err_retryable(BELAY_EHELD));
  assert_error(belay_lock_error(other->lock), BELAY_EHELD);
  assert_int_equal(belay_lock_remaining_us(other->lock), 0);
  assert_true(is_on_server(holder));
  assert_error(acquire(other, 0), BELAY_EHELD);
}

ENV_TEST(names_do_not_exclude_each_other) {
  contender_t *two = contender_new(env, "two", NULL);
  (void)contender_holding(env, "one", NULL);
  assert_error(try_lock(two), 0);
  assert_int_equal(server_keys(env->server), 2);
}

ENV_TEST(waiter_acquires_after_release) {
  contender_t *holder = contender_holding(env, "door", NULL),
              *waiter = contender_new(env, "door", NULL);
  assert_error(begin_acquire(waiter, 10000), 0);
  env_run_for(env, 200);
  assert_int_equal(waiter->ended, 0);
  int64_t released = clock_now();
  assert_ok(release(holder), outcome(waiter));
  assert_true(clock_since_ms(released) < 500 * slow());
  assert_true(is_on_server(waiter));
}

ENV_TEST(wait_times_out) {
  (void)contender_holding(env, "door", NULL);
  contender_t *waiter = contender_new(env, "door", NULL);
  int64_t began = clock_now();
  assert_error(acquire(waiter, 300), BELAY_ETIMEDOUT);
  assert_between(clock_since_ms(began), 299, 300 + 200 * slow());
  assert_true(belay_err_retryable(BELAY_ETIMEDOUT));
  assert_error(belay_lock_error(waiter->lock), BELAY_EHELD);
}

ENV_TEST(default_wait_is_the_option) {
  belay_lock_options_t options = lock_options();
  options.wait_ms = 250;
  (void)contender_holding(env, "door", NULL);
  contender_t *waiter = contender_new(env, "door", &options);
  int64_t began = clock_now();
  assert_error(acquire(waiter, BELAY_DEFAULT), BELAY_ETIMEDOUT);
  assert_between(clock_since_ms(began), 249, 250 + 200 * slow());
}

ENV_TEST(cancel_endless_wait) {
  contender_t *holder = contender_holding(env, "door", NULL),
              *waiter = contender_new(env, "door", NULL);
  assert_error(cancel(waiter), BELAY_ESTATE);
  assert_error(begin_acquire(waiter, BELAY_FOREVER), 0);
  env_run_for(env, 300);
  assert_int_equal(waiter->ended, 0);
  assert_error(cancel(waiter), 0);
  assert_error(outcome(waiter), BELAY_ECANCELED);
  assert_each(BELAY_ESTATE, cancel(waiter), cancel(holder));
  assert_true(is_on_server(holder));
}

ENV_TEST(cancel_at_once_leaves_no_key) {
  contender_t *c = contender_new(env, "door", NULL);
  assert_ok(begin_acquire(c, BELAY_FOREVER), cancel(c));
  assert_error(cancel(c), BELAY_ESTATE);
  assert_error(outcome(c), BELAY_ECANCELED);
  expect_keys(env, 0);
  assert_error(try_lock(c), 0);
}

ENV_TEST(attempts_are_limited) {
  belay_lock_options_t options = lock_options();
  options.max_attempts = 3;
  (void)contender_holding(env, "door", NULL);
  contender_t *waiter = contender_new(env, "door", &options);
  uint64_t before = client_stats(env).calls;
  assert_error(acquire(waiter, BELAY_FOREVER), BELAY_EHELD);
  assert_int_equal(client_stats(env).calls - before, 3);
}

ENV_TEST(poll_at_end_of_holders_ttl) {
  belay_lock_options_t rarely = lock_options();
  rarely.retry_min_ms = rarely.retry_max_ms = 5000;
  contender_t *waiter = contender_new(env, "door", &rarely);
  foreign_holder(waiter, 300);
  int64_t began = clock_now();
  assert_error(acquire(waiter, 30000), 0);
  assert_between(clock_since_ms(began), 200, 300 + 700 * slow());
}

ENV_TEST(acquire_in_wrong_state) {
  contender_t *c = contender_new(env, "door", NULL);
  assert_error(begin_acquire(c, 1000), 0);
  assert_error(begin_acquire(c, 1000), BELAY_ESTATE);
  assert_error(outcome(c), 0);
  assert_error(begin_acquire(c, 1000), BELAY_ESTATE);
  assert_true(is_on_server(c));
  assert_error(begin_release(c), 0);
  assert_error(begin_acquire(c, 1000), BELAY_ESTATE);
  assert_error(begin_release(c), BELAY_ENOTOWNER);
  assert_error(outcome(c), 0);
  assert_int_equal(c->ended, 2);
  assert_error(try_lock(c), 0);
}

ENV_TEST(acquire_key_of_other_type) {
  contender_t *c = contender_new(env, "door", NULL);
  server_do(env->server, "RPUSH", key_of(c), "a", "b", NULL);
  assert_each(BELAY_EWRONGTYPE, try_lock(c), acquire(c, 5000), belay_lock_error(c->lock));
  assert_false(belay_err_retryable(BELAY_EWRONGTYPE));
  assert_int_equal(server_integer(env->server, "LLEN", key_of(c), NULL), 2);
}

ENV_TEST(failed_attempt_keeps_holders_ttl) {
  contender_t *waiter = contender_new(env, "door", NULL);
  foreign_holder(waiter, 60000);
  assert_error(acquire(waiter, 300), BELAY_ETIMEDOUT);
  assert_between(pttl_of(waiter), 50000, 59750);
  assert_string_equal(value_of(waiter), "somebody else");
}

ENV_TEST(release_removes_the_key) {
  contender_t *c = contender_holding(env, "door", NULL);
  assert_error(begin_release(c), 0);
  assert_int_equal(belay_lock_remaining_us(c->lock), 0);
  assert_error(outcome(c), 0);
  assert_int_equal(server_keys(env->server), 0);
  assert_int_equal(c->lost, 0);
}

ENV_TEST(release_without_a_callback) {
  contender_t *c = contender_holding(env, "door", NULL);
  assert_error(belay_lock_release(c->lock, BELAY_DEFAULT, NULL), 0);
  env_until(env, server_keys(env->server) == 0);
  env_settle(env);
  assert_error(try_lock(c), 0);
}

ENV_TEST(release_unheld_lock) {
  contender_t *c = contender_new(env, "door", NULL);
  assert_error(release(c), BELAY_ENOTOWNER);
  foreign_holder(c, 60000);
  assert_error(try_lock(c), BELAY_EHELD);
  assert_error(release(c), BELAY_ENOTOWNER);
  assert_string_equal(value_of(c), "somebody else");
  server_do(env->server, "DEL", key_of(c), NULL);
  assert_ok(try_lock(c), release(c));
  assert_error(release(c), BELAY_ENOTOWNER);
  assert_int_equal(c->ended, 3);
}

ENV_TEST(release_foreign_token) {
  contender_t *c = contender_holding(env, "door", NULL);
  foreign_holder(c, 60000);
  assert_error(release(c), BELAY_ENOTOWNER);
  assert_string_equal(value_of(c), "somebody else");
  assert_int_equal(c->lost, 0);
  server_do(env->server, "DEL", key_of(c), NULL);
  assert_error(try_lock(c), 0);
  server_do(env->server, "DEL", key_of(c), NULL);
  assert_error(release(c), BELAY_ENOTOWNER);
}

ENV_TEST(release_key_of_other_type) {
  contender_t *c = contender_holding(env, "door", NULL);
  server_do(env->server, "DEL", key_of(c), NULL);
  server_do(env->server, "RPUSH", key_of(c), "a", NULL);
  assert_error(release(c), BELAY_ENOTOWNER);
  assert_int_equal(server_integer(env->server, "LLEN", key_of(c), NULL), 1);
}

TEST(key_format) {
  static const char *const parts[] = {"shop", "eu{1}"};
  belay_client_options_t options = client_options();
  options.namespace_parts = parts;
  options.namespace_count = 2;
  env_t *env = env_open(&options);
  assert_string_equal(key_of(contender_new(env, "a::b", NULL)), "shop::eu%7B1%7D::lock::{a%3A:b}");
  contender_t *c = contender_new(env, "order:42", NULL);
  assert_string_equal(key_of(c), "shop::eu%7B1%7D::lock::{order:42}");
  assert_error(try_lock(c), 0);
  assert_int_equal(server_integer(env->server, "EXISTS", "shop::eu%7B1%7D::lock::{order:42}", NULL),
                   1);
  env_close(env);
}

ENV_TEST(names_of_any_bytes) {
  static const char odd[] = {'a', '\0', '\n', '{', '}', (char)0xff, ' '};
  char lengthy[1024];
  memset(lengthy, '{', sizeof lengthy);
  contender_t *c = contender_new(env, "plain", NULL);
  belay_lock_t *odd_lock, *long_lock;
  size_t len;
  assert_error(belay_lock_new(env->client, belay_bytes(odd, sizeof odd), NULL, &odd_lock), 0);
  assert_error(belay_lock_new(env->client, belay_bytes(lengthy, sizeof lengthy), NULL, &long_lock),
               0);
  belay_lock_key(long_lock, &len);
  assert_true(len > 3 * sizeof lengthy);
  belay_lock_t *plain = c->lock;
  belay_lock_set_data(odd_lock, c);
  belay_lock_set_data(long_lock, c);
  c->lock = odd_lock;
  assert_error(try_lock(c), 0);
  assert_int_equal(server_integer(env->server, "EXISTS", "belay::lock::{a%00%0A%7B%7D\xff }", NULL),
                   1);
  c->lock = long_lock;
  assert_error(try_lock(c), 0);
  assert_int_equal(server_keys(env->server), 2);
  c->lock = plain;
}

ENV_TEST(exact_key) {
  belay_lock_options_t options = lock_options();
  options.key = belay_string("some{thing}::else");
  contender_t *c = contender_new(env, "whatever", &options);
  assert_string_equal(key_of(c), "some{thing}::else");
  assert_error(try_lock(c), 0);
  assert_int_equal(server_integer(env->server, "EXISTS", "some{thing}::else", NULL), 1);
  assert_true(is_on_server(c));
  assert_error(release(c), 0);
  assert_int_equal(server_keys(env->server), 0);
}

static void check_token(const char *token, const char *label) {
  for (int i = 0; i < 40; i++)
    assert_true(isdigit((unsigned char)token[i]) || (token[i] >= 'a' && token[i] <= 'f'));
  assert_int_equal(token[40], ':');
  assert_string_equal(token + 41, label);
}

ENV_TEST_OF(token_format, o.owner = "me@here") {
  contender_t *c = contender_new(env, "door", NULL);
  char token[128], again[128], few[8];
  assert_int_equal(belay_lock_token(c->lock, token, sizeof token), 0);
  assert_string_equal(token, "");
  assert_error(try_lock(c), 0);
  assert_int_equal(belay_lock_token(c->lock, token, sizeof token), 48);
  check_token(token, "me@here");
  assert_string_equal(value_of(c), token);
  assert_int_equal(belay_lock_token(c->lock, few, sizeof few), 48);
  assert_memory_equal(few, token, 7);
  assert_int_equal(few[7], '\0');
  assert_int_equal(belay_lock_token(c->lock, NULL, 0), 48);
  assert_error(release(c), 0);
  assert_int_equal(belay_lock_token(c->lock, again, sizeof again), 0);
  assert_error(try_lock(c), 0);
  belay_lock_token(c->lock, again, sizeof again);
  assert_memory_not_equal(token, again, 40);
}

ENV_TEST(default_label) {
  contender_t *c = contender_new(env, "door", NULL);
  char host[65] = "", label[128], token[128];
  gethostname(host, sizeof host - 1);
  snprintf(label, sizeof label, "%s:%d", host, (int)getpid());
  assert_error(try_lock(c), 0);
  belay_lock_token(c->lock, token, sizeof token);
  check_token(token, label);
}

ENV_TEST(held_lock_with_ref_keeps_loop_alive) {
  contender_t *c = contender_new(env, "door", NULL);
  assert_false(uv_loop_alive(&env->loop));
  assert_error(begin_acquire(c, 0), 0);
  assert_true(uv_loop_alive(&env->loop));
  uv_run(&env->loop, UV_RUN_DEFAULT); /* ends by itself, the lock being held */
  assert_int_equal(c->ended, 1);
  assert_error(c->status, 0);
  belay_lock_ref(c->lock);
  belay_lock_ref(c->lock);
  assert_true(uv_loop_alive(&env->loop));
  belay_lock_unref(c->lock);
  assert_false(uv_loop_alive(&env->loop));
  belay_lock_ref(c->lock);
  assert_error(begin_release(c), 0);
  uv_run(&env->loop, UV_RUN_DEFAULT);
  assert_int_equal(c->ended, 2);
}

ENV_TEST(data_pointer) {
  int mine, other;
  belay_lock_options_t options = lock_options();
  options.data = &mine;
  belay_lock_t *lock;
  assert_error(belay_lock_new(env->client, belay_string("door"), &options, &lock), 0);
  assert_ptr_equal(belay_lock_data(lock), &mine);
  belay_lock_set_data(lock, &other);
  assert_ptr_equal(belay_lock_data(lock), &other);
  assert_ptr_equal(belay_client_data(env->client), env);
  assert_ptr_equal(belay_data(env->belay), env);
  assert_ptr_equal(belay_client_belay(env->client), env->belay);
}

ENV_TEST(name_is_copied) {
  char name[] = "door";
  contender_t *c = contender_new(env, name, NULL);
  memset(name, 'x', sizeof name);
  assert_string_equal(key_of(c), "belay::lock::{door}");
}

TEST(names_of_losses) {
  assert_string_equal(belay_lost_name(BELAY_LOST_EXPIRED), "expired");
  assert_string_equal(belay_lost_name(BELAY_LOST_TAKEN), "taken");
  assert_string_equal(belay_lost_name(BELAY_LOST_MAX_HOLD), "max-hold");
  assert_string_equal(belay_lost_name(BELAY_LOST_CLOSED), "closed");
}

ENV_TEST(hundred_contenders) {
  enum { CONTENDERS = 100 };
  belay_lock_options_t options = lock_options();
  options.retry_min_ms = options.retry_max_ms = 5;
  contender_t *all[CONTENDERS];
  for (int i = 0; i < CONTENDERS; i++) {
    all[i] = contender_new(env, "door", &options);
    assert_error(begin_acquire(all[i], BELAY_FOREVER), 0);
  }
  for (int turns = 0; turns < CONTENDERS; turns++) {
    contender_t *holder = NULL;
    env_wait_begin(env, "somebody holds it");
    while (holder == NULL) {
      for (int i = 0; i < CONTENDERS; i++)
        if (belay_lock_remaining_us(all[i]->lock) > 0) {
          assert_null(holder);
          holder = all[i];
        }
      if (holder == NULL)
        env_turn(env);
    }
    env_wait_end(env);
    assert_error(release(holder), 0);
  }
  for (int i = 0; i < CONTENDERS; i++)
    assert_int_equal(all[i]->ended, 2);
}
