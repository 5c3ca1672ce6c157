/* Idempotency records: the first begin processes, later ones get its result. */
#include <stdio.h>

#include "support/fixtures/data/once.h"
#include "support/models/scripts.h"

#define KEY "belay::idempotency::{pay}"
#define MINUTE 60000

static int64_t pttl(env_t *env) {
  return server_integer(env->server, "PTTL", KEY, NULL);
}

/* Its owner's time is over. */
static void pass(env_t *env) {
  server_do(env->server, "HSET", KEY, "until", "1", NULL);
}

ONCE_TEST(one_client_processes) {
  turn_t one = {0}, other = {0};
  expect_turn(&one, once_read(once, &one, "pay"), BELAY_IDEMPOTENCY_ABSENT);
  assert_int_equal(server_keys(env->server), 0);
  expect_turn(&one, once_begin(once, &one, "pay", "5 euros", MINUTE), BELAY_IDEMPOTENCY_STARTED);
  assert_int_equal(one.state.attempt, 1);
  assert_between(one.state.remaining_ms, MINUTE - 20000, MINUTE);
  const belay_idempotency_token_t token = one.state.token;
  expect_turn(&other, once_begin(once, &other, "pay", "5 euros", MINUTE),
              BELAY_IDEMPOTENCY_IN_PROGRESS);
  assert_between(other.state.remaining_ms, MINUTE - 20000, MINUTE);
  assert_true(other.owner[0] != '\0');
  assert_false(other.has_result);
  assert_memory_equal(&other.state.token, &(belay_idempotency_token_t){{0}}, sizeof token);
  assert_between(pttl(env), MINUTE + 3600000 - 20000, MINUTE + 3600000);
  expect_turn(&one, once_finish(once, &one, "pay", &token, "paid", 90000), BELAY_IDEMPOTENCY_DONE);
  assert_false(one.has_result);
  assert_between(pttl(env), 70000, 90000);
  expect_turn(&other, once_begin(once, &other, "pay", "5 euros", MINUTE), BELAY_IDEMPOTENCY_DONE);
  assert_string_equal(other.result, "paid");
  assert_between(other.state.remaining_ms, 70000, 90000);
  expect_turn(&other, once_read(once, &other, "pay"), BELAY_IDEMPOTENCY_DONE);
  assert_string_equal(other.result, "paid");
  assert_int_equal(other.state.attempt, 1);
  expect_turn(&other, once_begin(once, &other, "something else", "", 0), BELAY_IDEMPOTENCY_STARTED);
  assert_between(other.state.remaining_ms, 10000, 30000); /* the default */
  expect_ttls(env->server);
}

ONCE_TEST(other_fingerprint_is_refused) {
  turn_t one = {0}, other = {0};
  expect_turn(&one, once_begin(once, &one, "pay", "5 euros", MINUTE), BELAY_IDEMPOTENCY_STARTED);
  static const char *const wrong[] = {"", "5", "5 euros ", "6 euros"};
  for (int i = 0; i < 4; i++) { /* in progress, over, free, done */
    const belay_idempotency_token_t token = one.state.token;
    for (size_t j = 0; j < sizeof wrong / sizeof *wrong; j++) {
      assert_error(once_begin(once, &other, "pay", wrong[j], MINUTE), 0);
      assert_error(end_of_turn(&other), BELAY_EMISMATCH);
      assert_string_equal(other.detail, KEY ": it has another fingerprint");
    }
    if (i == 0) {
      pass(env);
    } else if (i == 1) {
      expect_turn(&other, once_abandon(once, &other, "pay", &token), BELAY_IDEMPOTENCY_ABANDONED);
    } else if (i == 2) {
      expect_turn(&one, once_begin(once, &one, "pay", "5 euros", MINUTE),
                  BELAY_IDEMPOTENCY_STARTED);
      assert_int_equal(one.state.attempt, 2);
      expect_turn(&other, once_finish(once, &other, "pay", &one.state.token, "paid", 0),
                  BELAY_IDEMPOTENCY_DONE);
    }
  }
}

