/* A refiller: which buckets it fills, when, and how it ends. */
#include <stdio.h>

#include "support/fixtures/limit/refillers.h"

#define CAPACITY INT64_C(1000000)

typedef struct alone {
  bed_t *bed;
  pail_t pail;
  hand_t hand;
} alone_t;

static alone_t *alone_open(const belay_client_options_t *client) {
  alone_t *alone = calloc(1, sizeof *alone);
  alone->bed = bed_open(client);
  pail_new(&alone->pail, alone->bed, CAPACITY, false);
  return alone;
}

static void alone_close(alone_t *alone) {
  bed_close(alone->bed);
  free(alone);
}

/* Make the refiller, which is elected since there is no other. */
static void refill_leased(alone_t *alone, uint32_t period_ms, uint32_t lease_ms) {
  belay_refiller_options_t options = refiller_options("me", 1, period_ms);
  options.lease_ms = lease_ms;
  hand_new(&alone->hand, &alone->pail, &options);
}

static void refill(alone_t *alone, uint32_t period_ms) {
  refill_leased(alone, period_ms, 60000);
}

/* Defines a test with a bucket that one refiller can fill. */
#define ALONE_TEST(name) TEST_IN(name, alone, alone_open(NULL))

static int64_t number_at(server_t *server, const char *key, const char *part) {
  char whole[64];
  snprintf(whole, sizeof whole, "belay::bucket::{%s}%s", key, part);
  const char *text = server_string(server, "GET", whole, NULL);
  return text == NULL ? 0 : atoll(text);
}

static int64_t index_of(const alone_t *a, const char *key) {
  return number_at(a->bed->server, key, "::index");
}

static int64_t tokens_of(const alone_t *a, const char *key) {
  return number_at(a->bed->server, key, "");
}

/* ---- the table ------------------------------------------------------------------------------------------- */

ALONE_TEST(the_table_changes_at_any_time) {
  refill(alone, 20);
  hand_add(&alone->hand, "a", 0); /* before it is elected */
  hand_add(&alone->hand, "b", 5);
  bed_until(alone->bed, index_of(alone, "a") >= 2 && index_of(alone, "b") >= 2);
  assert_int_equal(tokens_of(alone, "a"), index_of(alone, "a"));
  assert_int_equal(hand_stats(&alone->hand).keys, 2);
  assert_error(belay_refiller_remove(alone->hand.refiller, belay_string("a")), 0);
  assert_error(belay_refiller_remove(alone->hand.refiller, belay_string("a")),
               0); /* it is not there */
  assert_int_equal(hand_stats(&alone->hand).keys, 1);
  hand_add(&alone->hand, "c", 0);
  bed_settle(alone->bed);
  int64_t left = index_of(alone, "a");
  bed_until(alone->bed, index_of(alone, "c") >= 2);
  assert_int_equal(index_of(alone, "a"), left);
  hand_add(&alone->hand, "c", 1000);
  int64_t at = index_of(alone, "c"), had = tokens_of(alone, "c");
  bed_until(alone->bed, index_of(alone, "c") >= at + 3);
  assert_true(tokens_of(alone, "c") >= had + 2000);
  for (int i = 0; i < 200; i++) { /* while it is asked about, too */
    hand_add(&alone->hand, "d", 0);
    uv_run(&alone->bed->loop, UV_RUN_NOWAIT);
    if (i % 3 == 0)
      assert_error(belay_refiller_remove(alone->hand.refiller, belay_string("d")), 0);
  }
  belay_refiller_stats_t stats = hand_stats(&alone->hand);
  assert_true(stats.filled > 8);
  assert_int_equal(stats.failed + stats.late, 0);
  assert_int_equal(stats.elections, 1);
}

static void add_more(hand_t *hand) {
  char key[16];
  snprintf(key, sizeof key, "%u", hand->rounds);
  hand_add(hand, key, 0);
  if (hand->rounds > 2) {
    snprintf(key, sizeof key, "%u", hand->rounds - 2);
    assert_error(belay_refiller_remove(hand->refiller, belay_string(key)), 0);
  }
}

/* With an empty table too, and once in a period. */
ALONE_TEST(the_table_is_made_before_each_round) {
  alone->hand.on_round = add_more;
  refill(alone, 50);
  bed_until(alone->bed, alone->hand.elected == 1);
  int64_t begun = clock_now();
  bed_until(alone->bed, alone->hand.rounds >= 8);
  assert_true(clock_since_ms(begun) >= 6 * 50);
  assert_int_equal(hand_stats(&alone->hand).keys, 2);
}

