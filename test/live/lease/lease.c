/* A held lock, with nothing going wrong: extending it, and keeping it. */
#include <stdio.h>
#include <unistd.h>

#include "support/fixtures/env.h"

ENV_TEST(extend_to_longer_ttl) {
  belay_lock_options_t options = with_ttl(1000 * slow());
  contender_t *c = contender_holding(env, "door", &options);
  assert_error(extend(c, 60000), 0);
  assert_between(pttl_of(c), 55000, 60000);
  assert_between(remaining_ms(c), 55000, 60000 - 602);
  assert_int_equal(c->lost, 0);
}

ENV_TEST(extend_to_shorter_ttl_is_local) {
  belay_lock_options_t options = with_ttl(60000);
  contender_t *c = contender_holding(env, "door", &options);
  int64_t short_ttl = 400 * slow(), began = clock_now();
  assert_error(begin_extend(c, short_ttl), 0);
  assert_true(remaining_ms(c) <= short_ttl - short_ttl / 100 - 2);
  assert_error(extend_outcome(c), 0);
  assert_true(remaining_ms(c) <= short_ttl);
  assert_true(pttl_of(c) > 50000);
  await_loss(c, BELAY_LOST_EXPIRED);
  assert_between(clock_since_ms(began), short_ttl * 9 / 10, short_ttl + lag());
}

ENV_TEST(extend_to_shorter_ttl_is_renewed) {
  contender_t *c = contender_new(env, "door", NULL);
  int64_t short_ttl = kept_ttl();
  assert_ok(try_lock(c), extend(c, short_ttl));
  env_run_for(env, 2 * short_ttl);
  assert_int_equal(c->lost, 0);
  assert_true(remaining_ms(c) > 0);
  assert_true(remaining_ms(c) <= short_ttl);
}

ENV_TEST(extended_ttl_lasts_until_release) {
  int64_t ttl = kept_ttl();
  belay_lock_options_t options = watched(ttl);
  contender_t *c = contender_holding(env, "door", &options);
  assert_error(extend(c, 3 * ttl), 0);
  env_until(env, pttl_of(c) < 5 * ttl / 2);
  env_until(env, pttl_of(c) > 5 * ttl / 2); /* it was renewed */
  assert_int_equal(c->lost, 0);
  assert_ok(release(c), try_lock(c));
  assert_true(pttl_of(c) <= ttl);
}

ENV_TEST(extend_default_ttl) {
  belay_lock_options_t options = with_ttl(30000);
  contender_t *c = contender_holding(env, "door", &options);
  env_run_for(env, 200 + 2 * lag());
  int64_t left = remaining_ms(c) + lag();
  assert_true(left < 30000 - 302);
  assert_error(extend(c, BELAY_DEFAULT), 0);
  assert_true(remaining_ms(c) > left);
}

ENV_TEST(extend_in_wrong_state) {
  contender_t *c = contender_new(env, "door", NULL);
  assert_error(extend(c, 5000), BELAY_ENOTOWNER);
  assert_error(begin_acquire(c, 0), 0);
  assert_error(extend(c, 5000), BELAY_ENOTOWNER);
  assert_ok(outcome(c), begin_extend(c, 5000));
  assert_error(begin_extend(c, 5000), BELAY_ESTATE);
  env_until(env, c->extended == 1);
  assert_ok(c->extend_status, release(c));
  assert_error(extend(c, 5000), BELAY_ENOTOWNER);
  assert_int_equal(c->extended, 1);
}

ENV_TEST(extend_without_a_callback) {
  contender_t *c = contender_holding(env, "door", NULL);
  assert_error(belay_lock_extend(c->lock, 60000, BELAY_DEFAULT, NULL), 0);
  env_until(env, pttl_of(c) > 30000);
}

