/* The table of a process: which values it serves, and for how long. */
#include <stdio.h>

#include "support/fixtures/cache/tables.h"

#define DROPPED "belay::cache::pages::{}::dropped"

/* ---- what is served ------------------------------------------------------------------------------------------ */

BED_TEST(the_table_comes_first) {
  hoard_t here = {0}, there = {0};
  belay_cache_options_t options = local_options(&here), other = cache_options(&there);
  hoard_new(&here, bed, &options);
  hoard_elsewhere(&there, bed, &other);
  expect_cached(&there, "home", "home#1", BELAY_CACHE_FROM_LOAD);
  assert_int_equal(peek(&there, "home"), BELAY_EAGAIN); /* it has none */
  assert_int_equal(peek(&here, "home"), BELAY_EAGAIN);
  bed_settle(bed);
  expect_cached(&here, "home", "home#1", BELAY_CACHE_FROM_SERVER);
  int64_t gets = server_calls(bed->server, "get");
  bed_until(bed, belay__subscription_is_up(&here.cache->subscription));
  expect_cached(&here, "home", "home#1",
                server_calls(bed->server, "get") == gets && peek(&here, "home") == 0
                    ? BELAY_CACHE_FROM_LOCAL
                    /* values from before the subscription are doubtful */
                    : BELAY_CACHE_FROM_SERVER);
  uint64_t commands = client_stats(bed).commands;
  for (int i = 0; i < 10; i++) {
    expect_cached(&here, "home", "home#1", BELAY_CACHE_FROM_LOCAL);
    expect_peek(&here, "home", "home#1");
  }
  assert_int_equal(client_stats(bed).commands, commands);
  assert_true(peeked.remaining_ms > 200000 && peeked.remaining_ms <= 300000);
  assert_true(peeked.age_ms < 60000);
  assert_int_equal(here.loaded, 0);
  assert_int_equal(hoard_stats(&here).local_entries, 1);
}

BED_TEST(what_was_loaded_is_in_it) {
  hoard_t hoard = {0};
  belay_cache_options_t options = local_options(&hoard);
  options.absent_ms = options.error_ms = 60000;
  hoard_new(&hoard, bed, &options);
  warm_and_hear(&hoard, "home");
  expect_peek(&hoard, "home", "home#2");
  hoard.value = "";
  warm(&hoard, "empty");
  expect_peek(&hoard, "empty", "");
  hoard.absent = true;
  warm(&hoard, "ghost");
  assert_int_equal(peek(&hoard, "ghost"), BELAY_EABSENT);
  hoard.error = -77;
  fetch_t fetch = {0};
  assert_int_equal(begin_cache_get(&hoard, &fetch, "broken"), 0);
  assert_int_equal(end_of_fetch(&fetch), BELAY_ELOAD);
  expect_no_value(&hoard, "broken", BELAY_ELOAD); /* the status that the server returns */
  assert_int_equal(peek(&hoard, "broken"), BELAY_ELOAD);
  assert_int_equal(peeked.load_error, -77);
  assert_int_equal(hoard.loaded, 5);
  belay_cache_stats_t before = hoard_stats(&hoard);
  expect_no_value(&hoard, "ghost", BELAY_EABSENT);
  expect_no_value(&hoard, "broken", BELAY_ELOAD);
  assert_int_equal(peek(&hoard, "ghost"), BELAY_EABSENT);
  assert_int_equal(peek(&hoard, "nothing"), BELAY_EAGAIN);
  belay_cache_stats_t after = hoard_stats(&hoard);
  assert_int_equal(after.gets, before.gets + 3); /* a failed peek does not count */
  assert_int_equal(after.local_hits, before.local_hits + 3);
  assert_int_equal(after.absent_served, before.absent_served + 2);
  assert_int_equal(after.loads, before.loads);
}

BED_TEST(peeks_that_are_refused) {
  static char longest[BELAY_CACHE_KEY_MAX + 1];
  memset(longest, 'k', sizeof longest);
  hoard_t hoard = {0};
  belay_cache_options_t options = local_options(&hoard);
  hoard_new(&hoard, bed, &options);
  belay_cache_result_t result;
  assert_int_equal(belay_cache_peek(NULL, belay_string("k"), &result), BELAY_EINVAL);
  assert_int_equal(belay_cache_peek(hoard.cache, belay_bytes(NULL, 1), &result), BELAY_EINVAL);
  assert_int_equal(belay_cache_peek(hoard.cache, belay_string("k"), NULL), BELAY_EINVAL);
  assert_int_equal(belay_cache_peek(hoard.cache, belay_string(""), &result), BELAY_EINVAL);
  assert_int_equal(belay_cache_peek(hoard.cache, belay_bytes(longest, sizeof longest), &result),
                   BELAY_EINVAL);
  assert_int_equal(belay_cache_peek(hoard.cache, belay_bytes(longest, sizeof longest - 1), &result),
                   BELAY_EAGAIN);
  assert_int_equal(hoard_stats(&hoard).gets, 0);
  assert_int_equal(begin_close_hoard(&hoard), 0);
  assert_int_equal(belay_cache_peek(hoard.cache, belay_string("k"), &result), BELAY_ECLOSING);
  bed_until(bed, hoard.closed == 1);
}

