/* Closing a lock, a client or all of belay: in every state, inside every callback, with and without a server. */
#include <stdio.h>

#include "support/fixtures/bed.h"

#define CLOSE_TIMEOUT_MS 400

/* ---- what is closed ------------------------------------------------------------------------------------ */

typedef enum target { THE_LOCK, THE_CLIENT, ALL_OF_BELAY, TARGETS } target_t;

static const char *const target_names[] = {"a lock", "a client", "all of belay"};

static int begin(target_t target, contender_t *c) {
  switch (target) {
  case THE_LOCK:
    return begin_close(c);
  case THE_CLIENT:
    return begin_client_close(c->bed);
  case ALL_OF_BELAY:
  case TARGETS:
    break;
  }
  return begin_belay_close(c->bed);
}

static bool is_over(target_t target, const contender_t *c) {
  switch (target) {
  case THE_LOCK:
    return c->closed == 1;
  case THE_CLIENT:
    return c->bed->client_closed == 1;
  case ALL_OF_BELAY:
  case TARGETS:
    break;
  }
  return c->bed->belay_closed == 1;
}

/* ---- the states it is closed in -------------------------------------------------------------------------- */

static void when_idle(contender_t *c) {
  (void)c;
}

static void when_just_asked(contender_t *c) {
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
}

static void when_acquiring(contender_t *c) {
  assert_error(try_lock(c), 0);
  assert_error(release(c), 0);
  uint64_t before = client_stats(c->bed).writes;
  server_pause(c->bed->server);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  bed_until(c->bed, client_stats(c->bed).writes > before);
}

static void when_waiting(contender_t *c) {
  foreign_holder(c, 60000);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  bed_run_for(c->bed, 50);
}

static void when_held(contender_t *c) {
  assert_error(try_lock(c), 0);
}

static void when_renewing(contender_t *c) {
  assert_error(try_lock(c), 0);
  uint64_t before = client_stats(c->bed).writes;
  server_pause(c->bed->server);
  bed_until(c->bed, client_stats(c->bed).writes > before);
}

static void when_extending(contender_t *c) {
  assert_error(try_lock(c), 0);
  server_pause(c->bed->server);
  assert_error(begin_extend(c, 60000), 0);
  bed_run_for(c->bed, 10);
}

static void when_releasing(contender_t *c) {
  assert_error(try_lock(c), 0);
  server_pause(c->bed->server);
  assert_error(begin_release(c), 0);
  bed_run_for(c->bed, 10);
}

static void when_lost(contender_t *c) {
  assert_error(try_lock(c), 0);
  server_do(c->bed->server, "DEL", key_of(c), NULL);
  bed_until(c->bed, c->lost == 1);
}

static void when_closing(contender_t *c) {
  assert_error(try_lock(c), 0);
  server_pause(c->bed->server);
  assert_error(begin_close(c), 0);
  bed_run_for(c->bed, 10);
}

static void when_nobody_listens(contender_t *c) {
  server_kill(c->bed->server);
  assert_error(begin_acquire(c, BELAY_FOREVER), 0);
  bed_run_for(c->bed, 30);
  server_restart(c->bed->server);
}

static const struct {
  const char *name;
  void (*enter)(contender_t *c);
} states[] = {
    {"idle", when_idle},
    {"just asked for", when_just_asked},
    {"being acquired", when_acquiring},
    {"waited for", when_waiting},
    {"held", when_held},
    {"being renewed", when_renewing},
    {"being extended", when_extending},
    {"being released", when_releasing},
    {"lost", when_lost},
    {"being closed", when_closing},
    {"being dialed for", when_nobody_listens},
};

enum { STATES = sizeof states / sizeof *states };

/* ---- every state, every target, server alive or dead ---------------------------------------------------- */

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

static bed_t *open_bed(void) {
  belay_client_options_t options = client_options();
  options.close_timeout_ms = CLOSE_TIMEOUT_MS * slow();
  return bed_open(&options);
}

static void test_close(void **state) {
  const situation_t *situation = *state;
  bed_t *bed = open_bed();
  belay_lock_options_t options = watched(900 * slow());
  contender_t *c = contender_new(bed, "door", &options);
  states[situation->state].enter(c);
  bool op_pended = c->ended < c->begun, extend_pended = c->extended < c->begun_extend;
  bool was_closing = c->closing > 0;
  unsigned losses = c->lost;
  if (situation->dead)
    server_pause(bed->server);
  else
    server_resume(bed->server);
  int64_t began = clock_now();
  assert_error(begin(situation->target, c),
               was_closing && situation->target == THE_LOCK ? BELAY_ECLOSING : 0);
  assert_error(begin(situation->target, c), BELAY_ECLOSING);
  bed_until(bed, is_over(situation->target, c));
  assert_between(clock_since_ms(began), 0, CLOSE_TIMEOUT_MS * slow() + lag());
  check_endings(c, op_pended, extend_pended);
  assert_int_equal(c->lost, losses);
  server_resume(bed->server);
  if (!situation->dead) {
    const char *left = server_string(bed->server, "GET", "belay::lock::{door}", NULL);
    assert_true(left == NULL || strcmp(left, "somebody else") == 0);
  }
  bed_close(bed);
}

