/* Values that are not fresh: stale, kept, and resting after a failed load. */
#include <stdio.h>

#include "support/fixtures/cache/caches.h"
#include "support/models/scripts.h"

#define KEY "belay::cache::pages::{home}"
#define TTL INT64_C(40)

/* Two processes, whose loads the test ends. The first has loaded "v1", which is not fresh any more. */
typedef struct pair {
  bed_t *bed;
  hoard_t one, two;
} pair_t;

static void expect_loads(hoard_t *hoard, unsigned n) {
  bed_until(hoard->bed, hoard->held == n);
}

/* Values are fresh for TTL, then stale for stale_ms and kept for keep_ms. */
static void pair_open(pair_t *pair, int64_t stale_ms, int64_t keep_ms, int64_t error_ms) {
  *pair = (pair_t){.bed = bed_open(NULL)};
  pair->one.loading = pair->two.loading = LOADING_BY_HAND;
  belay_cache_options_t options = cache_options(&pair->one);
  options.ttl_ms = TTL;
  options.stale_ms = stale_ms;
  options.keep_ms = keep_ms;
  options.error_ms = error_ms;
  hoard_new(&pair->one, pair->bed, &options);
  options.arg = &pair->two;
  hoard_of(&pair->two, pair->bed, bed_connect(pair->bed, server_url(pair->bed->server), NULL),
           &options);
  fetch_t fetch = {0};
  assert_error(begin_cache_get(&pair->one, &fetch, "home"), 0);
  expect_loads(&pair->one, 1);
  assert_error(hand_over(&pair->one, "v1"), 0);
  expect_fetched(&fetch, "v1", BELAY_CACHE_FROM_LOAD);
  bed_until(pair->bed, hoard_stats(&pair->one).fills == 1 && hoard_stats(&pair->one).loading == 0);
  bed_run_for(pair->bed, TTL + 10);
}

/* One refreshes, and is at it until the test says so: so whoever had waited for it would never be served. */
TEST(nobody_waits_for_a_refresh) {
  enum { N = 200 };
  pair_t pair;
  fetch_t *fetches = calloc(N, sizeof *fetches);
  pair_open(&pair, 60000, 0, 0);
  for (int i = 0; i < N; i++)
    assert_error(begin_cache_get(i % 2 ? &pair.two : &pair.one, &fetches[i], "home"), 0);
  for (int i = 0; i < N; i++) {
    assert_error(end_of_fetch(&fetches[i]), 0);
    assert_true(fetches[i].result.age_ms >= TTL);
    assert_int_equal(fetches[i].result.from, BELAY_CACHE_FROM_SERVER);
    assert_int_equal(fetches[i].result.load_error, 0);
    expect_fetched_stale(&fetches[i], "v1", 0);
  }
  bed_until(pair.bed, pair.one.held + pair.two.held == 1);
  for (int i = 0; i < 20; i++)
    expect_stale(i % 2 ? &pair.two : &pair.one, "home", "v1", 0);
  bed_settle(pair.bed);
  assert_int_equal(pair.one.held + pair.two.held, 1);
  belay_cache_stats_t one = hoard_stats(&pair.one), two = hoard_stats(&pair.two);
  assert_int_equal(one.stale_served + two.stale_served, N + 20);
  assert_int_equal(one.refreshes + two.refreshes, 1);
  assert_int_equal(one.early + two.early, 0);
  assert_int_equal(one.misses + two.misses, 1); /* the first */
  assert_int_equal(one.waits + two.waits, 0);
  assert_int_equal(one.joined + two.joined, 0);
  assert_int_equal(one.loading + two.loading, 1);
  hoard_t *winner = pair.one.held ? &pair.one : &pair.two;
  assert_error(hand_over(winner, "v2"), 0);
  bed_until(pair.bed, hoard_stats(winner).loading == 0);
  assert_int_equal(hoard_stats(&pair.one).fills + hoard_stats(&pair.two).fills, 2);
  assert_int_equal(pair.one.loaded + pair.two.loaded, 2);
  free(fetches);
  bed_close(pair.bed);
}