/* ---- how much it holds ----------------------------------------------------------------------------------------- */

BED_TEST(the_least_recently_used_goes) {
  enum { N = 200, BYTES = 20000 };
  hoard_t hoard = {0};
  belay_cache_options_t options = local_options(&hoard);
  options.local_bytes = BYTES;
  hoard_new(&hoard, bed, &options);
  warm_and_hear(&hoard, "first");
  char key[16];
  for (int i = 0; i < N; i++) {
    snprintf(key, sizeof key, "page %d", i);
    warm(&hoard, key);
    assert_int_equal(peek(&hoard, "first"), 0); /* it is used all the time */
    assert_true(hoard_stats(&hoard).local_bytes <= BYTES);
  }
  size_t entries = hoard_stats(&hoard).local_entries;
  assert_true(entries > 20 && entries < N);
  int kept = 0;
  for (int i = 0; i < N; i++) {
    snprintf(key, sizeof key, "page %d", i);
    bool is_there = peek(&hoard, key) == 0;
    assert_int_equal(is_there, i + (int)entries - 1 >= N); /* the last ones */
    kept += is_there;
  }
  assert_int_equal(kept + 1, entries);
}

BED_TEST(what_is_larger_than_the_table) {
  static char large[10000];
  memset(large, 'x', sizeof large - 1);
  hoard_t hoard = {0};
  belay_cache_options_t options = local_options(&hoard);
  options.local_bytes = sizeof large - 1;
  hoard_new(&hoard, bed, &options);
  warm_and_hear(&hoard, "home");
  expect_put(&hoard, "large", large, true);
  for (int i = 0; i < 2; i++)
    expect_cached(&hoard, "large", large, BELAY_CACHE_FROM_SERVER);
  assert_int_equal(peek(&hoard, "home"), 0); /* it has not made room for nothing */
}

/* ---- what is invalidated ------------------------------------------------------------------------------------------ */

BED_TEST(its_own_at_once) {
  hoard_t hoard = {0};
  belay_cache_options_t options = local_options(&hoard);
  options.quiet = true;
  hoard_new(&hoard, bed, &options);
  warm_and_hear(&hoard, "home");
  change_t change = {0};
  assert_int_equal(begin_invalidate(&hoard, &change, "home"), 0);
  assert_int_equal(peek(&hoard, "home"), BELAY_EAGAIN);
  assert_int_equal(end_of_change(&change), 0);
  warm(&hoard, "home");
  expect_peek(&hoard, "home", "home#3");
  assert_int_equal(begin_put(&hoard, &change, "home", "put"), 0);
  assert_int_equal(peek(&hoard, "home"), BELAY_EAGAIN);
  assert_int_equal(end_of_change(&change), 0);
  assert_int_equal(peek(&hoard, "home"), BELAY_EAGAIN);
  warm(&hoard, "home");
  expect_peek(&hoard, "home", "put");
  expect_touch(&hoard, "home", 1000, true);
  /* a shorter local_ttl_ms makes it invalid */
  assert_int_equal(peek(&hoard, "home"), BELAY_EAGAIN);
}

/* The reply of a get from before an invalidation, processed after it, does not enter the table. */
BED_TEST(a_get_that_is_under_way) {
  hoard_t hoard = {0};
  belay_cache_options_t options = local_options(&hoard);
  hoard_new(&hoard, bed, &options);
  warm_and_hear(&hoard, "other");
  expect_put(&hoard, "home", "old", true);
  fetch_t fetch = {0};
  change_t change = {0};
  assert_int_equal(begin_cache_get(&hoard, &fetch, "home"), 0);
  assert_int_equal(begin_invalidate(&hoard, &change, "home"), 0); /* behind it on the wire */
  assert_int_equal(end_of_fetch(&fetch), 0);
  assert_string_equal(fetch.data, "old");
  assert_int_equal(end_of_change(&change), 0);
  assert_int_equal(peek(&hoard, "home"), BELAY_EAGAIN);
  fetch_free(&fetch);
}

BED_TEST(others_are_told) {
  hoard_t here = {0}, there[2] = {{.value = "new"}, {.value = "new"}};
  belay_cache_options_t options = local_options(&here);
  hoard_new(&here, bed, &options);
  for (int i = 0; i < 2; i++) {
    belay_cache_options_t other = local_options(&there[i]);
    hoard_elsewhere(&there[i], bed, &other);
    warm_and_hear(&there[i], "home");
  }
  warm_and_hear(&here, "home");
  warm(&here, "about");
  expect_peek(&here, "home", "new");
  expect_invalidate(&there[0], "home");
  bed_until(bed, peek(&here, "home") == BELAY_EAGAIN);
  bed_until(bed, peek(&there[1], "home") == BELAY_EAGAIN);
  expect_peek(&here, "about", "about#1"); /* that one only */
  warm(&here, "home");
  warm(&there[1], "home");
  expect_put(&there[0], "home", "put", true);
  bed_until(bed, peek(&here, "home") == BELAY_EAGAIN);
  bed_until(bed, peek(&there[1], "home") == BELAY_EAGAIN);
  expect_cached(&here, "home", "put", BELAY_CACHE_FROM_SERVER);
}