/* More keys than questions that are out at once. */
ALONE_TEST(many_keys_have_their_turns) {
  enum { KEYS = 3000 };
  refill(alone, 200 * (uint32_t)slow());
  for (int i = 0; i < KEYS; i++) {
    char key[16];
    snprintf(key, sizeof key, "k%d", i);
    hand_add(&alone->hand, key, 0);
  }
  size_t most = 0;
  while (hand_stats(&alone->hand).filled < KEYS) {
    uv_run(&alone->bed->loop, UV_RUN_ONCE);
    size_t pending = client_stats(alone->bed).pending;
    most = pending > most ? pending : most;
  }
  assert_between((int64_t)most, 200, 260);
  assert_int_equal(server_keys(alone->bed->server), 2 * KEYS + 2);
  assert_int_equal(hand_stats(&alone->hand).late, 0);
  assert_true(server_string(alone->bed->server, "GET", "belay::bucket::{k2999}::index", NULL) !=
              NULL);
  assert_error(begin_close_hand(&alone->hand), 0); /* its buckets end one by one */
  size_t turns = 0, had = KEYS;
  while (alone->hand.closed == 0) {
    turns += hand_stats(&alone->hand).keys < had;
    had = hand_stats(&alone->hand).keys;
    uv_run(&alone->bed->loop, UV_RUN_ONCE);
  }
  assert_true(turns >= 2);
}

/* Where the client takes no more, the others wait, and not for a period: each is asked about once, and soon. */
TEST(what_is_not_taken_is_asked_soon) {
  enum { KEYS = 100, READS = 2 * KEYS };
  belay_client_options_t options = client_options();
  options.max_pending = 8;
  alone_t *alone = alone_open(&options);
  refill(alone, 600000);
  for (int i = 0; i < KEYS; i++) {
    char key[16];
    snprintf(key, sizeof key, "k%d", i);
    hand_add(&alone->hand, key, 0);
  }
  bed_until(alone->bed, server_calls(alone->bed->server, "get") >= READS);
  assert_true(hand_stats(&alone->hand).failed > 0);
  bed_settle(alone->bed);
  assert_int_equal(server_calls(alone->bed->server, "get"), READS);
  alone_close(alone);
}

/* ---- what goes wrong ------------------------------------------------------------------------------------- */

ALONE_TEST(nothing_is_caught_up_on) {
  enum { PERIOD = 25 };
  refill(alone, PERIOD);
  hand_add(&alone->hand, "a", 0);
  bed_until(alone->bed, index_of(alone, "a") >= 2);
  int64_t before = index_of(alone, "a"), begun = clock_now();
  stall_ms(10 * PERIOD);
  bed_run_for(alone->bed, 2 * PERIOD);
  int64_t since = clock_since_ms(begun) - 10 * PERIOD;
  assert_between(index_of(alone, "a") - before, 1, 1 + since / PERIOD);
}

/* Another process has filled: the learned state is used one period later. */
ALONE_TEST(who_comes_late_does_not_fill) {
  enum { PERIOD = 60 };
  refill(alone, PERIOD * (uint32_t)slow());
  hand_add(&alone->hand, "a", 7);
  bed_until(alone->bed, index_of(alone, "a") == 1);
  expect_add(&alone->pail, "a", 1, 1, true, 8, 2);
  bed_until(alone->bed, hand_stats(&alone->hand).late == 1);
  int64_t begun = clock_now();
  assert_int_equal(tokens_of(alone, "a"), 8);
  bed_until(alone->bed, hand_stats(&alone->hand).filled == 2);
  assert_true(clock_since_ms(begun) >= PERIOD * slow() - 30);
  assert_int_equal(tokens_of(alone, "a"), 15);
  expect_delete(&alone->pail, "a", true, 0); /* it begins again */
  bed_until(alone->bed, hand_stats(&alone->hand).late == 2);
  bed_until(alone->bed, index_of(alone, "a") == 1);
}

/* State from a former term is void: meanwhile the bucket may have been deleted and have reached
 * the same index again. */