/* It goes on being served; without error_ms the next one tries again. */
TEST(a_refresh_that_fails) {
  pair_t pair;
  pair_open(&pair, 60000, 0, 0);
  expect_stale(&pair.one, "home", "v1", 0);
  expect_loads(&pair.one, 1);
  assert_error(hand_failure(&pair.one, 7), 0);
  bed_until(pair.bed, hoard_stats(&pair.one).loading == 0);
  expect_stale(&pair.one, "home", "v1", 0);
  expect_loads(&pair.one, 1);
  assert_error(hand_absent(&pair.one), 0); /* with absent_ms 0 the old value is deleted */
  bed_until(pair.bed, hoard_stats(&pair.one).loading == 0);
  bed_settle(pair.bed);
  assert_int_equal(server_keys(pair.bed->server), 0);
  belay_cache_stats_t stats = hoard_stats(&pair.one);
  assert_int_equal(stats.load_failures, 1);
  assert_int_equal(stats.refreshes, 2);
  assert_int_equal(stats.fills, 1);
  assert_int_equal(stats.refused_fills, 0);
  bed_close(pair.bed);
}

TEST(what_is_kept_is_served_if_the_load_fails) {
  pair_t pair;
  fetch_t fetch = {0}, other = {0};
  pair_open(&pair, 0, 60000, 0);
  int64_t pttl = server_integer(pair.bed->server, "PTTL", KEY, NULL);
  assert_between(pttl, 30000, 60000 + TTL);
  assert_error(begin_cache_get(&pair.one, &fetch, "home"), 0);
  assert_error(begin_cache_get(&pair.one, &other, "home"), 0);
  expect_loads(&pair.one, 1);
  assert_int_equal(fetch.ended + other.ended, 0);
  assert_error(hand_failure(&pair.one, -77), 0);
  assert_error(end_of_fetch(&fetch), 0);
  assert_int_equal(fetch.result.load_error, -77);
  assert_int_equal(fetch.result.from, BELAY_CACHE_FROM_SERVER);
  expect_fetched_stale(&fetch, "v1", BELAY_ELOAD);
  expect_fetched_stale(&other, "v1", BELAY_ELOAD);
  belay_cache_stats_t stats = hoard_stats(&pair.one);
  assert_int_equal(stats.stale_served, 2);
  assert_int_equal(stats.misses, 3);
  assert_int_equal(stats.joined, 1);
  assert_int_equal(stats.load_failures, 1);
  assert_int_equal(stats.refreshes, 0);
  assert_error(begin_cache_get(&pair.two, &fetch, "home"), 0); /* and it is tried again */
  expect_loads(&pair.two, 1);
  assert_error(hand_over(&pair.two, "v2"), 0);
  expect_fetched(&fetch, "v2", BELAY_CACHE_FROM_LOAD);
  bed_close(pair.bed);
}

/* It was still there when the load began. */
TEST(what_is_kept_no_longer) {
  pair_t pair;
  fetch_t fetch = {0};
  pair_open(&pair, 0, 150, 0);
  assert_error(begin_cache_get(&pair.one, &fetch, "home"), 0);
  expect_loads(&pair.one, 1);
  bed_run_for(pair.bed, 200);
  assert_error(hand_failure(&pair.one, 5), 0);
  expect_nothing_fetched(&fetch, BELAY_ELOAD);
  assert_int_equal(fetch.result.load_error, 5);
  assert_int_equal(fetch.result.from, BELAY_CACHE_FROM_NOWHERE);
  bed_close(pair.bed);
}

TEST(what_is_kept_is_served_when_time_is_over) {
  static const belay_cache_late_t policies[] = {BELAY_CACHE_LATE_STALE, BELAY_CACHE_LATE_LOAD,
                                                BELAY_CACHE_LATE_FAIL};
  pair_t pair;
  fetch_t fetches[3] = {0};
  pair_open(&pair, 0, 60000, 0);
  for (int i = 0; i < 3; i++) {
    fetches[i].request.timeout_ms = 500 * slow(); /* the first answer comes long before */
    assert_error(begin_get_late(&pair.one, &fetches[i], "home", policies[i]), 0);
  }
  expect_fetched_stale(&fetches[0], "v1", BELAY_ETIMEDOUT);
  expect_fetched_stale(&fetches[1], "v1", BELAY_ETIMEDOUT);
  expect_nothing_fetched(&fetches[2], BELAY_ETIMEDOUT);
  expect_loads(&pair.one, 1);
  assert_error(hand_over(&pair.one, "v2"), 0); /* it was not in vain */
  bed_until(pair.bed, hoard_stats(&pair.one).fills == 2);
  assert_int_equal(hoard_stats(&pair.one).stale_served, 2);
  assert_int_equal(hoard_stats(&pair.one).loads, 2);
  bed_close(pair.bed);
}

