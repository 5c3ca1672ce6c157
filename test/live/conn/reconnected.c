/* Operations that wait for a connection only continue at once: an acquire that polls, and the
 * renewal of a lock. */
#include "support/fixtures/env.h"
#include "support/servers/secure.h"

enum { TIMEOUT_MS = 100, FAILURES = 10, SOON_MS = 5000 };

static env_t *open_env(void) {
  belay_client_options_t options = client_options();
  options.timeout_ms = TIMEOUT_MS * slow();
  return env_open(&options);
}

/* There is a connection again, for a call that is no lock's. */
static void come_back(env_t *env) {
  server_restart(env->server);
  while (pong(env, NULL) != 0)
    ;
}

TEST_IN(polling_acquire_after_reconnect, env, open_env()) {
  belay_lock_options_t options = with_ttl(1000);
  options.wakeup = BELAY_WAKE_POLL;
  options.retry_min_ms = options.retry_max_ms = options.backoff_max_ms = 3600000;
  contender_t *c = contender_new(env, "door", &options);
  server_kill(env->server);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  env_until(env, client_stats(env).not_sent > 0);
  come_back(env);
  assert_error(outcome(c), 0); /* or in an hour */
  assert_error(release(c), 0);
}

/* After ten failures the next renewal is due in 10 to 20 seconds. The restarted server has lost the
 * lock, so the next renewal detects the loss. */
TEST_IN(renewal_after_reconnect, env, open_env()) {
  belay_lock_options_t options = watched(86400000);
  contender_t *c = contender_new(env, "door", &options);
  assert_error(try_lock(c), 0);
  server_kill(env->server);
  for (int i = 0; i < FAILURES; i++)
    assert_true(extend(c, options.ttl_ms) < 0);
  assert_int_equal(c->lost, 0);
  come_back(env);
  int64_t began = clock_now();
  env_until(env, c->lost == 1);
  assert_int_equal(c->reason, BELAY_LOST_TAKEN);
  assert_true(clock_since_ms(began) < SOON_MS);
}