/* Messages that are none do no harm. */
BED_TEST(nonsense_is_not_heard) {
  hoard_t hoard = {0};
  belay_cache_options_t options = local_options(&hoard);
  hoard_new(&hoard, bed, &options);
  warm_and_hear(&hoard, "home");
  (void)server_publish(bed->server, DROPPED, "");
  (void)server_publish(bed->server, DROPPED, "home");
  (void)server_publish(bed->server, DROPPED, "a longer message");
  bed_run_for(bed, 10);
  expect_peek(&hoard, "home", "home#2");
}

/* The reply to a get is so long that the message overtakes it. */
BED_TEST(a_message_that_is_faster_than_a_reply) {
  enum { LEN = 6000000 };
  hoard_t here = {0}, there = {0};
  belay_cache_options_t options = local_options(&here), other = cache_options(&there);
  char *large = calloc(1, LEN + 1);
  memset(large, 'x', LEN);
  options.local_bytes = 20000000;
  hoard_new(&here, bed, &options);
  hoard_elsewhere(&there, bed, &other);
  warm_and_hear(&here, "home");
  for (int overtaken = 0; overtaken < 2; overtaken++) {
    fetch_t fetch = {0};
    change_t change = {0};
    belay__stamp_t stamp;
    belay__local_stamp(&here.cache->local, "large", 5, NULL, 0, &stamp);
    expect_put(&there, "large", large, true);
    bed_until(bed, !belay__local_is_good(&here.cache->local, &stamp)); /* that was heard */
    int64_t gets = server_calls(bed->server, "get");
    assert_int_equal(begin_cache_get(&here, &fetch, "large"), 0);
    bed_until(bed, server_calls(bed->server, "get") > gets);
    assert_int_equal(fetch.ended, 0);
    belay__local_restamp(&here.cache->local, &stamp);
    if (overtaken) {
      assert_int_equal(begin_invalidate(&there, &change, "large"), 0);
      bed_until(bed, !belay__local_is_good(&here.cache->local, &stamp));
      assert_int_equal(fetch.ended, 0);
      assert_int_equal(end_of_change(&change), 0);
    }
    assert_int_equal(end_of_fetch(&fetch), 0);
    assert_string_equal(fetch.data, large); /* it was asked before */
    assert_int_equal(peek(&here, "large"), overtaken ? BELAY_EAGAIN : 0);
    fetch_free(&fetch);
  }
  free(large);
}

/* ---- many at once ---------------------------------------------------------------------------------------------------- */

enum { MANY = 300 };

typedef struct many {
  belay_request_t request;
  unsigned ended, from[4];
} many_t;

static void on_many(belay_request_t *request, int status, const belay_cache_result_t *results,
                    size_t n) {
  many_t *many = request->data;
  assert_int_equal(status, 0);
  assert_int_equal(n, MANY);
  many->ended++;
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(results[i].status, 0);
    assert_int_equal(results[i].len, 1);
    many->from[results[i].from]++;
  }
}

static void expect_many(hoard_t *hoard, unsigned local, unsigned server, unsigned loaded) {
  static char names[MANY][8];
  belay_bytes_t keys[MANY];
  many_t many = {0};
  many.request.data = &many;
  for (int i = 0; i < MANY; i++)
    keys[i] = (belay_bytes_t){names[i], (size_t)sprintf(names[i], "k%d", i)};
  assert_int_equal(belay_cache_get_many(hoard->cache, &many.request, keys, MANY, on_many), 0);
  bed_until(hoard->bed, many.ended == 1);
  bed_settle(hoard->bed);
  assert_int_equal(many.from[BELAY_CACHE_FROM_LOCAL], local);
  assert_int_equal(many.from[BELAY_CACHE_FROM_SERVER], server);
  assert_int_equal(many.from[BELAY_CACHE_FROM_LOAD], loaded);
}

BED_TEST(many_at_once) {
  hoard_t here = {.value = "v"}, there = {.value = "v"};
  belay_cache_options_t options = local_options(&here), other = local_options(&there);
  hoard_new(&here, bed, &options);
  hoard_elsewhere(&there, bed, &other);
  warm_and_hear(&here, "home");
  warm_and_hear(&there, "home");
  expect_many(&here, 0, 0, MANY);
  expect_many(&there, 0, MANY, 0);
  expect_many(&there, MANY, 0, 0);
  int64_t gets = server_calls(bed->server, "get");
  expect_many(&here, MANY, 0, 0);
  assert_int_equal(server_calls(bed->server, "get"), gets);
  for (int i = 0; i < 3; i++) {
    char key[8];
    snprintf(key, sizeof key, "k%d", 100 * i);
    expect_invalidate(&there, key);
    bed_until(bed, peek(&here, key) == BELAY_EAGAIN);
  }
  expect_many(&here, MANY - 3, 0, 3);
  expect_many(&there, MANY - 3, 3, 0);
  expect_many(&there, MANY, 0, 0);
}
