/* Many keys at once. */
#include <stdio.h>

#include "support/deployments/deployment.h"
#include "support/fixtures/cache/hauls.h"
#include "support/models/scripts.h"

/* ---- what is there, and what is not ---------------------------------------------------------------------- */

/* In their order, the same one twice, one call of load_many for those that are not there, and none if all are. */
BED_TEST(order_and_duplicates) {
  static const char *const some[] = {"b", "a", "b"};
  static const char *const all[] = {"c", "a", "d", "c", "b", "d", "d"};
  hoard_t hoard = {0};
  belay_cache_options_t options = batch_options(&hoard);
  hoard_new(&hoard, bed, &options);
  haul_t *haul = haul_new(&hoard);
  assert_error(begin_haul(haul, some, 3), 0);
  assert_error(end_of_haul(haul), 0);
  expect_hauled(haul, 0, "b#1", BELAY_CACHE_FROM_LOAD);
  expect_hauled(haul, 1, "a#2", BELAY_CACHE_FROM_LOAD);
  expect_hauled(haul, 2, "b#1", BELAY_CACHE_FROM_LOAD);
  assert_int_equal(hoard.batches, 1);
  assert_int_equal(hoard.batch, 2);
  bed_until(bed, hoard_stats(&hoard).fills == 2);
  assert_error(begin_haul(haul, all, 7), 0);
  assert_error(end_of_haul(haul), 0);
  static const char *const values[] = {"c#3", "a#2", "d#4", "c#3", "b#1", "d#4", "d#4"};
  for (size_t i = 0; i < 7; i++)
    expect_hauled(haul, i, values[i],
                  i == 1 || i == 4 ? BELAY_CACHE_FROM_SERVER : BELAY_CACHE_FROM_LOAD);
  assert_int_equal(hoard.batches, 2);
  assert_int_equal(hoard.batch, 2);
  bed_until(bed, hoard_stats(&hoard).fills == 4);
  assert_error(begin_haul(haul, all, 7), 0);
  assert_error(end_of_haul(haul), 0);
  for (size_t i = 0; i < 7; i++)
    expect_hauled(haul, i, values[i], BELAY_CACHE_FROM_SERVER);
  assert_int_equal(hoard.batches, 2);
  belay_cache_stats_t stats = hoard_stats(&hoard);
  assert_int_equal(stats.gets, 17);
  assert_int_equal(stats.misses, 3 + 5);
  assert_int_equal(stats.joined, 1 + 3);
  assert_int_equal(stats.hits, 2 + 7);
  assert_int_equal(stats.loads, 4);
  haul_free(haul);
}

static const char *key_number(size_t i) {
  static char keys[HAUL_MAX + 1][16];
  snprintf(keys[i], sizeof keys[i], "key%zu", i);
  return keys[i];
}

static void expect_batch_of(hoard_t *hoard, size_t n, unsigned batches) {
  const char *keys[HAUL_MAX + 1];
  char value[32];
  haul_t *haul = haul_new(hoard);
  for (size_t i = 0; i < n; i++)
    keys[i] = key_number(i);
  unsigned loaded = hoard->loaded;
  assert_error(begin_haul(haul, keys, n), 0);
  assert_error(end_of_haul(haul), 0);
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(haul->results[i].status, 0);
    snprintf(value, sizeof value, "%s#", keys[i]);
    assert_memory_equal(haul->data[i], value, strlen(value));
  }
  assert_int_equal(hoard->batches, batches);
  assert_int_equal(hoard->loaded - loaded, batches > 0 ? n : 0);
  bed_until(hoard->bed, hoard_stats(hoard).loading == 0);
  haul_free(haul);
}

/* All of them in one call, in one round trip when they are there. */
BED_TEST(as_many_as_can_be) {
  hoard_t hoard = {0}, other = {0};
  belay_cache_options_t options = batch_options(&hoard);
  hoard_new(&hoard, bed, &options);
  options.arg = &other;
  hoard_of(&other, bed, bed_connect(bed, server_url(bed->server), NULL), &options);
  expect_batch_of(&hoard, HAUL_MAX, 1);
  assert_int_equal(hoard.batch, HAUL_MAX);
  bed_settle(bed);
  assert_int_equal(server_keys(bed->server), HAUL_MAX); /* no leases, no generations */
  int64_t calls = server_commands(bed->server);
  expect_batch_of(&other, HAUL_MAX, 0);
  bed_settle(bed);
  calls = server_commands(bed->server) - calls;
  assert_in_range(calls, HAUL_MAX, HAUL_MAX + 40);
  assert_int_equal(hoard_stats(&other).hits, HAUL_MAX);
  assert_int_equal(hoard_stats(&other).misses, 0);
  assert_int_equal(hoard_stats(&hoard).fills, HAUL_MAX);
}

