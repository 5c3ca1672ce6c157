/* The end of a wait on a healthy server: the caller learns what the server said last, however
 * near the end that was. */
#include "support/fixtures/lease/latches.h"
#include "support/load/player.h"
#include "support/deployments/relay.h"

enum { DELAY_MS = 60, SOON_MS = 1 };

/* From now on every reply to the env's client takes longer than the wait. Returns a client without
 * this delay. */
static belay_client_t *near_client(env_t *env) {
  relay_delay(env->relay, DELAY_MS);
  return env_connect(env, server_url(env->server), NULL);
}

RELAY_TEST(first_attempt_has_whole_timeout) {
  belay_client_t *near = near_client(env);
  belay_lock_options_t options = with_ttl(60000);
  for (int fair = 0; fair < 2; fair++) {
    options.fair = fair == 1;
    contender_t *holder = contender_of(env, near, fair ? "fair" : "plain", &options);
    contender_t *c = contender_new(env, fair ? "fair" : "plain", &options);
    assert_error(acquire(holder, 0), 0);
    assert_error(acquire(c, SOON_MS), BELAY_ETIMEDOUT);
    assert_ok(release(holder), acquire(c, SOON_MS));
  }
}

RELAY_TEST(first_latch_query_has_whole_timeout) {
  belay_client_t *client = near_client(env);
  belay_latch_options_t options = latch_options(1);
  handle_t near, far;
  handle_of(&near, env, client, &options);
  handle_of(&far, env, env->client, &options);
  assert_error(latch_wait_for(&far, SOON_MS), BELAY_ETIMEDOUT);
  assert_int_equal(count(&near, NULL), 0);
  assert_error(latch_wait_for(&far, SOON_MS), 0);
}

/* An attempt that the end of the wait cut short reports the status of the attempt before it. */
ENV_TEST(cut_attempt_keeps_status) {
  belay_lock_options_t options = with_ttl(60000);
  options.wakeup = BELAY_WAKE_POLL;
  options.retry_min_ms = options.retry_max_ms = 40;
  options.timeout_ms = 60000;
  contender_t *holder = contender_new(env, "door", &options);
  contender_t *c =
      contender_of(env, env_connect(env, server_url(env->server), NULL), "door", &options);
  assert_ok(acquire(holder, 0), begin_acquire(c, 1000));
  env_until(env, belay_lock_error(c->lock) == BELAY_EHELD);
  server_pause(env->server);
  int status = outcome(c);
  server_resume(env->server);
  assert_error(status, BELAY_ETIMEDOUT);
  env_settle(env);
  assert_true(is_on_server(holder));
}
