/* Tags of a cache: an invalidated tag invalidates its keys, also during their load. */
#include <stdio.h>

#include "cache/load_state.h"
#include "support/fixtures/cache/caches.h"
#include "support/models/scripts.h"

#define TAG_KEY(tag) "belay::cache::pages::{" tag "}::tag"
#define KEY(key) "belay::cache::pages::{" key "}"

/* The words of the key are its tags: "shop red" has two. "n:9" has 9, "long" one that is too long. */
static size_t words(const char *key, size_t key_len, belay_bytes_t tags[BELAY_CACHE_TAGS_MAX],
                    void *arg) {
  static char bytes[BELAY_CACHE_TAG_MAX + 1];
  size_t n = 0, from = 0;
  (void)arg;
  if (key_len == 3 && memcmp(key, "n:", 2) == 0) {
    n = (size_t)(key[2] - '0');
    for (size_t i = 0; i < n && i < BELAY_CACHE_TAGS_MAX; i++)
      tags[i] = (belay_bytes_t){&"abcdefgh"[i], 1};
    return n;
  }
  if (key_len == 4 && memcmp(key, "long", 4) == 0) {
    memset(bytes, 'x', sizeof bytes);
    tags[0] = (belay_bytes_t){bytes, sizeof bytes};
    return 1;
  }
  for (size_t i = 0; i <= key_len && n < BELAY_CACHE_TAGS_MAX; i++)
    if (i == key_len || key[i] == ' ') {
      tags[n++] = (belay_bytes_t){key + from, i - from};
      from = i + 1;
    }
  return n;
}

static belay_cache_options_t tag_options(hoard_t *hoard) {
  belay_cache_options_t options = cache_options(hoard);
  options.tags = words;
  return options;
}

static belay_cache_options_t local_options(hoard_t *hoard) {
  belay_cache_options_t options = tag_options(hoard);
  options.local_bytes = 1000000;
  options.local_ttl_ms = 60000;
  return options;
}

static int peek(hoard_t *hoard, const char *key) {
  belay_cache_result_t result;
  return belay_cache_peek(hoard->cache, belay_string(key), &result);
}

/* ---- one thing after the other --------------------------------------------------------------------------- */

BED_TEST(all_that_have_it_go) {
  enum { N = 40 };
  hoard_t hoard = {.value = "v"};
  belay_cache_options_t options = tag_options(&hoard);
  hoard_new(&hoard, bed, &options);
  char key[32];
  for (int round = 1; round <= 2; round++) {
    for (int i = 0; i < 2 * N; i++) {
      snprintf(key, sizeof key, "%s %d", i < N ? "shop" : "blog", i);
      expect_cached(&hoard, key, "v",
                    round == 1 || i < N ? BELAY_CACHE_FROM_LOAD : BELAY_CACHE_FROM_SERVER);
    }
    assert_int_equal(hoard.loaded, round == 1 ? 2 * N : 3 * N);
    expect_invalidate_tag(&hoard, "shop");
  }
}

BED_TEST(any_of_several) {
  static const char *const tags[] = {"shop", "red", "shoes"};
  hoard_t hoard = {0};
  belay_cache_options_t options = tag_options(&hoard);
  hoard_new(&hoard, bed, &options);
  expect_cached(&hoard, "shop red shoes", "shop red shoes#1", BELAY_CACHE_FROM_LOAD);
  for (unsigned i = 0; i < 3; i++) {
    char value[32];
    expect_invalidate_tag(&hoard, tags[i]);
    snprintf(value, sizeof value, "shop red shoes#%u", i + 2);
    expect_cached(&hoard, "shop red shoes", value, BELAY_CACHE_FROM_LOAD);
    expect_cached(&hoard, "shop red shoes", value, BELAY_CACHE_FROM_SERVER);
  }
  expect_invalidate_tag(&hoard, "blue");
  expect_cached(&hoard, "shop red shoes", "shop red shoes#4", BELAY_CACHE_FROM_SERVER);
  expect_put(&hoard, "shop red shoes", "put", true);
  expect_cached(&hoard, "shop red shoes", "put", BELAY_CACHE_FROM_SERVER);
  expect_invalidate_tag(&hoard, "red");
  expect_cached(&hoard, "shop red shoes", "shop red shoes#5", BELAY_CACHE_FROM_LOAD);
}