ENV_TEST(extend_after_key_was_taken) {
  contender_t *c = contender_holding(env, "door", NULL);
  foreign_holder(c, 60000);
  assert_error(extend(c, 5000), BELAY_ENOTOWNER);
  await_loss(c, BELAY_LOST_TAKEN);
  assert_error(belay_lock_error(c->lock), BELAY_ENOTOWNER);
  assert_int_equal(belay_lock_remaining_us(c->lock), 0);
  assert_error(release(c), BELAY_ENOTOWNER);
  assert_string_equal(value_of(c), "somebody else");
  assert_between(pttl_of(c), 50000, 60000);
}

ENV_TEST(release_cancels_extend) {
  contender_t *c = contender_holding(env, "door", NULL);
  assert_ok(begin_extend(c, 60000), begin_release(c), outcome(c));
  assert_error(extend_outcome(c), BELAY_ECANCELED);
  expect_keys(env, 0);
}

ENV_TEST(watchdog_renews) {
  int64_t ttl = kept_ttl();
  belay_lock_options_t options = watched(ttl);
  contender_t *holder = contender_holding(env, "door", &options);
  contender_t *other = contender_new(env, "door", NULL);
  assert_error(acquire(other, 2 * ttl), BELAY_ETIMEDOUT);
  assert_int_equal(holder->lost, 0);
  assert_true(is_on_server(holder));
  assert_between(pttl_of(holder), 1, ttl);
  assert_true(remaining_ms(holder) > 0);
  assert_error(release(holder), 0);
}

ENV_TEST(no_watchdog_reports_one_loss) {
  int64_t ttl = 300 * slow();
  belay_lock_options_t options = with_ttl(ttl);
  contender_t *c = contender_holding(env, "door", &options);
  int64_t left = remaining_ms(c), began = clock_now();
  env_until(env, c->lost > 0);
  assert_between(clock_since_ms(began), left - 5, left + lag());
  assert_int_equal(c->reason, BELAY_LOST_EXPIRED);
  assert_error(belay_lock_error(c->lock), 0);
  assert_each(BELAY_ENOTOWNER, release(c), extend(c, 5000));
  env_run_for(env, ttl);
  assert_int_equal(c->lost, 1);
  assert_int_equal(server_keys(env->server), 0);
  assert_error(try_lock(c), 0); /* and it can be taken again */
}

/* The ttl of the key some time after it was taken, renewal being due after 1000 ms. */
static int64_t pttl_after_a_renewal_is_due(belay_lock_options_t options) {
  env_t *env = env_open(NULL);
  options.renew_after_ms = 1000;
  contender_t *c = contender_holding(env, "door", &options);
  env_run_for(env, 1400);
  int64_t left = pttl_of(c);
  env_close(env);
  return left;
}

TEST(watchdog_default) {
  assert_between(pttl_after_a_renewal_is_due(lock_options()), 8800, 9650);
  assert_between(pttl_after_a_renewal_is_due(with_ttl(10000)), 8000, 8700);
  belay_lock_options_t off = lock_options();
  off.watchdog = BELAY_WATCHDOG_OFF;
  assert_between(pttl_after_a_renewal_is_due(off), 8000, 8700);
}

ENV_TEST(max_hold_ends_renewal) {
  int64_t ttl = kept_ttl(), most = 2 * ttl;
  belay_lock_options_t options = watched(ttl);
  options.max_hold_ms = most;
  contender_t *c = contender_holding(env, "door", &options);
  int64_t began = clock_now();
  await_loss(c, BELAY_LOST_MAX_HOLD);
  assert_between(clock_since_ms(began), most - 10, most + ttl + lag());
  assert_error(release(c), BELAY_ENOTOWNER);
}

ENV_TEST(release_in_time_is_no_loss) {
  int64_t ttl = 200 * slow();
  belay_lock_options_t options = with_ttl(ttl);
  contender_t *c = contender_holding(env, "door", &options);
  assert_error(release(c), 0);
  env_run_for(env, 2 * ttl);
  assert_int_equal(c->lost, 0);
}

ENV_TEST(drift_shortens_lease) {
  belay_lock_options_t options = with_ttl(10000);
  options.drift_ms = 4000;
  contender_t *c = contender_holding(env, "door", &options);
  assert_between(remaining_ms(c), 5000, 6000);
  assert_between(pttl_of(c), 8000, 10000);
}
