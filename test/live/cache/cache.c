/* Caches: a stored value is served, and a missing one is loaded once. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "support/fixtures/cache/caches.h"
#include "support/models/scripts.h"

#define KEY "belay::cache::pages::{home}"

BED_TEST(what_is_not_there_is_loaded) {
  hoard_t hoard = {0};
  hoard_new(&hoard, bed, NULL);
  expect_cached(&hoard, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  expect_cached(&hoard, "home", "home#1", BELAY_CACHE_FROM_SERVER);
  expect_cached(&hoard, "about", "about#2", BELAY_CACHE_FROM_LOAD);
  expect_cached(&hoard, "home", "home#1", BELAY_CACHE_FROM_SERVER);
  assert_int_equal(hoard.loaded, 2);
  bed_settle(bed);
  assert_int_equal(server_keys(bed->server), 2);
  expect_ttls(bed->server);
  expect_invalidate(&hoard, "home");
  expect_cached(&hoard, "home", "home#3", BELAY_CACHE_FROM_LOAD);
}

/* A get keeps short keys elsewhere than long ones. */
BED_TEST(keys_of_all_lengths) {
  static const size_t lens[] = {1, 63, 64, 65, BELAY_CACHE_KEY_MAX};
  hoard_t hoard = {0};
  hoard_new(&hoard, bed, NULL);
  for (unsigned i = 0; i < sizeof lens / sizeof *lens; i++) {
    char key[BELAY_CACHE_KEY_MAX + 1], text[BELAY_CACHE_KEY_MAX + 16];
    fetch_t fetch = {0};
    memset(key, 'a' + (int)i, lens[i]);
    key[lens[i]] = '\0';
    (void)snprintf(text, sizeof text, "%s#%u", key, i + 1);
    assert_int_equal(begin_cache_get(&hoard, &fetch, key), 0);
    assert_int_equal(belay_request_cancel(&fetch.request), 0);
    assert_int_equal(end_of_fetch(&fetch), BELAY_ECANCELED);
    expect_cached(&hoard, key, text, BELAY_CACHE_FROM_LOAD);
    expect_cached(&hoard, key, text, BELAY_CACHE_FROM_SERVER);
  }
}

BED_TEST(all_who_wait_get_one_load) {
  enum { N = 1000 };
  hoard_t hoards[2] = {{.loading = LOADING_LATER, .delay_ms = 50},
                       {.loading = LOADING_LATER, .delay_ms = 50}};
  fetch_t *fetches = calloc(N, sizeof *fetches);
  belay_client_t *other = bed_connect(bed, server_url(bed->server), NULL);
  hoard_new(&hoards[0], bed, NULL);
  hoard_of(&hoards[1], bed, other, NULL);
  for (int i = 0; i < N; i++)
    assert_int_equal(begin_cache_get(&hoards[i % 2], &fetches[i], "home"), 0);
  for (int i = 0; i < N; i++) {
    assert_int_equal(end_of_fetch(&fetches[i]), 0);
    assert_string_equal(fetches[i].data, "home#1");
    fetch_free(&fetches[i]);
  }
  assert_int_equal(hoards[0].loaded + hoards[1].loaded, 1);
  free(fetches);
  bed_settle(bed);
  bed_until(bed, hoards[0].timers + hoards[1].timers == 0);
}

BED_TEST(what_does_not_exist_and_what_fails) {
  hoard_t hoard = {.absent = true};
  belay_cache_options_t options = cache_options(&hoard);
  options.absent_ms = 60000;
  options.error_ms = 60000;
  hoard_new(&hoard, bed, &options);
  expect_no_value(&hoard, "ghost", BELAY_EABSENT);
  expect_no_value(&hoard, "ghost", BELAY_EABSENT);
  assert_int_equal(hoard.loaded, 1);
  hoard.absent = false;
  hoard.error = 7;
  expect_no_value(&hoard, "broken", BELAY_ELOAD);
  expect_no_value(&hoard, "broken", BELAY_ELOAD);
  assert_int_equal(hoard.loaded, 2);
}

