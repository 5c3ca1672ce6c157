/* Idempotency records on a real server against a model, step by step. */
#include <stdio.h>

#include "support/base/random.h"
#include "support/fixtures/data/once.h"
#include "support/models/scripts.h"

#define KEY "belay::idempotency::{k}"

enum { STEPS = 8000, TOKENS = 8, MINUTE = 60000, RESULT_MAX = 24 };

typedef enum state { ABSENT, PROCESSING, DONE, FREE } state_t;

typedef struct model {
  once_t once;
  uint64_t random;
  belay_idempotency_token_t token[TOKENS]; /* of those that have begun, the last ones */
  unsigned tokens;
  state_t state;
  belay_idempotency_token_t owner;
  bool taken, over;
  int64_t attempt;
  char fingerprint, result[RESULT_MAX];
  unsigned outcomes[6], not_owner, mismatch;
} model_t;

static uint64_t below(model_t *m, uint64_t n) {
  return next_random(&m->random) % n;
}

static bool is_owner(const model_t *m, const belay_idempotency_token_t *token) {
  return m->state != ABSENT && memcmp(&m->owner, token, sizeof *token) == 0;
}

/* The outcome for a client that is not the owner. */
static belay_idempotency_outcome_t expected_outcome(const model_t *m) {
  return m->state == ABSENT       ? BELAY_IDEMPOTENCY_ABSENT
         : m->state == PROCESSING ? BELAY_IDEMPOTENCY_IN_PROGRESS
         : m->state == DONE       ? BELAY_IDEMPOTENCY_DONE
                                  : BELAY_IDEMPOTENCY_ABANDONED;
}

static belay_idempotency_outcome_t mine(const model_t *m) {
  return m->taken ? BELAY_IDEMPOTENCY_TAKEN_OVER : BELAY_IDEMPOTENCY_STARTED;
}

static void check(model_t *m, turn_t *turn, int status, belay_idempotency_outcome_t outcome,
                  bool brought) {
  assert_error(end_of_turn(turn), status);
  if (status == BELAY_EMISMATCH) {
    m->mismatch++;
    return;
  }
  m->not_owner += status == BELAY_ENOTOWNER;
  m->outcomes[outcome]++;
  assert_int_equal(turn->state.outcome, outcome);
  assert_int_equal(turn->state.attempt, m->attempt);
  bool has_result = outcome == BELAY_IDEMPOTENCY_DONE && !brought;
  assert_int_equal(turn->has_result, has_result);
  if (has_result)
    assert_string_equal(turn->result, m->result);
  if (outcome == BELAY_IDEMPOTENCY_IN_PROGRESS)
    assert_int_equal(turn->state.remaining_ms == 0, m->over);
}

static void step_begin(model_t *m) {
  turn_t turn = {0};
  char fingerprint[2] = {below(m, 8) == 0 ? 'B' : 'A', '\0'};
  assert_error(once_begin(&m->once, &turn, "k", fingerprint, MINUTE), 0);
  if (m->state != ABSENT && m->fingerprint != fingerprint[0]) {
    check(m, &turn, BELAY_EMISMATCH, 0, false);
    return;
  }
  if (m->state == DONE || (m->state == PROCESSING && !m->over)) {
    check(m, &turn, 0, expected_outcome(m), false);
    return;
  }
  m->taken = m->state == PROCESSING;
  m->state = PROCESSING;
  m->over = false;
  m->attempt++;
  m->fingerprint = fingerprint[0];
  check(m, &turn, 0, mine(m), false);
  m->owner = m->token[m->tokens++ % TOKENS] = turn.state.token;
}

static const belay_idempotency_token_t *some_token(model_t *m) {
  if (below(m, 2) == 0)
    return &m->owner;
  return &m->token[below(m, TOKENS)];
}

static void step_owned(model_t *m) {
  turn_t turn = {0};
  const belay_idempotency_token_t token = *some_token(m);
  bool owner = is_owner(m, &token), busy = m->state == PROCESSING;
  char result[RESULT_MAX];
  snprintf(result, sizeof result, "%d", (int)below(m, 3));
  switch (below(m, 3)) {
  case 0:
    assert_error(once_extend(&m->once, &turn, "k", &token, MINUTE), 0);
    m->over = m->over && !owner;
    check(m, &turn, owner && busy ? 0 : BELAY_ENOTOWNER,
          owner && busy ? mine(m) : expected_outcome(m), false);
    break;
  case 1:
    assert_error(once_abandon(&m->once, &turn, "k", &token), 0);
    if (owner && busy)
      m->state = FREE;
    check(m, &turn, owner && m->state == FREE ? 0 : BELAY_ENOTOWNER, expected_outcome(m), false);
    break;
  default:
    assert_error(once_finish(&m->once, &turn, "k", &token, result, 0), 0);
    if (owner && busy) {
      m->state = DONE;
      memcpy(m->result, result, sizeof result);
    }
    bool brought = owner && m->state == DONE && strcmp(m->result, result) == 0;
    check(m, &turn, brought ? 0 : BELAY_ENOTOWNER, expected_outcome(m), brought);
  }
}

static void step_read(model_t *m) {
  turn_t turn = {0};
  assert_error(once_read(&m->once, &turn, "k"), 0);
  check(m, &turn, 0, expected_outcome(m), false);
}

static void step_forget(model_t *m) {
  turn_t turn = {0};
  expect_turn(&turn, once_forget(&m->once, &turn, "k"), BELAY_IDEMPOTENCY_ABSENT);
  assert_int_equal(turn.state.existed, m->state != ABSENT);
  m->state = ABSENT;
  m->attempt = 0;
}

static void step_time(model_t *m) {
  if (m->state != PROCESSING)
    return;
  server_do(m->once.env->server, "HSET", KEY, "until", "1", NULL);
  m->over = true;
}

ENV_TEST(random_steps_match_model) {
  model_t m = {.random = UINT64_C(0x9e3779b97f4a7c15)};
  once_new(&m.once, env);
  for (int i = 0; i < STEPS; i++) {
    uint64_t what = below(&m, 100);
    if (what < 35)
      step_begin(&m);
    else if (what < 70)
      step_owned(&m);
    else if (what < 80)
      step_read(&m);
    else if (what < 90)
      step_forget(&m);
    else
      step_time(&m);
    if (i % 100 == 0)
      expect_ttls(env->server);
    if (i % 1000 == 999)
      server_do(env->server, "SCRIPT", "FLUSH", NULL);
  }
  for (int i = 0; i < 6; i++)
    assert_true(m.outcomes[i] > 100);
  assert_true(m.not_owner > 500 && m.mismatch > 100);
}