/* How many there are at the most, and how long they may be. */
BED_TEST(how_many) {
  static const struct {
    const char *key;
    int64_t tags;
  } rows[] = {{"n:0", 0}, {"n:1", 1}, {"n:8", 8}, {"n:9", 8}, {"long", 1}};
  hoard_t hoard = {.value = "v"};
  belay_cache_options_t options = tag_options(&hoard);
  hoard_new(&hoard, bed, &options);
  char longest[BELAY_CACHE_TAG_MAX + 1] = {0};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    server_do(bed->server, "FLUSHALL", NULL);
    expect_cached(&hoard, rows[i].key, "v", BELAY_CACHE_FROM_LOAD);
    expect_cached(&hoard, rows[i].key, "v", BELAY_CACHE_FROM_SERVER);
    bed_settle(bed);
    assert_int_equal(server_keys(bed->server), 1 + rows[i].tags);
    expect_ttls(bed->server);
  }
  memset(longest, 'x', BELAY_CACHE_TAG_MAX);
  expect_invalidate_tag(&hoard, longest); /* the tag that was cut */
  expect_cached(&hoard, "long", "v", BELAY_CACHE_FROM_LOAD);
  for (const char *last = "ah"; *last != '\0'; last++) {
    expect_cached(&hoard, "n:9", "v", BELAY_CACHE_FROM_LOAD);
    expect_invalidate_tag(&hoard, (const char[]){*last, '\0'});
  }
}

BED_TEST(what_does_not_exist_and_what_fails) {
  hoard_t hoard = {.absent = true};
  belay_cache_options_t options = local_options(&hoard);
  options.absent_ms = options.error_ms = 60000;
  hoard_new(&hoard, bed, &options);
  for (unsigned i = 1; i <= 2; i++) {
    expect_no_value(&hoard, "shop ghost", BELAY_EABSENT);
    expect_no_value(&hoard, "shop ghost", BELAY_EABSENT);
    assert_int_equal(hoard.loaded, i);
    expect_invalidate_tag(&hoard, "shop");
  }
  hoard.absent = false;
  hoard.error = 7;
  for (unsigned i = 3; i <= 4; i++) {
    expect_no_value(&hoard, "shop ghost", BELAY_ELOAD);
    expect_no_value(&hoard, "shop ghost", BELAY_ELOAD);
    assert_int_equal(hoard.loaded, i);
    expect_invalidate_tag(&hoard, "shop");
  }
  hoard.error = 0;
  expect_cached(&hoard, "shop ghost", "shop ghost#5", BELAY_CACHE_FROM_LOAD);
}

/* ---- what becomes of a tag's key --------------------------------------------------------------------------- */

BED_TEST(a_tag_that_was_forgotten) {
  hoard_t hoard = {0};
  belay_cache_options_t options = tag_options(&hoard);
  hoard_new(&hoard, bed, &options);
  expect_cached(&hoard, "shop red", "shop red#1", BELAY_CACHE_FROM_LOAD);
  server_do(bed->server, "DEL", TAG_KEY("red"), NULL); /* evicted */
  expect_cached(&hoard, "shop red", "shop red#2", BELAY_CACHE_FROM_LOAD);
  server_do(bed->server, "PEXPIRE", TAG_KEY("shop"), "1", NULL);
  bed_run_for(bed, 5);
  expect_cached(&hoard, "shop red", "shop red#3", BELAY_CACHE_FROM_LOAD);
  expect_cached(&hoard, "shop red", "shop red#3", BELAY_CACHE_FROM_SERVER);
}

