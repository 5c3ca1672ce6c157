/* Lost replies of the fair lock and the semaphore. A waiter whose grant was lost keeps its
 * place. A write without a reply is not sent again later. */
#include <stdio.h>

#include "belay/semaphore.h"
#include "support/fixtures/env.h"

static contender_t *contender_with_client(env_t *env, bool permits,
                                          const belay_lock_options_t *options) {
  belay_client_t *client = env_connect(env, server_url(env->server), NULL);
  if (!permits)
    return contender_of(env, client, "door", options);
  belay_lock_options_t o = *options;
  contender_t *c = contender_blank(env, &o);
  assert_error(belay_semaphore_new(&client, 1, belay_string("door"),
                                   &(belay_semaphore_size_t){.limit = 2, .permits = 2}, &o,
                                   &c->lock),
               0);
  return c;
}

static int64_t queue_len(const contender_t *c) {
  char queue[1100];
  snprintf(queue, sizeof queue, "%s::queue", key_of(c));
  return server_integer(c->env->server, "ZCARD", queue, NULL);
}

static void queue_up(contender_t *c) {
  int64_t before = queue_len(c);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  env_until(c->env, queue_len(c) == before + 1);
}

static bool holds(const contender_t *c) {
  return belay_lock_remaining_us(c->lock) > 0;
}

/* The server stands still until the holder's lease ends. Then it executes the request of the
 * first waiter and grants it, but that process is dead. */
static void lose_grant(bool permits) {
  env_t *env = env_open(NULL);
  belay_lock_options_t options = with_ttl(2000 * slow());
  options.watchdog = BELAY_WATCHDOG_OFF;
  options.fair = true;
  contender_t *holder = contender_with_client(env, permits, &options), *waiter[3];
  options.ttl_ms = 600000;
  options.waiter_ttl_ms = 60000;
  for (int i = 3; i-- > 0;) {
    options.timeout_ms = i > 0 ? 60000 : 100; /* of the first alone */
    waiter[i] = contender_with_client(env, permits, &options);
  }
  assert_error(try_lock(holder), 0);
  for (int i = 0; i < 3; i++)
    queue_up(waiter[i]);
  env_until(env, belay_lock_remaining_us(holder->lock) < 300000);
  server_do(env->server, "CLIENT", "PAUSE", "1000", "ALL", NULL);
  for (int i = 0; i < 3; i++) {
    env_until(env, holds(waiter[0]) || holds(waiter[1]) || holds(waiter[2]));
    assert_true(holds(waiter[i]));
    assert_error(release(waiter[i]), 0);
  }
  expect_keys(env, 0);
  env_close(env);
}

TEST(lost_grant_keeps_place_in_fair_queue) {
  lose_grant(false);
}

TEST(lost_grant_keeps_place_in_semaphore_queue) {
  lose_grant(true);
}

typedef struct answer {
  belay_request_t request;
  int status, ended;
} answer_t;

static void on_state(belay_request_t *request, int status, const belay_semaphore_state_t *state) {
  answer_t *answer = request->data;
  answer->ended++;
  answer->status = status;
  assert_non_null(state);
  assert_true(status == 0 || state->limit + state->used + state->holders + state->waiting == 0);
}

/* A second copy could get a reply while the first copy is executed much later. */
ENV_TEST(resize_is_not_resent) {
  answer_t answer = {.request = {.timeout_ms = 20000}};
  answer.request.data = &answer;
  assert_error(begin_ping(env), 0);
  env_until(env, env->pongs == 1);
  server_do(env->server, "CLIENT", "PAUSE", "600", "WRITE", NULL);
  assert_error(
      belay_semaphore_resize(env->client, &answer.request, belay_string("door"), 3, on_state), 0);
  env_run_for(env, 200);
  assert_int_equal(answer.ended, 0);
  server_do(env->server, "CLIENT", "KILL", "TYPE", "normal", NULL);
  env_until(env, answer.ended == 1);
  assert_error(answer.status, BELAY_EUNKNOWN);
}