ALONE_TEST(an_index_that_is_known_from_before) {
  expect_add(&alone->pail, "a", 1, 0, true, 1, 1);
  refill_leased(alone, 500, 1000);
  hand_add(&alone->hand, "a", 0);
  bed_until(alone->bed,
            server_calls(alone->bed->server, "get") >= 4); /* it knows that the index is 1 */
  server_do(alone->bed->server, "FLUSHALL", NULL);
  bed_until(alone->bed, alone->hand.elected == 2);
  expect_add(&alone->pail, "a", 1, 0, true, 1, 1);
  int64_t gets = server_calls(alone->bed->server, "get");
  bed_until(alone->bed, server_calls(alone->bed->server, "get") >= gets + 2); /* it has its turn */
  assert_int_equal(number_at(alone->bed->server, "a", ""), 1);
  bed_settle(alone->bed);
  assert_int_equal(hand_stats(&alone->hand).filled, 0);
}

/* The server forgets all, its place too: it waits for one again, and learns what is. */
TEST(a_server_that_went_away) {
  belay_client_options_t options = client_options();
  options.timeout_ms = 200;
  options.reconnect_max_ms = 40;
  alone_t *alone = alone_open(&options);
  refill_leased(alone, 50, 1000);
  hand_add(&alone->hand, "a", 0);
  bed_until(alone->bed, index_of(alone, "a") >= 2);
  server_kill(alone->bed->server);
  bed_until(alone->bed, hand_stats(&alone->hand).failed > 0);
  bed_until(alone->bed, alone->hand.deposed == 1);
  assert_int_equal(belay_refiller_state(alone->hand.refiller), BELAY_REFILLER_WAITING);
  server_restart(alone->bed->server);
  bed_until(alone->bed, alone->hand.elected == 2);
  assert_int_equal(belay_refiller_state(alone->hand.refiller), BELAY_REFILLER_ELECTED);
  bed_until(alone->bed, index_of(alone, "a") >= 2);
  assert_int_equal(tokens_of(alone, "a"), index_of(alone, "a"));
  assert_int_equal(hand_stats(&alone->hand).elections, 2);
  /* And one bucket that is none keeps no other from being filled. */
  hand_add(&alone->hand, "wrong", 0);
  server_do(alone->bed->server, "LPUSH", "belay::bucket::{wrong}", "x", NULL);
  uint64_t failed = hand_stats(&alone->hand).failed;
  int64_t at = index_of(alone, "a");
  bed_until(alone->bed,
            hand_stats(&alone->hand).failed > failed + 1 && index_of(alone, "a") > at + 2);
  alone_close(alone);
}

/* A place that is refused for good is asked for again, and got when it can be. */
ALONE_TEST(a_place_that_is_refused) {
  static const char key[] = "belay::semaphore::{refill/0//main}";
  server_do(alone->bed->server, "SET", key, "x", NULL);
  refill_leased(alone, 50, 1000);
  bed_until(alone->bed, client_stats(alone->bed).refused > 0);
  bed_run_for(alone->bed, 20);
  assert_int_equal(alone->hand.elected, 0);
  server_do(alone->bed->server, "DEL", key, NULL);
  bed_until(alone->bed, alone->hand.elected == 1);
  close_hand(&alone->hand);
  assert_int_equal(server_keys(alone->bed->server), 0); /* it was given back */
}

/* ---- closing --------------------------------------------------------------------------------------------- */

static void close_it(hand_t *hand) {
  if (hand->closing == 0) {
    assert_error(begin_close_hand(hand), 0);
    assert_error(begin_close_hand(hand), BELAY_ECLOSING);
    assert_error(belay_refiller_add(hand->refiller, belay_string("a"), 0), BELAY_ECLOSING);
    assert_error(belay_refiller_remove(hand->refiller, belay_string("a")), BELAY_ECLOSING);
    crew_t crew;
    assert_error(begin_members(hand, &crew), BELAY_ECLOSING);
    assert_int_equal(belay_refiller_state(hand->refiller), BELAY_REFILLER_WAITING);
  }
}

static void close_pail(hand_t *hand) {
  if (hand->pail->closing == 0)
    assert_error(begin_close_pail(hand->pail), 0);
}

static void close_client(hand_t *hand) {
  (void)begin_client_close(hand->pail->bed);
}

static void close_all(hand_t *hand) {
  (void)begin_belay_close(hand->pail->bed);
}