ONCE_TEST(late_owner_is_refused) {
  turn_t late = {0}, next = {0};
  expect_turn(&late, once_begin(once, &late, "pay", "x", MINUTE), BELAY_IDEMPOTENCY_STARTED);
  const belay_idempotency_token_t first = late.state.token;
  pass(env);
  expect_turn(&next, once_read(once, &next, "pay"), BELAY_IDEMPOTENCY_IN_PROGRESS);
  assert_int_equal(next.state.remaining_ms, 0);
  expect_turn(&next, once_begin(once, &next, "pay", "x", MINUTE), BELAY_IDEMPOTENCY_TAKEN_OVER);
  assert_int_equal(next.state.attempt, 2);
  const belay_idempotency_token_t second = next.state.token;
  assert_memory_not_equal(&first, &second, sizeof first);
  for (int i = 0; i < 2; i++) {
    belay_idempotency_outcome_t now =
        i == 0 ? BELAY_IDEMPOTENCY_IN_PROGRESS : BELAY_IDEMPOTENCY_DONE;
    expect_not_owner(&late, once_extend(once, &late, "pay", &first, MINUTE), now);
    expect_not_owner(&late, once_abandon(once, &late, "pay", &first), now);
    expect_not_owner(&late, once_finish(once, &late, "pay", &first, "too late", 0), now);
    assert_int_equal(late.has_result, i);
    assert_string_equal(late.result, i == 0 ? "" : "in time");
    assert_int_equal(late.state.attempt, 2);
    expect_turn(&next, once_finish(once, &next, "pay", &second, "in time", 0),
                BELAY_IDEMPOTENCY_DONE); /* twice */
  }
  expect_not_owner(&next, once_finish(once, &next, "pay", &second, "another", 0),
                   BELAY_IDEMPOTENCY_DONE);
  assert_string_equal(next.result, "in time");
  expect_turn(&next, once_forget(once, &next, "pay"), BELAY_IDEMPOTENCY_ABSENT);
  assert_true(next.state.existed);
  expect_turn(&next, once_forget(once, &next, "pay"), BELAY_IDEMPOTENCY_ABSENT);
  assert_false(next.state.existed);
  expect_not_owner(&next, once_finish(once, &next, "pay", &second, "in time", 0),
                   BELAY_IDEMPOTENCY_ABSENT);
  assert_int_equal(server_keys(env->server), 0);
}

/* A record outlives the last time that its request may be sent; else grace_ms is what it says. */
ENV_TEST(unfinished_record_is_kept_for_grace) {
  static const int64_t timeouts[] = {500, 60000};
  belay_idempotency_options_t options = once_options();
  options.grace_ms = 10000;
  for (int i = 0; i < 2; i++) {
    int64_t kept = i == 0 ? options.grace_ms : 60000 + 600 + 2;
    once_t once;
    turn_t one = {.request.timeout_ms = timeouts[i]};
    once_of(&once, env, env->client, &options);
    server_do(env->server, "FLUSHALL", NULL);
    expect_turn(&one, once_begin(&once, &one, "pay", "", MINUTE), BELAY_IDEMPOTENCY_STARTED);
    assert_between(pttl(env), kept + MINUTE - 9000, kept + MINUTE);
    const belay_idempotency_token_t token = one.state.token;
    expect_turn(&one, once_extend(&once, &one, "pay", &token, 2 * MINUTE),
                BELAY_IDEMPOTENCY_STARTED);
    assert_between(pttl(env), kept + 2 * MINUTE - 9000, kept + 2 * MINUTE);
    expect_turn(&one, once_abandon(&once, &one, "pay", &token), BELAY_IDEMPOTENCY_ABANDONED);
    assert_between(pttl(env), kept - 9000, kept);
  }
}

