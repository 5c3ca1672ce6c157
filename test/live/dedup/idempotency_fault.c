/* Idempotency records where something goes wrong: answers are lost, callers give up, keys hold
 * something else. */
#include <stdio.h>

#include "scripts.gen.h"
#include "support/fixtures/data/once.h"
#include "support/deployments/relay.h"
#include "support/models/scripts.h"

#define KEY "belay::idempotency::{pay}"
#define MINUTE 60000

static int begin_nth(once_t *once, turn_t *turn, int n) {
  static const belay_idempotency_token_t token = {{1}};
  return n == 0   ? once_begin(once, turn, "pay", "x", MINUTE)
         : n == 1 ? once_extend(once, turn, "pay", &token, MINUTE)
         : n == 2 ? once_finish(once, turn, "pay", &token, "r", 0)
         : n == 3 ? once_abandon(once, turn, "pay", &token)
                  : once_read(once, turn, "pay");
}
enum { OPERATIONS = 5 }; /* without forget */

static void expect_left_alone(once_t *once, int error) {
  server_t *server = once->env->server;
  uint64_t digest = server_digest(server);
  int64_t ttl = server_integer(server, "PTTL", KEY, NULL);
  for (int n = 0; n < OPERATIONS; n++) {
    turn_t turn = {0};
    assert_ends(begin_nth(once, &turn, n), end_of_turn(&turn), error);
    assert_int_equal(strncmp(turn.detail, KEY ": ", sizeof KEY + 1), 0);
  }
  assert_true(server_digest(server) == digest);
  assert_true(ttl == -1 ? server_integer(server, "PTTL", KEY, NULL) == -1
                        : server_integer(server, "PTTL", KEY, NULL) <= ttl);
}

TEST_IN(foreign_record_is_left_unchanged, env, env_open_with(server_with_digest(), NULL)) {
  static const char *const wrong[][2] = {
      {"state", "busy"},   {"state", ""},
      {"token", "short"},  {"attempt", "0"},
      {"attempt", "-1"},   {"attempt", "01"},
      {"attempt", "1.5"},  {"attempt", "9007199254740992"},
      {"until", "soon"},   {"until", "-1"},
      {"result", "early"}, {"fingerprint", NULL},
      {"owner", NULL},     {"state", NULL},
      {"until", NULL},     {"result", NULL},
      {"attempt", "1e3"},  {"until", "99999999999999999999"},
  };
  once_t once;
  turn_t turn = {0};
  once_new(&once, env);
  server_do(env->server, "RPUSH", KEY, "1", NULL);
  expect_left_alone(&once, BELAY_EWRONGTYPE);
  server_do(env->server, "DEL", KEY, NULL);
  server_do(env->server, "SET", KEY, "1", NULL);
  expect_left_alone(&once, BELAY_EWRONGTYPE);
  server_do(env->server, "DEL", KEY, NULL);
  server_do(env->server, "HSET", KEY, "name", "somebody's", NULL);
  expect_left_alone(&once, BELAY_EMISMATCH);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    expect_turn(&turn, once_forget(&once, &turn, "pay"), BELAY_IDEMPOTENCY_ABSENT);
    expect_turn(&turn, once_begin(&once, &turn, "pay", "x", MINUTE), BELAY_IDEMPOTENCY_STARTED);
    if (wrong[i][1] != NULL)
      server_do(env->server, "HSET", KEY, wrong[i][0], wrong[i][1], NULL);
    else
      server_do(env->server, "HDEL", KEY, wrong[i][0], NULL);
    expect_left_alone(&once, BELAY_EMISMATCH);
  }
}

static bool is_state(env_t *env, const char *state) {
  const char *text = server_string(env->server, "HGET", KEY, "state", NULL);
  return text != NULL && strcmp(text, state) == 0;
}