/* With load only, each by one call of it; with both, load_many is for many, and load for the others. */
BED_TEST(with_load) {
  static const char *const keys[] = {"a", "b", "a", "c"};
  hoard_t hoard = {0}, both = {0};
  hoard_new(&hoard, bed, NULL);
  haul_t *haul = haul_new(&hoard);
  assert_error(begin_haul(haul, keys, 4), 0);
  assert_error(end_of_haul(haul), 0);
  for (size_t i = 0; i < 4; i++)
    assert_memory_equal(haul->data[i], keys[i], 1);
  assert_int_equal(hoard.loaded, 3);
  assert_int_equal(hoard.batches, 0);
  haul_free(haul);

  belay_cache_options_t options = batch_options(&both);
  options.load = cache_options(&both).load;
  options.name = belay_string("both");
  hoard_new(&both, bed, &options);
  expect_cached(&both, "a", "a#1", BELAY_CACHE_FROM_LOAD);
  assert_int_equal(both.batches, 0);
  haul = haul_new(&both);
  assert_error(begin_haul(haul, keys, 4), 0);
  assert_error(end_of_haul(haul), 0);
  assert_int_equal(both.batches, 1);
  assert_int_equal(both.batch, 2);
  haul_free(haul);
}

/* A get of one key, where there is only load_many; many that wait for one turn go together. */
BED_TEST(a_get_with_load_many) {
  hoard_t hoard = {0};
  belay_cache_options_t options = batch_options(&hoard);
  hoard_new(&hoard, bed, &options);
  expect_cached(&hoard, "a", "a#1", BELAY_CACHE_FROM_LOAD);
  assert_int_equal(hoard.batches, 1);
  assert_int_equal(hoard.batch, 1);
}

BED_TEST(nobody_loads) {
  static const char *const keys[] = {"a", "b"};
  hoard_t hoard = {0};
  belay_cache_options_t options = bare_options(&hoard);
  hoard_new(&hoard, bed, &options);
  expect_put(&hoard, "b", "put", true);
  haul_t *haul = haul_new(&hoard);
  assert_error(begin_haul(haul, keys, 2), 0);
  assert_error(end_of_haul(haul), 0);
  expect_not_hauled(haul, 0, BELAY_EABSENT);
  expect_hauled(haul, 1, "put", BELAY_CACHE_FROM_SERVER);
  assert_int_equal(hoard_stats(&hoard).loading, 0);
  haul_free(haul);
}

/* ---- others ------------------------------------------------------------------------------------------------ */

/* Some are being loaded by another process, one by a get of ours: the rest does not wait for them. */
BED_TEST(some_are_loaded_elsewhere) {
  static const char *const keys[] = {"a", "b", "c", "d"};
  hoard_t one = {.loading = LOADING_BY_HAND}, two = {.loading = LOADING_BY_HAND};
  belay_cache_options_t options = batch_options(&one);
  hoard_new(&one, bed, &options);
  options.arg = &two;
  hoard_of(&two, bed, bed_connect(bed, server_url(bed->server), NULL), &options);
  fetch_t far = {0}, near = {0};
  assert_error(begin_cache_get(&one, &far, "b"), 0);
  assert_error(begin_cache_get(&two, &near, "c"), 0);
  bed_until(bed, one.held == 1 && two.held == 1);
  haul_t *haul = haul_new(&two);
  assert_error(begin_haul(haul, keys, 4), 0);
  bed_until(bed, two.held == 3);
  assert_int_equal(two.batches, 2);
  assert_int_equal(two.batch, 2);
  assert_error(hand_over(&two, "c near"), 0);
  assert_error(hand_over(&two, "a"), 0);
  assert_error(hand_over(&two, "d"), 0);
  expect_fetched(&near, "c near", BELAY_CACHE_FROM_LOAD);
  bed_run_for(bed, 20);
  assert_int_equal(haul->ended, 0);
  assert_error(hand_over(&one, "b far"), 0);
  assert_error(end_of_haul(haul), 0);
  expect_hauled(haul, 0, "a", BELAY_CACHE_FROM_LOAD);
  expect_hauled(haul, 1, "b far", BELAY_CACHE_FROM_SERVER);
  expect_hauled(haul, 2, "c near", BELAY_CACHE_FROM_LOAD);
  expect_hauled(haul, 3, "d", BELAY_CACHE_FROM_LOAD);
  expect_fetched(&far, "b far", BELAY_CACHE_FROM_LOAD);
  belay_cache_stats_t stats = hoard_stats(&two);
  assert_int_equal(stats.waits, 1);
  assert_int_equal(stats.joined, 1);
  assert_int_equal(stats.misses, 5);
  haul_free(haul);
}

