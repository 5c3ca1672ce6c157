/* Closing a lock, a client or all of belay: in every state, inside every callback, with and without
 * a server. */
#include <stdio.h>

#include "support/fixtures/env.h"

#define CLOSE_TIMEOUT_MS 400

/* ---- the target of the close ---- */

typedef enum target { THE_LOCK, THE_CLIENT, ALL_OF_BELAY, TARGETS } target_t;

static const char *const target_names[] = {"a lock", "a client", "all of belay"};

static int begin_close_of_target(target_t target, contender_t *c) {
  return target == THE_LOCK     ? begin_close(c)
         : target == THE_CLIENT ? begin_client_close(c->env)
                                : begin_belay_close(c->env);
}

static bool is_closed(target_t target, const contender_t *c) {
  return target == THE_LOCK     ? c->closed == 1
         : target == THE_CLIENT ? c->env->client_closed == 1
                                : c->env->belay_closed == 1;
}

/* ---- the states of the lock ---- */

static void when_idle(contender_t *c) {
  (void)c;
}

static void when_just_started(contender_t *c) {
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
}

static void when_acquiring(contender_t *c) {
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
  uint64_t before = client_stats(c->env).writes;
  server_pause(c->env->server);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  env_until(c->env, client_stats(c->env).writes > before);
}

static void when_waiting(contender_t *c) {
  foreign_holder(c, 60000);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  env_run_for(c->env, 50);
}

static void when_held(contender_t *c) {
  assert_error(try_lock(c), 0);
}

static void when_renewing(contender_t *c) {
  assert_error(try_lock(c), 0);
  uint64_t before = client_stats(c->env).writes;
  server_pause(c->env->server);
  env_until(c->env, client_stats(c->env).writes > before);
}

static void when_extending(contender_t *c) {
  assert_error(try_lock(c), 0);
  server_pause(c->env->server);
  assert_error(begin_extend(c, 60000), 0);
  env_run_for(c->env, 10);
}

static void when_releasing(contender_t *c) {
  assert_error(try_lock(c), 0);
  server_pause(c->env->server);
  assert_error(begin_release(c), 0);
  env_run_for(c->env, 10);
}

static void when_lost(contender_t *c) {
  assert_error(try_lock(c), 0);
  server_do(c->env->server, "DEL", key_of(c), NULL);
  env_until(c->env, c->lost == 1);
}

static void when_closing(contender_t *c) {
  assert_error(try_lock(c), 0);
  server_pause(c->env->server);
  assert_error(begin_close(c), 0);
  env_run_for(c->env, 10);
}

static void when_server_away(contender_t *c) {
  server_kill(c->env->server);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  env_run_for(c->env, 30);
  server_restart(c->env->server);
}

static const struct {
  const char *name;
  void (*enter)(contender_t *c);
} states[] = {
    {"idle", when_idle},
    {"just started", when_just_started},
    {"being acquired", when_acquiring},
    {"waited for", when_waiting},
    {"held", when_held},
    {"being renewed", when_renewing},
    {"being extended", when_extending},
    {"being released", when_releasing},
    {"lost", when_lost},
    {"being closed", when_closing},
    {"being dialed for", when_server_away},
};

enum { STATES = sizeof states / sizeof *states };

/* ---- every state, every target, running and stopped server ---- */

typedef struct situation {
  target_t target;
  size_t state;
  bool dead;
} situation_t;

/* Each pending operation ended once, as canceled. */
static void check_endings(const contender_t *c, bool op_pended, bool extend_pended) {
  assert_int_equal(c->ended, c->begun);
  assert_int_equal(c->extended, c->begun_extend);
  if (op_pended)
    assert_error(c->status, BELAY_ECANCELED);
  if (extend_pended)
    assert_error(c->extend_status, BELAY_ECANCELED);
}

static env_t *open_env(void) {
  belay_client_options_t options = client_options();
  options.close_timeout_ms = CLOSE_TIMEOUT_MS * slow();
  return env_open(&options);
}

