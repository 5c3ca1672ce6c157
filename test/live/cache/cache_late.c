/* Gets that wait for another process's load: their time limit, and their result after it. */
#include <stdio.h>

#include "support/fixtures/cache/caches.h"

#define KEY "belay::cache::pages::{home}"

/* Two processes, whose loads the test ends. */
typedef struct pair {
  bed_t *bed;
  hoard_t one, two;
} pair_t;

static belay_cache_options_t pair_options(void) {
  belay_cache_options_t options = cache_options(NULL);
  options.retry_min_ms = 5;
  options.retry_max_ms = 20;
  return options;
}

static pair_t *pair_open(const belay_cache_options_t *options) {
  pair_t *pair = calloc(1, sizeof *pair);
  bed_t *bed = pair->bed = bed_open(NULL);
  pair->one.loading = pair->two.loading = LOADING_BY_HAND;
  belay_cache_options_t o = *options;
  o.arg = &pair->one;
  hoard_new(&pair->one, bed, &o);
  o.arg = &pair->two;
  hoard_of(&pair->two, bed, bed_connect(bed, server_url(bed->server), NULL), &o);
  return pair;
}

static void pair_close(pair_t *pair) {
  bed_close(pair->bed);
  free(pair);
}

/* Defines a test with two processes; the statements set fields of their options `o`. */
#define PAIR_TEST(name, ...)                                                                       \
  static pair_t *open_##name(void) {                                                               \
    belay_cache_options_t o = pair_options();                                                      \
    __VA_ARGS__;                                                                                   \
    return pair_open(&o);                                                                          \
  }                                                                                                \
  TEST_IN(name, pair, open_##name())

/* The first one loads it, until the test ends that. */
static void begin_load(pair_t *pair, fetch_t *fetch) {
  assert_error(begin_cache_get(&pair->one, fetch, "home"), 0);
  bed_until(pair->bed, pair->one.held == 1);
}

/* And the second one waits for it. */
static void begin_wait(pair_t *pair, fetch_t *fetch) {
  uint64_t waits = hoard_stats(&pair->two).waits;
  assert_error(begin_cache_get(&pair->two, fetch, "home"), 0);
  bed_until(pair->bed, hoard_stats(&pair->two).waits == waits + 1);
}

static void end_load(pair_t *pair, fetch_t *fetch, const char *value) {
  assert_error(hand_over(&pair->one, value), 0);
  expect_fetched(fetch, value, BELAY_CACHE_FROM_LOAD);
}

/* Fresh for ttl_ms, then kept. */
static void load_and_grow_old(pair_t *pair, const char *value, int64_t ttl_ms) {
  fetch_t fetch = {0};
  begin_load(pair, &fetch);
  end_load(pair, &fetch, value);
  bed_until(pair->bed, hoard_stats(&pair->one).loading == 0);
  bed_run_for(pair->bed, ttl_ms + 10);
}

/* ---- the end of the wait ---------------------------------------------------------------------------------- */

/* The second one listens, and has taken the look that it takes then: only a message wakes it from now on, since a poll would
 * come after the test has lost patience. */
static void load_and_listen(pair_t *pair, fetch_t *fetch, fetch_t *other) {
  begin_load(pair, fetch);
  int64_t gets = server_calls(pair->bed->server, "get");
  begin_wait(pair, other);
  bed_until(pair->bed, server_calls(pair->bed->server, "get") >= gets + 2);
  bed_run_for(pair->bed, 20 * slow());
}

PAIR_TEST(what_is_stored_wakes, o.retry_min_ms = o.retry_max_ms = o.timeout_ms = 60000) {
  fetch_t fetch = {0}, other = {0}, third = {0};
  load_and_listen(pair, &fetch, &other);
  assert_error(begin_cache_get(&pair->two, &third, "home"), 0);
  bed_until(pair->bed, hoard_stats(&pair->two).joined == 1);
  end_load(pair, &fetch, "v1");
  expect_fetched(&other, "v1", BELAY_CACHE_FROM_SERVER);
  expect_fetched(&third, "v1", BELAY_CACHE_FROM_SERVER);
  belay_cache_stats_t stats = hoard_stats(&pair->two);
  assert_int_equal(stats.gets, 2);
  assert_int_equal(stats.misses, 2);
  assert_int_equal(stats.joined, 1);
  assert_int_equal(stats.waits, 1);
  assert_int_equal(stats.loads + stats.hits + stats.losers + stats.fills, 0);
  assert_int_equal(stats.loading, 0);
}

/* So does that the load has failed: then it is the next one's. */
PAIR_TEST(a_failure_wakes, o.retry_min_ms = o.retry_max_ms = o.timeout_ms = 60000) {
  fetch_t fetch = {0}, other = {0};
  load_and_listen(pair, &fetch, &other);
  assert_error(hand_failure(&pair->one, 3), 0);
  expect_nothing_fetched(&fetch, BELAY_ELOAD);
  bed_until(pair->bed, pair->two.held == 1);
  assert_int_equal(other.ended, 0);
  assert_error(hand_over(&pair->two, "v2"), 0);
  expect_fetched(&other, "v2", BELAY_CACHE_FROM_LOAD);
  bed_until(pair->bed, hoard_stats(&pair->two).fills == 1);
  assert_int_equal(hoard_stats(&pair->two).losers, 0);
}

static void wait_without_messages(pair_t *pair, const char *rule) {
  fetch_t fetch = {0}, other = {0};
  server_do(pair->bed->server, "ACL", "SETUSER", "default", "resetchannels", rule, NULL);
  begin_load(pair, &fetch);
  begin_wait(pair, &other);
  bed_run_for(pair->bed, 50);
  end_load(pair, &fetch, "v1");
  expect_fetched(&other, "v1", BELAY_CACHE_FROM_SERVER);
  assert_int_equal(pair->one.loaded + pair->two.loaded, 1);
  assert_int_equal(hoard_stats(&pair->two).waits, 1);
}

PAIR_TEST(a_waiter_polls_without_a_subscription, (void)o) {
  wait_without_messages(pair, "-subscribe");
}

PAIR_TEST(a_waiter_polls_without_a_publication, (void)o) {
  wait_without_messages(pair, "-publish");
}

/* The one that loads closes, or fails to end its load in time. */
PAIR_TEST(the_next_one_loads, (void)o) {
  fetch_t fetch = {0}, other = {0};
  begin_load(pair, &fetch);
  begin_wait(pair, &other);
  assert_true(belay_cache_load_is_wanted(pair->one.loads[0]));
  assert_error(begin_close_hoard(&pair->one), 0);
  expect_nothing_fetched(&fetch, BELAY_ECANCELED);
  bed_until(pair->bed, pair->one.closed == 1 && pair->two.held == 1);
  assert_false(belay_cache_load_is_wanted(pair->one.loads[0]));
  assert_error(hand_over(&pair->one, "late"), 0); /* only gives memory back */
  assert_error(hand_over(&pair->two, "v2"), 0);
  expect_fetched(&other, "v2", BELAY_CACHE_FROM_LOAD);
  expect_cached(&pair->two, "home", "v2", BELAY_CACHE_FROM_SERVER);
}

/* The other one waits before the time of the load is over. */
PAIR_TEST(a_load_that_takes_too_long, o.load_timeout_ms = 60 + lag()) {
  fetch_t fetch = {0}, other = {0};
  int64_t began = clock_now();
  begin_load(pair, &fetch);
  begin_wait(pair, &other);
  expect_nothing_fetched(&fetch, BELAY_ELOAD);
  assert_true(clock_since_ms(began) >= 60 + lag());
  assert_error(fetch.result.load_error, BELAY_ETIMEDOUT);
  assert_false(belay_cache_load_is_wanted(pair->one.loads[0]));
  bed_until(pair->bed, pair->two.held == 1 || other.ended == 1);
  assert_int_equal(other.ended, 0);
  assert_error(hand_over(&pair->two, "v2"), 0);
  expect_fetched(&other, "v2", BELAY_CACHE_FROM_LOAD);
  bed_until(pair->bed, hoard_stats(&pair->two).fills == 1);
  assert_error(hand_over(&pair->one, "late"), 0);
  expect_cached(&pair->one, "home", "v2", BELAY_CACHE_FROM_SERVER);
  assert_int_equal(hoard_stats(&pair->one).load_failures, 1);
  assert_int_equal(hoard_stats(&pair->one).fills, 0);
}

/* The lease is for less than the load takes. */
PAIR_TEST(a_lease_is_renewed, o.lease_ms = kept_ttl()) {
  fetch_t fetch = {0}, other = {0};
  const int64_t lease = kept_ttl();
  begin_load(pair, &fetch);
  begin_wait(pair, &other);
  assert_between(server_integer(pair->bed->server, "PTTL", KEY "::lease", NULL), 1, lease);
  bed_run_for(pair->bed, lease + lease / 4);
  assert_int_equal(pair->two.loaded, 0);
  end_load(pair, &fetch, "v1");
  expect_fetched(&other, "v1", BELAY_CACHE_FROM_SERVER);
  bed_settle(pair->bed);
  assert_int_equal(server_keys(pair->bed->server), 1); /* it was given back */
}

/* Without a lock each process loads, and the load that began last is stored. */
PAIR_TEST(without_a_lock_nobody_waits_for_others, o.lock = false) {
  fetch_t fetch = {0}, other = {0};
  begin_load(pair, &fetch);
  assert_error(begin_cache_get(&pair->two, &other, "home"), 0);
  bed_until(pair->bed, pair->two.held == 1);
  assert_int_equal(server_integer(pair->bed->server, "EXISTS", KEY "::lease", NULL), 0);
  end_load(pair, &fetch, "first");
  bed_until(pair->bed, hoard_stats(&pair->one).loading == 0);
  assert_int_equal(hoard_stats(&pair->one).refused_fills, 1);
  assert_int_equal(hoard_stats(&pair->one).bytes_out, 0);
  assert_error(hand_over(&pair->two, "second"), 0);
  expect_fetched(&other, "second", BELAY_CACHE_FROM_LOAD);
  bed_until(pair->bed, hoard_stats(&pair->two).fills == 1);
  expect_cached(&pair->one, "home", "second", BELAY_CACHE_FROM_SERVER);
  assert_int_equal(hoard_stats(&pair->two).waits, 0);
}

/* ---- too late ---------------------------------------------------------------------------------------------- */

/* The result of a get that has waited for wait_ms without a kept value, by option and by
 * request. */
static void wait_too_long(belay_cache_late_t option, int64_t wait_ms) {
  fetch_t fetch = {0}, by_option = {0}, stale = {0}, fail = {0};
  belay_cache_options_t options = pair_options();
  options.wait_ms = wait_ms;
  options.late = option;
  pair_t *pair = pair_open(&options);
  begin_load(pair, &fetch);
  int64_t began = clock_now();
  assert_error(begin_cache_get(&pair->two, &by_option, "home"), 0);
  assert_error(begin_get_late(&pair->two, &stale, "home", BELAY_CACHE_LATE_STALE), 0);
  assert_error(begin_get_late(&pair->two, &fail, "home", BELAY_CACHE_LATE_FAIL), 0);
  expect_nothing_fetched(&by_option, BELAY_ETIMEDOUT);
  expect_nothing_fetched(&stale, BELAY_ETIMEDOUT);
  expect_nothing_fetched(&fail, BELAY_ETIMEDOUT);
  assert_true(clock_since_ms(began) >= wait_ms);
  assert_int_equal(by_option.result.from, BELAY_CACHE_FROM_NOWHERE);
  assert_int_equal(pair->two.loaded, 0);
  assert_int_equal(fetch.ended, 0); /* its own process is not late */
  end_load(pair, &fetch, "v1");
  expect_cached(&pair->two, "home", "v1", BELAY_CACHE_FROM_SERVER);
  pair_close(pair);
}

TEST(who_is_late_and_has_nothing) {
  wait_too_long(BELAY_CACHE_LATE_STALE, 60);
  wait_too_long(BELAY_CACHE_LATE_FAIL, 60);
  wait_too_long(BELAY_CACHE_LATE_STALE, 0);
}

PAIR_TEST(who_is_late_and_has_something, o.ttl_ms = 40; o.keep_ms = 60000; o.wait_ms = 60) {
  fetch_t fetch = {0}, stale = {0}, fail = {0};
  load_and_grow_old(pair, "v1", 40);
  begin_load(pair, &fetch);
  int64_t began = clock_now();
  assert_error(begin_cache_get(&pair->two, &stale, "home"), 0);
  assert_error(begin_get_late(&pair->two, &fail, "home", BELAY_CACHE_LATE_FAIL), 0);
  assert_error(end_of_fetch(&stale), 0);
  assert_true(clock_since_ms(began) >= 60);
  assert_int_equal(stale.result.from, BELAY_CACHE_FROM_SERVER);
  assert_int_equal(stale.result.load_error, 0);
  expect_fetched_stale(&stale, "v1", BELAY_ETIMEDOUT);
  expect_nothing_fetched(&fail, BELAY_ETIMEDOUT);
  assert_int_equal(hoard_stats(&pair->two).stale_served, 1);
  assert_int_equal(pair->two.loaded, 0);
  end_load(pair, &fetch, "v2");
}

/* The get is served its own load; the other process's load is stored. */
static void lose(int64_t wait_ms, bool by_option) {
  fetch_t fetch = {0}, late = {0}, too = {0};
  belay_cache_options_t options = pair_options();
  options.wait_ms = wait_ms;
  options.late = by_option ? BELAY_CACHE_LATE_LOAD : BELAY_CACHE_LATE_FAIL;
  pair_t *pair = pair_open(&options);
  begin_load(pair, &fetch);
  int64_t began = clock_now();
  for (int i = 0; i < 2; i++)
    assert_error(by_option
                     ? begin_cache_get(&pair->two, i ? &too : &late, "home")
                     : begin_get_late(&pair->two, i ? &too : &late, "home", BELAY_CACHE_LATE_LOAD),
                 0);
  bed_until(pair->bed, pair->two.held == 1);
  assert_true(clock_since_ms(began) >= wait_ms);
  assert_error(hand_over(&pair->two, "loser"), 0);
  expect_fetched(&late, "loser", BELAY_CACHE_FROM_LOAD);
  expect_fetched(&too, "loser", BELAY_CACHE_FROM_LOAD);
  bed_settle(pair->bed);
  assert_int_equal(server_integer(pair->bed->server, "EXISTS", KEY, NULL), 0);
  belay_cache_stats_t stats = hoard_stats(&pair->two);
  assert_int_equal(stats.losers, 1);
  assert_int_equal(stats.loads, 1);
  assert_int_equal(stats.fills + stats.refused_fills + stats.bytes_out, 0);
  assert_int_equal(stats.refreshes, 0);
  assert_int_equal(stats.loading, 0);
  end_load(pair, &fetch, "winner");
  bed_until(pair->bed, hoard_stats(&pair->one).fills == 1);
  expect_cached(&pair->two, "home", "winner", BELAY_CACHE_FROM_SERVER);
  pair_close(pair);
}

TEST(a_loser_serves_and_does_not_store) {
  lose(50, true);
  lose(50, false);
  lose(0, true);
}

/* The winner has stored it by then. */
PAIR_TEST(a_loser_is_slower, o.wait_ms = 0; o.late = BELAY_CACHE_LATE_LOAD) {
  fetch_t fetch = {0}, late = {0}, next = {0};
  begin_load(pair, &fetch);
  assert_error(begin_cache_get(&pair->two, &late, "home"), 0);
  bed_until(pair->bed, pair->two.held == 1);
  end_load(pair, &fetch, "winner");
  bed_until(pair->bed, hoard_stats(&pair->one).fills == 1);
  expect_cached(&pair->two, "home", "winner", BELAY_CACHE_FROM_SERVER);
  expect_invalidate(&pair->one, "home");
  assert_error(begin_cache_get(&pair->two, &next, "home"),
               0); /* joins; but that load began before */
  bed_until(pair->bed, hoard_stats(&pair->two).joined == 1);
  assert_error(hand_over(&pair->two, "loser"), 0);
  expect_fetched(&late, "loser", BELAY_CACHE_FROM_LOAD);
  bed_until(pair->bed, pair->two.held == 1);
  assert_int_equal(next.ended, 0);
  assert_error(hand_over(&pair->two, "v3"), 0);
  expect_fetched(&next, "v3", BELAY_CACHE_FROM_LOAD);
  bed_until(pair->bed, hoard_stats(&pair->two).fills == 1);
  assert_int_equal(hoard_stats(&pair->two).losers, 1);
}

PAIR_TEST(a_loser_fails, o.wait_ms = 0; o.error_ms = 60000; o.late = BELAY_CACHE_LATE_LOAD) {
  fetch_t fetch = {0}, late = {0};
  begin_load(pair, &fetch);
  assert_error(begin_cache_get(&pair->two, &late, "home"), 0);
  bed_until(pair->bed, pair->two.held == 1);
  assert_error(hand_failure(&pair->two, 9), 0);
  expect_nothing_fetched(&late, BELAY_ELOAD);
  assert_int_equal(late.result.load_error, 9);
  assert_int_equal(hoard_stats(&pair->two).load_failures, 1);
  end_load(pair, &fetch, "winner");
  bed_until(pair->bed, hoard_stats(&pair->one).fills == 1);
  expect_cached(&pair->two, "home", "winner", BELAY_CACHE_FROM_SERVER); /* it is not remembered */
}

/* ---- one of many ------------------------------------------------------------------------------------------- */

/* The time of a request, here and elsewhere; the load goes on. */
PAIR_TEST(a_request_is_over, (void)o) {
  fetch_t fetch = {0}, near = {0}, far = {0}, option = {0};
  begin_load(pair, &fetch);
  near.request.timeout_ms = far.request.timeout_ms = 60;
  int64_t began = clock_now();
  assert_error(begin_cache_get(&pair->one, &near, "home"), 0);
  assert_error(begin_cache_get(&pair->two, &far, "home"), 0);
  expect_nothing_fetched(&near, BELAY_ETIMEDOUT);
  expect_nothing_fetched(&far, BELAY_ETIMEDOUT);
  assert_between(clock_since_ms(began), 60, 3000 * slow());
  assert_int_equal(fetch.ended, 0);
  end_load(pair, &fetch, "v1");
  bed_until(pair->bed, hoard_stats(&pair->two).loading == 0);
  expect_cached(&pair->two, "home", "v1", BELAY_CACHE_FROM_SERVER);

  hoard_t third = {.loading = LOADING_BY_HAND};
  belay_cache_options_t options = cache_options(&third);
  options.timeout_ms = 50 + lag(); /* it loads by then */
  hoard_new(&third, pair->bed, &options);
  assert_error(begin_cache_get(&third, &option, "other"), 0);
  expect_nothing_fetched(&option, BELAY_ETIMEDOUT);
  assert_int_equal(third.held, 1);
  assert_error(hand_over(&third, "v1"), 0); /* for later ones */
  bed_until(pair->bed, hoard_stats(&third).fills == 1);
  expect_cached(&third, "other", "v1", BELAY_CACHE_FROM_SERVER);
}

PAIR_TEST(one_is_canceled, (void)o) {
  fetch_t first = {0}, second = {0}, far = {0};
  begin_load(pair, &first);
  assert_error(begin_cache_get(&pair->one, &second, "home"), 0);
  begin_wait(pair, &far);
  bed_until(pair->bed, hoard_stats(&pair->one).joined == 1);
  assert_error(belay_request_cancel(&first.request), 0);
  assert_error(belay_request_cancel(&far.request), 0);
  expect_nothing_fetched(&first, BELAY_ECANCELED);
  expect_nothing_fetched(&far, BELAY_ECANCELED);
  assert_int_equal(second.ended, 0);
  assert_true(belay_cache_load_is_wanted(pair->one.loads[0]));
  end_load(pair, &second, "v1");
  bed_until(pair->bed, hoard_stats(&pair->one).fills == 1 && hoard_stats(&pair->two).loading == 0);
}

PAIR_TEST(all_are_canceled, (void)o) {
  fetch_t first = {0}, second = {0};
  begin_load(pair, &first);
  assert_error(begin_cache_get(&pair->one, &second, "home"), 0);
  bed_until(pair->bed, hoard_stats(&pair->one).joined == 1);
  assert_error(belay_request_cancel(&first.request), 0);
  assert_error(belay_request_cancel(&second.request), 0);
  expect_nothing_fetched(&first, BELAY_ECANCELED);
  expect_nothing_fetched(&second, BELAY_ECANCELED);
  assert_true(belay_cache_load_is_wanted(pair->one.loads[0]));
  assert_error(begin_cache_get(&pair->one, &first, "home"),
               0); /* joins it, too late to be served... */
  bed_until(pair->bed, hoard_stats(&pair->one).joined == 2);
  assert_error(hand_over(&pair->one, "v1"), 0);
  /* ... but it was stored after this get began */
  expect_fetched(&first, "v1", BELAY_CACHE_FROM_LOAD);
  assert_int_equal(pair->one.loaded, 1);
  bed_until(pair->bed, hoard_stats(&pair->one).loading == 0);
  expect_cached(&pair->two, "home", "v1", BELAY_CACHE_FROM_SERVER);
}

/* A get after an invalidation is not served by a load that began before it. */
PAIR_TEST(an_invalidation_comes_between, (void)o) {
  fetch_t fetch = {0}, after = {0}, far = {0};
  begin_load(pair, &fetch);
  expect_invalidate(&pair->two, "home");
  assert_error(begin_cache_get(&pair->one, &after, "home"), 0);
  begin_wait(pair, &far);
  bed_until(pair->bed, hoard_stats(&pair->one).joined == 1);
  end_load(pair, &fetch, "old");
  bed_until(pair->bed, pair->one.held + pair->two.held == 1);
  assert_int_equal(after.ended + far.ended, 0);
  assert_error(hand_over(pair->one.held ? &pair->one : &pair->two, "new"), 0);
  assert_error(end_of_fetch(&after), 0);
  assert_error(end_of_fetch(&far), 0);
  assert_string_equal(after.data, "new");
  assert_string_equal(far.data, "new");
  fetch_free(&after);
  fetch_free(&far);
  assert_int_equal(hoard_stats(&pair->one).refused_fills, 1);
}
