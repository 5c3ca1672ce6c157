/* The server loses all data or only its scripts, or restarts, at each step. Holders learn of a
 * loss, no operation hangs, and fencing numbers keep growing. */
#include <stdio.h>

#include "support/load/contest.h"
#include "support/deployments/relay.h"

enum { TTL = 4000, CONTEST_TTL = 4000, RENEWALS = 10 /* in a ttl: the rest stands a standstill */ };

typedef struct blow {
  const char *name;
  void (*strike)(env_t *env);
  belay_lost_t lost;   /* the reported reason of the loss; 0: no loss */
  bool forgets;        /* what is had */
  bool goes_unnoticed; /* by anybody: nothing fails */
  bool exact;          /* nothing is undone that was done just before */
  int strikes, apart;  /* number of strikes under contention, and the ms between them */
} blow_t;

static relay_t *relay; /* to the server, for all clients */

static void flush_all(env_t *env) {
  server_do(env->server, "FLUSHALL", NULL);
}

static void flush_scripts(env_t *env) {
  server_do(env->server, "SCRIPT", "FLUSH", NULL);
}

static void cut_connections(env_t *env) {
  server_do(env->server, "CLIENT", "KILL", "TYPE", "normal", NULL);
  server_do(env->server, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
}

/* Behind the server's back: it still executes what it was sent. */
static void cut_relays(env_t *env) {
  (void)env;
  relay_cut(relay);
}

static void restart_keeping(env_t *env) {
  server_restart_keeping(env->server);
}

static void restart_empty(env_t *env) {
  server_kill(env->server);
  server_restart(env->server);
}

static void stand_still(env_t *env) {
  server_pause(env->server);
  env_run_for(env, (TTL + 300) * slow());
  server_resume(env->server);
}

static const blow_t blows[] = {
    {"scripts_are_flushed", flush_scripts, 0, false, true, true, 120, 10},
    {"connections_are_cut", cut_connections, 0, false, false, true, 20, 70},
    {"relays_are_cut", cut_relays, 0, false, false, true, 4, 250},
    {"the_data_is_flushed", flush_all, BELAY_LOST_TAKEN, true, false, false, 2, 300},
    {"the_server_starts_again", restart_keeping, 0, false, false, false, 2, 300},
    {"it_starts_again_empty", restart_empty, BELAY_LOST_TAKEN, true, false, false, 2, 300},
    {"the_server_stands_still", stand_still, BELAY_LOST_EXPIRED, false, false, true, 1, 300},
};
enum { BLOWS = sizeof blows / sizeof *blows };

static belay_client_options_t hasty(void) {
  belay_client_options_t options = client_options();
  options.reconnect_max_ms = 50;
  return options;
}

static void open_relay(env_t *env) {
  relay = relay_start(server_url(env->server));
  relay_delay(relay, 1);
}

/* ---- one has it, and one waits ---- */

typedef struct scene {
  env_t *env;
  const blow_t *blow;
  player_t holder[KINDS], waiter[KINDS]; /* of two clients */
} scene_t;

static void open_scene(scene_t *s, const blow_t *blow) {
  belay_client_options_t client = hasty();
  belay_lock_options_t options = watched(TTL * slow());
  *s = (scene_t){.env = env_open(&client), .blow = blow};
  open_relay(s->env);
  belay_client_t *one = env_connect(s->env, relay_url(relay), &client);
  belay_client_t *other = env_connect(s->env, relay_url(relay), &client);
  options.renew_after_ms = TTL / RENEWALS * slow();
  for (kind_id_t k = (kind_id_t)0; k < KINDS; k++) {
    belay_lock_options_t o = options;
    o.ttl_ms = k == LATCH ? 3600000 : options.ttl_ms; /* it is not renewed */
    player_init(&s->holder[k], s->env, one, k, 0, &o);
    player_init(&s->waiter[k], s->env, other, k, 1, &o);
    if (k < HELD_KINDS) {
      player_come(&s->holder[k]);
      player_await(&s->holder[k]);
    }
    player_come(&s->waiter[k]);
  }
  assert_int_equal(player_count(&s->holder[LATCH], "first"), 1);
  env_run_for(s->env, 100 * slow());
}

/* The holder reports the loss, and the waiter is granted the lock with a larger number. */
static void expect_notified(player_t *holder, player_t *waiter, belay_lost_t reason) {
  player_until(holder, holder->lost == 1);
  if (holder->reason != reason)
    fail_msg("%s: lost, but %s", kinds[holder->kind].name, belay_lost_name(holder->reason));
  player_await(waiter);
}

/* It has it still, and when it leaves the other has it. */
static void expect_kept(player_t *holder, player_t *waiter) {
  const char *name = kinds[holder->kind].name;
  if (holder->lost > 0 || !player_has(holder) || waiter->came > 0)
    fail_msg("%s: it was noticed", name);
  player_leave(holder);
  player_await_left(holder);
  player_await(waiter);
}

/* A waiter of a lost latch gets an unknown outcome, and waits for the new latch. */
static void wait_for_the_new_one(player_t *latch) {
  player_until(latch, latch->came == 1);
  assert_error(latch->status, BELAY_EUNKNOWN);
  latch->came = latch->begun = 0;
  player_come(latch);
}

static void judge_meetings(scene_t *s) {
  player_t *latch = &s->waiter[LATCH], *barrier = &s->waiter[BARRIER];
  if (s->blow->forgets)
    wait_for_the_new_one(latch);
  assert_int_equal(latch->came + barrier->came, 0);
  player_until(barrier, kind_queue(s->env->server, BARRIER) == 1); /* it has come again */
  player_come(&s->holder[BARRIER]);
  player_await(&s->holder[BARRIER]);
  player_await(barrier);
  assert_int_equal(barrier->grant, 1);
  /* The count is lost with the rest: the same operation counts once more. */
  assert_int_equal(player_count(&s->holder[LATCH], "first"), 1);
  assert_int_equal(latch->came, 0);
  assert_int_equal(player_count(&s->holder[LATCH], "second"), 0);
  player_await(latch);
}

static void test_who_has_it_and_who_waits(void **state) {
  static scene_t s;
  open_scene(&s, *state);
  s.blow->strike(s.env);
  if (s.blow->forgets)
    assert_int_equal(player_count(&s.holder[LATCH], "third"), 1); /* of a new one */
  if (s.blow->forgets)
    server_do(s.env->server, "DEL", kinds[LATCH].holders[0], NULL);
  else if (s.blow->lost == 0)
    env_run_for(s.env, TTL * 7 / 6 * slow()); /* all are renewed, or would be over */
  for (kind_id_t k = (kind_id_t)0; k < HELD_KINDS; k++) {
    if (s.blow->lost != 0)
      expect_notified(&s.holder[k], &s.waiter[k], s.blow->lost);
    else
      expect_kept(&s.holder[k], &s.waiter[k]);
    if (kinds[k].numbers && s.waiter[k].grant <= s.holder[k].grant)
      fail_msg("%s: the number after it is not larger", kinds[k].name);
    player_leave(&s.waiter[k]);
    player_await_left(&s.waiter[k]);
    player_come(&s.holder[k]); /* as if nothing had been */
    player_await(&s.holder[k]);
  }
  judge_meetings(&s);
  expect_ttl_on_every_key(s.env->server);
  env_close(s.env);
  relay_stop(relay);
}

/* ---- many want it ---- */

static void test_contest(void **state) {
  static contest_t contest;
  const blow_t *blow = *state;
  belay_client_options_t client = hasty();
  env_t *env = env_open(&client);
  belay_lock_options_t options = watched(CONTEST_TTL * slow());
  options.renew_after_ms = CONTEST_TTL / RENEWALS * slow();
  open_relay(env);
  contest_begin(&contest, env, relay_url(relay), &client, &options);
  contest_await_turns(&contest, 1);
  for (int i = 0; i < blow->strikes; i++) {
    if (!blow->exact)
      contest_forget(&contest);
    blow->strike(env);
    env_run_for(env, blow->apart);
  }
  contest_await_turns(&contest, 2);
  contest_end(&contest);
  if (blow->goes_unnoticed)
    contest_expect_no_failures(&contest);
  expect_ttl_on_every_key(env->server);
  env_close(env);
  relay_stop(relay);
}

TEST_ROWS(blows) {
  for (int i = 0; i < BLOWS; i++) {
    test_add(__LINE__, test_who_has_it_and_who_waits, &blows[i], "%s_while_one_has_it",
             blows[i].name);
    test_add(__LINE__, test_contest, &blows[i], "%s_while_many_want_it", blows[i].name);
  }
}