static void test_close(void **state) {
  const situation_t *situation = *state;
  env_t *env = open_env();
  belay_lock_options_t options = watched(900 * slow());
  contender_t *c = contender_new(env, "door", &options);
  states[situation->state].enter(c);
  bool op_pended = c->ended < c->begun, extend_pended = c->extended < c->begun_extend;
  bool was_closing = c->closing > 0;
  unsigned losses = c->lost;
  if (situation->dead)
    server_pause(env->server);
  else
    server_resume(env->server);
  int64_t began = clock_now();
  assert_error(begin_close_of_target(situation->target, c),
               was_closing && situation->target == THE_LOCK ? BELAY_ECLOSING : 0);
  assert_error(begin_close_of_target(situation->target, c), BELAY_ECLOSING);
  env_until(env, is_closed(situation->target, c));
  assert_between(clock_since_ms(began), 0, CLOSE_TIMEOUT_MS * slow() + lag());
  check_endings(c, op_pended, extend_pended);
  assert_int_equal(c->lost, losses);
  server_resume(env->server);
  if (!situation->dead) {
    const char *left = server_string(env->server, "GET", "belay::lock::{door}", NULL);
    assert_true(left == NULL || strcmp(left, "somebody else") == 0);
  }
  env_close(env);
}

/* ---- inside every callback ---- */

typedef enum inside {
  AN_ACQUIRE,
  AN_ATTEMPT_THAT_FAILED,
  A_RELEASE,
  AN_EXTEND,
  A_LOSS,
  A_PING,
  ANOTHER_CLOSE,
  INSIDES
} inside_t;

static const char *const inside_names[] = {
    "of an acquire", "of an attempt that failed", "of a release", "of an extend", "of a loss",
    "of a ping",     "of another lock's close"};

typedef struct trap {
  target_t target;
  inside_t inside;
  contender_t *c;
} trap_t;

static void close_target(contender_t *c, const trap_t *trap) {
  c->then = NULL;
  assert_error(begin_close_of_target(trap->target, trap->c), 0);
  assert_error(begin_close_of_target(trap->target, trap->c), BELAY_ECLOSING);
}

static void on_event(contender_t *c, event_t event) {
  const trap_t *trap = c->arg;
  static const event_t events[] = {EVENT_ENDED, EVENT_ENDED,    EVENT_ENDED, EVENT_EXTENDED,
                                   EVENT_LOST,  EVENT_EXTENDED, EVENT_CLOSED};
  if (trap->inside != A_PING && event == events[trap->inside])
    close_target(c, trap);
}

static void on_ping(env_t *env) {
  close_target(env->first, env->first->arg);
}

/* Start the operation in whose callback the target closes. */
static void provoke(contender_t *c, const trap_t *trap) {
  env_t *env = c->env;
  contender_t *other;
  if (trap->inside != AN_ACQUIRE && trap->inside != AN_ATTEMPT_THAT_FAILED)
    assert_error(try_lock(c), 0);
  c->then = trap->inside == ANOTHER_CLOSE ? NULL : on_event;
  switch (trap->inside) {
  case AN_ATTEMPT_THAT_FAILED:
    foreign_holder(c, 60000);
    assert_error(begin_acquire(c, 0), 0);
    break;
  case AN_ACQUIRE:
    assert_error(begin_acquire(c, 0), 0);
    break;
  case A_RELEASE:
    assert_error(begin_release(c), 0);
    break;
  case AN_EXTEND:
    assert_error(begin_extend(c, 20000), 0);
    break;
  case A_LOSS:
    server_do(env->server, "DEL", key_of(c), NULL);
    assert_error(begin_extend(c, 20000), 0);
    break;
  case A_PING:
    assert_error(begin_ping(env), 0);
    break;
  case ANOTHER_CLOSE:
  case INSIDES:
    other = contender_new(env, "another door", NULL);
    assert_error(try_lock(other), 0);
    other->then = on_event;
    other->arg = c->arg;
    assert_error(begin_close(other), 0);
    break;
  }
}

static void test_close_inside(void **state) {
  trap_t *trap = *state;
  env_t *env = open_env();
  contender_t *c = trap->c = contender_new(env, "door", NULL);
  c->arg = trap;
  env->then = on_ping;
  provoke(c, trap);
  env_until(env, is_closed(trap->target, c));
  assert_int_equal(c->ended, c->begun);
  const char *left = server_string(env->server, "GET", "belay::lock::{door}", NULL);
  assert_true(left == NULL || strcmp(left, "somebody else") == 0);
  assert_int_equal(server_integer(env->server, "EXISTS", "belay::lock::{another door}", NULL), 0);
  env_close(env);
}

/* ---- granted, and not yet reported ---- */

