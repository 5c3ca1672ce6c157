/* A refiller: which buckets it fills, when, and how it ends. */
#include <stdio.h>

#include "support/fixtures/limit/refillers.h"

#define CAPACITY INT64_C(1000000)

typedef struct single {
  env_t *env;
  bucket_t bucket;
  refiller_t refiller;
} single_t;

static single_t *single_open(const belay_client_options_t *client) {
  single_t *single = calloc(1, sizeof *single);
  single->env = env_open(client);
  bucket_open(&single->bucket, single->env, CAPACITY, false);
  return single;
}

static void single_close(single_t *single) {
  env_close(single->env);
  free(single);
}

/* Make the refiller, which is elected since there is no other. */
static void refill_leased(single_t *single, uint32_t period_ms, uint32_t lease_ms) {
  belay_refiller_options_t options = refiller_options("me", 1, period_ms);
  options.lease_ms = lease_ms;
  refiller_open(&single->refiller, &single->bucket, &options);
}

static void refill(single_t *single, uint32_t period_ms) {
  refill_leased(single, period_ms, 60000);
}

/* Defines a test with a bucket that one refiller can fill. */
#define SINGLE_TEST(name) TEST_IN(name, single, single_open(NULL))

static int64_t number_at(server_t *server, const char *key, const char *part) {
  char whole[64];
  snprintf(whole, sizeof whole, "belay::bucket::{%s}%s", key, part);
  const char *text = server_string(server, "GET", whole, NULL);
  return text == NULL ? 0 : atoll(text);
}

static int64_t index_of(const single_t *a, const char *key) {
  return number_at(a->env->server, key, "::index");
}

static int64_t tokens_of(const single_t *a, const char *key) {
  return number_at(a->env->server, key, "");
}

/* ---- the table ---- */

SINGLE_TEST(the_table_changes_at_any_time) {
  refill(single, 20);
  refiller_add(&single->refiller, "a", 0); /* before it is elected */
  refiller_add(&single->refiller, "b", 5);
  env_until(single->env, index_of(single, "a") >= 2 && index_of(single, "b") >= 2);
  assert_int_equal(tokens_of(single, "a"), index_of(single, "a"));
  assert_int_equal(refiller_stats(&single->refiller).keys, 2);
  assert_error(belay_refiller_remove(single->refiller.handle, belay_string("a")), 0);
  assert_error(belay_refiller_remove(single->refiller.handle, belay_string("a")),
               0); /* it is not there */
  assert_int_equal(refiller_stats(&single->refiller).keys, 1);
  refiller_add(&single->refiller, "c", 0);
  env_settle(single->env);
  int64_t left = index_of(single, "a");
  env_until(single->env, index_of(single, "c") >= 2);
  assert_int_equal(index_of(single, "a"), left);
  refiller_add(&single->refiller, "c", 1000);
  int64_t at = index_of(single, "c"), had = tokens_of(single, "c");
  env_until(single->env, index_of(single, "c") >= at + 3);
  assert_true(tokens_of(single, "c") >= had + 2000);
  for (int i = 0; i < 200; i++) { /* while it is asked about, too */
    refiller_add(&single->refiller, "d", 0);
    uv_run(&single->env->loop, UV_RUN_NOWAIT);
    if (i % 3 == 0)
      assert_error(belay_refiller_remove(single->refiller.handle, belay_string("d")), 0);
  }
  belay_refiller_stats_t stats = refiller_stats(&single->refiller);
  assert_true(stats.filled > 8);
  assert_int_equal(stats.failed + stats.late, 0);
  assert_int_equal(stats.elections, 1);
}

static void add_more(refiller_t *refiller) {
  char key[16];
  snprintf(key, sizeof key, "%u", refiller->rounds);
  refiller_add(refiller, key, 0);
  if (refiller->rounds > 2) {
    snprintf(key, sizeof key, "%u", refiller->rounds - 2);
    assert_error(belay_refiller_remove(refiller->handle, belay_string(key)), 0);
  }
}

/* With an empty table too, and once in a period. */
SINGLE_TEST(the_table_is_made_before_each_round) {
  single->refiller.on_round = add_more;
  refill(single, 50);
  env_until(single->env, single->refiller.elected == 1);
  int64_t begun = clock_now();
  env_until(single->env, single->refiller.rounds >= 8);
  assert_true(clock_since_ms(begun) >= 6 * 50);
  assert_int_equal(refiller_stats(&single->refiller).keys, 2);
}