BED_TEST(stale) {
  hoard_t hoard = {0};
  belay_cache_options_t options = cache_options(&hoard);
  options.ttl_ms = 50;
  options.stale_ms = 60000;
  hoard_new(&hoard, bed, &options);
  expect_cached(&hoard, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  bed_run_for(bed, 60);
  expect_stale(&hoard, "home", "home#1", 0);
  bed_until(bed, hoard_stats(&hoard).fills == 2);
  expect_cached(&hoard, "home", "home#2", BELAY_CACHE_FROM_SERVER);
}

/* Both handles would like to, and one of them does. */
BED_TEST(who_loads_counts_the_refresh) {
  belay_client_t *other = bed_connect(bed, server_url(bed->server), NULL);
  hoard_t hoards[2] = {{.loading = LOADING_BY_HAND}, {.loading = LOADING_BY_HAND}};
  for (unsigned i = 0; i < 2; i++) {
    belay_cache_options_t options = cache_options(&hoards[i]);
    options.stale_ms = 60000;
    hoard_of(&hoards[i], bed, i == 0 ? bed->client : other, &options);
  }
  change_t put = {0};
  assert_int_equal(begin_put(&hoards[0], &put, "home", "old"), 0);
  assert_int_equal(end_of_change(&put), 0);
  expect_touch(&hoards[0], "home", 1, true);
  bed_run_for(bed, 5);
  expect_stale(&hoards[0], "home", "old", 0);
  expect_stale(&hoards[1], "home", "old", 0);
  bed_until(bed, hoards[0].held + hoards[1].held == 1);
  unsigned loader = hoards[0].held == 0;
  bed_until(bed, hoard_stats(&hoards[1 - loader]).loading == 0);
  assert_int_equal(hand_over(&hoards[loader], "new"), 0);
  bed_until(bed, hoard_stats(&hoards[loader]).loading == 0);
  assert_int_equal(hoard_stats(&hoards[loader]).refreshes, 1);
  assert_int_equal(hoard_stats(&hoards[1 - loader]).refreshes, 0);
  assert_int_equal(hoard_stats(&hoards[loader]).early, 0);
  expect_cached(&hoards[1 - loader], "home", "new", BELAY_CACHE_FROM_SERVER);
}

/* ---- what is refused --------------------------------------------------------------------------------------- */

typedef struct option_row {
  size_t offset;
  const char *name;
  int64_t min, max; /* and one less, and one more, is refused */
} option_row_t;

#define ROW(field, min, max) offsetof(belay_cache_options_t, field), #field, min, max

static int try_options(bed_t *bed, const belay_cache_options_t *options) {
  belay_cache_t *cache;
  int error = belay_cache_new(bed->client, options, &cache);
  assert_true((error == 0) == (cache != NULL));
  if (error == 0)
    assert_error(belay_cache_close(cache, NULL), 0);
  return error;
}

static int try_time(bed_t *bed, hoard_t *hoard, const option_row_t *row, int64_t value) {
  belay_cache_options_t options = cache_options(hoard);
  options.ttl_ms = 31536000000; /* so that refresh_ms and keep_ms may be as large as they can */
  memcpy((char *)&options + row->offset, &value, sizeof value);
  if (row->offset == offsetof(belay_cache_options_t, retry_min_ms))
    options.retry_max_ms = 60000;
  if (row->offset == offsetof(belay_cache_options_t, retry_max_ms))
    options.retry_min_ms = 1;
  int error = try_options(bed, &options);
  if (error != 0)
    assert_non_null(strstr(belay_detail(bed->belay), row->name));
  return error;
}

TEST(ranges_of_times) {
  static const option_row_t rows[] = {
      {ROW(ttl_ms, 1, 31536000000)},    {ROW(stale_ms, 0, 31536000000)},
      {ROW(absent_ms, 0, 31536000000)}, {ROW(error_ms, 0, 31536000000)},
      {ROW(lease_ms, 100, 86400000)},   {ROW(load_timeout_ms, 1, 3600000)},
      {ROW(timeout_ms, 1, 600000)},     {ROW(retry_min_ms, 1, 60000)},
      {ROW(retry_max_ms, 1, 60000)},    {ROW(wait_ms, 0, 600000)},
      {ROW(local_ttl_ms, 1, 86400000)}, {ROW(refresh_ms, 1, 31536000000)},
      {ROW(keep_ms, 0, 31536000000)},
  };
  bed_t *bed = bed_open(NULL);
  hoard_t hoard = {0};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_error(try_time(bed, &hoard, &rows[i], rows[i].min), 0);
    assert_error(try_time(bed, &hoard, &rows[i], rows[i].max), 0);
    assert_error(try_time(bed, &hoard, &rows[i], rows[i].max + 1), BELAY_EINVAL);
    assert_error(try_time(bed, &hoard, &rows[i], INT64_MIN), BELAY_EINVAL);
    if (rows[i].offset == offsetof(belay_cache_options_t, refresh_ms))
      assert_error(try_time(bed, &hoard, &rows[i], 0), BELAY_EINVAL); /* -1: BELAY_DEFAULT */
    else
      assert_error(try_time(bed, &hoard, &rows[i], rows[i].min - 1), BELAY_EINVAL);
  }
  bed_close(bed);
}