/* Two at once of the same keys, here and there: each key is loaded once. */
BED_TEST(two_at_once) {
  enum { N = 100 };
  const char *keys[N];
  hoard_t hoards[2] = {{.loading = LOADING_LATER, .delay_ms = 20},
                       {.loading = LOADING_LATER, .delay_ms = 20}};
  haul_t *hauls[4];
  for (size_t i = 0; i < N; i++)
    keys[i] = key_number(i);
  for (int i = 0; i < 2; i++) {
    belay_cache_options_t options = batch_options(&hoards[i]);
    hoard_of(&hoards[i], bed, bed_connect(bed, server_url(bed->server), NULL), &options);
  }
  for (int i = 0; i < 4; i++) {
    hauls[i] = haul_new(&hoards[i % 2]);
    assert_error(begin_haul(hauls[i], keys, N), 0);
  }
  for (int i = 0; i < 4; i++)
    assert_error(end_of_haul(hauls[i]), 0);
  for (size_t k = 0; k < N; k++)
    for (int i = 1; i < 4; i++)
      assert_string_equal(hauls[i]->data[k], hauls[0]->data[k]);
  assert_int_equal(hoards[0].loaded + hoards[1].loaded, N);
  for (int i = 0; i < 4; i++)
    haul_free(hauls[i]);
  bed_until(bed, hoards[0].timers + hoards[1].timers == 0);
}

BED_TEST(with_a_table) {
  static const char *const keys[] = {"a", "b", "c"};
  hoard_t hoard = {0};
  belay_cache_options_t options = batch_options(&hoard);
  options.local_bytes = 100000;
  options.local_ttl_ms = 60000;
  hoard_new(&hoard, bed, &options);
  haul_t *haul = haul_new(&hoard);
  assert_error(begin_haul(haul, keys, 2), 0);
  assert_error(end_of_haul(haul), 0);
  bed_until(bed, hoard_stats(&hoard).local_entries == 2);
  bed_settle(bed);
  int64_t gets = server_calls(bed->server, "get");
  assert_error(begin_haul(haul, keys, 2), 0); /* all of them */
  assert_error(end_of_haul(haul), 0);
  expect_hauled(haul, 0, "a#1", BELAY_CACHE_FROM_LOCAL);
  expect_hauled(haul, 1, "b#2", BELAY_CACHE_FROM_LOCAL);
  assert_int_equal(server_calls(bed->server, "get"), gets);
  assert_error(begin_haul(haul, keys, 3), 0); /* some */
  assert_error(end_of_haul(haul), 0);
  expect_hauled(haul, 0, "a#1", BELAY_CACHE_FROM_LOCAL);
  expect_hauled(haul, 2, "c#3", BELAY_CACHE_FROM_LOAD);
  bed_until(bed, hoard_stats(&hoard).loading == 0);
  expect_invalidate(&hoard, "b");
  assert_error(begin_haul(haul, keys, 3), 0); /* in the middle */
  assert_error(end_of_haul(haul), 0);
  expect_hauled(haul, 0, "a#1", BELAY_CACHE_FROM_LOCAL);
  expect_hauled(haul, 1, "b#4", BELAY_CACHE_FROM_LOAD);
  expect_hauled(haul, 2, "c#3", BELAY_CACHE_FROM_LOCAL);
  assert_int_equal(hoard_stats(&hoard).local_hits, 2 + 2 + 2);
  haul_free(haul);
}

/* "TAG.KEY" */
static size_t tags_of(const char *key, size_t key_len, belay_bytes_t tags[BELAY_CACHE_TAGS_MAX],
                      void *arg) {
  (void)arg;
  const char *dot = memchr(key, '.', key_len);
  if (dot == NULL)
    return 0;
  tags[0] = (belay_bytes_t){key, (size_t)(dot - key)};
  tags[1] = (belay_bytes_t){"all", 3};
  return 2;
}

