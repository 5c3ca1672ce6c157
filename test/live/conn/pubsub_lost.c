/* Notifications are lost, always or sometimes. Every waiter still gets its turn within the
 * limit, and a lost notification costs one poll. With notifications no poll is needed. */
#include <stdio.h>

#include "support/load/contest.h"

enum { KILL_EVERY_MS = 5, CONTEST_MS = 3000, TURNS = 5, POLL_MS = 300, ROUNDS = 3, WAITERS = 3 };

/* ---- no message arrives ---- */

typedef struct deafness {
  const char *name;
  const char *rules[4]; /* for the user; NULL: he may listen */
  bool killed;          /* true if the listening connections are killed again and again */
} deafness_t;

static const deafness_t deafnesses[] = {
    {"connections_that_listen_are_killed", {NULL}, true},
    {"the_user_has_no_channels", {"resetchannels"}, false},
    {"the_user_may_neither_listen_nor_publish",
     {"resetchannels", "-subscribe", "-ssubscribe", "-publish"},
     false},
};
enum { DEAFNESSES = sizeof deafnesses / sizeof *deafnesses };

static void make_deaf(server_t *server, const deafness_t *deafness) {
  for (int i = 0; i < 4 && deafness->rules[i] != NULL; i++)
    server_do(server, "ACL", "SETUSER", "default", deafness->rules[i], NULL);
}