BED_TEST(a_tag_of_somebody_else) {
  hoard_t hoard = {0};
  belay_cache_options_t options = tag_options(&hoard);
  options.away = BELAY_CACHE_AWAY_LOAD; /* it is not away */
  hoard_new(&hoard, bed, &options);
  change_t change = {0};
  expect_cached(&hoard, "shop", "shop#1", BELAY_CACHE_FROM_LOAD);
  server_do(bed->server, "DEL", TAG_KEY("shop"), NULL);
  server_do(bed->server, "RPUSH", TAG_KEY("shop"), "x", NULL);
  expect_no_value(&hoard, "shop", BELAY_EWRONGTYPE);
  assert_int_equal(begin_put(&hoard, &change, "shop", "v"), 0);
  assert_int_equal(end_of_change(&change), BELAY_EWRONGTYPE);
  expect_invalidate_tag(&hoard, "shop");
  expect_cached(&hoard, "shop", "shop#2", BELAY_CACHE_FROM_LOAD);
  server_do(bed->server, "SET", TAG_KEY("shop"), "not of 16 bytes", "PX", "60000", NULL);
  expect_no_value(&hoard, "shop", BELAY_EMISMATCH);
  assert_int_equal(begin_put(&hoard, &change, "shop", "v"), 0);
  assert_int_equal(end_of_change(&change), BELAY_EMISMATCH);
  assert_int_equal(hoard.loaded, 2);
  expect_invalidate_tag(&hoard, "shop");
  expect_cached(&hoard, "shop", "shop#3", BELAY_CACHE_FROM_LOAD);
}

static int64_t pttl(bed_t *bed, const char *key) {
  return server_integer(bed->server, "PTTL", key, NULL);
}

/* Or else what was invalidated could come back: its generation is not known any more. */
BED_TEST(it_outlives_what_has_it) {
  hoard_t hoard = {.value = "v"};
  belay_cache_options_t options = tag_options(&hoard);
  options.ttl_ms = 50000;
  options.keep_ms = 400000000;
  options.absent_ms = INT64_C(5000000000);
  options.error_ms = INT64_C(9000000000);
  hoard_new(&hoard, bed, &options);
  expect_cached(&hoard, "shop", "v", BELAY_CACHE_FROM_LOAD);
  assert_true(pttl(bed, TAG_KEY("shop")) > pttl(bed, KEY("shop")));
  hoard.absent = true;
  expect_no_value(&hoard, "blog", BELAY_EABSENT);
  assert_true(pttl(bed, TAG_KEY("blog")) > pttl(bed, KEY("blog")));
  hoard.error = 1;
  expect_no_value(&hoard, "wiki", BELAY_ELOAD);
  assert_true(pttl(bed, KEY("wiki")) > INT64_C(8000000000));
  assert_true(pttl(bed, TAG_KEY("wiki")) > pttl(bed, KEY("wiki")));
  int64_t before = pttl(bed, TAG_KEY("shop"));
  change_t change = {.hoard = &hoard, .begun = 1};
  change.request.data = &change;
  hoard.pending++;
  assert_int_equal(belay_cache_put(hoard.cache, &change.request, belay_string("shop"),
                                   belay_string("w"), INT64_C(20000000000), on_changed),
                   0);
  assert_int_equal(end_of_change(&change), 0);
  assert_true(pttl(bed, TAG_KEY("shop")) > pttl(bed, KEY("shop")));
  assert_true(pttl(bed, TAG_KEY("shop")) > before);
  expect_touch(&hoard, "shop", INT64_C(31000000000), true);
  assert_true(pttl(bed, KEY("shop")) > INT64_C(31000000000));
  assert_true(pttl(bed, TAG_KEY("shop")) > pttl(bed, KEY("shop")));
  int64_t most = pttl(bed, TAG_KEY("shop"));
  hoard.absent = false;
  hoard.error = 0;
  expect_cached(&hoard, "shop red", "v", BELAY_CACHE_FROM_LOAD);
  assert_true(pttl(bed, TAG_KEY("shop")) > most - 5000); /* never less */
}

/* A value exists, but it is not served any more. */
BED_TEST(a_touch_does_not_find_what_was_invalidated) {
  hoard_t hoard = {.value = "v"};
  belay_cache_options_t options = tag_options(&hoard);
  hoard_new(&hoard, bed, &options);
  expect_cached(&hoard, "shop red", "v", BELAY_CACHE_FROM_LOAD);
  expect_touch(&hoard, "shop red", 60000, true);
  expect_invalidate_tag(&hoard, "red");
  expect_touch(&hoard, "shop red", 60000, false);
  expect_cached(&hoard, "shop red", "v", BELAY_CACHE_FROM_LOAD);
  expect_touch(&hoard, "shop red", 60000, true);
  expect_touch(&hoard, "shop", 60000, false); /* there is none */
}

/* ---- invalidated while it is loaded ------------------------------------------------------------------------- */