static void (*const closers[])(hand_t *hand) = {close_it, close_pail, close_client, close_all};
enum { CLOSERS = sizeof closers / sizeof *closers };

/* After the closer has run. */
static void end_alone(alone_t *alone, int how) {
  if (how == 0)
    bed_until(alone->bed, alone->hand.closed == 1);
  if (how == 1)
    bed_until(alone->bed, alone->pail.closed == 1);
  alone_close(alone);
}

TEST(it_is_closed_in_any_callback) {
  for (int how = 0; how < CLOSERS; how++)
    for (int where = 0; where < 2; where++) {
      alone_t *alone = alone_open(NULL);
      alone->hand.then = where == 0 ? closers[how] : NULL;
      alone->hand.on_round = where == 1 ? closers[how] : NULL;
      refill(alone, 20);
      hand_add(&alone->hand, "a", 0);
      bed_until(alone->bed, alone->hand.elected == 1);
      bed_run_for(alone->bed, 40);
      end_alone(alone, how);
    }
}

/* With questions on the way, after any number of turns. */
TEST(it_is_closed_at_any_time) {
  for (int how = 0; how < CLOSERS; how++)
    for (int turns = 0; turns < 14; turns += 1 + turns / 4) {
      alone_t *alone = alone_open(NULL);
      crew_t crew = {.told = 0};
      refill(alone, 10);
      for (int i = 0; i < 300; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        hand_add(&alone->hand, key, 0);
      }
      assert_error(begin_members(&alone->hand, &crew), 0);
      for (int i = 0; i < turns; i++)
        uv_run(&alone->bed->loop, UV_RUN_ONCE);
      closers[how](&alone->hand);
      end_alone(alone, how);
      assert_int_equal(crew.told, 1);
    }
}

/* It keeps the loop, and closing gives that back, with or without a callback. */
ALONE_TEST(it_keeps_the_loop) {
  refill(alone, 1000);
  bed_until(alone->bed, alone->hand.elected == 1);
  bed_run_for(alone->bed, 100);
  assert_true(uv_run(&alone->bed->loop, UV_RUN_NOWAIT));
  assert_error(belay_refiller_close(alone->hand.refiller, NULL), 0);
  alone->hand.closing = 1;
  while (uv_run(&alone->bed->loop, UV_RUN_ONCE))
    continue;
}

/* ---- members --------------------------------------------------------------------------------------------- */

ALONE_TEST(asking_for_members_ends_in_any_way) {
  refill(alone, 1000);
  crew_t crew = {.told = 0};
  bed_until(alone->bed, alone->hand.elected == 1);
  for (int turns = 0; turns < 6; turns++) {
    crew.told = 0;
    assert_error(begin_members(&alone->hand, &crew), 0);
    assert_error(begin_members(&alone->hand, &crew), BELAY_ESTATE);
    for (int i = 0; i < turns && crew.told == 0; i++)
      uv_run(&alone->bed->loop, UV_RUN_NOWAIT);
    if (crew.told == 0)
      assert_error(belay_request_cancel(&crew.request), 0);
    bed_until(alone->bed, crew.told == 1);
    assert_true(crew.status == 0 || crew.status == BELAY_ECANCELED);
  }
  ask_members(&alone->hand, &crew);
  assert_int_equal(crew.n, 1);
  assert_string_equal(crew.member[0].label, "me");
  server_do(alone->bed->server, "FLUSHALL", NULL);
  ask_members(&alone->hand, &crew);
  assert_int_equal(crew.n, 0);
  server_do(alone->bed->server, "SET", "belay::semaphore::{refill/0//main}", "x", NULL);
  crew.told = 0;
  assert_error(begin_members(&alone->hand, &crew), 0);
  bed_until(alone->bed, crew.told == 1);
  assert_error(crew.status, BELAY_EWRONGTYPE);
  server_do(alone->bed->server, "FLUSHALL", NULL);
  crew.request.timeout_ms = 600001;
  assert_error(begin_members(&alone->hand, &crew), BELAY_EINVAL);
  assert_error(belay_refiller_members(alone->hand.refiller, NULL, (belay_refiller_members_cb)1),
               BELAY_EINVAL);
  assert_error(belay_refiller_members(alone->hand.refiller, &crew.request, NULL), BELAY_EINVAL);
  assert_error(belay_refiller_members(NULL, &crew.request, NULL), BELAY_EINVAL);
}