/* Sets a field of the defaults, and tries. */
#define TRY(field, value)                                                                          \
  (options = cache_options(&hoard), options.field = (value), try_options(bed, &options))

BED_TEST(ranges_of_numbers) {
  hoard_t hoard = {0};
  belay_cache_options_t options;
  assert_error(TRY(jitter_percent, 90), 0);
  assert_error(TRY(jitter_percent, 91), BELAY_EINVAL);
  assert_error(TRY(max_away_loads, 0), BELAY_EINVAL);
  assert_error(TRY(max_away_loads, 65536), 0);
  assert_error(TRY(max_away_loads, 65537), BELAY_EINVAL);
  assert_error(TRY(late, (belay_cache_late_t)0), BELAY_EINVAL);
  assert_error(TRY(late, BELAY_CACHE_LATE_LOAD), 0);
  assert_error(TRY(late, (belay_cache_late_t)4), BELAY_EINVAL);
  assert_error(TRY(away, BELAY_CACHE_AWAY_LOAD), 0);
  assert_error(TRY(away, (belay_cache_away_t)3), BELAY_EINVAL);
  assert_error(TRY(beta, 1000), 0);
  assert_error(TRY(beta, 1000.1), BELAY_EINVAL);
  assert_error(TRY(beta, -0.1), BELAY_EINVAL);
  assert_error(TRY(beta, NAN), BELAY_EINVAL);
  assert_error(TRY(wait_ms, BELAY_FOREVER), 0);
  assert_error(TRY(refresh_ms, 300001), BELAY_EINVAL); /* more than ttl_ms */
  assert_error(TRY(ttl_ms, 1), 0);                     /* a fifth of that */
  assert_error(TRY(retry_max_ms, 19), BELAY_EINVAL);   /* less than retry_min_ms */
  assert_error(TRY(max_value_bytes, 0), BELAY_EINVAL);
  assert_error(TRY(max_value_bytes, 1), 0);
  assert_error(TRY(max_value_bytes, BELAY_CACHE_VALUE_MAX), BELAY_EINVAL); /* for this client */
  assert_non_null(strstr(belay_detail(bed->belay), "max_reply"));
  assert_error(TRY(max_value_bytes, SIZE_MAX), BELAY_EINVAL);
  assert_error(TRY(name.len, 129), BELAY_EINVAL);
  assert_error(TRY(compress_bytes, SIZE_MAX), 0);
  options = cache_options(&hoard);
  options.stale_ms = 1000;
  options.keep_ms = 999;
  assert_error(try_options(bed, &options), BELAY_EINVAL);
  options.keep_ms = 1000;
  assert_error(try_options(bed, &options), 0);
}

BED_TEST(nothing_at_all) {
  hoard_t hoard = {0};
  belay_cache_t *cache;
  belay_cache_stats_t stats;
  belay_cache_stats(NULL, NULL);
  memset(&stats, 1, sizeof stats);
  belay_cache_stats(NULL, &stats);
  assert_int_equal(stats.gets, 0);
  assert_error(belay_cache_load_done(NULL, belay_string("x")), BELAY_EINVAL);
  assert_error(belay_cache_load_absent(NULL), BELAY_EINVAL);
  assert_error(belay_cache_load_failed(NULL, 1), BELAY_EINVAL);
  assert_false(belay_cache_load_is_wanted(NULL));
  assert_error(belay_cache_new(bed->client, NULL, &cache), 0); /* all as it comes */
  assert_null(belay_cache_data(cache));
  hoard = (hoard_t){.bed = bed, .cache = cache};
  expect_no_value(&hoard, "home", BELAY_EABSENT);
  expect_put(&hoard, "home", "put", true);
  expect_cached(&hoard, "home", "put", BELAY_CACHE_FROM_SERVER);
  assert_int_equal(server_integer(bed->server, "EXISTS", "belay::cache::{home}", NULL), 1);
}