/* The cache subscribes with its first load. */
static void subscribe(hoard_t *hoard) {
  fetch_t fetch = {0};
  hoard->loading = LOADING_AT_ONCE;
  assert_int_equal(begin_cache_get(hoard, &fetch, "another"), 0);
  (void)end_of_fetch(&fetch);
  fetch_free(&fetch);
  bed_until(hoard->bed, belay__subscription_is_up(&hoard->cache->subscription));
  hoard->loading = LOADING_BY_HAND;
}

/* A loaded value is as old as the tags that were read before the load. It is stored, but later
 * gets are not served it. */
static void while_it_is_loaded(bool elsewhere, bool local) {
  bed_t *bed = bed_open(NULL);
  hoard_t here = {.loading = LOADING_BY_HAND}, there = {0};
  belay_cache_options_t options = local_options(&here), other = tag_options(&there);
  options.local_bytes = local ? 1000000 : 0;
  other.quiet = true; /* no message comes */
  hoard_new(&here, bed, &options);
  hoard_of(&there, bed, bed_connect(bed, server_url(bed->server), NULL), &other);
  fetch_t before = {0}, after = {0};
  if (local) /* the table keeps nothing of a load that began before the subscription */
    subscribe(&here);
  assert_int_equal(begin_cache_get(&here, &before, "shop red"), 0);
  bed_until(bed, here.held == 1);
  expect_invalidate_tag(elsewhere ? &there : &here, "red");
  assert_int_equal(begin_cache_get(&here, &after, "shop red"), 0);
  bed_until(bed, hoard_stats(&here).joined == 1);
  assert_int_equal(hand_over(&here, "old"), 0);
  assert_int_equal(end_of_fetch(&before), 0);
  assert_string_equal(before.data, "old"); /* it came before */
  bed_until(bed, here.held == 1);
  assert_int_equal(after.ended, 0);
  assert_int_equal(hoard_stats(&here).fills, 1 + local);
  fetch_t later = {0};
  assert_int_equal(begin_cache_get(&here, &later, "shop red"), 0);
  bed_until(bed, hoard_stats(&here).joined == 2 || later.ended);
  assert_int_equal(later.ended, elsewhere && local); /* a message was lost: see local_ttl_ms */
  assert_int_equal(hand_over(&here, "new"), 0);
  assert_int_equal(end_of_fetch(&after), 0);
  assert_string_equal(after.data, "new");
  assert_int_equal(end_of_fetch(&later), 0);
  assert_string_equal(later.data, elsewhere && local ? "old" : "new");
  assert_int_equal(here.loaded, 2 + local);
  fetch_free(&before);
  fetch_free(&after);
  fetch_free(&later);
  bed_close(bed);
}

TEST(while_it_is_loaded) {
  while_it_is_loaded(false, false);
  while_it_is_loaded(false, true);
  while_it_is_loaded(true, false);
  while_it_is_loaded(true, true);
}

/* The time for which the table may serve it counts from when the tags were captured, however long the load takes. */
BED_TEST(a_load_that_takes_longer_than_the_table_keeps) {
  hoard_t hoard = {.loading = LOADING_BY_HAND};
  belay_cache_options_t options = local_options(&hoard);
  options.local_ttl_ms = 20;
  hoard_new(&hoard, bed, &options);
  fetch_t fetch = {0};
  assert_int_equal(begin_cache_get(&hoard, &fetch, "shop"), 0);
  bed_until(bed, hoard.held == 1);
  bed_run_for(bed, 25);
  assert_int_equal(hand_over(&hoard, "v"), 0);
  assert_int_equal(end_of_fetch(&fetch), 0);
  bed_until(bed, hoard_stats(&hoard).fills == 1);
  assert_int_equal(peek(&hoard, "shop"), BELAY_EAGAIN);
  expect_cached(&hoard, "shop", "v", BELAY_CACHE_FROM_SERVER);
  fetch_free(&fetch);
}

/* Replies may come out of order where some of a look's calls are refused and sent again: a look that began earlier does not
 * bring back what a later one has found to be gone. */
