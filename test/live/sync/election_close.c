/* Closing an election in each state and in each callback; other calls in its callbacks. */
#include "support/fixtures/lease/candidates.h"

static void close_it(candidate_t *p, candidate_event_t event) {
  (void)event;
  p->then = NULL;
  assert_error(begin_close_election(p), 0);
  assert_each(BELAY_ECLOSING, begin_close_election(p), campaign(p), begin_resign(p), observe(p, 1));
}

static void close_client(candidate_t *p, candidate_event_t event) {
  (void)event;
  p->then = NULL;
  assert_error(begin_client_close(p->env), 0);
}

static void close_everything(candidate_t *p, candidate_event_t event) {
  (void)event;
  p->then = NULL;
  assert_error(begin_belay_close(p->env), 0);
}

static void (*const closes[])(candidate_t *p, candidate_event_t event) = {close_it, close_client,
                                                                          close_everything};
static bool has_closed(const candidate_t *p, int i) {
  return i == 0 ? p->closed == 1 : i == 1 ? p->env->client_closed == 1 : p->env->belay_closed == 1;
}

enum { CLOSES = sizeof closes / sizeof *closes };

static void expect_nobody(env_t *env) {
  assert_int_equal(server_integer(env->server, "EXISTS", KEY, NULL), 0);
}

TEST(close_in_each_state) {
  for (int where = 0; where < 6; where++)
    for (int i = 0; i < CLOSES; i++) {
      env_t *env = env_open(NULL);
      candidate_t *p = candidate_new(env, NULL);
      if (where == 1)
        assert_error(observe(p, 1), 0);
      if (where == 2 || where == 3)
        assert_error(campaign(p), 0);
      if (where >= 4)
        lead(p);
      if (where == 3 || where == 5)
        env_run_for(env, 0);
      if (where == 5)
        assert_error(begin_resign(p), 0);
      bool stood = p->campaigned < p->campaigns;
      closes[i](p, CLOSED);
      env_until(env, has_closed(p, i));
      assert_int_equal(p->campaigned, p->campaigns);
      assert_int_equal(p->resigned, p->resigns);
      assert_true(!stood || p->campaign_status == BELAY_ECANCELED || p->campaign_status == 0);
      assert_int_equal(p->deposed, 0);
      expect_nobody(env);
      candidates_close(env);
    }
}

typedef struct trap {
  candidate_event_t event;
  int close;
} trap_t;

static trap_t trap;

static void generator(candidate_t *p, candidate_event_t event) {
  if (event == trap.event)
    closes[trap.close](p, event);
}

TEST(close_in_each_callback) {
  for (int event = CAMPAIGNED; event <= OBSERVED; event++)
    for (int i = 0; i < CLOSES; i++) {
      trap = (trap_t){.event = (candidate_event_t)event, .close = i};
      env_t *env = env_open(NULL);
      candidate_t *p = candidate_new(env, NULL);
      p->then = generator;
      if (event == OBSERVED) {
        assert_error(observe(p, 1), 0);
      } else {
        assert_error(campaign(p), 0);
        env_until(env, p->then == NULL || p->elected == 1);
      }
      if (event == DEPOSED)
        server_do(env->server, "DEL", KEY, NULL);
      if (event == RESIGNED)
        assert_error(begin_resign(p), 0);
      env_until(env, p->then == NULL);
      env_until(env, has_closed(p, i));
      expect_nobody(env);
      assert_int_equal(p->elected, event != OBSERVED && event != CAMPAIGNED);
      candidates_close(env);
    }
}

/* Asks about a closing election. */
static void ask(candidate_t *p) {
  if (p->election == NULL)
    return;
  p->env->wrong += belay_election_term(p->election) != 0;
  p->env->wrong += belay_election_remaining_us(p->election) != 0;
  belay_election_unref(p->election);
  belay_election_ref(p->election);
}

static candidate_t *asked[2];

static void ask_all(void) {
  ask(asked[0]);
  ask(asked[1]);
}

static void on_check(uv_check_t *check) {
  (void)check;
  ask_all();
}

static void ask_in_callback(candidate_t *p, candidate_event_t event) {
  (void)p, (void)event;
  ask_all();
}

/* Up to the close callback, a closing handle replies that it does not lead: in each turn of the
 * loop, and in the close callback of another handle whose lock ended in the same turn. */
static void check_questions(int close, bool leads) {
  env_t *env = env_open(NULL);
  uv_check_t check;
  for (int i = 0; i < 2; i++) {
    asked[i] = candidate_new(env, NULL);
    assert_error(observe(asked[i], 1), 0);
  }
  if (leads)
    lead(asked[0]);
  for (int i = 0; i < 2; i++) {
    asked[i]->then = ask_in_callback;
    assert_error(begin_close_election(asked[i]), 0);
  }
  if (close > 0)
    closes[close](asked[0], CLOSED);
  asked[0]->then = ask_in_callback;
  uv_check_init(&env->loop, &check);
  uv_check_start(&check, on_check);
  env_until(env, asked[0]->closed == 1 && asked[1]->closed == 1);
  uv_close((uv_handle_t *)&check, NULL);
  candidates_close(env);
}

TEST(questions_while_closing) {
  for (int close = 0; close < CLOSES; close++) {
    check_questions(close, false);
    check_questions(close, true);
  }
}

static void resign_at_once(candidate_t *p, candidate_event_t event) {
  if (event == CAMPAIGNED && p->campaign_status == 0)
    assert_error(begin_resign(p), 0);
}

static void sleep_through_it(candidate_t *p, candidate_event_t event) {
  (void)p;
  if (event == CAMPAIGNED)
    stall_ms(2500 * slow());
}

/* The campaign's callback takes longer than the lease lasts. */
CANDIDATE_TEST(no_elected_callback_after_expiry) {
  candidate_t *p = candidate_new(env, NULL);
  p->then = sleep_through_it;
  p->elected = 1; /* only a deposition is reported */
  assert_error(campaign(p), 0);
  env_until(env, p->deposed == 1);
  assert_error(p->campaign_status, 0);
  assert_int_equal(p->elected, 1);
  p->then = NULL;
  lead(p);
}

CANDIDATE_TEST(resign_in_campaign_callback) {
  candidate_t *p = candidate_new(env, NULL);
  p->then = resign_at_once;
  assert_error(campaign(p), 0);
  env_until(env, p->resigned == 1);
  assert_error(p->resign_status, 0);
  assert_int_equal(p->elected, 0);
  expect_nobody(env);
}
