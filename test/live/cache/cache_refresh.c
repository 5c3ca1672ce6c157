/* Loads before a value expires: keep-fresh keys, and random early refreshes. */
#include <math.h>
#include <stdio.h>

#include "support/fixtures/cache/caches.h"
#include "support/models/scripts.h"

#define KEY "belay::cache::pages::{home}"
#define TTL (160 * slow())
#define LEAD (80 * slow())

/* ---- pins --------------------------------------------------------------------------------------------------- */

static belay_cache_options_t pin_options(hoard_t *hoard) {
  belay_cache_options_t options = cache_options(hoard);
  options.ttl_ms = TTL;
  options.refresh_ms = LEAD;
  return options;
}

static void pin(hoard_t *hoard, const char *key) {
  assert_error(belay_cache_keep_fresh(hoard->cache, belay_string(key)), 0);
}

static void unpin(hoard_t *hoard, const char *key) {
  assert_error(belay_cache_let_expire(hoard->cache, belay_string(key)), 0);
}

static void second_of(hoard_t *hoard, bed_t *bed, const belay_cache_options_t *options) {
  belay_cache_options_t o = *options;
  o.arg = hoard;
  hoard_of(hoard, bed, bed_connect(bed, server_url(bed->server), NULL), &o);
}

/* Without a get the key stays fresh. One of the two processes loads it each time. */
BED_TEST(what_is_pinned_stays_fresh) {
  hoard_t one = {0}, two = {0};
  belay_cache_options_t options = pin_options(&one);
  hoard_new(&one, bed, &options);
  second_of(&two, bed, &options);
  pin(&one, "home");
  pin(&two, "home");
  pin(&two, "home"); /* is pinned already */
  bed_until(bed, one.loaded + two.loaded == 1);
  int64_t began = clock_now();
  bed_until(bed, one.loaded + two.loaded == 4);
  int64_t took = clock_since_ms(began);
  /* three times, each when no more than the lead is left */
  assert_true(took >= 3 * (TTL - LEAD) - 20);
  bed_until(bed, hoard_stats(&one).loading + hoard_stats(&two).loading == 0);
  belay_cache_stats_t a = hoard_stats(&one), b = hoard_stats(&two);
  assert_int_equal(a.gets + b.gets + a.misses + b.misses + a.hits + b.hits, 0);
  assert_int_equal(a.refreshes + b.refreshes, 4);
  assert_int_equal(a.loads + b.loads, 4);
  assert_int_equal(a.fills + b.fills, 4);
  assert_int_equal(a.refused_fills + b.refused_fills, 0);
  assert_int_equal(a.early + b.early, 0);
  fetch_t fetch = {0};
  assert_error(begin_cache_get(&one, &fetch, "home"), 0);
  assert_error(end_of_fetch(&fetch), 0);
  assert_int_equal(fetch.result.from, BELAY_CACHE_FROM_SERVER);
  assert_false(fetch.result.stale);
  fetch_free(&fetch);
}

/* The present value is still fresh and is served during the load. */
BED_TEST(what_is_pinned_is_loaded_ahead_of_time) {
  hoard_t hoard = {0};
  belay_cache_options_t options = cache_options(&hoard);
  options.ttl_ms = 2 * prompt_ms();
  options.refresh_ms = options.ttl_ms - 40; /* so there is half of that left at least */
  hoard_new(&hoard, bed, &options);
  pin(&hoard, "home");
  bed_until(bed, hoard_stats(&hoard).fills == 1);
  hoard.loading = LOADING_BY_HAND;
  bed_until(bed, hoard.held == 1);
  expect_cached(&hoard, "home", "home#1", BELAY_CACHE_FROM_SERVER);
  assert_int_equal(hoard_stats(&hoard).misses, 0);
  assert_error(hand_over(&hoard, "new"), 0);
  bed_until(bed, hoard_stats(&hoard).fills == 2);
  expect_cached(&hoard, "home", "new", BELAY_CACHE_FROM_SERVER);
}

BED_TEST(what_is_not_pinned_any_more) {
  hoard_t hoard = {0};
  belay_cache_options_t options = pin_options(&hoard);
  hoard_new(&hoard, bed, &options);
  pin(&hoard, "home");
  bed_until(bed, hoard_stats(&hoard).fills == 1);
  unpin(&hoard, "home");
  assert_error(belay_cache_let_expire(hoard.cache, belay_string("home")), BELAY_ESTATE);
  bed_run_for(bed, 2 * TTL);
  assert_int_equal(hoard.loaded, 1);
  assert_int_equal(server_keys(bed->server), 0); /* it has expired */
  pin(&hoard, "home");
  bed_until(bed, hoard.loaded == 2);
  unpin(&hoard, "home"); /* while it is being stored */
  bed_until(bed, hoard_stats(&hoard).loading == 0);
}