BED_TEST(an_earlier_look) {
  hoard_t hoard = {.loading = LOADING_BY_HAND};
  belay_cache_options_t options = tag_options(&hoard);
  options.ttl_ms = 5;
  options.keep_ms = 60000;
  hoard_new(&hoard, bed, &options);
  for (int later = 0; later < 2; later++) {
    fetch_t first = {0}, second = {0};
    expect_put(&hoard, "shop", "old", true);
    bed_run_for(bed, 6);
    assert_int_equal(begin_cache_get(&hoard, &first, "shop"), 0);
    bed_until(bed, hoard.held == 1);
    belay__child_t *child =
        BELAY__CONTAINER(hoard.cache->handle.children.next, belay__child_t, node);
    belay__load_t *load = BELAY__CONTAINER(child, belay__load_t, child);
    assert_non_null(load->fallback);
    belay__record_release(bed->belay, load->fallback);
    load->fallback = NULL;
    load->seen_at += later ? 1000000 * UINT64_C(60000) : 0;
    assert_int_equal(begin_cache_get(&hoard, &second, "shop"), 0);
    bed_until(bed,
              !belay__list_empty(&load->waiters) && load->waiters.next->next != &load->waiters);
    assert_int_equal(hand_failure(&hoard, 7), 0);
    assert_int_equal(end_of_fetch(&first), later ? BELAY_ELOAD : 0);
    assert_int_equal(end_of_fetch(&second), later ? BELAY_ELOAD : 0);
    fetch_free(&first);
    fetch_free(&second);
  }
}

/* ---- tables -------------------------------------------------------------------------------------------------- */

BED_TEST(tables_of_others_drop_it) {
  hoard_t here = {.value = "v"}, there = {.value = "v"};
  belay_cache_options_t options = local_options(&here), other = local_options(&there);
  hoard_new(&here, bed, &options);
  hoard_of(&there, bed, bed_connect(bed, server_url(bed->server), NULL), &other);
  expect_cached(&here, "warm up", "v", BELAY_CACHE_FROM_LOAD);
  bed_until(bed, belay__subscription_is_up(&here.cache->subscription));
  expect_cached(&here, "shop red", "v", BELAY_CACHE_FROM_LOAD);
  expect_cached(&here, "shop blue", "v", BELAY_CACHE_FROM_LOAD);
  bed_until(bed, peek(&here, "shop red") == 0 && peek(&here, "shop blue") == 0); /* stored */
  expect_invalidate_tag(&there, "red");
  bed_until(bed, peek(&here, "shop red") == BELAY_EAGAIN);
  assert_int_equal(peek(&here, "shop blue"), 0);
  change_t change = {0};
  assert_int_equal(begin_invalidate_tag(&here, &change, "shop"), 0);
  assert_int_equal(peek(&here, "shop blue"), BELAY_EAGAIN); /* its own at once */
  assert_int_equal(end_of_change(&change), 0);
  expect_cached(&here, "shop blue", "v", BELAY_CACHE_FROM_LOAD);
}

/* ---- many at once ---------------------------------------------------------------------------------------------- */

typedef struct many {
  belay_request_t request;
  unsigned ended;
  belay_cache_from_t from[4];
} many_t;

static void on_many(belay_request_t *request, int status, const belay_cache_result_t *results,
                    size_t n) {
  many_t *many = request->data;
  assert_int_equal(status, 0);
  many->ended++;
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(results[i].status, 0);
    many->from[i] = results[i].from;
  }
}

static void expect_many(hoard_t *hoard, const char *from) {
  static const belay_bytes_t keys[] = {
      {"shop red", 8}, {"n:0", 3}, {"shop blue", 9}, {"blog red", 8}};
  many_t many = {0};
  many.request.data = &many;
  assert_int_equal(belay_cache_get_many(hoard->cache, &many.request, keys, 4, on_many), 0);
  bed_until(hoard->bed, many.ended == 1);
  for (int i = 0; i < 4; i++)
    assert_int_equal("-tsl"[many.from[i]], from[i]); /* the table, the server, a load */
}

BED_TEST(many_at_once) {
  hoard_t hoard = {.value = "v"};
  belay_cache_options_t options = tag_options(&hoard);
  hoard_new(&hoard, bed, &options);
  expect_many(&hoard, "llll");
  expect_many(&hoard, "ssss");
  expect_invalidate_tag(&hoard, "red");
  expect_many(&hoard, "lssl");
  expect_invalidate_tag(&hoard, "shop");
  expect_many(&hoard, "lsls");
  server_do(bed->server, "DEL", TAG_KEY("blog"), NULL);
  expect_many(&hoard, "sssl");
  expect_many(&hoard, "ssss");
}