/* The server has executed it, and the answer is on its way when the connection is cut. */
static void lose_the_answer(env_t *env, const char *state) {
  while (!is_state(env, state))
    uv_run(&env->loop, UV_RUN_NOWAIT);
  relay_cut(env->relay);
  relay_delay(env->relay, 0);
}

ONCE_TEST_RELAYED(lost_replies) {
  for (int round = 0; round < 3; round++) {
    turn_t turn = {0};
    int64_t evals = server_calls(env->server, "eval") + server_calls(env->server, "evalsha");
    relay_delay(env->relay, RELAY_LONG);
    assert_error(once_begin(once, &turn, "pay", "x", MINUTE), 0);
    lose_the_answer(env, round == 2 ? "taken" : "started");
    assert_error(end_of_turn(&turn), 0); /* it has found itself */
    assert_int_equal(turn.state.outcome,
                     round == 2 ? BELAY_IDEMPOTENCY_TAKEN_OVER : BELAY_IDEMPOTENCY_STARTED);
    assert_int_equal(turn.state.attempt, round + 1);
    const belay_idempotency_token_t token = turn.state.token;
    assert_int_equal(server_calls(env->server, "eval") + server_calls(env->server, "evalsha"),
                     evals + 2);
    relay_delay(env->relay, RELAY_LONG);
    if (round == 0) {
      assert_error(once_abandon(once, &turn, "pay", &token), 0);
      lose_the_answer(env, "free");
      assert_error(end_of_turn(&turn), 0);
      assert_int_equal(turn.state.outcome, BELAY_IDEMPOTENCY_ABANDONED);
    } else if (round == 1) {
      server_do(env->server, "HSET", KEY, "until", "1", NULL);
      relay_delay(env->relay, 0);
    } else {
      assert_error(once_finish(once, &turn, "pay", &token, "r", 1000), 0);
      lose_the_answer(env, "done");
      assert_error(end_of_turn(&turn), 0);
      assert_int_equal(turn.state.outcome, BELAY_IDEMPOTENCY_DONE);
      assert_true(server_integer(env->server, "PTTL", KEY, NULL) > 5000); /* may be sent so long */
    }
  }
  turn_t turn = {0};
  relay_delay(env->relay, RELAY_LONG);
  assert_error(once_forget(once, &turn, "pay"), 0);
  while (server_keys(env->server) > 0)
    uv_run(&env->loop, UV_RUN_NOWAIT);
  relay_cut(env->relay);
  relay_delay(env->relay, 0);
  assert_error(end_of_turn(&turn), BELAY_EUNKNOWN);
  expect_ttls(env->server);
}

/* The mismatch is definite, also the second time. */
ONCE_TEST_RELAYED(mismatch_after_retry_is_definite) {
  turn_t turn = {0}, owned = {0};
  expect_turn(&turn, once_begin(once, &turn, "pay", "x", MINUTE), BELAY_IDEMPOTENCY_STARTED);
  belay_idempotency_token_t wrong = {{7}};
  relay_delay(env->relay, RELAY_LONG);
  assert_error(once_begin(once, &turn, "pay", "y", MINUTE), 0);
  assert_error(once_finish(once, &owned, "pay", &wrong, "r", 0), 0);
  env_run_for(env, 20);
  relay_cut(env->relay);
  relay_delay(env->relay, 0);
  assert_error(end_of_turn(&turn), BELAY_EMISMATCH);
  assert_string_equal(turn.detail, KEY ": it has another fingerprint");
  assert_error(end_of_turn(&owned), BELAY_ENOTOWNER);
  expect_ttls(env->server);
}