/* ---- error_ms, by the server's clock, as belay knows it ------------------------------------------------------------------------------------------- */

#define MARGIN_MS 30

/* Repeats the get until it was loaded. */
static void get_until_it_loads(pair_t *pair, hoard_t *hoard, fetch_t *fetch, const char *key) {
  while (pair->one.held + pair->two.held == 0) {
    if (fetch->ended == fetch->begun)
      assert_error(begin_cache_get(hoard, fetch, key), 0);
    bed_until(pair->bed, fetch->ended == fetch->begun || pair->one.held + pair->two.held > 0);
  }
}

TEST(that_a_load_failed_is_told) {
  int64_t rest = 300 * slow();
  pair_t pair;
  fetch_t fetch = {0};
  pair_open(&pair, 0, 0, rest);
  assert_error(begin_cache_get(&pair.one, &fetch, "broken"), 0);
  expect_loads(&pair.one, 1);
  int64_t since = server_now_ms(pair.bed->server);
  assert_error(hand_failure(&pair.one, 1234567), 0);
  expect_nothing_fetched(&fetch, BELAY_ELOAD);
  assert_int_equal(fetch.result.load_error, 1234567);
  belay_cache_stats_t before = hoard_stats(&pair.two);
  assert_error(begin_cache_get(&pair.two, &fetch, "broken"), 0); /* another process */
  bed_until(pair.bed, fetch.ended == fetch.begun || pair.two.held > 0);
  if (server_now_ms(pair.bed->server) < since + rest - MARGIN_MS) {
    expect_nothing_fetched(&fetch, BELAY_ELOAD);
    assert_int_equal(fetch.result.load_error, 1234567);
    assert_int_equal(fetch.result.from, BELAY_CACHE_FROM_SERVER);
    assert_between(fetch.result.remaining_ms, 0, rest + MARGIN_MS);
    assert_int_equal(hoard_stats(&pair.two).hits, before.hits + 1);
    assert_int_equal(hoard_stats(&pair.two).absent_served, 0);
  }
  get_until_it_loads(&pair, &pair.two, &fetch, "broken");
  assert_true(server_now_ms(pair.bed->server) >= since + rest - MARGIN_MS);
  assert_error(hand_over(&pair.two, "mended"), 0);
  expect_fetched(&fetch, "mended", BELAY_CACHE_FROM_LOAD);
  assert_int_equal(pair.two.loaded, 1);
  bed_close(pair.bed);
}

/* A get after a failure is not served the failure: without error_ms it loads again. The script
 * is sent twice, so that the failure is stored behind the get's lookup. */
TEST(who_comes_while_a_failure_is_noted) {
  pair_t pair;
  fetch_t fetch = {0}, during = {0}, after = {0};
  pair_open(&pair, 0, 0, 0);
  assert_error(begin_cache_get(&pair.one, &fetch, "broken"), 0);
  expect_loads(&pair.one, 1);
  assert_error(begin_cache_get(&pair.one, &during, "broken"), 0);
  bed_until(pair.bed, hoard_stats(&pair.one).joined == 1);
  server_do(pair.bed->server, "SCRIPT", "FLUSH", NULL);
  assert_error(hand_failure(&pair.one, 7), 0);
  assert_error(begin_cache_get(&pair.one, &after, "broken"), 0);
  expect_nothing_fetched(&fetch, BELAY_ELOAD);
  expect_nothing_fetched(&during, BELAY_ELOAD);
  assert_int_equal(during.result.load_error, 7);
  bed_until(pair.bed, after.ended == 1 || pair.one.held == 1);
  assert_int_equal(after.ended, 0);
  assert_error(hand_over(&pair.one, "mended"), 0);
  expect_fetched(&after, "mended", BELAY_CACHE_FROM_LOAD);
  assert_int_equal(hoard_stats(&pair.one).load_failures, 1);
  bed_close(pair.bed);
}

