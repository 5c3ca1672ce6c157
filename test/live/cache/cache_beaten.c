/* A load loses what it depends on: scripts, the generation, the lease, memory, the server. */
#include "support/fixtures/cache/caches.h"

#define KEY "belay::cache::pages::{home}"
#define GENERATION KEY "::gen"
#define LEASE KEY "::lease"

/* ---- what a load stands on goes ------------------------------------------------------------------------ */

static void await_load(hoard_t *hoard) {
  bed_until(hoard->bed, hoard->held == 1);
}

static void begin_load(hoard_t *hoard, fetch_t *fetch) {
  assert_int_equal(begin_cache_get(hoard, fetch, "home"), 0);
  await_load(hoard);
}

static void expect_got(fetch_t *fetch, const char *value) {
  assert_int_equal(end_of_fetch(fetch), 0);
  assert_string_equal(fetch->data, value);
  fetch_free(fetch);
}

BED_TEST(scripts_are_forgotten) {
  hoard_t hoard = {.loading = LOADING_BY_HAND};
  hoard_new(&hoard, bed, NULL);
  for (int i = 0; i < 3; i++) {
    fetch_t fetch = {0};
    server_do(bed->server, "SCRIPT", "FLUSH", NULL);
    begin_load(&hoard, &fetch);
    server_do(bed->server, "SCRIPT", "FLUSH", NULL);
    assert_int_equal(i == 0 ? hand_over(&hoard, "a") : hand_failure(&hoard, 7), 0);
    assert_int_equal(end_of_fetch(&fetch), i == 0 ? 0 : BELAY_ELOAD);
    fetch_free(&fetch);
    bed_settle(bed);
    server_do(bed->server, "SCRIPT", "FLUSH", NULL);
    if (i == 0)
      expect_cached(&hoard, "home", "a", BELAY_CACHE_FROM_SERVER);
    expect_put(&hoard, "home", "b", true);
    server_do(bed->server, "SCRIPT", "FLUSH", NULL);
    expect_touch(&hoard, "home", 60000, true);
    expect_cached(&hoard, "home", "b", BELAY_CACHE_FROM_SERVER);
    expect_invalidate(&hoard, "home");
  }
  assert_int_equal(hoard_stats(&hoard).refused_fills, 0);
}

static size_t tag_home(const char *key, size_t key_len, belay_bytes_t tags[BELAY_CACHE_TAGS_MAX],
                       void *arg) {
  (void)key, (void)key_len, (void)arg;
  tags[0] = (belay_bytes_t){"site", 4};
  return 1;
}

typedef enum blow { FLUSHED, EVICTED, EXPIRED, INVALIDATED, UNTAGGED, BLOWS } blow_t;

static void strike(hoard_t *hoard, blow_t blow) {
  server_t *server = hoard->bed->server;
  switch (blow) {
  case FLUSHED:
    server_do(server, "FLUSHALL", NULL);
    break;
  case EVICTED:
    assert_int_equal(server_integer(server, "DEL", GENERATION, NULL), 1);
    break;
  case EXPIRED:
    assert_int_equal(server_integer(server, "PEXPIRE", GENERATION, "1", NULL), 1);
    stall_ms(5);
    break;
  case INVALIDATED:
    expect_invalidate(hoard, "home");
    break;
  default:
    expect_invalidate_tag(hoard, "site");
    break;
  }
}