/* The second try cannot know the effect of the first one, so the outcome is unknown. */
ONCE_TEST_RELAYED(retry_with_unknown_first_attempt) {
  static const script_input_t other = {
      {KEY}, {"begin", "0123456789012345678901234567890123456789", "60000", "60000", "x", "me"}};
  for (int i = 0; i < 2; i++) {
    turn_t turn = {0};
    expect_turn(&turn, once_begin(once, &turn, "pay", "x", MINUTE), BELAY_IDEMPOTENCY_STARTED);
    const belay_idempotency_token_t token = turn.state.token;
    relay_delay(env->relay, RELAY_LONG);
    assert_error(i == 0 ? once_finish(once, &turn, "pay", &token, "r", 0)
                        : once_abandon(once, &turn, "pay", &token),
                 0);
    lose_the_answer(env, i == 0 ? "done" : "free");
    if (i == 0)
      server_do(env->server, "DEL", KEY, NULL);
    else
      (void)script_run(env->server, &belay__script_idempotency, &other);
    assert_error(end_of_turn(&turn), BELAY_EUNKNOWN);
    assert_false(turn.is_known);
  }
  expect_ttls(env->server);
}

/* A begin that was given up is given back: another one starts at once. */
ONCE_TEST(canceled_begin_is_abandoned) {
  turn_t turn = {0}, next = {0};
  for (int i = 0; i < 3; i++) {
    server_pause(env->server);
    assert_error(once_begin(once, &turn, "pay", "x", MINUTE), 0);
    if (i > 0)
      env_run_for(env, 10); /* it is on its way */
    assert_ends(belay_request_cancel(&turn.request), end_of_turn(&turn), BELAY_ECANCELED);
    server_resume(env->server);
    env_settle(env);
    expect_turn(&next, once_begin(once, &next, "pay", "x", MINUTE), BELAY_IDEMPOTENCY_STARTED);
    const belay_idempotency_token_t token = next.state.token;
    expect_turn(&next, once_abandon(once, &next, "pay", &token), BELAY_IDEMPOTENCY_ABANDONED);
  }
  assert_true(next.state.attempt >= 5);
}

TEST(close_waits_for_abandon) {
  needs_one_process("one connection");
  for (int how = 0; how < 2; how++) {
    env_t *env = env_open(NULL);
    once_t once;
    turn_t turn = {0}, other = {0};
    once_new(&once, env);
    expect_turn(&other, once_begin(&once, &other, "warm", "", MINUTE), BELAY_IDEMPOTENCY_STARTED);
    server_pause(env->server);
    assert_error(once_begin(&once, &turn, "pay", "x", MINUTE), 0);
    env_run_for(env, 10);
    assert_error(how == 0 ? once_close(&once) : begin_client_close(env), 0);
    assert_error(end_of_turn(&turn), BELAY_ECANCELED);
    if (how == 0) {
      env_run_for(env, 30);
      assert_int_equal(once.closed, 0); /* it waits */
    }
    server_resume(env->server);
    if (how == 0)
      env_until(env, once.closed == 1);
    else
      env_until(env, env->client_closed == 1);
    assert_string_equal(server_string(env->server, "HGET", KEY, "state", NULL), "free");
    env_close(env);
  }
}

/* Not longer than the client has patience. */
ENV_TEST_OF(close_timeout_limits_abandon, o.close_timeout_ms = 50) {
  once_t once;
  turn_t turn = {0};
  once_new(&once, env);
  expect_turn(&turn, once_read(&once, &turn, "pay"), BELAY_IDEMPOTENCY_ABSENT);
  server_pause(env->server);
  assert_error(once_begin(&once, &turn, "pay", "x", 100), 0);
  env_run_for(env, 10);
  assert_error(begin_client_close(env), 0);
  env_until(env, env->client_closed == 1);
  assert_error(turn.status, BELAY_ECANCELED);
  server_resume(env->server);
}

/* Not answered in time: it is given back as well. */
ONCE_TEST(unknown_begin_is_abandoned) {
  turn_t turn = {0};
  expect_turn(&turn, once_read(once, &turn, "pay"), BELAY_IDEMPOTENCY_ABSENT);
  server_pause(env->server);
  turn.request.timeout_ms = 50;
  assert_error(once_begin(once, &turn, "pay", "x", MINUTE), 0);
  assert_error(end_of_turn(&turn), BELAY_EUNKNOWN);
  server_resume(env->server);
  env_settle(env);
  assert_string_equal(server_string(env->server, "HGET", KEY, "state", NULL), "free");
}