BED_TEST(gets_that_are_refused) {
  static char big[BELAY_CACHE_KEY_MAX + 1];
  hoard_t hoard = {0};
  fetch_t fetch = {.hoard = &hoard, .request.data = &fetch};
  belay_request_t *request = &fetch.request;
  hoard_new(&hoard, bed, NULL);
  memset(big, 'k', sizeof big);
  belay_cache_t *cache = hoard.cache;
  assert_error(belay_cache_get(cache, NULL, belay_string("k"), on_fetched), BELAY_EINVAL);
  assert_error(belay_cache_get(cache, request, belay_string("k"), NULL), BELAY_EINVAL);
  assert_error(belay_cache_get(cache, request, belay_bytes(NULL, 1), on_fetched), BELAY_EINVAL);
  assert_error(belay_cache_get(cache, request, belay_string(""), on_fetched), BELAY_EINVAL);
  assert_error(belay_cache_get(cache, request, belay_bytes(big, sizeof big), on_fetched),
               BELAY_EINVAL);
  assert_error(begin_get_late(&hoard, &fetch, "k", (belay_cache_late_t)0), BELAY_EINVAL);
  assert_error(begin_get_late(&hoard, &fetch, "k", (belay_cache_late_t)4), BELAY_EINVAL);
  assert_int_equal(hoard_stats(&hoard).gets, 0);
  assert_error(begin_cache_get(&hoard, &fetch, "k"), 0);
  assert_error(belay_cache_get(cache, request, belay_string("k"), on_fetched), BELAY_ESTATE);
  expect_fetched(&fetch, "k#1", BELAY_CACHE_FROM_LOAD);
  big[BELAY_CACHE_KEY_MAX] = '\0'; /* the longest, with a lease whose key is a hash */
  assert_error(begin_cache_get(&hoard, &fetch, big), 0);
  assert_error(end_of_fetch(&fetch), 0);
  fetch_free(&fetch);
  bed_settle(bed);
  assert_int_equal(server_keys(bed->server), 2);
}

/* ---- loads ---------------------------------------------------------------------------------------------------- */

BED_TEST(how_a_load_is_not_ended) {
  hoard_t hoard = {.loading = LOADING_BY_HAND};
  fetch_t fetch = {0};
  hoard_new(&hoard, bed, NULL);
  assert_error(begin_cache_get(&hoard, &fetch, "home"), 0);
  bed_until(bed, hoard.held == 1);
  assert_error(belay_cache_load_done(hoard.loads[0], belay_bytes(NULL, 1)), BELAY_EINVAL);
  assert_error(belay_cache_load_failed(hoard.loads[0], 0), BELAY_EINVAL);
  assert_true(belay_cache_load_is_wanted(hoard.loads[0]));
  assert_error(hand_over(&hoard, "v1"), 0);
  expect_fetched(&fetch, "v1", BELAY_CACHE_FROM_LOAD);
}

/* A loader of its own: it remembers what it was given, and may do more. */
typedef struct keeper {
  hoard_t hoard;
  belay_cache_load_t *load;
  const char *key;
  size_t key_len;
  bool closes;
} keeper_t;

static void keep_load(belay_cache_load_t *load, const char *key, size_t key_len, void *arg) {
  keeper_t *keeper = arg;
  keeper->load = load;
  keeper->key = key;
  keeper->key_len = key_len;
  if (keeper->closes)
    assert_error(begin_close_hoard(&keeper->hoard), 0);
}

static void keeper_new(keeper_t *keeper, bed_t *bed) {
  belay_cache_options_t options = cache_options(&keeper->hoard);
  options.load = keep_load;
  options.arg = keeper;
  hoard_new(&keeper->hoard, bed, &options);
}

