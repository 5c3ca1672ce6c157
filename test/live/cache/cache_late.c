/* Gets that wait for another process's load: their time limit, and their result after it. */
#include <stdio.h>

#include "support/fixtures/cache/cache.h"

#define KEY "belay::cache::pages::{home}"

/* Two processes, whose loads the test ends. */
typedef struct pair {
  env_t *env;
  cache_t one, two;
} pair_t;

static belay_cache_options_t pair_options(void) {
  belay_cache_options_t options = cache_options(NULL);
  options.retry_min_ms = 5;
  options.retry_max_ms = 20;
  return options;
}

static pair_t *pair_open(const belay_cache_options_t *options) {
  pair_t *pair = calloc(1, sizeof *pair);
  env_t *env = pair->env = env_open(NULL);
  pair->one.loading = pair->two.loading = LOAD_BY_TEST;
  belay_cache_options_t o = *options;
  o.arg = &pair->one;
  cache_open(&pair->one, env, &o);
  o.arg = &pair->two;
  cache_open_on(&pair->two, env, env_connect(env, server_url(env->server), NULL), &o);
  return pair;
}

static void pair_close(pair_t *pair) {
  env_close(pair->env);
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
static void begin_load(pair_t *pair, get_t *get) {
  start_get(&pair->one, get, "home");
  env_until(pair->env, pair->one.held == 1);
}

/* And the second one waits for it. */
static void begin_wait(pair_t *pair, get_t *get) {
  uint64_t waits = cache_stats(&pair->two).waits;
  start_get(&pair->two, get, "home");
  env_until(pair->env, cache_stats(&pair->two).waits == waits + 1);
}

static void end_load(pair_t *pair, get_t *get, const char *value) {
  finish_load(&pair->one, value);
  expect_got_value(get, value, BELAY_CACHE_FROM_LOAD);
}

/* Fresh for ttl_ms, then kept. */
static void load_and_grow_old(pair_t *pair, const char *value, int64_t ttl_ms) {
  get_t get = {0};
  begin_load(pair, &get);
  end_load(pair, &get, value);
  env_until(pair->env, cache_stats(&pair->one).loading == 0);
  env_run_for(pair->env, ttl_ms + 10);
}

/* ---- the end of the wait ---- */

/* The second one listens, and has taken the look that it takes then: only a message wakes it from
 * now on, since a poll would come after the test has lost patience. */
static void load_and_listen(pair_t *pair, get_t *get, get_t *other) {
  begin_load(pair, get);
  int64_t gets = server_calls(pair->env->server, "get");
  begin_wait(pair, other);
  env_until(pair->env, server_calls(pair->env->server, "get") >= gets + 2);
  env_run_for(pair->env, 20 * slow());
}

PAIR_TEST(stored_value_wakes_waiters, o.retry_min_ms = o.retry_max_ms = o.timeout_ms = 60000) {
  get_t get = {0}, other = {0}, third = {0};
  load_and_listen(pair, &get, &other);
  start_get(&pair->two, &third, "home");
  env_until(pair->env, cache_stats(&pair->two).joined == 1);
  end_load(pair, &get, "v1");
  expect_got_value(&other, "v1", BELAY_CACHE_FROM_SERVER);
  expect_got_value(&third, "v1", BELAY_CACHE_FROM_SERVER);
  expect_stats(
      &pair->two,
      "gets 2, misses 2, joined 1, waits 1, loads 0, hits 0, losers 0, fills 0, loading 0");
}

/* So does that the load has failed: then it is the next one's. */
PAIR_TEST(a_failure_wakes, o.retry_min_ms = o.retry_max_ms = o.timeout_ms = 60000) {
  get_t get = {0}, other = {0};
  load_and_listen(pair, &get, &other);
  fail_load(&pair->one, 3);
  expect_got_nothing(&get, BELAY_ELOAD);
  env_until(pair->env, pair->two.held == 1);
  assert_int_equal(other.ended, 0);
  finish_load(&pair->two, "v2");
  expect_got_value(&other, "v2", BELAY_CACHE_FROM_LOAD);
  env_until(pair->env, cache_stats(&pair->two).fills == 1);
  assert_int_equal(cache_stats(&pair->two).losers, 0);
}

static void wait_without_messages(pair_t *pair, const char *rule) {
  get_t get = {0}, other = {0};
  server_do(pair->env->server, "ACL", "SETUSER", "default", "resetchannels", rule, NULL);
  begin_load(pair, &get);
  begin_wait(pair, &other);
  env_run_for(pair->env, 50);
  end_load(pair, &get, "v1");
  expect_got_value(&other, "v1", BELAY_CACHE_FROM_SERVER);
  assert_int_equal(pair->one.loaded + pair->two.loaded, 1);
  assert_int_equal(cache_stats(&pair->two).waits, 1);
}

PAIR_TEST(a_waiter_polls_without_a_subscription, (void)o) {
  wait_without_messages(pair, "-subscribe");
}

PAIR_TEST(a_waiter_polls_without_a_publication, (void)o) {
  wait_without_messages(pair, "-publish");
}

/* The one that loads closes, or fails to end its load in time. */
PAIR_TEST(the_next_one_loads, (void)o) {
  get_t get = {0}, other = {0};
  begin_load(pair, &get);
  begin_wait(pair, &other);
  assert_true(belay_cache_load_is_wanted(pair->one.loads[0]));
  assert_error(begin_close_cache(&pair->one), 0);
  expect_got_nothing(&get, BELAY_ECANCELED);
  env_until(pair->env, pair->one.closed == 1 && pair->two.held == 1);
  assert_false(belay_cache_load_is_wanted(pair->one.loads[0]));
  finish_load(&pair->one, "late"); /* only gives memory back */
  finish_load(&pair->two, "v2");
  expect_got_value(&other, "v2", BELAY_CACHE_FROM_LOAD);
  expect_cached(&pair->two, "home", "v2", BELAY_CACHE_FROM_SERVER);
}

/* The other one waits before the time of the load is over. */
PAIR_TEST(a_load_that_takes_too_long, o.load_timeout_ms = 60 + lag()) {
  get_t get = {0}, other = {0};
  int64_t began = clock_now();
  begin_load(pair, &get);
  begin_wait(pair, &other);
  expect_got_nothing(&get, BELAY_ELOAD);
  assert_true(clock_since_ms(began) >= 60 + lag());
  assert_error(get.result.load_error, BELAY_ETIMEDOUT);
  assert_false(belay_cache_load_is_wanted(pair->one.loads[0]));
  env_until(pair->env, pair->two.held == 1 || other.ended == 1);
  assert_int_equal(other.ended, 0);
  finish_load(&pair->two, "v2");
  expect_got_value(&other, "v2", BELAY_CACHE_FROM_LOAD);
  env_until(pair->env, cache_stats(&pair->two).fills == 1);
  finish_load(&pair->one, "late");
  expect_cached(&pair->one, "home", "v2", BELAY_CACHE_FROM_SERVER);
  expect_stats(&pair->one, "load_failures 1, fills 0");
}

/* The lease is for less than the load takes. */
PAIR_TEST(a_lease_is_renewed, o.lease_ms = kept_ttl()) {
  get_t get = {0}, other = {0};
  const int64_t lease = kept_ttl();
  begin_load(pair, &get);
  begin_wait(pair, &other);
  assert_between(server_integer(pair->env->server, "PTTL", KEY "::lease", NULL), 1, lease);
  env_run_for(pair->env, lease + lease / 4);
  assert_int_equal(pair->two.loaded, 0);
  end_load(pair, &get, "v1");
  expect_got_value(&other, "v1", BELAY_CACHE_FROM_SERVER);
  env_settle(pair->env);
  assert_int_equal(server_keys(pair->env->server), 1); /* it was given back */
}

/* Without a lock each process loads, and the load that began last is stored. */
PAIR_TEST(loads_without_lock, o.lock = false) {
  get_t get = {0}, other = {0};
  begin_load(pair, &get);
  start_get(&pair->two, &other, "home");
  env_until(pair->env, pair->two.held == 1);
  assert_int_equal(server_integer(pair->env->server, "EXISTS", KEY "::lease", NULL), 0);
  end_load(pair, &get, "first");
  env_until(pair->env, cache_stats(&pair->one).loading == 0);
  expect_stats(&pair->one, "refused_fills 1, bytes_out 0");
  finish_load(&pair->two, "second");
  expect_got_value(&other, "second", BELAY_CACHE_FROM_LOAD);
  env_until(pair->env, cache_stats(&pair->two).fills == 1);
  expect_cached(&pair->one, "home", "second", BELAY_CACHE_FROM_SERVER);
  assert_int_equal(cache_stats(&pair->two).waits, 0);
}

/* ---- too late ---- */

/* The result of a get that has waited for wait_ms without a kept value, by option and by
 * request. */
static void wait_too_long(belay_cache_late_t option, int64_t wait_ms) {
  get_t get = {0}, by_option = {0}, stale = {0}, fail = {0};
  belay_cache_options_t options = pair_options();
  options.wait_ms = wait_ms;
  options.late = option;
  pair_t *pair = pair_open(&options);
  begin_load(pair, &get);
  int64_t began = clock_now();
  start_get(&pair->two, &by_option, "home");
  assert_error(begin_get_late(&pair->two, &stale, "home", BELAY_CACHE_LATE_STALE), 0);
  assert_error(begin_get_late(&pair->two, &fail, "home", BELAY_CACHE_LATE_FAIL), 0);
  expect_got_nothing(&by_option, BELAY_ETIMEDOUT);
  expect_got_nothing(&stale, BELAY_ETIMEDOUT);
  expect_got_nothing(&fail, BELAY_ETIMEDOUT);
  assert_true(clock_since_ms(began) >= wait_ms);
  assert_int_equal(by_option.result.from, BELAY_CACHE_FROM_NOWHERE);
  assert_int_equal(pair->two.loaded, 0);
  assert_int_equal(get.ended, 0); /* its own process is not late */
  end_load(pair, &get, "v1");
  expect_cached(&pair->two, "home", "v1", BELAY_CACHE_FROM_SERVER);
  pair_close(pair);
}

TEST(late_get_without_kept_value) {
  wait_too_long(BELAY_CACHE_LATE_STALE, 60);
  wait_too_long(BELAY_CACHE_LATE_FAIL, 60);
  wait_too_long(BELAY_CACHE_LATE_STALE, 0);
}

PAIR_TEST(late_get_with_kept_value, o.ttl_ms = 40; o.keep_ms = 60000; o.wait_ms = 60) {
  get_t get = {0}, stale = {0}, fail = {0};
  load_and_grow_old(pair, "v1", 40);
  begin_load(pair, &get);
  int64_t began = clock_now();
  start_get(&pair->two, &stale, "home");
  assert_error(begin_get_late(&pair->two, &fail, "home", BELAY_CACHE_LATE_FAIL), 0);
  assert_error(end_of_get(&stale), 0);
  assert_true(clock_since_ms(began) >= 60);
  assert_int_equal(stale.result.from, BELAY_CACHE_FROM_SERVER);
  assert_int_equal(stale.result.load_error, 0);
  expect_got_stale(&stale, "v1", BELAY_ETIMEDOUT);
  expect_got_nothing(&fail, BELAY_ETIMEDOUT);
  assert_int_equal(cache_stats(&pair->two).stale_served, 1);
  assert_int_equal(pair->two.loaded, 0);
  end_load(pair, &get, "v2");
}

/* The get is served its own load; the other process's load is stored. */
static void lose(int64_t wait_ms, bool by_option) {
  get_t get = {0}, late = {0}, too = {0};
  belay_cache_options_t options = pair_options();
  options.wait_ms = wait_ms;
  options.late = by_option ? BELAY_CACHE_LATE_LOAD : BELAY_CACHE_LATE_FAIL;
  pair_t *pair = pair_open(&options);
  begin_load(pair, &get);
  int64_t began = clock_now();
  for (int i = 0; i < 2; i++)
    assert_error(by_option
                     ? begin_cache_get(&pair->two, i ? &too : &late, "home")
                     : begin_get_late(&pair->two, i ? &too : &late, "home", BELAY_CACHE_LATE_LOAD),
                 0);
  env_until(pair->env, pair->two.held == 1);
  assert_true(clock_since_ms(began) >= wait_ms);
  finish_load(&pair->two, "loser");
  expect_got_value(&late, "loser", BELAY_CACHE_FROM_LOAD);
  expect_got_value(&too, "loser", BELAY_CACHE_FROM_LOAD);
  env_settle(pair->env);
  assert_int_equal(server_integer(pair->env->server, "EXISTS", KEY, NULL), 0);
  expect_stats(&pair->two,
               "losers 1, loads 1, fills 0, refused_fills 0, bytes_out 0, refreshes 0, loading 0");
  end_load(pair, &get, "winner");
  env_until(pair->env, cache_stats(&pair->one).fills == 1);
  expect_cached(&pair->two, "home", "winner", BELAY_CACHE_FROM_SERVER);
  pair_close(pair);
}

TEST(unstored_load_serves_only) {
  lose(50, true);
  lose(50, false);
  lose(0, true);
}

/* The winner has stored it by then. */
PAIR_TEST(unstored_load_slower_than_stored_one, o.wait_ms = 0; o.late = BELAY_CACHE_LATE_LOAD) {
  get_t get = {0}, late = {0}, next = {0};
  begin_load(pair, &get);
  start_get(&pair->two, &late, "home");
  env_until(pair->env, pair->two.held == 1);
  end_load(pair, &get, "winner");
  env_until(pair->env, cache_stats(&pair->one).fills == 1);
  expect_cached(&pair->two, "home", "winner", BELAY_CACHE_FROM_SERVER);
  expect_invalidate(&pair->one, "home");
  start_get(&pair->two, &next, "home"); /* joins; but that load began before */
  env_until(pair->env, cache_stats(&pair->two).joined == 1);
  finish_load(&pair->two, "loser");
  expect_got_value(&late, "loser", BELAY_CACHE_FROM_LOAD);
  env_until(pair->env, pair->two.held == 1);
  assert_int_equal(next.ended, 0);
  finish_load(&pair->two, "v3");
  expect_got_value(&next, "v3", BELAY_CACHE_FROM_LOAD);
  env_until(pair->env, cache_stats(&pair->two).fills == 1);
  assert_int_equal(cache_stats(&pair->two).losers, 1);
}

PAIR_TEST(unstored_load_fails, o.wait_ms = 0; o.error_ms = 60000; o.late = BELAY_CACHE_LATE_LOAD) {
  get_t get = {0}, late = {0};
  begin_load(pair, &get);
  start_get(&pair->two, &late, "home");
  env_until(pair->env, pair->two.held == 1);
  fail_load(&pair->two, 9);
  expect_got_nothing(&late, BELAY_ELOAD);
  assert_int_equal(late.result.load_error, 9);
  assert_int_equal(cache_stats(&pair->two).load_failures, 1);
  end_load(pair, &get, "winner");
  env_until(pair->env, cache_stats(&pair->one).fills == 1);
  expect_cached(&pair->two, "home", "winner", BELAY_CACHE_FROM_SERVER); /* it is not remembered */
}

/* ---- one of many ---- */

/* The time of a request, here and elsewhere; the load goes on. */
PAIR_TEST(a_request_is_over, (void)o) {
  get_t get = {0}, near = {0}, far = {0}, option = {0};
  begin_load(pair, &get);
  near.request.timeout_ms = far.request.timeout_ms = 60;
  int64_t began = clock_now();
  start_get(&pair->one, &near, "home");
  start_get(&pair->two, &far, "home");
  expect_got_nothing(&near, BELAY_ETIMEDOUT);
  expect_got_nothing(&far, BELAY_ETIMEDOUT);
  assert_between(clock_since_ms(began), 60, 3000 * slow());
  assert_int_equal(get.ended, 0);
  end_load(pair, &get, "v1");
  env_until(pair->env, cache_stats(&pair->two).loading == 0);
  expect_cached(&pair->two, "home", "v1", BELAY_CACHE_FROM_SERVER);

  cache_t third = {.loading = LOAD_BY_TEST};
  belay_cache_options_t options = cache_options(&third);
  options.timeout_ms = 50 + lag(); /* it loads by then */
  cache_open(&third, pair->env, &options);
  start_get(&third, &option, "other");
  expect_got_nothing(&option, BELAY_ETIMEDOUT);
  assert_int_equal(third.held, 1);
  finish_load(&third, "v1"); /* for later ones */
  env_until(pair->env, cache_stats(&third).fills == 1);
  expect_cached(&third, "other", "v1", BELAY_CACHE_FROM_SERVER);
}

PAIR_TEST(one_is_canceled, (void)o) {
  get_t first = {0}, second = {0}, far = {0};
  begin_load(pair, &first);
  start_get(&pair->one, &second, "home");
  begin_wait(pair, &far);
  env_until(pair->env, cache_stats(&pair->one).joined == 1);
  assert_error(belay_request_cancel(&first.request), 0);
  assert_error(belay_request_cancel(&far.request), 0);
  expect_got_nothing(&first, BELAY_ECANCELED);
  expect_got_nothing(&far, BELAY_ECANCELED);
  assert_int_equal(second.ended, 0);
  assert_true(belay_cache_load_is_wanted(pair->one.loads[0]));
  end_load(pair, &second, "v1");
  env_until(pair->env, cache_stats(&pair->one).fills == 1 && cache_stats(&pair->two).loading == 0);
}

PAIR_TEST(all_are_canceled, (void)o) {
  get_t first = {0}, second = {0};
  begin_load(pair, &first);
  start_get(&pair->one, &second, "home");
  env_until(pair->env, cache_stats(&pair->one).joined == 1);
  assert_error(belay_request_cancel(&first.request), 0);
  assert_error(belay_request_cancel(&second.request), 0);
  expect_got_nothing(&first, BELAY_ECANCELED);
  expect_got_nothing(&second, BELAY_ECANCELED);
  assert_true(belay_cache_load_is_wanted(pair->one.loads[0]));
  start_get(&pair->one, &first, "home"); /* joins it, too late to be served... */
  env_until(pair->env, cache_stats(&pair->one).joined == 2);
  finish_load(&pair->one, "v1");
  /* ... but it was stored after this get began */
  expect_got_value(&first, "v1", BELAY_CACHE_FROM_LOAD);
  assert_int_equal(pair->one.loaded, 1);
  env_until(pair->env, cache_stats(&pair->one).loading == 0);
  expect_cached(&pair->two, "home", "v1", BELAY_CACHE_FROM_SERVER);
}

/* A get after an invalidation is not served by a load that began before it. */
PAIR_TEST(an_invalidation_comes_between, (void)o) {
  get_t get = {0}, after = {0}, far = {0};
  begin_load(pair, &get);
  expect_invalidate(&pair->two, "home");
  start_get(&pair->one, &after, "home");
  begin_wait(pair, &far);
  env_until(pair->env, cache_stats(&pair->one).joined == 1);
  end_load(pair, &get, "old");
  env_until(pair->env, pair->one.held + pair->two.held == 1);
  assert_int_equal(after.ended + far.ended, 0);
  finish_load(pair->one.held ? &pair->one : &pair->two, "new");
  assert_error(end_of_get(&after), 0);
  assert_error(end_of_get(&far), 0);
  assert_string_equal(after.data, "new");
  assert_string_equal(far.data, "new");
  get_free(&after);
  get_free(&far);
  assert_int_equal(cache_stats(&pair->one).refused_fills, 1);
}