/* An abandoned record does not return when its begin is executed late, and a finished one stays. */
ONCE_TEST(late_execution_changes_nothing) {
  static const char *const ends[] = {"free", "done", "taken"};
  turn_t turn = {0}, next = {0};
  for (int i = 0; i < 3; i++) {
    server_do(env->server, "FLUSHALL", NULL);
    expect_turn(&turn, once_begin(once, &turn, "pay", "x", MINUTE), BELAY_IDEMPOTENCY_STARTED);
    const belay_idempotency_token_t token = turn.state.token;
    char text[41];
    for (size_t j = 0; j < sizeof token.bytes; j++)
      snprintf(text + 2 * j, 3, "%02x", token.bytes[j]);
    if (i == 2)
      server_do(env->server, "HSET", KEY, "until", "1", NULL);
    expect_turn(&next,
                i == 0   ? once_abandon(once, &next, "pay", &token)
                : i == 1 ? once_finish(once, &next, "pay", &token, "r", 0)
                         : once_begin(once, &next, "pay", "x", MINUTE),
                i == 0   ? BELAY_IDEMPOTENCY_ABANDONED
                : i == 1 ? BELAY_IDEMPOTENCY_DONE
                         : BELAY_IDEMPOTENCY_TAKEN_OVER);
    for (int verb = 0; verb < 4; verb++) {
      static const char *const verbs[] = {"begin", "extend", "finish", "abandon"};
      const script_input_t input = {
          {KEY}, {verbs[verb], text, "60000", "60000", verb == 2 ? "ghost" : "x", "me"}};
      (void)script_run(env->server, &belay__script_idempotency, &input);
      assert_string_equal(server_string(env->server, "HGET", KEY, "state", NULL), ends[i]);
      assert_string_equal(server_string(env->server, "HGET", KEY, "result", NULL),
                          i == 1 ? "r" : "");
    }
  }
}

typedef enum what { RECORDS, CLIENT, BELAY, WHATS } what_t;

static what_t to_close;

static void close_it(once_t *once) {
  once->then = NULL;
  if (to_close == RECORDS)
    assert_error(once_close(once), 0);
  else if (to_close == CLIENT)
    assert_error(begin_client_close(once->env), 0);
  else
    assert_error(begin_belay_close(once->env), 0);
}

/* The first of two unanswered begins closes the handle: the second is abandoned, too. */
TEST(close_in_callback_abandons_next_begin) {
  needs_one_process("one connection");
  env_t *env = env_open(NULL);
  once_t once;
  turn_t turn[2] = {{.request.timeout_ms = prompt_ms()}, {.request.timeout_ms = prompt_ms()}};
  once_new(&once, env);
  expect_turn(&turn[0], once_read(&once, &turn[0], "pay"), BELAY_IDEMPOTENCY_ABSENT);
  server_pause(env->server);
  assert_error(once_begin(&once, &turn[0], "first", "x", MINUTE), 0);
  assert_error(once_begin(&once, &turn[1], "pay", "x", MINUTE), 0);
  env_run_for(env, 20);
  stall_ms(prompt_ms()); /* both are over at once */
  to_close = RECORDS;
  once.then = close_it;
  assert_error(end_of_turn(&turn[0]), BELAY_EUNKNOWN);
  assert_error(end_of_turn(&turn[1]), BELAY_EUNKNOWN);
  assert_int_equal(once.closed, 0); /* it waits */
  server_resume(env->server);
  env_until(env, once.closed == 1);
  assert_string_equal(server_string(env->server, "HGET", KEY, "state", NULL), "free");
  env_close(env);
}