/* A late owner stays the owner until another client takes over. */
ONCE_TEST(finish_after_deadline_without_takeover) {
  turn_t one = {0}, other = {0};
  expect_turn(&one, once_begin(once, &one, "pay", "", 1), BELAY_IDEMPOTENCY_STARTED);
  const belay_idempotency_token_t token = one.state.token;
  env_run_for(env, 5);
  expect_turn(&one, once_extend(once, &one, "pay", &token, MINUTE), BELAY_IDEMPOTENCY_STARTED);
  assert_between(one.state.remaining_ms, MINUTE - 20000, MINUTE);
  expect_turn(&one, once_extend(once, &one, "pay", &token, 1000), BELAY_IDEMPOTENCY_STARTED);
  assert_between(one.state.remaining_ms, MINUTE - 20000, MINUTE); /* never shorter */
  assert_between(pttl(env), 3600000 + MINUTE - 20000, 3600000 + MINUTE);
  expect_turn(&other, once_begin(once, &other, "pay", "", 1), BELAY_IDEMPOTENCY_IN_PROGRESS);
  pass(env);
  expect_turn(&one, once_finish(once, &one, "pay", &token, "", 0), BELAY_IDEMPOTENCY_DONE);
  expect_turn(&other, once_begin(once, &other, "pay", "", 1), BELAY_IDEMPOTENCY_DONE);
  assert_true(other.has_result); /* an empty one is one */
  assert_int_equal(other.state.result_len, 0);
}

ONCE_TEST(deadline_by_server_clock) {
  turn_t one = {0}, other = {0};
  const int64_t ms = 150;
  int64_t before = clock_now();
  expect_turn(&one, once_begin(once, &one, "pay", "", ms), BELAY_IDEMPOTENCY_STARTED);
  do
    assert_error(once_begin(once, &other, "pay", "", ms), 0);
  while (end_of_turn(&other) == 0 && other.state.outcome == BELAY_IDEMPOTENCY_IN_PROGRESS);
  assert_int_equal(other.state.outcome, BELAY_IDEMPOTENCY_TAKEN_OVER);
  assert_true(clock_now() - before >= (ms - 2) * 1000000);
}

ENV_TEST(owner_text_is_reported) {
  belay_client_options_t options = client_options();
  options.owner = "cashier-7";
  once_t one, other;
  turn_t turn = {0}, mine = {0};
  belay_idempotency_options_t o = once_options();
  once_of(&one, env, env_connect(env, server_url(env->server), &options), &o);
  once_new(&other, env);
  expect_turn(&mine, once_begin(&one, &mine, "pay", "", MINUTE), BELAY_IDEMPOTENCY_STARTED);
  assert_string_equal(mine.owner, "cashier-7");
  expect_turn(&turn, once_begin(&other, &turn, "pay", "", MINUTE), BELAY_IDEMPOTENCY_IN_PROGRESS);
  assert_string_equal(turn.owner, "cashier-7");
  expect_turn(&turn, once_finish(&other, &turn, "pay", &mine.state.token, "by another process", 0),
              BELAY_IDEMPOTENCY_DONE); /* the token is what counts */
  assert_string_equal(turn.owner, "cashier-7");
}

ENV_TEST(largest_arguments) {
  static char key[BELAY_IDEMPOTENCY_KEY_MAX + 1], result[BELAY_IDEMPOTENCY_RESULT_MAX + 1],
      name[128];
  char fingerprint[BELAY_IDEMPOTENCY_FINGERPRINT_MAX + 1] = "";
  memset(key, '{', sizeof key - 1);
  memset(name, '}', sizeof name);
  memset(result, 'r', sizeof result - 1);
  memset(fingerprint, '\xff', sizeof fingerprint - 1);
  belay_idempotency_options_t options = once_options();
  options.name = belay_bytes(name, sizeof name);
  once_t once;
  turn_t turn = {0};
  once_of(&once, env, env->client, &options);
  expect_turn(&turn, once_begin(&once, &turn, key, fingerprint, 86400000),
              BELAY_IDEMPOTENCY_STARTED);
  const belay_idempotency_token_t token = turn.state.token;
  expect_turn(&turn, once_finish(&once, &turn, key, &token, result, 31536000000),
              BELAY_IDEMPOTENCY_DONE);
  expect_turn(&turn, once_begin(&once, &turn, key, fingerprint, 86400000), BELAY_IDEMPOTENCY_DONE);
  assert_int_equal(turn.state.result_len, BELAY_IDEMPOTENCY_RESULT_MAX);
  expect_ttls(env->server);
}

