/* Gets that wait for another process's load: their time limit, and their result after it. */
#include <stdio.h>

#include "support/fixtures/cache/cache.h"

#define KEY "belay::cache::pages::{home}"

/* Two processes, whose loads the test ends. */
typedef struct caches {
  env_t *env;
  cache_t one, two;
} caches_t;

static belay_cache_options_t caches_options(void) {
  belay_cache_options_t options = cache_options(NULL);
  options.retry_min_ms = 5;
  options.retry_max_ms = 20;
  return options;
}

static caches_t *caches_open(const belay_cache_options_t *options) {
  caches_t *caches = calloc(1, sizeof *caches);
  env_t *env = caches->env = env_open(NULL);
  caches->one.loading = caches->two.loading = LOAD_BY_TEST;
  belay_cache_options_t o = *options;
  o.arg = &caches->one;
  cache_open(&caches->one, env, &o);
  o.arg = &caches->two;
  cache_open_on(&caches->two, env, env_connect(env, server_url(env->server), NULL), &o);
  return caches;
}

static void caches_close(caches_t *caches) {
  env_close(caches->env);
  free(caches);
}

/* Defines a test with two processes; the statements set fields of their options `o`. */
#define CACHES_TEST(name, ...)                                                                     \
  static caches_t *open_##name(void) {                                                             \
    belay_cache_options_t o = caches_options();                                                    \
    __VA_ARGS__;                                                                                   \
    return caches_open(&o);                                                                        \
  }                                                                                                \
  TEST_IN(name, caches, open_##name())

/* The first one loads it, until the test ends that. */
static void begin_load(caches_t *caches, get_t *get) {
  start_get(&caches->one, get, "home");
  env_until(caches->env, caches->one.held == 1);
}

/* And the second one waits for it. */
static void begin_wait(caches_t *caches, get_t *get) {
  uint64_t waits = cache_stats(&caches->two).waits;
  start_get(&caches->two, get, "home");
  env_until(caches->env, cache_stats(&caches->two).waits == waits + 1);
}

static void end_load(caches_t *caches, get_t *get, const char *value) {
  finish_load(&caches->one, value);
  expect_got_value(get, value, BELAY_CACHE_FROM_LOAD);
}

/* Fresh for ttl_ms, then kept. */
static void load_and_grow_old(caches_t *caches, const char *value, int64_t ttl_ms) {
  get_t get = {0};
  begin_load(caches, &get);
  end_load(caches, &get, value);
  env_until(caches->env, cache_stats(&caches->one).loading == 0);
  env_run_for(caches->env, ttl_ms + 10);
}

/* ---- the end of the wait ---- */

/* The second one listens, and has taken the look that it takes then: only a message wakes it from
 * now on, since a poll would come after the test has lost patience. */
static void load_and_listen(caches_t *caches, get_t *get, get_t *other) {
  begin_load(caches, get);
  int64_t gets = server_calls(caches->env->server, "get");
  begin_wait(caches, other);
  env_until(caches->env, server_calls(caches->env->server, "get") >= gets + 2);
  env_run_for(caches->env, 20 * slow());
}

CACHES_TEST(stored_value_wakes_waiters, o.retry_min_ms = o.retry_max_ms = o.timeout_ms = 60000) {
  get_t get = {0}, other = {0}, third = {0};
  load_and_listen(caches, &get, &other);
  start_get(&caches->two, &third, "home");
  env_until(caches->env, cache_stats(&caches->two).joined == 1);
  end_load(caches, &get, "v1");
  expect_got_value(&other, "v1", BELAY_CACHE_FROM_SERVER);
  expect_got_value(&third, "v1", BELAY_CACHE_FROM_SERVER);
  expect_stats(
      &caches->two,
      "gets 2, misses 2, joined 1, waits 1, loads 0, hits 0, losers 0, fills 0, loading 0");
}

/* So does that the load has failed: then it is the next one's. */
CACHES_TEST(a_failure_wakes, o.retry_min_ms = o.retry_max_ms = o.timeout_ms = 60000) {
  get_t get = {0}, other = {0};
  load_and_listen(caches, &get, &other);
  fail_load(&caches->one, 3);
  expect_got_nothing(&get, BELAY_ELOAD);
  env_until(caches->env, caches->two.held == 1);
  assert_int_equal(other.ended, 0);
  finish_load(&caches->two, "v2");
  expect_got_value(&other, "v2", BELAY_CACHE_FROM_LOAD);
  env_until(caches->env, cache_stats(&caches->two).fills == 1);
  assert_int_equal(cache_stats(&caches->two).losers, 0);
}

static void wait_without_messages(caches_t *caches, const char *rule) {
  get_t get = {0}, other = {0};
  server_do(caches->env->server, "ACL", "SETUSER", "default", "resetchannels", rule, NULL);
  begin_load(caches, &get);
  begin_wait(caches, &other);
  env_run_for(caches->env, 50);
  end_load(caches, &get, "v1");
  expect_got_value(&other, "v1", BELAY_CACHE_FROM_SERVER);
  assert_int_equal(caches->one.loaded + caches->two.loaded, 1);
  assert_int_equal(cache_stats(&caches->two).waits, 1);
}

CACHES_TEST(a_waiter_polls_without_a_subscription, (void)o) {
  wait_without_messages(caches, "-subscribe");
}

CACHES_TEST(a_waiter_polls_without_a_publication, (void)o) {
  wait_without_messages(caches, "-publish");
}

/* The one that loads closes, or fails to end its load in time. */
CACHES_TEST(the_next_one_loads, (void)o) {
  get_t get = {0}, other = {0};
  begin_load(caches, &get);
  begin_wait(caches, &other);
  assert_true(belay_cache_load_is_wanted(caches->one.loads[0]));
  assert_error(begin_close_cache(&caches->one), 0);
  expect_got_nothing(&get, BELAY_ECANCELED);
  env_until(caches->env, caches->one.closed == 1 && caches->two.held == 1);
  assert_false(belay_cache_load_is_wanted(caches->one.loads[0]));
  finish_load(&caches->one, "late"); /* only gives memory back */
  finish_load(&caches->two, "v2");
  expect_got_value(&other, "v2", BELAY_CACHE_FROM_LOAD);
  expect_cached(&caches->two, "home", "v2", BELAY_CACHE_FROM_SERVER);
}

/* The other one waits before the time of the load is over. */
CACHES_TEST(a_load_that_takes_too_long, o.load_timeout_ms = 60 + lag()) {
  get_t get = {0}, other = {0};
  int64_t began = clock_now();
  begin_load(caches, &get);
  begin_wait(caches, &other);
  expect_got_nothing(&get, BELAY_ELOAD);
  assert_true(clock_since_ms(began) >= 60 + lag());
  assert_error(get.result.load_error, BELAY_ETIMEDOUT);
  assert_false(belay_cache_load_is_wanted(caches->one.loads[0]));
  env_until(caches->env, caches->two.held == 1 || other.ended == 1);
  assert_int_equal(other.ended, 0);
  finish_load(&caches->two, "v2");
  expect_got_value(&other, "v2", BELAY_CACHE_FROM_LOAD);
  env_until(caches->env, cache_stats(&caches->two).fills == 1);
  finish_load(&caches->one, "late");
  expect_cached(&caches->one, "home", "v2", BELAY_CACHE_FROM_SERVER);
  expect_stats(&caches->one, "load_failures 1, fills 0");
}

/* The lease is for less than the load takes. */
CACHES_TEST(a_lease_is_renewed, o.lease_ms = kept_ttl()) {
  get_t get = {0}, other = {0};
  const int64_t lease = kept_ttl();
  begin_load(caches, &get);
  begin_wait(caches, &other);
  assert_between(server_integer(caches->env->server, "PTTL", KEY "::lease", NULL), 1, lease);
  env_run_for(caches->env, lease + lease / 4);
  assert_int_equal(caches->two.loaded, 0);
  end_load(caches, &get, "v1");
  expect_got_value(&other, "v1", BELAY_CACHE_FROM_SERVER);
  env_settle(caches->env);
  assert_int_equal(server_keys(caches->env->server), 1); /* it was given back */
}

/* Without a lock each process loads, and the load that began last is stored. */
CACHES_TEST(loads_without_lock, o.lock = false) {
  get_t get = {0}, other = {0};
  begin_load(caches, &get);
  start_get(&caches->two, &other, "home");
  env_until(caches->env, caches->two.held == 1);
  assert_int_equal(server_integer(caches->env->server, "EXISTS", KEY "::lease", NULL), 0);
  end_load(caches, &get, "first");
  env_until(caches->env, cache_stats(&caches->one).loading == 0);
  expect_stats(&caches->one, "refused_fills 1, bytes_out 0");
  finish_load(&caches->two, "second");
  expect_got_value(&other, "second", BELAY_CACHE_FROM_LOAD);
  env_until(caches->env, cache_stats(&caches->two).fills == 1);
  expect_cached(&caches->one, "home", "second", BELAY_CACHE_FROM_SERVER);
  assert_int_equal(cache_stats(&caches->two).waits, 0);
}

/* ---- too late ---- */

/* The result of a get that has waited for wait_ms without a kept value, by option and by
 * request. */
static void wait_too_long(belay_cache_late_t option, int64_t wait_ms) {
  get_t get = {0}, by_option = {0}, stale = {0}, fail = {0};
  belay_cache_options_t options = caches_options();
  options.wait_ms = wait_ms;
  options.late = option;
  caches_t *caches = caches_open(&options);
  begin_load(caches, &get);
  int64_t began = clock_now();
  start_get(&caches->two, &by_option, "home");
  assert_error(begin_get_late(&caches->two, &stale, "home", BELAY_CACHE_LATE_STALE), 0);
  assert_error(begin_get_late(&caches->two, &fail, "home", BELAY_CACHE_LATE_FAIL), 0);
  expect_got_nothing(&by_option, BELAY_ETIMEDOUT);
  expect_got_nothing(&stale, BELAY_ETIMEDOUT);
  expect_got_nothing(&fail, BELAY_ETIMEDOUT);
  assert_true(clock_since_ms(began) >= wait_ms);
  assert_int_equal(by_option.result.from, BELAY_CACHE_FROM_NOWHERE);
  assert_int_equal(caches->two.loaded, 0);
  assert_int_equal(get.ended, 0); /* its own process is not late */
  end_load(caches, &get, "v1");
  expect_cached(&caches->two, "home", "v1", BELAY_CACHE_FROM_SERVER);
  caches_close(caches);
}

TEST(late_get_without_kept_value) {
  wait_too_long(BELAY_CACHE_LATE_STALE, 60);
  wait_too_long(BELAY_CACHE_LATE_FAIL, 60);
  wait_too_long(BELAY_CACHE_LATE_STALE, 0);
}

CACHES_TEST(late_get_with_kept_value, o.ttl_ms = 40; o.keep_ms = 60000; o.wait_ms = 60) {
  get_t get = {0}, stale = {0}, fail = {0};
  load_and_grow_old(caches, "v1", 40);
  begin_load(caches, &get);
  int64_t began = clock_now();
  start_get(&caches->two, &stale, "home");
  assert_error(begin_get_late(&caches->two, &fail, "home", BELAY_CACHE_LATE_FAIL), 0);
  assert_error(end_of_get(&stale), 0);
  assert_true(clock_since_ms(began) >= 60);
  assert_int_equal(stale.result.from, BELAY_CACHE_FROM_SERVER);
  assert_int_equal(stale.result.load_error, 0);
  expect_got_stale(&stale, "v1", BELAY_ETIMEDOUT);
  expect_got_nothing(&fail, BELAY_ETIMEDOUT);
  assert_int_equal(cache_stats(&caches->two).stale_served, 1);
  assert_int_equal(caches->two.loaded, 0);
  end_load(caches, &get, "v2");
}

/* The get is served its own load; the other process's load is stored. */
static void lose(int64_t wait_ms, bool by_option) {
  get_t get = {0}, late = {0}, too = {0};
  belay_cache_options_t options = caches_options();
  options.wait_ms = wait_ms;
  options.late = by_option ? BELAY_CACHE_LATE_LOAD : BELAY_CACHE_LATE_FAIL;
  caches_t *caches = caches_open(&options);
  begin_load(caches, &get);
  int64_t began = clock_now();
  for (int i = 0; i < 2; i++)
    assert_error(
        by_option ? begin_cache_get(&caches->two, i ? &too : &late, "home")
                  : begin_get_late(&caches->two, i ? &too : &late, "home", BELAY_CACHE_LATE_LOAD),
        0);
  env_until(caches->env, caches->two.held == 1);
  assert_true(clock_since_ms(began) >= wait_ms);
  finish_load(&caches->two, "loser");
  expect_got_value(&late, "loser", BELAY_CACHE_FROM_LOAD);
  expect_got_value(&too, "loser", BELAY_CACHE_FROM_LOAD);
  env_settle(caches->env);
  assert_int_equal(server_integer(caches->env->server, "EXISTS", KEY, NULL), 0);
  expect_stats(&caches->two,
               "losers 1, loads 1, fills 0, refused_fills 0, bytes_out 0, refreshes 0, loading 0");
  end_load(caches, &get, "winner");
  env_until(caches->env, cache_stats(&caches->one).fills == 1);
  expect_cached(&caches->two, "home", "winner", BELAY_CACHE_FROM_SERVER);
  caches_close(caches);
}

TEST(unstored_load_serves_only) {
  lose(50, true);
  lose(50, false);
  lose(0, true);
}

/* The winner has stored it by then. */
CACHES_TEST(unstored_load_slower_than_stored_one, o.wait_ms = 0; o.late = BELAY_CACHE_LATE_LOAD) {
  get_t get = {0}, late = {0}, next = {0};
  begin_load(caches, &get);
  start_get(&caches->two, &late, "home");
  env_until(caches->env, caches->two.held == 1);
  end_load(caches, &get, "winner");
  env_until(caches->env, cache_stats(&caches->one).fills == 1);
  expect_cached(&caches->two, "home", "winner", BELAY_CACHE_FROM_SERVER);
  expect_invalidate(&caches->one, "home");
  start_get(&caches->two, &next, "home"); /* joins; but that load began before */
  env_until(caches->env, cache_stats(&caches->two).joined == 1);
  finish_load(&caches->two, "loser");
  expect_got_value(&late, "loser", BELAY_CACHE_FROM_LOAD);
  env_until(caches->env, caches->two.held == 1);
  assert_int_equal(next.ended, 0);
  finish_load(&caches->two, "v3");
  expect_got_value(&next, "v3", BELAY_CACHE_FROM_LOAD);
  env_until(caches->env, cache_stats(&caches->two).fills == 1);
  assert_int_equal(cache_stats(&caches->two).losers, 1);
}

CACHES_TEST(unstored_load_fails, o.wait_ms = 0; o.error_ms = 60000;
            o.late = BELAY_CACHE_LATE_LOAD) {
  get_t get = {0}, late = {0};
  begin_load(caches, &get);
  start_get(&caches->two, &late, "home");
  env_until(caches->env, caches->two.held == 1);
  fail_load(&caches->two, 9);
  expect_got_nothing(&late, BELAY_ELOAD);
  assert_int_equal(late.result.load_error, 9);
  assert_int_equal(cache_stats(&caches->two).load_failures, 1);
  end_load(caches, &get, "winner");
  env_until(caches->env, cache_stats(&caches->one).fills == 1);
  expect_cached(&caches->two, "home", "winner", BELAY_CACHE_FROM_SERVER); /* it is not remembered */
}

/* ---- one of many ---- */

/* The time of a request, here and elsewhere; the load goes on. */
CACHES_TEST(a_request_is_over, (void)o) {
  get_t get = {0}, near = {0}, far = {0}, option = {0};
  begin_load(caches, &get);
  near.request.timeout_ms = far.request.timeout_ms = 60;
  int64_t began = clock_now();
  start_get(&caches->one, &near, "home");
  start_get(&caches->two, &far, "home");
  expect_got_nothing(&near, BELAY_ETIMEDOUT);
  expect_got_nothing(&far, BELAY_ETIMEDOUT);
  assert_between(clock_since_ms(began), 60, 3000 * slow());
  assert_int_equal(get.ended, 0);
  end_load(caches, &get, "v1");
  env_until(caches->env, cache_stats(&caches->two).loading == 0);
  expect_cached(&caches->two, "home", "v1", BELAY_CACHE_FROM_SERVER);

  cache_t third = {.loading = LOAD_BY_TEST};
  belay_cache_options_t options = cache_options(&third);
  options.timeout_ms = 50 + lag(); /* it loads by then */
  cache_open(&third, caches->env, &options);
  start_get(&third, &option, "other");
  expect_got_nothing(&option, BELAY_ETIMEDOUT);
  assert_int_equal(third.held, 1);
  finish_load(&third, "v1"); /* for later ones */
  env_until(caches->env, cache_stats(&third).fills == 1);
  expect_cached(&third, "other", "v1", BELAY_CACHE_FROM_SERVER);
}

CACHES_TEST(one_is_canceled, (void)o) {
  get_t first = {0}, second = {0}, far = {0};
  begin_load(caches, &first);
  start_get(&caches->one, &second, "home");
  begin_wait(caches, &far);
  env_until(caches->env, cache_stats(&caches->one).joined == 1);
  assert_error(belay_request_cancel(&first.request), 0);
  assert_error(belay_request_cancel(&far.request), 0);
  expect_got_nothing(&first, BELAY_ECANCELED);
  expect_got_nothing(&far, BELAY_ECANCELED);
  assert_int_equal(second.ended, 0);
  assert_true(belay_cache_load_is_wanted(caches->one.loads[0]));
  end_load(caches, &second, "v1");
  env_until(caches->env,
            cache_stats(&caches->one).fills == 1 && cache_stats(&caches->two).loading == 0);
}

CACHES_TEST(all_are_canceled, (void)o) {
  get_t first = {0}, second = {0};
  begin_load(caches, &first);
  start_get(&caches->one, &second, "home");
  env_until(caches->env, cache_stats(&caches->one).joined == 1);
  assert_error(belay_request_cancel(&first.request), 0);
  assert_error(belay_request_cancel(&second.request), 0);
  expect_got_nothing(&first, BELAY_ECANCELED);
  expect_got_nothing(&second, BELAY_ECANCELED);
  assert_true(belay_cache_load_is_wanted(caches->one.loads[0]));
  start_get(&caches->one, &first, "home"); /* joins it, too late to be served... */
  env_until(caches->env, cache_stats(&caches->one).joined == 2);
  finish_load(&caches->one, "v1");
  /* ... but it was stored after this get began */
  expect_got_value(&first, "v1", BELAY_CACHE_FROM_LOAD);
  assert_int_equal(caches->one.loaded, 1);
  env_until(caches->env, cache_stats(&caches->one).loading == 0);
  expect_cached(&caches->two, "home", "v1", BELAY_CACHE_FROM_SERVER);
}

/* A get after an invalidation is not served by a load that began before it. */
CACHES_TEST(an_invalidation_comes_between, (void)o) {
  get_t get = {0}, after = {0}, far = {0};
  begin_load(caches, &get);
  expect_invalidate(&caches->two, "home");
  start_get(&caches->one, &after, "home");
  begin_wait(caches, &far);
  env_until(caches->env, cache_stats(&caches->one).joined == 1);
  end_load(caches, &get, "old");
  env_until(caches->env, caches->one.held + caches->two.held == 1);
  assert_int_equal(after.ended + far.ended, 0);
  finish_load(caches->one.held ? &caches->one : &caches->two, "new");
  assert_error(end_of_get(&after), 0);
  assert_error(end_of_get(&far), 0);
  assert_string_equal(after.data, "new");
  assert_string_equal(far.data, "new");
  get_free(&after);
  get_free(&far);
  assert_int_equal(cache_stats(&caches->one).refused_fills, 1);
}
