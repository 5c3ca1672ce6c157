/* Redlock with several contenders, with stalled nodes and with random operations: one holder at
 * most, no starvation, no keys left. */
#include <stdio.h>

#include "support/base/never.h"
#include "support/deployments/nodes.h"

enum { CONTENDERS = 3, TURNS = 20 };

typedef struct race {
  nodes_t *nodes;
  contender_t *contender[CONTENDERS];
  unsigned turns[CONTENDERS];
  unsigned holders, together; /* now, and whether ever more than one */
  unsigned failed;
  bool resting[CONTENDERS]; /* between two turns */
} race_t;

static unsigned number_of(const race_t *race, const contender_t *c) {
  unsigned i = 0;
  while (race->contender[i] != c)
    i++;
  return i;
}

/* Called after an acquire and after a release. */
static void on_turn(contender_t *c, event_t event) {
  race_t *race = c->arg;
  unsigned i = number_of(race, c);
  race->failed += event != EVENT_ENDED || c->status != 0;
  if (belay_lock_remaining_us(c->lock) > 0) {
    race->together += race->holders > 0;
    race->holders++;
    race->turns[i]++;
  } else {
    race->resting[i] = true;
  }
}

/* The holder's view of the servers belongs to its own grant. It releases and acquires again.
 * Returns false when every contender had its turns. */
static bool race_goes_on(race_t *race) {
  unsigned done = 0;
  for (unsigned i = 0; i < CONTENDERS; i++) {
    contender_t *c = race->contender[i];
    if (belay_lock_remaining_us(c->lock) > 0) {
      assert_true(nodes_holding(race->nodes, c) >= 3);
      race->holders--;
      assert_error(begin_release(c), 0);
    } else if (race->resting[i] && race->turns[i] < TURNS) {
      race->resting[i] = false;
      assert_error(begin_acquire(c, BELAY_FOREVER), 0);
    }
    done += race->resting[i] && race->turns[i] == TURNS;
  }
  return done < CONTENDERS;
}

TEST(three_contenders_for_five_nodes) {
  race_t race = {.nodes = nodes_open(5, NULL)};
  belay_lock_options_t options = unhurried_options(60000);
  for (unsigned i = 0; i < CONTENDERS; i++) {
    race.contender[i] = nodes_contender(race.nodes, "door", &options);
    race.contender[i]->then = on_turn;
    race.contender[i]->arg = &race;
    race.resting[i] = true;
  }
  nodes_warm(race.nodes);
  env_until(race.nodes->env, !race_goes_on(&race));
  assert_int_equal(race.failed, 0);
  assert_never(race.together > 0);
  for (unsigned i = 0; i < CONTENDERS; i++)
    assert_int_equal(race.turns[i], TURNS);
  nodes_expect_no_key(race.nodes);
  nodes_close(race.nodes);
}

/* Two nodes have one token, two another, one a third, and no holder releases. */
TEST(split_vote_ends_with_ttls) {
  static const char *const foreign_tokens[] = {"one", "one", "another", "another", "a third"};
  const int64_t ttl_ms = lag() + 1000 * slow(); /* longer than it takes to ask once */
  char ttl[24];
  snprintf(ttl, sizeof ttl, "%lld", (long long)ttl_ms);
  nodes_t *nodes = nodes_open(5, NULL);
  belay_lock_options_t options = unhurried_options(10000);
  contender_t *c = nodes_contender(nodes, "door", &options);
  nodes_warm(nodes);
  int64_t began = clock_now();
  for (unsigned i = 0; i < 5; i++)
    server_do(nodes->server[i], "SET", key_of(c), foreign_tokens[i], "PX", ttl, NULL);
  assert_error(try_lock(c), BELAY_EHELD);
  assert_error(acquire(c, BELAY_FOREVER), 0);
  assert_between(clock_since_ms(began), ttl_ms - 10, ttl_ms + 15000);
  nodes_settle(nodes);
  assert_int_equal(nodes_holding(nodes, c), 5);
  nodes_close(nodes);
}

/* A node that does not stand still answers within this, also if the machine stands still for a
 * moment. */
#define NODE_TIMEOUT_MS lag()