/* More keys than questions that are out at once. */
SINGLE_TEST(many_keys_have_their_turns) {
  enum { KEYS = 3000 };
  refill(single, 200 * (uint32_t)slow());
  for (int i = 0; i < KEYS; i++) {
    char key[16];
    snprintf(key, sizeof key, "k%d", i);
    refiller_add(&single->refiller, key, 0);
  }
  size_t most = 0;
  while (refiller_stats(&single->refiller).filled < KEYS) {
    uv_run(&single->env->loop, UV_RUN_ONCE);
    size_t pending = client_stats(single->env).pending;
    most = pending > most ? pending : most;
  }
  assert_between((int64_t)most, 200, 260);
  assert_int_equal(server_keys(single->env->server), 2 * KEYS + 2);
  assert_int_equal(refiller_stats(&single->refiller).late, 0);
  assert_true(server_string(single->env->server, "GET", "belay::bucket::{k2999}::index", NULL) !=
              NULL);
  assert_error(begin_close_refiller(&single->refiller), 0); /* its buckets end one by one */
  size_t turns = 0, had = KEYS;
  while (single->refiller.closed == 0) {
    turns += refiller_stats(&single->refiller).keys < had;
    had = refiller_stats(&single->refiller).keys;
    uv_run(&single->env->loop, UV_RUN_ONCE);
  }
  assert_true(turns >= 2);
}

/* Where the client takes no more, the others wait, and not for a period: each is asked about once,
 * and soon. */
TEST(fillings_resent_when_client_is_busy) {
  enum { KEYS = 100, READS = 2 * KEYS };
  belay_client_options_t options = client_options();
  options.max_pending = 8;
  single_t *single = single_open(&options);
  refill(single, 600000);
  for (int i = 0; i < KEYS; i++) {
    char key[16];
    snprintf(key, sizeof key, "k%d", i);
    refiller_add(&single->refiller, key, 0);
  }
  env_until(single->env, server_calls(single->env->server, "get") >= READS);
  assert_true(refiller_stats(&single->refiller).failed > 0);
  env_settle(single->env);
  assert_int_equal(server_calls(single->env->server, "get"), READS);
  single_close(single);
}

/* ---- what goes wrong ---- */

SINGLE_TEST(missed_fillings_not_repeated) {
  enum { PERIOD = 25 };
  refill(single, PERIOD);
  refiller_add(&single->refiller, "a", 0);
  env_until(single->env, index_of(single, "a") >= 2);
  int64_t before = index_of(single, "a"), begun = clock_now();
  stall_ms(10 * PERIOD);
  env_run_for(single->env, 2 * PERIOD);
  int64_t since = clock_since_ms(begun) - 10 * PERIOD;
  assert_between(index_of(single, "a") - before, 1, 1 + since / PERIOD);
}

/* Another process has filled: the learned state is used one period later. */
SINGLE_TEST(late_filling_not_applied) {
  enum { PERIOD = 60 };
  refill(single, PERIOD * (uint32_t)slow());
  refiller_add(&single->refiller, "a", 7);
  env_until(single->env, index_of(single, "a") == 1);
  expect_add(&single->bucket, "a", 1, 1, true, 8, 2);
  env_until(single->env, refiller_stats(&single->refiller).late == 1);
  int64_t begun = clock_now();
  assert_int_equal(tokens_of(single, "a"), 8);
  env_until(single->env, refiller_stats(&single->refiller).filled == 2);
  assert_true(clock_since_ms(begun) >= PERIOD * slow() - 30);
  assert_int_equal(tokens_of(single, "a"), 15);
  expect_delete(&single->bucket, "a", true, 0); /* it begins again */
  env_until(single->env, refiller_stats(&single->refiller).late == 2);
  env_until(single->env, index_of(single, "a") == 1);
}

/* State from a former term is void: meanwhile the bucket may have been deleted and have reached
 * the same index again. */
SINGLE_TEST(index_from_earlier_election) {
  expect_add(&single->bucket, "a", 1, 0, true, 1, 1);
  refill_leased(single, 500, 1000);
  refiller_add(&single->refiller, "a", 0);
  env_until(single->env,
            server_calls(single->env->server, "get") >= 4); /* it knows that the index is 1 */
  server_do(single->env->server, "FLUSHALL", NULL);
  env_until(single->env, single->refiller.elected == 2);
  expect_add(&single->bucket, "a", 1, 0, true, 1, 1);
  int64_t gets = server_calls(single->env->server, "get");
  env_until(single->env,
            server_calls(single->env->server, "get") >= gets + 2); /* it has its turn */
  assert_int_equal(number_at(single->env->server, "a", ""), 1);
  env_settle(single->env);
  assert_int_equal(refiller_stats(&single->refiller).filled, 0);
}

