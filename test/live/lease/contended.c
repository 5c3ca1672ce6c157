/* The contention flag: a release publishes only if a waiter has set the flag, and each release
 * wakes the waiters that are left. */
#include <stdio.h>

#include "core/client/client.h"
#include "support/base/clock.h"
#include "support/fixtures/env.h"

#define WAITERS 3

/* Polls too rarely for this test. */
static belay_lock_options_t rarely(void) {
  belay_lock_options_t options = with_ttl(60000);
  options.retry_min_ms = options.retry_max_ms = 60000;
  return options;
}

static int64_t flag_ttl(const contender_t *c) {
  char flag[256];
  snprintf(flag, sizeof flag, "%s::contended", key_of(c));
  return server_integer(c->env->server, "PTTL", flag, NULL);
}

static contender_t *any_holder(contender_t *const *waiters) {
  for (int i = 0; i < WAITERS; i++)
    if (belay_lock_remaining_us(waiters[i]->lock) > 0)
      return waiters[i];
  return NULL;
}

ENV_TEST(release_without_waiter_publishes_nothing) {
  contender_t *c = contender_new(env, "door", NULL), *other = contender_new(env, "door", NULL);
  bool native = belay__client_can(env->client, BELAY__DELIFEQ) ||
                belay__client_can(env->client, BELAY__DELEX);
  int64_t before = server_publications(env->server);
  for (int i = 0; i < 5; i++) {
    assert_error(try_lock(c), 0);
    assert_error(try_lock(other), BELAY_EHELD); /* does not wait */
    assert_error(release(c), 0);
  }
  if (!native)
    assert_int_equal(server_publications(env->server), before);
  assert_int_equal(server_keys(env->server), 0);
}

/* The first release removes the flag of all. */
ENV_TEST(each_release_wakes_the_waiters_of_other_clients) {
  belay_lock_options_t options = rarely();
  contender_t *holder = contender_holding(env, "door", &options), *waiters[WAITERS];
  for (int i = 0; i < WAITERS; i++) {
    waiters[i] =
        contender_of(env, env_connect(env, server_url(env->server), NULL), "door", &options);
    assert_error(begin_acquire(waiters[i], BELAY_FOREVER), 0);
  }
  for (int left = WAITERS; left > 0; left--) {
    env_until(env, flag_ttl(holder) > 0);
    env_run_for(env, 100); /* the others ask, too */
    int64_t began = clock_now();
    assert_error(release(holder), 0);
    env_until(env, any_holder(waiters) != NULL);
    assert_between(clock_since_ms(began), 0, 1000 * slow());
    holder = any_holder(waiters);
  }
  assert_error(release(holder), 0);
  for (int i = 0; i < WAITERS; i++)
    assert_error(outcome(waiters[i]), 0);
  assert_int_equal(server_keys(env->server), 0);
}

/* The flag of a waiter that gave up ends, and costs one message. */
ENV_TEST(flag_of_a_waiter_that_gave_up) {
  contender_t *holder = contender_holding(env, "door", NULL);
  contender_t *waiter =
      contender_of(env, env_connect(env, server_url(env->server), NULL), "door", NULL);
  assert_error(acquire(waiter, 300), BELAY_ETIMEDOUT);
  assert_between(flag_ttl(holder), 1, 60000);
  int64_t before = server_publications(env->server);
  assert_error(release(holder), 0);
  assert_int_equal(server_publications(env->server), before + 1);
  assert_int_equal(server_keys(env->server), 0);
}