/* A handle on five nodes, of which `paused` are stopped. */
static contender_t *open_paused(unsigned paused) {
  belay_client_options_t client_terms = client_options();
  client_terms.close_timeout_ms = 200;
  nodes_t *nodes = nodes_open(5, &client_terms);
  belay_lock_options_t options = redlock_options(60000);
  options.timeout_ms = NODE_TIMEOUT_MS;
  contender_t *c = nodes_contender(nodes, "door", &options);
  c->arg = nodes;
  nodes_warm(nodes);
  nodes_pause(nodes, paused);
  return c;
}

/* The nodes go on, and do what they were asked to while they stood still; then it is undone. */
static void expect_all_undone(nodes_t *nodes, unsigned paused) {
  nodes_resume(nodes);
  nodes_expect_no_key(nodes);
  for (unsigned i = 0; i < paused; i++)
    assert_true(server_calls(nodes->server[i], "set") > 0);
  env_run_for(nodes->env, 50);
  assert_int_equal(nodes_keys(nodes), 0);
}

/* Defines a test that runs with `first` to `last` stopped nodes of `nodes`, and a handle `c`. */
#define PAUSED_TEST(name, first, last)                                                             \
  static void on_##name(nodes_t *nodes, contender_t *c, unsigned paused);                          \
  TEST(name) {                                                                                     \
    for (unsigned paused = first; paused <= last; paused++) {                                      \
      contender_t *c = open_paused(paused);                                                        \
      nodes_t *nodes = c->arg;                                                                     \
      on_##name(nodes, c, paused);                                                                 \
      nodes_close(nodes);                                                                          \
    }                                                                                              \
  }                                                                                                \
  static void on_##name(nodes_t *nodes, contender_t *c, unsigned paused)

PAUSED_TEST(late_grants_after_failure, 3, 5) {
  assert_error(try_lock(c), BELAY_ENOQUORUM);
  expect_all_undone(nodes, paused);
  assert_error(acquire(c, BELAY_FOREVER), 0);
}

PAUSED_TEST(late_grants_after_cancel, 3, 5) {
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  env_run_for(nodes->env, 20);
  assert_error(cancel(c), 0);
  assert_error(outcome(c), BELAY_ECANCELED);
  expect_all_undone(nodes, paused);
}

PAUSED_TEST(late_grants_after_close, 3, 5) {
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  env_run_for(nodes->env, 20);
  int64_t began = clock_now();
  assert_error(close_lock(c), 0);
  assert_true(clock_since_ms(began) < 15000); /* and not for the ttl */
  assert_error(c->status, BELAY_ECANCELED);
  expect_all_undone(nodes, paused);
}

PAUSED_TEST(late_grants_after_close_of_held_lock, 1, 2) {
  assert_ok(try_lock(c), close_lock(c));
  expect_all_undone(nodes, paused);
}

static unsigned granted(const contender_t *c) {
  belay_lock_tally_t tally;
  belay_lock_tally(c->lock, &tally);
  return tally.votes[BELAY_VOTE_GRANTED];
}

/* wait: until the nodes that stand still were given up; then it is the next extension that
 * counts them. */
static void expect_late_grants_to_stay(bool wait) {
  for (unsigned paused = 1; paused <= 2; paused++) {
    contender_t *c = open_paused(paused);
    nodes_t *nodes = c->arg;
    assert_error(try_lock(c), 0);
    if (wait) {
      nodes_settle(nodes);
      assert_int_equal(nodes_holding(nodes, c), 5 - paused);
    }
    nodes_resume(nodes);
    env_until(nodes->env, nodes_holding(nodes, c) == 5);
    if (wait)
      assert_error(extend(c, BELAY_DEFAULT), 0);
    env_until(nodes->env, granted(c) == 5);
    assert_error(release(c), 0);
    nodes_expect_no_key(nodes);
    nodes_close(nodes);
  }
}

TEST(late_grants_of_held_lock) {
  expect_late_grants_to_stay(false);
}

TEST(overdue_grants_of_held_lock) {
  expect_late_grants_to_stay(true);
}

/* More would only be left for it to do when it goes on. Once it has said something it is asked
 * again. */
TEST(stalled_node_is_skipped) {
  contender_t *c = open_paused(1);
  nodes_t *nodes = c->arg;
  assert_error(try_lock(c), 0);
  env_run_for(nodes->env, NODE_TIMEOUT_MS * 3 / 2);
  assert_error(release(c), 0);
  for (int i = 0; i < 20; i++) {
    assert_ok(try_lock(c), release(c));
  }
  nodes_resume(nodes);
  nodes_warm(nodes);
  nodes_expect_no_key(nodes);
  assert_between(server_calls(nodes->server[0], "set"), 1, 3);
  assert_error(try_lock(c), 0);
  nodes_settle(nodes);
  assert_int_equal(nodes_holding(nodes, c), 5);
  nodes_close(nodes);
}