static void close_the_other(contender_t *c, event_t event) {
  const trap_t *trap = c->arg;
  if (event == EVENT_ENDED)
    close_target(c, trap);
}

/* Two locks whose replies arrive together; `then` runs in the callback of the first one. */
static env_t *open_granted(contender_t *both[2], trap_t *trap,
                           void (*then)(contender_t *c, event_t event)) {
  needs_one_process("replies that arrive together, in their order");
  env_t *env = open_env();
  contender_t *first = both[0] = contender_connected(env, "first", NULL);
  contender_t *second = both[1] = trap->c = contender_new(env, "second", NULL);
  server_pause(env->server);
  assert_error(begin_acquire(first, 0), 0);
  assert_error(begin_acquire(second, 0), 0);
  env_run_for(env, 20);
  first->then = then;
  first->arg = trap;
  server_resume(env->server);
  return env;
}

static void test_close_before_the_grant_is_reported(void **state) {
  trap_t *trap = *state;
  contender_t *both[2];
  env_t *env = open_granted(both, trap, close_the_other);
  const contender_t *second = both[1];
  env_until(env, is_closed(trap->target, second));
  assert_int_equal(second->ended, 1);
  assert_error(second->status, BELAY_ECANCELED);
  assert_int_equal(second->lost, 0);
  assert_int_equal(server_integer(env->server, "EXISTS", "belay::lock::{second}", NULL), 0);
  env_close(env);
}

static void cancel_the_other(contender_t *c, event_t event) {
  const trap_t *trap = c->arg;
  if (event == EVENT_ENDED)
    assert_error(cancel(trap->c), 0);
}

TEST(cancel_before_the_grant_is_reported) {
  trap_t trap = {0};
  contender_t *both[2];
  env_t *env = open_granted(both, &trap, cancel_the_other);
  assert_error(outcome(both[1]), BELAY_ECANCELED);
  env_settle(env);
  assert_int_equal(server_keys(env->server), 1);
  assert_true(is_on_server(both[0]));
  env_close(env);
}

/* ---- many handles, repeated closes ---- */

ENV_TEST_OF(client_close_releases_all_locks, o.close_timeout_ms = 60000) {
  enum { MANY = 5000 };
  static contender_t *all[MANY];
  char name[16];
  for (int i = 0; i < MANY; i++) {
    snprintf(name, sizeof name, "door-%d", i);
    all[i] = contender_new(env, name, NULL);
    assert_error(begin_acquire(all[i], 0), 0);
  }
  for (int i = 0; i < MANY; i++)
    assert_error(outcome(all[i]), 0);
  assert_int_equal(server_keys(env->server), MANY);
  assert_error(begin_client_close(env), 0);
  env_until(env, env->client_closed == 1);
  assert_int_equal(server_keys(env->server), 0);
}

TEST_IN(belay_close_closes_all_clients, env, open_env()) {
  enum { CLIENTS = 5 };
  for (int i = 0; i < CLIENTS; i++) {
    char name[16];
    snprintf(name, sizeof name, "door-%d", i);
    belay_client_t *client = env_connect(env, server_url(env->server), NULL);
    assert_error(try_lock(contender_of(env, client, name, NULL)), 0);
  }
  assert_error(begin_belay_close(env), 0);
  env_until(env, env->belay_closed == 1);
  assert_int_equal(server_keys(env->server), 0);
}

static void take_it_again(contender_t *c, event_t event) {
  contender_t **next = c->arg;
  if (event != EVENT_CLOSED)
    return;
  *next = contender_new(c->env, "door", NULL);
  assert_error(begin_acquire(*next, 0), 0);
}

TEST_IN(new_handle_in_a_close_callback, env, open_env()) {
  contender_t *c = contender_new(env, "door", NULL), *next = NULL;
  assert_error(try_lock(c), 0);
  c->then = take_it_again;
  c->arg = &next;
  assert_error(close_lock(c), 0);
  assert_error(outcome(next), 0); /* the old handle had released it */
}

TEST_IN(close_callbacks_may_be_null, env, open_env()) {
  belay_client_t *client = env_connect(env, server_url(env->server), NULL);
  contender_t *held = contender_new(env, "door", NULL);
  contender_t *other = contender_of(env, client, "another door", NULL);
  assert_error(try_lock(held), 0);
  assert_error(try_lock(other), 0);
  assert_error(belay_lock_close(held->lock, NULL), 0);
  assert_error(belay_client_close(client, NULL), 0);
  env_until(env, server_keys(env->server) == 0);
}