ENV_TEST(result_bounded_by_max_reply) {
  belay_client_options_t options = client_options();
  options.max_reply = 65536;
  belay_idempotency_options_t o = once_options();
  once_t once;
  turn_t turn = {0};
  static char result[32768 + 1 + 1];
  once_of(&once, env, env_connect(env, server_url(env->server), &options), &o);
  expect_turn(&turn, once_begin(&once, &turn, "pay", "", MINUTE), BELAY_IDEMPOTENCY_STARTED);
  const belay_idempotency_token_t token = turn.state.token;
  memset(result, 'r', sizeof result - 1);
  assert_error(once_finish(&once, &turn, "pay", &token, result, 0), BELAY_EINVAL);
  assert_string_equal(belay_detail(env->belay), "result: NULL, or more than 32768 bytes");
  result[32768] = '\0';
  expect_turn(&turn, once_finish(&once, &turn, "pay", &token, result, 0), BELAY_IDEMPOTENCY_DONE);
  expect_turn(&turn, once_read(&once, &turn, "pay"), BELAY_IDEMPOTENCY_DONE);
  assert_int_equal(turn.state.result_len, 32768);
}

ONCE_TEST(arguments_are_checked) {
  turn_t turn = {0};
  const belay_idempotency_token_t token = {{1}};
  belay_idempotency_t *records = once->records;
  belay_request_t *r = &turn.request;
  assert_error(once_begin(once, &turn, "", "", 0), BELAY_EINVAL);
  assert_error(once_begin(once, &turn, "pay", "", 86400001), BELAY_EINVAL);
  assert_error(once_begin(once, &turn, "pay", "", -2), BELAY_EINVAL);
  assert_error(once_extend(once, &turn, "pay", &token, -2), BELAY_EINVAL);
  assert_error(once_extend(once, &turn, "pay", NULL, 0), BELAY_EINVAL);
  assert_error(once_finish(once, &turn, "pay", NULL, "", 0), BELAY_EINVAL);
  assert_error(once_finish(once, &turn, "pay", &token, "", 999), BELAY_EINVAL);
  assert_error(once_abandon(once, &turn, "pay", NULL), BELAY_EINVAL);
  assert_error(
      belay_idempotency_begin(records, r, belay_bytes(NULL, 1), belay_bytes(NULL, 0), 0, on_turn),
      BELAY_EINVAL);
  assert_error(
      belay_idempotency_begin(records, r, belay_string("k"), belay_bytes(NULL, 1), 0, on_turn),
      BELAY_EINVAL);
  assert_error(
      belay_idempotency_begin(records, r, belay_string("k"), belay_bytes("f", 65), 0, on_turn),
      BELAY_EINVAL);
  assert_error(belay_idempotency_finish(
                   records, r, belay_string("k"), &token,
                   &(belay_idempotency_finish_t){.result = belay_bytes(NULL, 1), .ttl_ms = 0},
                   on_turn),
               BELAY_EINVAL);
  assert_error(belay_idempotency_read(records, r, belay_bytes("k", 1025), on_turn), BELAY_EINVAL);
  assert_int_equal(server_keys(env->server), 0);
}

static void linger(once_t *once) {
  once->then = NULL;
  usleep(450000);
}

/* The remaining time is counted to the callback, not to the reply. */
ONCE_TEST(remaining_time_at_callback) {
  turn_t turn[2] = {0};
  expect_turn(&turn[0], once_read(once, &turn[0], "a"), BELAY_IDEMPOTENCY_ABSENT);
  server_pause(env->server); /* both answers come at once */
  assert_error(once_begin(once, &turn[0], "a", "x", 400), 0);
  assert_error(once_begin(once, &turn[1], "a2", "x", 400), 0);
  env_run_for(env, 10);
  once->then = linger; /* in the first of them */
  server_resume(env->server);
  assert_error(end_of_turn(&turn[0]), 0);
  assert_error(end_of_turn(&turn[1]), 0);
  assert_int_equal(turn[1].state.outcome, BELAY_IDEMPOTENCY_STARTED);
  assert_int_equal(turn[1].state.remaining_ms, 0);
}