/* A load by another process counts, too. */
BED_TEST(what_is_fresh_enough_is_not_loaded) {
  hoard_t one = {0}, two = {0};
  belay_cache_options_t options = cache_options(&one);
  options.ttl_ms = 60000;
  hoard_new(&one, bed, &options);
  second_of(&two, bed, &options);
  expect_cached(&one, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  pin(&two, "home");
  bed_until(bed, hoard_stats(&two).bytes_in > 0);
  bed_until(bed, hoard_stats(&two).loading == 0);
  assert_int_equal(two.loaded, 0);
}

/* Its loads fail: it is tried again, and comes back when they do not. */
BED_TEST(a_pinned_key_whose_loads_fail) {
  hoard_t hoard = {0};
  belay_cache_options_t options = pin_options(&hoard);
  options.refresh_ms = 60;
  options.ttl_ms = 100;
  hoard_new(&hoard, bed, &options);
  pin(&hoard, "home");
  bed_until(bed, hoard_stats(&hoard).fills == 1);
  hoard.error = 5;
  bed_until(bed, hoard_stats(&hoard).load_failures >= 4);
  bed_until(bed, server_keys(bed->server) == 0 || hoard_stats(&hoard).load_failures >= 20);
  hoard.error = 0;
  bed_until(bed, hoard_stats(&hoard).fills >= 2);
}

/* No load is tried while a failure is remembered. */
static void rest(int64_t keep_ms, bool loaded_before) {
  bed_t *bed = bed_open(NULL);
  hoard_t hoard = {.error = loaded_before ? 0 : 5};
  belay_cache_options_t options = pin_options(&hoard);
  options.ttl_ms = 100;
  options.refresh_ms = 100;
  options.keep_ms = keep_ms;
  options.error_ms = 60000;
  hoard_new(&hoard, bed, &options);
  pin(&hoard, "home");
  if (loaded_before)
    bed_until(bed, hoard_stats(&hoard).fills == 1);
  hoard.error = 5;
  bed_until(bed, hoard_stats(&hoard).load_failures == 1);
  bed_run_for(bed, 250);
  assert_int_equal(hoard_stats(&hoard).load_failures, 1);
  assert_int_equal(hoard.loaded, loaded_before ? 2 : 1);
  bed_close(bed);
}

TEST(a_pinned_key_rests) {
  rest(60000, true);
  rest(0, false);
}

/* A remembered absence is not asked again. */
BED_TEST(a_pinned_key_that_does_not_exist) {
  hoard_t hoard = {.absent = true};
  belay_cache_options_t options = pin_options(&hoard);
  options.ttl_ms = 60000;
  options.refresh_ms = 60; /* and so it looks soon */
  options.absent_ms = 200 * slow();
  hoard_new(&hoard, bed, &options);
  pin(&hoard, "home");
  bed_until(bed, hoard_stats(&hoard).fills == 1);
  int64_t began = clock_now();
  hoard.absent = false;
  bed_until(bed, hoard_stats(&hoard).fills == 2);
  assert_true(clock_since_ms(began) >= options.absent_ms - 20);
  assert_int_equal(hoard.loaded, 2);
  expect_cached(&hoard, "home", "home#2", BELAY_CACHE_FROM_SERVER);
}

/* By the next look at the latest, or with the next get. */
BED_TEST(a_pinned_key_is_invalidated) {
  hoard_t one = {0}, two = {0};
  belay_cache_options_t options = pin_options(&one);
  hoard_new(&one, bed, &options);
  second_of(&two, bed, &options);
  pin(&one, "home");
  bed_until(bed, hoard_stats(&one).fills == 1);
  expect_invalidate(&two, "home");
  bed_until(bed, hoard_stats(&one).fills == 2);
  expect_cached(&two, "home", "home#2", BELAY_CACHE_FROM_SERVER);
  expect_invalidate(&one, "home");
  expect_cached(&two, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  bed_until(bed, hoard_stats(&one).fills == 3);
}

/* And while it is being loaded. */
BED_TEST(a_pinned_key_is_invalidated_while_it_is_loaded) {
  hoard_t hoard = {.loading = LOADING_BY_HAND};
  belay_cache_options_t options = pin_options(&hoard);
  hoard_new(&hoard, bed, &options);
  pin(&hoard, "home");
  bed_until(bed, hoard.held == 1);
  expect_invalidate(&hoard, "home");
  assert_error(hand_over(&hoard, "old"), 0);
  bed_until(bed, hoard.held == 1);
  assert_int_equal(hoard_stats(&hoard).refused_fills, 1);
  assert_error(hand_over(&hoard, "new"), 0);
  bed_until(bed, hoard_stats(&hoard).fills == 1);
  expect_cached(&hoard, "home", "new", BELAY_CACHE_FROM_SERVER);
  unpin(&hoard, "home");
}

/* uv_run() returns. */
BED_TEST(a_pin_does_not_keep_the_loop) {
  hoard_t hoard = {0};
  belay_cache_options_t options = pin_options(&hoard);
  options.ttl_ms = options.refresh_ms = 60000;
  hoard_new(&hoard, bed, &options);
  pin(&hoard, "home");
  bed_until(bed, hoard_stats(&hoard).fills == 1);
  uv_run(&bed->loop, UV_RUN_DEFAULT);
  assert_int_equal(hoard_stats(&hoard).loading, 0);
}

BED_TEST(many_pins_and_a_close) {
  enum { N = 300 };
  hoard_t hoard = {0};
  char key[16];
  hoard_new(&hoard, bed, NULL);
  for (int i = 0; i < N; i++) {
    snprintf(key, sizeof key, "key%d", i);
    pin(&hoard, key);
  }
  bed_until(bed, hoard.loaded > 0);
  unpin(&hoard, "key7");
  assert_error(begin_close_hoard(&hoard), 0);
  assert_error(belay_cache_keep_fresh(hoard.cache, belay_string("x")), BELAY_ECLOSING);
  assert_error(belay_cache_let_expire(hoard.cache, belay_string("key8")), BELAY_ECLOSING);
  bed_until(bed, hoard.closed == 1);
}

BED_TEST(pins_that_are_refused) {
  static char big[BELAY_CACHE_KEY_MAX + 1];
  hoard_t hoard = {0}, bare = {0};
  hoard_new(&hoard, bed, NULL);
  belay_cache_options_t options = bare_options(&bare);
  hoard_new(&bare, bed, &options);
  assert_error(belay_cache_keep_fresh(NULL, belay_string("home")), BELAY_EINVAL);
  assert_error(belay_cache_keep_fresh(hoard.cache, belay_bytes(NULL, 4)), BELAY_EINVAL);
  assert_error(belay_cache_keep_fresh(hoard.cache, belay_string("")), BELAY_EINVAL);
  assert_error(belay_cache_keep_fresh(hoard.cache, belay_bytes(big, sizeof big)), BELAY_EINVAL);
  assert_error(belay_cache_keep_fresh(bare.cache, belay_string("home")),
               BELAY_EINVAL); /* there is no loader */
  assert_non_null(strstr(belay_detail(bed->belay), "load"));
  assert_error(belay_cache_let_expire(NULL, belay_string("home")), BELAY_EINVAL);
  assert_error(belay_cache_let_expire(hoard.cache, belay_bytes(NULL, 4)), BELAY_EINVAL);
  assert_error(belay_cache_let_expire(hoard.cache, belay_string("")), BELAY_EINVAL);
  assert_error(belay_cache_let_expire(hoard.cache, belay_string("home")), BELAY_ESTATE);
  assert_int_equal(hoard.loaded, 0);
}

/* ---- beta --------------------------------------------------------------------------------------------------- */

/* How long the load took, as it stands in the record: microseconds. */
static double load_us(server_t *server) {
  return (double)server_integer(server, "EVAL",
                                "local s = redis.call('GETRANGE', KEYS[1], 40, 43) "
                                "return s:byte(1) + 256 * (s:byte(2) + 256 * (s:byte(3) + "
                                "256 * s:byte(4)))",
                                "1", KEY, NULL);
}

/* The number of early refreshes in n gets with left_ms until the end of freshness. They fail, so
 * that the value stays. */
static unsigned count_early(hoard_t *hoard, unsigned n, int64_t left_ms) {
  unsigned before = hoard->loaded;
  belay_cache_stats_t was = hoard_stats(hoard);
  for (unsigned i = 0; i < n; i++) {
    if (i % 20 == 0)
      expect_touch(hoard, "home", left_ms, true);
    expect_cached(hoard, "home", "home#1", BELAY_CACHE_FROM_SERVER);
    bed_until(hoard->bed, hoard_stats(hoard).loading == 0);
  }
  belay_cache_stats_t is = hoard_stats(hoard);
  assert_int_equal(is.hits - was.hits, n);
  assert_int_equal(is.early - was.early, hoard->loaded - before);
  assert_int_equal(is.refreshes - was.refreshes, hoard->loaded - before);
  assert_int_equal(is.misses, was.misses);
  return hoard->loaded - before;
}

static void load_slowly(hoard_t *hoard) {
  hoard->loading = LOADING_LATER;
  hoard->delay_ms = 30;
  expect_cached(hoard, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  bed_until(hoard->bed, hoard->timers == 0 && hoard_stats(hoard).loading == 0);
  hoard->loading = LOADING_AT_ONCE;
  hoard->error = 5;
}

/* With the probability e^(-left / (beta * delta)): it grows as the end draws near. */
BED_TEST(early_refreshes) {
  enum { N = 200 };
  static const double left[] = {2.5, 1, 0.2}; /* of beta * delta */
  hoard_t hoard = {0};
  belay_cache_options_t options = cache_options(&hoard);
  options.beta = 1000;
  hoard_new(&hoard, bed, &options);
  load_slowly(&hoard);
  double delta_ms = load_us(bed->server) / 1000;
  assert_true(delta_ms >= 29 && delta_ms < 3000);
  for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
    double p = exp(-left[i]), sigma = sqrt(N * p * (1 - p));
    unsigned n = count_early(&hoard, N, (int64_t)(left[i] * options.beta * delta_ms));
    if (fabs(n - N * p) > 5 * sigma + 2) /* the elapsed time is small beside left_ms */
      fail_msg("with %g left: %u of %d, not %g", left[i], n, N, N * p);
  }
  assert_int_equal(hoard_stats(&hoard).stale_served, 0);
}

BED_TEST(none_without_beta) {
  hoard_t hoard = {0};
  hoard_new(&hoard, bed, NULL);
  load_slowly(&hoard);
  assert_int_equal(count_early(&hoard, 100, 1000), 0);
}

/* A successful refresh is stored; gets during it are served the old value. */
BED_TEST(an_early_refresh_is_stored) {
  hoard_t hoard = {.loading = LOADING_LATER, .delay_ms = 30};
  belay_cache_options_t options = cache_options(&hoard);
  options.beta = 1000;
  hoard_new(&hoard, bed, &options);
  expect_cached(&hoard, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  bed_until(bed, hoard_stats(&hoard).loading == 0);
  expect_touch(&hoard, "home", 1000, true); /* with e^(-1/30) */
  hoard.loading = LOADING_BY_HAND;
  while (hoard.held == 0) {
    expect_cached(&hoard, "home", "home#1", BELAY_CACHE_FROM_SERVER);
    bed_until(bed, hoard.held > 0 || hoard_stats(&hoard).loading == 0);
  }
  for (int i = 0; i < 20; i++)
    expect_cached(&hoard, "home", "home#1", BELAY_CACHE_FROM_SERVER);
  assert_int_equal(hoard_stats(&hoard).early, 1);
  assert_int_equal(hoard.loaded, 2);
  assert_error(hand_over(&hoard, "new"), 0);
  bed_until(bed, hoard_stats(&hoard).fills == 2);
  hoard.loading = LOADING_AT_ONCE;
  expect_cached(&hoard, "home", "new", BELAY_CACHE_FROM_SERVER);
  bed_until(bed, hoard.timers == 0);
}

/* From the table of this process, too, where nothing is asked. */
BED_TEST(early_from_the_table) {
  hoard_t hoard = {.loading = LOADING_LATER, .delay_ms = 30};
  belay_cache_options_t options = cache_options(&hoard);
  options.beta = 1000;
  options.local_bytes = 100000;
  options.ttl_ms = options.local_ttl_ms = 30000;
  hoard_new(&hoard, bed, &options);
  expect_cached(&hoard, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  bed_until(bed, hoard_stats(&hoard).loading == 0);
  hoard.loading = LOADING_BY_HAND;
  for (int i = 0; i < 1000 && hoard_stats(&hoard).loading == 0; i++) /* each with about 1/e */
    expect_cached(&hoard, "home", "home#1", BELAY_CACHE_FROM_LOCAL);
  bed_until(bed, hoard.held == 1);
  assert_int_equal(hoard_stats(&hoard).early, 1);
  assert_error(hand_over(&hoard, "new"), 0);
  bed_until(bed, hoard_stats(&hoard).fills == 2);
  hoard.loading = LOADING_AT_ONCE;
  expect_cached(&hoard, "home", "new", BELAY_CACHE_FROM_LOCAL);
  bed_until(bed, hoard.timers == 0);
}