static void kill_listeners(uv_timer_t *timer) {
  server_t *server = timer->data;
  server_do(server, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
}

static void start_killing(uv_timer_t *timer, env_t *env) {
  uv_timer_init(&env->loop, timer);
  timer->data = env->server;
  uv_timer_start(timer, kill_listeners, KILL_EVERY_MS, KILL_EVERY_MS);
}

/* Latches and barriers, too, open for all who wait, within a poll. */
static void meet(env_t *env, belay_client_t *one, belay_client_t *two,
                 const belay_lock_options_t *options, int64_t most_ms) {
  for (int round = 0; round < ROUNDS; round++) {
    player_t latch[WAITERS], barrier[MEETING];
    for (unsigned i = 0; i < WAITERS; i++) {
      player_init(&latch[i], env, i % 2 ? one : two, LATCH, i, options);
      player_come(&latch[i]);
    }
    for (unsigned i = 0; i < MEETING; i++)
      player_init(&barrier[i], env, i % 2 ? one : two, BARRIER, i, options);
    player_come(&barrier[0]);
    env_run_for(env, 400 * slow()); /* asks as rarely as it gets */
    assert_int_equal(player_count(&latch[0], "first"), 1);
    int64_t began = clock_now();
    assert_int_equal(player_count(&latch[1], "second"), 0);
    player_come(&barrier[1]);
    for (unsigned i = 0; i < WAITERS; i++)
      player_await(&latch[i]);
    for (unsigned i = 0; i < MEETING; i++) {
      player_await(&barrier[i]);
      assert_int_equal(barrier[i].grant, round + 1);
    }
    assert_between(clock_since_ms(began), 0, most_ms);
    server_do(env->server, "DEL", kinds[LATCH].holders[0], NULL); /* the next one is another */
    for (unsigned i = 0; i < WAITERS; i++)
      belay_latch_close(latch[i].latch, NULL);
    for (unsigned i = 0; i < MEETING; i++)
      belay_barrier_close(barrier[i].barrier, NULL);
    env_run_for(env, 20);
  }
}

static void test_deaf(void **state) {
  static contest_t contest;
  uv_timer_t killer;
  const deafness_t *deafness = *state;
  belay_client_options_t client = client_options();
  env_t *env = env_open(NULL);
  belay_lock_options_t options = watched(20000);
  make_deaf(env->server, deafness);
  if (deafness->killed)
    start_killing(&killer, env);
  contest_begin(&contest, env, server_url(env->server), &client, &options);
  env_run_for(env, CONTEST_MS);
  contest_await_turns(&contest, TURNS);
  contest_end(&contest);
  contest_expect_no_failures(&contest);
  contest_expect_prompt(&contest, POLL_MS + 600 * slow() + lag());
  meet(env, env->client, env->all[1], &options, POLL_MS + 600 * slow() + lag());
  if (deafness->killed)
    uv_close((uv_handle_t *)&killer, NULL);
  env_close(env);
}

/* ---- all messages arrive ---- */

/* Holders and waiters in three clients, all with a poll interval of 20 seconds. */
typedef struct chain {
  env_t *env;
  player_t player[WAITERS + 1], observer;
} chain_t;

static unsigned count_grants(const chain_t *chain) {
  unsigned n = 0;
  for (unsigned i = 0; i <= WAITERS; i++)
    n += chain->player[i].came;
  return n;
}

static void open_chain(chain_t *chain, env_t *env, kind_id_t kind) {
  belay_lock_options_t options = watched(60000);
  options.retry_min_ms = options.retry_max_ms = 20000;
  options.waiter_ttl_ms = 600000; /* its third would be the longest poll */
  chain->env = env;
  for (unsigned i = 0; i <= WAITERS; i++)
    player_init(&chain->player[i], env, env->all[i % 3], kind, i, &options);
  if (kind == ELECTION) {
    player_init(&chain->observer, env, env->all[2], kind, 9, &options);
    player_observe(&chain->observer);
  }
  player_come(&chain->player[0]);
  player_await(&chain->player[0]);
  for (unsigned i = 1; i <= WAITERS; i++)
    player_come(&chain->player[i]);
  env_run_for(env, 150 * slow()); /* they listen */
}

/* Those who have it leave; how long it takes until others have come, in ms. */
static int64_t pass_on(chain_t *chain) {
  unsigned grants = count_grants(chain);
  int64_t left_at = clock_now();
  for (unsigned i = 0; i <= WAITERS; i++)
    if (chain->player[i].has)
      player_leave(&chain->player[i]);
  player_until(&chain->player[0], count_grants(chain) > grants);
  int64_t took = clock_since_ms(left_at);
  for (unsigned i = 0; i <= WAITERS; i++) {
    player_await_left(&chain->player[i]);
    if (chain->player[i].election != NULL && chain->player[i].has) {
      player_until(&chain->observer, chain->observer.seen == chain->player[i].grant);
      took = clock_since_ms(left_at);
    }
  }
  env_run_for(chain->env, 20 * slow()); /* all who may have it together */
  return took;
}

ENV_TEST(no_polls_with_wakeups) {
  static chain_t chain;
  for (int i = 0; i < 2; i++)
    env_connect(env, server_url(env->server), NULL);
  for (kind_id_t kind = (kind_id_t)0; kind < HELD_KINDS; kind++) {
    if (!kinds[kind].notifies)
      continue;
    int64_t longest = 0;
    open_chain(&chain, env, kind);
    while (count_grants(&chain) <= WAITERS) {
      int64_t took = pass_on(&chain);
      longest = took > longest ? took : longest;
    }
    for (unsigned i = 0; i <= WAITERS; i++) {
      assert_error(chain.player[i].status, 0);
      if (chain.player[i].has)
        player_leave(&chain.player[i]);
      player_await_left(&chain.player[i]);
    }
    if (longest > 1000 * slow())
      fail_msg("%s: %lld ms from a release to a grant", kinds[kind].name, (long long)longest);
  }
  belay_lock_options_t rarely = watched(60000);
  rarely.retry_min_ms = rarely.retry_max_ms = 20000;
  meet(env, env->all[1], env->all[2], &rarely, 1000 * slow());
}

TEST_ROWS(deaf) {
  for (int i = 0; i < DEAFNESSES; i++)
    test_add(__LINE__, test_deaf, &deafnesses[i], "%s", deafnesses[i].name);
}