ENV_TEST_OF(close_timeout_of_zero, o.close_timeout_ms = 0) {
  assert_error(try_lock(contender_new(env, "door", NULL)), 0);
  server_pause(env->server);
  int64_t began = clock_now();
  assert_error(begin_belay_close(env), 0);
  env_until(env, env->belay_closed == 1);
  assert_true(clock_since_ms(began) < lag());
}

/* The close of a lock, then of its client, then of belay. */
TEST_IN(lock_client_and_belay_close_in_a_row, env, open_env()) {
  contender_t *c = contender_holding(env, "door", NULL);
  assert_error(begin_close(c), 0);
  assert_error(begin_client_close(env), 0);
  assert_error(begin_close(c), BELAY_ECLOSING);
  assert_error(begin_belay_close(env), 0);
  assert_error(begin_belay_close(env), BELAY_ECLOSING);
  env_until(env, env->belay_closed == 1);
  assert_int_equal(c->closed, 1);
  assert_int_equal(env->client_closed, 1);
  assert_true(c->closed_at < env->sequence);
  assert_int_equal(server_keys(env->server), 0);
}

/* ---- data of a handle ---- */

static void on_message(belay_subscription_t *subscription, belay_topic_event_t event,
                       const void *message, size_t len, int status) {
  (void)subscription;
  (void)event;
  (void)message;
  (void)len;
  (void)status;
}

static unsigned data_closed;
static int mine;

#define CLOSED(type)                                                                               \
  static void on_##type##_closed(belay_##type##_t *handle, void *data) {                           \
    assert_non_null(handle);                                                                       \
    assert_ptr_equal(data, &mine);                                                                 \
    data_closed++;                                                                                 \
  }
CLOSED(barrier)
CLOSED(election)
CLOSED(latch)
CLOSED(lock)
CLOSED(subscription)

#define CLOSE(type, handle)                                                                        \
  assert_error(belay_##type##_close(handle, on_##type##_closed), 0);                               \
  expected++

ENV_TEST(close_callback_gets_the_data) {
  belay_client_t *client = env->client;
  unsigned expected = data_closed = 0;
#define SET(type, ...)                                                                             \
  belay_##type##_t *type##_handle;                                                                 \
  assert_error(belay_##type##_new(__VA_ARGS__, belay_string("n"), NULL, &type##_handle), 0);       \
  belay_##type##_set_data(type##_handle, &mine);                                                   \
  CLOSE(type, type##_handle)
  SET(latch, client);
  SET(barrier, client);
  SET(lock, client);
  SET(election, client);
  belay_subscription_t *subscription;
  assert_error(belay_topic_subscribe(client, belay_string("n"), on_message, &mine, &subscription),
               0);
  CLOSE(subscription, subscription);
  env_until(env, data_closed == expected);
}

/* ---- the table ---- */

static situation_t situations[TARGETS * STATES * 2];
static trap_t traps[TARGETS * INSIDES], grants[TARGETS];

TEST_ROWS(situations) {
  situation_t *s = situations;
  for (target_t target = THE_LOCK; target < TARGETS; target++)
    for (size_t i = 0; i < STATES; i++)
      for (int dead = 0; dead <= 1; dead++) {
        *s = (situation_t){.target = target, .state = i, .dead = dead};
        test_add(__LINE__, test_close, s++, "close %s while the lock is %s and the server is %s",
                 target_names[target], states[i].name, dead ? "dead" : "alive");
      }
}

TEST_ROWS(traps) {
  trap_t *t = traps;
  for (target_t target = THE_LOCK; target < TARGETS; target++)
    for (inside_t inside = AN_ACQUIRE; inside < INSIDES; inside++) {
      *t = (trap_t){.target = target, .inside = inside};
      test_add(__LINE__, test_close_inside, t++, "close %s inside the callback %s",
               target_names[target], inside_names[inside]);
    }
}

TEST_ROWS(grants) {
  for (target_t target = THE_LOCK; target < TARGETS; target++) {
    grants[target] = (trap_t){.target = target};
    test_add(__LINE__, test_close_before_the_grant_is_reported, &grants[target],
             "close %s before a grant is reported", target_names[target]);
  }
}