/* ---- inside every callback ------------------------------------------------------------------------------- */

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

static void close_it(contender_t *c, const trap_t *trap) {
  c->then = NULL;
  assert_error(begin(trap->target, trap->c), 0);
  assert_error(begin(trap->target, trap->c), BELAY_ECLOSING);
}

static void on_event(contender_t *c, event_t event) {
  const trap_t *trap = c->arg;
  static const event_t events[] = {EVENT_ENDED, EVENT_ENDED,    EVENT_ENDED, EVENT_EXTENDED,
                                   EVENT_LOST,  EVENT_EXTENDED, EVENT_CLOSED};
  if (trap->inside != A_PING && event == events[trap->inside])
    close_it(c, trap);
}

static void on_ping(bed_t *bed) {
  close_it(bed->first, bed->first->arg);
}

/* Brings about the callback in which the trap snaps. */
static void provoke(contender_t *c, const trap_t *trap) {
  bed_t *bed = c->bed;
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
    server_do(bed->server, "DEL", key_of(c), NULL);
    assert_error(begin_extend(c, 20000), 0);
    break;
  case A_PING:
    assert_error(begin_ping(bed), 0);
    break;
  case ANOTHER_CLOSE:
  case INSIDES:
    other = contender_new(bed, "another door", NULL);
    assert_error(try_lock(other), 0);
    other->then = on_event;
    other->arg = c->arg;
    assert_error(begin_close(other), 0);
    break;
  }
}

static void test_close_inside(void **state) {
  trap_t *trap = *state;
  bed_t *bed = open_bed();
  contender_t *c = trap->c = contender_new(bed, "door", NULL);
  c->arg = trap;
  bed->then = on_ping;
  provoke(c, trap);
  bed_until(bed, is_over(trap->target, c));
  assert_int_equal(c->ended, c->begun);
  const char *left = server_string(bed->server, "GET", "belay::lock::{door}", NULL);
  assert_true(left == NULL || strcmp(left, "somebody else") == 0);
  assert_int_equal(server_integer(bed->server, "EXISTS", "belay::lock::{another door}", NULL), 0);
  bed_close(bed);
}

/* ---- granted, and nobody knows yet ----------------------------------------------------------------------- */

static void close_the_other(contender_t *c, event_t event) {
  const trap_t *trap = c->arg;
  if (event == EVENT_ENDED)
    close_it(c, trap);
}

static void test_close_between_the_grant_and_its_news(void **state) {
  trap_t *trap = *state;
  needs_one_process("answers that come together, in their order");
  bed_t *bed = open_bed();
  contender_t *first = contender_new(bed, "first", NULL);
  contender_t *second = trap->c = contender_new(bed, "second", NULL);
  assert_error(try_lock(first), 0);
  assert_error(release(first), 0);
  server_pause(bed->server); /* both answers come together */
  assert_error(begin_acquire(first, 0), 0);
  assert_error(begin_acquire(second, 0), 0);
  bed_run_for(bed, 20);
  first->then = close_the_other;
  first->arg = trap;
  server_resume(bed->server);
  bed_until(bed, is_over(trap->target, second));
  assert_int_equal(second->ended, 1);
  assert_error(second->status, BELAY_ECANCELED);
  assert_int_equal(second->lost, 0);
  assert_int_equal(server_integer(bed->server, "EXISTS", "belay::lock::{second}", NULL), 0);
  bed_close(bed);
}

static void cancel_the_other(contender_t *c, event_t event) {
  const trap_t *trap = c->arg;
  if (event == EVENT_ENDED)
    assert_error(cancel(trap->c), 0);
}