/* No load begins during the rest after a failure; then the next one does. */
static void rest_and_load_again(int64_t stale_ms, int64_t keep_ms) {
  int64_t rest = 300 * slow();
  pair_t pair;
  fetch_t fetch = {0};
  pair_open(&pair, stale_ms, keep_ms, rest);
  assert_error(begin_cache_get(&pair.one, &fetch, "home"), 0);
  expect_loads(&pair.one, 1);
  int64_t since = server_now_ms(pair.bed->server);
  assert_error(hand_failure(&pair.one, 7), 0);
  expect_fetched_stale(&fetch, "v1", stale_ms > 0 ? 0 : BELAY_ELOAD);
  bed_until(pair.bed, hoard_stats(&pair.one).loading == 0);
  for (int i = 0; i < 20; i++) {
    hoard_t *hoard = i % 2 ? &pair.one : &pair.two;
    assert_error(begin_cache_get(hoard, &fetch, "home"), 0);
    bed_until(pair.bed, fetch.ended == fetch.begun || hoard->held > 0);
    if (server_now_ms(pair.bed->server) >= since + rest - MARGIN_MS)
      break; /* the machine is too slow to tell */
    assert_int_equal(pair.one.held + pair.two.held, 0);
    expect_fetched_stale(&fetch, "v1", BELAY_ELOAD);
  }
  get_until_it_loads(&pair, &pair.one, &fetch, "home");
  assert_true(server_now_ms(pair.bed->server) >= since + rest - MARGIN_MS);
  assert_error(hand_over(pair.one.held ? &pair.one : &pair.two, "v2"), 0);
  assert_error(end_of_fetch(&fetch), 0);
  assert_string_equal(fetch.data, stale_ms > 0 ? "v1" : "v2");
  fetch_free(&fetch);
  bed_settle(pair.bed);
  expect_ttls(pair.bed->server);
  bed_close(pair.bed);
}

TEST(what_is_stale_is_served_while_a_failure_is_remembered) {
  rest_and_load_again(60000, 0);
}

TEST(what_is_kept_is_served_while_a_failure_is_remembered) {
  rest_and_load_again(0, 60000);
}

/* ---- nobody loads --------------------------------------------------------------------------------------- */

BED_TEST(who_cannot_load_is_served_what_is_kept) {
  hoard_t hoard = {0};
  belay_cache_options_t options = bare_options(&hoard);
  options.ttl_ms = TTL;
  options.keep_ms = 60000;
  hoard_new(&hoard, bed, &options);
  expect_no_value(&hoard, "home", BELAY_EABSENT);
  expect_put(&hoard, "home", "put", true);
  bed_run_for(bed, TTL + 10);
  expect_stale(&hoard, "home", "put", 0);
  belay_cache_stats_t stats = hoard_stats(&hoard);
  assert_int_equal(stats.gets, 2);
  assert_int_equal(stats.misses, 1);
  assert_int_equal(stats.stale_served, 1);
  assert_int_equal(stats.loads + stats.refreshes + stats.loading, 0);
  assert_int_equal(stats.fills, 1);
}

/* A value is fresh for ttl_ms less up to the jitter; the server keeps it for as long as it is of use. */
BED_TEST(jitter) {
  enum { N = 60 };
  hoard_t hoard = {0};
  belay_cache_options_t options = cache_options(&hoard);
  options.ttl_ms = 1000000;
  options.stale_ms = 5000;
  options.keep_ms = 2000000;
  options.jitter_percent = 50;
  hoard_new(&hoard, bed, &options);
  int64_t least = 1000000, most = 0;
  for (int i = 0; i < N; i++) {
    fetch_t fetch = {0};
    char key[16], name[64], value[32];
    snprintf(key, sizeof key, "key%d", i);
    snprintf(value, sizeof value, "%s#%d", key, i + 1);
    expect_cached(&hoard, key, value, BELAY_CACHE_FROM_LOAD);
    bed_settle(bed);
    assert_error(begin_cache_get(&hoard, &fetch, key), 0);
    assert_error(end_of_fetch(&fetch), 0);
    int64_t ttl = fetch.result.remaining_ms;
    assert_between(ttl, 490000, 1000000);
    snprintf(name, sizeof name, "belay::cache::pages::{%s}", key);
    assert_between(server_integer(bed->server, "PTTL", name, NULL), ttl + 2000000 - 5000,
                   ttl + 2000000 + 5000);
    least = ttl < least ? ttl : least;
    most = ttl > most ? ttl : most;
    fetch_free(&fetch);
  }
  assert_true(least < 625000 && most > 875000); /* each of them fails once in 3e7 */
}