/* Gets from before the loss are served by the first load, later gets by the next one. */
TEST(what_a_load_stands_on_goes) {
  for (blow_t blow = FLUSHED; blow < BLOWS; blow++) {
    bed_t *bed = bed_open(NULL);
    hoard_t hoard = {.loading = LOADING_BY_HAND};
    fetch_t early = {0}, late = {0};
    belay_cache_result_t result;
    belay_cache_options_t options = cache_options(&hoard);
    options.local_bytes = 1 << 20;
    options.local_ttl_ms = 60000;
    options.tags = blow == UNTAGGED ? tag_home : NULL;
    hoard_new(&hoard, bed, &options);
    begin_load(&hoard, &early);
    strike(&hoard, blow);
    assert_int_equal(begin_cache_get(&hoard, &late, "home"), 0);
    bed_until(bed, hoard_stats(&hoard).joined == 1);
    assert_int_equal(hand_over(&hoard, "old"), 0);
    expect_got(&early, "old");
    await_load(&hoard);
    assert_int_equal(late.ended, 0);
    assert_int_equal(hoard.loaded, 2);
    assert_int_equal(hoard_stats(&hoard).refused_fills, blow != UNTAGGED);
    if (blow != UNTAGGED)
      assert_int_equal(server_integer(bed->server, "EXISTS", KEY, NULL), 0);
    assert_int_equal(belay_cache_peek(hoard.cache, belay_string("home"), &result), BELAY_EAGAIN);
    assert_int_equal(hand_over(&hoard, "new"), 0);
    expect_got(&late, "new");
    bed_until(bed, hoard_stats(&hoard).loading == 0);
    assert_int_equal(belay_cache_peek(hoard.cache, belay_string("home"), &result), 0);
    assert_memory_equal(result.data, "new", 3);
    bed_close(bed);
  }
}

/* Without such gets the value is not stored either. */
TEST(what_is_not_good_any_more_is_not_served_later) {
  for (blow_t blow = FLUSHED; blow < BLOWS; blow++) {
    bed_t *bed = bed_open(NULL);
    hoard_t hoard = {.loading = LOADING_BY_HAND};
    fetch_t early = {0}, late = {0};
    belay_cache_options_t options = cache_options(&hoard);
    options.local_bytes = 1 << 20;
    options.tags = blow == UNTAGGED ? tag_home : NULL;
    hoard_new(&hoard, bed, &options);
    begin_load(&hoard, &early);
    strike(&hoard, blow);
    assert_int_equal(hand_over(&hoard, "old"), 0);
    expect_got(&early, "old");
    bed_until(bed, hoard_stats(&hoard).loading == 0);
    begin_load(&hoard, &late);
    assert_int_equal(hand_over(&hoard, "new"), 0);
    expect_got(&late, "new");
    bed_settle(bed);
    expect_cached(&hoard, "home", "new", BELAY_CACHE_FROM_LOCAL);
    bed_close(bed);
  }
}

BED_TEST(a_put_beats_a_load) {
  hoard_t hoard = {.loading = LOADING_BY_HAND};
  fetch_t early = {0};
  hoard_new(&hoard, bed, NULL);
  begin_load(&hoard, &early);
  expect_put(&hoard, "home", "put", true);
  expect_cached(&hoard, "home", "put", BELAY_CACHE_FROM_SERVER); /* does not wait */
  assert_int_equal(hand_over(&hoard, "old"), 0);
  expect_got(&early, "old");
  bed_settle(bed);
  assert_int_equal(hoard_stats(&hoard).refused_fills, 1);
  expect_cached(&hoard, "home", "put", BELAY_CACHE_FROM_SERVER);
}

/* A failed load ends no other load. */
BED_TEST(a_failure_after_an_invalidation_is_not_kept) {
  hoard_t hoard = {.loading = LOADING_BY_HAND};
  fetch_t early = {0}, late = {0};
  belay_cache_options_t options = cache_options(&hoard);
  options.error_ms = 60000;
  hoard_new(&hoard, bed, &options);
  begin_load(&hoard, &early);
  expect_invalidate(&hoard, "home");
  assert_int_equal(hand_failure(&hoard, 7), 0);
  assert_int_equal(end_of_fetch(&early), BELAY_ELOAD);
  bed_until(bed, hoard_stats(&hoard).loading == 0);
  begin_load(&hoard, &late);
  assert_int_equal(hand_over(&hoard, "new"), 0);
  expect_got(&late, "new");
}

/* ---- the lease goes ------------------------------------------------------------------------------------ */