TEST(cancel_between_the_grant_and_its_news) {
  needs_one_process("answers that come together, in their order");
  bed_t *bed = open_bed();
  contender_t *first = contender_new(bed, "first", NULL),
              *second = contender_new(bed, "second", NULL);
  trap_t trap = {.c = second};
  assert_error(try_lock(first), 0);
  assert_error(release(first), 0);
  server_pause(bed->server);
  assert_error(begin_acquire(first, 0), 0);
  assert_error(begin_acquire(second, 0), 0);
  bed_run_for(bed, 20);
  first->then = cancel_the_other;
  first->arg = &trap;
  server_resume(bed->server);
  assert_error(outcome(second), BELAY_ECANCELED);
  bed_settle(bed);
  assert_int_equal(server_keys(bed->server), 1);
  assert_true(is_on_server(first));
  bed_close(bed);
}

/* ---- many at once, and again ----------------------------------------------------------------------------- */

BED_TEST_OF(a_client_releases_all_that_it_holds, o.close_timeout_ms = 60000) {
  enum { MANY = 5000 };
  static contender_t *all[MANY];
  char name[16];
  for (int i = 0; i < MANY; i++) {
    snprintf(name, sizeof name, "door-%d", i);
    all[i] = contender_new(bed, name, NULL);
    assert_error(begin_acquire(all[i], 0), 0);
  }
  for (int i = 0; i < MANY; i++)
    assert_error(outcome(all[i]), 0);
  assert_int_equal(server_keys(bed->server), MANY);
  assert_error(begin_client_close(bed), 0);
  bed_until(bed, bed->client_closed == 1);
  assert_int_equal(server_keys(bed->server), 0);
}

TEST_IN(belay_closes_all_its_clients, bed, open_bed()) {
  enum { CLIENTS = 5 };
  for (int i = 0; i < CLIENTS; i++) {
    char name[16];
    snprintf(name, sizeof name, "door-%d", i);
    belay_client_t *client = bed_connect(bed, server_url(bed->server), NULL);
    assert_error(try_lock(contender_of(bed, client, name, NULL)), 0);
  }
  assert_error(begin_belay_close(bed), 0);
  bed_until(bed, bed->belay_closed == 1);
  assert_int_equal(server_keys(bed->server), 0);
}

static void take_it_again(contender_t *c, event_t event) {
  contender_t **next = c->arg;
  if (event != EVENT_CLOSED)
    return;
  *next = contender_new(c->bed, "door", NULL);
  assert_error(begin_acquire(*next, 0), 0);
}

TEST_IN(a_new_handle_in_the_close_of_the_old_one, bed, open_bed()) {
  contender_t *c = contender_new(bed, "door", NULL), *next = NULL;
  assert_error(try_lock(c), 0);
  c->then = take_it_again;
  c->arg = &next;
  assert_error(close_lock(c), 0);
  assert_error(outcome(next), 0); /* the old one had given it back by then */
}

TEST_IN(callbacks_may_be_null, bed, open_bed()) {
  belay_client_t *client = bed_connect(bed, server_url(bed->server), NULL);
  contender_t *held = contender_new(bed, "door", NULL);
  contender_t *other = contender_of(bed, client, "another door", NULL);
  assert_error(try_lock(held), 0);
  assert_error(try_lock(other), 0);
  assert_error(belay_lock_close(held->lock, NULL), 0);
  assert_error(belay_client_close(client, NULL), 0);
  bed_until(bed, server_keys(bed->server) == 0);
}

BED_TEST_OF(a_timeout_of_zero_waits_for_nothing, o.close_timeout_ms = 0) {
  assert_error(try_lock(contender_new(bed, "door", NULL)), 0);
  server_pause(bed->server);
  int64_t began = clock_now();
  assert_error(begin_belay_close(bed), 0);
  bed_until(bed, bed->belay_closed == 1);
  assert_true(clock_since_ms(began) < lag());
}

/* A close may be followed by a bigger one, which does not wait longer than the smaller. */
TEST_IN(all_three_closes_in_a_row, bed, open_bed()) {
  contender_t *c = contender_new(bed, "door", NULL);
  assert_error(try_lock(c), 0);
  assert_error(begin_close(c), 0);
  assert_error(begin_client_close(bed), 0);
  assert_error(begin_close(c), BELAY_ECLOSING);
  assert_error(begin_belay_close(bed), 0);
  assert_error(begin_belay_close(bed), BELAY_ECLOSING);
  bed_until(bed, bed->belay_closed == 1);
  assert_int_equal(c->closed, 1);
  assert_int_equal(bed->client_closed, 1);
  assert_true(c->closed_at < bed->sequence);
  assert_int_equal(server_keys(bed->server), 0);
}

/* ---- the list -------------------------------------------------------------------------------------------- */

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
    test_add(__LINE__, test_close_between_the_grant_and_its_news, &grants[target],
             "close %s between a grant and its news", target_names[target]);
  }
}
