/* Many keys at once: early ends and refused calls. */
#include "support/fixtures/cache/hauls.h"

BED_TEST(its_time_is_over) {
  static const char *const keys[] = {"there", "slow", "slower"};
  hoard_t hoard = {.loading = LOADING_BY_HAND};
  belay_cache_options_t options = batch_options(&hoard);
  hoard_new(&hoard, bed, &options);
  expect_put(&hoard, "there", "put", true);
  haul_t *haul = haul_new(&hoard);
  haul->request.timeout_ms = 60;
  int64_t began = clock_now();
  assert_error(begin_haul(haul, keys, 3), 0);
  bed_until(bed, hoard.held == 2);
  assert_error(hand_over(&hoard, "in time"), 0);
  assert_error(end_of_haul(haul), 0);
  assert_true(clock_since_ms(began) >= 59);
  expect_hauled(haul, 0, "put", BELAY_CACHE_FROM_SERVER);
  expect_hauled(haul, 1, "in time", BELAY_CACHE_FROM_LOAD);
  expect_not_hauled(haul, 2, BELAY_ETIMEDOUT);
  assert_error(hand_over(&hoard, "too late"), 0); /* but not for the next one */
  bed_until(bed, hoard_stats(&hoard).loading == 0);
  expect_cached(&hoard, "slower", "too late", BELAY_CACHE_FROM_SERVER);
  haul_free(haul);
}

BED_TEST(it_is_canceled) {
  static const char *const keys[] = {"a", "b"};
  hoard_t hoard = {.loading = LOADING_BY_HAND};
  belay_cache_options_t options = batch_options(&hoard);
  hoard_new(&hoard, bed, &options);
  haul_t *haul = haul_new(&hoard), *other = haul_new(&hoard);
  assert_error(begin_haul(haul, keys, 2), 0);
  assert_error(begin_haul(haul, keys, 2), BELAY_ESTATE);
  assert_error(belay_request_cancel(&haul->request), 0); /* while it looks */
  assert_error(end_of_haul(haul), BELAY_ECANCELED);
  assert_error(begin_haul(haul, keys, 2), 0);
  assert_error(begin_haul(other, keys, 2), 0);
  bed_until(bed, hoard.held == 2 && hoard_stats(&hoard).joined == 2);
  assert_error(belay_request_cancel(&haul->request), 0); /* while it waits */
  assert_error(end_of_haul(haul), BELAY_ECANCELED);
  assert_int_equal(other->ended, 0);
  assert_error(hand_over(&hoard, "a"), 0);
  assert_error(hand_over(&hoard, "b"), 0);
  assert_error(end_of_haul(other), 0);
  expect_hauled(other, 0, "a", BELAY_CACHE_FROM_LOAD);
  expect_hauled(other, 1, "b", BELAY_CACHE_FROM_LOAD);
  haul_free(haul);
  haul_free(other);
}

BED_TEST(the_cache_closes) {
  static const char *const keys[] = {"there", "a", "b"};
  hoard_t hoard = {.loading = LOADING_BY_HAND};
  belay_cache_options_t options = batch_options(&hoard);
  options.local_bytes = 10000;
  hoard_new(&hoard, bed, &options);
  expect_put(&hoard, "there", "put", true);
  expect_cached(&hoard, "there", "put", BELAY_CACHE_FROM_SERVER);
  haul_t *haul = haul_new(&hoard), *looking = haul_new(&hoard);
  assert_error(begin_haul(haul, keys, 3), 0);
  bed_until(bed, hoard.held == 2);
  assert_error(begin_haul(looking, keys, 3), 0);
  assert_error(begin_close_hoard(&hoard), 0);
  assert_error(end_of_haul(haul), BELAY_ECANCELED);
  assert_error(end_of_haul(looking), BELAY_ECANCELED);
  bed_until(bed, hoard.closed == 1);
  assert_error(hand_over(&hoard, "a"), 0);
  assert_error(hand_failure(&hoard, 1), 0);
  haul_free(haul);
  haul_free(looking);
}

/* A server that refuses the user is not an empty server, also if that is known before sending. */
BED_TEST(the_server_lets_nobody_in) {
  static const char *const keys[] = {"there", "nowhere"};
  hoard_t hoard = {0};
  belay_cache_options_t options = batch_options(&hoard);
  options.away = BELAY_CACHE_AWAY_STALE;
  options.local_bytes = 1 << 20;
  options.local_ttl_ms = 1;
  hoard_new(&hoard, bed, &options);
  expect_put(&hoard, "there", "put", true);
  expect_cached(&hoard, "there", "put", BELAY_CACHE_FROM_SERVER);
  bed_settle(bed);
  server_do(bed->server, "CONFIG", "SET", "requirepass", "another", NULL);
  server_do(bed->server, "CLIENT", "KILL", "SKIPME", "yes", NULL);
  haul_t *haul = haul_new(&hoard);
  for (int i = 0; i < 3; i++) {
    bed_run_for(bed, 5); /* the table's is over */
    assert_error(begin_haul(haul, keys, 2), 0);
    assert_error(end_of_haul(haul), 0);
    assert_string_equal(haul->data[0], "put");
    assert_int_equal(haul->results[0].from, BELAY_CACHE_FROM_LOCAL);
    assert_true(haul->results[0].stale);
    expect_not_hauled(haul, 1, BELAY_EAUTH);
  }
  assert_int_equal(hoard_stats(&hoard).away, 6);
  assert_int_equal(hoard_stats(&hoard).misses, 0);
  assert_int_equal(hoard.loaded, 0);
  haul_free(haul);
}

BED_TEST(what_is_refused) {
  static char big[BELAY_CACHE_KEY_MAX + 1];
  static belay_bytes_t keys[HAUL_MAX + 1];
  hoard_t hoard = {0};
  belay_cache_options_t options = batch_options(&hoard);
  hoard_new(&hoard, bed, &options);
  haul_t *haul = haul_new(&hoard);
  memset(big, 'x', sizeof big);
  for (size_t i = 0; i <= HAUL_MAX; i++)
    keys[i] = (belay_bytes_t){"k", 1};
  assert_error(begin_haul_bytes(haul, keys, 0), BELAY_EINVAL);
  assert_error(begin_haul_bytes(haul, keys, HAUL_MAX + 1), BELAY_EINVAL);
  assert_error(begin_haul_bytes(haul, keys, SIZE_MAX), BELAY_EINVAL);
  assert_error(begin_haul_bytes(haul, NULL, 1), BELAY_EINVAL);
  keys[2] = (belay_bytes_t){"", 0};
  assert_error(begin_haul_bytes(haul, keys, 3), BELAY_EINVAL);
  keys[2] = (belay_bytes_t){NULL, 1};
  assert_error(begin_haul_bytes(haul, keys, 3), BELAY_EINVAL);
  keys[2] = (belay_bytes_t){big, sizeof big};
  assert_error(begin_haul_bytes(haul, keys, 3), BELAY_EINVAL);
  keys[2].len--;
  assert_error(begin_haul_bytes(haul, keys, 3), 0);
  assert_error(end_of_haul(haul), 0);
  assert_int_equal(haul->results[2].status, 0);
  assert_int_equal(haul->results[2].len, BELAY_CACHE_KEY_MAX + 2);
  assert_int_equal(hoard_stats(&hoard).gets, 3);
  haul_free(haul);
}