TEST(release_reaches_stalled_nodes) {
  for (unsigned paused = 1; paused <= 5; paused++) {
    contender_t *c = open_paused(0);
    nodes_t *nodes = c->arg;
    assert_error(try_lock(c), 0);
    nodes_settle(nodes);
    nodes_pause(nodes, paused);
    assert_error(release(c), paused <= 2 ? 0 : BELAY_ENOQUORUM);
    expect_all_undone(nodes, paused);
    nodes_close(nodes);
  }
}

enum { HANDLES = 4, STEPS = 200 };

enum { FAULTY = 2 }; /* nodes that are paused and killed: never a majority */

typedef struct random_run {
  nodes_t *nodes;
  contender_t *handle[HANDLES];
  bool dead[FAULTY];
  uint32_t seed;
} random_run_t;

static unsigned draw(random_run_t *run, unsigned below) {
  run->seed = run->seed * 1664525u + 1013904223u;
  return (run->seed >> 16) % below;
}

static void reopen(random_run_t *run, unsigned i) {
  static const char *const names[] = {"door", "window"};
  belay_lock_options_t options =
      redlock_options(60000); /* longer than this test: nothing runs out */
  options.watchdog = i % 2 == 0 ? BELAY_WATCHDOG_ON : BELAY_WATCHDOG_OFF;
  options.renew_after_ms = 6000;
  run->handle[i] = nodes_contender(run->nodes, names[i / 2], &options);
}

static void restart_if_dead(random_run_t *run, unsigned node) {
  if (run->dead[node])
    server_restart(run->nodes->server[node]);
  run->dead[node] = false;
}

static void change_faults(random_run_t *run) {
  unsigned node = draw(run, FAULTY);
  server_t *server = run->nodes->server[node];
  switch (draw(run, 4)) {
  case 0:
    server_kill(server);
    run->dead[node] = true;
    break;
  case 1:
    restart_if_dead(run, node);
    server_resume(server);
    break;
  default:
    if (!run->dead[node])
      server_pause(server);
  }
}

/* Whatever it returns: that an operation is out of place is a thing to try, too. */
static void take_step(random_run_t *run) {
  unsigned i = draw(run, HANDLES);
  contender_t *c = run->handle[i];
  switch (draw(run, 8)) {
  case 0:
    (void)begin_acquire(c, 0);
    break;
  case 1:
  case 2:
    (void)begin_acquire(c, 1000);
    break;
  case 3:
    (void)cancel(c);
    break;
  case 4:
    (void)begin_release(c);
    break;
  case 5:
    (void)begin_extend(c, 60000 + (int64_t)draw(run, 20000));
    break;
  case 6:
    assert_error(begin_close(c), 0);
    reopen(run, i);
    break;
  default:
    change_faults(run);
  }
}

static bool is_any_left(const env_t *env) {
  for (const contender_t *c = env->first; c != NULL; c = c->next)
    if (c->lock != NULL)
      return true;
  return false;
}

static void run_random_steps(uint32_t seed) {
  random_run_t run = {.nodes = nodes_open(5, NULL), .seed = seed};
  env_t *env = run.nodes->env;
  for (unsigned i = 0; i < HANDLES; i++)
    reopen(&run, i);
  nodes_warm(run.nodes);
  for (unsigned i = 0; i < STEPS; i++) {
    take_step(&run);
    if (draw(&run, 2) == 0)
      env_run_for(env, draw(&run, 15));
  }
  nodes_resume(run.nodes);
  for (unsigned i = 0; i < FAULTY; i++)
    restart_if_dead(&run, i);
  for (unsigned i = 0; i < HANDLES; i++)
    assert_error(begin_close(run.handle[i]), 0);
  env_until(env, !is_any_left(env));
  nodes_settle(run.nodes);
  if (nodes_keys(run.nodes) != 0)
    fail_msg("seed %u leaves %d keys", seed, (int)nodes_keys(run.nodes));
  nodes_close(run.nodes);
}

TEST(many_contenders_leave_no_keys) {
  for (uint32_t seed = 1; seed <= 5; seed++)
    run_random_steps(seed);
}