/* Its key is there until it is ended, and so is its memory, whatever ends before: the get, the cache, belay. */
BED_TEST(a_load_outlives_everything) {
  keeper_t keeper = {0};
  fetch_t fetch = {0};
  keeper_new(&keeper, bed);
  assert_error(begin_cache_get(&keeper.hoard, &fetch, "home"), 0);
  bed_until(bed, keeper.load != NULL);
  assert_error(belay_request_cancel(&fetch.request), 0);
  expect_nothing_fetched(&fetch, BELAY_ECANCELED);
  assert_true(belay_cache_load_is_wanted(keeper.load));
  assert_memory_equal(keeper.key, "home", 4);
  assert_int_equal(keeper.key_len, 4);
  assert_error(begin_belay_close(bed), 0);
  bed_until(bed, bed->belay_closed == 1);
  assert_false(belay_cache_load_is_wanted(keeper.load));
  assert_memory_equal(keeper.key, "home", 4);
  assert_error(belay_cache_load_done(keeper.load, belay_string("late")), 0);
}

BED_TEST(a_loader_that_closes) {
  keeper_t keeper = {.closes = true};
  fetch_t fetch = {0};
  keeper_new(&keeper, bed);
  assert_error(begin_cache_get(&keeper.hoard, &fetch, "home"), 0);
  expect_nothing_fetched(&fetch, BELAY_ECANCELED);
  bed_until(bed, keeper.hoard.closed == 1);
  assert_false(belay_cache_load_is_wanted(keeper.load));
  assert_error(belay_cache_load_failed(keeper.load, 1), 0);
  bed_settle(bed);
  assert_int_equal(server_integer(bed->server, "EXISTS", KEY "::lease", NULL), 0);
}

/* ---- canceling ------------------------------------------------------------------------------------------------- */

/* After that number of turns of the loop. */
BED_TEST(canceling_at_any_moment) {
  hoard_t hoard = {0};
  hoard_new(&hoard, bed, NULL);
  for (int turns = 0; turns < 24; turns++) {
    fetch_t fetch = {0}, other = {0};
    assert_error(begin_cache_get(&hoard, &fetch, "home"), 0);
    assert_error(begin_cache_get(&hoard, &other, "home"), 0);
    for (int i = 0; i < turns; i++)
      uv_run(&bed->loop, UV_RUN_NOWAIT);
    int error = belay_request_cancel(&fetch.request);
    assert_true(error == 0 || error == BELAY_ESTATE);
    bed_until(bed, fetch.ended == 1);
    assert_true(fetch.result.status == 0 || fetch.result.status == BELAY_ECANCELED);
    assert_error(end_of_fetch(&other), 0);
    fetch_free(&fetch);
    fetch_free(&other);
    expect_invalidate(&hoard, "home");
  }
}

/* ---- statistics ---------------------------------------------------------------------------------------------------- */

BED_TEST(what_is_counted) {
  hoard_t hoard = {.loading = LOADING_BY_HAND};
  hoard_new(&hoard, bed, NULL);
  fetch_t a = {0}, b = {0};
  assert_error(begin_cache_get(&hoard, &a, "home"), 0);
  assert_error(begin_cache_get(&hoard, &b, "home"), 0);
  bed_until(bed, hoard.held == 1 && hoard_stats(&hoard).joined == 1);
  belay_cache_stats_t stats = hoard_stats(&hoard);
  assert_int_equal(stats.gets, 2);
  assert_int_equal(stats.misses, 2);
  assert_int_equal(stats.loads, 1);
  assert_int_equal(stats.loading, 1);
  assert_int_equal(stats.fills, 0);
  assert_error(hand_over(&hoard, "0123456789"), 0);
  expect_fetched(&a, "0123456789", BELAY_CACHE_FROM_LOAD);
  expect_fetched(&b, "0123456789", BELAY_CACHE_FROM_LOAD);
  bed_until(bed, hoard_stats(&hoard).loading == 0);
  expect_cached(&hoard, "home", "0123456789", BELAY_CACHE_FROM_SERVER);
  expect_cached(&hoard, "home", "0123456789", BELAY_CACHE_FROM_SERVER);
  stats = hoard_stats(&hoard);
  belay_cache_stats_t expected = {.gets = 4,
                                  .hits = 2,
                                  .misses = 2,
                                  .loads = 1,
                                  .joined = 1,
                                  .fills = 1,
                                  .bytes_in = 2 * 82,
                                  .bytes_out = 82};
  assert_memory_equal(&stats, &expected, sizeof stats);
}