BED_TEST(with_tags) {
  static const char *const keys[] = {"red.1", "none", "blue.1", "red.2", "blue.2"};
  hoard_t hoard = {0};
  belay_cache_options_t options = batch_options(&hoard);
  options.tags = tags_of;
  hoard_new(&hoard, bed, &options);
  haul_t *haul = haul_new(&hoard);
  for (int i = 0; i < 2; i++) {
    assert_error(begin_haul(haul, keys, 5), 0);
    assert_error(end_of_haul(haul), 0);
    expect_hauled(haul, 0, "red.1#1", i ? BELAY_CACHE_FROM_SERVER : BELAY_CACHE_FROM_LOAD);
    bed_until(bed, hoard_stats(&hoard).loading == 0);
  }
  expect_invalidate_tag(&hoard, "red");
  assert_error(begin_haul(haul, keys, 5), 0);
  assert_error(end_of_haul(haul), 0);
  expect_hauled(haul, 0, "red.1#6", BELAY_CACHE_FROM_LOAD);
  expect_hauled(haul, 1, "none#2", BELAY_CACHE_FROM_SERVER);
  expect_hauled(haul, 2, "blue.1#3", BELAY_CACHE_FROM_SERVER);
  expect_hauled(haul, 3, "red.2#7", BELAY_CACHE_FROM_LOAD);
  expect_hauled(haul, 4, "blue.2#5", BELAY_CACHE_FROM_SERVER);
  bed_until(bed, hoard_stats(&hoard).loading == 0);
  expect_invalidate_tag(&hoard, "all");
  assert_error(begin_haul(haul, keys, 5), 0);
  assert_error(end_of_haul(haul), 0);
  assert_int_equal(hoard.batch, 4);
  expect_hauled(haul, 1, "none#2", BELAY_CACHE_FROM_SERVER);
  expect_hauled(haul, 4, "blue.2#11", BELAY_CACHE_FROM_LOAD);
  bed_until(bed, hoard_stats(&hoard).loading == 0);
  bed_settle(bed);
  expect_ttls(bed->server);
  haul_free(haul);
}

/* ---- each for itself ---------------------------------------------------------------------------------------- */

TEST(each_has_its_own_status) {
  needs_one_process("loads in the order of the keys");
  static const char *const keys[] = {"value", "absent", "broken", "list", "big"};
  bed_t *bed = bed_open(NULL);
  hoard_t hoard = {.loading = LOADING_BY_HAND};
  belay_cache_options_t options = batch_options(&hoard);
  options.max_value_bytes = 10;
  hoard_new(&hoard, bed, &options);
  server_do(bed->server, "RPUSH", "belay::cache::pages::{list}", "x", NULL);
  haul_t *haul = haul_new(&hoard);
  assert_error(begin_haul(haul, keys, 5), 0);
  bed_until(bed, hoard.held == 4);
  assert_int_equal(hoard.batches, 1);
  assert_error(hand_over(&hoard, "value"), 0);
  assert_error(hand_absent(&hoard), 0);
  assert_error(hand_failure(&hoard, 99), 0);
  assert_error(hand_over(&hoard, "12345678901"), BELAY_EOVERFLOW);
  assert_error(end_of_haul(haul), 0);
  expect_hauled(haul, 0, "value", BELAY_CACHE_FROM_LOAD);
  expect_not_hauled(haul, 1, BELAY_EABSENT);
  assert_int_equal(haul->results[1].from, BELAY_CACHE_FROM_LOAD);
  expect_not_hauled(haul, 2, BELAY_ELOAD);
  assert_int_equal(haul->results[2].load_error, 99);
  expect_not_hauled(haul, 3, BELAY_EWRONGTYPE);
  expect_not_hauled(haul, 4, BELAY_ELOAD);
  assert_int_equal(haul->results[4].load_error, BELAY_EOVERFLOW);
  haul_free(haul);
  bed_close(bed);
}

/* Nobody waits for that. */
BED_TEST(what_is_stale_is_refreshed) {
  static const char *const keys[] = {"a", "b", "a"};
  hoard_t hoard = {.loading = LOADING_BY_HAND};
  belay_cache_options_t options = batch_options(&hoard);
  options.ttl_ms = 30;
  options.stale_ms = 60000;
  hoard_new(&hoard, bed, &options);
  expect_put(&hoard, "a", "old", true);
  expect_put(&hoard, "b", "old", true);
  bed_run_for(bed, 40);
  haul_t *haul = haul_new(&hoard);
  assert_error(begin_haul(haul, keys, 3), 0);
  assert_error(end_of_haul(haul), 0);
  for (size_t i = 0; i < 3; i++) {
    assert_error(haul->results[i].status, 0);
    assert_true(haul->results[i].stale);
    assert_int_equal(haul->results[i].reason, 0);
    assert_string_equal(haul->data[i], "old");
  }
  bed_until(bed, hoard.held == 2);
  assert_int_equal(hoard_stats(&hoard).refreshes, 2);
  assert_int_equal(hoard_stats(&hoard).stale_served, 3);
  assert_int_equal(hoard_stats(&hoard).misses, 0);
  assert_error(hand_over(&hoard, "new"), 0);
  assert_error(hand_over(&hoard, "new"), 0);
  bed_until(bed, hoard_stats(&hoard).fills == 4);
  haul_free(haul);
}