BED_TEST(the_lease_is_lost_in_the_middle) {
  hoard_t one = {.loading = LOADING_BY_HAND}, two = {.loading = LOADING_BY_HAND};
  fetch_t first = {0}, second = {0};
  hoard_new(&one, bed, NULL);
  hoard_of(&two, bed, bed_connect(bed, server_url(bed->server), NULL), NULL);
  begin_load(&one, &first);
  assert_int_equal(begin_cache_get(&two, &second, "home"), 0);
  bed_until(bed, hoard_stats(&two).waits == 1);
  assert_int_equal(two.loaded, 0);
  assert_int_equal(server_integer(bed->server, "DEL", LEASE, NULL), 1);
  await_load(&two);
  assert_int_equal(hand_over(&one, "one"), 0);
  expect_got(&first, "one");
  bed_until(bed, hoard_stats(&one).loading == 0);
  assert_int_equal(hoard_stats(&one).refused_fills, 1);
  assert_int_equal(hand_over(&two, "two"), 0);
  expect_got(&second, "two");
  bed_settle(bed);
  expect_cached(&one, "home", "two", BELAY_CACHE_FROM_SERVER);
  assert_int_equal(one.loaded + two.loaded, 2);
}

/* ---- no memory ----------------------------------------------------------------------------------------- */

static void set_maxmemory(bed_t *bed, const char *bytes) {
  server_do(bed->server, "CONFIG", "SET", "maxmemory", bytes, NULL);
}

TEST(the_server_has_no_memory) {
  for (int lock = 0; lock < 2; lock++) {
    bed_t *bed = bed_open(NULL);
    hoard_t hoard = {0};
    belay_cache_options_t options = cache_options(&hoard);
    options.lock = lock == 1;
    hoard_new(&hoard, bed, &options);
    set_maxmemory(bed, "1");
    expect_no_value(&hoard, "home", BELAY_EOOM); /* it is no miss */
    assert_int_equal(hoard.loaded, 0);
    set_maxmemory(bed, "0");
    hoard.loading = LOADING_BY_HAND;
    fetch_t fetch = {0};
    begin_load(&hoard, &fetch);
    set_maxmemory(bed, "1");
    assert_int_equal(hand_over(&hoard, "full"), 0);
    expect_got(&fetch, "full"); /* it was loaded */
    bed_until(bed, hoard_stats(&hoard).loading == 0);
    assert_int_equal(hoard_stats(&hoard).fills, 0);
    assert_int_equal(server_integer(bed->server, "EXISTS", KEY, NULL), 0);
    set_maxmemory(bed, "0");
    hoard.loading = LOADING_AT_ONCE;
    expect_cached(&hoard, "home", "home#2", BELAY_CACHE_FROM_LOAD);
    bed_settle(bed);
    expect_cached(&hoard, "home", "home#2", BELAY_CACHE_FROM_SERVER);
    bed_close(bed);
  }
}

/* ---- a restart ----------------------------------------------------------------------------------------- */

TEST(the_server_is_restarted_in_the_middle) {
  belay_client_options_t client = client_options();
  client.reconnect_max_ms = 20;
  client.timeout_ms = 5000 * slow();
  bed_t *bed = bed_open(&client);
  hoard_t one = {.loading = LOADING_BY_HAND}, two = {.loading = LOADING_BY_HAND};
  fetch_t first = {0}, second = {0}, third = {0};
  hoard_new(&one, bed, NULL);
  hoard_of(&two, bed, bed_connect(bed, server_url(bed->server), &client), NULL);
  begin_load(&one, &first);
  assert_int_equal(begin_cache_get(&two, &second, "home"), 0);
  bed_until(bed, hoard_stats(&two).waits == 1);
  server_kill(bed->server);
  server_restart(bed->server); /* the value is lost */
  await_load(&two);
  assert_int_equal(begin_cache_get(&one, &third, "home"), 0); /* not by the earlier load */
  bed_until(bed, hoard_stats(&one).joined == 1);
  assert_int_equal(hand_over(&one, "one"), 0);
  expect_got(&first, "one");
  assert_int_equal(hand_over(&two, "two"), 0);
  expect_got(&second, "two");
  expect_got(&third, "two");
  assert_int_equal(one.loaded + two.loaded, 2);
  expect_cached(&one, "home", "two", BELAY_CACHE_FROM_SERVER);
  bed_close(bed);
}