/* The server forgets all, its place too: it waits for one again, and learns what is. */
TEST(a_server_that_went_away) {
  belay_client_options_t options = client_options();
  options.timeout_ms = 200;
  options.reconnect_max_ms = 40;
  single_t *single = single_open(&options);
  refill_leased(single, 50, 1000);
  refiller_add(&single->refiller, "a", 0);
  env_until(single->env, index_of(single, "a") >= 2);
  server_kill(single->env->server);
  env_until(single->env, refiller_stats(&single->refiller).failed > 0);
  env_until(single->env, single->refiller.lost == 1);
  assert_int_equal(belay_refiller_state(single->refiller.handle), BELAY_REFILLER_WAITING);
  server_restart(single->env->server);
  env_until(single->env, single->refiller.elected == 2);
  assert_int_equal(belay_refiller_state(single->refiller.handle), BELAY_REFILLER_ELECTED);
  env_until(single->env, index_of(single, "a") >= 2);
  assert_int_equal(tokens_of(single, "a"), index_of(single, "a"));
  assert_int_equal(refiller_stats(&single->refiller).elections, 2);
  /* And one bucket that is none keeps no other from being filled. */
  refiller_add(&single->refiller, "wrong", 0);
  server_do(single->env->server, "LPUSH", "belay::bucket::{wrong}", "x", NULL);
  uint64_t failed = refiller_stats(&single->refiller).failed;
  int64_t at = index_of(single, "a");
  env_until(single->env, refiller_stats(&single->refiller).failed > failed + 1 &&
                             index_of(single, "a") > at + 2);
  single_close(single);
}

/* A place that is refused for good is asked for again, and got when it can be. */
SINGLE_TEST(a_place_that_is_refused) {
  static const char key[] = "belay::semaphore::{refill/0//main}";
  server_do(single->env->server, "SET", key, "x", NULL);
  refill_leased(single, 50, 1000);
  env_until(single->env, client_stats(single->env).refused > 0);
  env_run_for(single->env, 20);
  assert_int_equal(single->refiller.elected, 0);
  server_do(single->env->server, "DEL", key, NULL);
  env_until(single->env, single->refiller.elected == 1);
  close_refiller(&single->refiller);
  assert_int_equal(server_keys(single->env->server), 0); /* it was given back */
}

/* ---- closing ---- */

static void close_it(refiller_t *refiller) {
  if (refiller->closing == 0) {
    assert_error(begin_close_refiller(refiller), 0);
    assert_error(begin_close_refiller(refiller), BELAY_ECLOSING);
    assert_error(belay_refiller_add(refiller->handle, belay_string("a"), 0), BELAY_ECLOSING);
    assert_error(belay_refiller_remove(refiller->handle, belay_string("a")), BELAY_ECLOSING);
    assert_int_equal(belay_refiller_state(refiller->handle), BELAY_REFILLER_WAITING);
  }
}

static void close_bucket(refiller_t *refiller) {
  if (refiller->bucket->closing == 0)
    assert_error(begin_close_bucket(refiller->bucket), 0);
}

static void close_client(refiller_t *refiller) {
  (void)begin_client_close(refiller->bucket->env);
}

static void close_all(refiller_t *refiller) {
  (void)begin_belay_close(refiller->bucket->env);
}

static void (*const closers[])(refiller_t *refiller) = {close_it, close_bucket, close_client,
                                                        close_all};
enum { CLOSERS = sizeof closers / sizeof *closers };

/* After the closer has run. */
static void end_single(single_t *single, int how) {
  if (how == 0)
    env_until(single->env, single->refiller.closed == 1);
  if (how == 1)
    env_until(single->env, single->bucket.closed == 1);
  single_close(single);
}

TEST(refiller_closed_in_callbacks) {
  for (int how = 0; how < CLOSERS; how++)
    for (int where = 0; where < 2; where++) {
      single_t *single = single_open(NULL);
      single->refiller.then = where == 0 ? closers[how] : NULL;
      single->refiller.on_round = where == 1 ? closers[how] : NULL;
      refill(single, 20);
      refiller_add(&single->refiller, "a", 0);
      env_until(single->env, single->refiller.elected == 1);
      env_run_for(single->env, 40);
      end_single(single, how);
    }
}

/* With questions on the way, after any number of turns. */
TEST(refiller_closed_at_any_time) {
  for (int how = 0; how < CLOSERS; how++)
    for (int turns = 0; turns < 14; turns += 1 + turns / 4) {
      single_t *single = single_open(NULL);
      refill(single, 10);
      for (int i = 0; i < 300; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        refiller_add(&single->refiller, key, 0);
      }
      for (int i = 0; i < turns; i++)
        uv_run(&single->env->loop, UV_RUN_ONCE);
      closers[how](&single->refiller);
      end_single(single, how);
    }
}

/* It keeps the loop, and closing gives that back, with or without a callback. */
SINGLE_TEST(refiller_keeps_the_loop) {
  refill(single, 1000);
  env_until(single->env, single->refiller.elected == 1);
  env_run_for(single->env, 100);
  assert_true(uv_run(&single->env->loop, UV_RUN_NOWAIT));
  assert_error(belay_refiller_close(single->refiller.handle, NULL), 0);
  single->refiller.closing = 1;
  while (uv_run(&single->env->loop, UV_RUN_ONCE))
    continue;
}
